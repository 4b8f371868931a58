//! A schema as the equivalent field of a form, or as a field of JSON.

use serde_json::{Map, Value, json};

use super::{operation::ImportedParameter, text::sentence};
use crate::{schema::beside_null, validate};

const HELP_MAX: usize = 500;
const CHOICES_MAX: usize = 1_000;
const LENGTH_MAX: u64 = 10_000_000;
const ITEMS_MAX: u64 = 100_000;
const TEXTS: &[&str] = &["title", "description", "default", "examples", "deprecated"];
/// Formats that only a schema can ask for, and that are checked. Others, such as `int32` or `password`, have no effect.
const FORMATS: &[&str] = &[
    "uuid",
    "ipv4",
    "ipv6",
    "hostname",
    "idn-hostname",
    "idn-email",
    "time",
    "duration",
    "uri-reference",
    "uri-template",
    "iri",
    "iri-reference",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Returns the field, and the type of the parameter that it goes to.
pub(super) fn build_field(parameter: &ImportedParameter) -> (Value, &'static str) {
    let whole = &parameter.schema;
    let (inner, nullable) = match beside_null(whole) {
        Some(inner) => (inner, parameter.may_be_null),
        None => (whole, false),
    };
    let plain = inner
        .as_object()
        .filter(|inner| !has_defs(whole) || inner.len() > 1)
        .and_then(kind);
    let mut field = Map::from_iter([("name".to_owned(), parameter.field.clone().into())]);
    let param = match plain {
        Some((keys, param)) => {
            field.extend(keys);
            if nullable {
                field.insert("nullable".to_owned(), true.into());
            }
            param
        }
        None => {
            field.insert("type".to_owned(), "json".into());
            field.insert("schema".to_owned(), without_texts(whole));
            "json"
        }
    };
    if parameter.required {
        field.insert("required".to_owned(), true.into());
    }
    let text = |key: &str| whole.get(key).or_else(|| inner.get(key)).cloned();
    let mut help = parameter
        .description
        .clone()
        .or_else(|| text("description")?.as_str().map(str::to_owned))
        .unwrap_or_default();
    help = sentence(&help, HELP_MAX);
    if let Some(default) =
        text("default").filter(|default| !default.is_null() && !default.is_object())
    {
        let stop = if help.is_empty() || help.ends_with(['.', '…', '\n']) {
            ""
        } else {
            "."
        };
        help = format!("{help}{stop} Default: {default}.")
            .trim()
            .to_owned();
    }
    if !help.is_empty() {
        field.insert("help".to_owned(), help.into());
    }
    let given = text("examples")
        .and_then(|examples| examples.as_array().cloned())
        .unwrap_or_default();
    let examples: Vec<Value> = given
        .into_iter()
        .chain(parameter.example.clone())
        .take(3)
        .collect();
    if !examples.is_empty()
        && let Ok(validator) = validate::validator(whole)
    {
        let examples: Vec<Value> = examples
            .into_iter()
            .filter(|example| validator.is_valid(example))
            .collect();
        if !examples.is_empty() {
            field.insert("examples".to_owned(), examples.into());
        }
    }
    (Value::Object(field), param)
}

fn has_defs(schema: &Value) -> bool {
    schema.get("$defs").is_some()
}

/// Returns the schema without its texts, which the field has itself.
fn without_texts(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        return json!({});
    };
    let rules = members
        .iter()
        .filter(|(keyword, _)| !TEXTS.contains(&keyword.as_str()));
    Value::Object(
        rules
            .map(|(keyword, value)| (keyword.clone(), value.clone()))
            .collect(),
    )
}

/// Returns a form's type with its own keys, if those express everything in the schema.
fn kind(schema: &Map<String, Value>) -> Option<(Map<String, Value>, &'static str)> {
    match schema.get("type")?.as_str()? {
        "string" if schema.contains_key("enum") => dropdown(schema),
        "string" => text(schema),
        "integer" => number(schema, "integer"),
        "number" => number(schema, "number"),
        "boolean" => says_only(schema, &[]).then(|| (typed("checkbox"), "boolean")),
        "array" if says_only(schema, &["items", "minItems", "maxItems"]) => list(schema),
        _ => None,
    }
}

/// Returns `true` if the schema has no other keywords than these and those that every field has.
fn says_only(schema: &Map<String, Value>, known: &[&str]) -> bool {
    schema
        .keys()
        .all(|key| key == "type" || known.contains(&key.as_str()) || TEXTS.contains(&key.as_str()))
}

fn typed(word: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from(word))])
}

fn dropdown(schema: &Map<String, Value>) -> Option<(Map<String, Value>, &'static str)> {
    let choices = schema.get("enum")?.as_array()?;
    let mut seen = std::collections::BTreeSet::new();
    let is_choice = |choice: &Value| {
        choice
            .as_str()
            .is_some_and(|text| seen.insert(text.to_owned()))
    };
    let fits = says_only(schema, &["enum"]) && (1..=CHOICES_MAX).contains(&choices.len());
    (fits && choices.iter().all(is_choice)).then(|| {
        let mut field = typed("dropdown");
        field.insert("choices".to_owned(), choices.clone().into());
        (field, "string")
    })
}

fn text(schema: &Map<String, Value>) -> Option<(Map<String, Value>, &'static str)> {
    let format = schema
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match format {
        "date" | "date-time" | "email" | "uri" => says_only(schema, &["format"]).then(|| {
            let word = match format {
                "date" => "date",
                "date-time" => "datetime",
                "email" => "email",
                _ => "url",
            };
            (typed(word), "string")
        }),
        format if FORMATS.contains(&format) => None,
        _ if !says_only(schema, &["format", "minLength", "maxLength", "pattern"]) => None,
        _ => {
            let mut field = typed("text");
            counted(
                schema,
                &mut field,
                [("minLength", "min_length"), ("maxLength", "max_length")],
                LENGTH_MAX,
            )?;
            field.extend(
                schema
                    .get("pattern")
                    .map(|pattern| ("pattern".to_owned(), pattern.clone())),
            );
            Some((field, "string"))
        }
    }
}

fn number(
    schema: &Map<String, Value>,
    word: &'static str,
) -> Option<(Map<String, Value>, &'static str)> {
    let names = [
        ("minimum", "min"),
        ("maximum", "max"),
        ("multipleOf", "step"),
    ];
    let whole = |number: &Value| number.as_f64().is_some_and(|number| number.fract() == 0.0);
    let fits = says_only(schema, &["format", "minimum", "maximum", "multipleOf"])
        && names
            .iter()
            .all(|(bound, _)| word == "number" || schema.get(*bound).is_none_or(whole));
    fits.then(|| {
        let mut field = typed("number");
        let bounds = names
            .iter()
            .filter_map(|(from, to)| Some(((*to).to_owned(), schema.get(*from)?.clone())));
        field.extend(bounds);
        (field, word)
    })
}

fn list(schema: &Map<String, Value>) -> Option<(Map<String, Value>, &'static str)> {
    let (mut items, param) = kind(schema.get("items")?.as_object()?)?;
    // Inside a list no column decides between the two.
    if matches!(param, "integer" | "number") {
        items.insert("decimals".to_owned(), (param == "number").into());
    }
    if let Some(help) = schema
        .get("items")
        .and_then(|items| items.get("description"))
    {
        items.insert("help".to_owned(), help.clone());
    }
    let mut field = typed("list");
    field.insert("of".to_owned(), Value::Object(items));
    counted(
        schema,
        &mut field,
        [("minItems", "min_items"), ("maxItems", "max_items")],
        ITEMS_MAX,
    )?;
    Some((field, "json"))
}

fn counted(
    schema: &Map<String, Value>,
    field: &mut Map<String, Value>,
    names: [(&str, &str); 2],
    most: u64,
) -> Option<()> {
    for (from, to) in names {
        if let Some(count) = schema.get(from) {
            let count = count.as_u64().filter(|count| *count <= most)?;
            field.insert(to.to_owned(), count.into());
        }
    }
    Some(())
}
