//! Records for other programs: JSON lines as they were written, or CSV for a spreadsheet.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use serde_json::Value;

use crate::AuditRecord;

/// The form in which records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The lines themselves, each with its chain's hashes.
    JsonLines,
    Csv,
}

/// Columns of the CSV after `time`, `chain` and `seq`; `more` has the members that have no column, as JSON.
const COLUMNS: &[&str] = &[
    "kind",
    "call_id",
    "agent",
    "tenant",
    "tool",
    "contract",
    "outcome",
    "code",
    "ms",
    "transport",
    "protocol",
    "arguments_digest",
    "clear",
    "act",
    "subject",
    "by",
    "fingerprint",
    "what",
    "place",
    "key_id",
    "reason",
];
const CHAINED: &[&str] = &["seq", "time", "prev", "hash"];

/// Writes all records; how many there were.
pub fn export(
    records: impl Iterator<Item = io::Result<AuditRecord>>,
    format: ExportFormat,
    out: &mut dyn Write,
) -> io::Result<u64> {
    match format {
        ExportFormat::JsonLines => json_lines(records, out),
        // The error keeps its kind, since the reader may have gone.
        ExportFormat::Csv => csv(records, out).map_err(|error| {
            let message = error.to_string();
            match error.into_kind() {
                csv::ErrorKind::Io(error) => error,
                _ => io::Error::other(message),
            }
        }),
    }
}

fn json_lines(
    records: impl Iterator<Item = io::Result<AuditRecord>>,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let mut count = 0;
    for record in records {
        writeln!(out, "{}", record?.line)?;
        count += 1;
    }
    out.flush()?;
    Ok(count)
}

fn csv(
    records: impl Iterator<Item = io::Result<AuditRecord>>,
    out: &mut dyn Write,
) -> csv::Result<u64> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(
        ["time", "chain", "seq"]
            .iter()
            .chain(COLUMNS)
            .chain(&["more", "hash"]),
    )?;
    let mut count = 0;
    for record in records {
        let record = record?;
        csv.write_field(record.text("time").unwrap_or_default())?;
        csv.write_field(record.chain.as_str())?;
        csv.write_field(record.seq.to_string())?;
        for column in COLUMNS {
            csv.write_field(
                record
                    .members
                    .get(*column)
                    .map_or("".into(), cell)
                    .as_bytes(),
            )?;
        }
        let known = |member: &str| COLUMNS.contains(&member) || CHAINED.contains(&member);
        let more: serde_json::Map<_, _> = record
            .members
            .iter()
            .filter(|(name, _)| !known(name))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        csv.write_field(if more.is_empty() {
            String::new()
        } else {
            Value::Object(more).to_string()
        })?;
        csv.write_field(record.hash.to_string())?;
        csv.write_record(None::<&[u8]>)?;
        count += 1;
    }
    csv.flush()?;
    Ok(count)
}

/// Writes a value as a cell, so that what a caller sent cannot become a formula in a spreadsheet.
fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => {
            format!("'{text}").into()
        }
        Value::String(text) => text.into(),
        value => value.to_string().into(),
    }
}
