//! Values near what two schemas say: mostly valid, and wrong in one place.

use serde_json::{Map, Value, json};

use super::tape::Tape;

const VALUES: usize = 24;

pub(crate) fn near(tape: &mut Tape<'_>, old: &Value, new: &Value) -> Vec<Value> {
    let mut values: Vec<Value> = plain();
    for round in 0..VALUES {
        for schema in [old, new] {
            values.push(
                Maker {
                    root: schema,
                    other: if round % 2 == 0 { old } else { new },
                }
                .value(tape, schema, 0),
            );
        }
    }
    values
}

fn plain() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(-1),
        json!(1.5),
        json!(0.5),
        json!(0.1),
        json!(2.5),
        json!(6),
        json!(1e15),
        json!(""),
        json!("a"),
        json!("b"),
        json!("ab"),
        json!("aaa"),
        json!("12"),
        json!("2024-01-31"),
        json!("a@example.com"),
        json!("open"),
        json!([]),
        json!([1, 1]),
        json!(["a"]),
        json!([null, 2]),
        json!([{}, [], "a", 1]),
        json!({}),
        json!({ "a": 1 }),
        json!({ "a": "a", "b": null }),
        json!({ "zz": 1 }),
        json!({ "kind": "a" }),
        json!({ "kind": "b", "a": 1, "names": [] }),
    ]
}

struct Maker<'s> {
    root: &'s Value,
    other: &'s Value,
}

impl Maker<'_> {
    fn value(&self, tape: &mut Tape<'_>, schema: &Value, depth: usize) -> Value {
        let plain = plain();
        if depth > 4 || tape.one_in(7) {
            return tape.pick(&plain).clone();
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let target = reference
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer));
            return target.map_or(Value::Null, |target| self.value(tape, target, depth + 1));
        }
        for key in ["enum", "anyOf", "oneOf", "allOf"] {
            let Some(Value::Array(all)) = schema.get(key) else {
                continue;
            };
            if all.is_empty() || tape.one_in(3) {
                continue;
            }
            let one = tape.pick(all);
            return if key == "enum" {
                one.clone()
            } else {
                self.value(tape, one, depth + 1)
            };
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        let word = match schema.get("type") {
            Some(Value::String(word)) => word.as_str(),
            Some(Value::Array(words)) if !words.is_empty() => {
                tape.pick(words).as_str().unwrap_or("null")
            }
            _ if schema.get("properties").is_some() || schema.get("required").is_some() => "object",
            _ if schema.get("items").is_some() || schema.get("prefixItems").is_some() => "array",
            _ => *tape.pick(&["string", "number", "object", "array", "integer", "null"]),
        };
        match word {
            "object" => self.object(tape, schema, depth),
            "array" => self.list(tape, schema, depth),
            "integer" | "number" => number(tape, schema),
            "string" => text(tape, schema),
            "boolean" => json!(tape.one_in(2)),
            _ => Value::Null,
        }
    }

    fn object(&self, tape: &mut Tape<'_>, schema: &Value, depth: usize) -> Value {
        let mut made = Map::new();
        let nothing = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&nothing);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, inner) in properties {
            if tape.below(4)
                < if required.contains(&name.as_str()) {
                    4
                } else {
                    2
                }
            {
                made.insert(name.clone(), self.value(tape, inner, depth + 1));
            }
        }
        for name in required
            .iter()
            .filter(|name| !properties.contains_key(**name))
        {
            made.insert(
                (*name).to_owned(),
                self.value(
                    tape,
                    schema.get("additionalProperties").unwrap_or(&Value::Null),
                    depth + 1,
                ),
            );
        }
        // A name of the other schema, or an unknown one.
        let others = self
            .other
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&nothing);
        if tape.one_in(3)
            && let Some((name, inner)) = others.iter().nth(tape.below(others.len().max(1)))
        {
            made.insert(name.clone(), self.value(tape, inner, depth + 1));
        }
        if tape.one_in(4) {
            let name = *tape.pick(&["a", "b", "ab", "zz", "names"]);
            made.insert(
                name.to_owned(),
                self.value(
                    tape,
                    schema.get("additionalProperties").unwrap_or(&Value::Null),
                    depth + 1,
                ),
            );
        }
        Value::Object(made)
    }

    fn list(&self, tape: &mut Tape<'_>, schema: &Value, depth: usize) -> Value {
        let prefix: Vec<Value> = schema
            .get("prefixItems")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let count = tape.below(4);
        let items = (0..count).map(|index| {
            let inner = prefix
                .get(index)
                .or_else(|| schema.get("items"))
                .unwrap_or(&Value::Null);
            self.value(tape, inner, depth + 1)
        });
        Value::Array(items.collect())
    }
}

fn number(tape: &mut Tape<'_>, schema: &Value) -> Value {
    let mut numbers = vec![
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(1.5),
        json!(-1),
        json!(6),
    ];
    for key in [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ] {
        if let Some(bound) = schema.get(key).and_then(Value::as_f64) {
            numbers.extend(
                [
                    bound,
                    bound + 1.0,
                    bound - 1.0,
                    bound + 0.5,
                    bound - 0.5,
                    bound * 2.0,
                ]
                .map(|near| json!(near)),
            );
            numbers.extend([bound, bound + 1.0, bound - 1.0].map(|near| json!(near as i64)));
        }
    }
    tape.pick(&numbers).clone()
}

fn text(tape: &mut Tape<'_>, schema: &Value) -> Value {
    let mut texts = vec!["", "a", "b", "ab", "aab", "aaaa", "12", "ba"];
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => texts.extend(["2024-01-31"; 8]),
        Some("email") => texts.extend(["a@example.com"; 8]),
        Some("uri") => texts.extend(["https://example.com/"; 8]),
        Some("date-time") => texts.extend(["2024-01-31T12:00:00Z"; 8]),
        Some("ipv4") => texts.extend(["192.0.2.1"; 8]),
        _ => {}
    }
    json!(tape.pick(&texts))
}
