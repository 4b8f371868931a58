//! Reads an operator's settings for an upstream's offer: the items to publish, and their changes.
//!
//! ```yaml
//! contract: github
//! upstream: github
//! prefix: gh
//! take: ["*"]
//! leave: ["delete_*"]
//! tools:
//!   - from: create_issue
//!     tool: open_issue
//!     description: Opens an issue.
//!     set: { owner: acme }
//!     limits: { rate: 30/min, timeout_ms: 10000 }
//!     output: drop
//!     approval: required
//! ```

use serde_json::{Map, Value};

use crate::{
    FileProblem,
    contract::{ApprovalRule, CallLimits},
    form::{FileProblems, FormTable, approval, audit_clear, limits, table, text},
    name,
    offer::{DESCRIPTION_MAX, TITLE_MAX},
};

/// Tools of one overlay.
const TOOLS_MAX: usize = 10_000;
const PATTERN_MAX: usize = 200;
const SET_MAX: usize = 100;

/// A file that was read, with every part within its bounds.
#[derive(Clone, Debug)]
pub struct UpstreamOverlay {
    /// The file, as problems name it.
    pub file: String,
    pub contract: String,
    /// The upstream that it is for.
    pub upstream: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// Instructions that replace the server's.
    pub instructions: Option<String>,
    pub prefix: Option<String>,
    /// Patterns of names: `*` matches any characters, `?` one.
    pub take: Vec<String>,
    pub leave: Vec<String>,
    pub tools: Vec<ToolOverlay>,
}

/// The overlay's words about one tool of the offer.
#[derive(Clone, Debug)]
pub struct ToolOverlay {
    /// The tool's name at its server.
    pub from: String,
    /// The name that it is published under, without the prefix.
    pub tool: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    /// Arguments that every call carries and no agent sees or sets.
    pub set: Map<String, Value>,
    pub limits: CallLimits,
    /// The output schema is neither published nor asked for.
    pub drops_output: bool,
    /// Arguments that the audit may keep in clear.
    pub clear: Vec<String>,
    /// Whether a person approves each call.
    pub approval: Option<ApprovalRule>,
    pub(super) place: String,
}

impl UpstreamOverlay {
    /// Reads YAML or JSON, strictly; `file` is the name shown in problems. All problems at once.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<FileProblem>> {
        let (value, faults) = text::read(file, text)?;
        let mut problems = FileProblems::continued(file, faults);
        match FormTable::new(&value, String::new(), &mut problems) {
            None => Err(problems.into_vec()),
            Some(table) => {
                let overlay = overlay(file, &table, &mut problems);
                problems.finish(overlay)
            }
        }
    }

    /// Returns `true` if nothing is left out.
    pub fn takes_all(&self) -> bool {
        self.leave.is_empty() && self.take.iter().any(|pattern| pattern == "*")
    }

    /// Returns `true` if an item of that name is taken.
    pub(super) fn takes(&self, item: &str) -> bool {
        let is_meant =
            |patterns: &[String]| patterns.iter().any(|pattern| name::matches(pattern, item));
        is_meant(&self.take) && !is_meant(&self.leave)
    }
}

fn overlay(file: &str, table: &FormTable<'_>, problems: &mut FileProblems) -> UpstreamOverlay {
    const KEYS: &[&str] = &[
        "contract",
        "upstream",
        "title",
        "description",
        "instructions",
        "prefix",
        "take",
        "leave",
        "tools",
    ];
    if table.has("plugin") {
        let hint =
            "`[plugins.NAME]` in the configuration has `prefix`, `tools`, `limits` and `audit`";
        problems.add_hint(
            "/plugin",
            "an overlay is for an upstream server, not for a plugin",
            hint,
        );
    }
    let known: Vec<&str> = KEYS
        .iter()
        .copied()
        .chain(table.has("plugin").then_some("plugin"))
        .collect();
    table.check_keys(&known, problems);
    let contract = table
        .required_text("contract", problems)
        .unwrap_or_default();
    if !contract.is_empty()
        && let Err(message) = name::check_contract(&contract)
    {
        problems.add_hint("/contract", message, "write one such as `support-desk`");
    }
    let upstream = match table.has("plugin") {
        true => String::new(),
        false => table
            .required_text("upstream", problems)
            .unwrap_or_default(),
    };
    let prefix = table.text("prefix", table::TITLE_MAX, problems);
    if let Some(prefix) = prefix.as_ref().filter(|prefix| !prefix.is_empty())
        && !name::is_tool(prefix)
    {
        problems.add_hint(
            "/prefix",
            "the prefix is not made of A-Z, a-z, 0-9, '_' and '-'",
            "write one such as `sup`, or leave it out",
        );
    }
    UpstreamOverlay {
        file: file.to_owned(),
        contract,
        upstream,
        title: table.text("title", TITLE_MAX, problems),
        description: table.text("description", table::TEXT_MAX, problems),
        instructions: table.text("instructions", table::TEXT_MAX, problems),
        prefix,
        take: patterns(table, "take", problems).unwrap_or_else(|| vec!["*".to_owned()]),
        leave: patterns(table, "leave", problems).unwrap_or_default(),
        tools: tools(table, problems),
    }
}

fn patterns(table: &FormTable<'_>, key: &str, problems: &mut FileProblems) -> Option<Vec<String>> {
    let patterns = table.names(key, problems)?;
    for (index, pattern) in patterns.iter().enumerate() {
        if pattern.is_empty() || pattern.len() > PATTERN_MAX {
            let message = format!("a pattern has 1 to {PATTERN_MAX} characters");
            let hint = "write one such as `delete_*`";
            problems.add_hint(format!("{}/{index}", table.at(key)), message, hint);
        }
    }
    Some(patterns)
}

fn tools(table: &FormTable<'_>, problems: &mut FileProblems) -> Vec<ToolOverlay> {
    let Some(entries) = table.list("tools", problems) else {
        return Vec::new();
    };
    let entries = problems.bounded("/tools", entries, TOOLS_MAX, "tools");
    let mut tools: Vec<ToolOverlay> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let place = format!("/tools/{index}");
        let Some(tool) =
            FormTable::new(entry, place.clone(), problems).map(|entry| tool(&entry, problems))
        else {
            continue;
        };
        if !tool.from.is_empty() && tools.iter().any(|other| other.from == tool.from) {
            let message = format!("the tool {} is there twice", name::quoted(&tool.from));
            problems.add_hint(
                format!("{place}/from"),
                message,
                "say everything about it in one entry",
            );
        }
        tools.push(tool);
    }
    tools
}

fn tool(table: &FormTable<'_>, problems: &mut FileProblems) -> ToolOverlay {
    const KEYS: &[&str] = &[
        "from",
        "tool",
        "title",
        "description",
        "set",
        "limits",
        "output",
        "audit",
        "approval",
    ];
    table.check_keys(KEYS, problems);
    let from = table.required_text("from", problems).unwrap_or_default();
    let tool = table.text("tool", table::TITLE_MAX, problems);
    if let Some(Err(message)) = tool.as_deref().map(name::check_tool) {
        let hint = "write a name of at most 64 such characters, such as `find_order`";
        problems.add_hint(table.at("tool"), message, hint);
    }
    let set = table.object("set", problems).cloned().unwrap_or_default();
    if set.len() > SET_MAX {
        let message = format!("more than {SET_MAX} arguments");
        problems.add_hint(
            table.at("set"),
            message,
            "keep those that no agent may choose",
        );
    }
    ToolOverlay {
        from,
        tool,
        title: table.text("title", TITLE_MAX, problems),
        description: table.text("description", DESCRIPTION_MAX, problems),
        set,
        limits: {
            let limits = limits(table, &["rate", "timeout_ms"], problems);
            CallLimits {
                rate: limits.rate,
                timeout_ms: limits.timeout_ms,
            }
        },
        drops_output: drops_output(table, problems),
        clear: audit_clear(table, problems),
        approval: approval(table, problems),
        place: table.place().to_owned(),
    }
}

fn drops_output(table: &FormTable<'_>, problems: &mut FileProblems) -> bool {
    let Some(word) = table.get("output") else {
        return false;
    };
    if word != "drop" {
        let shown = match word.as_str() {
            Some(text) => name::quoted(text),
            None => name::quoted(&word.to_string()),
        };
        let message = format!("{shown} is nothing that can be done with an output schema");
        let hint = "write `output: drop`, or nothing";
        problems.add_hint(table.at("output"), message, hint);
    }
    word == "drop"
}
