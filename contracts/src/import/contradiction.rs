//! Rules that no value meets, which documents have by mistake: types of other languages, listed values of another type, and
//! bounds that cross. Only the service checks what is left out.

use serde_json::{Map, Number, Value, json};
use weir_schema::schema::each_once;
use weir_text::shorten;

const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];
/// The bounds that may cross.
const BOUNDS: [(&str, &str); 4] = [
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
];

/// Writes listed values as values of the adjacent type, and leaves out the rules that no value meets. Returns a sentence about
/// each rule that was left out.
pub(super) fn mend(schema: &mut Map<String, Value>) -> Vec<String> {
    let mut left_out = Vec::new();
    left_out.extend(mend_types(schema));
    left_out.extend(mend_values(schema));
    for (least, most) in BOUNDS {
        let number = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        if number(least) > number(most).or(Some(f64::INFINITY)) {
            schema.shift_remove(least);
            schema.shift_remove(most);
            left_out.push(format!(
                "`{least}` is greater than `{most}`, and both are left out; only the service checks it"
            ));
        }
    }
    left_out
}

/// Leaves out words that are not types of JSON Schema, such as `any` and `file`. In YAML null is a word without quotes.
fn mend_types(schema: &mut Map<String, Value>) -> Option<String> {
    let stated = match schema.get("type")? {
        Value::Array(words) => words.clone(),
        word => vec![word.clone()],
    };
    let as_word = |word: &Value| match word {
        Value::Null => "null".into(),
        word => word.clone(),
    };
    let words: Vec<Value> = stated.iter().map(as_word).collect();
    let is_known = |word: &Value| word.as_str().is_some_and(|word| TYPES.contains(&word));
    let unknown = words.iter().find(|word| !is_known(word)).cloned();
    if unknown.is_none() && words == stated {
        return None;
    }
    let mut known: Vec<Value> = words.into_iter().filter(is_known).collect();
    match known.len() {
        0 => drop(schema.shift_remove("type")),
        1 => drop(schema.insert("type".to_owned(), known.remove(0))),
        _ => drop(schema.insert("type".to_owned(), known.into())),
    }
    let shown = unknown.map(|word| shorten(&word.to_string(), 60).into_owned())?;
    Some(format!(
        "the type {shown} is not one of JSON Schema, and is left out; only the service checks it"
    ))
}

/// In YAML `1.10` and `true` without quotes are not texts, and `"1"` with quotes is not a number: no value would be valid.
fn mend_values(schema: &mut Map<String, Value>) -> Option<String> {
    let types: Vec<String> = match schema.get("type") {
        Some(Value::Array(words)) => words
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        word => word
            .and_then(Value::as_str)
            .map(str::to_owned)
            .into_iter()
            .collect(),
    };
    let keyword = ["enum", "const"]
        .into_iter()
        .find(|keyword| schema.contains_key(*keyword))?;
    let stated = match schema.get(keyword)? {
        Value::Array(values) if keyword == "enum" => values.clone(),
        value => vec![value.clone()],
    };
    let fitting: Vec<Value> = stated
        .iter()
        .filter_map(|value| convert_value(value, &types))
        .collect();
    let has_values = fitting
        .iter()
        .any(|value| !value.is_null() || types.is_empty());
    let is_null_alone = stated.iter().all(Value::is_null) && !stated.is_empty();
    if !has_values && !is_null_alone {
        schema.shift_remove(keyword);
        let what = match stated.is_empty() {
            true => "a list of values has none".to_owned(),
            false => format!("no listed value is of the type {}", types.join(" or ")),
        };
        return Some(format!(
            "{what}, and is left out; only the service checks it"
        ));
    }
    if is_null_alone && !types.iter().any(|word| word == "null") {
        schema.shift_remove("type");
    }
    let lost = stated.len() - fitting.len();
    let kept = match keyword {
        "enum" => json!(each_once(&Value::Array(fitting))),
        _ => fitting.into_iter().next()?,
    };
    schema.insert(keyword.to_owned(), kept);
    (lost > 0).then(|| {
        let types = types.join(" or ");
        format!("{lost} of the listed values are not of the type {types}, and are left out")
    })
}

/// Returns a listed value as one of the types; `None` if it fits none. Null means that there may be no value.
fn convert_value(value: &Value, types: &[String]) -> Option<Value> {
    let is_of = |word: &String| match word.as_str() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || is_whole(value),
        _ => true,
    };
    if types.is_empty() || value.is_null() || types.iter().any(is_of) {
        return Some(value.clone());
    }
    let mut kinds = types.iter().filter(|word| *word != "null");
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return None;
    };
    match (kind.as_str(), value) {
        ("string", Value::Number(_) | Value::Bool(_)) => Some(value.to_string().into()),
        ("integer", Value::String(text)) => text.parse::<i64>().ok().map(Value::from),
        ("number", Value::String(text)) => match text.parse::<i64>() {
            Ok(whole) => Some(whole.into()),
            Err(_) => Number::from_f64(text.parse().ok()?).map(Value::Number),
        },
        ("boolean", Value::String(text)) => text.parse::<bool>().ok().map(Value::Bool),
        _ => None,
    }
}

fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(schema: &Value) -> (Value, usize) {
        let mut schema = schema.as_object().expect("a schema").clone();
        let left_out = mend(&mut schema);
        (Value::Object(schema), left_out.len())
    }

    #[test]
    fn listed_values_are_of_the_type_beside_them() {
        for (kind, listed, expected, left_out) in [
            (
                json!("string"),
                json!([1.5, true, "a", 2, "2"]),
                json!(["1.5", "true", "a", "2"]),
                0,
            ),
            (
                json!(["string", "null"]),
                json!([1, null]),
                json!(["1", null]),
                0,
            ),
            (json!("integer"), json!([1, 2.0]), json!([1, 2.0]), 0),
            (json!("integer"), json!(["1", "x", 1]), json!([1]), 1),
            (json!("number"), json!(["0.5", "2"]), json!([0.5, 2]), 0),
            (json!("boolean"), json!(["true"]), json!([true]), 0),
            (
                json!(["string", "integer"]),
                json!(["a", 1, []]),
                json!(["a", 1]),
                1,
            ),
            (json!("integer"), json!(["x"]), Value::Null, 1),
            (json!("string"), json!([]), Value::Null, 1),
        ] {
            let (schema, found) = mended(&json!({ "type": kind, "enum": listed }));
            let kept = schema.get("enum").cloned().unwrap_or_default();
            assert_eq!((kept, found), (expected, left_out), "{kind} {listed}");
        }
        for (given, expected) in [
            (
                json!({ "type": "integer", "const": "7" }),
                json!({ "type": "integer", "const": 7 }),
            ),
            (
                json!({ "type": "integer", "const": "x" }),
                json!({ "type": "integer" }),
            ),
            (json!({ "enum": ["1", 1] }), json!({ "enum": ["1", 1] })),
            (json!({ "enum": [] }), json!({})),
            (
                json!({ "type": "string", "enum": [null] }),
                json!({ "enum": [null] }),
            ),
            (json!({ "const": null }), json!({ "const": null })),
        ] {
            assert_eq!(mended(&given).0, expected, "{given}");
        }
    }

    #[test]
    fn a_type_is_one_of_json_schema() {
        for (kind, expected, left_out) in [
            (json!("any"), Value::Null, 1),
            (json!(["string", "file"]), json!("string"), 1),
            (json!(["string", null]), json!(["string", "null"]), 0),
            (json!(null), json!("null"), 0),
            (json!(["string"]), json!(["string"]), 0),
            (json!("object"), json!("object"), 0),
        ] {
            let (schema, found) = mended(&json!({ "type": kind }));
            let kept = schema.get("type").cloned().unwrap_or_default();
            assert_eq!((kept, found), (expected, left_out), "{kind}");
        }
    }

    #[test]
    fn bounds_that_cross_are_left_out() {
        for (given, expected) in [
            (json!({ "minimum": 5, "maximum": 2 }), json!({})),
            (
                json!({ "minLength": 5, "maxLength": 5 }),
                json!({ "minLength": 5, "maxLength": 5 }),
            ),
            (json!({ "minItems": 1 }), json!({ "minItems": 1 })),
            (
                json!({ "maxItems": 1, "minProperties": 2, "maxProperties": 1 }),
                json!({ "maxItems": 1 }),
            ),
        ] {
            assert_eq!(mended(&given).0, expected, "{given}");
        }
    }
}
