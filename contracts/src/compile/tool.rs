//! Compiles one form into one tool: its verb's inputs, order, columns, annotations and result.

mod audit;
mod input;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use self::{
    audit::check_audit,
    input::{input_schema, inputs, root},
};
use super::{
    FileProblems, approval,
    binding::{BindingTarget, FieldBinding},
    listing, order, property,
    relation::{self, Relations},
    result, summary,
};
use crate::{
    contract::{
        self, ApprovalRule, BoundField, CallLimits, CollectionTarget, ContractCollection,
        ContractTool, ToolAnnotations, ToolBinding, ToolVerb,
    },
    form::{self, ContractSource},
    name,
    shape::{OperationEffect, ShapeField},
};

const ROWS_MAX_DEFAULT: u32 = 100;
const LIMIT_DEFAULT: u32 = 50;

pub(super) fn compile(
    source: &ContractSource,
    form: &form::FormTool,
    collections: &BTreeMap<&str, Option<ContractCollection>>,
    relations: &Relations<'_>,
    problems: &mut FileProblems,
) -> ContractTool {
    let name = name::prefixed(source.prefix.as_deref().unwrap_or_default(), &form.tool);
    let is_unread = form.tool.is_empty() && !form.is_whole;
    if !is_unread && let Err(message) = name::check_tool(&name) {
        problems.add_hint(
            format!("{}/tool", form.place),
            message,
            "clients drop the whole list on one bad name",
        );
    }
    if source.contract.is_none() {
        return bare(name, form, problems);
    }
    let target = target(form, collections, problems);
    let (bound, fixed) = bind_fields(form, target.as_ref(), problems);
    check_verb_rules(form, problems);
    check_audit(form, problems);
    let choices = target
        .as_ref()
        .filter(|target| target.verb == ToolVerb::Summarize)
        .map(|target| summary::choices(form, target.collection, problems));
    let mut input_schema = input_schema(form, &bound, target.as_ref(), choices.as_ref(), problems);
    let Some(target) = target else {
        return unbound(name, form, input_schema);
    };
    let fields = answered_fields(&target);
    let columns = match &choices {
        Some(choices) => choices.names(),
        None => columns(form, &target, problems),
    };
    check_say(form, &columns, problems);
    let list = listing::choices(form, &target, &columns, problems);
    if let Some(list) = &list {
        listing::add_inputs(list, &columns, &mut input_schema);
    }
    let include = relation::chosen(
        form,
        target.collection,
        source,
        relations,
        &columns,
        problems,
    );
    relation::add_input(&include, &mut input_schema);
    let binding = ToolBinding {
        collection: target.collection.name.clone(),
        inputs: inputs(form, bound),
        bound: fixed,
        order: order::compile(form, &target, problems),
        columns,
        limit_default: rows_default(form),
        limit_max: rows_max(form),
        operation: form.operation.clone(),
        list,
        summary: choices,
        include,
    };
    ContractTool {
        output_schema: Some(output_schema(&target, fields, &binding, collections).into()),
        annotations: approval::check(form, annotations(&target), problems),
        target: contract::CallTarget::Collection(Arc::new(CollectionTarget {
            verb: target.verb,
            binding,
            say: form.say.clone(),
            text: form.text.unwrap_or_default(),
            resource: form.resource,
        })),
        limits: CallLimits {
            rate: form.limits.rate,
            timeout_ms: form.limits.timeout_ms,
        },
        audit_clear: form.audit_clear.clone(),
        approval: form.approval,
        ..unbound(name, form, input_schema)
    }
}

/// Returns where each field goes, and the fields that agents do not set.
fn bind_fields<'t>(
    form: &form::FormTool,
    target: Option<&BindingTarget<'t>>,
    problems: &mut FileProblems,
) -> (Vec<Option<FieldBinding<'t>>>, Vec<BoundField>) {
    let Some(target) = target else {
        return (form.fields.iter().map(|_| None).collect(), Vec::new());
    };
    let bound: Vec<Option<FieldBinding<'_>>> = form
        .fields
        .iter()
        .map(|field| target.bind(field, problems))
        .collect();
    let fixed: Vec<(&form::FormBound, Option<BoundField>)> = form
        .bound
        .iter()
        .map(|field| (field, target.fix(field, problems)))
        .collect();
    if form.is_whole {
        target.check_whole(form, &bound, &fixed, problems);
    }
    let fixed = fixed.into_iter().filter_map(|(_, field)| field).collect();
    (bound, fixed)
}

/// Returns the schema of the tool's results, with the related records that it can answer.
fn output_schema(
    target: &BindingTarget<'_>,
    fields: &[ShapeField],
    binding: &ToolBinding,
    collections: &BTreeMap<&str, Option<ContractCollection>>,
) -> Value {
    let mut schema = result::schema(target.verb, fields, binding, &target.collection.shape);
    let find = |name: &str| {
        let other = collections.get(name)?.as_ref()?;
        Some((&other.shape.fields[..], &other.published[..]))
    };
    relation::add_outputs(&binding.include, find, &mut schema);
    schema
}

/// Compiles a form without a contract: it has only the input side, and its effects are unknown.
fn bare(name: String, form: &form::FormTool, problems: &mut FileProblems) -> ContractTool {
    for field in &form.fields {
        let keys = [
            ("column", &field.column),
            ("match", &field.comparison),
            ("param", &field.param),
        ];
        for (key, _) in keys.iter().filter(|(_, value)| value.is_some()) {
            problems.add_hint(
                format!("{}/{key}", field.place),
                format!("'{key}' needs a collection, which a bare form has not"),
                "start the file with `contract: NAME` and put the form under `tools:`",
            );
        }
        if let Some(at) = field.kind.first_spelled() {
            problems.add_hint(
                format!("{}/choices/{at}/also", field.place),
                "'also' needs a collection, which a bare form has not",
                "start the file with `contract: NAME` and put the form under `tools:`",
            );
        }
    }
    for field in &form.bound {
        problems.add_hint(
            field.place.clone(),
            "a bare form has nothing to bind a field to",
            "start the file with `contract: NAME` and put the form under `tools:`",
        );
    }
    let (properties, required, defs) = property::object(&form.fields, None, problems);
    unbound(name, form, root(properties, required, None, defs))
}

fn unbound(name: String, form: &form::FormTool, input_schema: Value) -> ContractTool {
    ContractTool {
        name,
        title: form.title.clone(),
        description: ApprovalRule::describe(form.approval, described(form)),
        input_schema: input_schema.into(),
        output_schema: None,
        annotations: cautious(form.verb),
        target: contract::CallTarget::Form,
        limits: CallLimits::default(),
        audit_clear: Vec::new(),
        approval: None,
    }
}

/// Returns what can be stated about a tool whose source is not known: lookups and lists read, and anything else may
/// do anything.
fn cautious(verb: Option<ToolVerb>) -> ToolAnnotations {
    let reads = verb.is_some_and(ToolVerb::is_query);
    ToolAnnotations::from_hints(reads, !reads, reads, false)
}

/// Returns the collection, verb and operation if all three are right.
fn target<'c>(
    form: &'c form::FormTool,
    collections: &'c BTreeMap<&str, Option<ContractCollection>>,
    problems: &mut FileProblems,
) -> Option<BindingTarget<'c>> {
    let wanted = form.collection.as_deref()?;
    let Some(collection) = collections.get(wanted) else {
        let hint = match name::nearest(wanted, collections.keys().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => "describe it under `collections:`".to_owned(),
        };
        let message = format!("there is no collection {}", name::quoted(wanted));
        problems.add_hint(format!("{}/collection", form.place), message, hint);
        return None;
    };
    let collection = collection.as_ref()?;
    let verb = form.verb?;
    let capabilities = &collection.shape.capabilities;
    let place = format!("{}/verb", form.place);
    match verb {
        ToolVerb::Lookup | ToolVerb::List | ToolVerb::Count | ToolVerb::Summarize => {
            if !capabilities.read {
                let message = format!("collection '{wanted}' cannot be read");
                let hint = "drop the tool, or bind it to a collection that can";
                problems.add_hint(place, message, hint);
            } else if verb.needed_summaries() > capabilities.summaries {
                summary::check_source(collection, verb, place, problems);
            }
            Some(BindingTarget {
                collection,
                verb,
                operation: None,
            })
        }
        ToolVerb::Create | ToolVerb::Update | ToolVerb::Delete => {
            if !capabilities.write.iter().any(|known| known == verb.word()) {
                let reason = match (&capabilities.read_only, capabilities.write.is_empty()) {
                    (Some(reason), true) => reason.clone(),
                    (_, true) => "the source cannot be written".to_owned(),
                    (_, false) => {
                        format!("the source can only {}", capabilities.write.join(" and "))
                    }
                };
                problems.add_hint(
                    place,
                    format!("collection '{wanted}' has no {}: {reason}", verb.word()),
                    "drop the tool, or bind it to a collection that can",
                );
            } else if !collection.write {
                let message = format!("collection '{wanted}' is read-only here");
                problems.add_hint(
                    place,
                    message,
                    format!("add `write: true` to collection '{wanted}'"),
                );
            }
            Some(BindingTarget {
                collection,
                verb,
                operation: None,
            })
        }
        ToolVerb::Call => call_target(form, collection, problems),
    }
}

fn call_target<'c>(
    form: &form::FormTool,
    collection: &'c ContractCollection,
    problems: &mut FileProblems,
) -> Option<BindingTarget<'c>> {
    let operations = &collection.shape.capabilities.operations;
    let names: Vec<&str> = operations
        .iter()
        .map(|operation| operation.name.as_str())
        .collect();
    let listed = match names.is_empty() {
        true => format!("collection '{}' has no operations", collection.name),
        false => format!("operations: {}", names.join(", ")),
    };
    let Some(wanted) = &form.operation else {
        problems.add_hint(form.place.clone(), "a call needs `operation:`", listed);
        return None;
    };
    let Some(operation) = operations
        .iter()
        .find(|operation| operation.name == *wanted)
    else {
        let hint = match name::nearest(wanted, names.iter().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => listed,
        };
        let message = format!("there is no operation {}", name::quoted(wanted));
        problems.add_hint(format!("{}/operation", form.place), message, hint);
        return None;
    };
    if operation.effect != OperationEffect::Read && !collection.write {
        let message = format!(
            "operation '{wanted}' changes the source, and collection '{}' is read-only here",
            collection.name
        );
        problems.add_hint(
            format!("{}/operation", form.place),
            message,
            format!("add `write: true` to collection '{}'", collection.name),
        );
    }
    Some(BindingTarget {
        collection,
        verb: ToolVerb::Call,
        operation: Some(operation),
    })
}

/// Checks the keys that only some verbs have, and the names that a verb takes for itself.
fn check_verb_rules(form: &form::FormTool, problems: &mut FileProblems) {
    let Some(verb) = form.verb else { return };
    listing::check_keys(form, verb, problems);
    relation::check_keys(form, verb, problems);
    let only = [
        (
            "order",
            form.order.is_some(),
            verb == ToolVerb::List,
            "list",
        ),
        (
            "operation",
            form.operation.is_some(),
            verb == ToolVerb::Call,
            "call",
        ),
        (
            "limits/rows_max",
            form.limits.rows_max.is_some(),
            matches!(verb, ToolVerb::List | ToolVerb::Summarize),
            "list or a summarize",
        ),
        (
            "limits/rows_default",
            form.limits.rows_default.is_some(),
            matches!(verb, ToolVerb::List | ToolVerb::Summarize),
            "list or a summarize",
        ),
    ];
    summary::check_keys(form, verb, problems);
    for (key, given, fits, right) in only {
        if given && !fits {
            problems.add_hint(
                format!("{}/{key}", form.place),
                format!("only a {right} has it"),
                "drop it",
            );
        }
    }
    if let Some(rows) = form.limits.rows_default
        && rows > rows_max(form)
    {
        let place = format!("{}/limits/rows_default", form.place);
        let message = format!("one page has at most {} records", rows_max(form));
        problems.add_hint(place, message, "lower it, or raise rows_max");
    }
    if form.resource && (verb != ToolVerb::Lookup || form.fields.len() != 1) {
        let message = "the records of a lookup by one argument can be resources, and no others";
        problems.add_hint(
            format!("{}/resource", form.place),
            message,
            "drop it, or publish a lookup by the key as well",
        );
    }
    if matches!(verb, ToolVerb::Update | ToolVerb::Delete) {
        for field in form.fields.iter().filter(|field| field.default.is_some()) {
            let message = format!(
                "a default on {} would write or match what was not asked for",
                verb.word()
            );
            problems.add_hint(
                format!("{}/default", field.place),
                message,
                "drop `default`",
            );
        }
    }
}

/// Returns the fields of the returned records.
fn answered_fields<'c>(target: &BindingTarget<'c>) -> &'c [ShapeField] {
    match target.operation {
        Some(operation) => &operation.returns,
        None => &target.collection.shape.fields,
    }
}

fn columns(
    form: &form::FormTool,
    target: &BindingTarget<'_>,
    problems: &mut FileProblems,
) -> Vec<String> {
    if target.verb == ToolVerb::Count {
        return vec![result::COUNT.to_owned()];
    }
    let fields = answered_fields(target);
    let published: Vec<String> = match target.operation {
        Some(_) => fields.iter().map(|field| field.key.clone()).collect(),
        None => target.collection.published.clone(),
    };
    let Some(returns) = &form.returns else {
        return published;
    };
    if returns.is_empty() {
        problems.add_hint(
            format!("{}/returns", form.place),
            "returns no column",
            "leave it out for all columns",
        );
    }
    for (index, column) in returns
        .iter()
        .enumerate()
        .filter(|(_, column)| !published.contains(column))
    {
        let place = format!("{}/returns/{index}", form.place);
        match fields.iter().any(|field| field.key == *column) {
            true => problems.add_hint(
                place,
                format!("column {} is not published", name::quoted(column)),
                format!("published: {}", published.join(", ")),
            ),
            false => {
                let message = format!("there is no column {}", name::quoted(column));
                problems.add_hint(
                    place,
                    message,
                    super::collection::columns_hint(column, fields),
                );
            }
        }
    }
    returns.clone()
}

/// Placeholders of `say:` are columns of the answer; a typo would leave a hole in every sentence.
fn check_say(form: &form::FormTool, columns: &[String], problems: &mut FileProblems) {
    let mut rest = form.say.as_deref().unwrap_or_default();
    while let Some((_, after)) = rest.split_once('{') {
        let Some((column, after)) = after.split_once('}') else {
            let hint = format!(
                "write a column in braces, such as {{{}}}",
                columns.first().map_or("id", String::as_str)
            );
            problems.add_hint(format!("{}/say", form.place), "a brace is not closed", hint);
            return;
        };
        if !columns.iter().any(|known| known == column) {
            let hint = format!("columns: {}", columns.join(", "));
            let message = format!("there is no column {} in the answer", name::quoted(column));
            problems.add_hint(format!("{}/say", form.place), message, hint);
        }
        rest = after;
    }
}

fn annotations(target: &BindingTarget<'_>) -> ToolAnnotations {
    let (read_only_hint, destructive_hint, idempotent_hint) = match (target.verb, target.operation)
    {
        (ToolVerb::Lookup | ToolVerb::List | ToolVerb::Count | ToolVerb::Summarize, _) => {
            (true, false, true)
        }
        (ToolVerb::Create, _) => (false, false, false),
        (ToolVerb::Update | ToolVerb::Delete, _) => (false, true, true),
        (ToolVerb::Call, operation) => match operation.map(|operation| operation.effect) {
            Some(OperationEffect::Read) => (true, false, true),
            Some(OperationEffect::Create) => (false, false, false),
            Some(OperationEffect::Update) => (false, true, true),
            Some(OperationEffect::Destructive) | None => (false, true, false),
        },
    };
    let open_world_hint = target.collection.shape.capabilities.open_world;
    ToolAnnotations::from_hints(
        read_only_hint,
        destructive_hint,
        idempotent_hint,
        open_world_hint,
    )
}

fn rows_max(form: &form::FormTool) -> u32 {
    form.limits.rows_max.unwrap_or(ROWS_MAX_DEFAULT)
}

fn rows_default(form: &form::FormTool) -> u32 {
    let wanted = form.limits.rows_default.unwrap_or(LIMIT_DEFAULT);
    wanted.min(rows_max(form))
}

/// Returns the description of a form, which is made for one that has none, because clients and models need one.
fn described(form: &form::FormTool) -> String {
    if let Some(own) = &form.description {
        return own.clone();
    }
    let words = form.tool.replace(['_', '-'], " ");
    let mut letters = words.trim().chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}
