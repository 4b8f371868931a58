//! Lock files: written in stable bytes, read strictly.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, ContractVersion, FileProblem, compile, form,
    lock::{ContractLock, LockApproval},
};

#[test]
fn what_was_written_is_read() {
    let lock = lock();
    let text = lock.to_text();
    assert!(
        text.starts_with("{\n  \"lock\": 1,\n  \"contract\": {\n    \"name\": \"desk\",\n")
            && text.ends_with("}\n")
    );
    let back = ContractLock::read("desk.lock.json", &text).expect("a lock");
    assert_eq!(back, lock);
    assert_eq!(back.to_text(), text);
    assert_eq!(
        back.contract.to_artifact().to_string(),
        lock.contract.to_artifact().to_string()
    );
}

#[test]
fn what_is_not_ours_is_refused_at_its_place() {
    let good: Value = serde_json::from_str(&lock().to_text()).expect("JSON");
    for (place, value, expected_place, expected) in [
        (
            "/lock",
            json!(2),
            "/lock",
            "is of format 2, and only 1 can be read",
        ),
        ("/lock", json!("1"), "/lock", "is of format \"1\""),
        ("/extra", json!(1), "/extra", "unknown field `extra`"),
        (
            "/contract/extra",
            json!(1),
            "/contract/extra",
            "unknown field `extra`",
        ),
        (
            "/contract/tools/0/limits/burst",
            json!(1),
            "/contract/tools/0/limits/burst",
            "unknown field `burst`",
        ),
        (
            "/contract/version",
            json!("1.0"),
            "/contract/version",
            "is not a version",
        ),
        (
            "/contract/name",
            json!(""),
            "/contract",
            "the contract name '' is not",
        ),
        (
            "/contract/tools/0/binding/collection",
            json!("x"),
            "/contract",
            "bound to the collection 'x', which is not there",
        ),
        (
            "/approvals/0/fingerprint",
            json!("ABC"),
            "/approvals/0/fingerprint",
            "64 hexadecimal digits",
        ),
        (
            "/approvals/0/to",
            json!("0.9.0"),
            "/approvals/0/to",
            "lower version",
        ),
        (
            "/approvals/0/by",
            json!("a\u{202e}b"),
            "/approvals/0/by",
            "invisible characters",
        ),
        (
            "/approvals/0/at",
            json!("yesterday"),
            "/approvals/0/at",
            "not a time in UTC",
        ),
        (
            "/approvals/0/why",
            json!("because"),
            "/approvals/0/why",
            "unknown field `why`",
        ),
        ("/approvals", json!({}), "/approvals", "expected a sequence"),
    ] {
        let mut changed = good.clone();
        let (parent, key) = place.rsplit_once('/').expect("a pointer");
        changed.pointer_mut(parent).expect("a place")[key.to_owned()] = value;
        let problems = refused(&changed.to_string());
        assert_eq!(problems[0].place, expected_place, "{problems:?}");
        assert!(
            problems[0].message.contains(expected),
            "{place}: {problems:?}"
        );
        assert_eq!(problems[0].file, "desk.lock.json");
    }
}

#[test]
fn hostile_texts_are_refused() {
    let text = lock().to_text();
    let twice = text.replacen("\"lock\": 1,", "\"lock\": 1, \"lock\": 1,", 1);
    assert!(refused(&twice)[0].message.contains("twice"));
    for text in [
        "",
        "[]",
        "7",
        "{}",
        "{\"lock\":1}",
        &"[".repeat(100_000),
        &text[..text.len() / 2],
    ] {
        refused(text);
    }
    let huge = format!(
        "{{\"lock\":1,\"x\":\"{}\"}}",
        "x".repeat(weir_contracts::lock::FILE_BYTES_MAX)
    );
    assert!(refused(&huge)[0].message.contains("larger than 64 MiB"));
}

/// Records inside records, as deep as a contract file may have them, fit into the lock.
#[test]
fn the_deepest_contract_can_be_locked() {
    let nested = |depth: usize| {
        let mut field = json!({ "name": "a", "type": "dropdown", "choices": ["x"] });
        for _ in 0..depth {
            field = json!({ "name": "a", "type": "record", "fields": [field] });
        }
        contract(&field, json!({ "key": "a", "type": "json" }))
    };
    let deepest = (1..64).rev().find_map(nested).expect("some depth compiles");
    let lock = ContractLock {
        contract: deepest,
        approvals: Vec::new(),
    };
    assert_eq!(
        ContractLock::read("-", &lock.to_text()).expect("a lock"),
        lock
    );
}

fn refused(text: &str) -> Vec<FileProblem> {
    ContractLock::read("desk.lock.json", text).expect_err("refused")
}

fn lock() -> ContractLock {
    let field = json!({ "name": "note", "type": "text", "nullable": true, "default": null });
    let mut contract = contract(
        &field,
        json!({ "key": "note", "type": "string", "nullable": true }),
    )
    .expect("compiles");
    contract.version = ContractVersion {
        major: 2,
        minor: 1,
        patch: 0,
    };
    let approval = LockApproval {
        fingerprint: "0123456789abcdef".repeat(4),
        from: ContractVersion::FIRST,
        to: contract.version,
        by: "operator ada".to_owned(),
        at: "2026-01-31T12:00:00Z".to_owned(),
    };
    ContractLock {
        contract,
        approvals: vec![approval],
    }
}

fn contract(field: &Value, column: Value) -> Option<CompiledContract> {
    let shape = json!({ "name": "notes", "key": ["id"], "fields": [
        { "key": "id", "type": "integer", "generated": true }, column ] });
    let file = json!({
        "contract": "desk",
        "collections": { "notes": { "adapter": "sql", "write": true } },
        "tools": [{ "tool": "add", "verb": "create", "collection": "notes", "fields": [field] }],
    });
    let source = form::read("-", &file.to_string()).ok()?;
    let shapes = BTreeMap::from([(
        "notes".to_owned(),
        CollectionShape::read(&shape.to_string()).expect("a shape"),
    )]);
    compile(&source, &shapes).ok()
}
