//! A field that the agent neither sees nor sets: bound to the caller or to a constant.

use serde_json::Value;

use super::{
    field::{self, FieldType},
    keys,
    table::{self, FileProblems, FormTable},
};
use crate::{contract::BoundSource, name};

/// A bound field, as it is written.
#[derive(Clone, Debug)]
pub struct FormBound {
    pub name: String,
    pub source: BoundSource,
    /// The type; without it the column's own.
    pub kind: Option<FieldType>,
    pub column: Option<String>,
    pub comparison: Option<String>,
    pub param: Option<String>,
    pub(crate) place: String,
}

/// The keys that make a field a bound one.
pub(super) const SOURCES: [&str; 2] = ["from", "value"];

pub(super) fn is_bound(field: &Value) -> bool {
    field
        .as_object()
        .is_some_and(|field| SOURCES.iter().any(|key| field.contains_key(*key)))
}

pub(super) fn read(value: &Value, place: String, problems: &mut FileProblems) -> Option<FormBound> {
    let table = &FormTable::new(value, place, problems)?;
    let field_name = table.required_text("name", problems).unwrap_or_default();
    if table.get("name").is_some_and(Value::is_string)
        && let Err(message) = name::check_bound_field(&field_name)
    {
        let hint = "write a name without blanks, of at most 64 characters";
        problems.add_hint(table.at("name"), message, hint);
    }
    let mut known: Vec<&str> = keys::names(keys::BOUND_FIELD).collect();
    for key in field::keys_of_agents().filter(|key| table.has(key)) {
        let message =
            format!("'{key}' has no meaning here: the agent neither sees nor sets this field");
        problems.add_hint(
            table.at(key),
            message,
            format!("drop `{key}`, or drop `from` and `value`"),
        );
        known.push(key);
    }
    table.check_keys(&known, problems);
    let kind = match table.has("type") {
        true => Some(FieldType::plain(&field::type_word(table, problems)?)),
        false => None,
    };
    Some(FormBound {
        name: field_name,
        source: source(table, problems)?,
        kind,
        column: table.text("column", table::TITLE_MAX, problems),
        comparison: table.text("match", table::TITLE_MAX, problems),
        param: table.text("param", table::TITLE_MAX, problems),
        place: table.place().to_owned(),
    })
}

fn source(table: &FormTable<'_>, problems: &mut FileProblems) -> Option<BoundSource> {
    if SOURCES.iter().all(|key| table.has(key)) {
        problems.add_hint(
            table.at("value"),
            "the field has 'from' as well",
            "keep one of them",
        );
        return None;
    }
    if let Some(value) = table.get("value") {
        return Some(BoundSource::Value(value.clone()));
    }
    match table.text("from", table::TITLE_MAX, problems)?.as_str() {
        "agent" => Some(BoundSource::Agent),
        "tenant" => Some(BoundSource::Tenant),
        other => {
            let message = format!("nothing comes from {}", name::quoted(other));
            problems.add_hint(
                table.at("from"),
                message,
                "use agent or tenant; a constant goes under `value:`",
            );
            None
        }
    }
}
