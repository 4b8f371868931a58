//! A described shape becomes the recorded one: the contract's key, types and time zone applied.

use super::{FileProblems, timezone};
use crate::{
    contract::ContractCollection,
    form, json, name,
    shape::{CollectionShape, MisfitPolicy, ShapeField, ValueType},
};

/// Compiles one collection. `None` means that it is refused; tools bound to it are then checked as far as possible.
pub(super) fn compile(
    entry: &form::FormCollection,
    described: Option<&CollectionShape>,
    problems: &mut FileProblems,
) -> Option<ContractCollection> {
    let before = problems.len();
    if let Err(message) = name::check_collection(&entry.name) {
        problems.add_hint(
            entry.place.clone(),
            message,
            "write one such as `open_orders`",
        );
    }
    timezone::check(entry, described, problems);
    let Some(described) = described else {
        problems.add_hint(
            entry.place.clone(),
            format!("shape of {} unknown", entry.name),
            format!(
                "pass --shape {}=SHAPE.json, or a config whose plugins can describe it",
                entry.name
            ),
        );
        return None;
    };
    if let Err(message) = described.check() {
        problems.add_hint(
            entry.place.clone(),
            format!("the shape of {} is not usable: {message}", entry.name),
            "mend the file given by --shape, or the adapter that describes the source",
        );
        return None;
    }
    let shape = recorded(entry, described, problems);
    let published = published(entry, &shape, problems);
    check_write(entry, &shape, problems);
    (problems.len() == before).then(|| ContractCollection {
        name: entry.name.clone(),
        adapter: entry.adapter.clone(),
        settings: entry.settings.clone(),
        shape,
        published,
        write: entry.write,
        overrides: entry.overrides.clone(),
    })
}

fn recorded(
    entry: &form::FormCollection,
    described: &CollectionShape,
    problems: &mut FileProblems,
) -> CollectionShape {
    let mut shape = described.clone();
    for (index, change) in entry.overrides.iter().enumerate() {
        let mut place = format!("{}/shape", entry.place);
        json::push_pointer(&mut place, &change.column);
        if shape.field(&change.column).is_none() {
            no_column(place, &change.column, &shape, problems);
        } else if entry.overrides[..index]
            .iter()
            .any(|other| other.column == change.column)
        {
            let hint = "put everything about the column in one entry";
            problems.add_hint(place, "the column is there twice", hint);
        }
    }
    shape.apply(&entry.overrides);
    check_formats(entry, &shape, problems);
    shape
        .fields
        .iter_mut()
        .for_each(|field| field.readings.clear());
    shape.left_out.clear();
    shape.parts.clear();
    shape.notes.clear();
    if entry.timezone.is_some() {
        shape.timezone = entry.timezone.clone();
    }
    if let Some(key) = &entry.key {
        shape.key = key.clone();
    }
    for (index, column) in shape.key.clone().iter().enumerate() {
        let place = match entry.key.is_some() {
            true => format!("{}/key/{index}", entry.place),
            false => entry.place.clone(),
        };
        let Some(field) = shape.fields.iter_mut().find(|field| field.key == *column) else {
            no_column(place, column, described, problems);
            continue;
        };
        if matches!(
            field.kind,
            ValueType::Json | ValueType::Record | ValueType::List
        ) {
            problems.add_hint(
                place,
                format!("a {} column cannot be part of the key", field.kind.word()),
                "name columns of plain values under `key:`",
            );
        }
        // A record whose key is null is refused when it comes.
        field.nullable = false;
    }
    check_cell_rules(entry, problems);
    shape.apply_misfits(entry.misfits, &entry.null_words);
    shape
}

/// Checks that rules for texts that are not values are given only for sources of text.
fn check_cell_rules(entry: &form::FormCollection, problems: &mut FileProblems) {
    if CollectionShape::takes_formats(&entry.adapter) {
        return;
    }
    let keys = [
        ("misfits", entry.misfits != MisfitPolicy::Refuse),
        ("null_words", !entry.null_words.is_empty()),
    ];
    for (key, _) in keys.into_iter().filter(|(_, is_given)| *is_given) {
        problems.add_hint(
            format!("{}/{key}", entry.place),
            format!(
                "the adapter '{}' reads no cells of text: its values have types, and conditions are judged by the source",
                entry.adapter
            ),
            format!("drop {key}"),
        );
    }
}

/// Checks that formats fit their column's type, and that only a source that holds text has them.
fn check_formats(
    entry: &form::FormCollection,
    shape: &CollectionShape,
    problems: &mut FileProblems,
) {
    for change in &entry.overrides {
        let (Some(format), Some(field)) = (&change.format, shape.field(&change.column)) else {
            continue;
        };
        let mut place = format!("{}/shape", entry.place);
        json::push_pointer(&mut place, &change.column);
        if !CollectionShape::takes_formats(&entry.adapter) {
            let keys: Vec<&str> = format.keys().map(|(key, _)| key).collect();
            let message = format!(
                "the adapter '{}' reads no column in a format of its own",
                entry.adapter
            );
            problems.add_hint(place, message, format!("drop {}", keys.join(" and ")));
            continue;
        }
        for fault in format.check(field.kind) {
            let place = format!("{place}/{}", fault.key);
            problems.add_hint(place, fault.message, fault.hint);
        }
    }
}

fn published(
    entry: &form::FormCollection,
    shape: &CollectionShape,
    problems: &mut FileProblems,
) -> Vec<String> {
    let (key, named) = match &entry.columns {
        Some(columns) => ("columns", columns),
        None => ("hide", &entry.hide),
    };
    for (index, column) in named
        .iter()
        .enumerate()
        .filter(|(_, column)| shape.field(column).is_none())
    {
        no_column(
            format!("{}/{key}/{index}", entry.place),
            column,
            shape,
            problems,
        );
    }
    let published: Vec<String> = match &entry.columns {
        Some(columns) => columns.clone(),
        None => shape
            .fields
            .iter()
            .map(|field| field.key.clone())
            .filter(|key| !entry.hide.contains(key))
            .collect(),
    };
    if published.is_empty() && shape.capabilities.operations.is_empty() {
        let hint = match entry.columns.is_some() {
            true => "name the columns that may leave the source under `columns:`",
            false => "take a column out of `hide:`",
        };
        problems.add_hint(entry.place.clone(), "no column is published", hint);
    }
    published
}

fn check_write(entry: &form::FormCollection, shape: &CollectionShape, problems: &mut FileProblems) {
    if entry.write
        && shape.capabilities.write.is_empty()
        && shape.capabilities.operations.is_empty()
    {
        let reason = shape
            .capabilities
            .read_only
            .as_deref()
            .unwrap_or("the source cannot be written");
        problems.add_hint(
            format!("{}/write", entry.place),
            format!("the collection cannot be written: {reason}"),
            "drop `write: true`",
        );
    }
}

/// Reports a column that does not exist. Every such problem uses this one sentence.
pub(super) fn no_column(
    place: String,
    column: &str,
    shape: &CollectionShape,
    problems: &mut FileProblems,
) {
    problems.add_hint(
        place,
        format!("there is no column {}", name::quoted(column)),
        columns_hint(column, &shape.fields),
    );
}

pub(super) fn columns_hint(column: &str, fields: &[ShapeField]) -> String {
    match name::nearest(column, fields.iter().map(|field| field.key.as_str())) {
        Some(near) => format!("did you mean '{near}'?"),
        None => {
            let names: Vec<&str> = fields
                .iter()
                .take(20)
                .map(|field| field.key.as_str())
                .collect();
            format!("columns: {}", names.join(", "))
        }
    }
}
