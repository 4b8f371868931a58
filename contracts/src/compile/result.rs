//! Output schemas, from shape and verb, never from the author.
//!
//! `{type, properties, anyOf: [result arm, error arm]}`: one generation of clients validates `structuredContent` even
//! on errors, and readers of root `properties` would lose the types under a bare `anyOf`. A column named like a member
//! of an error is typed in the result arm, since in the root it would type the error too.

use serde_json::{Map, Value, json};

use crate::{
    contract::{ToolBinding, ToolVerb},
    shape::{CollectionShape, MisfitPolicy, ShapeField, ValueType},
    values,
};

/// Members an error may have (design §4); none of them is typed in the root.
pub(crate) const ERROR_MEMBERS: &[&str] = &[
    "code",
    "call_id",
    "message",
    "field",
    "reason",
    "errors",
    "retry_after_ms",
    "outcome",
];

/// Returns the schema of every result of a tool, errors included.
/// `fields` are those that the records of an answer can have, or the operation's.
pub(crate) fn schema(
    verb: ToolVerb,
    fields: &[ShapeField],
    binding: &ToolBinding,
    shape: &CollectionShape,
) -> Value {
    let (columns, misfits) = (&binding.columns, shape.misfits);
    if let Some(choices) = &binding.summary {
        return summary_schema(&choices.fields(shape), misfits);
    }
    let (properties, required) = match verb {
        ToolVerb::Lookup => record_members(fields, columns),
        ToolVerb::Count => {
            let mut members = Map::from_iter([(COUNT.to_owned(), value(&count_field()))]);
            add_skipped(&mut members, misfits);
            (members, vec![COUNT.into()])
        }
        ToolVerb::List => {
            let choices = binding.list.as_ref();
            let item = match choices.filter(|choices| !choices.columns.is_empty()) {
                Some(choices) => chosen_record(fields, &choices.columns, &shape.key, columns),
                None => record(fields, columns),
            };
            let records = json!({ "type": "array", "items": item });
            let next = json!({ "type": ["string", "null"] });
            let mut members =
                Map::from_iter([("records".to_owned(), records), ("next".to_owned(), next)]);
            if choices.is_some_and(|choices| choices.with_total) {
                let total = json!({ "type": ["integer", "null"], "description": "How many records meet the filters in all, if `with_total` asked for it; null if counting took too long." });
                members.insert("total".to_owned(), total);
            }
            add_skipped(&mut members, misfits);
            (members, vec!["records".into(), "next".into()])
        }
        ToolVerb::Create
        | ToolVerb::Update
        | ToolVerb::Delete
        | ToolVerb::Call
        | ToolVerb::Summarize => {
            let status = json!({ "type": "string", "enum": [status(verb)] });
            (
                Map::from_iter([
                    ("status".to_owned(), status),
                    ("record".to_owned(), record(fields, columns)),
                ]),
                vec!["status".into(), "record".into()],
            )
        }
    };
    with_errors(properties, required)
}

/// Returns the schema of every result of a summary. Its records have the members that were asked for, and no others.
fn summary_schema(fields: &[ShapeField], misfits: MisfitPolicy) -> Value {
    let columns: Vec<String> = fields.iter().map(|field| field.key.clone()).collect();
    let (properties, _) = record_members(fields, &columns);
    let records =
        json!({ "type": "array", "items": { "type": "object", "properties": properties } });
    let more = json!({ "type": "boolean", "description": "Whether there are further groups." });
    let mut members = Map::from_iter([("records".to_owned(), records), ("more".to_owned(), more)]);
    add_skipped(&mut members, misfits);
    with_errors(members, vec!["records".into(), "more".into()])
}

/// Joins the members of a result with those of an error.
fn with_errors(properties: Map<String, Value>, required: Vec<Value>) -> Value {
    let (in_arm, in_root): (Map<_, _>, Map<_, _>) = properties
        .into_iter()
        .partition(|(name, _)| ERROR_MEMBERS.contains(&name.as_str()));
    let mut arm = Map::new();
    if !in_arm.is_empty() {
        arm.insert("properties".into(), Value::Object(in_arm));
    }
    arm.insert("required".into(), Value::Array(required));
    json!({ "type": "object", "properties": in_root, "anyOf": [arm, error_members()] })
}

/// The only member of a count.
pub(crate) const COUNT: &str = "count";

/// Returns the field of the one record that a count answers.
pub fn count_field() -> ShapeField {
    ShapeField::new(COUNT, ValueType::Integer)
}

fn add_skipped(members: &mut Map<String, Value>, misfits: MisfitPolicy) {
    if misfits == MisfitPolicy::Empty {
        let skipped = json!({ "type": "integer", "description": "Records left out because a filter could not compare their value." });
        members.insert("skipped".to_owned(), skipped);
    }
}

/// Returns only the result arm of an output schema, which successes are checked against.
pub fn result_arm(output_schema: &Value) -> Value {
    let Value::Object(members) = output_schema else {
        return output_schema.clone();
    };
    let mut alone = members.clone();
    let arm = alone
        .shift_remove("anyOf")
        .and_then(|mut arms| Some(arms.get_mut(0)?.take()));
    let Some(Value::Object(mut arm)) = arm else {
        return Value::Object(alone);
    };
    if let (Some(Value::Object(properties)), Some(Value::Object(more))) =
        (alone.get_mut("properties"), arm.shift_remove("properties"))
    {
        properties.extend(more);
    }
    alone.extend(arm);
    Value::Object(alone)
}

/// Returns only the error arm, which errors are checked against. It is the same for all tools.
pub fn error_arm() -> Value {
    let mut arm = Map::from_iter([("type".to_owned(), "object".into())]);
    if let Value::Object(members) = error_members() {
        arm.extend(members);
    }
    Value::Object(arm)
}

/// Returns the word that a write answers with.
pub(super) fn status(verb: ToolVerb) -> &'static str {
    match verb {
        ToolVerb::Create => "created",
        ToolVerb::Update => "updated",
        ToolVerb::Delete => "deleted",
        ToolVerb::Lookup
        | ToolVerb::List
        | ToolVerb::Count
        | ToolVerb::Summarize
        | ToolVerb::Call => "done",
    }
}

/// Returns the members of every error. They are frozen.
pub(crate) fn error_members() -> Value {
    json!({
        "properties": { "code": { "type": "string" }, "call_id": { "type": "string" } },
        "required": ["code", "call_id"],
    })
}

/// Returns the schema of one record. It is open, and every column is present.
fn record(fields: &[ShapeField], columns: &[String]) -> Value {
    let (properties, required) = record_members(fields, columns);
    open_object(properties, required)
}

/// Returns the schema of a record whose columns are chosen. Only those of the key are always present, where
/// they are answered without a choice too.
fn chosen_record(
    fields: &[ShapeField],
    columns: &[String],
    key: &[String],
    answered: &[String],
) -> Value {
    let (properties, mut required) = record_members(fields, columns);
    let is_present = |known: &String| answered.contains(known);
    required.retain(|column| {
        key.iter()
            .any(|known| *column == *known.as_str() && is_present(known))
    });
    open_object(properties, required)
}

fn open_object(properties: Map<String, Value>, required: Vec<Value>) -> Value {
    let mut schema = Map::from_iter([("type".to_owned(), Value::from("object"))]);
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), Value::Array(required));
    }
    Value::Object(schema)
}

pub(super) fn record_members(
    fields: &[ShapeField],
    columns: &[String],
) -> (Map<String, Value>, Vec<Value>) {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for column in columns {
        let Some(field) = fields.iter().find(|field| field.key == *column) else {
            continue;
        };
        properties.insert(column.clone(), value(field));
        required.push(column.clone().into());
    }
    (properties, required)
}

/// Returns the schema of one column's values.
pub(super) fn value(field: &ShapeField) -> Value {
    let mut schema = Map::new();
    let word = match field.kind {
        ValueType::String | ValueType::Decimal | ValueType::Date | ValueType::Datetime => {
            Some("string")
        }
        ValueType::Integer => Some("integer"),
        ValueType::Number => Some("number"),
        ValueType::Boolean => Some("boolean"),
        ValueType::Record => Some("object"),
        ValueType::List => Some("array"),
        ValueType::Json => None,
    };
    if let Some(word) = word {
        let word = Value::from(word);
        let types = if field.nullable {
            Value::Array(vec![word, "null".into()])
        } else {
            word
        };
        schema.insert("type".into(), types);
    }
    match field.kind {
        ValueType::Decimal => drop(schema.insert("pattern".into(), values::DECIMAL_PATTERN.into())),
        ValueType::Date => drop(schema.insert("format".into(), "date".into())),
        ValueType::Datetime => drop(schema.insert("format".into(), "date-time".into())),
        ValueType::List => {
            let items = field.items.as_deref().map_or_else(|| json!({}), value);
            schema.insert("items".into(), items);
        }
        ValueType::Record => {
            let names: Vec<String> = field.fields.iter().map(|inner| inner.key.clone()).collect();
            let (properties, required) = record_members(&field.fields, &names);
            schema.insert("properties".into(), Value::Object(properties));
            if !required.is_empty() {
                schema.insert("required".into(), Value::Array(required));
            }
        }
        ValueType::String
        | ValueType::Integer
        | ValueType::Number
        | ValueType::Boolean
        | ValueType::Json => {}
    }
    if let Some(description) = &field.description {
        schema.insert("description".into(), description.clone().into());
    }
    Value::Object(schema)
}
