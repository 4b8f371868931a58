//! Fields bound to the caller or to a constant: checks their destinations, and that their values are allowed there.

use serde_json::Value;

use super::{
    FileProblems,
    binding::{BindingTarget, FieldBinding},
    property::{self, FieldSlot},
    result,
};
use crate::{
    contract::{BoundField, BoundSource, FieldDestination, ToolVerb},
    form::{self, FieldType, FormField},
    shape, validate,
};

impl<'s> BindingTarget<'s> {
    pub(super) fn fix(
        &self,
        entry: &form::FormBound,
        problems: &mut FileProblems,
    ) -> Option<BoundField> {
        let is_null = entry.source == BoundSource::Value(Value::Null);
        if is_null {
            self.check_null(entry, problems)?;
        }
        let field = FormField {
            name: entry.name.clone(),
            nullable: is_null,
            column: entry.column.clone(),
            comparison: entry.comparison.clone(),
            param: entry.param.clone(),
            place: entry.place.clone(),
            ..FormField::of_kind(entry.kind.clone().unwrap_or_else(|| self.fitting(entry)))
        };
        let bound = match self.column_of(entry) {
            Some(column) if self.guards(&column.key) => self.guard(&field, column, problems)?,
            Some(column) if self.verb.is_query() => self.condition(&field, column, problems)?,
            _ => self.bind(&field, problems)?,
        };
        if entry.kind.is_some() {
            property::check_agreement(&field, bound.slot, problems);
        }
        let source = source(entry, &bound, problems)?;
        Some(BoundField {
            name: entry.name.clone(),
            to: bound.to,
            source,
        })
    }

    /// Returns the column that the field goes to; `None` if it goes to a parameter or nowhere.
    fn column_of(&self, entry: &form::FormBound) -> Option<&'s shape::ShapeField> {
        let is_column = entry.param.is_none() && self.verb != ToolVerb::Call;
        self.collection
            .shape
            .field(entry.column.as_deref().unwrap_or(&entry.name))
            .filter(|_| is_column)
    }

    /// Returns the field type that a form would have named.
    fn fitting(&self, entry: &form::FormBound) -> FieldType {
        let column = self
            .column_of(entry)
            .map_or(shape::ValueType::String, |column| column.kind);
        match entry.comparison.as_deref() {
            Some("is-empty") => FieldType::Checkbox,
            Some("one-of") => FieldType::list_of(FieldType::from_value_type(column)),
            _ => FieldType::from_value_type(column),
        }
    }

    fn check_null(&self, entry: &form::FormBound, problems: &mut FileProblems) -> Option<()> {
        let (refusal, hint) = match (
            self.column_of(entry),
            entry.comparison.as_deref().unwrap_or("equals"),
        ) {
            (None, _) => (
                "a parameter is left out rather than null",
                "drop the field, or give it a value",
            ),
            (Some(column), _) if !column.nullable => (
                "the column is never null",
                "drop the field, or give it a value",
            ),
            (_, "equals" | "not-equals") => return Some(()),
            _ => (
                "only equals and not-equals can be asked with null",
                "drop `match`, or give it a value",
            ),
        };
        problems.add_hint(format!("{}/value", entry.place), refusal, hint);
        None
    }

    /// Returns `true` if the bound field is a condition on the record: it is part of an update or delete and not of the
    /// key.
    fn guards(&self, column: &str) -> bool {
        matches!(self.verb, ToolVerb::Update | ToolVerb::Delete)
            && !self.collection.shape.key.iter().any(|key| key == column)
    }

    fn guard(
        &self,
        field: &FormField,
        column: &'s shape::ShapeField,
        problems: &mut FileProblems,
    ) -> Option<FieldBinding<'s>> {
        if !self.collection.shape.capabilities.guarded_write {
            let message = format!(
                "the source cannot hold the record of {} {} to '{}' beside the key",
                if self.verb == ToolVerb::Update {
                    "an"
                } else {
                    "a"
                },
                self.verb.word(),
                column.key
            );
            problems.add_hint(
                field.place.clone(),
                message,
                "drop the tool, or give it a collection that has only such records",
            );
            return None;
        }
        let bound = self.condition(field, column, problems)?;
        let FieldDestination::Condition { column, comparison } = bound.to else {
            return Some(bound);
        };
        Some(FieldBinding {
            to: FieldDestination::Guard { column, comparison },
            ..bound
        })
    }
}

/// Returns the bound field's value as the source receives it.
fn source(
    entry: &form::FormBound,
    bound: &FieldBinding<'_>,
    problems: &mut FileProblems,
) -> Option<BoundSource> {
    let slot = bound.slot;
    let BoundSource::Value(value) = &entry.source else {
        if slot.kind != shape::ValueType::String {
            let message = format!(
                "a name is text, but {} '{}' takes {}",
                slot.what,
                slot.name,
                taken(slot)
            );
            let hint = "bind a column of text, or give a constant by `value`";
            problems.add_hint(format!("{}/from", entry.place), message, hint);
            return None;
        }
        return Some(entry.source.clone());
    };
    let mut value = value.clone();
    bound.form.apply(&mut value);
    if !value.is_null() && !fits(&value, slot) {
        let message = format!(
            "is not a value for {} '{}', which takes {}",
            slot.what,
            slot.name,
            taken(slot)
        );
        let hint = format!("write {} there", taken_value(slot));
        problems.add_hint(format!("{}/value", entry.place), message, hint);
        return None;
    }
    Some(BoundSource::Value(value))
}

fn taken(slot: FieldSlot<'_>) -> String {
    match slot.items {
        Some(items) => format!("a list of {}", items.kind.word()),
        None => slot.kind.word().to_owned(),
    }
}

/// Returns an example of a value that goes there, as a contract writes it.
fn taken_value(slot: FieldSlot<'_>) -> &'static str {
    match slot.kind {
        shape::ValueType::String => "a text, such as \"open\"",
        shape::ValueType::Integer => "a whole number, such as 5",
        shape::ValueType::Decimal => "the digits as text, such as \"1.50\"",
        shape::ValueType::Number => "a number, such as 1.5",
        shape::ValueType::Boolean => "true or false",
        shape::ValueType::Date => "a day, such as \"2026-10-05\"",
        shape::ValueType::Datetime => "a time in UTC, such as \"2026-10-05T09:00:00Z\"",
        shape::ValueType::List => match slot.items.map(|items| items.kind) {
            Some(shape::ValueType::Integer) => "a list, such as [5]",
            Some(shape::ValueType::Number) => "a list, such as [1.5]",
            Some(shape::ValueType::Decimal) => "a list of digits, such as [\"1.50\"]",
            Some(shape::ValueType::Boolean) => "a list, such as [true]",
            Some(shape::ValueType::Date) => "a list, such as [\"2026-10-05\"]",
            Some(shape::ValueType::Datetime) => "a list, such as [\"2026-10-05T09:00:00Z\"]",
            _ => "a list, such as [\"open\"]",
        },
        shape::ValueType::Json | shape::ValueType::Record => "an object",
    }
}

fn fits(value: &Value, slot: FieldSlot<'_>) -> bool {
    let field = shape::ShapeField {
        fields: slot.fields.to_vec(),
        items: slot.items.cloned().map(Box::new),
        ..shape::ShapeField::new(slot.name, slot.kind)
    };
    validate::validator(&result::value(&field)).is_ok_and(|validator| validator.is_valid(value))
}
