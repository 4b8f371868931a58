//! The proof of one record: made from a trail, checked without it.

use std::fs;

use weir_audit::{ProofEnd, ProofFault, ProofSubject, RecordProof, prove};

use crate::{
    lines, segment,
    steps::{append, open},
    tamper::seal_again,
    write_lines,
};

fn subject(text: &str) -> ProofSubject {
    let Ok(subject) = text.parse();
    subject
}

#[test]
fn a_proof_reaches_what_knows_the_record_and_shows_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let trail = open(folder.path());
    let receipts = append(&trail, 6);
    trail.rotate().unwrap();
    let later = append(&trail, 3);
    let numbered = subject(&format!("{}:{}", receipts[2].chain, receipts[2].seq));

    let proof = prove(folder.path(), &subject("c_0000000000000002"), None);
    let proof = proof.unwrap().expect("the last call of this id");
    assert_eq!(
        (&proof.receipt, proof.end_known_by),
        (&later[2], ProofEnd::Head)
    );
    let proof = prove(folder.path(), &numbered, None).unwrap().unwrap();
    assert_eq!((&proof.receipt, &proof.end), (&receipts[2], &later[2]));
    assert_eq!(proof.lines.len() as u64, later[2].seq - receipts[2].seq + 1);

    let text = serde_json::to_string(&proof).unwrap();
    let proof = RecordProof::parse(&text).expect("it reads what it wrote");
    let report = proof.check(&[]).unwrap();
    assert!(
        !report.proven && !report.is_ok(),
        "nothing kept elsewhere was given: {report}"
    );
    assert_eq!(report.record["call_id"], "c_0000000000000002");
    let report = proof.check(&later[..1]).unwrap();
    assert!(report.proven && report.is_ok(), "{report}");
    // A receipt of what was before proves nothing about the record.
    let report = proof.check(&receipts[..1]).unwrap();
    assert!(!report.proven && !report.is_ok(), "{report}");

    let nearer = prove(folder.path(), &numbered, Some(&receipts[3]))
        .unwrap()
        .unwrap();
    assert_eq!(
        (nearer.lines.len(), nearer.end_known_by),
        (2, ProofEnd::Receipt)
    );
    let alone = prove(folder.path(), &numbered, Some(&receipts[2]))
        .unwrap()
        .unwrap();
    assert_eq!(alone.lines.len(), 1);
    assert!(alone.check(&receipts[2..3]).unwrap().proven);
    for (wanted, to) in [
        (numbered.clone(), Some(&receipts[0])),
        (subject(&format!("{}:999", receipts[0].chain)), None),
        (subject("c_none"), None),
    ] {
        assert_eq!(
            prove(folder.path(), &wanted, to).unwrap(),
            None,
            "{wanted:?}"
        );
    }

    let changed = |change: &dyn Fn(&mut RecordProof)| {
        let mut other = proof.clone();
        change(&mut other);
        other.check(&later[..1]).unwrap_err()
    };
    let fault = changed(&|proof| proof.lines[1] = proof.lines[1].replace("north", "south"));
    assert_eq!(fault, ProofFault::Changed(2));
    assert_eq!(
        changed(&|proof| drop(proof.lines.remove(1))),
        ProofFault::Unlinked(2)
    );
    assert_eq!(
        changed(&|proof| drop(proof.lines.remove(0))),
        ProofFault::OtherRecord
    );
    assert_eq!(
        changed(&|proof| drop(proof.lines.pop())),
        ProofFault::OtherEnd
    );
    assert_eq!(
        changed(&|proof| proof.lines.clear()),
        ProofFault::NoRecord(1)
    );
    assert_eq!(
        changed(&|proof| proof.lines[0].clear()),
        ProofFault::NoRecord(1)
    );
    let other_format = text.replacen("\"format\":1", "\"format\":2", 1);
    assert_eq!(
        RecordProof::parse(&other_format),
        Err(ProofFault::Format(2))
    );
    assert!(matches!(RecordProof::parse("{}"), Err(ProofFault::Form(_))));
    let steering = text.replacen("\"format\"", "\"\\u001b[2J\\u202e\"", 1);
    let fault = RecordProof::parse(&steering).unwrap_err().to_string();
    assert!(
        fault.contains("[2J") && !fault.contains(['\u{1b}', '\u{202e}']),
        "{fault:?}"
    );
}

#[test]
fn a_proof_ends_at_the_record_that_another_chain_names() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let receipts = append(&first, 3);
    let second = open(folder.path());
    append(&first, 3);
    let wanted = subject(&format!("{}:{}", receipts[0].chain, receipts[0].seq));
    let proof = prove(folder.path(), &wanted, None).unwrap().unwrap();
    assert_eq!(
        (&proof.end, proof.end_known_by),
        (&receipts[2], ProofEnd::Chain)
    );
    drop((first, second));
    let chain = folder.path().join(receipts[0].chain.as_str());
    fs::remove_dir_all(chain).unwrap();
    assert_eq!(prove(folder.path(), &wanted, None).unwrap(), None);
    assert!(
        proof.check(&receipts[2..]).unwrap().proven,
        "without the trail"
    );
}

/// A chain that was rewritten from a record on has the numbers that others name, and not their hashes.
#[test]
fn a_record_of_the_same_number_is_not_the_one_that_another_chain_names() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let receipts = append(&first, 4);
    let _second = open(folder.path());
    let path = segment(folder.path(), &receipts[0], 1);
    let mut all = lines(&path);
    all[4] = seal_again(&all[4].replace("\"ada\"", "\"eve\""));
    write_lines(&path, &all);
    let wanted = subject(&format!("{}:{}", receipts[1].chain, receipts[1].seq));
    let proof = prove(folder.path(), &wanted, None).unwrap().unwrap();
    assert_eq!(
        (proof.end.seq, proof.end_known_by),
        (receipts[3].seq, ProofEnd::Head)
    );
    assert_ne!(proof.end, receipts[3]);
}
