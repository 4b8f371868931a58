//! The schemas of results.

use serde_json::Value;

use super::DiffTool;
use crate::{
    compile::{error_arm, result_arm},
    diff::{DiffReport, SchemaSide, rule::ToolRule},
};

/// Compares whether lists describe the results, where their schema stayed the same.
pub(super) fn compare_listed_output(
    old: &DiffTool<'_>,
    new: &DiffTool<'_>,
    report: &mut DiffReport,
) {
    let listed = |view: &DiffTool<'_>| {
        view.further
            .as_ref()
            .map_or(view.output.is_some(), |it| it.published.1.is_some())
    };
    let kept =
        (old.output == new.output && old.output.is_some()).then(|| (listed(old), listed(new)));
    match kept {
        Some((false, true)) => {
            let reason = "results are described in lists now".to_owned();
            let schema = new.output.as_deref().cloned().unwrap_or_default();
            report.note(
                ToolRule::OutputSchemaAdded,
                Some(old.name),
                "/outputSchema",
                (Value::Null, schema),
                reason,
            );
        }
        Some((true, false)) => {
            let reason = "results are no longer described in lists".to_owned();
            let schema = old.output.as_deref().cloned().unwrap_or_default();
            report.note(
                ToolRule::OutputSchemaRemoved,
                Some(old.name),
                "/outputSchema",
                (schema, Value::Null),
                reason,
            );
        }
        _ => {}
    }
}

/// Compares what describes the results.
pub(super) fn compare_outputs(old: &DiffTool<'_>, new: &DiffTool<'_>, report: &mut DiffReport) {
    match (&old.output, &new.output) {
        (None, None) => {}
        (None, Some(schema)) => {
            let reason = "results are described now".to_owned();
            report.note(
                ToolRule::OutputSchemaAdded,
                Some(old.name),
                "/outputSchema",
                (Value::Null, schema.clone().into_owned()),
                reason,
            );
        }
        (Some(schema), None) => {
            let reason = "results are no longer described".to_owned();
            report.note(
                ToolRule::OutputSchemaRemoved,
                Some(old.name),
                "/outputSchema",
                (schema.clone().into_owned(), Value::Null),
                reason,
            );
        }
        (Some(was), Some(is)) if was == is => {
            report.schemas(was, is, SchemaSide::Output, Some(old.name))
        }
        (Some(was), Some(is)) => report.schemas(
            &result(was),
            &result(is),
            SchemaSide::Output,
            Some(old.name),
        ),
    }
}

/// Returns the result arm of one of our output schemas; a schema from elsewhere is returned unchanged.
fn result(schema: &Value) -> Value {
    let arms = schema
        .get("anyOf")
        .and_then(Value::as_array)
        .map(Vec::as_slice);
    let Some([arm, error]) = arms else {
        return schema.clone();
    };
    let frozen = error_arm();
    let is_ours = ["properties", "required"]
        .iter()
        .all(|key| error.get(key) == frozen.get(key))
        && error.as_object().is_some_and(|members| members.len() == 2)
        && arm.is_object();
    match is_ours {
        true => result_arm(schema),
        false => schema.clone(),
    }
}
