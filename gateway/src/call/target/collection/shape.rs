//! The answer of an adapter: checked against the recorded shape, projected to the published columns, and put into one sentence.

use std::collections::HashMap;

use serde_json::{Map, Value, json, value::RawValue};
use weir_contracts::{
    CollectionShape, ToolVerb,
    contract::TextMode,
    output::{CheckedPage, LeftOutRecords, OutputMismatch, RecordChecker, SkippedRecords},
};
use weir_plugin_host::AdapterQuery;

use super::{CollectionAnswer, ListTotal, RelatedPage, listing, related, summary};
use crate::{
    call::{CallContent, CallError, ToolResult, asking, error::WriteOutcome, target::ToolCall},
    catalogue::{CollectionTool, RelatedCollection},
    codes::FailureCode,
    cursor::{CursorCipher, CursorScope},
};

/// The member of `_meta` with the number of records that are left out of a list.
const LEFT_OUT: &str = "dev.weir/left-out";

const SOURCE_CHANGED: &str =
    "The source no longer has the columns, or their types, that this tool was published with.";

/// Makes the result of a call from the answer.
pub(in crate::call::target) fn shape(
    cursors: &CursorCipher,
    target: &CollectionTool,
    answer: CollectionAnswer<'_>,
) -> Result<ToolResult, CallError> {
    match answer {
        CollectionAnswer::Page { page, related, .. }
            if target.published.verb == ToolVerb::Lookup =>
        {
            lookup(target, &page.records, &related)
        }
        CollectionAnswer::Page {
            request,
            page,
            total,
            ..
        } => {
            let next = page.next.zip(request.bound.as_ref());
            let next = next
                .map(|(next, bound)| sealed(cursors, bound, &next))
                .transpose()?;
            list(target, &request.query, &page.records, next, total)
        }
        CollectionAnswer::Summary(query, page) => summary::shape_summary(target, query, &page),
        CollectionAnswer::Record(record) => written(target, &record),
    }
}

/// Returns the cursor of the next page, in the form for the agent.
fn sealed(cursors: &CursorCipher, bound: &CursorScope, next: &str) -> Result<String, CallError> {
    asking::seal(cursors, bound, next, "The source's cursor of the next page")
}

fn lookup(
    target: &CollectionTool,
    records: &str,
    related: &[RelatedPage],
) -> Result<ToolResult, CallError> {
    let page = check_page(target, records).map_err(|found| {
        mismatch(
            OutputMismatch {
                record: None,
                ..found
            },
            None,
        )
    })?;
    let mut records = page.records;
    match records.len() {
        0 => {
            let skipped = page
                .skipped
                .map(|skipped| explain_skipped(target, &skipped));
            let left_out = page
                .left_out
                .map(|left_out| explain_left_out(target, &left_out));
            let (skipped, left_out) = (skipped.unwrap_or_default(), left_out.unwrap_or_default());
            Err(CallError::new(
                FailureCode::NotFound,
                format!("No record meets these conditions.{skipped}{left_out}"),
            ))
        }
        1 => {
            let record = records.remove(0);
            let sentence =
                sentence(target, &record).unwrap_or_else(|| "Found one record.".to_owned());
            let record = related::add_related(target, record, related)?;
            Ok(result(target, sentence, record))
        }
        _ => Err(CallError::new(
            FailureCode::Ambiguous,
            "More than one record meets these conditions.",
        )),
    }
}

fn list(
    target: &CollectionTool,
    query: &AdapterQuery,
    records: &str,
    next: Option<String>,
    total: Option<ListTotal>,
) -> Result<ToolResult, CallError> {
    let chosen = listing::chosen_checker(target, query);
    let checker = chosen.as_ref().unwrap_or(&target.records);
    let page = check_with(checker, target, records).map_err(|found| {
        let key = found
            .record
            .and_then(|record| key_of(target, records, record));
        mismatch(found, key)
    })?;
    let (records, skipped, left_out) = (page.records, page.skipped, page.left_out);
    if records.len() > query.limit as usize {
        return Err(CallError::new(
            FailureCode::OutputMismatch,
            "The source returned more than was requested.",
        ));
    }
    let mut structured =
        String::with_capacity(records.iter().map(|record| record.len() + 1).sum::<usize>() + 64);
    structured.push_str("{\"records\":[");
    for (index, record) in records.iter().enumerate() {
        if index > 0 {
            structured.push(',');
        }
        structured.push_str(record);
    }
    structured.push_str("],\"next\":");
    structured.push_str(&serde_json::to_string(&next).expect("a string"));
    let total = total
        .map(|total| total.read(target, records.len()))
        .transpose()?;
    if let Some(total) = total {
        let total = total.map_or_else(|| "null".to_owned(), |total| total.to_string());
        structured.push_str(&format!(",\"total\":{total}"));
    }
    if let Some(skipped) = &skipped {
        structured.push_str(&format!(",\"skipped\":{}", skipped.count));
    }
    structured.push('}');
    let mut count = match records.len() {
        0 => "No records".to_owned(),
        1 => "1 record".to_owned(),
        count => format!("{count} records"),
    };
    match total {
        Some(Some(total)) if total != records.len() as u64 => {
            count.push_str(&format!(" of {total}"));
        }
        Some(None) => count.push_str(", of a number that could not be counted"),
        _ => {}
    }
    let more = if next.is_some() {
        "; pass `next` as `cursor` for more."
    } else {
        "."
    };
    // The form's sentence requires the form's columns.
    let has_sentence = target.published.say.is_some() && chosen.is_none();
    let sentence = match records.first() {
        Some(first) if has_sentence && records.len() == 1 && next.is_none() => {
            sentence(target, first)
        }
        _ => None,
    };
    let mut sentence = sentence.unwrap_or_else(|| format!("{count}{more}"));
    if let Some(skipped) = &skipped {
        sentence.push_str(&explain_skipped(target, skipped));
    }
    Ok(match left_out {
        Some(left_out) => note_left_out(target, sentence, structured, &left_out),
        None => result(target, sentence, structured),
    })
}

/// Checks the records of a page. An adapter may return more than records only if it was asked to.
pub(super) fn check_page(
    target: &CollectionTool,
    records: &str,
) -> Result<CheckedPage, OutputMismatch> {
    check_with(&target.records, target, records)
}

pub(super) fn check_with(
    checker: &RecordChecker,
    target: &CollectionTool,
    records: &str,
) -> Result<CheckedPage, OutputMismatch> {
    check_reported(checker.page(records)?, target.counts_skipped)
}

/// Refuses a page with information that was not requested. Every page may report the records that no answer can contain.
fn check_reported(page: CheckedPage, counts_skipped: bool) -> Result<CheckedPage, OutputMismatch> {
    match page.skipped.is_some() && !counts_skipped {
        true => Err(OutputMismatch {
            path: String::new(),
            record: None,
            column: None,
            reason: "the number of skipped records was not asked for".to_owned(),
            source_changed: false,
        }),
        false => Ok(page),
    }
}

/// Checks the records that were read for a relation.
pub(super) fn check_related(
    related: &RelatedCollection,
    records: &str,
) -> Result<CheckedPage, OutputMismatch> {
    check_reported(related.records.page(records)?, related.counts_skipped)
}

/// Lists the records that are missing from an answer because a condition could not be evaluated. Columns that may not leave the
/// source are not named.
pub(super) fn explain_skipped(target: &CollectionTool, skipped: &SkippedRecords) -> String {
    let place = name_columns(target, &skipped.columns);
    let records = match skipped.count {
        1 => "1 record",
        count => &format!("{count} records"),
    };
    format!(" {records} could not be compared{place}; ask an operator.")
}

/// Lists the records that are missing from an answer because no answer can contain their values.
fn explain_left_out(target: &CollectionTool, left_out: &LeftOutRecords) -> String {
    let place = name_columns(target, &left_out.columns);
    let least = if left_out.more { "At least " } else { "" };
    let records = match left_out.count {
        1 => "1 record is",
        count => &format!("{count} records are"),
    };
    format!(" {least}{records} left out, since a value{place} fits no answer; ask an operator.")
}

/// Names the columns that may leave the source.
fn name_columns(target: &CollectionTool, columns: &[String]) -> String {
    let named: Vec<String> = columns
        .iter()
        .filter(|column| target.columns.contains(column))
        .map(|column| format!("`{column}`"))
        .collect();
    match named.is_empty() {
        true => String::new(),
        false => format!(" in {}", named.join(", ")),
    }
}

/// Checks the answer of a write, which has run: an answer that does not conform cannot undo it, and the agent must
/// know.
fn written(target: &CollectionTool, record: &str) -> Result<ToolResult, CallError> {
    let checked = target
        .records
        .record(record)
        .map_err(|found| mismatch(found, None).outcome(WriteOutcome::Unknown))?;
    let record = checked.json;
    let (status, default_sentence) = match target.published.verb {
        ToolVerb::Create => ("created", "Created one record."),
        ToolVerb::Update => ("updated", "Updated one record."),
        ToolVerb::Delete => ("deleted", "Deleted one record."),
        ToolVerb::Lookup
        | ToolVerb::List
        | ToolVerb::Count
        | ToolVerb::Summarize
        | ToolVerb::Call => ("done", "Done."),
    };
    let mut sentence = sentence(target, &record).unwrap_or_else(|| default_sentence.to_owned());
    if !checked.odd.is_empty() {
        sentence.push_str(&not_passed_on(&checked.odd));
    }
    Ok(result(
        target,
        sentence,
        format!("{{\"status\":\"{status}\",\"record\":{record}}}"),
    ))
}

/// Lists the parts of an answer that are null or left out.
fn not_passed_on(odd: &[(String, String)]) -> String {
    const SHOWN_MAX: usize = 5;
    let one = |(column, reason): &(String, String)| match column.is_empty() {
        true => reason.clone(),
        false => format!("in `{column}`, {reason}"),
    };
    let shown: Vec<String> = odd.iter().take(SHOWN_MAX).map(one).collect();
    let more = match odd.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!(
        " Not passed on as the source answered it: {}{more}.",
        shown.join("; ")
    )
}

/// Returns the key of one record of an answer, such as `` `id` 7 ``, if it may leave the source: with it, a
/// person finds the record to correct.
fn key_of(target: &CollectionTool, records: &str, record: usize) -> Option<String> {
    const KEY_CHARS_MAX: usize = 100;
    let shape: CollectionShape = serde_json::from_str(&target.source.shape).ok()?;
    let [column] = &shape.key[..] else {
        return None;
    };
    let records = RecordChecker::records_of(records)?;
    let records: Vec<HashMap<String, &RawValue>> = serde_json::from_str(records).ok()?;
    let value = target
        .columns
        .contains(column)
        .then(|| records.get(record)?.get(column))
        .flatten()?
        .get();
    let is_plain = !value.starts_with(['{', '[', 'n']) && value.len() <= KEY_CHARS_MAX;
    is_plain.then(|| format!("`{column}` {value}"))
}

/// `key`: the key of the record, as text.
pub(super) fn mismatch(found: OutputMismatch, key: Option<String>) -> CallError {
    let error = match found.source_changed {
        true => match &found.column {
            Some(column) => CallError::new(
                FailureCode::SourceChanged,
                format!("{SOURCE_CHANGED} `{column}` is missing."),
            ),
            None => CallError::new(FailureCode::SourceChanged, SOURCE_CHANGED),
        },
        false => {
            let place = match (&found.column, found.record) {
                (None, _) => String::new(),
                (Some(column), None) => format!(" in `{column}`"),
                // Otherwise, one record would keep all others from the agent.
                (Some(column), Some(record)) => format!(
                    " in `{column}` of record {}{} of this answer; ask in a way that leaves out that record",
                    record + 1,
                    key.map(|key| format!(" ({key})")).unwrap_or_default()
                ),
            };
            CallError::new(
                FailureCode::OutputMismatch,
                format!("The source answered a value this tool may not pass on{place}."),
            )
        }
    };
    error.log(found.to_string())
}

/// Explains an answer that may not be passed on. Perhaps a column has another type: then the source is checked, as when the
/// adapter itself found it changed.
pub(in crate::call::target) async fn explain(
    call: &ToolCall<'_>,
    target: &CollectionTool,
    error: CallError,
) -> CallError {
    let binding = &target.published.binding;
    let related = binding.include.iter().map(|one| &one.collection);
    let checks = call.gateway.source_checks();
    let mut has_drifted = false;
    for collection in std::iter::once(&binding.collection).chain(related) {
        has_drifted |= checks.has_drifted(&call.tool.contract, collection).await;
    }
    match has_drifted {
        true if error.code == FailureCode::OutputMismatch => CallError {
            code: FailureCode::SourceChanged,
            message: SOURCE_CHANGED.into(),
            ..error
        },
        _ => error,
    }
}

pub(super) fn result(target: &CollectionTool, sentence: String, structured: String) -> ToolResult {
    let text = match target.published.text {
        TextMode::Sentence => sentence,
        TextMode::Json => structured.clone(),
        TextMode::Both => [&*sentence, &structured].join("\n"),
    };
    ToolResult::new(text, structured, false)
}

/// Returns the result of a list from which records are left out. Its schema has no place for their number, so a text that is only
/// JSON is followed by a second text.
fn note_left_out(
    target: &CollectionTool,
    sentence: String,
    structured: String,
    left_out: &LeftOutRecords,
) -> ToolResult {
    let note = explain_left_out(target, left_out);
    let count = left_out.count.to_string();
    let mut result = match target.published.text {
        TextMode::Sentence | TextMode::Both => result(target, sentence + &note, structured),
        TextMode::Json => {
            let block = |text: &str| json!({ "type": "text", "text": text });
            let blocks = json!([block(&structured), block(note.trim_start())]);
            let content = CallContent::Blocks(blocks.to_string());
            ToolResult::from_content(content, Some(structured), false)
        }
    };
    result.meta.push((LEFT_OUT.into(), count));
    result
}

/// Fills in the contract's `say:` template from the record: `Found {name} in {city}.`
pub(super) fn sentence(target: &CollectionTool, record: &str) -> Option<String> {
    let template = target.published.say.as_deref()?;
    let record: Map<String, Value> = serde_json::from_str(record).ok()?;
    let mut filled = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            filled.push('{');
            rest = after;
            continue;
        };
        match record.get(name) {
            Some(Value::String(text)) => filled.push_str(text),
            Some(Value::Null) | None => {}
            Some(other) => filled.push_str(&other.to_string()),
        }
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::TEXT_MAX_BYTES;

    #[test]
    fn a_cursor_that_could_not_be_used_is_not_given_out() {
        let cursors = CursorCipher::ephemeral().expect("randomness");
        let bound = CursorScope::new("list_airports", 1, "dana", "{}");
        let longest = "x".repeat(TEXT_MAX_BYTES);
        let next = sealed(&cursors, &bound, &longest).expect("a cursor");
        assert_eq!(cursors.open_sealed(&bound, &next), Some(longest.clone()));
        let error = sealed(&cursors, &bound, &(longest + "x")).expect_err("too long");
        assert_eq!(error.code, FailureCode::TooLarge);
        assert_eq!(
            error.message,
            "The source's cursor of the next page takes more than 32 KB, the most that is passed on."
        );
    }
}
