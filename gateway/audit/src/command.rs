//! Does the work of `weir audit …` for the command line: each function writes to `out` and leaves the exit code to its
//! caller.
//!
//! A closed pipe ends a command without an error.

use std::{
    io::{self, ErrorKind, Write},
    path::Path,
    thread,
    time::Duration,
};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    AuditError, AuditFilter, AuditReceipt, AuditRecord, ExportFormat, ProofReport, ReceiptStatus,
    TrailReport,
    export::export as write_export,
    folder::chains,
    plain_text::{plain, plain_json, printable},
    read, tail as read_tail,
};

/// The time between two looks of `tail`.
const POLL: Duration = Duration::from_millis(200);

/// Runs `weir audit verify`: writes the report as text or JSON, and returns `true` if nothing was found.
pub fn verify(
    folder: &Path,
    receipts: &[AuditReceipt],
    json: bool,
    out: &mut dyn Write,
) -> Result<bool, AuditError> {
    let (report, found) = report(folder, receipts)?;
    if report.chains == 0 {
        return Err(failed(folder, "verified", no_trail()));
    }
    let write = |out: &mut dyn Write| {
        if json {
            return print_json(&report, out);
        }
        found
            .iter()
            .try_for_each(|record| print(record, false, out))?;
        write!(out, "{report}")
    };
    ended(write(out)).map_err(|source| failed(folder, "reported on", source))?;
    Ok(report.is_ok())
}

/// Writes what a proof of one record shows as text or JSON, and returns `true` if it is proven: there is a
/// receipt, and every receipt is of a record in it.
pub fn report_proof(report: &ProofReport, json: bool, out: &mut dyn Write) -> io::Result<bool> {
    let write = |out: &mut dyn Write| match json {
        true => print_json(report, out),
        false => {
            print_members(&report.record, out)?;
            writeln!(
                out,
                " record={}:{}",
                report.receipt.chain, report.receipt.seq
            )?;
            write!(out, "{report}")
        }
    };
    ended(write(out))?;
    Ok(report.is_ok())
}

/// Writes a report that a gateway made as text or JSON, and returns `true` if nothing was found.
pub fn report_answer(report: &TrailReport, json: bool, out: &mut dyn Write) -> io::Result<bool> {
    let write = |out: &mut dyn Write| {
        if json {
            return print_json(report, out);
        }
        for check in &report.receipts {
            if let Some(record) = &check.record {
                print_members(record, out)?;
                writeln!(out, " record={}:{}", check.receipt.chain, check.receipt.seq)?;
            }
        }
        // The words are another machine's.
        report
            .to_string()
            .lines()
            .try_for_each(|line| writeln!(out, "{}", printable(line)))
    };
    ended(write(out))?;
    Ok(report.is_ok())
}

fn print_json(report: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

/// Verifies the trail, and finds the records that receipts are of.
pub fn report(
    folder: &Path,
    receipts: &[AuditReceipt],
) -> Result<(TrailReport, Vec<AuditRecord>), AuditError> {
    let mut report = crate::verify(folder, receipts)?;
    let found = records_of(folder, &report).map_err(|source| failed(folder, "read", source))?;
    for check in &mut report.receipts {
        let record = found
            .iter()
            .find(|record| record.receipt() == check.receipt);
        check.record = record.map(|record| record.members.clone());
    }
    Ok((report, found))
}

/// Returns the records named by the receipts: what they prove.
fn records_of(folder: &Path, report: &TrailReport) -> io::Result<Vec<AuditRecord>> {
    let present: Vec<&AuditReceipt> = report
        .receipts
        .iter()
        .filter(|it| it.status == ReceiptStatus::Present)
        .map(|it| &it.receipt)
        .collect();
    if present.is_empty() {
        return Ok(Vec::new());
    }
    let records = read(folder, AuditFilter::default())?;
    records
        .filter(|record| {
            record
                .as_ref()
                .map_or(true, |record| present.contains(&&record.receipt()))
        })
        .collect()
}

/// Runs `weir audit query`: writes the records that match, oldest first.
pub fn query(
    folder: &Path,
    filter: AuditFilter,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), AuditError> {
    let run = || {
        check_folder(folder)?;
        read(folder, filter)?.try_for_each(|record| print(&record?, json, out))
    };
    ended(run()).map_err(|source| failed(folder, "read", source))
}

/// Runs `weir audit tail`: writes the last `count` records that match, and with `follow` all later ones, until
/// the reader is gone.
pub fn tail(
    folder: &Path,
    filter: AuditFilter,
    count: usize,
    follow: bool,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), AuditError> {
    let run = || {
        check_folder(folder)?;
        let (last, mut more) = read_tail(folder, filter, count)?;
        last.iter()
            .try_for_each(|record| print(record, json, out))?;
        out.flush()?;
        if !follow {
            return Ok(());
        }
        loop {
            thread::sleep(POLL);
            more.poll()?
                .iter()
                .try_for_each(|record| print(record, json, out))?;
            out.flush()?;
        }
    };
    ended(run()).map_err(|source| failed(folder, "read", source))
}

/// Runs `weir audit export`: writes JSON lines or CSV. Returns how many records there were, or zero if their reader has
/// gone.
pub fn export(
    folder: &Path,
    filter: AuditFilter,
    format: ExportFormat,
    out: &mut dyn Write,
) -> Result<u64, AuditError> {
    let exported = check_folder(folder)
        .and_then(|()| read(folder, filter))
        .and_then(|records| write_export(records, format, out));
    ended(exported).map_err(|source| failed(folder, "exported", source))
}

/// Checks that there is a trail: a wrong folder would look like one without a record.
fn check_folder(folder: &Path) -> io::Result<()> {
    match chains(folder)?.is_empty() {
        true => Err(no_trail()),
        false => Ok(()),
    }
}

fn no_trail() -> io::Error {
    let why = "there is no trail in it; it is the folder `audit` in the state folder, with a folder for each process that wrote";
    io::Error::new(ErrorKind::NotFound, why)
}

fn failed(folder: &Path, what: &'static str, source: io::Error) -> AuditError {
    AuditError::Folder {
        what,
        folder: folder.to_owned(),
        source,
    }
}

/// Turns a broken pipe into success, since a reader may stop reading.
fn ended<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(T::default()),
        result => result,
    }
}

fn print(record: &AuditRecord, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        return writeln!(out, "{}", record.line);
    }
    print_members(&record.members, out)?;
    writeln!(out, " record={}:{}", record.chain, record.seq)
}

fn print_members(members: &Map<String, Value>, out: &mut dyn Write) -> io::Result<()> {
    let text = |name: &str| {
        plain(
            members
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default(),
        )
    };
    write!(out, "{} {:7}", text("time"), text("kind"))?;
    let is_shown = |name: &str| !matches!(name, "seq" | "time" | "kind" | "prev" | "hash");
    let mut members: Vec<_> = members.iter().filter(|(name, _)| is_shown(name)).collect();
    members.sort_by_key(|(name, value)| rank(name, value));
    for (name, value) in members {
        write!(out, " {}={}", plain(name), render_value(value))?;
    }
    Ok(())
}

/// The members that a line of text begins with: how it ended, and who did what.
const FIRST: [&str; 10] = [
    "outcome", "code", "act", "subject", "agent", "tenant", "tool", "contract", "by", "ms",
];

/// Returns the place of a member in a line of text: digests, which people do not read, come last.
fn rank(name: &str, value: &Value) -> usize {
    const DIGEST_CHARS: usize = 64;
    let is_digest = |text: &str| {
        text.len() == DIGEST_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match FIRST.iter().position(|first| *first == name) {
        Some(place) => place,
        None if value.as_str().is_some_and(is_digest) => FIRST.len() + 1,
        None => FIRST.len(),
    }
}

/// Shows text as it is if it is one plain word, else as JSON, so that nothing a caller sent reaches the terminal's
/// escapes.
fn render_value(value: &Value) -> String {
    match value {
        Value::String(text)
            if !text.is_empty() && plain(text) == *text && !text.contains(['"', '\'']) =>
        {
            text.clone()
        }
        value => plain_json(&value.to_string()),
    }
}
