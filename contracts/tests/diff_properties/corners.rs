//! Small families of schemas whose keywords look at each other, dense enough that close pairs meet, and all the small
//! values of each.

use serde_json::{Map, Value, json};

use super::tape::Tape;

/// Draws the keywords of one schema.
type Family = fn(&mut Tape<'_>) -> Map<String, Value>;

/// Returns two schemas of one family, the second now and then a change of the first, and values for both.
pub(crate) fn pair(tape: &mut Tape<'_>) -> (Value, Value, Vec<Value>) {
    let (draw, values): (Family, _) = match tape.below(5) {
        0 => (number, numbers()),
        1 => (object, objects()),
        2 => (list, lists()),
        3 => (union, [numbers(), objects(), texts()].concat()),
        _ => (text, texts()),
    };
    let old = draw(tape);
    let mut new = match tape.one_in(4) {
        true => draw(tape),
        false => old.clone(),
    };
    for _ in 0..=tape.below(2) {
        // A keyword goes, comes or is another.
        let other = draw(tape);
        let mut keys: Vec<String> = new.keys().chain(other.keys()).cloned().collect();
        keys.dedup();
        let Some(key) = keys.get(tape.below(keys.len().max(1))) else {
            continue;
        };
        match other.get(key) {
            Some(value) => drop(new.insert(key.clone(), value.clone())),
            None => drop(new.shift_remove(key)),
        }
    }
    (Value::Object(old), Value::Object(new), values)
}

fn some(tape: &mut Tape<'_>, keywords: &[(&str, &[Value])]) -> Map<String, Value> {
    let mut map = Map::new();
    for (key, values) in keywords {
        if tape.one_in(3) {
            map.insert((*key).to_owned(), tape.pick(values).clone());
        }
    }
    map
}

fn number(tape: &mut Tape<'_>) -> Map<String, Value> {
    let bounds = [
        json!(0),
        json!(0.5),
        json!(1),
        json!(1.5),
        json!(2),
        json!(2.5),
    ];
    let steps = [json!(0.5), json!(1), json!(1.5), json!(2), json!(3)];
    let mut map = some(
        tape,
        &[
            ("minimum", &bounds),
            ("exclusiveMinimum", &bounds),
            ("maximum", &bounds),
            ("exclusiveMaximum", &bounds),
            ("multipleOf", &steps),
        ],
    );
    let words = [
        json!("integer"),
        json!("integer"),
        json!("number"),
        json!(["integer", "null"]),
        json!(["number", "string"]),
    ];
    map.insert("type".into(), tape.pick(&words).clone());
    map
}

fn numbers() -> Vec<Value> {
    let mut values: Vec<Value> = (-4..=16)
        .map(|quarter| json!(f64::from(quarter) / 4.0))
        .collect();
    values.extend((-1..=6).map(Value::from));
    values.extend([Value::Null, json!("a")]);
    values
}

fn object(tape: &mut Tape<'_>) -> Map<String, Value> {
    let inner = [
        json!({}),
        json!({ "type": "integer" }),
        json!({ "type": "string" }),
        json!(false),
        json!({ "const": 1 }),
    ];
    let mut properties = Map::new();
    for name in ["a", "ab", "b"] {
        if tape.one_in(2) {
            properties.insert(name.to_owned(), tape.pick(&inner).clone());
        }
    }
    let properties = [Value::Object(properties)];
    let required = [json!(["a"]), json!(["b"]), json!(["a", "b"]), json!(["c"])];
    let parts: Vec<Value> = vec![
        json!([{ "properties": { "b": {} }, "additionalProperties": false }]),
        json!([{ "additionalProperties": false }]),
        json!([{ "required": ["a"] }]),
        json!([{ "properties": { "ab": {} } }]),
    ];
    let unions = [
        json!([{ "properties": { "b": {} } }]),
        json!([{ "properties": { "a": {} } }, { "required": ["b"] }]),
    ];
    let patterns = [json!({ "^a": { "type": "integer" } }), json!({ "b$": {} })];
    let mut map = some(
        tape,
        &[
            ("properties", &properties),
            ("properties", &properties),
            ("additionalProperties", &inner),
            ("additionalProperties", &[json!(false)]),
            ("required", &required),
            ("patternProperties", &patterns),
            ("minProperties", &[json!(0), json!(1), json!(2)]),
            ("maxProperties", &[json!(0), json!(1), json!(2)]),
            (
                "propertyNames",
                &[json!({ "maxLength": 1 }), json!({ "minLength": 2 })],
            ),
        ],
    );
    if tape.one_in(4) {
        map.extend(some(
            tape,
            &[
                ("allOf", &parts),
                ("anyOf", &unions),
                ("unevaluatedProperties", &[json!(false)]),
            ],
        ));
    }
    map
}

fn objects() -> Vec<Value> {
    let mut values = vec![json!({}), json!(1)];
    let inner = [None, Some(json!(1)), Some(json!("x"))];
    for a in &inner {
        for ab in &inner {
            for b in &inner {
                for c in [None, Some(json!(2))] {
                    let members = [("a", a), ("ab", ab), ("b", b), ("c", &c)];
                    let members = members
                        .into_iter()
                        .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
                    values.push(Value::Object(members.collect()));
                }
            }
        }
    }
    values
}

fn list(tape: &mut Tape<'_>) -> Map<String, Value> {
    let inner = [
        json!({}),
        json!({ "type": "integer" }),
        json!(false),
        json!({ "const": 1 }),
    ];
    let prefixes = [
        json!([{ "type": "integer" }]),
        json!([{}]),
        json!([{}, false]),
        json!([{}, { "type": "integer" }]),
    ];
    let mut map = some(
        tape,
        &[
            ("items", &inner),
            ("prefixItems", &prefixes),
            ("minItems", &[json!(0), json!(1), json!(2)]),
            ("maxItems", &[json!(0), json!(1), json!(2)]),
            ("uniqueItems", &[json!(true), json!(false)]),
            (
                "contains",
                &[json!({ "const": 1 }), json!({ "type": "string" })],
            ),
        ],
    );
    if tape.one_in(4) {
        map.extend(some(
            tape,
            &[
                ("unevaluatedItems", &[json!(false)]),
                ("minContains", &[json!(0), json!(2)]),
            ],
        ));
    }
    map
}

fn lists() -> Vec<Value> {
    let inner = [json!(1), json!(2), json!("x"), json!(1.0)];
    let mut values = vec![json!([]), json!({})];
    for one in &inner {
        values.push(json!([one]));
        for two in &inner {
            values.push(json!([one, two]));
            values.extend(inner.iter().map(|three| json!([one, two, three])));
        }
    }
    values
}

fn text(tape: &mut Tape<'_>) -> Map<String, Value> {
    let words = [json!("string"), json!(["string", "null"])];
    some(
        tape,
        &[
            ("type", &words),
            ("minLength", &[json!(0), json!(1), json!(2)]),
            ("maxLength", &[json!(0), json!(1), json!(2), json!(2.0)]),
            (
                "pattern",
                &[json!("^a"), json!("b$"), json!("a*"), json!("^.*$")],
            ),
            ("format", &[json!("date"), json!("email")]),
            (
                "enum",
                &[
                    json!(["a", "b"]),
                    json!(["a", null]),
                    json!(["ab", "abc", 1]),
                    json!([]),
                ],
            ),
            ("const", &[json!("a"), json!(null)]),
        ],
    )
}

fn texts() -> Vec<Value> {
    let mut values: Vec<Value> = [
        "",
        "a",
        "b",
        "ab",
        "ba",
        "abc",
        "a\n",
        "2024-01-31",
        "a@example.com",
    ]
    .map(Value::from)
    .to_vec();
    values.extend([json!(null), json!(1), json!([])]);
    values
}

/// Returns alternatives of different types or of the same type, kinds with a constant, with and without keywords beside them.
fn union(tape: &mut Tape<'_>) -> Map<String, Value> {
    let arms = [
        json!({ "type": "integer" }),
        json!({ "type": "integer", "minimum": 1 }),
        json!({ "type": "number", "maximum": 2 }),
        json!({ "type": "number", "minLength": 2 }),
        json!({ "type": "string" }),
        json!({ "type": "string", "maxLength": 1 }),
        json!({ "type": "string", "minimum": 5 }),
        json!({ "type": "null" }),
        json!({ "const": "a" }),
        json!({ "enum": ["b", "ab", 1] }),
        json!({ "type": "object", "properties": { "b": { "const": "x" } }, "required": ["b"] }),
        json!({ "type": "object", "properties": { "b": { "const": "y" }, "a": { "const": 1 } }, "required": ["b"] }),
        json!({ "type": "object", "properties": { "b": { "const": "x" }, "a": { "type": "integer" } } }),
    ];
    let chosen: Vec<Value> = (0..=tape.below(3))
        .map(|_| tape.pick(&arms).clone())
        .collect();
    let key = *tape.pick(&["anyOf", "oneOf"]);
    let mut map = Map::from_iter([(key.to_owned(), Value::Array(chosen))]);
    if tape.one_in(4) {
        map.extend(some(
            tape,
            &[
                ("minimum", &[json!(1), json!(2)]),
                ("minLength", &[json!(1), json!(2)]),
                ("required", &[json!(["a"])]),
            ],
        ));
    }
    map
}
