//! The arguments of a tool: their schema, and where each one goes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use weir_schema::schema::DIALECT;

use super::{rows_default, rows_max};
use crate::{
    compile::{
        FileProblems,
        binding::{BindingTarget, FieldBinding},
        inline, property, summary,
    },
    contract::{BindingInput, FieldDestination, SummaryChoices, ToolVerb, ValueForm},
    form,
};

/// The argument that an update adds if it has fields to empty.
const CLEAR: &str = "clear";

pub(super) fn input_schema(
    form: &form::FormTool,
    bound: &[Option<FieldBinding<'_>>],
    target: Option<&BindingTarget<'_>>,
    choices: Option<&SummaryChoices>,
    problems: &mut FileProblems,
) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut defs = Map::new();
    for (field, bound) in form.fields.iter().zip(bound) {
        let slot = bound.as_ref().map(|bound| bound.slot);
        let takes_no_null =
            can_be_cleared(form, field, bound.as_ref()) || may_be_unasked(field, bound.as_ref());
        let mut schema = match takes_no_null {
            true => property::schema(
                &form::FormField {
                    nullable: false,
                    ..field.clone()
                },
                slot,
                problems,
            ),
            false => property::schema(field, slot, problems),
        };
        inline::lift(&mut schema, &mut defs);
        properties.insert(field.name.clone(), schema);
        if field.required {
            required.push(field.name.clone().into());
        }
    }
    let clearable = clearable(form, bound);
    if !clearable.is_empty() {
        check_clear_is_free(form, problems);
        properties.insert(CLEAR.into(), clear(&clearable));
    }
    if form.verb == Some(ToolVerb::List) {
        let rows_max = rows_max(form);
        let limit = json!({
            "type": "integer",
            "minimum": 1,
            "maximum": rows_max,
            "default": rows_default(form),
            "description": "How many records to return at most.",
        });
        properties.insert("limit".into(), limit);
        let cursor = json!({
            "type": "string",
            "description": "The `next` of an earlier result, with the same other arguments: returns the records after it.",
        });
        properties.insert("cursor".into(), cursor);
    }
    if let Some(choices) = choices {
        let (limit, rows_max) = (rows_default(form), rows_max(form));
        summary::add_inputs(choices, limit, rows_max, &mut properties);
    }
    let is_key = |bound: &&FieldBinding<'_>| matches!(bound.to, FieldDestination::Condition { .. });
    let updates = target.filter(|target| target.verb == ToolVerb::Update);
    root(
        properties,
        required,
        updates.map(|_| bound.iter().flatten().filter(is_key).count() + 1),
        defs,
    )
}

/// Returns `true` for a field of an update whose column may become null. An agent asks for that by naming the field in
/// [`CLEAR`], because too many clients send null for fields without a value. In a required field null can only be meant.
fn can_be_cleared(
    form: &form::FormTool,
    field: &form::FormField,
    bound: Option<&FieldBinding<'_>>,
) -> bool {
    let is_written = bound.is_some_and(|bound| matches!(bound.to, FieldDestination::Column(_)));
    form.verb == Some(ToolVerb::Update) && is_written && field.nullable && !field.required
}

/// Returns `true` for a condition that an agent may leave out. Too many clients send null for what was not set, so that null counts
/// as absent there, and `is-empty` asks for empty values. Where null is required or the default, it can only be meant.
fn may_be_unasked(field: &form::FormField, bound: Option<&FieldBinding<'_>>) -> bool {
    let is_condition =
        bound.is_some_and(|bound| matches!(bound.to, FieldDestination::Condition { .. }));
    is_condition && !field.required && field.default.as_ref().is_none_or(|value| !value.is_null())
}

fn clearable<'f>(form: &'f form::FormTool, bound: &[Option<FieldBinding<'_>>]) -> Vec<&'f str> {
    let fields = form.fields.iter().zip(bound);
    let fields = fields.filter(|(field, bound)| can_be_cleared(form, field, bound.as_ref()));
    fields.map(|(field, _)| field.name.as_str()).collect()
}

fn clear(fields: &[&str]) -> Value {
    json!({
        "type": "array",
        "items": { "type": "string", "enum": fields },
        "default": [],
        "description": "Names the fields to empty: each becomes null. A field named here has no value of its own in the same call.",
    })
}

fn check_clear_is_free(form: &form::FormTool, problems: &mut FileProblems) {
    let fields = form.fields.iter().map(|field| (&field.name, &field.place));
    let bound = form.bound.iter().map(|field| (&field.name, &field.place));
    for (_, place) in fields.chain(bound).filter(|(name, _)| *name == CLEAR) {
        let message = format!("an update with a nullable field has its own '{CLEAR}'");
        let hint = format!("choose another name; the column can stay with `column: {CLEAR}`");
        problems.add_hint(format!("{place}/name"), message, hint);
    }
}

pub(super) fn root(
    properties: Map<String, Value>,
    required: Vec<Value>,
    properties_min: Option<usize>,
    defs: Map<String, Value>,
) -> Value {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("$schema".into(), DIALECT.into());
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), Value::Array(required));
    }
    if let Some(least) = properties_min {
        schema.insert("minProperties".into(), least.into());
    }
    schema.insert("additionalProperties".into(), false.into());
    property::insert_defs(&mut schema, defs);
    Value::Object(schema)
}

pub(super) fn inputs(
    form: &form::FormTool,
    bound: Vec<Option<FieldBinding<'_>>>,
) -> Vec<BindingInput> {
    let clear = (!clearable(form, &bound).is_empty()).then(|| BindingInput {
        field: CLEAR.to_owned(),
        to: FieldDestination::Clear,
        default: None,
        form: ValueForm::AsSent,
        spellings: BTreeMap::new(),
    });
    let pairs = form.fields.iter().zip(bound);
    let input = |(field, bound): (&form::FormField, Option<FieldBinding<'_>>)| {
        let bound = bound?;
        let spellings = field.kind.spellings();
        Some(BindingInput {
            field: field.name.clone(),
            to: match spellings.is_empty() {
                true => bound.to,
                false => one_of(bound.to),
            },
            default: field.default.clone(),
            form: bound.form,
            spellings,
        })
    };
    pairs.filter_map(input).chain(clear).collect()
}

/// Returns the condition that the source is asked for: a choice that means several texts matches any of these.
fn one_of(to: FieldDestination) -> FieldDestination {
    match to {
        FieldDestination::Condition { column, .. } => FieldDestination::Condition {
            column,
            comparison: "one-of".to_owned(),
        },
        to => to,
    }
}
