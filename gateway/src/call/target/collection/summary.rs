//! Counts and summaries: the question to the source, and its answer as the caller gets it.

use serde_json::{Map, Value};
use weir_contracts::{
    contract::{SummaryChoices, ToolBinding},
    output::{OutputMismatch, RecordChecker},
    shape::{ShapeField, ValueType},
    values,
};
use weir_plugin_host::{
    AdapterCondition, AdapterQuery, AdapterSummaryGroup, AdapterSummaryMeasure, AdapterSummaryPage,
    AdapterSummaryQuery,
};
use weir_schema::validate::InvalidArguments;

use super::shape::{check_page, check_with, explain_skipped, mismatch, result, sentence};
use crate::{
    call::{CallError, ToolResult},
    catalogue::CollectionTool,
    codes::FailureCode,
};

/// Asks how many records meet the conditions of a query.
pub(super) fn count(query: AdapterQuery) -> AdapterSummaryQuery {
    let count = AdapterSummaryMeasure {
        name: "count".to_owned(),
        function: "count",
        column: None,
    };
    AdapterSummaryQuery {
        conditions: query.conditions,
        measures: vec![count],
        limit: 1,
        options: query.options,
        ..AdapterSummaryQuery::default()
    }
}

/// Asks for those measures and groups of the tool that the arguments name.
pub(super) fn summarize(
    target: &CollectionTool,
    arguments: &Map<String, Value>,
    query: AdapterQuery,
) -> Result<AdapterSummaryQuery, CallError> {
    let binding = &target.published.binding;
    let none = SummaryChoices::default();
    let choices = binding.summary.as_ref().unwrap_or(&none);
    let wanted = names(arguments, "group_by");
    let groups = wanted.iter().filter_map(|wanted| {
        let choice = choices.groups.iter().find(|one| one.name == **wanted)?;
        Some(AdapterSummaryGroup {
            name: choice.name.clone(),
            column: choice.column.clone(),
            step: choice.step.map(|step| step.word()),
        })
    });
    let groups: Vec<_> = groups.collect();
    let mut wanted = names(arguments, "measures");
    if wanted.is_empty() {
        wanted.extend(choices.measures.first().map(|first| first.name.as_str()));
    }
    let measures = wanted.iter().filter_map(|wanted| {
        let choice = choices.measures.iter().find(|one| one.name == **wanted)?;
        Some(AdapterSummaryMeasure {
            name: choice.name.clone(),
            function: choice.function.word(),
            column: choice.column.clone(),
        })
    });
    let measures: Vec<_> = measures.collect();
    let group_names = groups.iter().map(|group| group.name.as_str());
    let measure_names: Vec<&str> = measures.iter().map(|one| one.name.as_str()).collect();
    let asked: Vec<&str> = group_names.chain(measure_names.iter().copied()).collect();
    let order = names(arguments, "order_by");
    for (index, by) in order.iter().enumerate() {
        let name = by.strip_prefix('-').unwrap_or(by);
        if !asked.contains(by) && !asked.contains(&name) {
            let refused = InvalidArguments::not_among(format!("/order_by/{index}"), &asked);
            return Err(CallError::invalid(refused));
        }
    }
    let fields = target.summary.as_deref().unwrap_or_default();
    let is_number = |name: &str| {
        let field = fields.iter().find(|field| field.key == name);
        field.is_some_and(|field| {
            matches!(
                field.kind,
                ValueType::Integer | ValueType::Number | ValueType::Decimal
            )
        })
    };
    let mut comparable = measure_names;
    comparable.retain(|name| is_number(name));
    let limit = arguments.get("limit").and_then(Value::as_u64);
    let limit = limit.and_then(|limit| u32::try_from(limit).ok());
    Ok(AdapterSummaryQuery {
        conditions: query.conditions,
        having: having(binding, arguments, &comparable)?,
        order: order.into_iter().map(str::to_owned).collect(),
        limit: limit
            .unwrap_or(binding.limit_default)
            .min(binding.limit_max),
        options: query.options,
        groups,
        measures,
    })
}

pub(super) fn names<'a>(arguments: &'a Map<String, Value>, argument: &str) -> Vec<&'a str> {
    let names = arguments.get(argument).and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Reads the conditions on measures that are numbers. A number becomes digits: exact measures are compared as such.
fn having(
    binding: &ToolBinding,
    arguments: &Map<String, Value>,
    measures: &[&str],
) -> Result<Vec<AdapterCondition>, CallError> {
    let mut conditions = Vec::new();
    let given = arguments.get("having").and_then(Value::as_array);
    for (index, given) in given.into_iter().flatten().enumerate() {
        let measure = given["measure"].as_str().unwrap_or_default();
        let is_decimal = binding
            .summary
            .as_ref()
            .is_some_and(|choices| choices.is_decimal(measure));
        if !measures.contains(&measure) {
            // If no measure can be compared, the whole condition is removed.
            let place = match measures.is_empty() {
                true => format!("/having/{index}"),
                false => format!("/having/{index}/measure"),
            };
            return Err(CallError::invalid(InvalidArguments::not_among(
                place, measures,
            )));
        }
        for (key, comparison) in [("at_least", "at-least"), ("at_most", "at-most")] {
            let Some(Value::Number(number)) = given.get(key) else {
                continue;
            };
            let value = match is_decimal {
                true => Value::from(values::decimal_of(number)),
                false => Value::Number(number.clone()),
            };
            conditions.push(AdapterCondition {
                column: measure.to_owned(),
                comparison: comparison.to_owned(),
                value: value.to_string(),
            });
        }
    }
    Ok(conditions)
}

pub(super) fn shape_summary(
    target: &CollectionTool,
    query: &AdapterSummaryQuery,
    page: &AdapterSummaryPage,
) -> Result<ToolResult, CallError> {
    match &target.summary {
        Some(fields) => shape_groups(target, fields, query, page),
        None => shape_count(target, page),
    }
}

fn shape_count(
    target: &CollectionTool,
    page: &AdapterSummaryPage,
) -> Result<ToolResult, CallError> {
    let checked = check_page(target, &page.records).map_err(|found| mismatch(found, None))?;
    let (record, count) = read_count(&checked.records)?;
    let mut structured = record.clone();
    let mut text = sentence(target, record).unwrap_or_else(|| match count {
        1 => "1 record.".to_owned(),
        count => format!("{count} records."),
    });
    if let Some(skipped) = &checked.skipped {
        structured.truncate(structured.len() - 1);
        structured.push_str(&format!(",\"skipped\":{}}}", skipped.count));
        text.push_str(&explain_skipped(target, skipped));
    }
    Ok(result(target, text, structured))
}

/// Returns the one record of a count, and its number.
pub(super) fn read_count(records: &[String]) -> Result<(&String, u64), CallError> {
    let counted = records.first().and_then(|record| {
        let members: Map<String, Value> = serde_json::from_str(record).ok()?;
        Some((record, members.get("count")?.as_u64()?))
    });
    let message = "The source answered no count.";
    counted.ok_or_else(|| CallError::new(FailureCode::OutputMismatch, message))
}

fn shape_groups(
    target: &CollectionTool,
    fields: &[ShapeField],
    query: &AdapterSummaryQuery,
    page: &AdapterSummaryPage,
) -> Result<ToolResult, CallError> {
    let groups = query.groups.iter().map(|group| group.name.clone());
    let measures = query.measures.iter().map(|measure| measure.name.clone());
    let names: Vec<String> = groups.chain(measures).collect();
    let checker = RecordChecker::for_fields(fields, &names);
    // The records have no key, so naming the faulty one would not help.
    let fault = |found: OutputMismatch| {
        let record = None;
        mismatch(OutputMismatch { record, ..found }, None)
    };
    let checked = check_with(&checker, target, &page.records).map_err(fault)?;
    if checked.records.len() > query.limit as usize {
        let message = "The source returned more than was requested.";
        return Err(CallError::new(FailureCode::OutputMismatch, message));
    }
    let records = checked.records.join(",");
    let mut structured = format!("{{\"records\":[{records}],\"more\":{}", page.more);
    let mut text = match checked.records.len() {
        1 => "1 group".to_owned(),
        count => format!("{count} groups"),
    };
    text.push_str(match page.more {
        true => "; there are more: raise `limit`, or narrow the filters.",
        false => ".",
    });
    if let Some(skipped) = &checked.skipped {
        structured.push_str(&format!(",\"skipped\":{}", skipped.count));
        text.push_str(&explain_skipped(target, skipped));
    }
    structured.push('}');
    Ok(result(target, text, structured))
}
