//! Compares the parts of a contract behind the schemas: collections, destinations of arguments, limits. Answers may
//! change while the schemas stay equal.

mod limits;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{DiffReport, include::inclusions, rule::ToolRule};
use crate::{
    contract::{
        BindingInput, BoundField, CallTarget, CollectionTarget, CompiledContract,
        ContractCollection, ContractTool, FieldDestination, OfferTarget, ToolBinding,
    },
    json::push_pointer,
    name,
    shape::CollectionShape,
};

/// Compares the contracts themselves and their collections.
pub(super) fn contracts(old: &CompiledContract, new: &CompiledContract, report: &mut DiffReport) {
    if old.name != new.name {
        let reason = format!(
            "{} is now {}",
            name::quoted(&old.name),
            name::quoted(&new.name)
        );
        report.note(
            ToolRule::ContractRenamed,
            None,
            "/name",
            (json!(old.name), json!(new.name)),
            reason,
        );
    }
    for (key, was, is) in [
        ("title", &old.title, &new.title),
        ("description", &old.description, &new.description),
        ("instructions", &old.instructions, &new.instructions),
    ] {
        if was != is {
            let reason = format!("the contract's {key} changed");
            report.note(
                ToolRule::ContractTextChanged,
                None,
                format!("/{key}"),
                (json!(was), json!(is)),
                reason,
            );
        }
    }
    if old.definitions != new.definitions {
        let reason = "the tools are defined in another text".to_owned();
        let digests = (json!(old.definitions), json!(new.definitions));
        report.note(
            ToolRule::DefinitionsChanged,
            None,
            "/definitions",
            digests,
            reason,
        );
    }
    if old.maker != new.maker {
        let reason = "the tools are another server's".to_owned();
        report.note(
            ToolRule::TargetChanged,
            None,
            "/maker",
            (json!(old.maker), json!(new.maker)),
            reason,
        );
    }
    for (index, now) in new.collections.iter().enumerate() {
        if let Some(was) = old.collection(&now.name) {
            collections(was, now, None, &format!("/collections/{index}"), report);
        }
    }
}

/// Compares the collections that the tools of both versions use and the live version lacks.
pub(super) fn missing_collections(
    live: &CompiledContract,
    old: &CompiledContract,
    new: &CompiledContract,
    report: &mut DiffReport,
) {
    let targets = new.tools.iter().filter_map(|tool| tool.collection());
    let used: BTreeSet<&str> = targets
        .map(|target| target.binding.collection.as_str())
        .collect();
    for (index, now) in new.collections.iter().enumerate() {
        if !used.contains(now.name.as_str()) || live.collection(&now.name).is_some() {
            continue;
        }
        if let Some(was) = old.collection(&now.name) {
            collections(was, now, None, &format!("/collections/{index}"), report);
        }
    }
}

/// Compares the targets and limits of every tool that both versions have.
pub(super) fn tools(old: &CompiledContract, new: &CompiledContract, report: &mut DiffReport) {
    let now: BTreeMap<&str, &ContractTool> = new
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), &**tool))
        .collect();
    for was in &old.tools {
        let Some(is) = now.get(was.name.as_str()) else {
            continue;
        };
        let tool = Some(was.name.as_str());
        limits::limits(was, is, report);
        limits::audit(was, is, report);
        limits::approval(was, is, report);
        match (&was.target, &is.target) {
            (CallTarget::Collection(before), CallTarget::Collection(after)) => {
                compare_targets(before, after, tool, report);
                source(
                    (old, &before.binding),
                    (new, &after.binding),
                    &was.name,
                    report,
                );
                bindings(&before.binding, &after.binding, &was.name, report);
            }
            (CallTarget::Form, CallTarget::Form) => {}
            (CallTarget::Form, _) => {
                let reason = "the tool can now be called".to_owned();
                report.note(
                    ToolRule::BindingAdded,
                    tool,
                    "/binding",
                    (Value::Null, Value::Null),
                    reason,
                );
            }
            (_, CallTarget::Form) => {
                let reason = "the tool can no longer be called".to_owned();
                report.note(
                    ToolRule::BindingRemoved,
                    tool,
                    "/binding",
                    (Value::Null, Value::Null),
                    reason,
                );
            }
            (before, after) if before == after => {}
            (CallTarget::Offer(before), CallTarget::Offer(after)) => {
                offers(before, after, &was.name, report)
            }
            (before, after) => {
                let reason = "something else answers its calls".to_owned();
                report.note(
                    ToolRule::TargetChanged,
                    tool,
                    "/target",
                    (render_target(before), render_target(after)),
                    reason,
                );
            }
        }
    }
}

/// Compares the maker, the maker's tool and what every call of it carries. The rest of an offer shows in lists and
/// schemas.
fn offers(was: &OfferTarget, is: &OfferTarget, tool: &str, report: &mut DiffReport) {
    if (&was.maker, &was.name, was.wrapped) != (&is.maker, &is.name, is.wrapped) {
        let reason = "something else answers its calls".to_owned();
        report.note(
            ToolRule::TargetChanged,
            Some(tool),
            "/target",
            (json!(was), json!(is)),
            reason,
        );
    }
    for (published, own) in &is.keys {
        if let Some(before) = was.keys.get(published).filter(|before| *before != own) {
            let reason = format!("{} is sent as another argument", name::quoted(published));
            let mut path = "/keys".to_owned();
            push_pointer(&mut path, published);
            report.note(
                ToolRule::KeyNameChanged,
                Some(tool),
                path,
                (json!(before), json!(own)),
                reason,
            );
        }
    }
    for (argument, value) in &is.set {
        let before = was.set.get(argument);
        let (rule, what) = match before {
            None => (ToolRule::BoundFieldAdded, "is now set in every call"),
            Some(before) if before != value => (
                ToolRule::BoundFieldChanged,
                "is set to another value in every call",
            ),
            Some(_) => continue,
        };
        set(
            tool,
            argument,
            (json!(before), value.clone()),
            (rule, what),
            report,
        );
    }
    for (argument, value) in was
        .set
        .iter()
        .filter(|(argument, _)| !is.set.contains_key(*argument))
    {
        let rule = (ToolRule::BoundFieldRemoved, "is no longer set");
        set(tool, argument, (value.clone(), Value::Null), rule, report);
    }
}

fn set(
    tool: &str,
    argument: &str,
    change: (Value, Value),
    (rule, what): (ToolRule, &str),
    report: &mut DiffReport,
) {
    let mut path = "/set".to_owned();
    push_pointer(&mut path, argument);
    report.note(
        rule,
        Some(tool),
        path,
        change,
        format!("{} {what}", name::quoted(argument)),
    );
}

/// Compares the questions to a collection, and the form of its answers.
fn compare_targets(
    was: &CollectionTarget,
    is: &CollectionTarget,
    tool: Option<&str>,
    report: &mut DiffReport,
) {
    if was.verb != is.verb {
        let reason = format!("{} → {}", was.verb.word(), is.verb.word());
        report.note(
            ToolRule::VerbChanged,
            tool,
            "/verb",
            (json!(was.verb), json!(is.verb)),
            reason,
        );
    }
    if was.text != is.text {
        let reason = "the text block holds something else".to_owned();
        report.note(
            ToolRule::TextModeChanged,
            tool,
            "/text",
            (json!(was.text), json!(is.text)),
            reason,
        );
    }
}

fn render_target(target: &CallTarget) -> Value {
    match target {
        CallTarget::Form => Value::Null,
        CallTarget::Collection(target) => json!({ "collection": target.binding.collection }),
        CallTarget::Offer(offer) => json!(offer),
    }
}

/// Compares tools bound to collections of different names, which may be the same source.
fn source(
    old: (&CompiledContract, &ToolBinding),
    new: (&CompiledContract, &ToolBinding),
    tool: &str,
    report: &mut DiffReport,
) {
    let (was, is) = (&old.1.collection, &new.1.collection);
    if was == is {
        return;
    }
    let (Some(before), Some(after)) = (old.0.collection(was), new.0.collection(is)) else {
        return;
    };
    let reason = format!(
        "was bound to {}, is to {}",
        name::quoted(was),
        name::quoted(is)
    );
    let same_source = before.adapter == after.adapter && before.settings == after.settings;
    if !same_source {
        report.note(
            ToolRule::CollectionChanged,
            Some(tool),
            "/binding/collection",
            (json!(was), json!(is)),
            reason,
        );
    }
    collections(before, after, Some(tool), "/binding/collection", report);
}

fn collections(
    old: &ContractCollection,
    new: &ContractCollection,
    tool: Option<&str>,
    path: &str,
    report: &mut DiffReport,
) {
    let shown = name::quoted(&old.name);
    let mut changed = |rule: ToolRule, key: &str, was: Value, is: Value, what: &str| {
        if was != is {
            report.note(
                rule,
                tool,
                format!("{path}/{key}"),
                (was, is),
                format!("collection {shown}: {what}"),
            );
        }
    };
    changed(
        ToolRule::AdapterChanged,
        "adapter",
        json!(old.adapter),
        json!(new.adapter),
        "another adapter answers",
    );
    changed(
        ToolRule::SettingsChanged,
        "settings",
        old.settings.clone(),
        new.settings.clone(),
        "the source is another or read otherwise",
    );
    let statement = |collection: &ContractCollection| {
        let part = |key| {
            collection
                .settings
                .get(key)
                .filter(|_| collection.has_statement())
        };
        json!([part("statement"), part("rows_max")])
    };
    changed(
        ToolRule::StatementChanged,
        "settings/statement",
        statement(old),
        statement(new),
        "another statement writes, or it may change another number of rows",
    );
    changed(
        ToolRule::KeyChanged,
        "shape/key",
        json!(old.shape.key),
        json!(new.shape.key),
        "other columns identify records",
    );
    let zone = |shape: &CollectionShape| json!(shape.timezone.as_deref().unwrap_or("UTC"));
    changed(
        ToolRule::TimezoneChanged,
        "shape/timezone",
        zone(&old.shape),
        zone(&new.shape),
        "zoneless times are read in another zone",
    );
    // Neither the order of the words nor their case makes a difference.
    let words = |shape: &CollectionShape| -> BTreeSet<String> {
        let words = shape.null_words.iter();
        words.map(|word| word.to_ascii_lowercase()).collect()
    };
    let cells =
        |shape: &CollectionShape| json!({ "misfits": shape.misfits, "null_words": words(shape) });
    changed(
        ToolRule::MisfitsChanged,
        "shape/misfits",
        cells(&old.shape),
        cells(&new.shape),
        "cells that are not values of their column are read differently",
    );
    let (rule, what) = match new.write {
        true => (ToolRule::WriteAllowed, "it may be written"),
        false => (ToolRule::WriteForbidden, "it may no longer be written"),
    };
    changed(rule, "write", json!(old.write), json!(new.write), what);
    published_columns(old, new, &mut changed);
    recorded_shape(old, new, &mut changed);
}

/// Compares a source's description of itself, apart from what is compared separately.
fn recorded_shape(
    old: &ContractCollection,
    new: &ContractCollection,
    changed: &mut impl FnMut(ToolRule, &str, Value, Value, &str),
) {
    let mut recorded = old.shape.clone();
    recorded.key.clone_from(&new.shape.key);
    recorded.timezone.clone_from(&new.shape.timezone);
    recorded.misfits = new.shape.misfits;
    recorded.null_words.clone_from(&new.shape.null_words);
    // It follows the tools, which are compared themselves.
    recorded.capabilities.summaries = new.shape.capabilities.summaries;
    if recorded != new.shape || old.overrides != new.overrides {
        changed(
            ToolRule::ShapeRecorded,
            "shape",
            json!(old.shape.fields),
            json!(new.shape.fields),
            "the source describes itself otherwise",
        );
    }
}

/// Compares the columns that may leave a source.
fn published_columns(
    old: &ContractCollection,
    new: &ContractCollection,
    changed: &mut impl FnMut(ToolRule, &str, Value, Value, &str),
) {
    let without = |columns: &[String], others: &[String]| -> Vec<String> {
        columns
            .iter()
            .filter(|column| !others.contains(column))
            .cloned()
            .collect()
    };
    let (came, went) = (
        without(&new.published, &old.published),
        without(&old.published, &new.published),
    );
    if !came.is_empty() {
        let what = format!("further columns may leave the source: {}", came.join(", "));
        changed(
            ToolRule::PublishedWidened,
            "published",
            Value::Null,
            json!(came),
            &what,
        );
    }
    if !went.is_empty() {
        let what = format!("columns no longer leave the source: {}", went.join(", "));
        changed(
            ToolRule::PublishedNarrowed,
            "published",
            json!(went),
            Value::Null,
            &what,
        );
    }
}

fn bindings(old: &ToolBinding, new: &ToolBinding, tool: &str, report: &mut DiffReport) {
    let mut changed = |rule: ToolRule, path: String, was: Value, is: Value, reason: String| {
        if was != is {
            report.note(rule, Some(tool), path, (was, is), reason);
        }
    };
    let operations = (json!(old.operation), json!(new.operation));
    changed(
        ToolRule::OperationChanged,
        "/binding/operation".to_owned(),
        operations.0,
        operations.1,
        "another operation is called".to_owned(),
    );
    let orders = (json!(old.order), json!(new.order));
    changed(
        ToolRule::OrderByChanged,
        "/binding/order".to_owned(),
        orders.0,
        orders.1,
        "records come in another order".to_owned(),
    );
    let rule = if new.limit_max < old.limit_max {
        ToolRule::RowCapLowered
    } else {
        ToolRule::RowCapRaised
    };
    let reason = format!(
        "at most {} records in one answer, were {}",
        new.limit_max, old.limit_max
    );
    changed(
        rule,
        "/binding/limit_max".to_owned(),
        json!(old.limit_max),
        json!(new.limit_max),
        reason,
    );
    for (index, now) in new.inputs.iter().enumerate() {
        let Some(was) = old.inputs.iter().find(|input| input.field == now.field) else {
            continue;
        };
        let shown = name::quoted(&now.field);
        if was.form != now.form {
            let path = format!("/binding/inputs/{index}/form");
            changed(
                ToolRule::FormChanged,
                path,
                json!(was.form),
                json!(now.form),
                format!("{shown} is given in another form"),
            );
        }
        if was.spellings != now.spellings {
            let path = format!("/binding/inputs/{index}/spellings");
            changed(
                ToolRule::MatchChanged,
                path,
                json!(was.spellings),
                json!(now.spellings),
                format!("{shown} finds other texts of the source"),
            );
        }
        if let Some((rule, what)) = destination(was, now) {
            let path = format!("/binding/inputs/{index}/to");
            changed(
                rule,
                path,
                json!(was.to),
                json!(now.to),
                format!("{shown} {what}"),
            );
        }
    }
    bound_fields(old, new, tool, report);
    inclusions(old, new, tool, report);
}

fn destination(old: &BindingInput, new: &BindingInput) -> Option<(ToolRule, &'static str)> {
    if old.to == new.to {
        return None;
    }
    Some(match (&old.to, &new.to) {
        (
            FieldDestination::Condition { column: was, .. },
            FieldDestination::Condition { column: is, .. },
        )
        | (FieldDestination::Column(was), FieldDestination::Column(is))
            if was != is =>
        {
            (ToolRule::ColumnChanged, "goes to another column")
        }
        (FieldDestination::Condition { .. }, FieldDestination::Condition { .. }) => {
            (ToolRule::MatchChanged, "is compared in another way")
        }
        (FieldDestination::Param(_), FieldDestination::Param(_)) => {
            (ToolRule::ParamChanged, "goes to another parameter")
        }
        _ => (ToolRule::DestinationChanged, "is used for something else"),
    })
}

/// Compares bound fields. Their names are the author's own; what counts is where the value comes from and goes.
fn bound_fields(old: &ToolBinding, new: &ToolBinding, tool: &str, report: &mut DiffReport) {
    let describe = |field: &BoundField| json!({ "to": field.to, "source": field.source });
    let is_kept = |field: &BoundField, others: &[BoundField]| {
        others
            .iter()
            .any(|other| other.to == field.to && other.source == field.source)
    };
    let mut explained = Vec::new();
    for (index, was) in old
        .bound
        .iter()
        .enumerate()
        .filter(|(_, field)| !is_kept(field, &new.bound))
    {
        let shown = name::quoted(&was.name);
        let path = format!("/binding/bound/{index}");
        let now = new
            .bound
            .iter()
            .find(|now| !is_kept(now, &old.bound) && (now.name == was.name || now.to == was.to));
        match now {
            Some(now) => {
                explained.push(now);
                let reason = format!("{shown} is bound otherwise, so that other rows are reached");
                report.note(
                    ToolRule::BoundFieldChanged,
                    Some(tool),
                    path,
                    (describe(was), describe(now)),
                    reason,
                );
            }
            None => {
                let reason = format!("{shown} is no longer bound, so that more rows are reached");
                report.note(
                    ToolRule::BoundFieldRemoved,
                    Some(tool),
                    path,
                    (describe(was), Value::Null),
                    reason,
                );
            }
        }
    }
    for (index, now) in new
        .bound
        .iter()
        .enumerate()
        .filter(|(_, field)| !is_kept(field, &old.bound))
    {
        if !explained.contains(&now) {
            let reason = format!(
                "{} is now bound, so that other rows are reached",
                name::quoted(&now.name)
            );
            let path = format!("/binding/bound/{index}");
            report.note(
                ToolRule::BoundFieldAdded,
                Some(tool),
                path,
                (Value::Null, describe(now)),
                reason,
            );
        }
    }
}
