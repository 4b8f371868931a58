//! Reads one tool of a contract, or a bare form.

use serde_json::Value;

use super::{
    bound::FormBound,
    field::{self, FormField},
    keys,
    table::{self, FileProblems, FormTable},
};
use crate::{
    contract::{ApprovalRule, TextMode, ToolVerb},
    name,
};

/// A tool of a contract file, as it is written.
#[derive(Clone, Debug)]
pub struct FormTool {
    /// The name without the contract's prefix.
    pub tool: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub verb: Option<ToolVerb>,
    pub collection: Option<String>,
    /// The fields that the agent sends.
    pub fields: Vec<FormField>,
    /// The fields that the agent neither sees nor sets.
    pub bound: Vec<FormBound>,
    pub order: Option<Vec<String>>,
    pub returns: Option<Vec<String>>,
    /// Columns that an agent can order a list by.
    pub order_by: Option<Vec<String>>,
    /// Columns that an agent can choose for the records of a list.
    pub columns: Option<Vec<String>>,
    /// Whether an agent can ask how many records a list has in total.
    pub with_total: bool,
    /// Relations whose records an agent can request from a lookup.
    pub include: Option<Vec<String>>,
    /// Columns that a summary can group by.
    pub group_by: Option<Vec<String>>,
    /// What a summary can compute: `count`, `sum(total)`.
    pub measures: Option<Vec<String>>,
    pub limits: FormLimits,
    pub say: Option<String>,
    pub text: Option<TextMode>,
    pub operation: Option<String>,
    /// Whether the tool's records are resources too.
    pub resource: bool,
    /// Fields whose arguments the audit may keep in clear.
    pub audit_clear: Vec<String>,
    /// Whether a person approves each call before it runs.
    pub approval: Option<ApprovalRule>,
    pub(crate) place: String,
    /// Whether everything could be read: if not, a missing part has no meaning.
    pub(crate) is_whole: bool,
}

/// The key `limits` of a tool. The rate is calls, and the seconds in which they are counted.
#[derive(Clone, Debug, Default)]
pub struct FormLimits {
    pub rate: Option<(u32, u32)>,
    pub timeout_ms: Option<u64>,
    pub rows_max: Option<u32>,
    /// The records of one page where an agent names no number.
    pub rows_default: Option<u32>,
}

/// The words of `verb`.
pub const VERBS: &[&str] = &[
    "lookup",
    "list",
    "count",
    "summarize",
    "create",
    "update",
    "delete",
    "call",
];
pub(super) const APPROVAL_RULES: &[&str] = &["required"];
pub(super) const TEXT_MODES: &[&str] = &["sentence", "json", "both"];
/// The maximum number of rows on one page, whatever a contract sets.
pub(super) const ROWS_MAX: u64 = 10_000;
/// A call longer than this is a job, not a call.
pub(super) const TIMEOUT_MAX_MS: u64 = 600_000;

/// Reads a form on its own: it compiles, but is bound to nothing.
pub(super) fn read_bare(
    value: &Value,
    place: String,
    problems: &mut FileProblems,
) -> Option<FormTool> {
    const BOUND: &[&str] = &[
        "verb",
        "collection",
        "order",
        "order_by",
        "columns",
        "with_total",
        "returns",
        "include",
        "group_by",
        "measures",
        "limits",
        "say",
        "text",
        "operation",
        "resource",
        "audit",
        "approval",
        "collections",
        "prefix",
    ];
    let table = FormTable::new(value, place, problems)?;
    let mut known = keys::BARE_FORM.to_vec();
    for key in BOUND.iter().filter(|key| table.has(key)) {
        problems.add_hint(
            table.at(key),
            format!("'{key}' belongs to a contract, not to a bare form"),
            "start the file with `contract: NAME` and put the form under `tools:`",
        );
        known.push(key);
    }
    table.check_keys(&known, problems);
    Some(common(&table, problems))
}

pub(super) fn read(value: &Value, place: String, problems: &mut FileProblems) -> Option<FormTool> {
    let before = problems.len();
    let table = FormTable::new(value, place, problems)?;
    table.check_known(keys::TOOL, problems);
    let verb = verb(&table, problems);
    let collection = table.required_text("collection", problems);
    let tool = common(&table, problems);
    Some(FormTool {
        verb,
        collection,
        order: table.names("order", problems),
        order_by: table.names("order_by", problems),
        columns: table.names("columns", problems),
        with_total: table.flag("with_total", problems).unwrap_or(false),
        returns: table.names("returns", problems),
        include: table.names("include", problems),
        group_by: table.names("group_by", problems),
        measures: table.names("measures", problems),
        limits: limits(
            &table,
            &keys::names(keys::LIMITS).collect::<Vec<_>>(),
            problems,
        ),
        say: table.text("say", table::TEXT_MAX, problems),
        text: text_mode(&table, problems),
        operation: table.text("operation", table::TITLE_MAX, problems),
        resource: table.flag("resource", problems).unwrap_or(false),
        audit_clear: audit_clear(&table, problems),
        approval: approval(&table, problems),
        is_whole: problems.len() == before,
        ..tool
    })
}

/// Reads what a bare form and a tool of a contract have in common.
fn common(table: &FormTable<'_>, problems: &mut FileProblems) -> FormTool {
    let before = problems.len();
    let tool = table.required_text("tool", problems).unwrap_or_default();
    let (fields, bound) = match table.list("fields", problems) {
        Some(values) => field::read_all(values, &table.at("fields"), problems),
        None => {
            if !table.has("fields") {
                problems.add_hint(
                    table.at("fields"),
                    "'fields' is missing",
                    "a tool without input says `fields: []`",
                );
            }
            (Vec::new(), Vec::new())
        }
    };
    FormTool {
        tool,
        title: table.text("title", table::TITLE_MAX, problems),
        description: table.text("description", table::TEXT_MAX, problems),
        verb: None,
        collection: None,
        fields,
        bound,
        order: None,
        order_by: None,
        columns: None,
        with_total: false,
        returns: None,
        include: None,
        group_by: None,
        measures: None,
        limits: FormLimits::default(),
        say: None,
        text: None,
        operation: None,
        resource: false,
        audit_clear: Vec::new(),
        approval: None,
        place: table.place().to_owned(),
        is_whole: problems.len() == before,
    }
}

fn verb(table: &FormTable<'_>, problems: &mut FileProblems) -> Option<ToolVerb> {
    let word = table.required_text("verb", problems)?;
    let verb = ToolVerb::from_word(&word);
    if verb.is_none() {
        let hint = match name::nearest(&word, VERBS.iter().copied()) {
            Some(near) => format!("did you mean '{near}'? verbs: {}", VERBS.join(", ")),
            None => format!("verbs: {}", VERBS.join(", ")),
        };
        problems.add_hint(
            table.at("verb"),
            format!("unknown verb {}", name::quoted(&word)),
            hint,
        );
    }
    verb
}

fn text_mode(table: &FormTable<'_>, problems: &mut FileProblems) -> Option<TextMode> {
    let mode = match table.text("text", table::TITLE_MAX, problems)?.as_str() {
        "sentence" => TextMode::Sentence,
        "json" => TextMode::Json,
        "both" => TextMode::Both,
        _ => {
            problems.add_hint(
                table.at("text"),
                "is not a text mode",
                "use sentence, json or both",
            );
            return None;
        }
    };
    Some(mode)
}

/// Reads `approval: required`.
pub(crate) fn approval(table: &FormTable<'_>, problems: &mut FileProblems) -> Option<ApprovalRule> {
    let word = table.get("approval")?;
    if word != "required" {
        problems.add_hint(
            table.at("approval"),
            "is not a rule for approvals",
            "write `approval: required`, or leave it out",
        );
        return None;
    }
    Some(ApprovalRule::Required)
}

/// Reads `limits: { rate, timeout_ms, … }`, with only these members.
pub(crate) fn limits(
    table: &FormTable<'_>,
    known: &[&str],
    problems: &mut FileProblems,
) -> FormLimits {
    let Some(value) = table.get("limits") else {
        return FormLimits::default();
    };
    let Some(limits) = FormTable::new(value, table.at("limits"), problems) else {
        return FormLimits::default();
    };
    limits.check_keys(known, problems);
    let rate = limits.text("rate", 32, problems).and_then(|text| {
        let rate = rate(&text);
        if rate.is_none() {
            let hint = "write calls per time: 10/s, 60/min, 1000/hour or 5000/day";
            problems.add_hint(
                limits.at("rate"),
                format!("{} is not a rate", name::quoted(&text)),
                hint,
            );
        }
        rate
    });
    let mut rows = |key| {
        limits
            .count(key, 1..=ROWS_MAX, problems)
            .and_then(|rows| u32::try_from(rows).ok())
    };
    let (rows_max, rows_default) = (rows("rows_max"), rows("rows_default"));
    FormLimits {
        rate,
        timeout_ms: limits.count("timeout_ms", 1..=TIMEOUT_MAX_MS, problems),
        rows_max,
        rows_default,
    }
}

/// Reads `audit: { clear: [field] }`.
pub(crate) fn audit_clear(table: &FormTable<'_>, problems: &mut FileProblems) -> Vec<String> {
    let Some(audit) = table
        .get("audit")
        .and_then(|value| FormTable::new(value, table.at("audit"), problems))
    else {
        return Vec::new();
    };
    audit.check_known(keys::AUDIT, problems);
    audit.names("clear", problems).unwrap_or_default()
}

/// Returns the calls and the seconds they are counted over: `60/min` is (60, 60).
pub fn rate(text: &str) -> Option<(u32, u32)> {
    let (count, unit) = text.split_once('/')?;
    let count: u32 = count
        .trim()
        .parse()
        .ok()
        .filter(|count| (1..=1_000_000).contains(count))?;
    let seconds = match unit.trim() {
        "s" | "sec" | "second" => 1,
        "m" | "min" | "minute" => 60,
        "h" | "hour" => 3_600,
        "d" | "day" => 86_400,
        _ => return None,
    };
    Some((count, seconds))
}
