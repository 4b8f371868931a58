//! Compares two versions of a contract: the bindings of its tools, and what clients see.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, ContractVersion, compile, compiled_document,
    diff::{ChangeSeverity, ContractDiff, SchemaSide, diff, diff_documents},
    form,
};

struct Case {
    what: &'static str,
    change: fn(&mut Value, &mut Value),
    class: ChangeSeverity,
    rules: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        what: "nothing",
        change: |_, _| {},
        class: ChangeSeverity::Identical,
        rules: &[],
    },
    Case {
        what: "texts",
        change: |file, _| {
            file["title"] = "Desk".into();
            file["tools"][0]["description"] = "Makes a ticket.".into();
            file["tools"][0]["say"] = "Made {id}.".into();
            file["tools"][0]["fields"][0]["help"] = "One line.".into();
        },
        class: ChangeSeverity::Cosmetic,
        rules: &[
            "contract-text-changed",
            "input-text-changed",
            "tool-text-changed",
            "tool-text-changed",
        ],
    },
    Case {
        what: "another name",
        change: |file, _| file["contract"] = "desk".into(),
        class: ChangeSeverity::Breaking,
        rules: &["contract-renamed"],
    },
    Case {
        what: "another table",
        change: |file, _| file["collections"]["tickets"]["settings"]["table"] = "archive".into(),
        class: ChangeSeverity::Review,
        rules: &["settings-changed"],
    },
    Case {
        what: "another adapter",
        change: |file, _| file["collections"]["tickets"]["adapter"] = "rest".into(),
        class: ChangeSeverity::Review,
        rules: &["adapter-changed"],
    },
    Case {
        what: "another zone",
        change: |file, _| file["collections"]["tickets"]["timezone"] = "Europe/Berlin".into(),
        class: ChangeSeverity::Review,
        rules: &["timezone-changed"],
    },
    Case {
        what: "the collection has another name",
        change: |file, _| {
            let tickets = file["collections"]["tickets"].take();
            file["collections"] =
                json!({ "cases": tickets, "people": file["collections"]["people"] });
            for tool in 0..4 {
                file["tools"][tool]["collection"] = "cases".into();
            }
        },
        class: ChangeSeverity::Identical,
        rules: &[],
    },
    Case {
        what: "another collection",
        change: |file, _| {
            file["collections"]["archive"] = file["collections"]["tickets"].clone();
            file["collections"]["archive"]["settings"]["table"] = "archive".into();
            file["tools"][1]["collection"] = "archive".into();
        },
        class: ChangeSeverity::Review,
        rules: &["binding-collection-changed", "settings-changed"],
    },
    Case {
        what: "a column less is published",
        change: |file, _| {
            file["collections"]["tickets"]["columns"] =
                json!(["id", "subject", "priority", "owner"])
        },
        class: ChangeSeverity::Breaking,
        rules: &[
            "output-required-removed-from-open",
            "output-required-removed-from-open",
            "output-required-removed-from-open",
            "output-required-removed-from-open",
            "published-narrowed",
        ],
    },
    Case {
        what: "a column more is published",
        change: |file, _| {
            file["collections"]["tickets"]["columns"] =
                json!(["id", "subject", "priority", "owner", "status", "secret"]);
        },
        class: ChangeSeverity::Review,
        rules: &[
            "output-required-added-to-open",
            "output-required-added-to-open",
            "output-required-added-to-open",
            "output-required-added-to-open",
            "published-widened",
        ],
    },
    Case {
        what: "the audit keeps an argument in clear",
        change: |file, _| {
            let field = file["tools"][1]["fields"][0]["name"].clone();
            file["tools"][1]["audit"] = json!({ "clear": [field] });
        },
        class: ChangeSeverity::Review,
        rules: &["audit-loosened"],
    },
    Case {
        what: "a person approves the calls of a tool",
        change: |file, _| {
            let writes = |tool: &&mut serde_json::Value| {
                ["create", "update", "delete"]
                    .iter()
                    .any(|verb| tool["verb"] == *verb)
            };
            let tools = file["tools"].as_array_mut().expect("tools");
            tools.iter_mut().find(writes).expect("a tool that writes")["approval"] =
                "required".into();
        },
        class: ChangeSeverity::Review,
        rules: &["approval-added", "tool-text-changed"],
    },
    Case {
        what: "a column may be null now",
        change: |_, shape| shape["fields"][1]["nullable"] = true.into(),
        class: ChangeSeverity::Breaking,
        rules: &[
            "output-type-widened",
            "output-type-widened",
            "output-type-widened",
            "output-type-widened",
            "shape-recorded",
        ],
    },
    Case {
        what: "a column that is not published",
        change: |_, shape| {
            let column = json!({ "key": "internal", "type": "json", "nullable": true });
            shape["fields"].as_array_mut().expect("a list").push(column);
        },
        class: ChangeSeverity::Identical,
        rules: &["shape-recorded"],
    },
    Case {
        what: "an argument compares otherwise",
        change: |file, _| file["tools"][1]["fields"][0]["match"] = "at-most".into(),
        class: ChangeSeverity::Review,
        rules: &["binding-match-changed"],
    },
    Case {
        what: "an argument goes to another column",
        change: |file, _| file["tools"][1]["fields"][1]["column"] = "owner".into(),
        class: ChangeSeverity::Review,
        rules: &["binding-column-changed"],
    },
    Case {
        what: "another order",
        change: |file, _| file["tools"][1]["order"] = json!(["priority"]),
        class: ChangeSeverity::Review,
        rules: &["order-by-changed"],
    },
    Case {
        what: "fewer rows: a larger limit is refused now",
        change: |file, _| file["tools"][1]["limits"]["rows_max"] = 60.into(),
        class: ChangeSeverity::Breaking,
        rules: &["input-tightened", "row-cap-lowered"],
    },
    Case {
        what: "more rows",
        change: |file, _| file["tools"][1]["limits"]["rows_max"] = 200.into(),
        class: ChangeSeverity::Compatible,
        rules: &["input-relaxed", "row-cap-raised"],
    },
    Case {
        what: "a lower rate",
        change: |file, _| file["tools"][0]["limits"]["rate"] = "50/min".into(),
        class: ChangeSeverity::Review,
        rules: &["rate-lowered"],
    },
    Case {
        what: "the same calls in a longer time",
        change: |file, _| file["tools"][0]["limits"]["rate"] = "60/hour".into(),
        class: ChangeSeverity::Review,
        rules: &["rate-lowered"],
    },
    Case {
        what: "no limit",
        change: |file, _| file["tools"][0]["limits"] = json!({}),
        class: ChangeSeverity::Compatible,
        rules: &["rate-raised"],
    },
    Case {
        what: "a timeout",
        change: |file, _| file["tools"][0]["limits"]["timeout_ms"] = 900.into(),
        class: ChangeSeverity::Identical,
        rules: &["timeout-changed"],
    },
    Case {
        what: "a default",
        change: |file, _| file["tools"][1]["fields"][0]["default"] = 2.into(),
        class: ChangeSeverity::Review,
        rules: &["input-default-changed"],
    },
    Case {
        what: "the tool writes now",
        change: |file, _| {
            file["tools"][2]["verb"] = "delete".into();
        },
        class: ChangeSeverity::Breaking,
        rules: &[
            "annotation-riskier",
            "annotation-riskier",
            "order-by-changed",
            "output-enum-added",
            "output-required-added-to-open",
            "output-required-removed-from-open",
            "output-required-removed-from-open",
            "output-required-removed-from-open",
            "output-required-removed-from-open",
            "verb-changed",
        ],
    },
    Case {
        what: "text alone",
        change: |file, _| file["tools"][2]["text"] = "sentence".into(),
        class: ChangeSeverity::Review,
        rules: &["text-mode-changed"],
    },
    Case {
        what: "a tool less",
        change: |file, _| drop(file["tools"].as_array_mut().expect("a list").remove(2)),
        class: ChangeSeverity::Breaking,
        rules: &["tool-removed"],
    },
    Case {
        what: "another name for a tool",
        change: |file, _| file["tools"][2]["tool"] = "fetch".into(),
        class: ChangeSeverity::Breaking,
        rules: &["tool-renamed"],
    },
    Case {
        what: "a tool more",
        change: |file, _| {
            let mut tool = file["tools"][2].clone();
            tool["tool"] = "look_again".into();
            file["tools"].as_array_mut().expect("a list").push(tool);
        },
        class: ChangeSeverity::Compatible,
        rules: &["tool-added"],
    },
    Case {
        what: "writing allowed",
        change: |file, _| file["collections"]["people"]["write"] = true.into(),
        class: ChangeSeverity::Review,
        rules: &["write-allowed"],
    },
    Case {
        what: "another key",
        change: |file, _| file["collections"]["people"]["key"] = json!(["subject"]),
        class: ChangeSeverity::Review,
        rules: &["key-changed", "order-by-changed"],
    },
    Case {
        what: "no longer only one's own",
        change: |file, _| {
            drop(
                file["tools"][3]["fields"]
                    .as_array_mut()
                    .expect("a list")
                    .remove(1),
            )
        },
        class: ChangeSeverity::Breaking,
        rules: &["bound-field-removed"],
    },
    Case {
        what: "the tenant's instead of the agent's",
        change: |file, _| file["tools"][3]["fields"][1]["from"] = "tenant".into(),
        class: ChangeSeverity::Breaking,
        rules: &["bound-field-changed"],
    },
    Case {
        what: "bound to another column",
        change: |file, _| file["tools"][3]["fields"][1]["column"] = "status".into(),
        class: ChangeSeverity::Breaking,
        rules: &["bound-field-changed"],
    },
    Case {
        what: "a bound field has another name",
        change: |file, _| {
            file["tools"][3]["fields"][1]["name"] = "whose".into();
            file["tools"][3]["fields"][1]["column"] = "owner".into();
        },
        class: ChangeSeverity::Identical,
        rules: &[],
    },
    Case {
        what: "a further bound field",
        change: |file, _| {
            let field =
                json!({ "name": "open", "type": "text", "column": "status", "value": "open" });
            file["tools"][3]["fields"]
                .as_array_mut()
                .expect("a list")
                .push(field);
        },
        class: ChangeSeverity::Review,
        rules: &["bound-field-added"],
    },
];

#[test]
fn every_case() {
    let mut wrong = Vec::new();
    let live = contract(|_, _| {});
    for case in CASES {
        let found = diff(&live, &contract(case.change));
        let mut rules: Vec<&str> = found.items.iter().map(|item| item.rule.as_str()).collect();
        rules.sort_unstable();
        if found.class != case.class
            || rules != case.rules
            || found.breaking != case.class.is_breaking()
        {
            wrong.push(format!("{}: {:?} {rules:?}", case.what, found.class));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Documents contain what clients see, and no bindings.
#[test]
fn documents_compare_without_bindings() {
    let live = contract(|_, _| {});
    for case in CASES {
        let new = contract(case.change);
        let whole = diff(&live, &new);
        let seen =
            diff_documents(&compiled_document(&live), &compiled_document(&new)).expect("documents");
        let of_schemas = |diff: &ContractDiff| {
            diff.items
                .iter()
                .filter(|item| item.side.is_some())
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(of_schemas(&seen), of_schemas(&whole), "{}", case.what);
        assert!(seen.class <= whole.class, "{}", case.what);
    }
}

#[test]
fn what_is_no_document_is_refused() {
    let good = compiled_document(&contract(|_, _| {}));
    for (bad, message) in [
        (json!([]), "no list of tools"),
        (json!({ "tools": {} }), "no list of tools"),
        (json!({ "tools": [{}] }), "tools[0]: it has no name"),
        (
            json!({ "tools": [{ "name": "a" }] }),
            "tools[0]: it has no inputSchema",
        ),
        (
            json!({ "tools": [{ "name": "a", "inputSchema": {}, "title": 1 }] }),
            "its title is no text",
        ),
        (
            json!({ "tools": [{ "name": "a", "inputSchema": {} }, { "name": "a", "inputSchema": {} }] }),
            "is there twice",
        ),
    ] {
        let error = diff_documents(&good, &bad).expect_err("refused");
        assert!(
            error.starts_with("the new document: ") && error.contains(message),
            "{error}"
        );
    }
}

/// A server that says nothing about a tool states the worst about it.
#[test]
fn absent_annotations_are_the_protocols() {
    let tool = |annotations: Value| json!({ "tools": [{ "name": "a", "inputSchema": {}, "annotations": annotations }] });
    let rules = |old: Value, new: Value| {
        let found = diff_documents(&tool(old), &tool(new)).expect("documents");
        found
            .items
            .into_iter()
            .map(|item| item.rule)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        rules(json!({ "readOnlyHint": true }), json!({})),
        ["annotation-riskier"]
    );
    assert_eq!(
        rules(json!({}), json!({ "destructiveHint": true })),
        Vec::<String>::new()
    );
    assert_eq!(
        rules(json!({}), json!({ "destructiveHint": false })),
        ["annotation-safer"]
    );
    assert_eq!(
        rules(json!({ "destructiveHint": false }), json!({})),
        ["annotation-riskier"]
    );
    assert_eq!(
        rules(json!({ "idempotentHint": true }), json!({})),
        ["annotation-riskier"]
    );
    assert_eq!(
        rules(json!({ "openWorldHint": false }), json!({})),
        ["open-world-changed"]
    );
    assert_eq!(
        rules(json!({ "title": "Lists" }), json!({ "title": "Deletes" })),
        ["annotation-other-changed"]
    );
}

/// The result arm is compared, with its places; a schema from elsewhere as a whole.
#[test]
fn result_arms_are_compared() {
    let live = contract(|_, _| {});
    let new = contract(|_, shape| shape["fields"][4]["type"] = "date".into());
    let found = diff(&live, &new);
    let item = found
        .items
        .iter()
        .find(|item| item.tool.as_deref() == Some("list") && item.side == Some(SchemaSide::Output));
    let item = item.expect("the list answers it");
    assert_eq!(
        (item.rule.as_str(), item.path.as_str()),
        (
            "output-format-added",
            "/properties/records/items/properties/status/format"
        )
    );
    assert_eq!(
        found.class,
        ChangeSeverity::Compatible,
        "dates are texts, and the recorded shape is not the caller's: {found:#?}"
    );

    let mut document = compiled_document(&live);
    document["tools"][1]["outputSchema"]["additionalProperties"] = false.into();
    let found = diff_documents(&compiled_document(&live), &document).expect("documents");
    assert!(!found.items.is_empty());
}

#[test]
fn versions_follow_the_worst_item() {
    let live = ContractVersion {
        major: 2,
        minor: 3,
        patch: 4,
    };
    let next = |what: &str| {
        let case = CASES.iter().find(|case| case.what == what).expect("a case");
        diff(&contract(|_, _| {}), &contract(case.change))
            .next_version(live)
            .to_string()
    };
    assert_eq!(next("nothing"), "2.3.4");
    assert_eq!(next("a timeout"), "2.3.4");
    assert_eq!(next("texts"), "2.3.5");
    assert_eq!(next("a tool more"), "2.4.0");
    assert_eq!(next("another order"), "2.4.0");
    assert_eq!(next("a tool less"), "3.0.0");
}

/// The number is assigned after the comparison: it must not be part of what was approved.
#[test]
fn the_version_is_not_compared() {
    let live = contract(|_, _| {});
    let new = contract(|file, _| file["tools"][1]["order"] = json!(["priority"]));
    let numbered = CompiledContract {
        version: ContractVersion {
            major: 1,
            minor: 1,
            patch: 0,
        },
        ..new.clone()
    };
    assert_eq!(diff(&live, &new), diff(&live, &numbered));
}

fn contract(change: fn(&mut Value, &mut Value)) -> CompiledContract {
    let key = json!({ "name": "id", "type": "number", "required": true });
    let mut file = json!({
        "contract": "support",
        "collections": {
            "tickets": {
                "adapter": "sql",
                "settings": { "connection": "db", "table": "tickets" },
                "columns": ["id", "subject", "priority", "owner", "status"],
                "key": ["id"],
                "write": true,
            },
            "people": { "adapter": "sql", "settings": { "table": "people" } },
        },
        "tools": [
            { "tool": "create", "description": "Makes one.", "verb": "create", "collection": "tickets", "limits": { "rate": "60/min" },
              "fields": [{ "name": "subject", "type": "text", "required": true }] },
            { "tool": "list", "description": "Lists them.", "verb": "list", "collection": "tickets", "order": ["-priority"],
              "fields": [
                { "name": "priority", "type": "number", "match": "at-least" },
                { "name": "text", "type": "text", "column": "subject" },
            ] },
            { "tool": "look", "description": "Looks one up.", "verb": "lookup", "collection": "tickets", "fields": [key] },
            { "tool": "mine", "description": "One's own.", "verb": "list", "collection": "tickets", "fields": [
                { "name": "text", "type": "text", "column": "subject" },
                { "name": "owner", "type": "text", "from": "agent" },
            ] },
            { "tool": "person", "description": "A person.", "verb": "lookup", "collection": "people", "fields": [key] },
        ],
    });
    let mut shape = json!({ "name": "tickets", "key": ["id"], "fields": [
        { "key": "id", "type": "integer" },
        { "key": "subject", "type": "string" },
        { "key": "priority", "type": "integer", "nullable": true },
        { "key": "owner", "type": "string", "nullable": true },
        { "key": "status", "type": "string", "nullable": true },
        { "key": "secret", "type": "string", "nullable": true },
    ]});
    change(&mut file, &mut shape);
    let people = json!({ "name": "people", "key": ["id"], "fields": [
        { "key": "id", "type": "integer" }, { "key": "subject", "type": "string" } ] });
    let read = |shape: &Value| CollectionShape::read(&shape.to_string()).expect("a shape");
    let mut shapes: BTreeMap<String, CollectionShape> = ["tickets", "cases", "archive"]
        .into_iter()
        .map(|name| (name.to_owned(), read(&shape)))
        .collect();
    shapes.insert("people".to_owned(), read(&people));
    let source = form::read("-", &file.to_string()).expect("a contract");
    compile(&source, &shapes).unwrap_or_else(|problems| panic!("{problems:#?}"))
}
