//! A contract that was kept is the contract that was published, to the byte.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};
use weir_contracts::{CollectionShape, CompiledContract, ContractVersion, compile, form};

use crate::compile::compile_case;

#[test]
fn every_case_comes_back_as_it_was() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).expect("the folder of cases") {
        let case = entry.expect("an entry").path();
        if let Ok(contract) = compile_case(&case) {
            check(&contract);
            seen += 1;
        }
    }
    assert!(seen >= 3, "cases that compile are there");
}

/// A derived reader easily loses these: a default of null, and numbers in their one form.
#[test]
fn nothing_is_lost() {
    let contract =
        desk(json!({ "name": "note", "type": "text", "nullable": true, "default": null }));
    assert_eq!(
        contract.tools[0]
            .collection()
            .expect("bound")
            .binding
            .inputs[0]
            .default,
        Some(Value::Null)
    );
    check(&contract);
    let fraction = json!({ "name": "amount", "type": "number", "min": 0.1, "max": 5.75, "step": 0.30000000000000004 });
    check(&desk(fraction));
}

#[test]
fn the_version_is_kept() {
    let mut contract = desk(json!({ "name": "note", "type": "text" }));
    contract.version = ContractVersion {
        major: 4,
        minor: 0,
        patch: 17,
    };
    check(&contract);
    assert_eq!(contract.to_artifact()["version"], "4.0.17");
    for text in [
        "",
        "1",
        "1.0",
        "1.0.0.0",
        "01.0.0",
        "+1.0.0",
        "1.0.0 ",
        "1.0.99999999999",
        "v1.0.0",
    ] {
        assert!(text.parse::<ContractVersion>().is_err(), "{text:?}");
    }
}

#[test]
fn what_is_not_ours_is_refused_with_its_place() {
    let cases: &[(&str, Value, &str)] = &[
        ("/rest", json!(1), "unknown field `rest`"),
        (
            "/tools/0/colour",
            json!("red"),
            "unknown field `colour`, expected one of",
        ),
        ("/tools/0/colour", json!("red"), "at /tools/0/colour"),
        ("/tools/0/limits/burst", json!(1), "unknown field `burst`"),
        (
            "/tools/0/binding/inputs/0/to",
            json!({ "table": "x" }),
            "unknown variant `table`",
        ),
        (
            "/tools/0/binding/collection",
            json!("elsewhere"),
            "which is not there",
        ),
        (
            "/tools/0/binding/operation",
            json!("drop_all"),
            "which is not there",
        ),
        (
            "/tools/0/binding/bound",
            json!([{ "name": "id", "to": { "guard": { "column": "id", "comparison": "equals" } }, "source": "tenant" }]),
            "which the source cannot",
        ),
        (
            "/tools/0/input_schema",
            json!({ "type": "strin" }),
            "its input schema",
        ),
        ("/tools/0/output_schema", json!(7), "its output schema"),
        ("/tools/0/name", json!("a b"), "the tool name"),
        ("/version", json!("one"), "is not a version"),
        ("/name", json!("Desk"), "the contract name"),
        (
            "/collections/0/published",
            json!(["secret"]),
            "'secret', which is not there",
        ),
        (
            "/collections/0/shape/key",
            json!(["secret"]),
            "'secret', which is not there",
        ),
    ];
    let artifact = desk(json!({ "name": "note", "type": "text" })).to_artifact();
    for (place, value, expected) in cases {
        let mut changed = artifact.clone();
        let (parent, key) = place.rsplit_once('/').expect("a pointer");
        changed.pointer_mut(parent).expect("a place")[key.to_owned()] = value.clone();
        let error = CompiledContract::from_artifact(&changed).expect_err(place);
        assert!(error.contains(expected), "{place}: {error}");
    }
    for name in ["tools", "collections"] {
        let mut twice = artifact.clone();
        let first = twice[name][0].clone();
        twice[name].as_array_mut().expect("a list").push(first);
        assert!(
            CompiledContract::from_artifact(&twice)
                .expect_err(name)
                .ends_with("it is there twice")
        );
    }
    assert!(CompiledContract::from_artifact(&json!([])).is_err());
}

fn check(contract: &CompiledContract) {
    let text = contract.to_artifact().to_string();
    let kept: Value = serde_json::from_str(&text).expect("JSON");
    let back = CompiledContract::from_artifact(&kept).expect("an artifact");
    assert_eq!(&back, contract);
    assert_eq!(back.to_artifact().to_string(), text);
    assert_eq!(
        format!("{back:?}"),
        format!("{contract:?}"),
        "the order of keys too"
    );
}

fn desk(field: Value) -> CompiledContract {
    let shape = json!({ "name": "notes", "key": ["id"], "fields": [
        { "key": "id", "type": "integer", "generated": true },
        { "key": "note", "type": "string", "nullable": true },
        { "key": "amount", "type": "number" },
    ]});
    let file = json!({
        "contract": "desk",
        "collections": { "notes": { "adapter": "sql", "write": true, "shape": { "amount": { "nullable": true } } } },
        "tools": [{ "tool": "add", "verb": "create", "collection": "notes", "fields": [field] }],
    });
    let source = form::read("-", &file.to_string()).expect("a contract");
    let shapes = BTreeMap::from([(
        "notes".to_owned(),
        CollectionShape::read(&shape.to_string()).expect("a shape"),
    )]);
    compile(&source, &shapes).expect("compiles")
}

/// The number comes first, so that an older reader names it, and not whatever key is new.
#[test]
fn an_artifact_of_a_later_format_is_refused_by_its_number() {
    let artifact = desk(json!({ "name": "note", "type": "text" })).to_artifact();
    assert_eq!(
        artifact.get("format"),
        None,
        "the first format has no number: its bytes stay as they were"
    );
    let with = |format: u32| {
        format!(
            "{{\"format\":{format},\"news\":1,{}",
            &artifact.to_string()[1..]
        )
    };
    for refused in [0, 13, 99] {
        let error =
            CompiledContract::from_own_artifact(&with(refused)).expect_err("a later format");
        assert!(
            error.contains(&format!(
                "it is of format {refused}, and this program reads formats up to 12"
            )),
            "{error}"
        );
    }
    let first = with(1).replace("\"news\":1,", "");
    assert_eq!(
        CompiledContract::from_own_artifact(&first)
            .expect("the first")
            .to_artifact(),
        artifact
    );
}
