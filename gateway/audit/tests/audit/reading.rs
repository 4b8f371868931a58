//! Tests reading all chains as one: by time, filtered, followed, exported, and shown without harm.

use std::{fs, io, path::Path, sync::mpsc, thread};

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;
use weir_audit::{
    AuditEvent, AuditFilter, AuditOutcome, AuditTrail, AuditedCall, CallDetails, ExportFormat,
    command, export, read, tail,
};

use crate::{append, call, open, segment};

fn by<'a>(id: &'a str, agent: &'a str, tool: &'a str, outcome: AuditOutcome) -> AuditEvent<'a> {
    let about = CallDetails {
        call_id: id,
        agent,
        tenant: "north",
        tool: Some(tool),
        contract: Some("airports@1.2.0"),
        ..CallDetails::default()
    };
    AuditEvent::Call(AuditedCall {
        about,
        outcome,
        code: None,
        reason: None,
        ms: 1.0,
    })
}

/// Writes two chains in turns.
fn written(folder: &Path) -> (AuditTrail, AuditTrail) {
    let (one, two) = (open(folder), open(folder));
    one.append(&by("c_1", "ada", "find", AuditOutcome::Ok))
        .unwrap();
    two.append(&by("c_2", "bob", "find", AuditOutcome::Refused))
        .unwrap();
    one.rotate().unwrap();
    one.append(&by("c_3", "ada", "list", AuditOutcome::Failed))
        .unwrap();
    two.append(&by("c_4", "ada", "find", AuditOutcome::Ok))
        .unwrap();
    (one, two)
}

fn calls() -> AuditFilter {
    AuditFilter {
        kinds: vec!["call".into()],
        ..AuditFilter::default()
    }
}

#[track_caller]
fn check(folder: &Path, filter: AuditFilter, expected: &[&str]) {
    let ids: Vec<String> = read(folder, filter)
        .unwrap()
        .map(|record| record.unwrap().text("call_id").unwrap().to_owned())
        .collect();
    assert_eq!(ids, expected);
}

#[test]
fn chains_are_merged_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let _trails = written(folder.path());
    check(folder.path(), calls(), &["c_1", "c_2", "c_3", "c_4"]);
    let all = read(folder.path(), AuditFilter::default()).unwrap().count();
    assert_eq!(
        all,
        4 + 2 + 1,
        "the openings of two chains and of a segment"
    );
}

#[test]
fn filters_narrow() {
    let folder = tempfile::tempdir().unwrap();
    let (one, _two) = written(folder.path());
    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }
    type Narrow = fn(&mut AuditFilter);
    let cases: [(Narrow, &[&str]); 7] = [
        (|by| by.agent = some("ada"), &["c_1", "c_3", "c_4"]),
        (
            |by| (by.tool, by.outcome) = (some("find"), some("ok")),
            &["c_1", "c_4"],
        ),
        (
            |by| (by.contract, by.limit) = (some("airports"), Some(2)),
            &["c_1", "c_2"],
        ),
        (
            |by| (by.contract, by.limit) = (some("airports@1.2.0"), Some(1)),
            &["c_1"],
        ),
        (|by| by.contract = some("airports@1.2"), &[]),
        (|by| by.text = some("\"failed\""), &["c_3"]),
        (|by| by.tenant = some("south"), &[]),
    ];
    for (narrow, expected) in cases {
        let mut filter = calls();
        narrow(&mut filter);
        check(folder.path(), filter, expected);
    }
    let of_any_kind = AuditFilter {
        call_id: some("c_2"),
        ..AuditFilter::default()
    };
    check(folder.path(), of_any_kind, &["c_2"]);
    let third = read(
        folder.path(),
        AuditFilter {
            call_id: some("c_3"),
            ..calls()
        },
    )
    .unwrap()
    .next()
    .unwrap()
    .unwrap();
    check(
        folder.path(),
        AuditFilter {
            since: Some(third.time),
            ..calls()
        },
        &["c_3", "c_4"],
    );
    check(
        folder.path(),
        AuditFilter {
            until: Some(third.time),
            ..calls()
        },
        &["c_1", "c_2"],
    );
    assert_eq!(third.receipt(), one.head());
    let (hours, time) = (SignedDuration::from_hours(2), third.time);
    for (since, until, last) in [
        (Some(time), None, Some("c_4")),
        (None, Some(time), Some("c_2")),
        (Some(time - hours), Some(time + hours), Some("c_4")),
        (Some(time + hours), None, None),
        (None, Some(time - hours), None),
    ] {
        let (records, _) = tail(
            folder.path(),
            AuditFilter {
                since,
                until,
                ..calls()
            },
            1,
        )
        .unwrap();
        assert_eq!(
            records.first().and_then(|record| record.text("call_id")),
            last,
            "{since:?} to {until:?}"
        );
    }
}

#[test]
fn the_last_ones_and_what_follows() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = written(folder.path());
    let ids = |records: Vec<weir_audit::AuditRecord>| -> Vec<String> {
        records
            .iter()
            .map(|record| record.text("call_id").unwrap().to_owned())
            .collect()
    };
    let (last, mut follow) = tail(folder.path(), calls(), 3).unwrap();
    assert_eq!(ids(last), ["c_2", "c_3", "c_4"]);
    assert_eq!(ids(follow.poll().unwrap()), Vec::<String>::new());

    two.append(&by("c_5", "ada", "find", AuditOutcome::Ok))
        .unwrap();
    one.append(&by("c_6", "ada", "find", AuditOutcome::Ok))
        .unwrap();
    one.rotate().unwrap();
    one.append(&by("c_7", "ada", "find", AuditOutcome::Ok))
        .unwrap();
    let three = open(folder.path());
    three
        .append(&by("c_8", "ada", "find", AuditOutcome::Ok))
        .unwrap();
    assert_eq!(ids(follow.poll().unwrap()), ["c_5", "c_6", "c_7", "c_8"]);

    // Half a line is nothing yet.
    let path = segment(folder.path(), &three.head(), 1);
    let whole = fs::read(&path).unwrap();
    three
        .append(&by("c_9", "ada", "find", AuditOutcome::Ok))
        .unwrap();
    let more = fs::read(&path).unwrap();
    fs::write(&path, &more[..whole.len() + 40]).unwrap();
    assert_eq!(ids(follow.poll().unwrap()), Vec::<String>::new());
    fs::write(&path, &more).unwrap();
    assert_eq!(ids(follow.poll().unwrap()), ["c_9"]);
}

/// A reader that goes away after some lines.
struct Reader {
    lines: mpsc::SyncSender<String>,
    line: String,
}

impl io::Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.push_str(std::str::from_utf8(bytes).unwrap());
        if self.line.ends_with('\n') {
            self.lines
                .send(std::mem::take(&mut self.line))
                .map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn tail_follows_until_its_reader_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (one, _two) = written(folder.path());
    let (lines, read) = mpsc::sync_channel(0);
    thread::scope(|scope| {
        let tail = scope.spawn(|| {
            let mut out = Reader {
                lines,
                line: String::new(),
            };
            command::tail(folder.path(), calls(), 2, true, true, &mut out)
        });
        let id = || {
            serde_json::from_str::<serde_json::Value>(&read.recv().unwrap()).unwrap()["call_id"]
                .clone()
        };
        assert_eq!((id(), id()), (json!("c_3"), json!("c_4")));
        one.append(&by("c_5", "ada", "find", AuditOutcome::Ok))
            .unwrap();
        assert_eq!(id(), "c_5");
        drop(read);
        append(&one, 1);
        tail.join().unwrap().unwrap();
    });
}

/// A terminal acts on escapes, and an eye on characters that turn the line around.
#[test]
fn what_is_shown_is_plain() {
    let folder = tempfile::tempdir().unwrap();
    let trail = open(folder.path());
    let clear = json!({"note": "\u{1b}[2J\u{9b}1m\nx", "b\u{202e}": "\u{202e}txt"})
        .as_object()
        .cloned();
    let about = CallDetails {
        call_id: "c_1",
        agent: "a b",
        clear: clear.as_ref(),
        transport: "http",
        ..CallDetails::default()
    };
    trail
        .append(&AuditEvent::Call(AuditedCall {
            about,
            outcome: AuditOutcome::Ok,
            code: None,
            reason: None,
            ms: 1.5,
        }))
        .unwrap();
    let mut out = Vec::new();
    command::query(folder.path(), calls(), false, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let line = text.trim_end_matches('\n');
    assert!(
        !line.chars().any(|c| c.is_control() || c == '\u{202e}'),
        "{line:?}"
    );
    let head = format!("record={}:{}", trail.head().chain, trail.head().seq);
    for part in [
        " call    outcome=ok agent=\"a b\" ",
        "\\u001b[2J\\u{9b}1m\\nx",
        " ms=1.5 call_id=c_1 ",
        &head,
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn export_is_json_lines_or_a_spreadsheet_without_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let trail = open(folder.path());
    trail
        .append(&by(
            "c_1",
            "=cmd|' /C calc'!A0",
            "find, \"quoted\"",
            AuditOutcome::Ok,
        ))
        .unwrap();
    append(&trail, 2);
    let run = |format| {
        let mut out = Vec::new();
        let count = export(read(folder.path(), calls()).unwrap(), format, &mut out).unwrap();
        assert_eq!(count, 3);
        String::from_utf8(out).unwrap()
    };
    let written = fs::read_to_string(segment(folder.path(), &trail.head(), 1)).unwrap();
    assert_eq!(
        run(ExportFormat::JsonLines),
        written.split_once('\n').unwrap().1
    );

    let csv = run(ExportFormat::Csv);
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let columns = rows.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let cell = |row: usize, name: &str| {
        &rows[row][columns.iter().position(|column| column == name).unwrap()]
    };
    assert_eq!(cell(0, "agent"), "'=cmd|' /C calc'!A0");
    assert_eq!(cell(0, "tool"), "find, \"quoted\"");
    assert_eq!(
        (cell(1, "agent"), cell(1, "ms"), cell(1, "outcome")),
        ("ada", "1.234", "ok")
    );
    assert_eq!(cell(2, "hash"), trail.head().hash.to_string());
}

#[test]
fn an_export_ends_with_its_reader() {
    struct Gone;

    impl io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let folder = tempfile::tempdir().unwrap();
    // The export is larger than any buffer on the way.
    append(&open(folder.path()), 100);
    for format in [ExportFormat::JsonLines, ExportFormat::Csv] {
        command::export(folder.path(), calls(), format, &mut Gone).unwrap();
    }
}

/// Verification reports what it cannot find: a cut behind the last record that anything else names.
#[test]
fn verify_says_where_a_cut_would_not_be_found() {
    let folder = tempfile::tempdir().unwrap();
    let receipt = {
        let trail = open(folder.path());
        let receipt = trail.append(&call("c_1")).unwrap();
        trail.append(&call("c_2")).unwrap();
        receipt
    };
    let run = |receipts: &[weir_audit::AuditReceipt]| {
        let mut out = Vec::new();
        let whole = command::verify(folder.path(), receipts, false, &mut out).unwrap();
        (whole, String::from_utf8(out).unwrap())
    };
    let tells = |text: &str, after: u64| {
        text.contains(&format!(
            "at the end of {} after record {after}: ",
            receipt.chain
        ))
    };
    assert!(tells(&run(&[]).1, 0), "{}", run(&[]).1);
    let with = run(std::slice::from_ref(&receipt));
    assert!(tells(&with.1, receipt.seq), "{}", with.1);

    let segment = folder
        .path()
        .join(receipt.chain.to_string())
        .join("000001.jsonl");
    let lines = std::fs::read_to_string(&segment).unwrap();
    let cut = |lines_left: usize| {
        let left: String = lines.split_inclusive('\n').take(lines_left).collect();
        std::fs::write(&segment, left).unwrap();
    };
    cut(2);
    assert!(
        run(&[]).0 && run(std::slice::from_ref(&receipt)).0,
        "as it says"
    );
    cut(1);
    assert!(run(&[]).0 && !run(std::slice::from_ref(&receipt)).0);

    // Another process names the head that it finds.
    cut(lines.lines().count());
    drop(open(folder.path()));
    let text = run(&[]).1;
    assert!(
        !text.contains(&format!("{} after", receipt.chain)),
        "{text}"
    );
}

#[test]
fn verify_prints_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let receipt = open(folder.path()).append(&call("c_1")).unwrap();
    let run = |json| {
        let mut out = Vec::new();
        let whole = command::verify(
            folder.path(),
            std::slice::from_ref(&receipt),
            json,
            &mut out,
        )
        .unwrap();
        (whole, String::from_utf8(out).unwrap())
    };
    let (whole, text) = run(false);
    assert!(
        whole && text.ends_with("the trail is whole: 3 records in 1 chain, 0 findings\n"),
        "{text}"
    );
    let record = text.lines().next().unwrap_or_default();
    assert!(
        record.contains("call_id=c_1") && record.contains("agent=ada"),
        "what the receipt proves: {text}"
    );
    let (_, report) = run(true);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        report["receipts"][0]["record"]["call_id"], "c_1",
        "{report}"
    );
    let elsewhere = command::verify(
        tempfile::tempdir().unwrap().path(),
        &[],
        false,
        &mut Vec::new(),
    );
    assert!(
        elsewhere.is_err_and(|error| error.to_string().contains("no trail")),
        "an empty folder proves nothing"
    );
    let path = segment(folder.path(), &receipt, 1);
    fs::write(
        &path,
        fs::read_to_string(&path)
            .unwrap()
            .replace("\"ada\"", "\"eve\""),
    )
    .unwrap();
    let (whole, text) = run(false);
    assert!(
        !whole && text.starts_with(&format!("changed: {}/000001.jsonl line 2: ", receipt.chain)),
        "{text}"
    );
    let (whole, text) = run(true);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(!whole);
    assert_eq!(
        (
            &report["findings"][0]["what"],
            &report["findings"][0]["line"]
        ),
        (&json!("changed"), &json!(2))
    );
    assert_eq!(report["receipts"][0]["status"], "missing");
    assert!(command::verify(&folder.path().join("nowhere"), &[], false, &mut Vec::new()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Rubbish lies between and after records: all records are read, and nothing panics.
    #[test]
    fn rubbish_hides_no_record(rubbish in prop::collection::vec(any::<u8>(), 0..2048)) {
        let folder = tempfile::tempdir().unwrap();
        let receipts = append(&open(folder.path()), 3);
        let path = segment(folder.path(), &receipts[0], 1);
        let text = fs::read_to_string(&path).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        fs::write(&path, [first.as_bytes(), b"\n", &rubbish, b"\n", rest.as_bytes(), &rubbish].concat()).unwrap();
        let found: Vec<_> = read(folder.path(), calls()).unwrap().map(|record| record.unwrap().receipt()).collect();
        prop_assert_eq!(&found, &receipts);
        let (last, mut follow) = tail(folder.path(), calls(), 2).unwrap();
        prop_assert_eq!(last.len(), 2);
        prop_assert_eq!(follow.poll().unwrap().len(), 0);
    }
}
