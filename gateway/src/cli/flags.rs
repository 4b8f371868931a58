//! Command-line flags of one tool, from its input schema. The only place where text is coerced:
//! a terminal has nothing else.

use clap::{Arg, ArgAction, Command};
use serde_json::{Map, Value};

/// The command of one tool: a flag for every argument, help from the descriptions.
pub(super) fn command(name: &str, description: &str, schema: &Value) -> Command {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut command = Command::new(name.to_owned())
        .bin_name(format!("weir call {name}"))
        .about(description.to_owned())
        .no_binary_name(true)
        .disable_version_flag(true);
    let properties = schema["properties"].as_object();
    for (field, property) in properties.into_iter().flatten() {
        let dashed = field.replace('_', "-");
        // A tool may have an argument of that very name too.
        let is_free = !properties.is_some_and(|properties| properties.contains_key(&dashed));
        let flag = flag(field, property, required.contains(&field.as_str()));
        command = command.arg(match is_free {
            true => flag.long(dashed).alias(field.clone()),
            false => flag.long(field.clone()),
        });
    }
    if schema["properties"].get("arguments").is_none() {
        let help = "All arguments as one JSON object, instead of flags";
        command = command.arg(Arg::new("arguments").long("arguments").value_name("JSON").help(help));
    }
    command
}

/// The arguments that the flags say; what the schema refuses is left to the tool to refuse.
pub(super) fn arguments(schema: &Value, matches: &clap::ArgMatches) -> anyhow::Result<Map<String, Value>> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut arguments = Map::new();
    if !properties.contains_key("arguments")
        && let Some(text) = matches.get_one::<String>("arguments")
    {
        let whole = weir_contracts::json::read(text).map_err(|error| anyhow::anyhow!("--arguments: {error}"))?;
        let Value::Object(whole) = whole else { anyhow::bail!("--arguments: must be a JSON object") };
        arguments = whole;
    }
    for (field, property) in &properties {
        let Some(values) = matches.get_many::<String>(field) else { continue };
        let values: Vec<&str> = values.map(String::as_str).collect();
        arguments.insert(field.clone(), value(property, &values));
    }
    Ok(arguments)
}

fn flag(field: &str, property: &Value, required: bool) -> Arg {
    let mut help = property["description"].as_str().unwrap_or_default().to_owned();
    let rules = beside_null(property);
    let mut notes = Vec::new();
    if required {
        notes.push("required".to_owned());
    }
    if let Some(choices) = choices(rules) {
        notes.push(choices);
    }
    for (key, word) in [("minimum", "at least"), ("maximum", "at most"), ("format", "a"), ("default", "by default")] {
        if let Some(value) = rules.get(key).or_else(|| property.get(key)) {
            notes.push(format!("{word} {}", plain(value)));
        }
    }
    if !notes.is_empty() {
        help = format!("{help}{}[{}]", if help.is_empty() { "" } else { " " }, notes.join("; "));
    }
    let arg = Arg::new(field.to_owned()).help(help);
    match kind(property) {
        "boolean" => arg.num_args(0..=1).default_missing_value("true").value_name("true|false"),
        "array" => arg.action(ArgAction::Append).allow_hyphen_values(true).value_name("VALUE"),
        kind => arg.allow_hyphen_values(true).value_name(kind.to_uppercase()),
    }
}

fn choices(property: &Value) -> Option<String> {
    let values = property.get("enum").or_else(|| property["items"].get("enum"))?.as_array()?;
    Some(format!("one of {}", values.iter().map(plain).collect::<Vec<_>>().join(", ")))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a value meets that is not null, where the property is `anyOf: [that, {type: null}]`.
fn beside_null(property: &Value) -> &Value {
    let arms = property["anyOf"].as_array().map(Vec::as_slice);
    match arms {
        Some([value, null] | [null, value]) if null["type"] == "null" => value,
        _ => property,
    }
}

/// The type, without `null` beside it.
fn kind(property: &Value) -> &str {
    match &beside_null(property)["type"] {
        Value::String(kind) => kind,
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("json"),
        _ => "json",
    }
}

/// Text as the property's type reads it; what does not read stays text, so that the tool's own error names it.
fn value(property: &Value, texts: &[&str]) -> Value {
    let last = texts.last().copied().unwrap_or_default();
    let lists_null = property["type"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"));
    let nullable = lists_null || !std::ptr::eq(beside_null(property), property);
    if nullable && last == "null" {
        return Value::Null;
    }
    match kind(property) {
        "string" => Value::String(last.to_owned()),
        "integer" | "number" | "boolean" => weir_contracts::json::read(last).unwrap_or_else(|_| last.into()),
        "array" => match weir_contracts::json::read(last) {
            Ok(list @ Value::Array(_)) if texts.len() == 1 => list,
            _ => texts.iter().map(|text| value(&beside_null(property)["items"], &[text])).collect(),
        },
        _ => weir_contracts::json::read(last).unwrap_or_else(|_| last.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(schema: &Value, line: &[&str]) -> Value {
        let matches = command("tool", "A tool.", schema).try_get_matches_from(line).expect("parsed");
        Value::Object(arguments(schema, &matches).expect("arguments"))
    }

    #[test]
    fn flags_become_typed_arguments() {
        let schema = json!({ "properties": {
            "city": { "type": "string" }, "limit": { "type": "integer" }, "exact": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } }, "note": { "type": ["string", "null"] },
            "size": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
        }});
        assert_eq!(
            parse(
                &schema,
                &["--city", "007", "--limit", "-3", "--exact", "--tags", "a", "--tags", "b", "--note", "null"]
            ),
            json!({ "city": "007", "limit": -3, "exact": true, "tags": ["a", "b"], "note": null })
        );
        assert_eq!(parse(&schema, &["--size", "3"]), json!({ "size": 3 }));
        assert_eq!(parse(&schema, &["--size", "null"]), json!({ "size": null }));
        let schema = json!({ "properties": {
            "min_price": { "type": "number" }, "a_b": { "type": "string" }, "a-b": { "type": "string" },
            "limit": { "type": "integer" },
        }});
        assert_eq!(parse(&schema, &["--min-price", "1.5"]), json!({ "min_price": 1.5 }), "as people type it");
        assert_eq!(parse(&schema, &["--min_price", "1.5"]), json!({ "min_price": 1.5 }), "as the schema names it");
        assert_eq!(parse(&schema, &["--a-b", "x", "--a_b", "y"]), json!({ "a-b": "x", "a_b": "y" }));
        let help = command("tool", "A tool.", &schema).render_help().to_string();
        assert!(help.contains("--min-price") && !help.contains("--min_price"), "{help}");
        assert_eq!(parse(&schema, &["--limit", "many"]), json!({ "limit": "many" }));
        assert_eq!(parse(&schema, &["--arguments", "{\"limit\":1}", "--limit", "2"]), json!({ "limit": 2 }));
    }
}
