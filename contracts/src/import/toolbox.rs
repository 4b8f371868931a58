//! Converts the configuration of MCP Toolbox for Databases to a contract over the `sql` adapter, as far as its tools
//! have their own statements. Other tools are reported with their place.

mod statement;
mod toml;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt::Write as _,
};

use serde_json::{Map, Value};
use weir_statements::SqlSyntax;

use super::{ImportRemark, ImportedContract};
use crate::{
    compile,
    draft::yaml::{flow, scalar},
    form, json, name,
    problem::FileProblem,
    shape::{
        CollectionShape, OperationEffect, OperationParam, ShapeCapabilities, ShapeField,
        ShapeOperation, ValueType,
    },
};

use statement::TranslatedStatement;

/// Tools of one configuration that are looked at.
const TOOLS_MAX: usize = 2_000;
const ROUNDS_MAX: usize = 20;
/// Arguments that every list has.
const OWN: [&str; 2] = ["limit", "cursor"];

/// A database of the configuration that is taken.
struct ToolboxSource<'a> {
    name: String,
    syntax: SqlSyntax,
    settings: &'a Map<String, Value>,
}

/// A tool with its statement.
struct ToolboxTool {
    name: String,
    description: String,
    /// The place in `sources`.
    source: usize,
    statement: TranslatedStatement,
    place: String,
}

/// Reads a `tools.yaml` of Toolbox. `file` is the name shown in problems.
pub fn toolbox(
    file: &str,
    text: &str,
    wanted: Option<&str>,
) -> Result<ImportedContract, Vec<FileProblem>> {
    let parts = parts(file, text)?;
    let contract = wanted.unwrap_or("toolbox");
    name::check_contract(contract)
        .map_err(|why| vec![FileProblem::new(file, "", why).hint("name it with --name")])?;
    let mut remarks: Vec<ImportRemark> = parts.others.iter().map(|name| other(name)).collect();
    let sources = sources(&parts, &mut remarks);
    let mut tools = tools(&parts, &sources, &mut remarks);
    for _ in 0..ROUNDS_MAX {
        if tools.is_empty() {
            let why = "no tool could be imported, so there is no contract";
            let problems = remarks.iter().map(|remark| remark.problem(file));
            return Err(problems
                .chain([FileProblem::new(file, "/tools", why)])
                .collect());
        }
        let text = written(contract, &sources, &tools);
        let refused = refused(&text, &tools)?;
        if refused.is_empty() {
            let toolsets = toolsets(&parts, &tools, &mut remarks);
            return Ok(ImportedContract {
                contract: text,
                connection: toml::settings(&sources, &tools, &toolsets, &mut remarks),
                tools: tools.len(),
                remarks,
            });
        }
        for (index, message) in refused.iter().rev() {
            let tool = tools.remove(*index);
            let reason = "contract";
            remarks.push(left_out(&tool.place, &tool.name, reason, message));
        }
    }
    let why = "the contract does not compile, however much is left out";
    let hint = "take tools away from it, and write those by hand";
    Err(vec![FileProblem::new(file, "", why).hint(hint)])
}

/// The sections of a configuration: in one document by their names, or a document for each part.
struct ToolboxSections {
    sources: Map<String, Value>,
    tools: Map<String, Value>,
    toolsets: Map<String, Value>,
    /// The names of other sections, or the kinds of other parts.
    others: BTreeSet<String>,
}

fn parts(file: &str, text: &str) -> Result<ToolboxSections, Vec<FileProblem>> {
    let mut parts = ToolboxSections {
        sources: Map::new(),
        tools: Map::new(),
        toolsets: Map::new(),
        others: BTreeSet::new(),
    };
    for document in documents(text) {
        let root = form::text::read_any_numbers(file, &document)?;
        let Some(root) = root.as_object() else {
            continue;
        };
        let sections = [
            ("sources", "source", &mut parts.sources),
            ("tools", "tool", &mut parts.tools),
            ("toolsets", "toolset", &mut parts.toolsets),
        ];
        let kind = root.get("kind").and_then(Value::as_str);
        match kind.filter(|_| root.contains_key("name")) {
            Some(kind) if !sections.iter().any(|(_, known, _)| *known == kind) => {
                parts.others.insert(kind.to_owned());
            }
            Some(_) => {}
            None => {
                let others = root.keys();
                let others =
                    others.filter(|name| !sections.iter().any(|(known, ..)| known == name));
                parts.others.extend(others.cloned());
            }
        }
        for (section, kind, found) in sections {
            if let Some(members) = root.get(section).and_then(Value::as_object) {
                found.extend(members.clone());
            }
            let is_one = root.get("kind").and_then(Value::as_str) == Some(kind);
            if let Some(name) = root.get("name").and_then(Value::as_str).filter(|_| is_one) {
                let mut part = root.clone();
                // What the older form calls the kind of a part is its type here.
                let word = part.get("type").cloned().unwrap_or_default();
                part.insert("kind".to_owned(), word);
                let part = match part.get("tools") {
                    Some(tools) if kind == "toolset" => tools.clone(),
                    _ => Value::Object(part),
                };
                found.insert(name.to_owned(), part);
            }
        }
    }
    if parts.tools.is_empty() {
        let why = "there are no tools in it: it is not a configuration of Toolbox";
        let hint = "name a file with `tools:` of the kind postgres-sql, sqlite-sql or mysql-sql";
        return Err(vec![FileProblem::new(file, "/tools", why).hint(hint)]);
    }
    Ok(parts)
}

/// Cuts a file into its documents. Lines of dashes inside a block of text are indented.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        match line.trim_end() == "---" {
            true => documents.push(String::new()),
            false => {
                let last = documents.last_mut().expect("there is one");
                let _ = writeln!(last, "{line}");
            }
        }
    }
    let has_words = |document: &String| {
        document
            .lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    };
    documents.retain(has_words);
    documents
}

fn sources<'a>(
    parts: &'a ToolboxSections,
    remarks: &mut Vec<ImportRemark>,
) -> Vec<ToolboxSource<'a>> {
    let mut sources = Vec::new();
    for (name, given) in &parts.sources {
        let place = pointer("sources", name);
        let kind = given
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let syntax = match kind {
            "postgres" => SqlSyntax::Postgresql,
            "sqlite" => SqlSyntax::Sqlite,
            "mysql" => SqlSyntax::Mysql,
            _ => {
                let message = format!(
                    "a source of the kind {} is not reached; postgres, sqlite and mysql are",
                    name::quoted(kind)
                );
                remarks.push(left_out(&place, name, "source", &message));
                continue;
            }
        };
        let Some(settings) = given.as_object() else {
            continue;
        };
        sources.push(ToolboxSource {
            name: plain(name),
            syntax,
            settings,
        });
    }
    sources
}

fn tools(
    parts: &ToolboxSections,
    sources: &[ToolboxSource<'_>],
    remarks: &mut Vec<ImportRemark>,
) -> Vec<ToolboxTool> {
    let mut tools = Vec::new();
    for (name, given) in &parts.tools {
        let place = pointer("tools", name);
        if tools.len() >= TOOLS_MAX {
            let message = format!("only the first {TOOLS_MAX} tools are looked at");
            remarks.push(left_out(&place, name, "tool", &message));
            continue;
        }
        match tool(name, given, sources, &place, remarks) {
            Ok(tool) => tools.push(tool),
            Err((reason, message)) => remarks.push(left_out(&place, name, reason, &message)),
        }
    }
    tools
}

fn tool(
    name: &str,
    given: &Value,
    sources: &[ToolboxSource<'_>],
    place: &str,
    remarks: &mut Vec<ImportRemark>,
) -> Result<ToolboxTool, (&'static str, String)> {
    let word = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
    let wanted = plain(word("source"));
    let source = sources
        .iter()
        .position(|source| source.name == wanted && !word("source").is_empty());
    let Some(source) = source else {
        return Err((
            "source",
            format!(
                "its source {} is not taken; name one under `sources` that is",
                name::quoted(word("source"))
            ),
        ));
    };
    let syntax = sources[source].syntax;
    let kind = match syntax {
        SqlSyntax::Postgresql => "postgres-sql",
        SqlSyntax::Sqlite => "sqlite-sql",
        SqlSyntax::Mysql => "mysql-sql",
    };
    if word("kind") != kind {
        return Err((
            "tool",
            format!(
                "a tool of the kind {} has no statement of its own; one of the kind {kind} has",
                name::quoted(word("kind"))
            ),
        ));
    }
    if given
        .get("templateParameters")
        .is_some_and(|given| given.as_array().is_none_or(|given| !given.is_empty()))
    {
        return Err((
            "template",
            "templateParameters become text of the statement, and nothing that an agent sends does; write a tool for each text"
                .to_owned(),
        ));
    }
    if given.get("authRequired").is_some() {
        let message = "authRequired is not carried over: a key's grants say who may call";
        remarks.push(note(place, name, "authorization", message));
    }
    let statement = statement::translate(given, syntax, place, name, remarks)?;
    Ok(ToolboxTool {
        name: name.to_owned(),
        description: word("description").to_owned(),
        source,
        statement,
        place: place.to_owned(),
    })
}

/// Writes the contract: a collection and a tool for each of Toolbox's tools.
fn written(contract: &str, sources: &[ToolboxSource<'_>], tools: &[ToolboxTool]) -> String {
    let mut text = format!("contract: {}\ncollections:\n", scalar(contract));
    for tool in tools {
        let statement = &tool.statement;
        let _ = writeln!(text, "  {}:", scalar(&collection(tool)));
        let _ = writeln!(text, "    adapter: sql");
        if statement.writes {
            let _ = writeln!(text, "    write: true");
        }
        let connection = scalar(&sources[tool.source].name);
        let _ = writeln!(text, "    settings:\n      connection: {connection}");
        let key = if statement.writes {
            "statement"
        } else {
            "query"
        };
        let body = crate::draft::block(&statement.text);
        let _ = write!(text, "      {key}: {body}");
        if !statement.params.is_empty() || !statement.writes {
            let declared = crate::draft::declared(&statement.params);
            let _ = write!(text, "{declared}");
        }
    }
    text.push_str("tools:\n");
    for tool in tools {
        let _ = writeln!(text, "  - tool: {}", scalar(&tool.name));
        if !tool.description.trim().is_empty() {
            let _ = writeln!(text, "    description: {}", scalar(tool.description.trim()));
        }
        let _ = match tool.statement.writes {
            true => writeln!(text, "    verb: call\n    operation: run"),
            false => writeln!(text, "    verb: list"),
        };
        let _ = writeln!(text, "    collection: {}", scalar(&collection(tool)));
        let fields = &tool.statement.fields;
        let _ = match fields.is_empty() {
            true => writeln!(text, "    fields: []"),
            false => writeln!(text, "    fields:"),
        };
        for field in fields {
            let _ = writeln!(text, "      - {}", flow(field));
        }
    }
    text
}

/// Returns the name of a tool's collection.
fn collection(tool: &ToolboxTool) -> String {
    plain(&tool.name)
}

/// Returns the tools that the compiler refuses, by their index.
fn refused(text: &str, tools: &[ToolboxTool]) -> Result<BTreeMap<usize, String>, Vec<FileProblem>> {
    let source = form::read("the imported contract", text)?;
    let shapes = tools.iter().map(|tool| (collection(tool), shape(tool)));
    let mut found = BTreeMap::new();
    if let Err(problems) = compile(&source, &shapes.collect()) {
        for problem in &problems {
            let index = problem
                .place
                .strip_prefix("/tools/")
                .and_then(|rest| rest.split('/').next()?.parse().ok());
            match index {
                Some(index) => found
                    .entry(index)
                    .or_insert_with(|| problem.message.clone()),
                None => return Err(problems),
            };
        }
    }
    Ok(found)
}

/// Returns a shape like the one that the adapter will describe. Its columns are unknown here.
fn shape(tool: &ToolboxTool) -> CollectionShape {
    let params: Vec<OperationParam> = tool.statement.params.clone();
    let mut capabilities = ShapeCapabilities {
        read: !tool.statement.writes,
        ..ShapeCapabilities::default()
    };
    match tool.statement.writes {
        true => {
            capabilities.operations = vec![ShapeOperation {
                name: "run".to_owned(),
                effect: OperationEffect::Destructive,
                params,
                returns: vec![ShapeField::new("rows", ValueType::Integer)],
            }]
        }
        false => capabilities.params = params,
    }
    let fields = vec![ShapeField::new("column", ValueType::String)];
    CollectionShape::new("query", fields, capabilities)
}

/// Returns the toolsets with the tools that were taken.
fn toolsets(
    parts: &ToolboxSections,
    tools: &[ToolboxTool],
    remarks: &mut Vec<ImportRemark>,
) -> Vec<(String, Vec<String>)> {
    let taken: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut toolsets = Vec::new();
    for (name, given) in &parts.toolsets {
        let names = given.as_array().map(Vec::as_slice).unwrap_or_default();
        let names = names.iter().filter_map(Value::as_str);
        let (found, missing): (Vec<&str>, Vec<&str>) = names.partition(|name| taken.contains(name));
        if !missing.is_empty() {
            let message = format!("the view lacks {}, which are left out", missing.join(", "));
            remarks.push(note(&pointer("toolsets", name), name, "toolset", &message));
        }
        if !found.is_empty() {
            let found = found.into_iter().map(str::to_owned).collect();
            toolsets.push((plain(name), found));
        }
    }
    toolsets
}

/// Returns a name of letters, digits, `-` and `_`, as collections, connections and views have.
fn plain(name: &str) -> String {
    let is_plain = |next: char| next.is_ascii_alphanumeric() || matches!(next, '-' | '_');
    let made: String = name
        .chars()
        .map(|next| if is_plain(next) { next } else { '-' })
        .take(64)
        .collect();
    match made.is_empty() {
        true => "unnamed".to_owned(),
        false => made,
    }
}

fn pointer(section: &str, name: &str) -> String {
    let mut place = format!("/{section}");
    json::push_pointer(&mut place, name);
    place
}

/// Reports a section, or the parts of a kind, that no contract has.
fn other(section: &str) -> ImportRemark {
    let message = format!("{} are not imported", name::quoted(section));
    let mut place = String::new();
    json::push_pointer(&mut place, section);
    left_out(&place, section, "section", &message)
}

fn left_out(place: &str, name: &str, reason: &'static str, message: &str) -> ImportRemark {
    ImportRemark {
        left_out: true,
        place: place.to_owned(),
        operation: name.to_owned(),
        reason,
        message: message.to_owned(),
    }
}

fn note(place: &str, name: &str, reason: &'static str, message: &str) -> ImportRemark {
    ImportRemark {
        left_out: false,
        ..left_out(place, name, reason, message)
    }
}
