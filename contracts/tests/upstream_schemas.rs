//! Schemas of an upstream's tools as they are published: what was valid stays valid, and what was not does not become so.

use jsonschema::{Draft, Validator};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use weir_contracts::{
    ContractTool,
    offer::{ServerLists, compose},
    upstream::{UpstreamOptions, compile},
};

const DRAFTS: [(&str, Draft); 5] = [
    ("http://json-schema.org/draft-04/schema#", Draft::Draft4),
    ("http://json-schema.org/draft-06/schema#", Draft::Draft6),
    ("http://json-schema.org/draft-07/schema#", Draft::Draft7),
    (
        "https://json-schema.org/draft/2019-09/schema",
        Draft::Draft201909,
    ),
    (
        "https://json-schema.org/draft/2020-12/schema",
        Draft::Draft202012,
    ),
];

/// Returns the tool with that input, or why it is left out.
fn tool(input: &Value) -> Result<ContractTool, String> {
    let lists =
        json!({ "tools": [{ "name": "t", "description": "Does it.", "inputSchema": input }] });
    let (lists, _) = ServerLists::read("-", &lists.to_string()).expect("lists");
    let document = compose("-", &lists).document.compact();
    let upstream = UpstreamOptions {
        name: "up",
        contract: "up",
        ..UpstreamOptions::default()
    };
    let compiled = compile(&upstream, &document).expect("a document");
    match compiled.contract.tools.first() {
        Some(tool) => Ok(ContractTool::clone(tool)),
        None => Err(compiled.left_out[0].message.clone()),
    }
}

/// Reads a schema as its own dialect does, formats aside.
fn original(schema: &Value, draft: Draft) -> Option<Validator> {
    jsonschema::options()
        .with_draft(draft)
        .should_validate_formats(false)
        .offline()
        .build(schema)
        .ok()
}

fn translated(schema: &Value) -> Option<Validator> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(false)
        .offline()
        .build(schema)
        .ok()
}

/// Returns `(dialect, schema of one argument, [(value, whether it is valid)])`. `dependencies` is beside the keywords that
/// replaced it, in either order: both apply.
#[test]
fn dependencies_join_what_took_their_place() {
    let with = |value: Value| {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "type": "object",
            "properties": { "value": value },
        });
        translated(&tool(&schema).expect("a tool").input_schema.value()).expect("a schema")
    };
    for schema in [
        json!({ "dependencies": { "b": ["c"] }, "dependentRequired": { "a": ["c"] } }),
        json!({ "dependentRequired": { "a": ["c"] }, "dependencies": { "b": ["c"] } }),
        json!({ "dependencies": { "b": { "required": ["c"] } }, "dependentSchemas": { "a": { "required": ["c"] } } }),
    ] {
        let validator = with(schema.clone());
        for name in ["a", "b"] {
            assert!(
                !validator.is_valid(&json!({ "value": { name: null } })),
                "{schema}: {name}"
            );
            assert!(
                validator.is_valid(&json!({ "value": { name: null, "c": null } })),
                "{schema}: {name}"
            );
        }
    }
}

#[test]
fn each_dialect_means_the_same_in_the_newest() {
    let cases = [
        (
            0,
            json!({ "minimum": 3, "exclusiveMinimum": true }),
            vec![(json!(3), false), (json!(4), true)],
        ),
        (
            0,
            json!({ "maximum": 3, "exclusiveMaximum": true }),
            vec![(json!(3), false), (json!(2), true)],
        ),
        (
            0,
            json!({ "minimum": 3, "exclusiveMinimum": false }),
            vec![(json!(3), true), (json!(2), false)],
        ),
        (0, json!({ "const": 1 }), vec![(json!(2), true)]),
        (
            0,
            json!({ "type": "string", "if": { "minLength": 3 }, "then": false }),
            vec![(json!("abcd"), true)],
        ),
        (
            1,
            json!({ "exclusiveMinimum": 3 }),
            vec![(json!(3), false), (json!(4), true)],
        ),
        (
            1,
            json!({ "contains": { "const": 1 } }),
            vec![(json!([0, 1]), true), (json!([0]), false)],
        ),
        (
            2,
            json!({ "if": { "type": "string" }, "then": { "minLength": 2 } }),
            vec![(json!("a"), false), (json!(1), true)],
        ),
        (
            2,
            json!({ "contains": true, "minContains": 0 }),
            vec![(json!([]), false)],
        ),
        (
            2,
            json!({ "items": [{ "type": "string" }, { "type": "integer" }], "additionalItems": false }),
            vec![
                (json!(["a", 1]), true),
                (json!(["a"]), true),
                (json!([1]), false),
                (json!(["a", 1, 2]), false),
            ],
        ),
        (
            2,
            json!({ "items": [{ "type": "string" }], "additionalItems": { "type": "integer" } }),
            vec![(json!(["a", 1, 2]), true), (json!(["a", "b"]), false)],
        ),
        (
            2,
            json!({ "items": { "type": "string" }, "additionalItems": false }),
            vec![(json!(["a", "b"]), true)],
        ),
        (
            2,
            json!({ "dependencies": { "a": ["b"], "c": { "required": ["d"] } } }),
            vec![
                (json!({ "a": 1 }), false),
                (json!({ "a": 1, "b": 1 }), true),
                (json!({ "c": 1 }), false),
                (json!({ "c": 1, "d": 1 }), true),
            ],
        ),
        (
            2,
            json!({ "$ref": "#/definitions/short", "maxLength": 1 }),
            vec![(json!("abc"), true), (json!("abcde"), false)],
        ),
        (
            3,
            json!({ "$ref": "#/$defs/short", "maxLength": 1 }),
            vec![(json!("abc"), false), (json!("a"), true)],
        ),
        (
            2,
            json!({ "$ref": "#/definitions/tree" }),
            vec![
                (json!({ "of": [{ "of": [] }] }), true),
                (json!({ "of": [{ "of": [1] }] }), false),
            ],
        ),
        (
            2,
            json!({ "$ref": "#named" }),
            vec![(json!(1), true), (json!("a"), false)],
        ),
        (
            3,
            json!({ "$ref": "#anchored" }),
            vec![(json!(1), true), (json!("a"), false)],
        ),
        (
            0,
            json!({ "$ref": "https://example.org/own" }),
            vec![(json!("a"), true), (json!(1), false)],
        ),
        (
            2,
            json!({ "$ref": "https://example.org/own" }),
            vec![(json!("a"), true), (json!(1), false)],
        ),
        (
            2,
            json!({ "$ref": "#/components/schemas/Pet" }),
            vec![(json!(true), true), (json!(1), false)],
        ),
        (
            2,
            json!({ "$ref": "#/properties/a~1b%20c" }),
            vec![(json!(null), true), (json!(1), false)],
        ),
        (
            3,
            json!({ "type": "array", "items": { "$recursiveRef": "#" } }),
            vec![(json!([{ "value": [] }]), true), (json!([1]), false)],
        ),
        (
            3,
            json!({ "properties": { "a": {} }, "unevaluatedProperties": false }),
            vec![(json!({ "a": 1 }), true), (json!({ "b": 1 }), false)],
        ),
        (
            4,
            json!({ "dependencies": { "a": ["b"] } }),
            vec![(json!({ "a": 1 }), false), (json!({ "b": 1 }), true)],
        ),
        (
            4,
            json!({ "type": ["string", "null"], "minLength": 2 }),
            vec![
                (json!("ab"), true),
                (json!("a"), false),
                (json!(null), true),
                (json!(1), false),
            ],
        ),
        (
            4,
            json!({ "type": ["integer", "number", "null"], "enum": [1, 2.5, "a", null] }),
            vec![
                (json!(1), true),
                (json!(2.5), true),
                (json!(null), true),
                (json!("a"), false),
                (json!(3), false),
            ],
        ),
        (
            4,
            json!({ "maximum": 18_446_744_073_709_551_615_u64 }),
            vec![(json!(9_007_199_254_740_991_i64), true)],
        ),
    ];
    for (dialect, schema, values) in cases {
        let (name, draft) = DRAFTS[dialect];
        let definitions = if dialect < 3 { "definitions" } else { "$defs" };
        let whole = json!({
            "$schema": name,
            "type": "object",
            "properties": { "value": schema, "a/b c": { "type": "null" } },
            "components": { "schemas": { "Pet": { "type": "boolean" } } },
            definitions: {
                "short": { "type": "string", "maxLength": 4 },
                "tree": { "type": "object", "properties": { "of": { "type": "array", "items": { "$ref": format!("#/{definitions}/tree") } } } },
                "named": { if dialect == 0 { "id" } else { "$id" }: if dialect < 3 { "#named" } else { "urn:named" }, "type": "integer" },
                "anchored": { "$anchor": "anchored", "type": "integer" },
                "own": { if dialect == 0 { "id" } else { "$id" }: "https://example.org/own", "type": "string" },
            },
        });
        let published = tool(&whole).unwrap_or_else(|why| panic!("{name} {schema}: {why}"));
        let dialect = published.input_schema.value().get("$schema").cloned();
        assert_eq!(
            dialect,
            Some(json!("https://json-schema.org/draft/2020-12/schema"))
        );
        let (before, after) = (
            original(&whole, draft).expect("a schema"),
            translated(&published.input_schema.value()).expect("one"),
        );
        for (value, is_valid) in values {
            let value = json!({ "value": value });
            assert_eq!(
                before.is_valid(&value),
                is_valid,
                "the case itself: {name} {schema} {value}"
            );
            assert_eq!(
                after.is_valid(&value),
                is_valid,
                "{name} {schema} {value}: {}",
                published.input_schema.as_json()
            );
        }
    }
}

/// RFC 3986, section 5: a reference is read from the address of the document that it is written in.
#[test]
fn references_between_documents_inside_are_addresses() {
    for reference in [
        "/tree",
        "../tree",
        "../../tree",
        "../x/./../tree",
        "//example.org/tree",
        "HTTPS://EXAMPLE.org/tree",
        "?of=e",
    ] {
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://example.org/",
            "type": "object",
            "properties": { "value": { "$ref": "a/b?of=/c/d" } },
            "$defs": {
                "from": { "$id": "a/b?of=/c/d", "$ref": reference },
                "tree": { "$id": "tree", "type": "string" },
                "query": { "$id": "a/b?of=e", "type": "string" },
                "near": { "$id": "a/tree", "type": "integer" },
                "far": { "$id": "a/b?of=/c/tree", "type": "integer" },
            },
        });
        let published = tool(&whole).unwrap_or_else(|why| panic!("{reference}: {why}"));
        let before = original(&whole, Draft::Draft202012).expect("a schema");
        let after = translated(&published.input_schema.value()).expect("a schema");
        for (value, is_valid) in [
            (json!({ "value": "a" }), true),
            (json!({ "value": 1 }), false),
        ] {
            assert_eq!(before.is_valid(&value), is_valid, "{reference} {value}");
            assert_eq!(after.is_valid(&value), is_valid, "{reference} {value}");
        }
    }
}

/// Generators name the dialect of each schema that they write, and servers put those together.
#[test]
fn a_part_may_name_the_dialect_that_the_whole_has() {
    let of = |whole: Option<&str>, part: &str| {
        let part = json!({ "$schema": part, "type": "string" });
        let mut schema = json!({ "type": "object", "properties": { "value": part } });
        if let Some(dialect) = whole {
            schema["$schema"] = dialect.into();
        }
        tool(&schema).map(|tool| tool.input_schema.value())
    };
    let (newest, seventh) = (DRAFTS[4].0, "http://json-schema.org/draft-07/schema");
    let seventh_too = format!("{seventh}#");
    for (whole, part) in [
        (None, newest),
        (Some(newest), newest),
        (Some(seventh), seventh_too.as_str()),
    ] {
        let schema = of(whole, part).unwrap_or_else(|why| panic!("{whole:?} {part}: {why}"));
        assert_eq!(schema["properties"]["value"], json!({ "type": "string" }));
    }
    for (whole, part) in [
        (None, seventh),
        (Some(newest), seventh),
        (Some(seventh), newest),
    ] {
        let why = of(whole, part).expect_err("it is of another dialect");
        assert!(why.contains("dialect"), "{why}");
    }
}

/// Some exporters name a schema by its path, and what is published may have it elsewhere.
#[test]
fn references_by_path_lead_on_where_schemas_are_moved() {
    let node = json!({ "type": "object", "properties": {
        "children": { "type": "array", "items": { "$ref": "#/properties/nodes/items" } },
    } });
    let by_path = json!({ "type": "object", "properties": { "nodes": { "type": ["array", "null"], "items": node } } });
    let published = tool(&by_path).expect("it is published");
    let schema = translated(&published.input_schema.value()).expect("a schema");
    let of = |child: Value| json!({ "nodes": [{ "children": [{ "children": [child] }] }] });
    assert!(
        schema.is_valid(&of(json!({}))) && !schema.is_valid(&of(json!(1))),
        "{}",
        published.input_schema.as_json()
    );
    let arms = json!({ "type": "object", "anyOf": [
        { "properties": { "id": { "type": "string" } }, "required": ["id"] },
        { "properties": { "ref": { "$ref": "#/anyOf/0/properties/id" } }, "required": ["ref"] },
    ] });
    let published = tool(&arms).expect("it is published");
    let schema = translated(&published.input_schema.value()).expect("no reference leads nowhere");
    assert!(schema.is_valid(&json!({ "ref": "a" })) && !schema.is_valid(&json!({ "ref": 1 })));
}

/// Returns small values that schemas are about.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..6_i64).prop_map(Value::from),
        Just(json!(1.5)),
        "[ab]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Returns names, some of which clients refuse.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "a b", "ü", "a_b"]).prop_map(str::to_owned)
}

/// Returns schemas of any keywords, those of other dialects included, which then mean nothing.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!({})), keyword(Just(json!({})).boxed()), any_ref()];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 1..4).prop_map(|parts| {
            let parts = parts.into_iter().flat_map(|part| match part {
                Value::Object(members) => members,
                _ => Map::new(),
            });
            Value::Object(parts.collect())
        })
    })
}

fn any_ref() -> impl Strategy<Value = Value> {
    let target = prop::sample::select(vec![
        "#/definitions/one",
        "#/definitions/two",
        "#/definitions/a b",
    ]);
    (target, prop::option::of(0..3_u64)).prop_map(|(target, beside)| match beside {
        Some(length) => json!({ "$ref": target, "maxLength": length }),
        None => json!({ "$ref": target }),
    })
}

fn keyword(inner: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let types = prop::sample::subsequence(
        vec![
            "null", "boolean", "integer", "number", "string", "array", "object",
        ],
        1..4,
    );
    let named = |inner: BoxedStrategy<Value>| {
        prop::collection::vec((name(), inner), 1..3)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    };
    let names = || prop::collection::btree_set(name(), 1..3);
    let some = |inner: &BoxedStrategy<Value>| prop::collection::vec(inner.clone(), 1..3);
    prop_oneof![
        types.prop_map(|types| match types.as_slice() {
            [one] => json!({ "type": one }),
            several => json!({ "type": several }),
        }),
        (-2..4_i64, any::<bool>()).prop_map(
            |(bound, exclusive)| json!({ "minimum": bound, "exclusiveMinimum": exclusive })
        ),
        (-2..4_i64).prop_map(|bound| json!({ "exclusiveMaximum": bound })),
        (0..3_u64).prop_map(|length| json!({ "minLength": length })),
        (0..3_u64).prop_map(|count| json!({ "minContains": count })),
        value().prop_map(|value| json!({ "const": value })),
        prop::collection::vec(value(), 1..3).prop_map(|mut values| {
            values.dedup();
            json!({ "enum": [values[0]] })
        }),
        named(inner.clone()).prop_map(|schemas| json!({ "properties": schemas })),
        names().prop_map(|names| json!({ "required": names })),
        (name(), names()).prop_map(|(name, names)| json!({ "dependencies": { name: names } })),
        (name(), inner.clone())
            .prop_map(|(name, schema)| json!({ "dependencies": { name: schema } })),
        (name(), names()).prop_map(|(name, names)| json!({ "dependentRequired": { name: names } })),
        (name(), inner.clone())
            .prop_map(|(name, schema)| json!({ "dependentSchemas": { name: schema } })),
        inner
            .clone()
            .prop_map(|schema| json!({ "additionalProperties": schema })),
        any::<bool>().prop_map(|allowed| json!({ "additionalProperties": allowed })),
        some(&inner).prop_map(|schemas| json!({ "items": schemas })),
        inner.clone().prop_map(|schema| json!({ "items": schema })),
        inner
            .clone()
            .prop_map(|schema| json!({ "additionalItems": schema })),
        some(&inner).prop_map(|schemas| json!({ "prefixItems": schemas })),
        inner
            .clone()
            .prop_map(|schema| json!({ "contains": schema })),
        inner
            .clone()
            .prop_map(|schema| json!({ "propertyNames": schema })),
        inner.clone().prop_map(|schema| json!({ "not": schema })),
        some(&inner).prop_map(|schemas| json!({ "anyOf": schemas })),
        some(&inner).prop_map(|schemas| json!({ "oneOf": schemas })),
        some(&inner).prop_map(|schemas| json!({ "allOf": schemas })),
        (inner.clone(), inner.clone())
            .prop_map(|(condition, then)| json!({ "if": condition, "then": then })),
        inner.prop_map(|schema| json!({ "unevaluatedProperties": schema })),
    ]
    .boxed()
}

/// Returns the names of properties as they are published, in every object of a value that has them.
fn published_names(value: &Value, keys: &std::collections::BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let safe = keys
                    .iter()
                    .find(|(_, own)| *own == name)
                    .map_or(name, |(safe, _)| safe);
                (safe.clone(), published_names(value, keys))
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items
            .iter()
            .map(|item| published_names(item, keys))
            .collect(),
        other => other.clone(),
    }
}

fn has_name(value: &Value, names: &std::collections::BTreeMap<String, String>) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| names.contains_key(name) || has_name(value, names)),
        Value::Array(items) => items.iter().any(|item| has_name(item, names)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn a_value_is_valid_in_its_dialect_exactly_where_it_is_in_the_translation(
        dialect in 0..5_usize,
        schema in schema(),
        one in schema(),
        two in schema(),
        values in prop::collection::vec(value(), 1..12),
    ) {
        let (name, draft) = DRAFTS[dialect];
        let whole = json!({
            "$schema": name,
            "type": "object",
            "properties": { "value": schema },
            "definitions": { "one": one, "two": two, "a b": { "type": "string" } },
        });
        // Since draft 2019-09 `dependencies` is no keyword, and what it evaluates where it is one all the same is nowhere said.
        let text = whole.to_string();
        if text.contains("\"dependencies\"") && text.contains("\"unevaluatedProperties\"") {
            return Ok(());
        }
        let Some(before) = original(&whole, draft) else { return Ok(()) };
        // An input that cannot be translated is left out with a reason, never published otherwise.
        let Ok(tool) = tool(&whole) else { return Ok(()) };
        let keys = tool.offer().expect("an offer").keys.clone();
        let after = tool.argument_validator().expect("a schema");
        let after_alone = translated(&tool.input_schema.value()).expect("a schema");
        for value in values {
            let value = json!({ "value": value });
            // A member that no schema names cannot be distinguished from one that was published under its name.
            if has_name(&value, &keys) {
                continue;
            }
            let there = published_names(&value, &keys);
            prop_assert_eq!(before.is_valid(&value), after_alone.is_valid(&there), "{} {} → {}", whole, value, tool.input_schema.as_json());
            if before.is_valid(&value) && after.validate(&there.to_string()).is_err() {
                return Err(TestCaseError::fail(format!("{whole} {value} is refused")));
            }
        }
    }

    #[test]
    fn a_plain_root_takes_what_its_alternatives_take_and_calls_are_held_against_these(
        keyword in prop::sample::select(vec!["anyOf", "oneOf", "allOf"]),
        arms in prop::collection::vec(closed_object(), 1..4),
        values in prop::collection::vec(prop::collection::btree_map("[abc]", -1..3_i64, 0..4), 1..10),
    ) {
        let whole = json!({ "type": "object", keyword: arms });
        let before = original(&whole, Draft::Draft202012).expect("a schema");
        let tool = tool(&whole).expect("a tool");
        prop_assert!(["anyOf", "oneOf", "allOf"].iter().all(|keyword| tool.input_schema.value().get(*keyword).is_none()));
        let (published, checked) = (translated(&tool.input_schema.value()).expect("one"), tool.argument_validator().expect("one"));
        for value in values {
            let value = json!(value);
            prop_assert_eq!(before.is_valid(&value), checked.validate(&value.to_string()).is_ok(), "{} {}", whole, value);
            prop_assert!(!before.is_valid(&value) || published.is_valid(&value), "{} {} {}", whole, tool.input_schema.as_json(), value);
        }
    }
}

/// Returns closed objects of at most three numbers.
fn closed_object() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        Just(json!({ "type": "integer" })),
        (-1..3_i64).prop_map(|value| json!({ "const": value })),
        (-1..3_i64).prop_map(|value| json!({ "type": "integer", "minimum": value })),
    ];
    let properties = prop::collection::btree_map("[abc]", number, 1..4);
    (properties, prop::collection::vec(any::<bool>(), 4)).prop_map(|(properties, required)| {
        let required: Vec<&String> =
            properties.keys().zip(required).filter(|(_, is)| *is).map(|(name, _)| name).collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    })
}

/// Clients refuse an `enum` that names a value twice.
#[test]
fn what_is_listed_twice_is_published_once() {
    let input = json!({
        "type": "object",
        "properties": { "kind": { "type": "string", "enum": ["a", "b", "a"] } },
    });
    let published = tool(&input).expect("a tool").input_schema.value();
    assert_eq!(published["properties"]["kind"]["enum"], json!(["a", "b"]));
}

/// OpenAPI 3.0 has the bounds of draft 4, and servers that are made of its documents publish them without naming a dialect.
#[test]
fn bounds_that_are_exclusive_by_a_flag_are_read_as_draft_4_has_them() {
    let price = json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false });
    let input = json!({ "type": "object", "properties": { "price": price, "rows": { "type": "array", "items": [] } } });
    let published = tool(&input).expect("a tool").input_schema.value();
    assert_eq!(
        published["properties"]["price"],
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 9 })
    );
    assert_eq!(
        published["properties"]["rows"],
        json!({ "type": "array", "items": {} })
    );
    // One that names the dialect is read by it, also where another fault is taken out of it.
    let price = json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true, "title": null });
    let (dialect, _) = DRAFTS[0];
    let input = json!({ "$schema": dialect, "type": "object", "properties": { "price": price } });
    let published = tool(&input).expect("a tool").input_schema.value();
    assert_eq!(
        published["properties"]["price"],
        json!({ "type": "number", "exclusiveMinimum": 0 })
    );
}

/// Some generators write bounds beyond doubles. They cost neither their tool nor the others of the server.
#[test]
fn a_bound_beyond_doubles_bounds_nothing() {
    let number = r#"{"type": "number", "minimum": -1e400, "maximum": 1e400, "default": 1e999}"#;
    let lists = format!(
        r#"{{"tools": [{{"name": "t", "description": "Does it.",
            "inputSchema": {{"type": "object", "properties": {{"n": {number}}}}}}}]}}"#
    );
    let (lists, _) = ServerLists::read("-", &lists).expect("lists");
    let document = compose("-", &lists).document.pinned();
    let upstream = UpstreamOptions {
        name: "up",
        contract: "up",
        ..UpstreamOptions::default()
    };
    let compiled = compile(&upstream, &document).expect("a document");
    let tool = compiled.contract.tools.first().expect("a tool");
    let published = tool.input_schema.value();
    assert_eq!(published["properties"]["n"], json!({ "type": "number" }));
}

/// A server decides what numbers it takes, and how they are rounded is not for us to say.
#[test]
fn integers_of_64_bits_are_taken_with_their_digits() {
    let input = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
    let validator = tool(&input)
        .expect("a tool")
        .argument_validator()
        .expect("a schema");
    for id in [
        "1234567890123456789",
        "-9223372036854775808",
        "18446744073709551615",
    ] {
        let arguments = validator.validate(&format!("{{\"id\":{id}}}")).expect(id);
        assert_eq!(arguments["id"].to_string(), id);
    }
    for (arguments, reason) in [
        (r#"{"id":99999999999999999999}"#, "out_of_range"),
        (r#"{"id":"1234567890123456789"}"#, "wrong_type"),
    ] {
        let refused = validator.validate(arguments).expect_err(arguments);
        assert_eq!(refused.errors[0].reason, reason, "{arguments}");
    }
}
