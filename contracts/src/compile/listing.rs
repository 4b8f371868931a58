//! Compiles what an agent can choose of a list: its order, the columns of its records, and whether it counts them all.

use serde_json::{Map, Value, json};

use super::{FileProblems, binding::BindingTarget, order, summary};
use crate::{
    contract::{ListChoices, ToolVerb},
    form, name,
    shape::SummarySupport,
};

/// The arguments that every list has in addition to its filters.
const INPUTS: [&str; 2] = ["limit", "cursor"];
const ORDER_BY: &str = "order_by";
const COLUMNS: &str = "columns";
const WITH_TOTAL: &str = "with_total";
/// Columns that one question orders by at most.
const ORDER_BY_MAX: usize = 3;

/// Compiles the choices that a form offers. `answered` are the columns of a record where an agent chooses none.
pub(super) fn choices(
    form: &form::FormTool,
    target: &BindingTarget<'_>,
    answered: &[String],
    problems: &mut FileProblems,
) -> Option<ListChoices> {
    let offers = form.order_by.is_some() || form.columns.is_some() || form.with_total;
    if target.verb != ToolVerb::List || !offers {
        return None;
    }
    Some(ListChoices {
        order_by: order_by(form, target, problems),
        columns: columns(form, target, answered, problems),
        with_total: with_total(form, target, problems),
    })
}

fn order_by(
    form: &form::FormTool,
    target: &BindingTarget<'_>,
    problems: &mut FileProblems,
) -> Vec<String> {
    let wanted = form.order_by.as_deref().unwrap_or_default();
    if form.order_by.is_some() && wanted.is_empty() {
        refuse_empty(form, ORDER_BY, problems);
    }
    for (index, column) in wanted.iter().enumerate() {
        let place = format!("{}/{ORDER_BY}/{index}", form.place);
        if target.collection.shape.field(column).is_none()
            && let Some(bare) = column.strip_prefix('-')
            && target.collection.shape.field(bare).is_some()
        {
            let hint = format!("write `{bare}`: an agent chooses the direction");
            problems.add_hint(place, "a column is offered both ways", hint);
            continue;
        }
        // A caller that may order by a column can find out its values piece by piece.
        if summary::published(column, target.collection, &place, problems).is_none() {
            continue;
        }
        if column.starts_with('-') {
            let message = format!("{} reads as a direction", name::quoted(column));
            problems.add_hint(place, message, "drop it");
            continue;
        }
        order::check_column(&place, ORDER_BY, column, &target.collection.shape, problems);
    }
    wanted.to_vec()
}

/// Returns every column that a record can have, in the collection's order.
fn columns(
    form: &form::FormTool,
    target: &BindingTarget<'_>,
    answered: &[String],
    problems: &mut FileProblems,
) -> Vec<String> {
    let Some(wanted) = &form.columns else {
        return Vec::new();
    };
    if wanted.is_empty() {
        refuse_empty(form, COLUMNS, problems);
    }
    for (index, column) in wanted.iter().enumerate() {
        let place = format!("{}/{COLUMNS}/{index}", form.place);
        summary::published(column, target.collection, &place, problems);
    }
    let published = target.collection.published.iter();
    published
        .filter(|column| wanted.contains(column) || answered.contains(column))
        .cloned()
        .collect()
}

fn with_total(
    form: &form::FormTool,
    target: &BindingTarget<'_>,
    problems: &mut FileProblems,
) -> bool {
    let collection = target.collection;
    if form.with_total && collection.shape.capabilities.summaries < SummarySupport::Count {
        let place = format!("{}/{WITH_TOTAL}", form.place);
        let message = format!(
            "collection '{}' has no total: the source cannot count records",
            collection.name
        );
        let hint = "drop it, or serve the data by an adapter that can";
        problems.add_hint(place, message, hint);
    }
    form.with_total
}

fn refuse_empty(form: &form::FormTool, key: &str, problems: &mut FileProblems) {
    let place = format!("{}/{key}", form.place);
    problems.add_hint(place, "names no column", "drop it, or name columns");
}

/// Adds the arguments by which an agent chooses.
pub(super) fn add_inputs(choices: &ListChoices, answered: &[String], input_schema: &mut Value) {
    let Some(properties) = input_schema["properties"].as_object_mut() else {
        return;
    };
    if !choices.order_by.is_empty() {
        let both = choices.order_by.iter();
        let both: Vec<String> = both
            .flat_map(|column| [column.clone(), format!("-{column}")])
            .collect();
        let order_by = json!({
            "type": "array", "items": { "type": "string", "enum": both }, "minItems": 1, "maxItems": ORDER_BY_MAX, "uniqueItems": true,
            "description": "Columns to order by, the first one first; \"-\" in front puts the largest first. Empty ones come last.",
        });
        insert_before_limit(properties, ORDER_BY, order_by);
    }
    if !choices.columns.is_empty() {
        let mut columns = json!({
            "type": "array", "items": { "type": "string", "enum": choices.columns }, "minItems": 1, "uniqueItems": true,
        });
        if answered.len() < choices.columns.len() {
            columns["default"] = json!(answered);
        }
        columns["description"] = "The columns that each record has, beside its key.".into();
        insert_before_limit(properties, COLUMNS, columns);
    }
    if choices.with_total {
        let with_total = json!({
            "type": "boolean", "default": false,
            "description": "Whether to say in `total` how many records meet the filters, on all pages together.",
        });
        insert_before_limit(properties, WITH_TOTAL, with_total);
    }
}

/// Adds a property before those that every list has.
fn insert_before_limit(properties: &mut Map<String, Value>, name: &str, schema: Value) {
    let place = properties.keys().position(|known| known == INPUTS[0]);
    properties.shift_insert(place.unwrap_or(properties.len()), name.to_owned(), schema);
}

/// Checks the keys that only a list has, and the names that it takes for itself.
pub(super) fn check_keys(form: &form::FormTool, verb: ToolVerb, problems: &mut FileProblems) {
    let keys = [
        (ORDER_BY, form.order_by.is_some()),
        (COLUMNS, form.columns.is_some()),
        (WITH_TOTAL, form.with_total),
    ];
    if verb != ToolVerb::List {
        for (key, _) in keys.into_iter().filter(|(_, is_given)| *is_given) {
            let place = format!("{}/{key}", form.place);
            problems.add_hint(place, "only a list has it", "drop it");
        }
        return;
    }
    let opted = keys.into_iter().filter(|(_, is_given)| *is_given);
    let own: Vec<&str> = INPUTS
        .into_iter()
        .chain(opted.map(|(key, _)| key))
        .collect();
    for field in &form.fields {
        if own.contains(&field.name.as_str()) {
            let message = match INPUTS.contains(&field.name.as_str()) {
                true => format!("every list has its own '{}'", field.name),
                false => format!("this list has its own '{}'", field.name),
            };
            let place = format!("{}/name", field.place);
            problems.add_hint(place, message, "choose another name");
        }
    }
}
