//! A client that knows nothing but the error repairs any call in one retry.

use std::collections::BTreeMap;

use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Map, Value, json};
use weir_contracts::{compile, form, validate::ArgumentValidator};

/// Follows `structuredContent` to the letter, as an agent's harness would.
fn repair(arguments: &Value, error: &Value) -> Value {
    let mut arguments = arguments.clone();
    for problem in error["errors"].as_array().expect("a list of errors") {
        let path = problem["path"].as_str().expect("a path");
        let Some((parent, last)) = path.rsplit_once('/') else {
            if let Some(example) = problem.get("example") {
                arguments = example.clone();
            }
            continue;
        };
        let name = last.replace("~1", "/").replace("~0", "~");
        let Some(parent) = arguments.pointer_mut(parent) else {
            continue;
        };
        match (parent, problem["reason"].as_str()) {
            (Value::Object(map), Some("unknown_argument")) => {
                let value = map.remove(&name);
                if let (Some(value), Some(near)) = (value, problem["suggestion"].as_str()) {
                    map.insert(near.to_owned(), value);
                }
            }
            (Value::Object(map), _) => {
                if let Some(example) = problem.get("example") {
                    map.insert(name, example.clone());
                }
            }
            (Value::Array(items), _) => {
                if let (Some(example), Ok(index)) = (problem.get("example"), name.parse::<usize>())
                {
                    items[index] = example.clone();
                }
            }
            _ => {}
        }
    }
    arguments
}

/// Follows the text alone, line by line, as a model would that is shown nothing else.
fn repair_by_text(arguments: &Value, text: &str) -> Value {
    let mut arguments = arguments.clone();
    for line in text.lines().skip(1) {
        let (path, answer) = match line.strip_prefix("arguments: ") {
            Some(answer) => (String::new(), answer),
            None if line.starts_with('"') => {
                let mut parts = serde_json::Deserializer::from_str(line).into_iter::<String>();
                let Some(Ok(path)) = parts.next() else {
                    continue;
                };
                (path, &line[parts.byte_offset()..])
            }
            None => match line.split_once(": ") {
                Some((path, answer)) => (path.to_owned(), answer),
                None => continue,
            },
        };
        let after = |words: &str| answer.rsplit_once(words).map(|(_, rest)| rest);
        // A value may hold the word itself.
        let example = answer.match_indices(" Example: ").find_map(|(at, words)| {
            serde_json::from_str::<Value>(&answer[at + words.len()..]).ok()
        });
        let near = after(" Did you mean ")
            .and_then(|rest| serde_json::from_str::<String>(rest.strip_suffix('?')?).ok());
        let Some((parent, last)) = path.rsplit_once('/') else {
            arguments = example.unwrap_or(arguments);
            continue;
        };
        let name = last.replace("~1", "/").replace("~0", "~");
        let is_unknown = answer.contains("is not an argument of this tool");
        match (arguments.pointer_mut(parent), near, example) {
            (Some(Value::Object(map)), near, _)
                if is_unknown || answer.ends_with(" Leave it out.") =>
            {
                if let (Some(value), Some(near)) = (map.remove(&name), near) {
                    map.insert(near, value);
                }
            }
            (Some(Value::Object(map)), Some(near), _) => drop(map.insert(name, near.into())),
            (Some(Value::Object(map)), None, Some(example)) => drop(map.insert(name, example)),
            (Some(Value::Array(items)), near, example) => {
                if let (Some(value), Ok(index)) =
                    (near.map(Value::from).or(example), name.parse::<usize>())
                {
                    items[index] = value;
                }
            }
            _ => {}
        }
    }
    arguments
}

/// Wrong calls, and those of them that one retry by the text alone repaired.
#[derive(Default)]
struct Tally {
    wrong: usize,
    repaired: usize,
    left: Vec<String>,
}

impl Tally {
    fn count(&mut self, schema: &Value, arguments: &Value) {
        let validator = ArgumentValidator::new(schema).expect("a good schema");
        let Err(refused) = validator.validate(&arguments.to_string()) else {
            return;
        };
        let text = refused.text();
        let repaired = repair_by_text(arguments, &text);
        self.wrong += 1;
        match validator.validate(&repaired.to_string()) {
            Ok(_) => self.repaired += 1,
            Err(again) => self.left.push(format!(
                "{schema}\nsent {arguments}\n{text}\nagain {}",
                again.text()
            )),
        }
    }

    #[track_caller]
    fn check(&self) {
        let Self {
            wrong,
            repaired,
            left,
        } = self;
        assert!(*wrong >= 100, "{wrong} wrong calls say too little");
        let shown = &left[..left.len().min(3)];
        assert!(
            repaired * 100 >= wrong * 95,
            "{repaired} of {wrong} are repaired:\n{}",
            shown.join("\n\n")
        );
    }
}

#[track_caller]
fn check_repairable(schema: &Value, arguments: &Value) {
    let validator = ArgumentValidator::new(schema).expect("a good schema");
    let Err(refused) = validator.validate(&arguments.to_string()) else {
        return;
    };
    let content: Value =
        serde_json::from_str(&refused.structured_content().to_json()).expect("JSON");
    assert!(!refused.errors.is_empty());
    assert_eq!(content["field"], json!(refused.errors[0].field));
    assert_eq!(content["reason"], json!(refused.errors[0].reason));
    for error in &refused.errors {
        let known = weir_contracts::validate::REASONS
            .iter()
            .any(|(reason, _)| *reason == error.reason);
        assert!(known, "{} is in the table", error.reason);
    }
    let repaired = repair(arguments, &content);
    if let Err(again) = validator.validate(&repaired.to_string()) {
        panic!(
            "schema {schema}\nsent {arguments}\nerror {content}\nrepaired {repaired}\nagain {again:?}"
        );
    }
}

/// Checks the refusal of a validator that has refused other arguments before.
#[track_caller]
fn check_told_as_new(worn: &ArgumentValidator, schema: &Value, arguments: &Value) {
    let answer = |validator: &ArgumentValidator| {
        let refused = validator.validate(&arguments.to_string());
        refused.map_err(|refused| refused.structured_content().to_json())
    };
    let new = ArgumentValidator::new(schema).expect("a schema");
    assert_eq!(
        answer(worn),
        answer(&new),
        "schema {schema}, sent {arguments}"
    );
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-d]{1,3}", "[a-d]{1,2}/[a-d]~", "[é-ñ名前]{1,3}"]
}

/// Returns the name of a field; [`odd`] turns it into a name as [`name`] makes them.
fn field_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-d]{1,3}", "[a-d]{1,2}\\.[a-d]-", "[a-d]_[a-d]"]
}

fn odd(name: &str) -> String {
    name.replace('.', "/").replace('-', "~").replace('_', "é名")
}

/// Names that a contract cannot have, and any other schema can.
fn with_odd_names(schema: &mut Value) {
    let Value::Object(map) = schema else {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(with_odd_names);
        }
        return;
    };
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let all = std::mem::take(properties).into_iter();
                properties.extend(all.map(|(name, mut property)| {
                    with_odd_names(&mut property);
                    // Members of a file are the compiler's.
                    (
                        if name == "mime_type" {
                            name
                        } else {
                            odd(&name)
                        },
                        property,
                    )
                }));
            }
            ("required", Value::Array(names)) => names.iter_mut().for_each(|name| {
                if name != "mime_type" {
                    *name = odd(name.as_str().unwrap_or_default()).into();
                }
            }),
            ("enum" | "default" | "pattern" | "format", _) => {}
            (_, inner) => with_odd_names(inner),
        }
    }
}

fn field(depth: u32) -> BoxedStrategy<Value> {
    let bounds = (-20_i32..20, 0_i32..20);
    let choices = proptest::collection::btree_set("[a-z]{1,6}", 1..5);
    let leaf = prop_oneof![
        (0_u64..4, 0_u64..6)
            .prop_map(|(least, more)| json!({"type": "text", "min_length": least, "max_length": least + more})),
        prop_oneof![
            Just("^[A-Z]{2}-\\d{3}$"),
            Just("^(a|b)+$"),
            Just("x"),
            Just("^\\w+@\\w+\\.com$"),
            Just("^[^a]{3,}$"),
            Just("^[Aa][Bb][Cc]")
        ]
        .prop_map(|pattern| json!({"type": "text", "pattern": pattern})),
        Just(json!({"type": "text", "pattern": "^[a-z]+$", "min_length": 5, "max_length": 9})),
        Just(json!({"type": "multiline"})),
        Just(json!({"type": "email"})),
        Just(json!({"type": "url"})),
        Just(json!({"type": "date"})),
        Just(json!({"type": "datetime"})),
        Just(json!({"type": "checkbox"})),
        Just(json!({"type": "file"})),
        Just(json!({"type": "json", "schema": {
            "oneOf": [{ "$ref": "#/$defs/Point" }, { "type": "string", "minLength": 3 }],
            "$defs": { "Point": { "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] } },
        }})),
        Just(json!({"type": "number"})),
        bounds.clone().prop_map(|(least, more)| json!({"type": "number", "min": least, "max": least + more})),
        bounds.prop_map(
            |(least, more)| json!({"type": "number", "min": f64::from(least) + 0.5, "max": f64::from(least + more) + 0.75})
        ),
        (1_i32..5, 1_i32..50)
            .prop_map(|(step, least)| json!({"type": "number", "step": step, "min": least, "max": least + 10})),
        Just(json!({"type": "number", "step": 0.1, "min": 0.25})),
        choices.clone().prop_map(|choices| json!({"type": "dropdown", "choices": choices})),
        (choices, 0_u64..3).prop_map(|(choices, least)| {
            let least = least.min(choices.len() as u64);
            json!({"type": "multi-choice", "choices": choices, "min_items": least})
        }),
    ];
    let leaf = (leaf, any::<bool>(), any::<bool>()).prop_map(|(mut field, required, nullable)| {
        field["required"] = required.into();
        field["nullable"] = nullable.into();
        field
    });
    match depth {
        0 => leaf.boxed(),
        _ => prop_oneof![
            4 => leaf,
            1 => fields(depth - 1).prop_map(|fields| json!({"type": "record", "fields": fields})),
            1 => (field(depth - 1), 0_u64..3).prop_map(|(mut of, least)| {
                of.as_object_mut().expect("a field").remove("required");
                json!({"type": "list", "of": of, "min_items": least, "max_items": least + 2})
            }),
        ]
        .boxed(),
    }
}

fn fields(depth: u32) -> BoxedStrategy<Vec<Value>> {
    proptest::collection::vec((field_name(), field(depth)), 0..6)
        .prop_map(|fields| {
            let named: BTreeMap<String, Value> = fields.into_iter().collect();
            named
                .into_iter()
                .map(|(name, mut field)| {
                    field["name"] = name.into();
                    field
                })
                .collect()
        })
        .boxed()
}

fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-30_i64..30).prop_map(Value::from),
        (-30.0_f64..30.0).prop_map(Value::from),
        "[a-z]{0,7}".prop_map(Value::from),
        Just(json!("2024-01-31")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name(), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
    .boxed()
}

fn arguments() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map(prop_oneof![name(), "[a-e]{1,4}"], anything(), 0..7)
        .prop_map(|map| json!(map))
}

fn schema_of(fields: &[Value], update: bool) -> Value {
    let form = json!([{ "tool": "t", "fields": fields }]);
    let source = form::read("-", &form.to_string()).expect("a form");
    let contract = compile(&source, &BTreeMap::new())
        .unwrap_or_else(|problems| panic!("{form}\n{problems:?}"));
    let mut schema = contract.tools[0].input_schema.value();
    with_odd_names(&mut schema);
    let count = schema["properties"].as_object().map_or(0, Map::len);
    let required = schema["required"].as_array().map_or(0, Vec::len);
    // An update needs something beside what is required.
    if update && count > required {
        schema["minProperties"] = (required + 1).into();
    }
    schema
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn one_retry_repairs(fields in fields(2), arguments in arguments(), update in any::<bool>()) {
        check_repairable(&schema_of(&fields, update), &arguments);
    }

    #[test]
    fn a_refusal_is_the_same_whatever_was_refused_before(
        fields in fields(2),
        sent in proptest::collection::vec(arguments(), 2..6),
        update in any::<bool>(),
    ) {
        let schema = schema_of(&fields, update);
        let worn = ArgumentValidator::new(&schema).expect("a schema");
        sent.iter().chain(&sent).for_each(|arguments| check_told_as_new(&worn, &schema, arguments));
    }

    #[test]
    fn the_sent_values_are_never_told(fields in fields(1), secret in "[A-Z]{12}") {
        let schema = schema_of(&fields, false);
        let validator = ArgumentValidator::new(&schema).expect("a schema");
        let names = schema["properties"].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let sent: Map<String, Value> =
            names.into_iter().map(|name| (name, json!({ "deep": [secret.as_str()] }))).collect();
        if let Err(refused) = validator.validate(&Value::Object(sent).to_string()) {
            prop_assert!(!refused.structured_content().to_json().contains(&secret));
        }
    }
}

/// This call took a model five tries when the text named its first error alone.
#[test]
fn the_ticket_is_repaired_by_its_text() {
    let form = include_str!("cases/create_ticket/form.json");
    let contract =
        compile(&form::read("-", form).expect("a form"), &BTreeMap::new()).expect("compiles");
    let mut tally = Tally::default();
    let sent = json!({ "subject": "", "priority": "9", "status": "opne", "x": 1 });
    tally.count(&contract.tools[0].input_schema.value(), &sent);
    assert_eq!((tally.wrong, tally.repaired), (1, 1), "{:?}", tally.left);
}

#[test]
fn one_retry_by_the_text_alone_repairs() {
    let mut runner = TestRunner::deterministic();
    let calls = (
        fields(2),
        proptest::collection::vec(arguments(), 4),
        any::<bool>(),
    );
    let mut tally = Tally::default();
    for _ in 0..300 {
        let (fields, sent, update) = calls.new_tree(&mut runner).expect("a case").current();
        let schema = schema_of(&fields, update);
        sent.iter()
            .for_each(|arguments| tally.count(&schema, arguments));
    }
    let (schemas, sent) = by_hand();
    schemas.iter().for_each(|schema| {
        sent.iter()
            .for_each(|arguments| tally.count(schema, arguments))
    });
    tally.check();
}

#[test]
fn other_schemas() {
    let (schemas, sent) = by_hand();
    for schema in &schemas {
        let worn = ArgumentValidator::new(schema).expect("a schema");
        for arguments in &sent {
            check_repairable(schema, arguments);
            check_told_as_new(&worn, schema, arguments);
        }
        sent.iter()
            .for_each(|arguments| check_told_as_new(&worn, schema, arguments));
    }
}

/// Returns schemas that people write by hand, with what the field table does not have, and calls of them.
fn by_hand() -> (Vec<Value>, Vec<Value>) {
    let schemas = vec![
        json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "string", "enum": ["x"]}]}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"oneOf": [{"const": 1}, {"const": 2}]}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"oneOf": [
            {"type": "object", "properties": {"k": {"const": "x"}, "n": {"type": "integer"}}, "required": ["k", "n"], "additionalProperties": false},
            {"type": "object", "properties": {"k": {"const": "y"}, "s": {"type": "string"}}, "required": ["k", "s"], "additionalProperties": false},
        ]}}, "required": ["a"]}),
        json!({"$defs": {"p": {"type": "string", "pattern": "^[0-9]{4}$"}}, "type": "object", "properties": {"a": {"$ref": "#/$defs/p"}}, "required": ["a"]}),
        json!({"$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}, "required": ["v"]}}, "type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"allOf": [{"type": "integer"}, {"minimum": 5}, {"maximum": 7}]}}, "required": ["a"]}),
        json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false, "minItems": 2}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "array", "contains": {"const": 5}}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"not": {"type": "string"}, "type": ["string", "integer"]}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "dependentRequired": {"a": ["b"]}, "unevaluatedProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "required": ["a"]}),
        json!({"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "propertyNames": {"maxLength": 4}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"type": "string", "format": "email", "minLength": 30}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "string", "format": "uuid"}, "b": {"format": "ipv4", "type": "string"}}, "required": ["a", "b"]}),
    ];
    let sent = vec![
        json!({}),
        json!({"a": null}),
        json!({"a": 1}),
        json!({"a": "zzz"}),
        json!({"a": []}),
        json!({"a": {"k": "x"}}),
        json!({"a": {"v": "no", "next": {"v": "no"}}}),
        json!({"a": [1, 2, 3]}),
        json!({"b": "q", "c": 1}),
        json!({"x1": "no", "xtoolong": 1, "y": 2}),
        json!({"a": true, "b": [], "unknown": {}}),
        json!({"a": 0.5}),
    ];
    (schemas, sent)
}
