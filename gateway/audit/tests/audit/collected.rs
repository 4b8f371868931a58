//! Chains of several machines in one folder, and what is missing of them.

use std::{fs, io, path::Path};

use tempfile::TempDir;
use weir_audit::{
    AuditReceipt, AuditTrail, ChainHead, ChainName, CollectedHeads, CollectedTrail, TrailProblem,
    TrailSettings, list_files, list_heads, read_lines, verify,
};

use crate::{
    problems,
    steps::{append, check_whole, open, settings},
};

/// Opens a trail in a folder of its own, as on another machine, that knows the heads of others.
fn machine(heads_elsewhere: Vec<AuditReceipt>) -> (TempDir, AuditTrail) {
    let folder = tempfile::tempdir().unwrap();
    let settings = TrailSettings {
        heads_elsewhere,
        ..settings()
    };
    let trail = AuditTrail::open(folder.path(), settings).unwrap();
    (folder, trail)
}

fn collect(from: &Path, to: &CollectedTrail) {
    for files in list_files(from).unwrap() {
        for segment in files.segments {
            let lines = read_lines(from, &files.chain, segment.number, 0).unwrap();
            assert_eq!(lines.len() as u64, segment.bytes);
            put(to, &files.chain, segment.number, &lines).unwrap();
        }
    }
}

/// Puts a segment into its place, in two parts.
fn put(to: &CollectedTrail, chain: &ChainName, segment: u32, lines: &[u8]) -> io::Result<()> {
    let mut collected = to.begin_segment(chain, segment)?;
    let (one, other) = lines.split_at(lines.len() / 3);
    collected.write(one)?;
    collected.write(other)?;
    collected.finish()
}

#[test]
fn collected_chains_verify_and_a_lost_one_is_named_with_its_records() {
    let (one, trail) = machine(Vec::new());
    let receipts = append(&trail, 5);
    let lost: ChainName = receipts[0].chain.clone();
    let heads = list_heads(one.path(), "n1").unwrap();
    let (two, other) = machine(vec![trail.head()]);
    append(&other, 2);
    // The chain of the other machine is not in this folder, and not missed here.
    check_whole(two.path(), &[]);

    let folder = tempfile::tempdir().unwrap();
    let collected = CollectedTrail::begin(folder.path()).unwrap();
    collected.put_heads(heads).unwrap();
    collected
        .put_heads(list_heads(two.path(), "n2").unwrap())
        .unwrap();
    append(&trail, 2);
    collect(one.path(), &collected);
    collect(two.path(), &collected);
    let report = check_whole(folder.path(), &receipts);
    assert_eq!((report.chains, report.warnings_count), (2, 0), "{report}");

    // Less of a segment never takes the place of more.
    put(&collected, &lost, 1, b"").unwrap();
    check_whole(folder.path(), &receipts);

    let file = folder.path().join(lost.as_str()).join("000001.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let cut: String = text.split_inclusive('\n').take(3).collect();
    fs::write(&file, cut).unwrap();
    assert_eq!(
        problems(folder.path(), &[]),
        [TrailProblem::Cut, TrailProblem::Cut]
    );
    let report = verify(folder.path(), &[]).unwrap();
    assert!(
        report
            .to_string()
            .contains("the records 4 to 6 are missing"),
        "{report}"
    );

    fs::remove_dir_all(folder.path().join(lost.as_str())).unwrap();
    assert_eq!(problems(folder.path(), &[]), [TrailProblem::Missing]);
    let report = verify(folder.path(), &[]).unwrap();
    let text = report.to_string();
    assert!(
        text.contains(lost.as_str()) && text.contains("the records 1 to 6"),
        "{text}"
    );
    fs::remove_file(folder.path().join("heads.json")).unwrap();
    check_whole(folder.path(), &[]);
}

#[test]
fn a_segment_is_read_in_parts_of_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let trail = open(folder.path());
    let receipts = append(&trail, 3);
    let chain = &receipts[0].chain;
    let all = read_lines(folder.path(), chain, 1, 0).unwrap();
    let path = folder.path().join(chain.as_str()).join("000001.jsonl");
    assert_eq!(all, fs::read(&path).unwrap());
    let second = all.iter().position(|byte| *byte == b'\n').unwrap() as u64 + 1;
    assert_eq!(
        read_lines(folder.path(), chain, 1, second).unwrap(),
        all[second as usize..]
    );
    assert!(
        read_lines(folder.path(), chain, 1, all.len() as u64)
            .unwrap()
            .is_empty()
    );
    assert!(
        read_lines(folder.path(), chain, 1, all.len() as u64 - 1)
            .unwrap()
            .len()
            == 1
    );
    assert!(read_lines(folder.path(), chain, 2, 0).is_err());
    // Half a line that is being written is not part of it.
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    std::io::Write::write_all(&mut file, b"{\"seq\":").unwrap();
    assert_eq!(read_lines(folder.path(), chain, 1, 0).unwrap(), all);
    let files = list_files(folder.path()).unwrap();
    assert_eq!(files[0].segments[0].bytes, all.len() as u64);
}

/// A busy machine forgets the statement of a removal before another one forgets the head that it saw there.
#[test]
fn a_chain_that_retention_removed_at_its_machine_is_no_attack() {
    let (one, trail) = machine(Vec::new());
    append(&trail, 20);
    let removed = trail.head();
    drop(trail);
    let (two, other) = machine(vec![removed.clone()]);
    append(&other, 1);
    let keeping = TrailSettings {
        keep_bytes: Some(1000),
        ..settings()
    };
    let busy = AuditTrail::open(one.path(), keeping).unwrap();
    let collect_all = || {
        let folder = tempfile::tempdir().unwrap();
        let collected = CollectedTrail::begin(folder.path()).unwrap();
        for (machine, name) in [(&one, "n1"), (&two, "n2")] {
            let heads = list_heads(machine.path(), name).unwrap();
            collected.put_heads(heads).unwrap();
            collect(machine.path(), &collected);
        }
        (folder, collected)
    };
    assert!(!one.path().join(removed.chain.as_str()).exists());
    let (folder, _) = collect_all();
    let report = check_whole(folder.path(), &[]);
    assert_eq!(report.warnings_count, 0, "its removal is stated: {report}");

    for _ in 0..3 {
        append(&busy, 10);
        busy.rotate().unwrap();
    }
    let (folder, collected) = collect_all();
    let report = check_whole(folder.path(), &[]);
    assert_eq!(report.warnings_count, 1, "{report}");
    let warned = report.to_string();
    assert!(
        warned.contains(removed.chain.as_str()) && warned.contains("by retention or by hand"),
        "{warned}"
    );

    // Retention of one machine excuses no chain of another one, and none that is younger than what it removed.
    for (chain, node) in [
        ("20000101T000000Z-1-00000000", "n3"),
        ("29991231T235959Z-1-00000000", "n1"),
    ] {
        let head = ChainHead {
            chain: chain.parse().unwrap(),
            node: node.to_owned(),
            segment: 1,
            seq: 4,
            hash: removed.hash,
        };
        let heads = vec![head];
        collected.put_heads(CollectedHeads { heads }).unwrap();
    }
    assert_eq!(
        problems(folder.path(), &[]),
        [TrailProblem::Missing, TrailProblem::Missing]
    );
}

/// What lies in the folder is the evidence: other lines of the same records never take its place.
#[test]
fn collected_lines_that_differ_are_refused_and_those_of_gaps_are_added() {
    let (one, trail) = machine(Vec::new());
    let receipts = append(&trail, 8);
    let chain = &receipts[0].chain;
    let whole = read_lines(one.path(), chain, 1, 0).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let without =
        |gap: std::ops::Range<usize>| [&lines[..gap.start], &lines[gap.end..]].concat().concat();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join(chain.as_str()).join("000001.jsonl");
    let collected = CollectedTrail::begin(folder.path()).unwrap();
    assert!(
        CollectedTrail::begin(folder.path()).is_err(),
        "one at a time"
    );

    put(&collected, chain, 1, &without(3..5)).unwrap();
    assert_eq!(collected.missing_records(chain).unwrap(), [4..=5]);
    assert_eq!(problems(folder.path(), &[]), [TrailProblem::Deleted]);
    // Where another place lacks other records, both together have all.
    put(&collected, chain, 1, &without(6..8)).unwrap();
    assert!(collected.missing_records(chain).unwrap().is_empty());
    assert_eq!(fs::read(&place).unwrap(), whole);
    put(&collected, chain, 1, &without(1..2)).unwrap();
    assert_eq!(fs::read(&place).unwrap(), whole);
    check_whole(folder.path(), &receipts);

    let text = String::from_utf8(whole.clone()).unwrap();
    let twice = [lines[0], lines[1], lines[1]].concat();
    for changed in [
        text.replacen("\"ada\"", "\"eve\"", 1).into_bytes(),
        text.replace("\"north\"", "\"south\"").into_bytes(),
        [&whole[..], b"no record\n"].concat()[lines[0].len()..].to_vec(),
        twice,
    ] {
        let refused = put(&collected, chain, 1, &changed).unwrap_err();
        assert!(refused.to_string().contains("differs"), "{refused}");
        assert_eq!(fs::read(&place).unwrap(), whole);
    }
    assert!(!fs::read_dir(folder.path()).unwrap().any(|entry| {
        let name = entry.unwrap().file_name();
        name.to_string_lossy().starts_with(".collecting")
    }));
}
