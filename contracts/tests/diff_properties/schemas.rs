//! Random schemas and forms, and neighbours that differ in a few places.

use serde_json::{Map, Value, json};

use super::tape::Tape;

const NAMES: &[&str] = &["a", "b", "name", "names", "kind"];
const PATTERNS: &[&str] = &["^a", "^[a-b]+$", "b$", "^\\d*$"];
const FORMATS: &[&str] = &["date", "email", "uri", "date-time", "ipv4"];
const WORDS: &[&str] = &[
    "string", "integer", "number", "boolean", "null", "array", "object",
];

/// Returns any JSON Schema 2020-12, most of it of the kind that people and compilers write.
pub(crate) fn schema(tape: &mut Tape<'_>, depth: usize) -> Value {
    let mut map = Map::new();
    match tape.below(14) {
        0 => return json!(!tape.one_in(3)),
        1 => {
            map.insert("enum".into(), enumeration(tape));
        }
        2 => {
            map.insert("const".into(), constant(tape));
        }
        3 if depth > 0 => union(tape, &mut map, depth),
        4 if depth > 0 => {
            let key = *tape.pick(&["allOf", "not", "if", "anyOf", "oneOf", "contains"]);
            typed(tape, &mut map, depth - 1);
            set(tape, &mut map, key, depth);
        }
        5 => {}
        _ => typed(tape, &mut map, depth),
    }
    if tape.one_in(4) {
        let key = *tape.pick(KEYS);
        set(tape, &mut map, key, depth);
    }
    Value::Object(map)
}

/// Adds definitions that some of the properties refer to.
pub(crate) fn add_definitions(tape: &mut Tape<'_>, schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    let mut definition = self::schema(tape, 1);
    if tape.one_in(6)
        && let Value::Object(definition) = &mut definition
    {
        definition.insert("items".into(), json!({ "$ref": "#/$defs/d" }));
    }
    map.insert("$defs".into(), json!({ "d": definition }));
    if let Some(Value::Object(properties)) = map.get_mut("properties")
        && let Some((_, property)) = properties.iter_mut().next()
    {
        *property = json!({ "$ref": "#/$defs/d" });
    }
}

/// Returns the schema with up to three changes.
pub(crate) fn neighbour(tape: &mut Tape<'_>, schema: &Value) -> Value {
    let mut new = schema.clone();
    for _ in 0..=tape.below(3) {
        let places = places(&new);
        let place = tape.pick(&places).clone();
        if let Some(found) = new.pointer_mut(&place) {
            change(tape, found);
        }
    }
    new
}

const KEYS: &[&str] = &[
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "items",
    "prefixItems",
    "contains",
    "minProperties",
    "maxProperties",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "description",
    "default",
    "$ref",
];

fn typed(tape: &mut Tape<'_>, map: &mut Map<String, Value>, depth: usize) {
    let word = *tape.pick(WORDS);
    map.insert(
        "type".into(),
        if tape.one_in(5) {
            json!([word, tape.pick(WORDS)])
        } else {
            json!(word)
        },
    );
    if let Some(Value::Array(words)) = map.get_mut("type") {
        words.dedup();
    }
    let keys: &[&str] = match word {
        "integer" | "number" => &[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ],
        "string" => &["minLength", "maxLength", "pattern", "format"],
        "array" => &[
            "items",
            "items",
            "minItems",
            "maxItems",
            "uniqueItems",
            "prefixItems",
        ],
        "object" => &[
            "properties",
            "properties",
            "required",
            "additionalProperties",
            "minProperties",
            "maxProperties",
        ],
        _ => return,
    };
    for _ in 0..=tape.below(4) {
        let key = *tape.pick(keys);
        set(tape, map, key, depth);
    }
}

fn set(tape: &mut Tape<'_>, map: &mut Map<String, Value>, key: &str, depth: usize) {
    let inner = depth.saturating_sub(1);
    if depth == 0
        && ![
            "type",
            "enum",
            "const",
            "minimum",
            "maximum",
            "minLength",
            "required",
        ]
        .contains(&key)
    {
        return;
    }
    let value = match key {
        "type" => json!(tape.pick(WORDS)),
        "enum" => enumeration(tape),
        "const" | "default" => constant(tape),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => number(tape),
        "multipleOf" => tape
            .pick(&[
                json!(1),
                json!(2),
                json!(3),
                json!(0.5),
                json!(1.5),
                json!(6),
                json!(0.1),
            ])
            .clone(),
        "minLength" | "minItems" | "minProperties" => json!(tape.below(3)),
        "maxLength" | "maxItems" | "maxProperties" => json!(tape.below(4)),
        "pattern" => json!(tape.pick(PATTERNS)),
        "format" => json!(tape.pick(FORMATS)),
        "uniqueItems" => json!(!tape.one_in(3)),
        "required" => {
            let mut names: Vec<&str> = (0..=tape.below(2)).map(|_| *tape.pick(NAMES)).collect();
            names.sort_unstable();
            names.dedup();
            json!(names)
        }
        "properties" => {
            let members =
                (0..=tape.below(3)).map(|_| ((*tape.pick(NAMES)).to_owned(), schema(tape, inner)));
            Value::Object(members.collect())
        }
        "patternProperties" => json!({ *tape.pick(PATTERNS): schema(tape, inner) }),
        "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" => {
            match tape.below(4) {
                0 => schema(tape, inner),
                1 => json!(true),
                _ => json!(false),
            }
        }
        "dependentRequired" => json!({ *tape.pick(NAMES): [tape.pick(NAMES)] }),
        "dependentSchemas" => json!({ *tape.pick(NAMES): schema(tape, inner) }),
        "prefixItems" => Value::Array((0..=tape.below(2)).map(|_| schema(tape, inner)).collect()),
        "anyOf" | "oneOf" => return union(tape, map, depth),
        "allOf" => Value::Array((0..=tape.below(2)).map(|_| schema(tape, inner)).collect()),
        "description" => json!(tape.pick(&["One.", "Two."])),
        "$ref" => json!("#/$defs/d"),
        _ => schema(tape, inner),
    };
    map.insert(key.to_owned(), value);
}

fn union(tape: &mut Tape<'_>, map: &mut Map<String, Value>, depth: usize) {
    let key = *tape.pick(&["anyOf", "oneOf"]);
    let arms: Vec<Value> = match tape.below(3) {
        0 => ["a", "b"]
            .iter()
            .map(|kind| discriminated(tape, kind, depth.saturating_sub(1)))
            .collect(),
        1 => vec![
            schema(tape, depth.saturating_sub(1)),
            json!({ "type": "null" }),
        ],
        _ => (0..=tape.below(3))
            .map(|_| schema(tape, depth.saturating_sub(1)))
            .collect(),
    };
    map.insert(key.into(), Value::Array(arms));
}

fn discriminated(tape: &mut Tape<'_>, kind: &str, depth: usize) -> Value {
    json!({
        "type": "object",
        "properties": { "kind": { "const": kind }, "a": schema(tape, depth) },
        "required": ["kind"],
        "additionalProperties": tape.one_in(2),
    })
}

fn enumeration(tape: &mut Tape<'_>) -> Value {
    let mut values: Vec<Value> = Vec::new();
    for _ in 0..=tape.below(3) {
        let value = constant(tape);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Value::Array(values)
}

fn constant(tape: &mut Tape<'_>) -> Value {
    const CONSTANTS: usize = 12;
    match tape.below(CONSTANTS) {
        0 => json!("a"),
        1 => json!("b"),
        2 => json!("ab"),
        3 => json!(1),
        4 => json!(2),
        5 => json!(1.0),
        6 => json!(1.5),
        7 => json!(null),
        8 => json!(true),
        9 => json!([]),
        10 => json!({ "a": 1 }),
        _ => json!("2024-01-31"),
    }
}

fn number(tape: &mut Tape<'_>) -> Value {
    tape.pick(&[
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(1.0),
        json!(0.5),
        json!(1.5),
        json!(-1),
        json!(2.5),
    ])
    .clone()
}

/// Returns every schema inside, by its pointer.
fn places(schema: &Value) -> Vec<String> {
    let mut places = vec![String::new()];
    let Value::Object(map) = schema else {
        return places;
    };
    for (key, value) in map {
        match (key.as_str(), value) {
            (
                "properties" | "$defs" | "patternProperties" | "dependentSchemas",
                Value::Object(members),
            ) => {
                for (name, inner) in members {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    places.extend(
                        self::places(inner)
                            .into_iter()
                            .map(|place| format!("/{key}/{name}{place}")),
                    );
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(arms)) => {
                for (index, inner) in arms.iter().enumerate() {
                    places.extend(
                        self::places(inner)
                            .into_iter()
                            .map(|place| format!("/{key}/{index}{place}")),
                    );
                }
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "contains"
                | "propertyNames",
                inner,
            ) => {
                places.extend(
                    self::places(inner)
                        .into_iter()
                        .map(|place| format!("/{key}{place}")),
                );
            }
            _ => {}
        }
    }
    places
}

fn change(tape: &mut Tape<'_>, schema: &mut Value) {
    let Value::Object(map) = schema else {
        *schema = self::schema(tape, 1);
        return;
    };
    match tape.below(9) {
        0 if !map.is_empty() => {
            let keys: Vec<String> = map.keys().filter(|key| *key != "$defs").cloned().collect();
            if !keys.is_empty() {
                map.shift_remove(tape.pick(&keys));
            }
        }
        1 => {
            let key = *tape.pick(KEYS);
            set(tape, map, key, 2);
        }
        2 => {
            let keys: Vec<String> = map.keys().filter(|key| *key != "$defs").cloned().collect();
            if !keys.is_empty() {
                let key = tape.pick(&keys).clone();
                set(tape, map, &key, 2);
            }
        }
        3 => change_list(tape, map),
        4 => change_members(tape, map),
        5 => change_number(tape, map),
        6 => nullable(map),
        7 => {
            let inner = Value::Object(map.clone());
            let key = *tape.pick(&["anyOf", "oneOf", "allOf"]);
            *schema = json!({ key: [inner] });
            if key != "allOf" && tape.one_in(2) {
                schema[key]
                    .as_array_mut()
                    .expect("a list")
                    .push(json!({ "type": "null" }));
            }
        }
        _ => *schema = self::schema(tape, 1),
    }
}

fn change_list(tape: &mut Tape<'_>, map: &mut Map<String, Value>) {
    let lists: Vec<String> = map
        .iter()
        .filter(|(_, value)| value.is_array())
        .map(|(key, _)| key.clone())
        .collect();
    if lists.is_empty() {
        return;
    }
    let key = tape.pick(&lists).clone();
    let added = match key.as_str() {
        "enum" => constant(tape),
        "required" => json!(tape.pick(NAMES)),
        "type" => json!(tape.pick(WORDS)),
        _ => schema(tape, 1),
    };
    let Some(Value::Array(items)) = map.get_mut(&key) else {
        return;
    };
    match tape.below(3) {
        0 if items.len() > 1 => drop(items.remove(tape.below(items.len()))),
        1 => items.reverse(),
        _ if !items.contains(&added) => items.push(added),
        _ => {}
    }
}

fn change_members(tape: &mut Tape<'_>, map: &mut Map<String, Value>) {
    let added = schema(tape, 1);
    let Some(Value::Object(members)) = map.get_mut("properties") else {
        return;
    };
    match tape.below(3) {
        0 if !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            members.shift_remove(tape.pick(&names));
        }
        1 if !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            if let Some(schema) = members.shift_remove(tape.pick(&names)) {
                members.insert((*tape.pick(NAMES)).to_owned(), schema);
            }
        }
        _ => {
            members.insert((*tape.pick(NAMES)).to_owned(), added);
        }
    }
}

fn change_number(tape: &mut Tape<'_>, map: &mut Map<String, Value>) {
    let numbers: Vec<String> = map
        .iter()
        .filter(|(_, value)| value.is_u64())
        .map(|(key, _)| key.clone())
        .collect();
    if !numbers.is_empty() {
        let key = tape.pick(&numbers).clone();
        let value = map[&key].as_u64().unwrap_or_default();
        let near = if tape.one_in(2) {
            value + 1
        } else {
            value.saturating_sub(1)
        };
        map.insert(
            key.clone(),
            if key == "multipleOf" {
                json!(near.max(1))
            } else {
                json!(near)
            },
        );
    }
}

fn nullable(map: &mut Map<String, Value>) {
    if let Some(Value::String(word)) = map.get("type")
        && word != "null"
    {
        let words = json!([word, "null"]);
        map.insert("type".into(), words);
    }
}

/// Returns the fields of a form; some make a form that is refused.
pub(crate) fn form(tape: &mut Tape<'_>, depth: usize) -> Vec<Value> {
    let mut fields = Vec::new();
    for name in NAMES.iter().take(1 + tape.below(4)) {
        let mut field = field(tape, depth);
        field["name"] = json!(name);
        fields.push(field);
    }
    fields
}

/// Returns what only a schema can say, with definitions that are called alike and differ.
fn in_a_field(tape: &mut Tape<'_>) -> Value {
    let leaf =
        |tape: &mut Tape<'_>| json!({ "type": tape.pick(&["string", "integer", "boolean"]) });
    let (one, other) = (leaf(tape), leaf(tape));
    match tape.below(4) {
        0 => {
            json!({ "oneOf": [one, { "type": "array", "items": other, "maxItems": tape.below(3) }] })
        }
        1 => json!({ "$ref": "#/$defs/Item", "$defs": { "Item": one } }),
        2 => json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/Item" }, "b": { "type": "array", "items": { "$ref": "#" } } },
            "required": ["a"],
            "$defs": { "Item": one },
        }),
        _ => json!({ "anyOf": [one, { "const": 1 }, other] }),
    }
}

fn field(tape: &mut Tape<'_>, depth: usize) -> Value {
    let mut field = match tape.below(if depth > 0 { 12 } else { 10 }) {
        0 => {
            json!({ "type": "text", "min_length": tape.below(3), "max_length": 2 + tape.below(3) })
        }
        1 => json!({ "type": "text", "pattern": tape.pick(PATTERNS) }),
        2 => {
            json!({ "type": tape.pick(&["email", "url", "date", "datetime", "multiline", "file"]) })
        }
        3 => json!({ "type": "number", "min": number(tape) }),
        4 => json!({ "type": "number", "max": number(tape), "decimals": true }),
        5 => {
            json!({ "type": "number", "step": tape.pick(&[json!(1), json!(2), json!(3), json!(0.5)]) })
        }
        6 => json!({ "type": "dropdown", "choices": choices(tape) }),
        7 => {
            json!({ "type": "multi-choice", "choices": choices(tape), "max_items": 1 + tape.below(3) })
        }
        8 => json!({ "type": "checkbox" }),
        9 => json!({ "type": "json", "schema": in_a_field(tape) }),
        10 => json!({ "type": "record", "fields": form(tape, depth - 1) }),
        _ => json!({ "type": "list", "of": self::field(tape, 0), "max_items": 1 + tape.below(3) }),
    };
    if field["type"] == "list" {
        let of = field["of"].as_object_mut().expect("a field");
        of.shift_remove("required");
        of.shift_remove("default");
    }
    if tape.one_in(3) {
        field["required"] = true.into();
    } else if tape.one_in(4) && field["type"] == "checkbox" {
        field["default"] = json!(tape.one_in(2));
    }
    if tape.one_in(4) {
        field["nullable"] = true.into();
    }
    if tape.one_in(5) {
        field["help"] = json!(tape.pick(&["One.", "Two."]));
    }
    field
}

fn choices(tape: &mut Tape<'_>) -> Vec<&'static str> {
    let mut choices: Vec<&str> = (0..=tape.below(3))
        .map(|_| *tape.pick(&["open", "opened", "closed", "b"]))
        .collect();
    choices.sort_unstable();
    choices.dedup();
    choices
}

/// Returns the form with up to three changes.
pub(crate) fn changed_form(tape: &mut Tape<'_>, fields: &[Value]) -> Vec<Value> {
    let mut fields = fields.to_vec();
    for _ in 0..=tape.below(3) {
        let index = tape.below(fields.len().max(1));
        match (tape.below(6), fields.get(index).cloned()) {
            (0, Some(_)) if fields.len() > 1 => drop(fields.remove(index)),
            (1, Some(field)) => {
                let changed = &mut fields[index];
                changed["required"] = json!(field["required"] != true);
                changed
                    .as_object_mut()
                    .expect("a field")
                    .shift_remove("default");
            }
            (2, Some(field)) => fields[index]["nullable"] = json!(field["nullable"] != true),
            (3, Some(field)) => {
                let mut other = self::field(tape, 1);
                other["name"] = field["name"].clone();
                fields[index] = other;
            }
            (4, Some(mut field)) => {
                for key in ["min", "max", "min_length", "max_length", "max_items"] {
                    if let Some(value) = field.get(key).and_then(Value::as_i64) {
                        field[key] = json!(if tape.one_in(2) {
                            value + 1
                        } else {
                            (value - 1).max(0)
                        });
                    }
                }
                if field.get("choices").is_some() {
                    field["choices"] = json!(choices(tape));
                }
                fields[index] = field;
            }
            _ => {
                let name = *tape.pick(NAMES);
                if !fields.iter().any(|field| field["name"] == name) {
                    let mut field = self::field(tape, 1);
                    field["name"] = json!(name);
                    fields.push(field);
                }
            }
        }
    }
    fields
}
