//! Tests what an update empties, and what it leaves alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, FileProblem, compile,
    diff::{ChangeSeverity, ContractDiff, diff},
    form,
};

/// Returns a desk with one update of these fields, beside the key `id`.
fn desk(fields: &[Value]) -> Result<CompiledContract, Vec<FileProblem>> {
    let key = json!({ "name": "id", "type": "number", "required": true });
    let fields: Vec<&Value> = std::iter::once(&key).chain(fields).collect();
    compile_tool(&json!({
        "tool": "change", "verb": "update", "collection": "tickets", "fields": fields,
    }))
}

/// Returns a desk with a list that has a condition.
fn desk_with_list(field: &Value) -> CompiledContract {
    let compiled = compile_tool(&json!({
        "tool": "list_tickets", "verb": "list", "collection": "tickets", "fields": [field],
    }));
    compiled.expect("compiles")
}

fn compile_tool(tool: &Value) -> Result<CompiledContract, Vec<FileProblem>> {
    let source = json!({
        "contract": "desk",
        "collections": { "tickets": { "adapter": "sql", "settings": {}, "write": true } },
        "tools": [tool],
    });
    let shape = json!({ "name": "tickets", "key": ["id"], "fields": [
        { "key": "id", "type": "integer" },
        { "key": "subject", "type": "string" },
        { "key": "note", "type": "string", "nullable": true },
        { "key": "due", "type": "date", "nullable": true },
        { "key": "clear", "type": "boolean", "nullable": true },
    ] });
    let shape = CollectionShape::read(&shape.to_string()).expect("a shape");
    compile(
        &form::read("-", &source.to_string()).expect("a form"),
        &BTreeMap::from([("tickets".to_owned(), shape)]),
    )
}

/// Returns the rules by which a contract differs from an earlier one, each with its class.
fn changes(change: &ContractDiff) -> Vec<(&str, ChangeSeverity)> {
    let items = change.items.iter();
    items.map(|item| (item.rule.as_str(), item.class)).collect()
}

fn subject() -> Value {
    json!({ "name": "subject", "type": "text", "min_length": 1 })
}

fn note() -> Value {
    json!({ "name": "note", "type": "text", "nullable": true })
}

fn due() -> Value {
    json!({ "name": "by", "type": "date", "column": "due", "nullable": true, "help": "The last day." })
}

/// Returns what the source is asked to write, or the refusal.
fn written(contract: &CompiledContract, arguments: Value) -> Result<Value, Value> {
    let tool = &contract.tools[0];
    let validator = tool.argument_validator().expect("a schema");
    let answer = |content: String| serde_json::from_str::<Value>(&content).expect("JSON");
    let taken = validator.validate(&arguments.to_string());
    let mut taken = taken.map_err(|refused| answer(refused.structured_content().to_json()))?;
    tool.collection()
        .expect("bound")
        .binding
        .inject_defaults(&mut taken);
    Ok(Value::Object(taken))
}

#[test]
fn the_fields_that_may_be_null_are_named_to_be_emptied() {
    let contract = desk(&[subject(), note(), due()]).expect("compiles");
    let properties = &contract.tools[0].input_schema.value()["properties"];
    assert_eq!(properties["note"], json!({ "type": "string" }));
    assert_eq!(
        properties["by"],
        json!({ "type": "string", "format": "date", "description": "The last day." })
    );
    let clear = &properties["clear"];
    assert_eq!(
        clear["items"],
        json!({ "type": "string", "enum": ["note", "by"] })
    );
    assert!(
        clear["description"]
            .as_str()
            .is_some_and(|text| text.contains("empty")),
        "{clear}"
    );
    assert_eq!(
        properties
            .as_object()
            .and_then(|all| all.keys().next_back())
            .map(String::as_str),
        Some("clear")
    );
    // The contract is read back from what a state keeps.
    assert_eq!(
        CompiledContract::from_artifact(&contract.to_artifact()).as_ref(),
        Ok(&contract)
    );
}

#[test]
fn an_update_that_can_empty_nothing_has_no_such_argument() {
    let contract = desk(&[subject()]).expect("compiles");
    assert_eq!(
        contract.tools[0].input_schema.value()["properties"].get("clear"),
        None
    );
    // In a required field null can only be meant.
    let required = json!({ "name": "note", "type": "text", "nullable": true, "required": true });
    let contract = desk(&[required]).expect("compiles");
    let properties = &contract.tools[0].input_schema.value()["properties"];
    assert_eq!(
        properties["note"],
        json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] })
    );
    assert_eq!(properties.get("clear"), None);
    assert_eq!(
        written(&contract, json!({ "id": 1, "note": null })),
        Ok(json!({ "id": 1, "note": null }))
    );
}

#[test]
fn null_empties_nothing_and_a_name_does() {
    let contract = desk(&[subject(), note(), due()]).expect("compiles");
    for (sent, asked) in [
        (
            json!({ "id": 1, "subject": "a", "note": null, "by": null, "clear": null }),
            json!({ "id": 1, "subject": "a" }),
        ),
        (
            json!({ "id": 1, "subject": "a", "clear": [] }),
            json!({ "id": 1, "subject": "a" }),
        ),
        (
            json!({ "id": 1, "clear": ["note"] }),
            json!({ "id": 1, "note": null }),
        ),
        (
            json!({ "id": 1, "note": null, "clear": ["by", "note"] }),
            json!({ "id": 1, "by": null, "note": null }),
        ),
        (
            json!({ "id": 1, "note": "b", "clear": ["by", "by"] }),
            json!({ "id": 1, "note": "b", "by": null }),
        ),
    ] {
        assert_eq!(written(&contract, sent.clone()), Ok(asked), "{sent}");
    }
    for sent in [
        json!({ "id": 1, "note": null }),
        json!({ "id": 1, "clear": [] }),
        json!({ "id": 1 }),
    ] {
        let refused = written(&contract, sent.clone()).expect_err("nothing to change");
        assert_eq!(
            refused["errors"][0]["path"], "/subject",
            "{sent}: {refused}"
        );
        assert_eq!(refused["reason"], "too_few_properties", "{sent}: {refused}");
    }
}

#[test]
fn what_is_set_and_named_is_refused_and_told_how_to_repair() {
    let contract = desk(&[subject(), note(), due()]).expect("compiles");
    let refused = written(
        &contract,
        json!({ "id": 1, "note": "b", "clear": ["by", "note"] }),
    )
    .expect_err("both");
    let expected = json!([{
        "field": "clear", "path": "/clear", "reason": "set_and_cleared",
        "constraint": { "items": { "not": { "enum": ["note"] } } }, "example": ["by"],
    }]);
    assert_eq!(refused["errors"], expected);
    // The error comes together with what else is wrong; the value stays.
    let both = written(
        &contract,
        json!({ "id": 1, "subject": "", "note": "b", "clear": ["note"] }),
    )
    .expect_err("both");
    let paths: Vec<&str> = both["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .filter_map(|e| e["path"].as_str())
        .collect();
    assert_eq!(paths, ["/subject", "/clear"]);
    assert_eq!(both["errors"][1]["example"], json!([]));
    // A list that cannot be read is repaired to one that empties nothing.
    let text = written(
        &contract,
        json!({ "id": 1, "subject": "a", "clear": "note" }),
    )
    .expect_err("no list");
    assert_eq!(text["errors"][0]["example"], json!([]));
}

#[test]
fn a_field_of_that_name_is_refused_where_the_update_has_its_own() {
    let clear = json!({ "name": "clear", "type": "checkbox" });
    let problems = desk(&[note(), clear.clone()]).expect_err("two of one name");
    let answer: Vec<_> = problems
        .iter()
        .map(|problem| (problem.place.as_str(), problem.message.as_str()))
        .collect();
    assert_eq!(
        answer,
        [(
            "/tools/0/fields/2/name",
            "an update with a nullable field has its own 'clear'"
        )]
    );
    let alone = desk(&[subject(), clear]).expect("compiles");
    assert_eq!(
        written(&alone, json!({ "id": 1, "clear": true })),
        Ok(json!({ "id": 1, "clear": true }))
    );
    let renamed = json!({ "name": "is_clear", "type": "checkbox", "column": "clear" });
    desk(&[note(), renamed]).expect("compiles");
}

/// An older version was published with null for emptying: calls that still send it would do nothing.
#[test]
fn null_that_emptied_is_a_breaking_change_and_clear_itself_is_none() {
    let new = desk(&[subject(), note()]).expect("compiles");
    let mut old = new.to_artifact();
    let schema = &mut old["tools"][0]["input_schema"]["properties"];
    schema["note"] = json!({ "type": ["string", "null"] });
    schema
        .as_object_mut()
        .expect("properties")
        .shift_remove("clear");
    old["tools"][0]["binding"]["inputs"]
        .as_array_mut()
        .expect("inputs")
        .pop();
    let old = CompiledContract::from_artifact(&old).expect("an artifact of before");
    assert_eq!(
        written(&old, json!({ "id": 1, "note": null })),
        Ok(json!({ "id": 1, "note": null }))
    );
    let change = diff(&old, &new);
    assert_eq!(
        changes(&change),
        [
            ("input-type-narrowed", ChangeSeverity::Breaking),
            ("input-property-added", ChangeSeverity::Compatible)
        ]
    );
    assert_eq!(
        change.items[0]
            .witness
            .as_ref()
            .map(|witness| &witness["note"]),
        Some(&Value::Null)
    );
    let without = desk(&[subject(), json!({ "name": "note", "type": "text" })]).expect("compiles");
    assert_eq!(diff(&without, &new).class, ChangeSeverity::Compatible);
}

/// Null for a condition that was not set asks for nothing. Where it can only be meant, it stays.
#[test]
fn a_condition_that_may_be_left_out_takes_no_null() {
    let property = |field: Value| {
        let schema = desk_with_list(&field).to_artifact()["tools"][0]["input_schema"].clone();
        schema["properties"]["note"].clone()
    };
    let text = json!({ "type": "string" });
    assert_eq!(property(note()), text);
    let mut field = note();
    field["required"] = true.into();
    assert_eq!(
        property(field),
        json!({ "anyOf": [text, { "type": "null" }] })
    );
    let mut field = note();
    field["default"] = Value::Null;
    assert_eq!(
        property(field),
        json!({ "anyOf": [text, { "type": "null" }], "default": null })
    );

    // What was published with null keeps it, and a person agrees to the next version.
    let new = desk_with_list(&note());
    let mut old = new.to_artifact();
    old["tools"][0]["input_schema"]["properties"]["note"] = json!({ "type": ["string", "null"] });
    let old = CompiledContract::from_artifact(&old).expect("an artifact of before");
    assert_eq!(
        changes(&diff(&old, &new)),
        [("input-type-narrowed", ChangeSeverity::Breaking)]
    );
}
