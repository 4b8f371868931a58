//! Counts and summaries: what is asked of the source, and its answer as the caller gets it.

use serde_json::{Map, Value};
use weir_plugin_host::{Query, SummaryMeasure, SummaryPage, SummaryQuery};

use super::shape::{check_page, explain_skipped, mismatch, result, sentence};
use crate::{
    call::{CallError, ToolResult},
    catalogue::CollectionTool,
    codes::Code,
};

/// Asks how many records the conditions of a query let through.
pub(super) fn count(query: Query) -> SummaryQuery {
    let count = SummaryMeasure {
        name: "count".to_owned(),
        function: "count",
        column: None,
    };
    SummaryQuery {
        conditions: query.conditions,
        measures: vec![count],
        limit: 1,
        options: query.options,
        ..SummaryQuery::default()
    }
}

pub(super) fn shape_count(
    target: &CollectionTool,
    page: &SummaryPage,
) -> Result<ToolResult, CallError> {
    let checked = check_page(target, &page.records).map_err(|found| mismatch(found, None))?;
    let counted = checked.records.first().and_then(|record| {
        let members: Map<String, Value> = serde_json::from_str(record).ok()?;
        Some((record, members.get("count")?.as_u64()?))
    });
    let Some((record, count)) = counted else {
        let message = "The source answered no count.";
        return Err(CallError::new(Code::OutputMismatch, message));
    };
    let mut structured = record.clone();
    let mut told = sentence(target, record).unwrap_or_else(|| match count {
        1 => "1 record.".to_owned(),
        count => format!("{count} records."),
    });
    if let Some(skipped) = &checked.skipped {
        structured.truncate(structured.len() - 1);
        structured.push_str(&format!(",\"skipped\":{}}}", skipped.count));
        told.push_str(&explain_skipped(target, skipped));
    }
    Ok(result(target, told, structured))
}
