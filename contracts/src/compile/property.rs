//! The closed table: one field type, one property schema, keys in one order.

use serde_json::{Map, Number, Value};

use super::{FileProblems, inline};
use crate::{
    form::{FieldChoice, FieldType, FormField},
    name,
    shape::{self, ValueType},
    validate::{self, PatternLengths},
    values,
};

/// The column or parameter that a field is bound to. It decides between integer and number, and refuses what cannot
/// agree.
#[derive(Clone, Copy)]
pub(super) struct FieldSlot<'s> {
    /// The word for messages: `column` or `parameter`.
    pub what: &'static str,
    pub name: &'s str,
    pub kind: ValueType,
    pub fields: &'s [shape::ShapeField],
    pub items: Option<&'s shape::ShapeField>,
}

impl<'s> FieldSlot<'s> {
    pub(super) fn column(field: &'s shape::ShapeField) -> Self {
        Self {
            what: "column",
            name: &field.key,
            kind: field.kind,
            fields: &field.fields,
            items: field.items.as_deref(),
        }
    }

    /// Returns the slot for a list of such a column's values, as `one-of` takes it.
    pub(super) fn list_of(field: &'s shape::ShapeField) -> Self {
        Self {
            kind: ValueType::List,
            items: Some(field),
            fields: &[],
            ..Self::column(field)
        }
    }
}

/// Returns the property schema of one field. Its references lead into its own `$defs`, which [`inline::lift`] moves.
pub(super) fn schema(
    field: &FormField,
    slot: Option<FieldSlot<'_>>,
    problems: &mut FileProblems,
) -> Value {
    if let Some(slot) = slot {
        check_agreement(field, slot, problems);
    }
    let mut schema = Map::new();
    match &field.kind {
        FieldType::Json { schema: given } => {
            schema = inline::of_field(
                given,
                &field.name,
                &format!("{}/schema", field.place),
                problems,
            );
        }
        _ => {
            schema.insert("type".into(), type_word(field, slot, problems).into());
            constraints(field, slot, &mut schema, problems);
        }
    }
    let defs = schema.shift_remove("$defs");
    if field.nullable {
        schema = or_null(schema);
    }
    let rules = Value::Object(
        schema
            .clone()
            .into_iter()
            .chain(defs.clone().map(|defs| ("$defs".to_owned(), defs)))
            .collect(),
    );
    if let Some(default) = &field.default {
        check_value(
            default,
            &rules,
            &format!("{}/default", field.place),
            "the default",
            problems,
        );
        schema.insert("default".into(), default.clone());
    }
    for (index, example) in field.examples.iter().enumerate() {
        check_value(
            example,
            &rules,
            &format!("{}/examples/{index}", field.place),
            "the example",
            problems,
        );
    }
    if let Some(title) = &field.title {
        schema.insert("title".into(), title.clone().into());
    }
    if let Some(help) = &field.help {
        schema.insert("description".into(), help.clone().into());
    }
    if !field.examples.is_empty() {
        schema.insert("examples".into(), Value::Array(field.examples.clone()));
    }
    schema.extend(defs.map(|defs| ("$defs".to_owned(), defs)));
    Value::Object(schema)
}

/// Adds null as an alternative. A list of types would mean the same, but some clients and models' interfaces then
/// refuse the whole list of tools.
fn or_null(schema: Map<String, Value>) -> Map<String, Value> {
    let null = Map::from_iter([("type".to_owned(), Value::from("null"))]);
    Map::from_iter([(
        "anyOf".to_owned(),
        Value::Array(vec![Value::Object(schema), Value::Object(null)]),
    )])
}

/// Properties, the names of the required ones, in the author's order, and the definitions they refer to.
pub(super) fn object(
    fields: &[FormField],
    slot: Option<FieldSlot<'_>>,
    problems: &mut FileProblems,
) -> (Map<String, Value>, Vec<Value>, Map<String, Value>) {
    let mut properties = Map::new();
    let mut defs = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let inner = slot.filter(|slot| slot.kind == ValueType::Record);
        let inner =
            inner.and_then(
                |slot| match slot.fields.iter().find(|inner| inner.key == field.name) {
                    Some(found) => Some(FieldSlot {
                        what: slot.what,
                        ..FieldSlot::column(found)
                    }),
                    None => {
                        let message = format!(
                            "{} '{}' has no member {}",
                            slot.what,
                            slot.name,
                            name::quoted(&field.name)
                        );
                        let hint = super::collection::columns_hint(&field.name, slot.fields);
                        problems.add_hint(format!("{}/name", field.place), message, hint);
                        None
                    }
                },
            );
        let mut property = schema(field, inner, problems);
        inline::lift(&mut property, &mut defs);
        properties.insert(field.name.clone(), property);
        if field.required {
            required.push(field.name.clone().into());
        }
    }
    (properties, required, defs)
}

fn type_word(
    field: &FormField,
    slot: Option<FieldSlot<'_>>,
    problems: &mut FileProblems,
) -> &'static str {
    match &field.kind {
        FieldType::Text { .. }
        | FieldType::Email
        | FieldType::Url
        | FieldType::Dropdown { .. }
        | FieldType::Date
        | FieldType::Datetime => "string",
        FieldType::Number {
            min,
            max,
            step,
            decimals,
        } => {
            let bounds = [("min", min), ("max", max), ("step", step)];
            number_word(field, &bounds, *decimals, slot, problems)
        }
        FieldType::MultiChoice { .. } | FieldType::List { .. } => "array",
        FieldType::Checkbox => "boolean",
        FieldType::File | FieldType::Record { .. } => "object",
        FieldType::Json { .. } => unreachable!("its schema says so itself"),
    }
}

/// Chooses between `integer` and `number`. In a bound field the column decides; else whole bounds mean `integer`, and a
/// fraction, `decimals` or no bounds mean `number`.
fn number_word(
    field: &FormField,
    bounds: &[(&str, &Option<Number>)],
    decimals: Option<bool>,
    slot: Option<FieldSlot<'_>>,
    problems: &mut FileProblems,
) -> &'static str {
    let fraction = bounds
        .iter()
        .find(|(_, bound)| bound.as_ref().is_some_and(|bound| !is_whole(bound)));
    let bound = slot.map(|slot| (slot, slot.kind)).filter(|(_, kind)| {
        matches!(
            kind,
            ValueType::Integer | ValueType::Number | ValueType::Decimal
        )
    });
    match (bound, decimals, fraction) {
        (Some((slot, ValueType::Integer)), Some(true), _) => {
            let message = format!(
                "{} '{}' is integer, but the field says decimals: true",
                slot.what, slot.name
            );
            problems.add_hint(
                format!("{}/decimals", field.place),
                message,
                "drop `decimals`",
            );
            "integer"
        }
        (Some((slot, ValueType::Integer)), _, Some((key, _))) => {
            let message = format!(
                "{} '{}' is integer, but '{key}' has a fraction",
                slot.what, slot.name
            );
            problems.add_hint(
                format!("{}/{key}", field.place),
                message,
                "use a whole number",
            );
            "integer"
        }
        (Some((_, ValueType::Integer)), _, None) => "integer",
        (Some((slot, kind)), Some(false), _) => {
            let message = format!(
                "{} '{}' is {}, but the field says decimals: false",
                slot.what,
                slot.name,
                kind.word()
            );
            problems.add_hint(
                format!("{}/decimals", field.place),
                message,
                "drop `decimals`",
            );
            "number"
        }
        (Some(_), _, _) => "number",
        (None, Some(false), Some((key, _))) => {
            problems.add_hint(
                format!("{}/{key}", field.place),
                "has a fraction, but the field says decimals: false",
                "use a whole number, or drop `decimals`",
            );
            "number"
        }
        (None, Some(true), _) | (None, None, Some(_)) => "number",
        (None, Some(false), None) => "integer",
        (None, None, None) => match bounds.iter().any(|(_, bound)| bound.is_some()) {
            true => "integer",
            false => "number",
        },
    }
}

fn constraints(
    field: &FormField,
    slot: Option<FieldSlot<'_>>,
    schema: &mut Map<String, Value>,
    problems: &mut FileProblems,
) {
    let place = &field.place;
    match &field.kind {
        FieldType::Text {
            min_length,
            max_length,
            pattern,
        } => {
            let lengths = (*min_length, *max_length);
            constrain_text(place, lengths, pattern.as_deref(), slot, schema, problems);
        }
        FieldType::Email => insert(schema, "format", Some("email")),
        FieldType::Url => insert(schema, "format", Some("uri")),
        FieldType::Date => insert(schema, "format", Some("date")),
        FieldType::Datetime => insert(schema, "format", Some("date-time")),
        FieldType::Checkbox | FieldType::Json { .. } => {}
        FieldType::Number { min, max, step, .. } => {
            check_bounds(place, min.as_ref(), max.as_ref(), step.as_ref(), problems);
            insert(schema, "minimum", min.clone());
            insert(schema, "maximum", max.clone());
            insert(schema, "multipleOf", step.clone());
        }
        FieldType::Dropdown { choices } => {
            schema.insert("enum".into(), Value::Array(choice_values(choices)));
        }
        FieldType::MultiChoice {
            choices,
            min_items,
            max_items,
        } => {
            let counts = (*min_items, *max_items);
            constrain_choices(place, choices, counts, schema, problems);
        }
        FieldType::File => {
            constrain_file(schema);
        }
        FieldType::Record { fields } => {
            constrain_record(fields, slot, schema, problems);
        }
        FieldType::List {
            of,
            min_items,
            max_items,
        } => {
            let counts = (*min_items, *max_items);
            constrain_list(place, of, counts, slot, schema, problems);
        }
    }
}

fn constrain_text(
    place: &str,
    (min_length, max_length): (Option<u64>, Option<u64>),
    pattern: Option<&str>,
    slot: Option<FieldSlot<'_>>,
    schema: &mut Map<String, Value>,
    problems: &mut FileProblems,
) {
    ordered(
        place,
        ("min_length", min_length),
        ("max_length", max_length),
        problems,
    );
    insert(schema, "minLength", min_length);
    insert(schema, "maxLength", max_length);
    if let Some(pattern) = pattern {
        check_pattern(place, pattern, problems);
        check_lengths(place, pattern, (min_length, max_length), problems);
    }
    let decimal = slot.is_some_and(|slot| slot.kind == ValueType::Decimal);
    let pattern = pattern.or(decimal.then_some(values::DECIMAL_PATTERN));
    insert(schema, "pattern", pattern);
}

fn constrain_choices(
    place: &str,
    choices: &[FieldChoice],
    (min_items, max_items): (Option<u64>, Option<u64>),
    schema: &mut Map<String, Value>,
    problems: &mut FileProblems,
) {
    let mut items = Map::new();
    items.insert("type".into(), "string".into());
    items.insert("enum".into(), Value::Array(choice_values(choices)));
    schema.insert("items".into(), Value::Object(items));
    ordered(
        place,
        ("min_items", min_items),
        ("max_items", max_items),
        problems,
    );
    if min_items.is_some_and(|min| min > choices.len() as u64) {
        problems.add_hint(
            format!("{place}/min_items"),
            "asks for more items than there are choices",
            format!("write at most {}, or add choices", choices.len()),
        );
    }
    insert(schema, "minItems", min_items);
    insert(schema, "maxItems", max_items);
    schema.insert("uniqueItems".into(), true.into());
}

fn constrain_file(schema: &mut Map<String, Value>) {
    let text = || Value::Object(Map::from_iter([("type".to_owned(), Value::from("string"))]));
    let properties = Map::from_iter([("id".to_owned(), text()), ("mime_type".to_owned(), text())]);
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert(
        "required".into(),
        Value::Array(vec!["id".into(), "mime_type".into()]),
    );
    schema.insert("additionalProperties".into(), false.into());
}

fn constrain_record(
    fields: &[FormField],
    slot: Option<FieldSlot<'_>>,
    schema: &mut Map<String, Value>,
    problems: &mut FileProblems,
) {
    let (properties, required, defs) = object(fields, slot, problems);
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), Value::Array(required));
    }
    schema.insert("additionalProperties".into(), false.into());
    insert_defs(schema, defs);
}

fn constrain_list(
    place: &str,
    of: &FormField,
    (min_items, max_items): (Option<u64>, Option<u64>),
    slot: Option<FieldSlot<'_>>,
    schema: &mut Map<String, Value>,
    problems: &mut FileProblems,
) {
    let items = slot.and_then(|slot| {
        Some(FieldSlot {
            what: slot.what,
            name: slot.name,
            ..FieldSlot::column(slot.items?)
        })
    });
    let mut defs = Map::new();
    let mut items = self::schema(of, items, problems);
    inline::lift(&mut items, &mut defs);
    schema.insert("items".into(), items);
    ordered(
        place,
        ("min_items", min_items),
        ("max_items", max_items),
        problems,
    );
    insert(schema, "minItems", min_items);
    insert(schema, "maxItems", max_items);
    insert_defs(schema, defs);
}

/// Returns `true` if values of a field can be values of a column. `items` is the type of a list's items, where it is known.
pub(crate) fn agrees(field: &FieldType, column: ValueType, items: Option<ValueType>) -> bool {
    match (field, column) {
        (_, ValueType::Json) => true,
        (FieldType::Text { .. }, ValueType::String | ValueType::Decimal) => true,
        (FieldType::Email | FieldType::Url, ValueType::String) => true,
        (FieldType::Number { .. }, ValueType::Integer | ValueType::Number | ValueType::Decimal) => {
            true
        }
        (FieldType::Dropdown { .. }, ValueType::String) => true,
        (
            FieldType::Dropdown { choices },
            kind @ (ValueType::Decimal | ValueType::Date | ValueType::Datetime),
        ) => choices
            .iter()
            .all(|choice| values::is_text_of(kind, &choice.value)),
        (FieldType::Checkbox, ValueType::Boolean) => true,
        // A source that keeps dates as text keeps them in the order of their text.
        (FieldType::Date, ValueType::Date | ValueType::String) => true,
        (FieldType::Datetime, ValueType::Datetime | ValueType::String) => true,
        (FieldType::File | FieldType::Record { .. }, ValueType::Record) => true,
        (FieldType::MultiChoice { choices, .. }, ValueType::List) => {
            items.is_none_or(|items| match items {
                ValueType::String | ValueType::Json => true,
                kind => choices
                    .iter()
                    .all(|choice| values::is_text_of(kind, &choice.value)),
            })
        }
        (FieldType::List { .. }, ValueType::List) => true,
        _ => false,
    }
}

/// Checks that values of the field can be values of the slot at all.
pub(super) fn check_agreement(field: &FormField, slot: FieldSlot<'_>, problems: &mut FileProblems) {
    if agrees(&field.kind, slot.kind, slot.items.map(|items| items.kind)) {
        return;
    }
    let hint = match (&field.kind, slot.kind) {
        (FieldType::Checkbox, ValueType::Integer) => {
            format!(
                "if it holds 0 and 1, say so in the collection: `shape: {{ {}: boolean }}`",
                slot.name
            )
        }
        (FieldType::Dropdown { .. }, kind) if has_texts(kind) => {
            format!("write every choice as a {}", kind.word())
        }
        (FieldType::MultiChoice { .. }, ValueType::List) => {
            let items = slot.items.map(|items| items.kind);
            match items.filter(|kind| has_texts(*kind)) {
                Some(kind) => format!("write every choice as a {}", kind.word()),
                None => "use type: list, and say by `of` which items it has".to_owned(),
            }
        }
        (_, ValueType::List) => "use type: list or multi-choice".to_owned(),
        (_, ValueType::Record) => "use type: record".to_owned(),
        (_, ValueType::String) => "use type: text".to_owned(),
        (_, ValueType::Integer | ValueType::Number | ValueType::Decimal) => {
            "use type: number".to_owned()
        }
        (_, ValueType::Boolean) => "use type: checkbox".to_owned(),
        (_, kind) => format!("use type: {}", kind.word()),
    };
    let message = format!(
        "a {} field cannot go to {} '{}', which is {}",
        field.kind.word(),
        slot.what,
        slot.name,
        slot.kind.word()
    );
    problems.add_hint(format!("{}/type", field.place), message, hint);
}

/// Returns `true` for types whose values are texts of one form.
fn has_texts(kind: ValueType) -> bool {
    matches!(
        kind,
        ValueType::Decimal | ValueType::Date | ValueType::Datetime
    )
}

pub(super) fn insert_defs(schema: &mut Map<String, Value>, defs: Map<String, Value>) {
    if !defs.is_empty() {
        schema.insert("$defs".into(), Value::Object(defs));
    }
}

/// Checks that the field takes its own default or example.
fn check_value(
    value: &Value,
    schema: &Value,
    place: &str,
    what: &str,
    problems: &mut FileProblems,
) {
    if let Ok(validator) = validate::validator(schema)
        && let Err(error) = validator.validate(value)
    {
        let message = format!("{what} does not satisfy the field itself: {error}");
        problems.add_hint(place, message, format!("change {what} or the bounds"));
    }
}

fn check_pattern(place: &str, pattern: &str, problems: &mut FileProblems) {
    let schema = serde_json::json!({ "type": "string", "pattern": pattern });
    if validate::validator(&schema).is_err() {
        problems.add_hint(
            format!("{place}/pattern"),
            "is not a regular expression that runs in linear time",
            "check the brackets; look-around and back-references are not available",
        );
    } else if validate::takes_no_text(pattern) {
        problems.add_hint(
            format!("{place}/pattern"),
            "is a pattern that no text meets",
            "write ^ at the start and $ at the end alone, and at least one character into [...]",
        );
    } else {
        check_dialect(&format!("{place}/pattern"), pattern, problems);
    }
}

/// Refuses lengths that no text of the pattern has.
fn check_lengths(
    place: &str,
    pattern: &str,
    (min_length, max_length): (Option<u64>, Option<u64>),
    problems: &mut FileProblems,
) {
    let Some(lengths) = PatternLengths::read(pattern) else {
        return;
    };
    if let (Some(longest), Some(min)) = (lengths.most, min_length)
        && min > longest
    {
        problems.add_hint(
            format!("{place}/min_length"),
            format!(
                "is longer than every text of the pattern, which has at most {longest} characters"
            ),
            format!("write at most {longest}, or change the pattern"),
        );
    }
    if let Some(max) = max_length
        && max < lengths.least
    {
        problems.add_hint(
            format!("{place}/max_length"),
            format!(
                "is shorter than every text of the pattern, which has at least {} characters",
                lengths.least
            ),
            format!("write at least {}, or change the pattern", lengths.least),
        );
    }
}

/// Refuses a pattern that our engine supports and those of clients do not.
pub(super) fn check_dialect(place: &str, pattern: &str, problems: &mut FileProblems) {
    if !validate::is_pattern(pattern) {
        problems.add_hint(
            place,
            "is not a pattern of JSON Schema, which clients read as JavaScript does",
            "write [Aa] for both cases, ^ and $ for the ends, < and > as they are, and \\} or \\] where one stands alone: there is \
             no (?i), (?x), (?P<name>), \\A, \\z, \\< or \\>",
        );
    }
}

fn check_bounds(
    place: &str,
    min: Option<&Number>,
    max: Option<&Number>,
    step: Option<&Number>,
    problems: &mut FileProblems,
) {
    let value = |number: Option<&Number>| number.and_then(Number::as_f64);
    let (min, max) = (value(min), value(max));
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let hint = "lower 'min', or raise 'max'";
        problems.add_hint(format!("{place}/min"), "'min' is greater than 'max'", hint);
        return;
    }
    let Some(step) = value(step) else { return };
    if step <= 0.0 {
        let hint = "write the distance of two values, such as 1 or 0.5";
        problems.add_hint(format!("{place}/step"), "must be greater than 0", hint);
    } else if let (Some(min), Some(max)) = (min, max)
        && (max / step + 1e-9).floor() < (min / step - 1e-9).ceil()
    {
        problems.add_hint(
            format!("{place}/step"),
            "no multiple of 'step' lies between 'min' and 'max'",
            "steps count from 0",
        );
    }
}

fn ordered(
    place: &str,
    min: (&str, Option<u64>),
    max: (&str, Option<u64>),
    problems: &mut FileProblems,
) {
    if let (Some(least), Some(most)) = (min.1, max.1)
        && least > most
    {
        problems.add_hint(
            format!("{place}/{}", min.0),
            format!("'{}' is greater than '{}'", min.0, max.0),
            format!("lower '{}', or raise '{}'", min.0, max.0),
        );
    }
}

fn choice_values(choices: &[FieldChoice]) -> Vec<Value> {
    choices
        .iter()
        .map(|choice| choice.value.clone().into())
        .collect()
}

fn insert<T: Into<Value>>(schema: &mut Map<String, Value>, key: &str, value: Option<T>) {
    if let Some(value) = value {
        schema.insert(key.to_owned(), value.into());
    }
}

fn is_whole(number: &Number) -> bool {
    number.as_f64().is_some_and(|value| value.fract() == 0.0)
}
