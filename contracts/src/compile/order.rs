//! Compiles the order of a list.

use super::{FileProblems, binding::BindingTarget, collection::no_column};
use crate::{
    contract::ToolVerb,
    form, name,
    shape::{CollectionShape, ValueType},
};

/// Returns the order asked for, followed by the key, so that paging meets each record once.
pub(super) fn compile(
    form: &form::FormTool,
    target: &BindingTarget<'_>,
    problems: &mut FileProblems,
) -> Vec<String> {
    if !matches!(target.verb, ToolVerb::List | ToolVerb::Lookup) {
        return Vec::new();
    }
    let shape = &target.collection.shape;
    let mut order: Vec<String> = Vec::new();
    for (index, entry) in form.order.iter().flatten().enumerate() {
        let place = format!("{}/order/{index}", form.place);
        let column = match shape.field(entry) {
            Some(_) => entry.as_str(),
            None => entry.strip_prefix('-').unwrap_or(entry),
        };
        if shape.field(column).is_none() {
            no_column(place, column, shape, problems);
            continue;
        }
        if check_column(&place, "order", column, shape, problems) && names_column(&order, column) {
            let message = format!("{} occurs twice", name::quoted(column));
            problems.add_hint(place, message, "drop one of the two");
        }
        order.push(entry.clone());
    }
    for column in &shape.key {
        if !names_column(&order, column) && shape.capabilities.orders(column) {
            order.push(column.clone());
        }
    }
    order
}

/// Checks that the source orders by a column that it has. `key` is what the form asks for it with.
pub(super) fn check_column(
    place: &str,
    key: &str,
    column: &str,
    shape: &CollectionShape,
    problems: &mut FileProblems,
) -> bool {
    let kind = shape
        .field(column)
        .map_or(ValueType::String, |field| field.kind);
    if matches!(kind, ValueType::Json | ValueType::Record | ValueType::List) {
        let message = format!("a {} column has no order", kind.word());
        problems.add_hint(
            place,
            message,
            "order by columns of texts, numbers and times",
        );
        return false;
    }
    if shape.capabilities.orders(column) {
        return true;
    }
    let can = &shape.capabilities.order;
    let hint = match can.is_empty() {
        true => format!("the source has its own order; drop `{key}`"),
        false => format!("it can order by {}", can.join(", ")),
    };
    let message = format!("the source cannot order by '{column}'");
    problems.add_hint(place, message, hint);
    false
}

fn names_column(order: &[String], column: &str) -> bool {
    order
        .iter()
        .any(|entry| entry == column || entry.strip_prefix('-') == Some(column))
}
