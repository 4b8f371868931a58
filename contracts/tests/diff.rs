//! The gate's judgement: every row of the rules on both sides, and what others have let pass.

use serde_json::{Value, json};
use weir_contracts::{
    diff::{
        ChangeSeverity, ContractChange, ContractDiff, SchemaSide, diff_documents, diff_schemas,
    },
    validate::ArgumentValidator,
};

/// A registry's checker let these pass; it must never happen here.
#[test]
fn known_failures_of_others() {
    let tool = |name: &str, property: Value, output: Option<Value>| {
        let schema =
            json!({ "type": "object", "properties": { "a": property }, "required": ["a"] });
        let mut tool = json!({ "name": name, "description": "A tool.", "inputSchema": schema });
        if let Some(output) = output {
            tool["outputSchema"] = output;
        }
        json!({ "tools": [tool] })
    };
    let text = || json!({ "type": "string" });
    let answer = || {
        Some(
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] }),
        )
    };
    let cases = [
        (
            tool("t", text(), None),
            tool("t", json!({ "type": "integer" }), None),
            "input-type-changed",
        ),
        (
            tool("t", json!({ "enum": ["open", "pending", "closed"] }), None),
            tool("t", json!({ "enum": ["open", "closed"] }), None),
            "input-enum-value-removed",
        ),
        (
            tool("t", text(), answer()),
            tool("t", text(), None),
            "output-schema-removed",
        ),
        (
            tool("t", text(), None),
            json!({ "tools": [] }),
            "tool-removed",
        ),
        (
            tool("create_ticket", text(), None),
            tool("create_case_ticket", text(), None),
            "tool-renamed",
        ),
    ];
    for (old, new, rule) in cases {
        let diff = diff_documents(&old, &new).expect("documents");
        assert!(
            diff.breaking && diff.class == ChangeSeverity::Breaking,
            "{rule}: {diff:?}"
        );
        assert_eq!(rules(&diff), [rule]);
    }
}

/// The other lists of documents are compared too, where both have them.
#[test]
fn prompts_and_resources_of_documents_are_compared() {
    let prompt = |required: bool| {
        let arguments = json!([{ "name": "goal", "required": required }]);
        json!([{ "name": "plan", "description": "Plans it.", "arguments": arguments }])
    };
    let file = json!([{ "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 1 }]);
    let whole = json!({ "tools": [], "prompts": prompt(false), "resources": file });
    let with = |list: &str, items: Value| {
        let mut document = whole.clone();
        document[list] = items;
        document
    };
    let cases = [
        (with("prompts", json!([])), "item-removed"),
        (with("prompts", prompt(true)), "prompt-argument-required"),
        (
            with(
                "resources",
                json!([{ "uri": "file:///a", "name": "b", "mimeType": "text/plain" }]),
            ),
            "item-text-changed",
        ),
        (
            with(
                "resources",
                json!([{ "uri": "file:///a", "name": "a", "mimeType": "text/csv" }]),
            ),
            "item-changed",
        ),
    ];
    for (new, rule) in cases {
        let found = diff_documents(&whole, &new).expect("documents");
        assert_eq!(rules(&found), [rule]);
    }
    // A list of tools alone says nothing about the others; a document that names its contract has all that there is.
    let tools = diff_documents(&whole, &json!({ "tools": [] })).expect("documents");
    assert_eq!(tools.class, ChangeSeverity::Identical);
    let mut named = with("contract", "c".into());
    let none = json!({ "contract": "c", "tools": [] });
    let gone = diff_documents(&named, &none).expect("documents");
    assert_eq!(rules(&gone), ["item-removed"; 2]);
    named["tools"] = json!([{ "name": "t", "inputSchema": {}, "_meta": { "a": 1 } }]);
    let mut other = named.clone();
    other["tools"][0]["_meta"]["a"] = 2.into();
    let changed = diff_documents(&named, &other).expect("documents");
    assert_eq!(rules(&changed), ["tool-meta-changed"]);
}

/// Of several new names each has an example of its own.
#[test]
fn a_witness_of_a_new_name_has_that_name() {
    let named = |first: &str, last: &str| {
        let text = json!({ "type": "string" });
        object(json!({
            "type": "object", "properties": { first: text, last: text }, "additionalProperties": false,
        }))
    };
    let listed = |values: [&str; 2]| {
        object(json!({ "anyOf": [{ "type": "string", "enum": values }, { "type": "null" }] }))
    };
    let cases = [
        (
            named("first_name", "last_name"),
            named("firstName", "lastName"),
        ),
        (listed(["opened", "closed"]), listed(["open", "close"])),
    ];
    for (old, new) in cases {
        for side in [SchemaSide::Input, SchemaSide::Output] {
            let diff = diff_schemas(&old, &new, side);
            assert_eq!(diff.items.len(), 2, "{diff:?}");
            for item in &diff.items {
                let name = match side {
                    SchemaSide::Input => &item.old,
                    SchemaSide::Output => &item.new,
                };
                let name = name.as_str().expect("a name");
                let witness = item.witness.as_ref().expect("a witness").to_string();
                assert!(witness.contains(&format!("\"{name}\"")), "{item:?}");
            }
        }
    }
}

/// Removing a tool and adding it again changes nothing in between: both steps are breaking or compared with what was.
#[test]
fn a_tool_that_comes_back_is_compared_with_what_it_was() {
    let tool = |kind: &str| json!({ "tools": [{ "name": "t", "inputSchema": object(json!({ "type": kind })) }] });
    let gone = diff_documents(&tool("string"), &json!({ "tools": [] })).expect("documents");
    assert!(gone.breaking);
    let back = diff_documents(&tool("string"), &tool("integer")).expect("documents");
    assert!(
        back.breaking,
        "the caller keeps the last version that had the name"
    );
}

/// One row of the table: two schemas of a property, the class on either side, and the rule there.
struct Row {
    old: Value,
    new: Value,
    input: (ChangeSeverity, &'static str),
    output: (ChangeSeverity, &'static str),
}

fn row(
    old: Value,
    new: Value,
    input: (ChangeSeverity, &'static str),
    output: (ChangeSeverity, &'static str),
) -> Row {
    Row {
        old,
        new,
        input,
        output,
    }
}

/// Returns rows that say the same in both directions: what is narrowed there is widened back.
fn rows_of_values() -> Vec<Row> {
    use ChangeSeverity::{Breaking, Compatible, Cosmetic, Identical, Review, Undecided};
    let mut rows = vec![
        row(
            json!({ "type": "string", "description": "One." }),
            json!({ "type": "string", "description": "Two.", "title": "T", "examples": ["a"] }),
            (Cosmetic, "text-changed"),
            (Cosmetic, "text-changed"),
        ),
        row(
            json!({ "type": "string", "enum": ["a", "b"] }),
            json!({ "enum": ["b", "a"], "type": "string" }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "const": "a" }),
            json!({ "enum": ["a"] }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
            json!({ "type": ["null", "string"] }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "type": ["string", "null"], "enum": ["a", "b", null], "default": null }),
            json!({ "anyOf": [{ "type": "string", "enum": ["a", "b"] }, { "type": "null" }], "default": null }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "type": "array", "items": { "type": ["string", "null"], "enum": ["a", null] } }),
            json!({ "type": "array", "items": { "anyOf": [{ "type": "null" }, { "type": "string", "enum": ["a"] }] } }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "type": "integer", "exclusiveMinimum": 0 }),
            json!({ "type": "integer", "minimum": 1 }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        // A list of one item holds none twice, and a range of few whole numbers is a list of them.
        row(
            json!({ "type": "array", "maxItems": 1 }),
            json!({ "type": "array", "maxItems": 1, "uniqueItems": true }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "type": "array", "maxItems": 1 }),
            json!({ "type": "array", "maxItems": 2, "uniqueItems": true }),
            (Compatible, "relaxed"),
            (Breaking, "relaxed"),
        ),
        row(
            json!({ "type": "array", "maxItems": 2, "uniqueItems": true }),
            json!({ "type": "array", "maxItems": 1 }),
            (Breaking, "tightened"),
            (Compatible, "tightened"),
        ),
        row(
            json!({ "type": "integer", "minimum": 1, "maximum": 3 }),
            json!({ "type": "integer", "enum": [1, 2, 3] }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "enum": [4, 2, null] }),
            json!({ "anyOf": [
                { "type": "integer", "exclusiveMinimum": 0, "maximum": 5.5, "multipleOf": 2 },
                { "type": "null" },
            ] }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "type": "integer", "minimum": 1, "maximum": 3 }),
            json!({ "type": "integer", "enum": [1, 2] }),
            (Breaking, "enum-value-removed"),
            (Compatible, "enum-value-removed"),
        ),
        row(
            json!({ "type": "integer", "minimum": 1, "maximum": 3 }),
            json!({ "type": "integer", "enum": [1, 2, 3, 9] }),
            (Compatible, "enum-value-added"),
            (Breaking, "enum-value-added"),
        ),
        // Names of members are strings, and lists of rules without one say nothing.
        row(
            json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
            json!({ "type": "object", "propertyNames": { "type": "string" }, "additionalProperties": { "type": "integer" } }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "type": "object", "propertyNames": { "type": ["string", "null"], "maxLength": 3 } }),
            json!({ "type": "object", "propertyNames": { "maxLength": 3 } }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "type": "object", "patternProperties": {}, "dependentRequired": {}, "dependentSchemas": {} }),
            json!({ "type": "object" }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        // Required members are as many at least.
        row(
            json!({ "type": "object", "required": ["a", "b"] }),
            json!({ "type": "object", "required": ["a", "b"], "minProperties": 2 }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "type": "object", "required": ["a", "b"], "minProperties": 2 }),
            json!({ "type": "object", "required": ["a", "b"], "minProperties": 3 }),
            (Breaking, "tightened"),
            (Compatible, "tightened"),
        ),
        // The bounds of multiples are the first ones inside.
        row(
            json!({ "type": "integer", "minimum": -4, "maximum": 14, "multipleOf": 5 }),
            json!({ "type": "number", "minimum": 0, "maximum": 10, "multipleOf": 5 }),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        row(
            json!({ "type": "integer", "minimum": 1, "multipleOf": 1.5 }),
            json!({ "type": "integer", "minimum": 4, "multipleOf": 3 }),
            (Breaking, "tightened"),
            (Compatible, "tightened"),
        ),
        row(
            json!({ "type": "integer", "minimum": 1, "maximum": 100_000 }),
            json!({ "type": "integer", "enum": [1, 2, 3] }),
            (Breaking, "enum-added"),
            (Compatible, "enum-added"),
        ),
        row(
            json!({ "type": "string" }),
            json!({ "type": "string", "default": "a" }),
            (Review, "default-changed"),
            (Cosmetic, "default-changed"),
        ),
        row(
            json!({ "type": "string", "default": "b" }),
            json!({ "type": "string", "default": "a" }),
            (Review, "default-changed"),
            (Cosmetic, "default-changed"),
        ),
        row(
            json!({ "type": "string" }),
            json!({ "type": "string", "readOnly": true }),
            (Review, "annotation-changed"),
            (Review, "annotation-changed"),
        ),
        row(
            json!({ "type": "string" }),
            json!({ "type": "integer" }),
            (Breaking, "type-changed"),
            (Breaking, "type-changed"),
        ),
        row(
            json!({ "type": "string" }),
            json!({ "type": "array", "items": { "type": "string" } }),
            (Breaking, "type-changed"),
            (Breaking, "type-changed"),
        ),
        row(
            json!({ "type": "string", "enum": ["open", "closed"] }),
            json!({ "type": "array", "items": { "type": "string", "enum": ["open", "closed"] } }),
            (Breaking, "type-changed"),
            (Breaking, "type-changed"),
        ),
        row(
            json!({ "type": "string", "enum": ["open", "closed"] }),
            json!({ "type": "integer" }),
            (Breaking, "type-changed"),
            (Breaking, "type-changed"),
        ),
        row(
            json!({ "type": "object" }),
            json!({ "const": "open" }),
            (Breaking, "type-changed"),
            (Breaking, "type-changed"),
        ),
        row(
            json!({ "type": "string", "enum": ["open", "pending", "closed"] }),
            json!({ "type": "string", "enum": ["open", "pendings", "closed"] }),
            (Breaking, "enum-value-renamed"),
            (Breaking, "enum-value-renamed"),
        ),
        row(
            json!({ "type": "integer", "multipleOf": 2 }),
            json!({ "type": "integer", "multipleOf": 3 }),
            (Breaking, "step-changed"),
            (Breaking, "step-changed"),
        ),
        // No rule decides these, but a text shows it.
        row(
            json!({ "type": "string", "pattern": "^[a-z]+$" }),
            json!({ "type": "string", "pattern": "^[0-9]+$" }),
            (Breaking, "pattern-changed"),
            (Breaking, "pattern-changed"),
        ),
        row(
            json!({ "type": "string", "format": "email" }),
            json!({ "type": "string", "format": "uuid" }),
            (Breaking, "format-changed"),
            (Breaking, "format-changed"),
        ),
        row(
            json!({ "type": "string", "pattern": "^a{1,40}$" }),
            json!({ "type": "string", "pattern": "^a{1,40}$|^b{9}$" }),
            (Undecided, "pattern-changed"),
            (Undecided, "pattern-changed"),
        ),
        row(
            json!({ "oneOf": [{ "type": "integer" }, { "type": "number", "minimum": 5 }] }),
            json!({ "oneOf": [{ "type": "integer" }, { "type": "number", "minimum": 5, "maximum": 1e9 }] }),
            (Undecided, "keyword-undecided"),
            (Undecided, "keyword-undecided"),
        ),
    ];
    // These keywords are undecided, one by one.
    for (key, was, is) in [
        (
            "not",
            json!({ "minLength": 3 }),
            json!({ "minLength": 3, "maxLength": 900 }),
        ),
        ("if", json!({ "minLength": 3 }), json!({ "maxLength": 3 })),
        (
            "allOf",
            json!([{ "minLength": 1 }, { "minLength": 2 }]),
            json!([{ "minLength": 1 }, { "minLength": 2 }, { "minLength": 0 }]),
        ),
        (
            "dependentRequired",
            json!({ "a": ["b"] }),
            json!({ "a": ["c"] }),
        ),
        ("dependencies", json!({ "a": ["b"] }), json!({ "a": ["c"] })),
        ("unheard", json!(1), json!(2)),
    ] {
        rows.push(row(
            json!({ "type": "string", key: was }),
            json!({ "type": "string", key: is }),
            (Undecided, "keyword-undecided"),
            (Undecided, "keyword-undecided"),
        ));
    }
    // In this direction less is allowed; the other way round more is.
    let narrowing = [
        (
            json!({ "type": "number" }),
            json!({ "type": "integer" }),
            "type-narrowed",
            "type-widened",
        ),
        (
            json!({ "type": ["string", "null"] }),
            json!({ "type": "string" }),
            "type-narrowed",
            "type-widened",
        ),
        (
            json!({}),
            json!({ "type": "string" }),
            "type-narrowed",
            "type-widened",
        ),
        (json!(true), json!(false), "type-narrowed", "type-widened"),
        (
            json!({ "type": "string", "enum": ["a", "x"] }),
            json!({ "type": "string", "enum": ["a"] }),
            "enum-value-removed",
            "enum-value-added",
        ),
        (
            json!({ "enum": ["a", "x"] }),
            json!({ "const": "a" }),
            "enum-value-removed",
            "enum-value-added",
        ),
        (
            json!({ "enum": ["a", null] }),
            json!({ "enum": ["a"] }),
            "enum-value-removed",
            "enum-value-added",
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "enum": ["a"] }),
            "enum-added",
            "enum-removed",
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "const": "a" }),
            "enum-added",
            "enum-removed",
        ),
        (
            json!({ "type": "boolean" }),
            json!({ "const": true }),
            "enum-value-removed",
            "enum-value-added",
        ),
        (
            json!({ "type": "integer" }),
            json!({ "type": "integer", "minimum": 1 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "integer", "minimum": 1 }),
            json!({ "type": "integer", "minimum": 2 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "number", "maximum": 2.5 }),
            json!({ "type": "number", "maximum": 2.25 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "number", "minimum": 1 }),
            json!({ "type": "number", "exclusiveMinimum": 1 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "number", "maximum": 1 }),
            json!({ "type": "number", "exclusiveMaximum": 1 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "number", "multipleOf": 0.5 }),
            json!({ "type": "number", "multipleOf": 1.5 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "integer" }),
            json!({ "type": "integer", "multipleOf": 2 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "minLength": 1 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "string", "maxLength": 9 }),
            json!({ "type": "string", "maxLength": 8 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "string", "pattern": "^[a-z]+$", "maxLength": 9 }),
            json!({ "type": "string", "pattern": "^[a-z]+$", "maxLength": 8 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "pattern": "^[0-9]+$" }),
            "pattern-added",
            "pattern-removed",
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "format": "date" }),
            "format-added",
            "format-removed",
        ),
        (
            json!({ "type": "array" }),
            json!({ "type": "array", "minItems": 1 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "array" }),
            json!({ "type": "array", "maxItems": 3 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "array" }),
            json!({ "type": "array", "uniqueItems": true }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "array", "items": { "type": "number" } }),
            json!({ "type": "array", "items": { "type": "integer" } }),
            "type-narrowed",
            "type-widened",
        ),
        (
            json!({ "type": "object" }),
            json!({ "type": "object", "minProperties": 1 }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "object" }),
            json!({ "type": "object", "additionalProperties": false }),
            "object-closed",
            "object-opened",
        ),
        (
            json!({ "type": "object" }),
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            "type-narrowed",
            "type-widened",
        ),
        (
            json!({ "type": "object", "propertyNames": { "maxLength": 9 } }),
            json!({ "type": "object", "propertyNames": { "maxLength": 2 } }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "anyOf": [{ "type": "string", "pattern": "^a" }, { "type": "string", "pattern": "^b" }] }),
            json!({ "anyOf": [{ "type": "string", "pattern": "^a" }] }),
            "union-arm-removed",
            "union-arm-added",
        ),
        (
            json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "enum": ["a"] }] }),
            json!({ "anyOf": [{ "type": "integer", "minimum": 2 }, { "type": "string", "enum": ["a"] }] }),
            "tightened",
            "relaxed",
        ),
        (
            json!({ "type": "object" }),
            json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
            "union-added",
            "union-removed",
        ),
        (
            json!({ "type": "object", "properties": { "p": { "type": "string" } } }),
            json!({ "type": "object", "properties": { "p": { "type": "string" } }, "required": ["p"] }),
            "became-required",
            "became-optional",
        ),
    ];
    for (wide, narrow, narrowed, widened) in narrowing {
        rows.push(row(
            wide.clone(),
            narrow.clone(),
            (Breaking, narrowed),
            (Compatible, narrowed),
        ));
        rows.push(row(
            narrow,
            wide,
            (Compatible, widened),
            (Breaking, widened),
        ));
    }
    rows
}

#[test]
fn every_row_of_values() {
    let mut wrong = Vec::new();
    for Row {
        old,
        new,
        input,
        output,
    } in rows_of_values()
    {
        for (side, (class, rule)) in [(SchemaSide::Input, input), (SchemaSide::Output, output)] {
            let (old, new) = (object(old.clone()), object(new.clone()));
            check(&mut wrong, side, &old, &new, class, rule);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Schemas of the same values in other words: a rule about what no value has says nothing.
fn spellings() -> Vec<(Value, Value)> {
    let text = || json!({ "type": "string" });
    let list = |rules: Value| with_type("array", rules);
    let members = |rules: Value| with_type("object", rules);
    vec![
        (
            list(json!({ "maxItems": 0, "items": text() })),
            list(json!({ "maxItems": 0, "items": { "type": "integer" } })),
        ),
        (
            list(json!({ "maxItems": 0 })),
            list(json!({ "items": false })),
        ),
        (
            list(json!({ "prefixItems": [text()], "maxItems": 1 })),
            list(json!({ "prefixItems": [text()], "items": false })),
        ),
        (
            list(json!({ "prefixItems": [text(), false] })),
            list(json!({ "prefixItems": [text()], "maxItems": 1, "uniqueItems": true })),
        ),
        (
            list(json!({ "prefixItems": [text()], "items": text() })),
            list(json!({ "items": text() })),
        ),
        (list(json!({ "maxItems": 0 })), json!({ "const": [] })),
        (
            members(
                json!({ "properties": { "x": text(), "y": {} }, "additionalProperties": false, "maxProperties": 2 }),
            ),
            members(
                json!({ "properties": { "x": text(), "y": {} }, "additionalProperties": false }),
            ),
        ),
        (
            members(
                json!({ "properties": { "x": text(), "y": false }, "additionalProperties": false }),
            ),
            members(json!({ "properties": { "x": text() }, "additionalProperties": false })),
        ),
        (
            members(json!({ "maxProperties": 0 })),
            members(json!({ "additionalProperties": false })),
        ),
        (
            members(json!({ "maxProperties": 0, "properties": { "x": text() } })),
            members(json!({ "maxProperties": 0, "propertyNames": { "maxLength": 3 } })),
        ),
        (
            members(json!({ "maxProperties": 0 })),
            json!({ "enum": [{}] }),
        ),
        (
            json!({ "type": "number", "minimum": 2, "maximum": 2 }),
            json!({ "enum": [2] }),
        ),
        (
            json!({ "type": "number", "minimum": 0.5, "maximum": 0.5 }),
            json!({ "const": 0.5 }),
        ),
        (
            json!({ "type": "number", "minimum": 2, "maximum": 2 }),
            json!({ "type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 3 }),
        ),
        (
            json!({ "type": "integer", "minimum": 2, "maximum": 3, "multipleOf": 2 }),
            json!({ "type": "integer", "minimum": 2, "maximum": 2 }),
        ),
        (
            json!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 4 }, { "type": "integer", "minimum": 5, "maximum": 9 }] }),
            json!({ "type": "integer", "minimum": 0, "maximum": 9 }),
        ),
        (
            json!({ "type": "string", "maxLength": 0, "pattern": "^$" }),
            json!({ "const": "" }),
        ),
        (text(), with_type("string", json!({ "pattern": ".*" }))),
        (
            with_type("string", json!({ "pattern": "" })),
            with_type("string", json!({ "pattern": "^[\\s\\S]*$" })),
        ),
        (
            members(json!({ "propertyNames": { "pattern": "^" } })),
            members(json!({})),
        ),
        (text(), json!({ "anyOf": [text()] })),
        (
            json!({ "type": "integer", "minimum": 1 }),
            json!({ "type": "integer", "oneOf": [{ "minimum": 1 }] }),
        ),
        (
            text(),
            with_type("string", json!({ "anyOf": [{ "minLength": 3 }, text()] })),
        ),
        (
            text(),
            with_type("string", json!({ "not": false, "then": false })),
        ),
        (
            list(json!({ "maxItems": 3 })),
            list(json!({ "maxItems": 3, "minContains": 2 })),
        ),
        (json!({ "enum": [] }), json!(false)),
        (
            json!({ "type": "integer", "minimum": 3, "maximum": 2 }),
            json!({ "type": "string", "minLength": 2, "maxLength": 1 }),
        ),
        (
            list(json!({ "minItems": 2, "items": false })),
            members(json!({ "minProperties": 1, "maxProperties": 0 })),
        ),
    ]
}

fn with_type(word: &str, mut rules: Value) -> Value {
    rules["type"] = word.into();
    rules
}

#[test]
fn another_spelling_of_the_same_values_is_identical() {
    let mut wrong = Vec::new();
    for (one, two) in spellings() {
        for (old, new) in [(&one, &two), (&two, &one)] {
            for side in [SchemaSide::Input, SchemaSide::Output] {
                let (old, new) = (object(old.clone()), object(new.clone()));
                let (class, rule) = (ChangeSeverity::Identical, "order-changed");
                check(&mut wrong, side, &old, &new, class, rule);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What looks like such a spelling, and is none: the second one of each pair takes less.
#[test]
fn a_narrower_schema_is_no_other_spelling() {
    let pairs = [
        (
            json!({ "type": "array", "maxItems": 1, "items": {} }),
            json!({ "type": "array", "maxItems": 1, "items": false }),
        ),
        (
            json!({ "type": "array", "prefixItems": [{}], "items": { "type": "integer" } }),
            json!({ "type": "array", "items": { "type": "integer" } }),
        ),
        (
            json!({ "type": "array", "maxItems": 1, "items": { "type": "string" } }),
            json!({ "type": "array", "maxItems": 0, "items": { "type": "integer" } }),
        ),
        (
            json!({ "type": "object", "properties": { "x": {}, "y": {} }, "additionalProperties": false, "maxProperties": 2 }),
            json!({ "type": "object", "properties": { "x": {}, "y": {} }, "additionalProperties": false, "maxProperties": 1 }),
        ),
        (
            json!({ "type": "object", "maxProperties": 0 }),
            json!({ "type": "object", "maxProperties": 0, "required": ["x"] }),
        ),
        (
            json!({ "type": "object", "properties": { "x": { "type": "string" } }, "additionalProperties": false }),
            json!({ "type": "object", "properties": { "x": { "type": "string" } }, "maxProperties": 0 }),
        ),
        (
            json!({ "type": "number", "minimum": 2, "maximum": 2.5 }),
            json!({ "type": "number", "minimum": 2, "maximum": 2 }),
        ),
        (
            json!({ "type": "string", "maxLength": 1 }),
            json!({ "const": "" }),
        ),
        // A line break is no character of a dot.
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "pattern": "^.*$" }),
        ),
        (
            json!({ "type": "string", "pattern": ".*" }),
            json!({ "type": "string", "pattern": ".+" }),
        ),
        (
            json!({ "type": "integer", "minimum": 2, "maximum": 2 }),
            json!({ "type": "integer", "minimum": 2, "exclusiveMaximum": 2 }),
        ),
    ];
    for (wide, narrow) in pairs {
        let (wide, narrow) = (object(wide), object(narrow));
        for (old, new, side, is_breaking) in [
            (&wide, &narrow, SchemaSide::Input, true),
            (&narrow, &wide, SchemaSide::Output, true),
            (&wide, &narrow, SchemaSide::Output, false),
        ] {
            let found = diff_schemas(old, new, side);
            assert_eq!(found.breaking, is_breaking, "{old} → {new}: {found:?}");
            assert!(found.class >= ChangeSeverity::Compatible, "{found:?}");
        }
    }
}

/// Of two alternatives that look as like the old schema, the second takes all of its values.
#[test]
fn an_alternative_is_compared_with_the_one_that_takes_it() {
    let text = |rules: Value| with_type("string", rules);
    let one = object(text(json!({ "maxLength": 50 })));
    let arms = json!([
        text(json!({ "format": "date" })),
        text(json!({ "maxLength": 100 }))
    ]);
    let two = object(json!({ "anyOf": arms }));
    for (old, new, side, class) in [
        (&one, &two, SchemaSide::Input, ChangeSeverity::Compatible),
        (&one, &two, SchemaSide::Output, ChangeSeverity::Breaking),
        (&two, &one, SchemaSide::Input, ChangeSeverity::Breaking),
        (&two, &one, SchemaSide::Output, ChangeSeverity::Compatible),
    ] {
        let found = diff_schemas(old, new, side);
        assert_eq!(found.class, class, "{found:?}");
    }
}

/// Rows about members, where it matters whether the object is open.
#[test]
fn every_row_of_members() {
    use ChangeSeverity::{Breaking, Compatible, Identical, Review};
    let text = || json!({ "type": "string" });
    let of = |names: &[&str], required: &[&str], open: bool| {
        let properties: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), text()))
            .collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": open })
    };
    let (open, closed) = (true, false);
    let rows = [
        (
            of(&["a"], &[], closed),
            of(&["a", "b"], &[], closed),
            (Compatible, "property-added"),
            (Breaking, "property-added"),
        ),
        (
            of(&["a"], &[], open),
            of(&["a", "b"], &[], open),
            (Breaking, "property-typed"),
            (Compatible, "property-typed"),
        ),
        (
            of(&["a"], &[], closed),
            of(&["a", "b"], &["b"], closed),
            (Breaking, "required-added"),
            (Breaking, "required-added"),
        ),
        (
            of(&["a"], &[], open),
            of(&["a", "b"], &["b"], open),
            (Breaking, "required-added-to-open"),
            (Compatible, "required-added-to-open"),
        ),
        (
            of(&["a", "zz"], &[], closed),
            of(&["a"], &[], closed),
            (Breaking, "property-removed"),
            (Review, "property-removed"),
        ),
        (
            of(&["a", "zz"], &[], open),
            of(&["a"], &[], open),
            (Review, "property-removed-from-open"),
            (Review, "property-removed-from-open"),
        ),
        (
            of(&["a", "zz"], &["zz"], closed),
            of(&["a"], &[], closed),
            (Breaking, "required-removed"),
            (Breaking, "required-removed"),
        ),
        (
            of(&["a", "zz"], &["zz"], open),
            of(&["a"], &[], open),
            (Review, "required-removed-from-open"),
            (Breaking, "required-removed-from-open"),
        ),
        (
            of(&["subject"], &[], closed),
            of(&["subjects"], &[], closed),
            (Breaking, "property-renamed"),
            (Breaking, "property-renamed"),
        ),
        (
            of(&["subject"], &["subject"], open),
            of(&["subjects"], &["subjects"], open),
            (Breaking, "property-renamed"),
            (Breaking, "property-renamed"),
        ),
        (
            of(&["a", "b"], &["a", "b"], closed),
            of(&["b", "a"], &["b", "a"], closed),
            (Identical, "order-changed"),
            (Identical, "order-changed"),
        ),
        (
            of(&["a"], &["a"], closed),
            of(&["a"], &["a"], open),
            (Compatible, "object-opened"),
            (Breaking, "object-opened"),
        ),
    ];
    let mut wrong = Vec::new();
    for (old, new, input, output) in rows {
        for (side, (class, rule)) in [(SchemaSide::Input, input), (SchemaSide::Output, output)] {
            check(&mut wrong, side, &old, &new, class, rule);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A required property with a default is still required: no default is used in its place.
#[test]
fn a_default_does_not_make_up_for_required() {
    let old = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let new = json!({ "type": "object", "properties": { "b": { "type": "string", "default": "x" } }, "required": ["b"],
        "additionalProperties": false });
    let diff = diff_schemas(&old, &new, SchemaSide::Input);
    assert_eq!(
        (diff.class, rules(&diff)),
        (ChangeSeverity::Breaking, vec!["input-required-added"])
    );
    assert_eq!(diff.items[0].witness, Some(json!({})));
}

/// Random values found this: a property that is described now was demanded all along.
#[test]
fn a_name_that_was_required_without_being_described() {
    let demanded = json!({ "type": "object", "required": ["a"] });
    let described = json!({ "type": "object", "properties": { "a": {} } });
    let diff = diff_schemas(&demanded, &described, SchemaSide::Output);
    assert_eq!(
        (diff.class, rules(&diff)),
        (
            ChangeSeverity::Breaking,
            vec!["output-property-named", "output-became-optional"]
        )
    );
    let still = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] });
    assert_eq!(
        diff_schemas(&demanded, &still, SchemaSide::Input).class,
        ChangeSeverity::Compatible
    );
}

#[test]
fn the_likely_new_name_is_told() {
    let with =
        |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } } });
    let diff = diff_schemas(&with("subject"), &with("subject_line"), SchemaSide::Input);
    assert_eq!(diff.items[0].path, "/properties/subject");
    assert_eq!(
        (&diff.items[0].old, &diff.items[0].new),
        (&json!("subject"), &json!("subject_line"))
    );
}

#[test]
fn references_are_inlined() {
    let plain =
        json!({ "type": "object", "properties": { "a": { "type": "integer", "minimum": 1 } } });
    let referring = json!({ "$defs": { "n": { "type": "integer", "minimum": 1 } }, "type": "object",
        "properties": { "a": { "$ref": "#/$defs/n" } } });
    let diff = diff_schemas(&plain, &referring, SchemaSide::Input);
    assert_eq!(
        (diff.class, rules(&diff)),
        (ChangeSeverity::Identical, vec!["input-order-changed"])
    );
    let tighter = json!({ "$defs": { "n": { "type": "integer", "minimum": 2 } }, "type": "object",
        "properties": { "a": { "$ref": "#/$defs/n" } } });
    let diff = diff_schemas(&referring, &tighter, SchemaSide::Input);
    assert_eq!(rules(&diff), ["input-tightened"]);
    assert_eq!(diff.items[0].path, "/properties/a/minimum");
    assert_eq!(diff.items[0].witness, Some(json!({ "a": 1 })));
}

#[test]
fn recursion_is_followed_and_other_documents_are_undecided() {
    let node = |value: Value| {
        json!({ "$defs": { "node": { "type": "object", "properties": {
        "v": value, "next": { "$ref": "#/$defs/node" } } } }, "$ref": "#/$defs/node", "description": "d" })
    };
    let (old, new) = (
        node(json!({ "type": "integer" })),
        node(json!({ "type": ["integer", "null"] })),
    );
    assert_eq!(
        diff_schemas(&old, &old, SchemaSide::Input).class,
        ChangeSeverity::Identical
    );
    let found = diff_schemas(&old, &new, SchemaSide::Input);
    assert_eq!(found.class, ChangeSeverity::Compatible, "{found:?}");
    for (old, new, side) in [
        (&old, &new, SchemaSide::Output),
        (&new, &old, SchemaSide::Input),
    ] {
        let found = diff_schemas(old, new, side);
        assert_eq!(found.class, ChangeSeverity::Breaking, "{found:?}");
        let is_shown = |item: &ContractChange| {
            let witness = item.witness.as_ref();
            witness.is_some_and(|witness| is_true(side, old, new, witness))
        };
        assert!(found.items.iter().all(is_shown), "{found:?}");
    }
    let mut described = old.clone();
    described["description"] = "e".into();
    assert_eq!(
        diff_schemas(&old, &described, SchemaSide::Input).class,
        ChangeSeverity::Cosmetic
    );
    let remote = |url: &str| object(json!({ "$ref": url }));
    let diff = diff_schemas(
        &remote("https://example.com/a"),
        &remote("https://example.com/b"),
        SchemaSide::Output,
    );
    assert_eq!(diff.class, ChangeSeverity::Undecided);
    assert!(diff.breaking);
}

/// A definition: its name, the rules of its value, and its members with the definitions that they lead to.
type SchemaDefinition<'a> = (&'a str, Value, &'a [(&'a str, &'a str)]);

/// Returns a recursive schema.
fn recursive(definitions: &[SchemaDefinition<'_>]) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let mut schema = json!({ "type": "object", "properties": {}, "$defs": {} });
    schema["properties"]["a"] = reference(definitions[0].0);
    for (name, value, others) in definitions {
        let mut node = json!({ "type": "object", "properties": { "v": value }, "required": ["v"], "additionalProperties": false });
        for (member, other) in *others {
            let list = json!({ "type": "array", "items": reference(other) });
            node["properties"][member] = json!({ "anyOf": [list, { "type": "null" }] });
        }
        schema["$defs"][name] = node;
    }
    schema
}

/// Libraries name definitions after classes, and a class gets another name.
#[test]
fn recursive_definitions_are_compared_by_what_they_say() {
    use ChangeSeverity::{Breaking, Compatible, Identical};
    let number = |least: u8| json!({ "type": "integer", "minimum": least });
    let one = |name: &str, least: u8| recursive(&[(name, number(least), &[("next", name)])]);
    let two = |names: [&str; 2], least: [u8; 2]| {
        recursive(&[
            (names[0], number(least[0]), &[("next", names[1])]),
            (names[1], number(least[1]), &[("next", names[0])]),
        ])
    };
    let mut unrolled = one("Node", 0);
    unrolled["properties"]["a"] = unrolled["$defs"]["Node"].clone();
    let mut wider = one("Node", 0);
    wider["$defs"]["Node"]["properties"]["w"] = json!({ "type": "string" });
    let cases = [
        (one("A", 0), one("Node", 0), Identical, Identical),
        (one("A", 0), unrolled, Identical, Identical),
        (one("A", 0), two(["A", "B"], [0, 0]), Identical, Identical),
        (
            two(["A", "B"], [0, 1]),
            two(["X", "Y"], [0, 1]),
            Identical,
            Identical,
        ),
        (one("A", 0), wider, Compatible, Breaking),
        (one("A", 0), one("Node", 1), Breaking, Compatible),
        (one("A", 0), one("A", 1), Breaking, Compatible),
        // The difference is in the second level alone.
        (one("A", 0), two(["A", "B"], [0, 1]), Breaking, Compatible),
        (
            two(["A", "B"], [0, 1]),
            two(["X", "Y"], [1, 0]),
            Breaking,
            Breaking,
        ),
    ];
    for (old, new, input, output) in cases {
        for (side, class) in [(SchemaSide::Input, input), (SchemaSide::Output, output)] {
            let found = diff_schemas(&old, &new, side);
            assert_eq!(found.class, class, "{side:?} {old} {new} {found:?}");
            for item in found.items.iter().filter(|item| item.class == Breaking) {
                let witness = item.witness.as_ref().expect("a witness");
                assert!(is_true(side, &old, &new, witness), "{item:?}");
            }
        }
    }
}

/// A value that must meet two recursive schemas is not one that meets the first alone.
#[test]
fn two_recursions_of_one_value_are_both_seen() {
    let of = |next: Value| {
        let other = json!({ "type": "object", "properties": { "n": { "$ref": "#/$defs/Node" } }, "required": ["n"] });
        let node = json!({ "type": "object", "properties": { "next": next } });
        json!({ "$ref": "#/$defs/Other", "$defs": { "Other": other, "Node": node } })
    };
    let node = json!({ "$ref": "#/$defs/Node" });
    let both = json!({ "$ref": "#/$defs/Node", "allOf": [{ "$ref": "#/$defs/Other" }] });
    for (old, new) in [(&node, &both), (&both, &node)] {
        for side in [SchemaSide::Input, SchemaSide::Output] {
            let found = diff_schemas(&of(old.clone()), &of(new.clone()), side);
            assert!(found.breaking, "{side:?} {found:?}");
        }
    }
}

/// Two rings of definitions come to as many pairs as the product of their lengths.
#[test]
fn rings_of_definitions_are_compared_up_to_a_bound() {
    let names: Vec<String> = (0..11).map(|number| format!("n{number}")).collect();
    let ring = |length: usize| {
        let next: Vec<[(&str, &str); 1]> = (0..length)
            .map(|at| [("next", names[(at + 1) % length].as_str())])
            .collect();
        let definitions: Vec<SchemaDefinition<'_>> = (0..length)
            .map(|at| (names[at].as_str(), json!({}), &next[at][..]))
            .collect();
        recursive(&definitions)
    };
    for (old, new, class) in [
        (ring(3), ring(5), ChangeSeverity::Identical),
        (ring(7), ring(11), ChangeSeverity::Undecided),
    ] {
        let found = diff_schemas(&old, &new, SchemaSide::Input);
        assert_eq!(found.class, class, "{found:?}");
    }
}

/// Definitions that are inlined thousands of times end in as many recursions: with one reading of all that each leads to, this
/// takes more than ten minutes.
#[test]
fn what_a_recursion_leads_to_is_read_once() {
    let values: Vec<String> = (0..100_000).map(|value| format!("value {value}")).collect();
    let of = |kind: Value| {
        let mut schema = json!({ "$ref": "#/$defs/n0", "$defs": {} });
        for number in 0..6 {
            let next = json!({ "$ref": format!("#/$defs/n{}", (number + 1) % 6) });
            let arm = |longest: u8| {
                let text = json!({ "type": "string", "maxLength": longest });
                json!({ "type": "object", "properties": { "next": next, "text": text } })
            };
            let arms: Vec<Value> = (0..7).map(arm).collect();
            schema["$defs"][format!("n{number}")] = json!({ "anyOf": arms });
        }
        let kinds = json!({ "type": kind, "enum": values });
        schema["$defs"]["n0"]["anyOf"][6]["properties"]["kind"] = kinds;
        schema
    };
    let (old, new) = (of("string".into()), of(json!(["string", "null"])));
    let found = diff_schemas(&old, &new, SchemaSide::Input);
    assert_eq!(found.class, ChangeSeverity::Undecided, "{found:?}");
}

/// Inside a recursion, an example of each schema around is made with all definitions beside it.
#[test]
fn witnesses_inside_a_recursion_are_bounded_by_what_they_cost() {
    let of = |longest: usize| {
        let mut schema = json!({ "$ref": "#/$defs/n0", "$defs": {} });
        for number in 0..20 {
            let next = json!({ "$ref": format!("#/$defs/n{}", (number + 1) % 20) });
            schema["$defs"][format!("n{number}")] =
                json!({ "type": "object", "properties": { "next": next } });
        }
        schema["$defs"]["n0"]["x-values"] = vec![0; 1_500].into();
        for name in 0..60 {
            schema["$defs"]["n19"]["properties"][format!("text{name}")] =
                json!({ "type": "string", "maxLength": longest });
        }
        schema
    };
    let found = diff_schemas(&of(9), &of(5), SchemaSide::Input);
    assert_eq!(found.items.len(), 60);
    let shown = found.items.iter().filter(|item| item.witness.is_some());
    let shown = shown.count();
    assert!((1..30).contains(&shown), "{shown}");
}

/// A definition is seen whatever its name is spelled like; one that is named by an anchor may be anything.
#[test]
fn a_change_behind_a_reference_is_not_missed() {
    let with = |reference: &str, longest: u8| {
        let definition = json!({ "$anchor": "page", "type": "string", "maxLength": longest });
        json!({ "type": "object", "$defs": { "Page<Item>": definition }, "properties": { "a": { "$ref": reference } } })
    };
    for (reference, class) in [
        ("#/$defs/Page%3CItem%3E", ChangeSeverity::Breaking),
        ("#/$defs/Page<Item>", ChangeSeverity::Breaking),
        ("#page", ChangeSeverity::Undecided),
        ("https://example.com/none#page", ChangeSeverity::Undecided),
    ] {
        let diff = diff_schemas(
            &with(reference, 100),
            &with(reference, 5),
            SchemaSide::Input,
        );
        assert!(diff.class >= class, "{reference}: {diff:?}");
        let same = diff_schemas(
            &with(reference, 100),
            &with(reference, 100),
            SchemaSide::Input,
        );
        assert_eq!(
            same.class,
            ChangeSeverity::Identical,
            "{reference}: {same:?}"
        );
    }
    let [spelled, otherwise] =
        ["#/$defs/Page%3CItem%3E", "#/$defs/P%61ge%3cItem%3e"].map(|reference| with(reference, 5));
    assert_eq!(
        diff_schemas(&spelled, &otherwise, SchemaSide::Input).class,
        ChangeSeverity::Identical
    );
}

/// Schemas stand under these keywords too, and their references lead to the same definitions.
#[test]
fn a_change_that_only_a_rare_keyword_reaches_is_not_missed() {
    let with = |keyword: &str, rule: &Value, definition: &Value| {
        object(
            json!({ "contentMediaType": "application/json", keyword: rule, "$defs": { "page": definition } }),
        )
    };
    let (long, short) = (json!({ "maxLength": 100 }), json!({ "maxLength": 5 }));
    type Rule = fn(&Value) -> Value;
    let inside: [(&str, Rule, ChangeSeverity, &str); 3] = [
        (
            "contentSchema",
            |page| page.clone(),
            ChangeSeverity::Review,
            "annotation-changed",
        ),
        (
            "contentSchema",
            |page| json!({ "properties": { "b": page } }),
            ChangeSeverity::Review,
            "annotation-changed",
        ),
        (
            "dependencies",
            |page| json!({ "b": page, "c": ["d"] }),
            ChangeSeverity::Undecided,
            "keyword-undecided",
        ),
    ];
    for (keyword, rule, class, found) in inside {
        let referring = rule(&json!({ "$ref": "#/properties/a/$defs/page" }));
        let (old, new) = (
            with(keyword, &referring, &long),
            with(keyword, &referring, &short),
        );
        for side in [SchemaSide::Input, SchemaSide::Output] {
            let diff = diff_schemas(&old, &new, side);
            assert_eq!(
                (diff.class, rules(&diff)),
                (class, vec![&*format!("{}-{found}", side.word())]),
                "{keyword}"
            );
            assert_eq!(diff.items[0].path, format!("/properties/a/{keyword}"));
        }
        let same = diff_schemas(&old, &with(keyword, &rule(&long), &long), SchemaSide::Input);
        assert_eq!(same.class, ChangeSeverity::Identical, "{keyword}: {same:?}");
    }
}

/// The validator never looks into a schema of the text inside a string, so that it does not refuse this.
#[test]
fn what_is_no_schema_is_undecided_where_the_validator_does_not_look() {
    for (keyword, was, is) in [
        ("anyOf", json!([7]), json!([8])),
        ("allOf", json!([7]), json!([8])),
        ("items", json!([7]), json!([8])),
        ("properties", json!({ "b": [7] }), json!({ "b": [8] })),
        ("dependencies", json!({ "b": 7 }), json!({ "b": 8 })),
    ] {
        let with = |rule: Value| {
            let shared = json!({ "a": { "contentMediaType": "application/json", "contentSchema": { keyword: rule } } });
            json!({ "type": "object", "properties": { "a": { "$ref": "#/x-shared/a" } }, "x-shared": shared })
        };
        let diff = diff_schemas(&with(was), &with(is), SchemaSide::Input);
        assert_eq!(
            (diff.class, rules(&diff)),
            (ChangeSeverity::Undecided, vec!["input-schema-undecided"]),
            "{keyword}"
        );
        assert_eq!(
            diff.items[0].reason, "a schema is neither an object nor a boolean",
            "{keyword}"
        );
    }
}

/// A member that no keyword of its own schema evaluates is refused, even if another schema beside it evaluates it.
#[test]
fn unevaluated_members_are_those_of_their_own_schema() {
    let old =
        json!({ "type": "object", "properties": { "a": {} }, "unevaluatedProperties": false });
    let rest = json!({ "unevaluatedProperties": false });
    for new in [
        json!({ "type": "object", "properties": { "a": {} }, "allOf": [rest] }),
        json!({ "type": "object", "properties": { "a": {} }, "$ref": "#/$defs/rest", "$defs": { "rest": rest } }),
    ] {
        let diff = diff_schemas(&old, &new, SchemaSide::Input);
        assert!(
            diff.class >= ChangeSeverity::Undecided,
            "`a` is refused now: {diff:?}"
        );
    }
    let referred = json!({ "$ref": "#/$defs/all", "$defs": { "all": old } });
    assert_eq!(
        diff_schemas(&old, &referred, SchemaSide::Input).class,
        ChangeSeverity::Identical
    );
}

#[test]
fn what_is_no_schema_is_undecided_and_never_a_panic() {
    let good = object(json!({ "type": "string" }));
    for bad in [
        json!(7),
        json!("x"),
        json!(null),
        json!([]),
        json!({ "type": 7 }),
        json!({ "properties": [] }),
        json!({ "enum": 3 }),
        json!({ "type": "object", "required": "a" }),
        json!({ "type": "object", "additionalProperties": 3 }),
        json!({ "$ref": 7 }),
        json!({ "$ref": "#" }),
        json!({ "allOf": [7] }),
        json!({ "anyOf": {} }),
        json!({ "minimum": "x" }),
        json!({ "$schema": "https://example.com/dialect", "type": "object" }),
    ] {
        for side in [SchemaSide::Input, SchemaSide::Output] {
            assert!(diff_schemas(&good, &bad, side).breaking, "{bad}");
            assert!(diff_schemas(&bad, &good, side).breaking, "{bad}");
            assert_eq!(
                diff_schemas(&bad, &bad, side).class,
                ChangeSeverity::Identical
            );
        }
    }
    // References that double and double end.
    let mut doubling = json!({ "$defs": {}, "$ref": "#/$defs/d0" });
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        doubling["$defs"][format!("d{level}")] = json!({ "properties": { "a": next, "b": next } });
    }
    doubling["$defs"]["d40"] = json!({ "type": "string" });
    assert_eq!(
        diff_schemas(&good, &doubling, SchemaSide::Input).class,
        ChangeSeverity::Undecided
    );
}

/// Versions that were published before name the dialect, and what is compiled anew need not.
#[test]
fn naming_the_dialect_or_not_is_identical() {
    let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    for dialect in [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2020-12/schema#",
    ] {
        let mut named = plain.clone();
        named["$schema"] = dialect.into();
        for side in [SchemaSide::Input, SchemaSide::Output] {
            for (old, new) in [(&plain, &named), (&named, &plain)] {
                let found = diff_schemas(old, new, side);
                assert_eq!(found.class, ChangeSeverity::Identical, "{:?}", found.items);
            }
        }
    }
}

/// Another server decides itself what it takes as a date, and a listed value that is none is one that it takes.
#[test]
fn a_listed_value_counts_whatever_its_format() {
    let of = |values: Value| {
        let due = json!({ "type": "string", "format": "date", "enum": values });
        json!({ "type": "object", "properties": { "due": due } })
    };
    let (two, one) = (of(json!(["today", "later"])), of(json!(["today"])));
    let found = diff_schemas(&two, &one, SchemaSide::Input);
    assert_eq!(found.class, ChangeSeverity::Breaking, "{:?}", found.items);
    let found = diff_schemas(&one, &two, SchemaSide::Output);
    assert_eq!(found.class, ChangeSeverity::Breaking, "{:?}", found.items);
    // Here the format is looked at.
    let mut free = of(json!(["today", "2026-01-01"]));
    let dates = free.clone();
    free["properties"]["due"]
        .as_object_mut()
        .expect("a schema")
        .shift_remove("format");
    let found = diff_schemas(&free, &dates, SchemaSide::Input);
    assert_eq!(found.class, ChangeSeverity::Breaking, "{:?}", found.items);
}

#[test]
fn draft_7_is_compared_too() {
    let schema = |least: u64| {
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": { "a": { "type": "integer", "minimum": least } } })
    };
    assert_eq!(
        rules(&diff_schemas(&schema(1), &schema(2), SchemaSide::Input)),
        ["input-tightened"]
    );
    assert_eq!(
        diff_schemas(&schema(2), &schema(1), SchemaSide::Input).class,
        ChangeSeverity::Compatible
    );
}

/// Servers go from one generation of a library to the next, and back.
#[test]
fn another_dialect_is_compared_by_what_it_means() {
    let seven = "http://json-schema.org/draft-07/schema#";
    let latest = "https://json-schema.org/draft/2020-12/schema";
    let named = |dialect: &str, rules: Value| {
        let mut schema = json!({ "$schema": dialect });
        let members = schema.as_object_mut().expect("an object");
        members.extend(rules.as_object().expect("rules").clone());
        schema
    };
    let pairs = [
        (
            json!({ "type": "object", "properties": { "a": { "type": "integer", "minimum": 1 } } }),
            json!({ "type": "object", "properties": { "a": { "type": "integer", "minimum": 1 } } }),
        ),
        (
            json!({ "properties": { "a": { "items": [{ "type": "string" }], "additionalItems": false } } }),
            json!({ "properties": { "a": { "prefixItems": [{ "type": "string" }], "items": false } } }),
        ),
        (
            json!({ "properties": { "a": { "$ref": "#/definitions/t", "minLength": 3 } }, "definitions": { "t": { "type": "string" } } }),
            json!({ "properties": { "a": { "$ref": "#/$defs/t" } }, "$defs": { "t": { "type": "string" } } }),
        ),
        (
            json!({ "dependencies": { "a": ["b"] } }),
            json!({ "dependentRequired": { "a": ["b"] } }),
        ),
    ];
    for (older, newer) in pairs {
        let (old, new) = (named(seven, older), named(latest, newer));
        for side in [SchemaSide::Input, SchemaSide::Output] {
            for (old, new) in [(&old, &new), (&new, &old)] {
                let found = diff_schemas(old, new, side);
                assert_eq!(found.class, ChangeSeverity::Identical, "{old} {found:?}");
            }
        }
    }
    // What stands beside a reference counts in the newer dialect alone, and so do the keywords that came with it.
    for (words, rule) in [
        (
            json!({ "properties": { "a": { "$ref": "#/definitions/t", "minLength": 3 } }, "definitions": { "t": { "type": "string" } } }),
            "tightened",
        ),
        (
            json!({ "type": "object", "dependentRequired": { "a": ["b"] } }),
            "keyword-undecided",
        ),
    ] {
        let (old, new) = (named(seven, words.clone()), named(latest, words));
        let found = diff_schemas(&old, &new, SchemaSide::Input);
        assert_eq!(rules(&found), [format!("input-{rule}")], "{found:?}");
        assert!(found.breaking, "{found:?}");
    }
    // In an older dialect a type beside a reference says nothing, so that texts were allowed there and some are no longer.
    let beside = |shortest: u8| {
        let a = json!({ "$ref": "#/definitions/t", "type": "integer" });
        let t = json!({ "minLength": shortest });
        named(
            seven,
            json!({ "properties": { "a": a }, "definitions": { "t": t } }),
        )
    };
    let found = diff_schemas(&beside(2), &beside(5), SchemaSide::Input);
    assert_eq!(found.class, ChangeSeverity::Breaking, "{found:?}");
    // A dialect that is not known may mean anything.
    let plain = json!({ "type": "object" });
    let other = named("https://example.com/dialect", plain.clone());
    let found = diff_schemas(&plain, &other, SchemaSide::Input);
    assert_eq!(found.class, ChangeSeverity::Undecided, "{found:?}");
}

/// Python's tools write an optional argument like this: going from required text to text or nothing is no break.
#[test]
fn nullable_in_either_spelling() {
    let old = object(json!({ "type": "string", "minLength": 1, "title": "A" }));
    let new = object(
        json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "null" }], "title": "A" }),
    );
    assert_eq!(
        rules(&diff_schemas(&old, &new, SchemaSide::Input)),
        ["input-type-widened"]
    );
    assert_eq!(
        diff_schemas(&new, &old, SchemaSide::Output).class,
        ChangeSeverity::Compatible
    );
}

/// A state that holds the older spelling is not asked to approve the newer one.
#[test]
fn a_nullable_dropdown_in_the_older_spelling_is_the_same() {
    let older = |values: Value| {
        object(json!({ "type": ["string", "null"], "enum": values, "description": "A." }))
    };
    let newer = |values: Value| {
        let arms = json!([{ "type": "string", "enum": values }, { "type": "null" }]);
        object(json!({ "anyOf": arms, "description": "A." }))
    };
    let same = diff_schemas(
        &older(json!(["a", "b", null])),
        &newer(json!(["a", "b"])),
        SchemaSide::Input,
    );
    assert_eq!(
        (same.class, rules(&same)),
        (ChangeSeverity::Identical, vec!["input-order-changed"])
    );
    let fewer = diff_schemas(
        &older(json!(["a", "b", null])),
        &newer(json!(["a"])),
        SchemaSide::Input,
    );
    assert_eq!(
        (fewer.class, rules(&fewer)),
        (ChangeSeverity::Breaking, vec!["input-enum-value-removed"])
    );
    // Without null among its values the older schema never took it.
    let wider = diff_schemas(
        &older(json!(["a", "b"])),
        &newer(json!(["a", "b"])),
        SchemaSide::Input,
    );
    assert_eq!(
        (wider.class, rules(&wider)),
        (ChangeSeverity::Compatible, vec!["input-enum-value-added"])
    );
}

#[test]
fn the_report_has_its_form() {
    let (old, new) = (
        object(json!({ "type": "string" })),
        object(json!({ "type": "integer" })),
    );
    let diff = diff_schemas(&old, &new, SchemaSide::Input);
    let value = serde_json::to_value(&diff).expect("plain data");
    let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["class", "breaking", "fingerprint", "items"]);
    assert_eq!(
        value["items"][0],
        json!({
            "rule": "input-type-changed",
            "path": "/properties/a/type",
            "side": "input",
            "class": "breaking",
            "old": "string",
            "new": "integer",
            "reason": "was string, is integer",
            "witness": { "a": "text" },
        })
    );
    assert_eq!(
        serde_json::from_value::<ContractDiff>(value).expect("reads back"),
        diff
    );
}

#[test]
fn a_fingerprint_is_of_one_change() {
    let schema = |least: u64| object(json!({ "type": "integer", "minimum": least }));
    let print = |old: &Value, new: &Value, side| diff_schemas(old, new, side).fingerprint;
    let first = print(&schema(1), &schema(2), SchemaSide::Input);
    assert_eq!(first.len(), 64);
    assert_eq!(first, print(&schema(1), &schema(2), SchemaSide::Input));
    assert_ne!(first, print(&schema(1), &schema(3), SchemaSide::Input));
    assert_ne!(first, print(&schema(2), &schema(1), SchemaSide::Input));
    assert_ne!(first, print(&schema(1), &schema(2), SchemaSide::Output));
    // The order of keys is none of its business.
    let reordered = json!({ "additionalProperties": false, "required": ["a"], "properties": { "a": { "minimum": 2, "type": "integer" } }, "type": "object" });
    assert_eq!(schema(2), reordered);
    assert_eq!(first, print(&schema(1), &reordered, SchemaSide::Input));
}

/// Checks that every witness is true, and that every breaking row above has one.
fn check(
    wrong: &mut Vec<String>,
    side: SchemaSide,
    old: &Value,
    new: &Value,
    class: ChangeSeverity,
    rule: &str,
) {
    let diff = diff_schemas(old, new, side);
    let answer = format!("{side:?} {old} → {new}: {diff:#?}");
    let wanted = format!("{}-{rule}", side.word());
    if diff.class != class
        || rules(&diff).first() != Some(&wanted.as_str())
        || diff.breaking != class.is_breaking()
    {
        wrong.push(format!("expected {class:?} {wanted}: {answer}"));
    }
    for item in &diff.items {
        match &item.witness {
            Some(witness) if !is_true(side, old, new, witness) => {
                wrong.push(format!("a false witness: {answer}"))
            }
            None if item.class == ChangeSeverity::Breaking && !is_unshown(item) => {
                wrong.push(format!("no witness: {answer}"))
            }
            _ => {}
        }
    }
}

/// Returns `true` for what breaks by the rules and not by any value: a name that went from an open object.
fn is_unshown(item: &ContractChange) -> bool {
    item.rule == "input-property-renamed" || item.rule == "output-property-renamed"
}

fn is_true(side: SchemaSide, old: &Value, new: &Value, witness: &Value) -> bool {
    let (source, target) = match side {
        SchemaSide::Input => (old, new),
        SchemaSide::Output => (new, old),
    };
    // A value that is refused, or taken as absent, is not taken as it is.
    let taken = |schema: &Value| {
        let validator = ArgumentValidator::new(schema).expect("a schema");
        validator
            .validate(&witness.to_string())
            .is_ok_and(|taken| Value::Object(taken) == *witness)
    };
    taken(source) && !taken(target)
}

fn object(property: Value) -> Value {
    json!({ "type": "object", "properties": { "a": property }, "required": ["a"], "additionalProperties": false })
}

fn rules(diff: &ContractDiff) -> Vec<&str> {
    diff.items.iter().map(|item| item.rule.as_str()).collect()
}

/// Three levels of ten alternatives; `last` makes the schema of each of the thousand.
fn thousand_alternatives(last: &dyn Fn(usize) -> Value) -> Value {
    let level = |number: usize, inner: &dyn Fn(usize) -> Value| {
        let arms: Vec<Value> = (0..10).map(|arm| inner(10 * number + arm)).collect();
        json!({ "anyOf": arms })
    };
    level(0, &|one| level(one, &|two| level(two, last)))
}

/// Each of a thousand alternatives would be compared with each value of all.
#[test]
fn a_comparison_of_many_alternatives_is_undecided() {
    let of = |more: usize| {
        thousand_alternatives(&|number| {
            let values: Vec<usize> = (0..5).map(|value| 10 * number + value + more).collect();
            json!({ "type": "integer", "enum": values })
        })
    };
    let diff = diff_schemas(&of(0), &of(1), SchemaSide::Input);
    let item = diff.items.iter().find(|item| {
        item.rule == "input-schema-undecided" && item.reason.contains("too large to be compared")
    });
    assert!(item.is_some(), "{:?}", diff.items.first());
    assert!(diff.breaking);
}

/// What lists texts and says nothing else is compared in one go, however long it is.
#[test]
fn long_lists_of_texts_are_compared() {
    let nested = |more: usize| {
        thousand_alternatives(&|number| {
            let values: Vec<String> = (0..5)
                .map(|value| format!("value {}", 10 * number + value + more))
                .collect();
            json!({ "type": "string", "enum": values })
        })
    };
    let flat = |more: usize| {
        let values: Vec<String> = (more..8_000 + more)
            .map(|value| format!("value {value}"))
            .collect();
        json!({ "type": "string", "enum": values })
    };
    for (old, new) in [(nested(0), nested(1)), (flat(0), flat(200))] {
        let diff = diff_schemas(&old, &new, SchemaSide::Input);
        let rules: Vec<&str> = diff.items.iter().map(|item| item.rule.as_str()).collect();
        assert!(rules.contains(&"input-enum-value-removed"), "{rules:?}");
        assert!(!rules.contains(&"input-schema-undecided"), "{rules:?}");
        assert_eq!(diff.class, ChangeSeverity::Breaking);
    }
}
