//! Compiles what only tools have that ask about many records at once.

use serde_json::{Map, Value, json};

use super::{FileProblems, collection::no_column};
use crate::{
    contract::{
        ContractCollection, GroupChoice, GroupStep, MeasureChoice, MeasureFunction, SummaryChoices,
        ToolVerb, is_groupable,
    },
    form, name,
    shape::{ShapeField, ValueType},
};

/// The arguments that a summary has in addition to its filters.
pub(super) const INPUTS: [&str; 5] = ["group_by", "measures", "having", "order_by", "limit"];
/// The maximum number of groups in one answer, whatever a form sets.
const GROUPS_MAX: u32 = 1_000;
/// Columns that one question groups by at most.
const GROUP_BY_MAX: usize = 3;
/// Measures of one question at most.
const MEASURES_MAX: usize = 10;

/// Refuses a verb that asks about many records at once, which the source cannot answer.
pub(super) fn check_source(
    collection: &ContractCollection,
    verb: ToolVerb,
    place: String,
    problems: &mut FileProblems,
) {
    let (name, word) = (&collection.name, verb.word());
    problems.add_hint(
        place,
        format!("collection '{name}' has no {word}: the source cannot {word} records"),
        "publish a list, or serve the data by an adapter that can",
    );
}

/// Compiles the groups and measures that a form offers.
pub(super) fn choices(
    form: &form::FormTool,
    collection: &ContractCollection,
    problems: &mut FileProblems,
) -> SummaryChoices {
    let mut choices = SummaryChoices::default();
    let wanted = |key: &str, index: usize| format!("{}/{key}/{index}", form.place);
    for (index, column) in form.group_by.iter().flatten().enumerate() {
        let place = wanted("group_by", index);
        let Some(field) = published(column, collection, &place, problems) else {
            continue;
        };
        if !is_groupable(field.kind) {
            let message = format!("a {} column makes no groups", field.kind.word());
            let hint = columns_that("make groups", collection, |column| {
                is_groupable(column.kind)
            });
            problems.add_hint(place, message, hint);
            continue;
        }
        let steps: Vec<Option<GroupStep>> = match field.kind {
            ValueType::Date | ValueType::Datetime => GroupStep::ALL.map(Some).to_vec(),
            _ => vec![None],
        };
        choices
            .groups
            .extend(steps.into_iter().map(|step| GroupChoice {
                name: step.map_or(column.clone(), |step| format!("{}({column})", step.word())),
                column: column.clone(),
                step,
            }));
    }
    let count = vec!["count".to_owned()];
    let measures = form.measures.as_ref().unwrap_or(&count);
    for (index, text) in measures.iter().enumerate() {
        let place = wanted("measures", index);
        choices
            .measures
            .extend(measure(text, collection, &place, problems));
    }
    if measures.is_empty() {
        let message = "a summary needs a measure";
        let place = format!("{}/measures", form.place);
        problems.add_hint(place, message, "leave it out to use only `count`");
    }
    let names = choices.groups.iter().map(|group| &group.name);
    let names: Vec<&String> = names
        .chain(choices.measures.iter().map(|measure| &measure.name))
        .collect();
    let twice = |(index, name): (usize, &&String)| names[..index].contains(name);
    if let Some(at) = (0..names.len()).find(|at| twice((*at, &names[*at]))) {
        let message = format!("{} is a group and a measure", name::quoted(names[at]));
        let hint = "drop the column, or the measure of its name";
        problems.add_hint(format!("{}/group_by", form.place), message, hint);
    }
    choices
}

/// Returns a hint with the published columns that can do something.
fn columns_that(
    can: &str,
    collection: &ContractCollection,
    is_meant: impl Fn(&ShapeField) -> bool,
) -> String {
    let published = collection.published.iter();
    let fitting = published.filter(|column| collection.shape.field(column).is_some_and(&is_meant));
    let names: Vec<&str> = fitting.take(20).map(String::as_str).collect();
    match names.is_empty() {
        true => "drop it: the collection publishes no column for it".to_owned(),
        false => format!("columns that {can}: {}", names.join(", ")),
    }
}

/// Finds a column that an answer may contain.
pub(super) fn published<'c>(
    column: &str,
    collection: &'c ContractCollection,
    place: &str,
    problems: &mut FileProblems,
) -> Option<&'c ShapeField> {
    let Some(field) = collection.shape.field(column) else {
        no_column(place.to_owned(), column, &collection.shape, problems);
        return None;
    };
    if !collection.published.iter().any(|known| known == column) {
        let message = format!("column {} is not published", name::quoted(column));
        let hint = format!("published: {}", collection.published.join(", "));
        problems.add_hint(place.to_owned(), message, hint);
        return None;
    }
    Some(field)
}

fn measure(
    text: &str,
    collection: &ContractCollection,
    place: &str,
    problems: &mut FileProblems,
) -> Option<MeasureChoice> {
    let column = text.strip_suffix(')').and_then(|text| text.split_once('('));
    let (word, column) = column.map_or((text, None), |(word, column)| (word, Some(column)));
    let function = MeasureFunction::ALL
        .into_iter()
        .find(|function| function.word() == word);
    let choice = |function, decimal| MeasureChoice {
        name: text.to_owned(),
        function,
        column: column.map(str::to_owned),
        decimal,
    };
    match (function, column) {
        (Some(MeasureFunction::Count), None) => Some(choice(MeasureFunction::Count, false)),
        (Some(function), Some(column)) if function != MeasureFunction::Count => {
            let field = published(column, collection, place, problems)?;
            if !function.fits(field.kind) {
                let message = format!("a {} column has no {word}", field.kind.word());
                let can = format!("have {word}");
                let hint = columns_that(&can, collection, |column| function.fits(column.kind));
                problems.add_hint(place.to_owned(), message, hint);
                return None;
            }
            let is_exact =
                field.kind == ValueType::Decimal && function != MeasureFunction::Distinct;
            Some(choice(function, is_exact))
        }
        _ => {
            let hint = "count, or sum, avg, min, max or distinct of a column: sum(total)";
            let message = format!("{} is no measure", name::quoted(text));
            problems.add_hint(place.to_owned(), message, hint);
            None
        }
    }
}

/// Adds the arguments that a summary has in addition to its filters.
pub(super) fn add_inputs(
    choices: &SummaryChoices,
    limit: u32,
    limit_max: u32,
    properties: &mut Map<String, Value>,
) {
    let names = |names: Vec<&str>| json!({ "type": "string", "enum": names });
    let groups: Vec<&str> = choices.groups.iter().map(|one| one.name.as_str()).collect();
    let measures: Vec<&str> = choices
        .measures
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    if !groups.is_empty() {
        let group_by = json!({
            "type": "array", "items": names(groups), "maxItems": GROUP_BY_MAX, "uniqueItems": true,
            "description": "Answers one record for each combination of these. Without it, one record for all together.",
        });
        properties.insert("group_by".into(), group_by);
    }
    let first = measures[..measures.len().min(1)].to_vec();
    let measures = json!({
        "type": "array", "items": names(measures), "minItems": 1, "maxItems": MEASURES_MAX, "uniqueItems": true, "default": first,
        "description": "What to compute of each group.",
    });
    properties.insert("measures".into(), measures);
    let having = json!({
        "type": "array", "maxItems": 8,
        "items": {
            "type": "object",
            "properties": {
                "measure": { "type": "string", "description": "A measure of the question whose values are numbers." },
                "at_least": { "type": "number", "description": "This or more." },
                "at_most": { "type": "number", "description": "This or less." },
            },
            "required": ["measure"], "additionalProperties": false,
        },
        "description": "Keeps only groups in which one of `measures` has such a number.",
    });
    properties.insert("having".into(), having);
    let order_by = json!({
        "type": "array", "items": { "type": "string" }, "maxItems": 4,
        "description": "Names of `group_by` or `measures` to order by; \"-\" in front puts the largest first. Without it, by the groups.",
    });
    properties.insert("order_by".into(), order_by);
    let limit = json!({
        "type": "integer", "minimum": 1, "maximum": limit_max, "default": limit,
        "description": "How many groups to return at most.",
    });
    properties.insert("limit".into(), limit);
}

/// Checks the keys of a form that mean nothing to a count or a summary, and those that only these have.
pub(super) fn check_keys(form: &form::FormTool, verb: ToolVerb, problems: &mut FileProblems) {
    let is_summary = verb == ToolVerb::Summarize;
    let word = verb.word();
    let keys = [
        ("group_by", form.group_by.is_some() && !is_summary),
        ("measures", form.measures.is_some() && !is_summary),
    ];
    for (key, _) in keys.into_iter().filter(|(_, is_wrong)| *is_wrong) {
        let place = format!("{}/{key}", form.place);
        problems.add_hint(place, "only a summarize has it", "drop it");
    }
    if form.returns.is_some() && matches!(verb, ToolVerb::Count | ToolVerb::Summarize) {
        let place = format!("{}/returns", form.place);
        problems.add_hint(place, format!("a {word} answers no columns"), "drop it");
    }
    if !is_summary {
        return;
    }
    if form.say.is_some() {
        let place = format!("{}/say", form.place);
        problems.add_hint(place, "a summarize has no sentence of its own", "drop it");
    }
    if form.limits.rows_max.is_some_and(|rows| rows > GROUPS_MAX) {
        let place = format!("{}/limits/rows_max", form.place);
        problems.add_hint(
            place,
            format!("a summarize answers at most {GROUPS_MAX} groups"),
            format!("write {GROUPS_MAX} or less"),
        );
    }
    for field in form
        .fields
        .iter()
        .filter(|field| INPUTS.contains(&field.name.as_str()))
    {
        let message = format!("every summarize has its own '{}'", field.name);
        let place = format!("{}/name", field.place);
        problems.add_hint(place, message, "choose another name");
    }
}
