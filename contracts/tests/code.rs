//! Definitions of a plugin in, a contract or problems out: every case is a file of `tests/code`.
//!
//! A case is `{"definitions": …, "prefix"?, "only"?, "clear"?}` with `"contract"` or `"problems"` beside it, which
//! `UPDATE_GOLDENS=1` writes; read the diff.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};
use weir_contracts::{
    code::{PluginOptions, compile},
    compile::result_arm,
    contract::CallTarget,
};

const PLUGIN: PluginOptions<'_> = PluginOptions {
    name: "plugin",
    contract: "plugin",
    prefix: "",
    only: None,
    rate: None,
    timeout_ms: Some(5_000),
    clear: &[],
    approved: &[],
};

#[test]
fn every_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/code");
    let mut cases: Vec<_> = fs::read_dir(&folder)
        .expect("the cases")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    cases.sort();
    let mut wrong = Vec::new();
    for path in &cases {
        let text = fs::read_to_string(path).expect("a case");
        let mut case: Map<String, Value> = serde_json::from_str(&text).expect("an object");
        case.retain(|name, _| !["contract", "problems"].contains(&name.as_str()));
        let names = |member: &str| -> Option<Vec<String>> {
            case.get(member)
                .map(|names| serde_json::from_value(names.clone()).expect("names"))
        };
        let (only, clear) = (names("only"), names("clear").unwrap_or_default());
        let approved = names("approved").unwrap_or_default();
        let prefix = case
            .get("prefix")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        // A text is taken as it is, for what no JSON value can say.
        let definitions = match &case["definitions"] {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let plugin = PluginOptions {
            prefix: &prefix,
            only: only.as_deref(),
            clear: &clear,
            approved: &approved,
            ..PLUGIN
        };
        match compile(&plugin, &definitions) {
            Ok(contract) => case.insert("contract".to_owned(), contract.to_artifact()),
            Err(problems) => case.insert("problems".to_owned(), json!(problems)),
        };
        let came = serde_json::to_string_pretty(&Value::Object(case)).expect("JSON") + "\n";
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(path, &came).expect("written");
        } else if came != text {
            wrong.push(format!("{}:\n{came}", path.display()));
        }
    }
    assert!(cases.len() >= 12, "the cases are there");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each case has values, and whether the tool answers them: the published schema takes exactly those, and every error.
#[test]
fn what_is_published_takes_what_the_tool_answers_and_every_error() {
    let tree = json!({"type": "object", "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "additionalProperties": false});
    let cases = [
        (
            json!({"type": "string", "minLength": 2}),
            vec![(json!("ab"), true), (json!("a"), false), (json!(1), false)],
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            vec![(json!([1]), true), (json!(["1"]), false)],
        ),
        (
            json!({"type": ["object", "null"]}),
            vec![
                (json!(null), true),
                (json!({"code": 1}), true),
                (json!(1), false),
            ],
        ),
        (json!({}), vec![(json!(null), true), (json!({}), true)]),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            vec![(json!({"a": "b"}), true), (json!({"a": 1}), false)],
        ),
        (
            json!({"type": "object", "properties": {"code": {"type": "integer"}, "to": {"type": "string"}}, "required": ["code"]}),
            vec![
                (json!({"code": 1, "to": "x"}), true),
                (json!({"to": "x"}), false),
                (json!({"code": "x"}), false),
            ],
        ),
        (
            json!({"$defs": {"tree": tree}, "type": "object", "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "additionalProperties": false}),
            vec![
                (json!({"of": [{"of": []}]}), true),
                (json!({"of": [{"of": [{"off": 1}]}]}), false),
            ],
        ),
        (
            json!({"$defs": {"tree": tree}, "$ref": "#/$defs/tree"}),
            vec![
                (json!({"of": [{}]}), true),
                (json!({"of": [{"off": 1}]}), false),
            ],
        ),
        (
            json!({"type": "array", "items": {"$ref": "#"}}),
            vec![(json!([[], [[]]]), true), (json!([[1]]), false)],
        ),
    ];
    for (schema, answers) in cases {
        let definitions =
            json!([{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}])
                .to_string();
        let contract =
            compile(&PLUGIN, &definitions).unwrap_or_else(|problems| panic!("{problems:?}"));
        let published = contract.tools[0]
            .output_schema
            .as_ref()
            .expect("a schema")
            .value();
        let wrapped =
            matches!(&contract.tools[0].target, CallTarget::Offer(offer) if offer.wrapped);
        let takes = |schema: &Value, value: &Value| {
            jsonschema::validator_for(schema)
                .expect("a schema")
                .is_valid(value)
        };
        for (answer, fits) in answers {
            let structured = if wrapped {
                json!({ "result": answer })
            } else {
                answer
            };
            assert_eq!(
                takes(&result_arm(&published), &structured),
                fits,
                "{schema}: {structured} alone"
            );
            assert!(
                !fits || takes(&published, &structured),
                "{schema}: {structured} in {published}"
            );
        }
        let error = json!({"code": "conflict", "call_id": "c_1", "message": "x", "retry_after_ms": 7, "errors": []});
        assert!(
            takes(&published, &error),
            "{schema}: an error in {published}"
        );
    }
}
