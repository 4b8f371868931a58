//! Reads a contract file: JSON or YAML, a contract, a bare form or a list of forms.
//!
//! The result is typed and bounded, and every part has its place in the file; `compile` decides whether names, types
//! and bindings make sense.

mod bound;
mod collection;
mod field;
pub mod keys;
mod relation;
pub(crate) mod table;
pub(crate) mod text;
mod tool;

use serde_json::Value;

use crate::problem::FileProblem;

pub use crate::shape::ColumnOverride;
pub use bound::FormBound;
pub use collection::FormCollection;
pub(crate) use field::FIELDS_MAX;
pub use field::{FieldChoice, FieldType, FormField, TYPES};
pub use relation::FormRelation;
pub use tool::{FormLimits, FormTool, VERBS, rate};

pub(crate) use table::{FileProblems, FormTable};
pub(crate) use tool::{approval, audit_clear, limits};

/// Largest file, in bytes.
pub const FILE_BYTES_MAX: usize = 16 << 20;
const TOOLS_MAX: usize = 20_000;
const COLLECTIONS_MAX: usize = 500;

/// A file that was read and whose structure is right; names, types and bindings are checked by `compile`.
#[derive(Clone, Debug)]
pub struct ContractSource {
    pub file: String,
    /// Absent for a bare form or a list of forms.
    pub contract: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub instructions: Option<String>,
    pub prefix: Option<String>,
    pub collections: Vec<FormCollection>,
    pub tools: Vec<FormTool>,
    /// The faults of the structure; `compile` reports them together with everything else.
    pub(crate) problems: FileProblems,
}

/// Reads `text`; `file` is the name shown in problems. JSON when it starts with `{` or `[`, else YAML. Only files
/// without a contract, form or list of forms are refused here; all other problems come from `compile`, so that
/// they are reported together.
pub fn read(file: &str, text: &str) -> Result<ContractSource, Vec<FileProblem>> {
    let (value, faults) = text::read(file, text)?;
    let mut problems = FileProblems::continued(file, faults);
    let source = source(file, &value, &mut problems);
    if source.tools.is_empty() && source.collections.is_empty() {
        return problems.finish(source);
    }
    Ok(ContractSource { problems, ..source })
}

fn source(file: &str, value: &Value, problems: &mut FileProblems) -> ContractSource {
    let bare = |tools| ContractSource {
        file: file.to_owned(),
        contract: None,
        title: None,
        description: None,
        instructions: None,
        prefix: None,
        collections: Vec::new(),
        tools,
        problems: FileProblems::continued(file, Vec::new()),
    };
    match value {
        Value::Array(forms) => {
            if forms.is_empty() {
                let hint = "add a form: `{ tool: NAME, fields: [] }`";
                problems.add_hint("", "the list of forms is empty", hint);
            }
            let forms = problems.bounded("", forms, TOOLS_MAX, "forms");
            let read = |(index, form): (usize, &Value)| {
                tool::read_bare(form, format!("/{index}"), problems)
            };
            let tools = forms.iter().enumerate().filter_map(read).collect();
            bare(tools)
        }
        Value::Object(map) if map.contains_key("contract") => contract(file, value, problems),
        Value::Object(map) if map.contains_key("tool") || !map.contains_key("tools") => bare(
            tool::read_bare(value, String::new(), problems)
                .into_iter()
                .collect(),
        ),
        Value::Object(_) => {
            problems.add_hint(
                "",
                "the file has tools, but no contract name",
                "add `contract: NAME` at the top",
            );
            bare(Vec::new())
        }
        _ => {
            problems.add_hint(
                "",
                "the file is neither a contract, a form nor a list of forms",
                "start with `contract: NAME`, or with `tool: NAME` and `fields:`",
            );
            bare(Vec::new())
        }
    }
}

fn contract(file: &str, value: &Value, problems: &mut FileProblems) -> ContractSource {
    let table = FormTable::new(value, String::new(), problems).expect("the caller saw an object");
    table.check_known(keys::CONTRACT, problems);
    let mut collections = Vec::new();
    if let Some(entries) = table.object("collections", problems) {
        if entries.len() > COLLECTIONS_MAX {
            problems.add_hint(
                "/collections",
                format!("more than {COLLECTIONS_MAX} collections"),
                "write several contracts",
            );
        }
        for (name, entry) in entries.iter().take(COLLECTIONS_MAX) {
            collections.extend(collection::read(
                name,
                entry,
                table.at("collections"),
                problems,
            ));
        }
    }
    let mut tools = Vec::new();
    match table.list("tools", problems) {
        Some(entries) => {
            if entries.is_empty() {
                let hint =
                    "add a tool: `- { tool: NAME, verb: list, collection: NAME, fields: [] }`";
                problems.add_hint("/tools", "the contract has no tools", hint);
            }
            for (index, entry) in problems
                .bounded("/tools", entries, TOOLS_MAX, "tools")
                .iter()
                .enumerate()
            {
                tools.extend(tool::read(entry, format!("/tools/{index}"), problems));
            }
        }
        None if !table.has("tools") => {
            problems.add_hint("", "the contract has no tools", "add `tools:`")
        }
        None => {}
    }
    ContractSource {
        file: file.to_owned(),
        contract: Some(table.text("contract", 200, problems).unwrap_or_default()),
        title: table.text("title", table::TITLE_MAX, problems),
        description: table.text("description", table::TEXT_MAX, problems),
        instructions: table.text("instructions", table::TEXT_MAX, problems),
        prefix: table.text("prefix", 200, problems),
        collections,
        tools,
        problems: FileProblems::continued(file, Vec::new()),
    }
}
