//! Compiles the order of a list.

use super::{Problems, binding::Target, collection::no_column};
use crate::{contract::Verb, form, name, shape::Type};

/// Returns the order asked for, followed by the key, so that paging meets each record once.
pub(super) fn compile(
    form: &form::Tool,
    target: &Target<'_>,
    problems: &mut Problems,
) -> Vec<String> {
    if !matches!(target.verb, Verb::List | Verb::Lookup) {
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
        let Some(field) = shape.field(column) else {
            no_column(place, column, shape, problems);
            continue;
        };
        if matches!(field.kind, Type::Json | Type::Record | Type::List) {
            problems.add(
                place,
                format!("a {} column has no order", field.kind.word()),
            );
        } else if !shape.capabilities.orders(column) {
            let can = &shape.capabilities.order;
            let hint = match can.is_empty() {
                true => "the source has its own order; drop `order`".to_owned(),
                false => format!("it can order by {}", can.join(", ")),
            };
            problems.add_hint(
                place,
                format!("the source cannot order by '{column}'"),
                hint,
            );
        } else if names_column(&order, column) {
            problems.add(place, format!("{} occurs twice", name::quoted(column)));
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

fn names_column(order: &[String], column: &str) -> bool {
    order
        .iter()
        .any(|entry| entry == column || entry.strip_prefix('-') == Some(column))
}
