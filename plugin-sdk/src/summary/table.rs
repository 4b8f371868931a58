//! Groups with their measures become the records of an answer: the same way whatever has computed them.

use std::cmp::Ordering;

use super::{DateStep, SummaryFunction, SummaryPage, SummaryQuery};
use crate::error::{Error, Result};
use crate::matches::Matcher;
use crate::records::Records;
use crate::shape::{Field, Shape, Type};
use crate::value::{Value, Zone};

/// The most groups that are computed for one answer. More are refused, for the order and the limit come after them.
pub const GROUPS_MAX: usize = 20_000;

/// A group: the values that its records have in common, and its measures, both in the query's order.
pub type GroupRow = (Vec<Value<'static>>, Vec<Value<'static>>);

/// Returns the error for too many groups.
pub fn too_many_groups() -> Error {
    Error::new(
        "too_large",
        format!(
            "There are more than {GROUPS_MAX} groups; narrow the conditions, or group by fewer columns."
        ),
    )
}

/// Returns the label of the period that contains a date (`YYYY-MM-DD`).
pub fn step_label(date: &str, step: DateStep) -> Option<String> {
    let civil: jiff::civil::Date = date.parse().ok()?;
    Some(match step {
        DateStep::Day => date.to_owned(),
        DateStep::Week => {
            let week = civil.iso_week_date();
            // The week of 0000-01-01 is one of the year before.
            let sign = if week.year() < 0 { "-" } else { "" };
            format!(
                "{sign}{:04}-W{:02}",
                week.year().unsigned_abs(),
                week.week()
            )
        }
        DateStep::Month => date[..7].to_owned(),
        DateStep::Quarter => format!("{}-Q{}", &date[..4], (civil.month() + 2) / 3),
        DateStep::Year => date[..4].to_owned(),
    })
}

/// Returns the field of a measure, which is what its values are.
pub(super) fn measure_field(
    name: &str,
    function: SummaryFunction,
    column: Option<&Field>,
) -> Field {
    let of_column = column.map_or(Type::Integer, |column| column.kind);
    let kind = match function {
        SummaryFunction::Count | SummaryFunction::Distinct => Type::Integer,
        // An average of integers is not an integer.
        SummaryFunction::Average if of_column == Type::Integer => Type::Number,
        _ => of_column,
    };
    let mut field = Field::new(name, kind);
    field.nullable = true;
    field
}

/// Sorts groups, leaves out those that `having` excludes, and writes as many as requested.
pub fn write_groups(
    query: &SummaryQuery,
    shape: &Shape,
    zone: &Zone,
    mut rows: Vec<GroupRow>,
) -> Result<SummaryPage> {
    let measure = |name: &str| query.measures.iter().position(|one| one.name == name);
    let mut having = Vec::new();
    for condition in &query.having {
        let at = measure(&condition.column).ok_or_else(|| unknown(&condition.column))?;
        let asked = &query.measures[at];
        let column = asked
            .column
            .as_deref()
            .map(|column| find(shape, column))
            .transpose()?;
        let field = measure_field(&asked.name, asked.function, column);
        having.push((at, Matcher::new(condition, &field, zone)?));
    }
    rows.retain(|(_, measures)| {
        having
            .iter()
            .all(|(at, matcher)| matcher.matches(&measures[*at]))
    });
    let mut order = Vec::new();
    for by in &query.order {
        let group = query.groups.iter().position(|one| one.name == by.column);
        let place = match (group, measure(&by.column)) {
            (Some(at), _) => (true, at),
            (None, Some(at)) => (false, at),
            (None, None) => return Err(unknown(&by.column)),
        };
        order.push((place, by.descending));
    }
    order.extend((0..query.groups.len()).map(|at| ((true, at), false)));
    let compare = |left: &GroupRow, right: &GroupRow| {
        let each = order.iter().map(|((is_group, at), descending)| {
            let (left, right) = match is_group {
                true => (&left.0[*at], &right.0[*at]),
                false => (&left.1[*at], &right.1[*at]),
            };
            left.order(right, *descending)
        });
        each.fold(Ordering::Equal, Ordering::then)
    };
    rows.sort_by(compare);
    let more = rows.len() > query.limit as usize;
    rows.truncate(query.limit as usize);
    let mut records = Records::new();
    for (groups, measures) in rows {
        let groups = query.groups.iter().map(|one| one.name.as_str()).zip(groups);
        let names = query.measures.iter().map(|one| one.name.as_str());
        records.push(groups.chain(names.zip(measures)));
    }
    Ok(SummaryPage {
        records: records.finish(),
        more,
    })
}

/// Finds a column of the shape.
pub fn find<'s>(shape: &'s Shape, column: &str) -> Result<&'s Field> {
    let field = shape.fields.iter().find(|field| field.key == column);
    field.ok_or_else(|| {
        Error::invalid(format!("The collection has no column {column:?}.")).field(column)
    })
}

fn unknown(name: &str) -> Error {
    Error::invalid(format!("The summary has no group and no measure {name:?}.")).field(name)
}
