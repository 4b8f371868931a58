//! Checks whether a default meets its schema, once, when a tool is described.
//!
//! This supports the keywords that [`super::Writer`]'s types and `#[arg(…)]` write. A `pattern` is left to the
//! gateway, which has regular expressions: here they would be a third of a small plugin.

use serde_json::{Map, Value};

use super::Mismatch;

/// Checks a value against a schema of our own; `root` holds `$defs`.
pub fn fits(value: &Value, schema: &Value, root: &Value) -> Result<(), Mismatch> {
    let Value::Object(schema) = schema else {
        return Ok(());
    };
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer));
        return target.map_or(Ok(()), |target| fits(value, target, root));
    }
    if let Some(Value::Array(options)) = schema.get("anyOf") {
        let one = options
            .iter()
            .any(|option| fits(value, option, root).is_ok());
        if !one {
            return Err(Mismatch::new(
                "is not among the values that the schema lists",
            ));
        }
    }
    of_type(value, schema)?;
    if let Some(Value::Array(options)) = schema.get("enum")
        && !options.contains(value)
    {
        return Err(Mismatch::new(format!(
            "must be one of {}",
            Value::Array(options.clone())
        )));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Err(Mismatch::new(format!("must be {}", schema["const"])));
    }
    match value {
        Value::Number(number) => number
            .as_f64()
            .map_or(Ok(()), |number| bounds(number, schema)),
        Value::String(text) => length(
            text.chars().count(),
            schema,
            "minLength",
            "maxLength",
            "characters",
        ),
        Value::Array(values) => list(values, schema, root),
        Value::Object(members) => object(members, schema, root),
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

fn of_type(value: &Value, schema: &Map<String, Value>) -> Result<(), Mismatch> {
    let is = |name: &str| match (name, value) {
        ("null", Value::Null) | ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) => true,
        ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => {
            number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    };
    let (holds, wanted) = match schema.get("type") {
        Some(Value::String(name)) => (is(name), name.clone()),
        Some(Value::Array(names)) => {
            let mut names = names.iter().filter_map(Value::as_str);
            (
                names.clone().any(is),
                names.by_ref().collect::<Vec<_>>().join(" or "),
            )
        }
        _ => return Ok(()),
    };
    if holds {
        Ok(())
    } else {
        Err(Mismatch::new(format!("must be of the type {wanted}")))
    }
}

fn bounds(number: f64, schema: &Map<String, Value>) -> Result<(), Mismatch> {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let wrong = |what: &str, bound: f64| Err(Mismatch::new(format!("must be {what} {bound}")));
    match (
        bound("minimum"),
        bound("maximum"),
        bound("exclusiveMinimum"),
        bound("exclusiveMaximum"),
    ) {
        (Some(least), ..) if number < least => wrong("at least", least),
        (_, Some(most), ..) if number > most => wrong("at most", most),
        (_, _, Some(bound), _) if number <= bound => wrong("greater than", bound),
        (.., Some(bound)) if number >= bound => wrong("less than", bound),
        _ => Ok(()),
    }
}

fn length(
    length: usize,
    schema: &Map<String, Value>,
    least: &str,
    most: &str,
    of: &str,
) -> Result<(), Mismatch> {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    match (bound(least), bound(most)) {
        (Some(least), _) if (length as u64) < least => {
            Err(Mismatch::new(format!("must have at least {least} {of}")))
        }
        (_, Some(most)) if length as u64 > most => {
            Err(Mismatch::new(format!("must have at most {most} {of}")))
        }
        _ => Ok(()),
    }
}

fn list(values: &[Value], schema: &Map<String, Value>, root: &Value) -> Result<(), Mismatch> {
    length(values.len(), schema, "minItems", "maxItems", "items")?;
    if schema.contains_key("uniqueItems")
        && let Some(at) = (1..values.len()).find(|at| values[..*at].contains(&values[*at]))
    {
        return Err(Mismatch::new("is given twice").inside(&at.to_string()));
    }
    let prefix = schema.get("prefixItems").and_then(Value::as_array);
    for (at, value) in values.iter().enumerate() {
        let item = prefix
            .and_then(|prefix| prefix.get(at))
            .or_else(|| schema.get("items"));
        let Some(item) = item else { continue };
        fits(value, item, root).map_err(|mismatch| mismatch.inside(&at.to_string()))?;
    }
    Ok(())
}

fn object(
    members: &Map<String, Value>,
    schema: &Map<String, Value>,
    root: &Value,
) -> Result<(), Mismatch> {
    length(
        members.len(),
        schema,
        "minProperties",
        "maxProperties",
        "members",
    )?;
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    if let Some(name) = required
        .filter_map(Value::as_str)
        .find(|name| !members.contains_key(*name))
    {
        return Err(Mismatch::new("is required").inside(name));
    }
    for (name, value) in members {
        if let Some(names) = schema.get("propertyNames") {
            fits(&Value::String(name.clone()), names, root)
                .map_err(|mismatch| mismatch.inside(name))?;
        }
        let property = schema
            .get("properties")
            .and_then(|properties| properties.get(name));
        match property.or_else(|| schema.get("additionalProperties")) {
            Some(Value::Bool(false)) => return Err(Mismatch::new("is not a member").inside(name)),
            Some(property) => {
                fits(value, property, root).map_err(|mismatch| mismatch.inside(name))?
            }
            None => {}
        }
    }
    Ok(())
}
