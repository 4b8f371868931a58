//! Adds types to schemas that have none, and leaves no keywords next to unions. Vendors refuse a whole request for a schema in
//! another form.

use serde_json::{Map, Value, json};

use crate::keyword::REF;

/// Up to this many forms of a union each get its description; in a larger union only the first one does.
const DESCRIBED_MAX: usize = 16;

/// Descriptions of one property that are written as a union.
const JOINED_MAX: usize = 64;

/// The keywords that apply to values of one type only.
const KEYWORDS_OF_TYPES: [(&str, &[&str]); 4] = [
    (
        "object",
        &["properties", "required", "minProperties", "maxProperties"],
    ),
    ("array", &["items", "minItems", "maxItems"]),
    ("string", &["pattern", "format", "minLength", "maxLength"]),
    ("number", &["minimum", "maximum"]),
];

/// Returns the type whose keywords a schema has.
pub(super) fn find_type_of_keywords(members: &Map<String, Value>) -> Option<&'static str> {
    let mut types = KEYWORDS_OF_TYPES.iter();
    let is_used = |keywords: &[&str]| keywords.iter().any(|key| members.contains_key(*key));
    types.find_map(|&(word, keywords)| is_used(keywords).then_some(word))
}

/// Returns the types of the values that a schema lists: one word, or a list of words. `None` if it lists no values,
/// or if objects or arrays are among them.
pub(super) fn find_type_of_values(members: &Map<String, Value>) -> Option<Value> {
    let values = match (members.get("enum"), members.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (None, Some(value)) => std::slice::from_ref(value),
        _ => return None,
    };
    let mut words: Vec<&str> = Vec::new();
    for value in values {
        let word = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::String(_) => "string",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::Array(_) | Value::Object(_) => return None,
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    match words.len() {
        0 => None,
        1 => Some(words[0].into()),
        _ => Some(words.into()),
    }
}

/// Returns a value of any type as a union of types; its only lists are lists of texts.
pub(super) fn write_any_value() -> Value {
    json!([
        { "type": "string" },
        { "type": "number" },
        { "type": "boolean" },
        { "type": "object" },
        { "type": "array", "items": { "type": "string" } },
    ])
}

/// Gives the names that an object requires without a schema one that takes any value.
pub(super) fn add_required_properties(members: &mut Map<String, Value>) {
    let is_object = members.get("type").is_none_or(|word| {
        let is_object = |word: &Value| word == "object";
        is_object(word)
            || word
                .as_array()
                .is_some_and(|words| words.iter().any(is_object))
    });
    if !is_object || ["anyOf", REF].iter().any(|key| members.contains_key(*key)) {
        return;
    }
    let Some(Value::Array(required)) = members.get("required") else {
        return;
    };
    let required: Vec<String> = required
        .iter()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    if required.is_empty() {
        return;
    }
    let properties = members.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else {
        return;
    };
    for name in required {
        properties.entry(name).or_insert_with(|| json!({}));
    }
}

/// Moves the keywords next to a union into its forms. If these include properties, items or values, the union is
/// removed instead, and the properties of its forms join the others; returns `true` in that case.
pub(super) fn separate_union(members: &mut Map<String, Value>) -> bool {
    let Some(Value::Array(mut forms)) = members.shift_remove("anyOf") else {
        return false;
    };
    if ["properties", "items", "enum"]
        .iter()
        .any(|key| members.contains_key(*key))
    {
        if members.contains_key("properties") {
            add_properties(members, &mut forms);
        }
        return true;
    }
    let beside = std::mem::take(members);
    for (key, value) in beside {
        let most = match key.as_str() {
            "type" => usize::MAX,
            _ if forms.len() > DESCRIBED_MAX => 1,
            _ => DESCRIBED_MAX,
        };
        for form in forms.iter_mut().filter_map(Value::as_object_mut).take(most) {
            form.entry(&key).or_insert_with(|| value.clone());
        }
    }
    members.insert("anyOf".to_owned(), Value::Array(forms));
    false
}

/// Adds the properties of several forms to those of a schema.
pub(super) fn add_properties(members: &mut Map<String, Value>, forms: &mut [Value]) {
    let joined = join_properties(forms);
    if joined.is_empty() {
        return;
    }
    let own = members.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(own) = own {
        for (name, schema) in joined {
            own.entry(name).or_insert(schema);
        }
    }
}

/// Takes the properties of several forms. A property that they describe in different ways, such as the name of a kind,
/// becomes a union in which no form is preferred; if there are too many forms, it takes any value.
fn join_properties(forms: &mut [Value]) -> Map<String, Value> {
    let mut all = Map::new();
    for form in forms {
        let Some(Value::Object(properties)) = form.get_mut("properties").map(Value::take) else {
            continue;
        };
        for (name, schema) in properties {
            let schemas = all.entry(name).or_insert_with(|| json!([]));
            if let Value::Array(schemas) = schemas
                && schemas.len() <= JOINED_MAX
                && !schemas.contains(&schema)
            {
                schemas.push(schema);
            }
        }
    }
    for schemas in all.values_mut() {
        *schemas = match schemas.take() {
            Value::Array(mut schemas) if schemas.len() == 1 => schemas.remove(0),
            Value::Array(schemas) if schemas.len() <= JOINED_MAX => json!({ "anyOf": schemas }),
            _ => json!({}),
        };
    }
    all
}

/// Puts the forms of unions that are forms themselves in their place.
pub(super) fn flatten_union(members: &mut Map<String, Value>) {
    let Some(Value::Array(forms)) = members.get_mut("anyOf") else {
        return;
    };
    let is_union = |form: &Value| {
        let form = form.as_object();
        form.is_some_and(|form| form.len() == 1 && form.get("anyOf").is_some_and(Value::is_array))
    };
    if !forms.iter().any(is_union) {
        return;
    }
    let mut flat = Vec::new();
    for mut form in std::mem::take(forms) {
        let inner = match is_union(&form) {
            true => form.get_mut("anyOf").map(Value::take),
            false => None,
        };
        match inner {
            Some(Value::Array(inner)) => flat.extend(inner),
            _ => flat.push(form),
        }
    }
    *forms = flat;
}

#[cfg(test)]
mod tests {
    use super::super::{ClientProfile, lower};
    use super::*;

    fn object(properties: Value, required: Value) -> Value {
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }

    #[track_caller]
    fn check(schema: Value, expected: Value, rules: &[&str]) {
        let input = object(json!({ "a": schema }), json!([]));
        let lowered = lower("t", &input, ClientProfile::Gemini);
        assert_eq!(lowered.input["properties"]["a"], expected, "{schema}");
        let lost: Vec<_> = lowered.remarks.iter().map(|remark| remark.rule).collect();
        assert_eq!(lost, rules, "{schema}");
        let again = lower("t", &lowered.input, ClientProfile::Gemini);
        assert_eq!(again.input, lowered.input, "{schema}");
    }

    /// Gemini refuses a request if a required name has no schema or if values of an enum are not strings.
    #[test]
    fn gemini_is_sent_the_names_and_values_that_it_takes() {
        let text = json!({ "type": "string" });
        let anything = json!({ "anyOf": write_any_value() });
        for (schema, expected, rules) in [
            // What kinds share, and the name of the kind.
            (
                json!({ "type": "object", "properties": { "a": text }, "anyOf": [
                    { "properties": { "k": { "const": "c" } } },
                    { "properties": { "k": { "const": "s" }, "w": text } },
                ] }),
                json!({ "type": "object", "properties": {
                    "a": text,
                    "k": { "anyOf": [
                        { "enum": ["c"], "type": "string" }, { "enum": ["s"], "type": "string" },
                    ] },
                    "w": text,
                } }),
                vec!["union"],
            ),
            (
                json!({ "type": "integer", "enum": ["1", "2"] }),
                json!({ "type": "integer" }),
                vec!["enum"],
            ),
            // A name that is required and has no schema costs the whole request.
            (
                json!({ "type": "object", "properties": { "s": text }, "required": ["s", "n"] }),
                json!({ "type": "object", "properties": { "s": text, "n": anything }, "required": ["s", "n"] }),
                vec!["type"],
            ),
            (
                json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "required": [] }] }),
                json!({ "anyOf": [
                    { "required": ["a"], "type": "object", "properties": { "a": anything } },
                    { "required": [], "type": "object" },
                ] }),
                vec!["type"],
            ),
        ] {
            check(schema, expected, &rules);
        }
    }

    /// Vertex refuses a request with a schema that has no type, and one with anything next to `anyOf`.
    #[test]
    fn gemini_is_sent_a_type_or_a_union_alone() {
        let text = json!({ "type": "string" });
        let (short, long) = (
            json!({ "type": "object", "properties": { "s": text }, "required": ["s"] }),
            json!({ "type": "object", "properties": { "l": text }, "required": ["l"] }),
        );
        let any = |description: &str| {
            let form = |word: &str| json!({ "type": word, "description": description });
            let list = json!({ "type": "array", "items": text, "description": description });
            json!({ "anyOf": [form("string"), form("number"), form("boolean"), form("object"), list] })
        };
        for (schema, expected, rules) in [
            (
                json!({ "description": "D.", "anyOf": [{ "type": "string", "description": "Own." }, { "type": "integer" }] }),
                json!({ "anyOf": [
                { "type": "string", "description": "Own." }, { "type": "integer", "description": "D." },
            ] }),
                vec![],
            ),
            (
                json!({ "type": "string", "anyOf": [{ "pattern": "^a" }, { "maxLength": 2 }] }),
                json!({ "anyOf": [{ "pattern": "^a", "type": "string" }, { "maxLength": 2, "type": "string" }] }),
                vec![],
            ),
            (
                json!({ "type": "object", "description": "D.", "oneOf": [short, long] }),
                json!({ "anyOf": [
                { "type": "object", "properties": { "s": text }, "required": ["s"], "description": "D." },
                { "type": "object", "properties": { "l": text }, "required": ["l"], "description": "D." },
            ] }),
                vec!["union"],
            ),
            (
                json!({ "type": "object", "properties": { "a": text }, "anyOf": [short, { "required": ["a"] }] }),
                json!({ "type": "object", "properties": { "a": text, "s": text } }),
                vec!["union"],
            ),
            (
                json!({ "anyOf": [text, { "anyOf": [{ "type": "integer" }, { "type": "boolean" }] }] }),
                json!({ "anyOf": [text, { "type": "integer" }, { "type": "boolean" }] }),
                vec![],
            ),
            (
                json!({ "properties": { "s": text } }),
                json!({ "type": "object", "properties": { "s": text } }),
                vec![],
            ),
            (
                json!({ "enum": [1, 2] }),
                json!({ "type": "integer" }),
                vec!["enum"],
            ),
            (json!({ "description": "D." }), any("D."), vec!["type"]),
        ] {
            check(schema, expected, &rules);
        }
        // The schemas written for values of any type are bounded.
        let many: serde_json::Map<_, _> =
            (0..20_000).map(|n| (format!("p{n}"), json!({}))).collect();
        let lowered = lower("t", &object(many.into(), json!([])), ClientProfile::Gemini);
        let bytes = lowered.input.to_string().len();
        assert!(bytes < 1 << 20, "{bytes} bytes");
    }

    /// OpenAI takes no schema without a type in a strict function.
    #[test]
    fn strict_functions_are_sent_the_type_of_what_is_listed() {
        for (listed, expected) in [
            (
                json!({ "const": "a" }),
                json!({ "const": "a", "type": "string" }),
            ),
            (
                json!({ "enum": [1, 2] }),
                json!({ "enum": [1, 2], "type": "integer" }),
            ),
            (
                json!({ "enum": [true, 0.5, "a"] }),
                json!({ "enum": [true, 0.5, "a"], "type": ["boolean", "number", "string"] }),
            ),
        ] {
            let input = object(json!({ "a": listed }), json!(["a"]));
            let lowered = lower("t", &input, ClientProfile::OpenaiStrict);
            assert_eq!(lowered.input["properties"]["a"], expected, "{listed}");
        }
    }
}
