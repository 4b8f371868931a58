//! Schemas as single clients take them: what each rule does, and that what comes of it keeps to the client's own list.

use std::{fs, path::Path};

use serde_json::{Value, json};
use weir_schema::client::{ClientProfile, ClientVerdict, RULES, lower};

fn object(properties: Value, required: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

#[track_caller]
fn check(profile: ClientProfile, input: Value, expected: Value, rules: &[&str]) {
    let lowered = lower("tool", &input, profile);
    let answer: Vec<&str> = lowered.remarks.iter().map(|remark| remark.rule).collect();
    assert_eq!(
        (&lowered.input, &answer[..]),
        (&expected, rules),
        "{:#?}",
        lowered.remarks
    );
}

#[test]
fn what_everybody_takes_stays_as_it_is() {
    let input = object(
        json!({ "a": { "type": "string", "description": "A." } }),
        json!(["a"]),
    );
    for profile in ClientProfile::ALL
        .into_iter()
        .filter(|profile| *profile != ClientProfile::Gemini)
    {
        check(profile, input.clone(), input.clone(), &[]);
    }
    let open = json!({ "type": "object", "properties": input["properties"], "required": ["a"] });
    check(ClientProfile::Gemini, input, open, &[]);
}

#[test]
fn no_client_takes_a_choice_between_argument_lists() {
    let mut input = object(
        json!({ "a": { "type": "string" }, "b": { "type": "string" } }),
        json!([]),
    );
    let expected = input.clone();
    input["anyOf"] = json!([{ "required": ["a"] }, { "required": ["b"] }]);
    for profile in [
        ClientProfile::Anthropic,
        ClientProfile::Openai,
        ClientProfile::Cursor,
        ClientProfile::Vscode,
    ] {
        check(profile, input.clone(), expected.clone(), &["top-level"]);
    }
    let text = || json!({ "type": "string" });
    let forms = json!([
        { "properties": { "by": { "const": "id" }, "id": text() }, "required": ["id"] },
        { "properties": { "by": { "const": "name" }, "name": text() }, "required": ["name"] },
    ]);
    let by = json!({ "anyOf": [{ "const": "id" }, { "const": "name" }] });
    check(
        ClientProfile::Anthropic,
        json!({ "type": "object", "oneOf": forms }),
        json!({ "type": "object", "properties": { "by": by, "id": text(), "name": text() } }),
        &["top-level"],
    );
    let whole = json!({ "type": "object", "allOf": [object(json!({ "a": { "type": "string" } }), json!(["a"]))] });
    check(
        ClientProfile::Anthropic,
        whole,
        object(json!({ "a": { "type": "string" } }), json!(["a"])),
        &[],
    );
}

/// Agents of OpenAI's SDK hold a model to no schema with a reference; one within itself cannot be written otherwise.
#[test]
fn strict_schemas_have_references_only_where_they_lead_back() {
    let names = json!({
        "city": { "type": "string" },
        "leg": {
            "type": "object", "additionalProperties": false, "required": ["to"],
            "properties": { "to": { "$ref": "#/$defs/city" }, "then": { "$ref": "#/$defs/leg" } },
        },
    });
    let strict = |properties: Value| {
        let input = json!({ "type": "object", "additionalProperties": false, "properties": properties, "$defs": names });
        lower("t", &input, ClientProfile::OpenaiStrict)
    };
    let plain =
        strict(json!({ "from": { "$ref": "#/$defs/city", "description": "Where it begins." } }));
    let from = json!({ "anyOf": [{ "type": "string", "description": "Where it begins." }, { "type": "null" }] });
    assert_eq!(plain.input["properties"]["from"], from);
    assert!(
        plain.input.get("$defs").is_none() && plain.remarks.is_empty(),
        "{plain:?}"
    );
    let route = strict(json!({ "route": { "$ref": "#/$defs/leg" } }));
    assert_eq!(
        route.input["properties"]["route"]["anyOf"][0],
        json!({ "$ref": "#/$defs/leg" })
    );
    assert!(!route.is_refused(), "{route:?}");
}

#[test]
fn references_are_replaced_and_a_schema_within_itself_is_ended() {
    let input = json!({
        "type": "object",
        "properties": { "node": { "$ref": "#/$defs/node", "description": "The first." } },
        "$defs": { "node": {
            "type": "object",
            "description": "A node.",
            "properties": { "name": { "type": "string" }, "next": { "$ref": "#/$defs/node" } },
        } },
    });
    let lowered = lower("tool", &input, ClientProfile::Anthropic);
    let node = &lowered.input["properties"]["node"];
    assert_eq!(
        (&node["description"], &node["properties"]["next"]),
        (&json!("The first."), &json!({ "type": "object" }))
    );
    assert!(!lowered.input.to_string().contains("$ref") && lowered.input.get("$defs").is_none());
    assert_eq!(lowered.remarks[0].rule, "reference");
    assert_eq!(
        lower("tool", &input, ClientProfile::Vscode).verdict(),
        ClientVerdict::Accept
    );
    // Each level names the one below twice: a billion objects in a kilobyte.
    let mut names = serde_json::Map::new();
    for level in 0..30 {
        let below = json!({ "$ref": format!("#/$defs/l{}", level + 1) });
        names.insert(
            format!("l{level}"),
            json!({ "type": "object", "properties": { "a": below, "b": below } }),
        );
    }
    names.insert("l30".to_owned(), json!({ "type": "string" }));
    let input = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/l0" } }, "$defs": names });
    for profile in [ClientProfile::Anthropic, ClientProfile::Gemini] {
        let lowered = lower("tool", &input, profile);
        let bytes = lowered.input.to_string().len();
        assert!(bytes < 256 << 10, "{bytes} bytes: {profile:?}");
    }
}

#[test]
fn a_copy_of_the_root_states_no_dialect() {
    let input = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "child": { "$ref": "#" } },
    });
    let lowered = lower("t", &input, ClientProfile::Anthropic);
    let child = &lowered.input["properties"]["child"];
    assert_eq!(child["type"], "object", "{lowered:?}");
    assert!(child.get("$schema").is_none(), "{lowered:?}");
}

/// A definition is found under whatever name it has, a property may be named like a keyword, and copies are bounded by what
/// they hold.
#[test]
fn references_in_odd_places_are_replaced_too() {
    let input = json!({
        "type": "object",
        "properties": {
            "mode": { "$ref": "#/$defs/Opt%3CMode%3E" },
            "default": { "$ref": "#/$defs/Opt%3CMode%3E" },
            "$ref": { "type": "integer" },
        },
        "$defs": { "Opt<Mode>": { "type": "string", "enum": ["a", "b"] } },
    });
    let lowered = lower("tool", &input, ClientProfile::Vscode);
    assert_eq!(lowered.input, input, "who follows references is sent them");
    let lowered = lower("tool", &input, ClientProfile::Anthropic);
    let mode = json!({ "type": "string", "enum": ["a", "b"] });
    let properties = json!({ "mode": mode, "default": mode, "$ref": { "type": "integer" } });
    assert_eq!(lowered.input["properties"], properties, "{lowered:?}");

    let values = vec![0; 10_000];
    let many: serde_json::Map<_, _> = (0..40)
        .map(|number| (format!("p{number}"), json!({ "$ref": "#/$defs/values" })))
        .collect();
    let input = json!({
        "type": "object", "properties": many, "$defs": { "values": { "enum": values } },
    });
    let lowered = lower("tool", &input, ClientProfile::Gemini);
    assert!(
        lowered.input.to_string().len() < 1 << 20,
        "{}",
        lowered.input.to_string().len()
    );
    let long = "x".repeat(1 << 20);
    let many: serde_json::Map<_, _> = (0..100)
        .map(|number| (format!("p{number}"), json!({ "$ref": "#/$defs/long" })))
        .collect();
    let input = json!({ "type": "object", "properties": many, "$defs": { "long": { "type": "string", "const": long } } });
    let lowered = lower("tool", &input, ClientProfile::Anthropic);
    assert!(
        lowered.input.to_string().len() < 4 << 20,
        "{}",
        lowered.input.to_string().len()
    );
}

#[test]
fn strict_functions_send_every_argument() {
    let input = object(
        json!({
            "name": { "type": "string", "minLength": 1, "title": "Name" },
            "size": { "type": "integer", "exclusiveMinimum": 0, "default": 3 },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "page": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
            "kind": { "oneOf": [{ "const": "a" }, { "const": "b" }] },
            "link": { "type": "string", "format": "uri" },
        }),
        json!(["name", "kind"]),
    );
    let expected = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "size": { "anyOf": [{ "type": "integer", "exclusiveMinimum": 0 }, { "type": "null" }] },
            "page": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "kind": { "anyOf": [{ "const": "a", "type": "string" }, { "const": "b", "type": "string" }] },
            "link": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        },
        "required": ["name", "size", "page", "kind", "link"],
        "additionalProperties": false,
    });
    check(
        ClientProfile::OpenaiStrict,
        input,
        expected,
        &["required", "keyword", "keyword", "union", "format"],
    );
    for open in [
        json!({}),
        json!({ "type": "object" }),
        json!({ "type": "array" }),
    ] {
        let lowered = lower(
            "tool",
            &object(json!({ "a": open }), json!([])),
            ClientProfile::OpenaiStrict,
        );
        assert_eq!(
            lowered.verdict(),
            ClientVerdict::Refuse,
            "{open}: {:?}",
            lowered.remarks
        );
        assert_eq!(lowered.remarks[0].rule, "open-object");
    }
    // The arguments themselves may have any name, which is not the same as none.
    let free = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let lowered = lower("tool", &free, ClientProfile::OpenaiStrict);
    assert_eq!(
        (lowered.verdict(), lowered.remarks[0].rule),
        (ClientVerdict::Refuse, "open-object")
    );
    let none = json!({ "type": "object" });
    let lowered = lower("tool", &none, ClientProfile::OpenaiStrict);
    assert_eq!(lowered.verdict(), ClientVerdict::Accept);
    let mut deep = json!({ "type": "string" });
    for _ in 0..11 {
        deep = object(json!({ "a": deep }), json!(["a"]));
    }
    let lowered = lower("tool", &deep, ClientProfile::OpenaiStrict);
    assert_eq!(lowered.remarks.last().expect("it is too deep").rule, "size");
}

#[test]
fn gemini_reads_a_part_of_the_schema_language() {
    let input = object(
        json!({
            "level": { "type": "integer", "enum": [1, 2] },
            "unit": { "const": "m" },
            "state": { "type": "string", "enum": ["", "open"] },
            "none": { "const": "" },
            "note": { "anyOf": [{ "type": "string", "maxLength": 9 }, { "type": "null" }], "description": "A note." },
            "page": { "type": ["string", "null"], "default": null },
            "either": { "type": ["string", "integer"] },
            "above": { "type": "integer", "exclusiveMinimum": 0 },
            "mail": { "type": "string", "format": "email" },
            "pair": { "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }] },
        }),
        json!(["level"]),
    );
    let expected = json!({
        "type": "object",
        "properties": {
            "level": { "type": "integer" },
            "unit": { "enum": ["m"], "type": "string" },
            "state": { "type": "string", "enum": ["open"] },
            "none": { "type": "string" },
            "note": { "type": "string", "maxLength": 9, "description": "A note." },
            "page": { "type": "string" },
            "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "above": { "type": "integer", "minimum": 1 },
            "mail": { "type": "string" },
            "pair": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "integer" }] } },
        },
        "required": ["level"],
    });
    check(
        ClientProfile::Gemini,
        input,
        expected,
        &["enum", "enum", "enum", "null", "null", "format", "items"],
    );
}

/// The type of an argument is listed however its schema is nested.
#[test]
fn gemini_is_told_what_stands_beside_null_whatever_it_is() {
    let (text, number, none) = (
        json!({ "type": "string" }),
        json!({ "type": "integer" }),
        json!({ "type": "null" }),
    );
    let either = json!({ "anyOf": [text, number] });
    for (nested, expected) in [
        (
            json!({ "anyOf": [{ "oneOf": [text, number] }, none] }),
            &either,
        ),
        (
            json!({ "anyOf": [{ "anyOf": [text, number] }, none] }),
            &either,
        ),
        (
            json!({ "oneOf": [{ "oneOf": [text, number] }, none] }),
            &either,
        ),
        (json!({ "anyOf": [text, number, none] }), &either),
        (json!({ "anyOf": [{ "allOf": [text] }, none] }), &text),
        (json!({ "anyOf": [{ "anyOf": [text, none] }, none] }), &text),
        (
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
            &json!({ "type": "string", "enum": ["a"] }),
        ),
    ] {
        let lowered = lower(
            "t",
            &object(json!({ "a": nested }), json!([])),
            ClientProfile::Gemini,
        );
        assert_eq!(lowered.input["properties"]["a"], *expected, "{nested}");
    }
}

#[test]
fn what_would_cost_the_others_is_refused() {
    let odd = object(json!({ "a b": { "type": "string" } }), json!([]));
    assert_eq!(
        lower("tool", &odd, ClientProfile::Anthropic).verdict(),
        ClientVerdict::Refuse
    );
    assert_eq!(
        lower("tool", &odd, ClientProfile::Openai).verdict(),
        ClientVerdict::Accept
    );
    // No argument of strict mode is without a type, and none that is required is without a schema.
    for input in [
        object(json!({ "a": { "type": "string" } }), json!(["a", "b"])),
        object(
            json!({ "a": { "type": "object", "properties": { "b": {} }, "required": ["b"] } }),
            json!([]),
        ),
        object(
            json!({ "a": { "enum": ["t", { "x": 1 }, [1]] } }),
            json!([]),
        ),
        object(json!({ "a": { "const": [] } }), json!(["a"])),
    ] {
        let lowered = lower("tool", &input, ClientProfile::OpenaiStrict);
        assert!(lowered.is_refused(), "{}", lowered.input);
    }
    let plain = object(json!({}), json!([]));
    assert_eq!(
        lower(&"n".repeat(55), &plain, ClientProfile::Cursor).verdict(),
        ClientVerdict::Accept
    );
    assert_eq!(
        lower(&"n".repeat(56), &plain, ClientProfile::Cursor).verdict(),
        ClientVerdict::Refuse
    );
    let long = object(
        json!({ "a": { "type": "string", "description": "x".repeat(2000) } }),
        json!([]),
    );
    let cut = lower("tool", &long, ClientProfile::Vscode);
    assert_eq!(
        cut.input["properties"]["a"]["description"]
            .as_str()
            .map(str::len),
        Some(1024)
    );
    let array = object(json!({ "a": { "type": "array" } }), json!([]));
    assert_eq!(
        lower("tool", &array, ClientProfile::Vscode).input["properties"]["a"]["items"],
        json!({})
    );
}

/// OpenAI refuses a whole request for one of them, and other vendors take it.
#[test]
fn openai_is_sent_no_pattern_that_looks_around() {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let list = |pattern: &str| json!({ "type": "array", "items": text(pattern) });
    let (looks, plain) = ("^(?!\\.)[a-z.]+$", "^(?:[a-z]+)(?<rest>[(?=]*)$");
    let input = object(
        json!({ "a": text(looks), "b": text(plain), "c": list(looks) }),
        json!(["a", "b", "c"]),
    );
    let text_alone = json!({ "type": "string" });
    let expected = object(
        json!({ "a": text_alone, "b": text(plain), "c": { "type": "array", "items": text_alone } }),
        json!(["a", "b", "c"]),
    );
    for profile in [ClientProfile::Openai, ClientProfile::OpenaiStrict] {
        check(
            profile,
            input.clone(),
            expected.clone(),
            &["pattern", "pattern"],
        );
    }
    for profile in [
        ClientProfile::Anthropic,
        ClientProfile::Cursor,
        ClientProfile::Vscode,
    ] {
        check(profile, input.clone(), input.clone(), &[]);
    }
}

/// What is beside a reference, or twice in `allOf`, holds as well.
#[test]
fn rules_that_hold_together_are_kept_together() {
    let (text, count) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let base = json!({ "type": "object", "properties": { "a": text }, "required": ["a"] });
    let extended =
        json!({ "$ref": "#/$defs/base", "properties": { "b": count }, "required": ["b"] });
    let input = json!({
        "type": "object",
        "properties": {
            "both": extended,
            "any": { "$ref": "#/$defs/any", "maxLength": 3 },
            "described": { "$ref": "#/$defs/base", "description": "Its own." },
        },
        "$defs": { "base": base, "any": true },
    });
    let lowered = lower("tool", &input, ClientProfile::Gemini);
    let both = json!({ "properties": { "b": count, "a": text }, "required": ["b", "a"], "type": "object" });
    assert_eq!(lowered.input["properties"]["both"], both, "{lowered:?}");
    assert_eq!(
        lowered.input["properties"]["any"],
        json!({ "maxLength": 3, "type": "string" })
    );
    assert!(lowered.remarks.is_empty(), "nothing is lost: {lowered:?}");
    let lowered = lower("tool", &input, ClientProfile::Anthropic);
    let both = json!({ "properties": { "b": count }, "required": ["b"], "allOf": [base] });
    assert_eq!(lowered.input["properties"]["both"], both);
    let mut described = base.clone();
    described["description"] = "Its own.".into();
    assert_eq!(lowered.input["properties"]["described"], described);

    let part = |schema: Value| json!({ "properties": { "a": schema } });
    let (short, long) = (
        json!({ "maxLength": 3 }),
        json!({ "minLength": 2, "maxLength": 9 }),
    );
    let twice = json!({ "type": "object", "allOf": [part(short.clone()), part(long.clone())] });
    let lowered = lower("tool", &twice, ClientProfile::Cursor);
    assert_eq!(
        lowered.input["properties"]["a"],
        json!({ "allOf": [short, long] })
    );
    let lowered = lower("tool", &twice, ClientProfile::Gemini);
    assert_eq!(
        lowered.input["properties"]["a"],
        json!({ "maxLength": 3, "minLength": 2, "type": "string" })
    );
    let lost: Vec<_> = lowered
        .remarks
        .iter()
        .map(|remark| (remark.rule, remark.at.as_str()))
        .collect();
    assert_eq!(lost, [("union", "/properties/a")]);
    let twice =
        json!({ "type": "object", "allOf": [{ "minProperties": 1 }, { "minProperties": 2 }] });
    assert_eq!(
        lower("tool", &twice, ClientProfile::Openai).remarks[0].rule,
        "top-level"
    );
}

#[test]
fn no_rule_is_left_out_in_silence() {
    let list = |items: Value| json!({ "type": "array", "items": items });
    let any = json!({ "anyOf": [
        { "type": "string" }, { "type": "number" }, { "type": "boolean" }, { "type": "object" },
        { "type": "array", "items": { "type": "string" } },
    ] });
    for (schema, expected, rules) in [
        (
            json!({ "type": ["string", "integer"], "anyOf": [{ "minLength": 2 }, { "minimum": 2 }] }),
            json!({ "anyOf": [{ "minLength": 2, "type": "string" }, { "minimum": 2, "type": "number" }] }),
            vec!["keyword"],
        ),
        (
            json!({ "enum": ["a", null] }),
            json!({ "enum": ["a"], "type": "string" }),
            vec!["null"],
        ),
        (
            json!({ "type": ["null"] }),
            json!({ "type": "null" }),
            vec![],
        ),
        (
            json!({ "type": "integer", "minimum": 0, "exclusiveMinimum": 4 }),
            json!({ "type": "integer", "minimum": 5 }),
            vec![],
        ),
        (
            json!({ "type": "integer", "maximum": 2, "exclusiveMaximum": 4 }),
            json!({ "type": "integer", "maximum": 2 }),
            vec![],
        ),
        (list(json!(true)), list(any.clone()), vec!["type"]),
        (list(json!(false)), list(any), vec!["keyword", "type"]),
    ] {
        let lowered = lower(
            "tool",
            &object(json!({ "a": schema }), json!([])),
            ClientProfile::Gemini,
        );
        assert_eq!(lowered.input["properties"]["a"], expected, "{schema}");
        let lost: Vec<_> = lowered.remarks.iter().map(|remark| remark.rule).collect();
        assert_eq!(lost, rules, "{schema}");
    }
    let lists = object(json!({ "a": { "type": ["array", "null"] } }), json!([]));
    let lowered = lower("tool", &lists, ClientProfile::Vscode);
    assert_eq!(
        lowered.input["properties"]["a"],
        json!({ "type": ["array", "null"], "items": {} })
    );
    let node = json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/node", "minProperties": 1, "type": "object" } } });
    let input = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/node" } }, "$defs": { "node": node } });
    let lowered = lower("tool", &input, ClientProfile::OpenaiStrict);
    let is_told = |rule: &str| lowered.remarks.iter().any(|remark| remark.rule == rule);
    assert!(is_told("reference"), "{lowered:?}");
}

/// Every schema of ten real servers comes out as the vendor lists it, whole, and unchanged when it is lowered again.
#[test]
fn schemas_of_real_servers_keep_to_each_list() {
    const GEMINI: [&str; 17] = [
        "type",
        "description",
        "properties",
        "required",
        "items",
        "enum",
        "anyOf",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minProperties",
        "maxProperties",
    ];
    fn walk(schema: &Value, see: &mut impl FnMut(&serde_json::Map<String, Value>)) {
        let Some(members) = schema.as_object() else {
            return;
        };
        see(members);
        for named in ["properties", "$defs"]
            .iter()
            .filter_map(|key| members.get(*key)?.as_object())
        {
            named.values().for_each(|schema| walk(schema, see));
        }
        for key in ["items", "additionalProperties"] {
            members
                .get(key)
                .into_iter()
                .for_each(|schema| walk(schema, see));
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            members
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .for_each(|schema| walk(schema, see));
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/extracted");
    let mut tools = 0;
    for file in fs::read_dir(folder).expect("a folder") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a text");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        for tool in document["items"]
            .as_array()
            .expect("items")
            .iter()
            .filter(|item| item["type"] == "tool")
        {
            let (name, input) = (
                tool["name"].as_str().expect("a name"),
                &tool["detail"]["input"]["json"],
            );
            tools += 1;
            for profile in ClientProfile::ALL {
                let lowered = lower(name, input, profile);
                assert!(
                    jsonschema::meta::is_valid(&lowered.input),
                    "{profile:?} {name}: {}",
                    lowered.input
                );
                let rules = lowered
                    .remarks
                    .iter()
                    .map(|remark| RULES.iter().find(|rule| rule.name == remark.rule));
                for rule in rules {
                    assert!(
                        rule.is_some_and(|rule| rule.clients.contains(&profile)),
                        "{profile:?} {name}"
                    );
                }
                if lowered.is_refused() {
                    continue;
                }
                let again = lower(name, &lowered.input, profile);
                assert_eq!(again.input, lowered.input, "{profile:?} {name}");
                walk(&lowered.input, &mut |members| match profile {
                    ClientProfile::Gemini => {
                        let other = members.keys().find(|key| !GEMINI.contains(&key.as_str()));
                        assert_eq!(other, None, "{name}: {members:?}");
                        assert!(
                            members.get("type").is_none_or(Value::is_string),
                            "{name}: {members:?}"
                        );
                    }
                    ClientProfile::OpenaiStrict
                        if members.get("type").is_some_and(|word| word == "object") =>
                    {
                        let names = members["properties"]
                            .as_object()
                            .expect("properties")
                            .keys();
                        let required = members["required"].as_array().expect("required").iter();
                        assert!(
                            names.eq(required.filter_map(Value::as_str)),
                            "{name}: {members:?}"
                        );
                        assert_eq!(members["additionalProperties"], false);
                    }
                    ClientProfile::Anthropic => {
                        assert!(!members.contains_key("$ref"), "{name}: {members:?}")
                    }
                    _ => {}
                });
            }
        }
    }
    assert!(tools > 90, "{tools} tools");
}

/// The table in the docs is this one.
#[test]
fn the_page_in_docs_has_every_rule() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/views.md"))
            .expect("a page");
    for rule in &RULES {
        let clients: Vec<&str> = rule.clients.iter().map(|client| client.word()).collect();
        let row = format!(
            "| `{}` | {} | {} |",
            rule.name,
            clients.join(", "),
            rule.does
        );
        assert!(page.contains(&row), "docs/views.md has no line\n{row}");
    }
}
