//! Shapes: read strictly, and compared with what a contract was published with.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{CollectionShape, compile, form};

fn shape(fields: Value) -> CollectionShape {
    CollectionShape::read(&json!({ "name": "s", "fields": fields, "key": ["id"] }).to_string())
        .expect("a shape")
}

/// The shape that a plugin's SDK writes is read here, and written again as it was.
#[test]
fn the_shape_of_the_sdk_is_ours() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/shape.json");
    let text = std::fs::read_to_string(path).expect("the shape that both sides know");
    let shape = CollectionShape::read(&text).expect("a shape");
    let written = serde_json::to_value(&shape).expect("plain data");
    assert_eq!(written, serde_json::from_str::<Value>(&text).expect("JSON"));
}

/// Each operation is small, and all of them together are too many.
#[test]
fn columns_of_all_operations_are_counted_together() {
    let read = |operations: usize, columns: usize| {
        let returns: Vec<Value> = (0..columns)
            .map(|column| json!({ "key": format!("c{column}"), "type": "integer" }))
            .collect();
        let operations: Vec<Value> = (0..operations)
            .map(|number| json!({ "name": format!("o{number}"), "effect": "read", "returns": returns }))
            .collect();
        let capabilities = json!({ "operations": operations });
        let shape = json!({ "name": "s", "fields": [], "capabilities": capabilities });
        CollectionShape::read(&shape.to_string())
    };
    assert!(read(2_000, 1).is_ok());
    let why = read(3_000, 1).expect_err("too many");
    assert_eq!(
        why,
        "it has more than 2000 columns with those that its first 2001 operations return, of 3000: leave operations out"
    );
    let why = read(1, 2_001).expect_err("too many");
    assert_eq!(why, "operation 'o0': it has more than 2000 columns");
}

/// A contract with guards must not be served by an adapter that would ignore them.
#[test]
fn a_source_that_lost_its_guards_does_not_satisfy() {
    let shape = |guarded: bool| {
        let text =
            json!({ "name": "s", "fields": [], "capabilities": { "guarded_write": guarded } })
                .to_string();
        CollectionShape::read(&text).expect("a shape")
    };
    assert_eq!(shape(false).satisfied_by(&shape(true)), Ok(()));
    assert_eq!(shape(true).satisfied_by(&shape(true)), Ok(()));
    assert_eq!(
        shape(true)
            .satisfied_by(&shape(false))
            .expect_err("lost")
            .len(),
        1
    );
}

#[test]
fn same_or_narrower_satisfies() {
    let recorded = shape(json!([
        { "key": "id", "type": "integer" },
        { "key": "n", "type": "number", "nullable": true },
        { "key": "s", "type": "string" },
        { "key": "j", "type": "json" },
        { "key": "r", "type": "record", "fields": [{ "key": "x", "type": "integer" }] },
        { "key": "l", "type": "list", "items": { "key": "", "type": "string", "nullable": true } },
    ]));
    let narrower = shape(json!([
        { "key": "l", "type": "list", "items": { "key": "", "type": "date" } },
        { "key": "new", "type": "json" },
        { "key": "r", "type": "record", "fields": [{ "key": "y", "type": "json" }, { "key": "x", "type": "integer" }] },
        { "key": "j", "type": "record", "fields": [{ "key": "x", "type": "integer" }], "nullable": true },
        { "key": "s", "type": "decimal" },
        { "key": "n", "type": "integer" },
        { "key": "id", "type": "integer", "nullable": true },
    ]));
    assert_eq!(recorded.satisfied_by(&recorded), Ok(()));
    assert_eq!(recorded.satisfied_by(&narrower), Ok(()));
    let wider = shape(json!([
        { "key": "id", "type": "decimal" },
        { "key": "n", "type": "string" },
        { "key": "s", "type": "string", "nullable": true },
        { "key": "r", "type": "record", "fields": [{ "key": "x", "type": "number" }] },
        { "key": "l", "type": "list" },
    ]));
    let reasons = recorded.satisfied_by(&wider).expect_err("does not satisfy");
    assert_eq!(
        reasons,
        [
            "column 'id' was integer and is now decimal",
            "column 'n' was number and is now string",
            "column 's' may now be null",
            "column 'j' is gone",
            "column 'r.x' was integer and is now number",
            "the items of column 'l' are no longer typed",
        ]
    );
}

#[test]
fn a_contracts_own_types_are_applied_before_comparing() {
    let described = shape(
        json!([{ "key": "id", "type": "integer" }, { "key": "amount", "type": "number", "nullable": true }]),
    );
    let contract = json!({
        "contract": "c",
        "collections": { "s": { "adapter": "x", "shape": { "amount": { "type": "decimal", "nullable": false } } } },
        "tools": [{ "tool": "t", "verb": "list", "collection": "s", "fields": [] }]
    });
    let source = form::read("-", &contract.to_string()).expect("a contract");
    let compiled = compile(
        &source,
        &BTreeMap::from([("s".to_owned(), described.clone())]),
    )
    .expect("compiles");
    assert_eq!(compiled.collections[0].accepts(&described), Ok(()));
    let lost = shape(json!([{ "key": "id", "type": "integer" }]));
    assert!(compiled.collections[0].accepts(&lost).is_err());
}

#[test]
fn bad_shapes_are_refused() {
    for (text, word) in [
        (r#"{"name":"s"}"#, "fields"),
        (
            r#"{"name":"s","fields":[{"key":"a","type":"text"}]}"#,
            "text",
        ),
        (
            r#"{"name":"s","fields":[{"key":"a","type":"string","typ":1}]}"#,
            "typ",
        ),
        (
            r#"{"name":"s","fields":[{"key":"a","type":"string"},{"key":"a","type":"string"}]}"#,
            "twice",
        ),
        (r#"{"name":"s","fields":[],"key":["a"]}"#, "key"),
        (r#"{"name":"s","name":"t","fields":[]}"#, "twice"),
        (
            r#"{"name":"s","fields":[{"key":"","type":"string"}]}"#,
            "name",
        ),
        ("[", ""),
    ] {
        let error = CollectionShape::read(text).expect_err(text);
        assert!(error.contains(word), "{text}: {error}");
    }
    let many: Vec<Value> = (0..3_000)
        .map(|index| json!({ "key": format!("c{index}"), "type": "string" }))
        .collect();
    assert!(CollectionShape::read(&json!({ "name": "s", "fields": many }).to_string()).is_err());
}

#[test]
fn capabilities_unstated_are_all_and_stated_are_final() {
    let unstated = CollectionShape::read(r#"{"name":"s","fields":[]}"#).expect("a shape");
    assert!(unstated.capabilities.read && unstated.capabilities.orders("x"));
    let stated = CollectionShape::read(
        r#"{"name":"s","fields":[],"capabilities":{"read":true,"write":true}}"#,
    )
    .expect("a shape");
    assert_eq!(stated.capabilities.write, ["create", "update", "delete"]);
    assert!(stated.capabilities.compares("x").is_empty() && !stated.capabilities.orders("x"));
    // A shape that is stored with a version reads back the same.
    for shape in [unstated, stated] {
        let text = serde_json::to_string(&shape).expect("plain data");
        assert_eq!(CollectionShape::read(&text), Ok(shape));
    }
}

#[test]
fn arguments_take_the_forms_of_their_columns() {
    let described = shape(json!([
        { "key": "id", "type": "integer" }, { "key": "amount", "type": "decimal" }, { "key": "at", "type": "datetime" }
    ]));
    let contract = json!({
        "contract": "c",
        "collections": { "s": { "adapter": "x" } },
        "tools": [{ "tool": "t", "verb": "list", "collection": "s", "fields": [
            { "name": "amount", "type": "number", "default": 2.5 },
            { "name": "amounts", "type": "list", "of": { "type": "number" }, "column": "amount", "match": "one-of" },
            { "name": "at", "type": "datetime" },
        ] }]
    });
    let source = form::read("-", &contract.to_string()).expect("a contract");
    let compiled =
        compile(&source, &BTreeMap::from([("s".to_owned(), described)])).expect("compiles");
    let binding = &compiled.tools[0].collection().expect("bound").binding;
    let mut arguments = json!({ "amounts": [1, 1.25, 1e-7], "at": "2024-01-01T00:30:00+01:00" })
        .as_object()
        .cloned()
        .expect("an object");
    binding.inject_defaults(&mut arguments);
    assert_eq!(
        Value::Object(arguments),
        json!({ "amounts": ["1", "1.25", "0.0000001"], "at": "2023-12-31T23:30:00Z", "amount": "2.5" })
    );
}
