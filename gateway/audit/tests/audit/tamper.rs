//! Every way to alter the trail behind its back, done to real files.

use std::fs;

use proptest::prelude::*;
use weir_audit::{AuditReceipt, ReceiptStatus, TrailProblem, verify};

use crate::{append, check_whole, lines, open, problems, segment, write_lines};

/// Writes a closed chain of `count` calls beside its opening and its end, in one segment.
fn written(folder: &std::path::Path, count: usize) -> Vec<AuditReceipt> {
    append(&open(folder), count)
}

/// Alters the lines of a chain of ten calls (twelve records) and tells what is found.
fn altered(alter: impl FnOnce(&mut Vec<String>)) -> (Vec<TrailProblem>, Vec<TrailProblem>) {
    let folder = tempfile::tempdir().unwrap();
    let receipts = written(folder.path(), 10);
    let path = segment(folder.path(), &receipts[0], 1);
    let mut all = lines(&path);
    assert_eq!(all.len(), 12);
    alter(&mut all);
    write_lines(&path, &all);
    (
        problems(folder.path(), &[]),
        problems(folder.path(), &receipts),
    )
}

/// Computes the hash of a line as docs/audit.md says, and seals it again.
pub(crate) fn seal_again(line: &str) -> String {
    use sha2::{Digest, Sha256};
    let (hashed, _) = line.rsplit_once(",\"hash\":").unwrap();
    format!(
        "{hashed},\"hash\":\"{}\"}}",
        hex::encode(Sha256::digest(hashed))
    )
}

#[test]
fn an_untouched_trail_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = written(folder.path(), 10);
    let report = check_whole(folder.path(), &receipts);
    assert_eq!((report.chains, report.segments, report.records), (1, 1, 12));
    assert_eq!(report.warnings_count, 0, "{report}");
    assert!(
        report
            .receipts
            .iter()
            .all(|check| check.status == ReceiptStatus::Present)
    );
    assert_eq!(report.heads[0].seq, 12);
}

#[test]
fn a_changed_byte() {
    let (found, _) = altered(|lines| lines[4] = lines[4].replace("\"ada\"", "\"eve\""));
    assert_eq!(found, [TrailProblem::Changed]);
}

#[test]
fn a_changed_line_that_was_sealed_again() {
    let (found, with_receipts) =
        altered(|lines| lines[4] = seal_again(&lines[4].replace("\"ada\"", "\"eve\"")));
    assert_eq!(found, [TrailProblem::Replaced]);
    assert_eq!(
        with_receipts,
        [TrailProblem::Replaced, TrailProblem::Replaced]
    );
}

#[test]
fn a_deleted_line() {
    let (found, _) = altered(|lines| drop(lines.remove(4)));
    assert_eq!(found, [TrailProblem::Deleted]);
    let (found, _) = altered(|lines| drop(lines.drain(2..7)));
    assert_eq!(found, [TrailProblem::Deleted]);
    let (found, _) = altered(|lines| drop(lines.remove(0)));
    assert_eq!(found, [TrailProblem::Deleted]);
}

#[test]
fn two_swapped_lines() {
    let (found, _) = altered(|lines| lines.swap(4, 5));
    assert_eq!(found, [TrailProblem::OutOfOrder]);
    let (found, _) = altered(|lines| lines.swap(3, 8));
    assert!(
        !found.is_empty() && found.iter().all(|what| *what == TrailProblem::OutOfOrder),
        "{found:?}"
    );
}

#[test]
fn a_line_put_in_twice() {
    let (found, _) = altered(|lines| lines.insert(7, lines[4].clone()));
    assert_eq!(found, [TrailProblem::Inserted]);
}

#[test]
fn a_line_joined_and_a_line_split() {
    let (found, _) = altered(|lines| {
        let next = lines.remove(5);
        lines[4].push_str(&next);
    });
    assert_eq!(found, [TrailProblem::Changed, TrailProblem::Deleted]);
    let (found, _) = altered(|lines| {
        let rest = lines[4].split_off(40);
        lines.insert(5, rest);
    });
    assert_eq!(found, [TrailProblem::Changed, TrailProblem::Changed]);
}

/// Nothing in the chain itself can tell; a receipt does.
#[test]
fn a_cut_tail_is_found_by_a_receipt() {
    let (found, with_receipts) = altered(|lines| lines.truncate(8));
    assert_eq!(found, []);
    assert_eq!(with_receipts, [TrailProblem::Cut; 3]);
}

#[test]
fn a_cut_tail_is_found_by_the_chain_that_names_its_head() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = written(folder.path(), 10);
    written(folder.path(), 1);
    let path = segment(folder.path(), &receipts[0], 1);
    let mut all = lines(&path);
    all.truncate(8);
    write_lines(&path, &all);
    assert_eq!(problems(folder.path(), &[]), [TrailProblem::Cut]);
}

#[test]
fn a_chain_written_on_after_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = written(folder.path(), 2);
    written(folder.path(), 1);
    let path = segment(folder.path(), &receipts[0], 1);
    let mut all = lines(&path);
    let last: serde_json::Value = serde_json::from_str(all.last().unwrap()).unwrap();
    let (before, _) = all[1].split_once(",\"prev\":").unwrap();
    let forged = before.replacen("\"seq\":2", "\"seq\":5", 1);
    all.push(seal_again(&format!(
        "{forged},\"prev\":{},\"hash\":\"\"}}",
        last["hash"]
    )));
    write_lines(&path, &all);
    assert_eq!(problems(folder.path(), &[]), [TrailProblem::Inserted]);
}

#[test]
fn a_file_replaced_by_another_chains() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (written(folder.path(), 3), written(folder.path(), 3));
    fs::copy(
        segment(folder.path(), &second[0], 1),
        segment(folder.path(), &first[0], 1),
    )
    .unwrap();
    // The records that belonged here are gone, which the second chain and the receipts both tell.
    assert_eq!(
        problems(folder.path(), &[]),
        [
            TrailProblem::Foreign,
            TrailProblem::Deleted,
            TrailProblem::Cut
        ]
    );
    assert_eq!(
        problems(folder.path(), &first[..1]),
        [
            TrailProblem::Foreign,
            TrailProblem::Deleted,
            TrailProblem::Cut,
            TrailProblem::Cut
        ]
    );
}

/// The forger knows the format: all hashes are right, and only those who remember the old ones can tell.
#[test]
fn a_chain_forged_from_a_record_on() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = written(folder.path(), 10);
    let path = segment(folder.path(), &receipts[0], 1);
    let mut all = lines(&path);
    all[3] = all[3].replace("\"ada\"", "\"eve\"");
    for index in 3..all.len() {
        let before: serde_json::Value = serde_json::from_str(&all[index - 1]).unwrap();
        let (start, _) = all[index].rsplit_once(",\"prev\":").unwrap();
        all[index] = seal_again(&format!(
            "{start},\"prev\":{},\"hash\":\"\"}}",
            before["hash"]
        ));
    }
    write_lines(&path, &all);
    assert_eq!(problems(folder.path(), &[]), []);
    assert_eq!(
        problems(folder.path(), &receipts[5..6]),
        [TrailProblem::Replaced]
    );
    let report = verify(folder.path(), &receipts[..5]).unwrap();
    let statuses: Vec<_> = report.receipts.iter().map(|check| check.status).collect();
    assert_eq!(statuses[..2], [ReceiptStatus::Present; 2]);
    assert_eq!(statuses[2..], [ReceiptStatus::Replaced; 3]);
}

#[test]
fn a_removed_chain_and_a_removed_file() {
    let folder = tempfile::tempdir().unwrap();
    let first = written(folder.path(), 3);
    let trail = open(folder.path());
    let second = append(&trail, 3);
    trail.rotate().unwrap();
    append(&trail, 3);
    trail.rotate().unwrap();
    append(&trail, 3);
    drop(trail);
    check_whole(folder.path(), &second);

    let middle = segment(folder.path(), &second[0], 2);
    let kept = fs::read(&middle).unwrap();
    fs::remove_file(&middle).unwrap();
    assert_eq!(problems(folder.path(), &second), [TrailProblem::Deleted]);
    fs::write(&middle, kept).unwrap();
    check_whole(folder.path(), &second);

    fs::remove_dir_all(folder.path().join(first[0].chain.as_str())).unwrap();
    assert_eq!(problems(folder.path(), &second), [TrailProblem::Missing]);
    let report = verify(folder.path(), &first).unwrap();
    assert_eq!(report.findings_count, 1, "however many name it");
    assert!(
        report
            .receipts
            .iter()
            .all(|check| check.status == ReceiptStatus::Missing)
    );
}

#[test]
fn an_emptied_chain() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = written(folder.path(), 3);
    fs::write(segment(folder.path(), &receipts[0], 1), "").unwrap();
    assert_eq!(problems(folder.path(), &[]), [TrailProblem::Deleted]);
}

#[test]
fn a_link_and_a_stray_file_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = written(folder.path(), 3);
    let path = segment(folder.path(), &receipts[0], 1);
    let elsewhere = folder.path().join("notes.txt");
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let report = verify(folder.path(), &receipts).unwrap();
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.what == TrailProblem::Cut),
        "{report}"
    );
    assert!(
        report
            .warnings
            .iter()
            .any(|warning| warning.detail.contains("notes.txt")),
        "{report}"
    );
}

#[test]
fn a_torn_tail_is_a_warning_until_it_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = written(folder.path(), 3);
    let path = segment(folder.path(), &receipts[0], 1);
    let whole = fs::read(&path).unwrap();
    let torn = [&whole[..], b"{\"seq\":6,\"time\":\"2026-"].concat();
    fs::write(&path, &torn).unwrap();
    let report = check_whole(folder.path(), &receipts);
    assert_eq!(report.warnings_count, 1, "{report}");

    let trail = open(folder.path());
    assert_eq!(fs::read(&path).unwrap(), whole);
    assert_eq!(
        fs::read(path.with_extension("torn")).unwrap(),
        &torn[whole.len()..]
    );
    let opening: serde_json::Value =
        serde_json::from_str(&lines(&segment(folder.path(), &trail.head(), 1))[0]).unwrap();
    assert_eq!(
        opening["repaired"][0]["torn_bytes"],
        torn.len() - whole.len()
    );
    assert_eq!(opening["heads"][0]["seq"], 5);
    assert_eq!(check_whole(folder.path(), &receipts).warnings_count, 0);
}

/// The process was killed after the file of the next segment was made, and before anything was in it.
#[test]
fn a_torn_tail_before_an_empty_segment_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = written(folder.path(), 3);
    let path = segment(folder.path(), &receipts[0], 1);
    fs::write(&path, [&fs::read(&path).unwrap()[..], b"{\"seq\""].concat()).unwrap();
    fs::write(segment(folder.path(), &receipts[0], 2), "").unwrap();
    drop(open(folder.path()));
    assert_eq!(check_whole(folder.path(), &receipts).warnings_count, 0);
}

#[test]
fn a_live_chain_is_not_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let receipts = append(&first, 3);
    let path = segment(folder.path(), &receipts[0], 1);
    let torn = [&fs::read(&path).unwrap()[..], b"{\"seq\""].concat();
    fs::write(&path, &torn).unwrap();
    let _second = open(folder.path());
    assert_eq!(fs::read(&path).unwrap(), torn);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Any single byte may be changed to any other.
    #[test]
    fn any_changed_byte_is_found(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let folder = tempfile::tempdir().unwrap();
        let receipts = written(folder.path(), 3);
        let path = segment(folder.path(), &receipts[0], 1);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        fs::write(&path, &bytes).unwrap();
        let report = verify(folder.path(), &receipts).unwrap();
        // The last newline is the tail: without it the end of the chain is torn, and no receipt was given for it.
        let tail = at == bytes.len() - 1;
        prop_assert!(if tail { report.warnings_count > 0 } else { !report.is_ok() }, "{report}");
    }

    /// Files are hostile: nothing panics, and no rubbish is a whole chain.
    #[test]
    fn rubbish_is_read_to_its_end(bytes in prop::collection::vec(any::<u8>(), 1..4096), keep in 0_usize..5) {
        let folder = tempfile::tempdir().unwrap();
        let receipts = written(folder.path(), 3);
        let path = segment(folder.path(), &receipts[0], 1);
        let mut text: Vec<u8> = lines(&path)[..keep].iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
        text.extend(&bytes);
        fs::write(&path, text).unwrap();
        let report = verify(folder.path(), &receipts).unwrap();
        let lost = keep < 4 || bytes.contains(&b'\n');
        prop_assert!(!lost || !report.is_ok(), "{report}");
        drop(open(folder.path()));
    }
}
