//! Tools as clients see them: which were added and removed, their texts, annotations and schemas.

mod output;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use serde_json::{Map, Value, json};
use weir_schema::schema::without_default_dialect;

use self::output::{compare_listed_output, compare_outputs};
use super::{DiffReport, ForeignChanges, SchemaSide, consent::awaits_consent, rule::ToolRule};
use crate::{
    RawSchema,
    contract::{CompiledContract, ContractTool, ToolAnnotations},
    json::push_pointer,
    name,
};

/// Tools of one document.
const TOOLS_MAX: usize = 20_000;
/// Added tools among which a new name is searched.
const LIKELY_MAX: usize = 200;

pub(super) struct DiffTool<'d> {
    name: &'d str,
    title: Option<&'d str>,
    description: Option<&'d str>,
    say: Option<&'d str>,
    input: Cow<'d, Value>,
    output: Option<Cow<'d, Value>>,
    /// The hints, in the order of [`HINTS`].
    hints: [bool; 4],
    /// The title among its annotations.
    hint_title: Option<&'d Value>,
    /// Its other members that a document lists: see [`LISTED`].
    listed: Map<String, Value>,
    /// The parts that only a contract's tool has.
    further: Option<ContractParts<'d>>,
}

/// The parts of a contract's tool that a tool of a document lacks.
struct ContractParts<'d> {
    stated: [Option<bool>; 4],
    annotations: &'d Map<String, Value>,
    /// The published schemas, if calls are checked against more than those.
    published: (&'d RawSchema, Option<&'d RawSchema>),
    is_foreign: bool,
}

/// Annotations with the protocol's default if they are absent, and the value that clients are careful about.
const HINTS: [(&str, bool, bool); 4] = [
    ("readOnlyHint", false, false),
    ("destructiveHint", true, true),
    ("idempotentHint", false, false),
    ("openWorldHint", true, true),
];

/// What else is listed of a tool and read by clients.
const LISTED: [&str; 2] = ["icons", "_meta"];

pub(super) fn of_contract(contract: &CompiledContract) -> Vec<DiffTool<'_>> {
    contract.tools.iter().map(|tool| of_tool(tool)).collect()
}

fn of_tool(tool: &ContractTool) -> DiffTool<'_> {
    let ToolAnnotations {
        read_only_hint,
        destructive_hint,
        idempotent_hint,
        open_world_hint,
        others,
    } = &tool.annotations;
    let stated = [
        *read_only_hint,
        *destructive_hint,
        *idempotent_hint,
        *open_world_hint,
    ];
    DiffTool {
        name: &tool.name,
        title: tool.title.as_deref(),
        description: Some(&tool.description),
        say: tool.collection().and_then(|target| target.say.as_deref()),
        input: Cow::Owned(tool.checked_input().value()),
        output: tool
            .checked_output()
            .map(|schema| Cow::Owned(schema.value())),
        hints: std::array::from_fn(|index| stated[index].unwrap_or(HINTS[index].1)),
        hint_title: others.get("title"),
        listed: tool
            .offer()
            .map(|offer| offer.listed.clone())
            .unwrap_or_default(),
        further: Some(ContractParts {
            stated,
            annotations: others,
            published: (&tool.input_schema, tool.output_schema.as_ref()),
            is_foreign: tool.is_foreign(),
        }),
    }
}

/// Reads the tools of a document. The error names the one that cannot be read and explains why.
pub(super) fn of_document(document: &Value) -> Result<Vec<DiffTool<'_>>, String> {
    let Some(Value::Array(tools)) = document.get("tools") else {
        return Err("it has no list of tools".to_owned());
    };
    if tools.len() > TOOLS_MAX {
        return Err(format!("it has more than {TOOLS_MAX} tools"));
    }
    let mut views: Vec<DiffTool<'_>> = Vec::new();
    let mut names = std::collections::HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let fault = |message: &str| format!("tools[{index}]: {message}");
        let name = tool
            .get("name")
            .and_then(Value::as_str)
            .ok_or_else(|| fault("it has no name"))?;
        if !names.insert(name) {
            return Err(fault(&format!(
                "the name {} is there twice",
                name::quoted(name)
            )));
        }
        let text = |key: &str| match tool.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(fault(&format!("its {key} is no text"))),
        };
        let input = tool
            .get("inputSchema")
            .ok_or_else(|| fault("it has no inputSchema"))?;
        let annotations = tool.get("annotations").unwrap_or(&Value::Null);
        let hints = HINTS.map(|(hint, absent, _)| {
            annotations
                .get(hint)
                .and_then(Value::as_bool)
                .unwrap_or(absent)
        });
        let output = tool.get("outputSchema").filter(|schema| !schema.is_null());
        views.push(DiffTool {
            name,
            title: text("title")?,
            description: text("description")?,
            say: None,
            input: Cow::Borrowed(input),
            output: output.map(Cow::Borrowed),
            hints,
            hint_title: annotations.get("title"),
            listed: LISTED
                .into_iter()
                .filter_map(|member| Some((member.to_owned(), tool.get(member)?.clone())))
                .filter(|(_, value)| !value.is_null())
                .collect(),
            further: None,
        });
    }
    Ok(views)
}

pub(super) fn compare(old: &[DiffTool<'_>], new: &[DiffTool<'_>], report: &mut DiffReport) {
    let by_name: HashMap<&str, &DiffTool<'_>> = new.iter().map(|tool| (tool.name, tool)).collect();
    let known: HashMap<&str, &DiffTool<'_>> = old.iter().map(|tool| (tool.name, tool)).collect();
    let mut came: Vec<&DiffTool<'_>> = new
        .iter()
        .filter(|tool| !known.contains_key(tool.name))
        .collect();
    for tool in old {
        match by_name.get(tool.name) {
            Some(now) => one(tool, now, report),
            None => match new_name(tool, &came) {
                Some(index) => {
                    let now = came.remove(index);
                    let reason = format!(
                        "{} was removed, {} looks like its new name",
                        name::quoted(tool.name),
                        name::quoted(now.name)
                    );
                    report.note(
                        ToolRule::ToolRenamed,
                        Some(tool.name),
                        "/name",
                        (tool.name.into(), now.name.into()),
                        reason,
                    );
                    // Under its new name everything else about it may be different.
                    one(tool, now, report);
                }
                None => {
                    let reason = format!("{} was removed", name::quoted(tool.name));
                    report.note(
                        ToolRule::ToolRemoved,
                        Some(tool.name),
                        "",
                        (tool.name.into(), Value::Null),
                        reason,
                    );
                }
            },
        }
    }
    for tool in came {
        let reason = format!("{} was added", name::quoted(tool.name));
        report.note(
            ToolRule::ToolAdded,
            Some(tool.name),
            "",
            (Value::Null, tool.name.into()),
            reason,
        );
    }
}

fn new_name(tool: &DiffTool<'_>, came: &[&DiffTool<'_>]) -> Option<usize> {
    let came = &came[..came.len().min(LIKELY_MAX)];
    let is_same = |now: &&DiffTool<'_>| {
        now.input == tool.input && now.output == tool.output && now.description == tool.description
    };
    came.iter().position(is_same).or_else(|| {
        let near = name::nearest(tool.name, came.iter().map(|now| now.name))?;
        came.iter().position(|now| now.name == near)
    })
}

fn one(old: &DiffTool<'_>, new: &DiffTool<'_>, report: &mut DiffReport) {
    let before = report.items.len();
    compare_parts(old, new, report);
    if let (Some(was), Some(is)) = (&old.further, &new.further)
        && is.is_foreign
        && report.items[before..]
            .iter()
            .all(|item| !awaits_consent(item, ForeignChanges::Compatible))
    {
        unseen_words(old.name, was, is, report);
    }
}

/// Compares words in a place that no rule looks at, such as a definition that nothing refers to: models read them as
/// well.
fn unseen_words(
    tool: &str,
    old: &ContractParts<'_>,
    new: &ContractParts<'_>,
    report: &mut DiffReport,
) {
    let of = |further: &ContractParts<'_>| {
        let mut words = BTreeSet::new();
        let (input, output) = further.published;
        [Some(input), output]
            .into_iter()
            .flatten()
            .for_each(|schema| {
                // Clients never read this word.
                collect_words(&without_default_dialect(&schema.value()), &mut words);
            });
        words
    };
    let (before, after) = (of(old), of(new));
    let came: Vec<&String> = after.difference(&before).collect();
    if !came.is_empty() {
        let reason = "its schemas have further words".to_owned();
        report.note(
            ToolRule::ToolTextChanged,
            Some(tool),
            "/inputSchema",
            (Value::Null, json!(came)),
            reason,
        );
    }
}

fn collect_words(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => _ = words.insert(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect_words(value, words)),
        Value::Object(members) => {
            for (name, value) in members {
                words.insert(name.clone());
                collect_words(value, words);
            }
        }
        _ => {}
    }
}

fn compare_parts(old: &DiffTool<'_>, new: &DiffTool<'_>, report: &mut DiffReport) {
    compare_texts(old, new, report);
    compare_hints(old, new, report);
    match (&old.further, &new.further) {
        (Some(was), Some(is)) => further(old.name, was, is, report),
        _ => compare_hint_titles(old, new, report),
    }
    members(
        old.name,
        "",
        &old.listed,
        &new.listed,
        report,
        |member| match member {
            "icons" => ToolRule::IconsChanged,
            "execution" => ToolRule::ExecutionChanged,
            _ => ToolRule::MetaChanged,
        },
    );
    compare_inputs(old, new, report);
    compare_listed_output(old, new, report);
    compare_outputs(old, new, report);
}

fn compare_texts(old: &DiffTool<'_>, new: &DiffTool<'_>, report: &mut DiffReport) {
    for (path, was, is) in [
        ("/title", old.title, new.title),
        ("/description", old.description, new.description),
        ("/say", old.say, new.say),
    ] {
        if was != is {
            let reason = format!("the {} changed", &path[1..]);
            report.note(
                ToolRule::ToolTextChanged,
                Some(old.name),
                path,
                (json!(was), json!(is)),
                reason,
            );
        }
    }
}

fn compare_hints(old: &DiffTool<'_>, new: &DiffTool<'_>, report: &mut DiffReport) {
    for ((hint, _, careful), (was, is)) in HINTS.iter().zip(old.hints.iter().zip(new.hints)) {
        if *was == is {
            continue;
        }
        let rule = match (*hint, is == *careful) {
            ("openWorldHint", _) => ToolRule::OpenWorldChanged,
            (_, true) => ToolRule::AnnotationRiskier,
            (_, false) => ToolRule::AnnotationSafer,
        };
        let reason = format!("{hint}: {was} → {is}");
        report.note(
            rule,
            Some(old.name),
            format!("/annotations/{hint}"),
            (json!(was), json!(is)),
            reason,
        );
    }
}

/// Compares a document's annotations other than the hints that clients read.
fn compare_hint_titles(old: &DiffTool<'_>, new: &DiffTool<'_>, report: &mut DiffReport) {
    if old.hint_title != new.hint_title {
        report.note(
            ToolRule::AnnotationOther,
            Some(old.name),
            "/annotations/title",
            (json!(old.hint_title), json!(new.hint_title)),
            "the title among the annotations changed".to_owned(),
        );
    }
}

fn compare_inputs(old: &DiffTool<'_>, new: &DiffTool<'_>, report: &mut DiffReport) {
    match (&old.further, &new.further) {
        // If the schema that calls are checked against stayed the same, the change of the published one is what counts.
        (Some(was), Some(is)) if old.input == new.input && was.published.0 != is.published.0 => {
            report.schemas(
                &was.published.0.value(),
                &is.published.0.value(),
                SchemaSide::Input,
                Some(old.name),
            );
        }
        _ => report.schemas(&old.input, &new.input, SchemaSide::Input, Some(old.name)),
    }
}

fn further(tool: &str, old: &ContractParts<'_>, new: &ContractParts<'_>, report: &mut DiffReport) {
    for (index, (hint, absent, _)) in HINTS.iter().enumerate() {
        let (was, is) = (old.stated[index], new.stated[index]);
        if was != is && was.unwrap_or(*absent) == is.unwrap_or(*absent) {
            let reason = format!(
                "{hint} is {} stated",
                if is.is_some() { "now" } else { "no longer" }
            );
            let path = format!("/annotations/{hint}");
            report.note(
                ToolRule::AnnotationStated,
                Some(tool),
                path,
                (json!(was), json!(is)),
                reason,
            );
        }
    }
    members(
        tool,
        "/annotations",
        old.annotations,
        new.annotations,
        report,
        |_| ToolRule::AnnotationOther,
    );
}

fn members(
    tool: &str,
    place: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    report: &mut DiffReport,
    rule: impl Fn(&str) -> ToolRule,
) {
    let came = new.keys().filter(|name| !old.contains_key(*name));
    for name in old.keys().chain(came) {
        let value = |members: &Map<String, Value>| members.get(name).cloned().unwrap_or_default();
        let (was, is) = (value(old), value(new));
        if was != is {
            let mut path = place.to_owned();
            push_pointer(&mut path, name);
            report.note(
                rule(name),
                Some(tool),
                path,
                (was, is),
                format!("{} changed", name::quoted(name)),
            );
        }
    }
}
