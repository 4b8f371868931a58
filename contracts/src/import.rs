//! The document of an HTTP API becomes a contract over the `rest` adapter, operation by operation.
//!
//! The document is untrusted: its size is bounded, and no reference to another document is fetched. Parts that cannot be
//! imported are reported with their place and the reason. The result was compiled and linted; a tool that does not pass is
//! left out and reported too.

mod answer;
mod body;
mod contradiction;
mod discriminator;
mod document;
mod field;
mod operation;
mod pages;
mod schema;
mod security;
mod text;
mod toolbox;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    compile, form,
    lint::{self, LintLevel},
    name,
    problem::FileProblem,
    shape::{CollectionShape, ShapeCapabilities},
};

pub use toolbox::toolbox;

use document::ImportDocument;
use operation::ImportedOperation;

/// Operations of one document that are looked at.
const OPERATIONS_MAX: usize = 5_000;
/// Rounds of compiling until the rest passes.
const ROUNDS_MAX: usize = 20;

/// The parts of a document that are to be imported.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportOptions<'a> {
    /// The contract's name; derived from the document's title if absent.
    pub name: Option<&'a str>,
    /// Patterns, one of which an operation must match: its tool, its id, its path, `METHOD /path`, or a tag.
    pub only: &'a [String],
    /// The address that the document was fetched from; servers may be relative to it.
    pub url: Option<&'a str>,
}

/// The result of an import.
#[derive(Clone, Debug)]
pub struct ImportedContract {
    /// YAML.
    pub contract: String,
    /// `[connections.NAME]` for weir.toml, with references in place of secrets.
    pub connection: String,
    pub tools: usize,
    pub remarks: Vec<ImportRemark>,
}

/// Something that was not imported as it is in the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRemark {
    /// The whole operation has no tool; else a part of it was changed or dropped.
    pub left_out: bool,
    /// JSON Pointer in the document.
    pub place: String,
    /// `GET /pets`, or empty for the document as a whole.
    pub operation: String,
    /// The kind of it, to count by.
    pub reason: &'static str,
    pub message: String,
}

/// Reads an OpenAPI 3.0 or 3.1 document, JSON or YAML. `file` is the name shown in problems.
pub fn openapi(
    file: &str,
    text: &str,
    wanted: &ImportOptions<'_>,
) -> Result<ImportedContract, Vec<FileProblem>> {
    let document = ImportDocument::read(file, text)?;
    let mut remarks = document.remarks();
    let contract = match wanted.name {
        Some(name) => name.to_owned(),
        None => text::contract_name(document.title()),
    };
    name::check_contract(&contract).map_err(|why| {
        vec![FileProblem::new(file, "/info/title", why).hint("name it with --name")]
    })?;
    let base = security::base(&document, wanted.url, &mut remarks);
    let access = security::choose(&document, &mut remarks);
    let mut operations = operation::all(&document, wanted, &contract, &access, &mut remarks);
    let head = write::ImportHead {
        name: &contract,
        document: &document,
    };
    for _ in 0..ROUNDS_MAX {
        if operations.is_empty() {
            let why = "no operation could be imported, so there is no contract";
            return Err(remarks
                .iter()
                .map(|remark| remark.problem(file))
                .chain([FileProblem::new(file, "/paths", why)])
                .collect());
        }
        let text = write::contract(&head, &operations);
        match refused(&text, &operations) {
            Ok(found) if found.is_empty() => {
                let connection = security::connection(
                    &contract,
                    &base,
                    &access,
                    operations.iter().any(ImportedOperation::writes),
                );
                return Ok(ImportedContract {
                    contract: text,
                    connection,
                    tools: operations.len(),
                    remarks,
                });
            }
            Ok(found) => {
                for (index, (reason, message)) in found.iter().rev() {
                    let operation = operations.remove(*index);
                    remarks.push(operation.left_out(reason, message.clone()));
                }
            }
            Err(problems) => return Err(problems),
        }
    }
    Err(vec![FileProblem::new(
        file,
        "",
        "the contract does not compile, however much is left out",
    )])
}

impl ImportRemark {
    fn problem(&self, file: &str) -> FileProblem {
        FileProblem::new(
            file,
            self.place.clone(),
            format!("{}: {} ({})", self.operation, self.message, self.reason),
        )
    }
}

type Refused = BTreeMap<usize, (&'static str, String)>;

/// Returns the tools that the compiler or lint refuses, by their index. The error concerns the contract as a whole.
fn refused(text: &str, operations: &[ImportedOperation]) -> Result<Refused, Vec<FileProblem>> {
    let mut found = Refused::new();
    let source = form::read("the imported contract", text)?;
    match compile(&source, &shapes(operations)) {
        Err(problems) => {
            for problem in &problems {
                let index = problem
                    .place
                    .strip_prefix("/tools/")
                    .and_then(|rest| rest.split('/').next()?.parse().ok());
                let Some(index) = index else {
                    return Err(problems);
                };
                found
                    .entry(index)
                    .or_insert_with(|| ("contract", problem.message.clone()));
            }
        }
        Ok(contract) => {
            for finding in lint::lint_contract(&contract)
                .into_iter()
                .filter(|finding| finding.level == LintLevel::Error)
            {
                let Some(index) = operations
                    .iter()
                    .position(|operation| Some(&operation.tool) == finding.tool.as_ref())
                else {
                    return Err(vec![FileProblem::new(
                        "the imported contract",
                        "",
                        finding.message,
                    )]);
                };
                let message = format!("{}: {}", finding.rule, finding.message);
                found.entry(index).or_insert(("lint", message));
            }
        }
    }
    Ok(found)
}

/// Returns the shapes that the adapter will describe.
fn shapes(operations: &[ImportedOperation]) -> BTreeMap<String, CollectionShape> {
    let names: BTreeSet<&String> = operations
        .iter()
        .map(|operation| &operation.collection)
        .collect();
    let shape = |name: &String| {
        let own = operations
            .iter()
            .filter(|operation| operation.collection == *name);
        let capabilities = ShapeCapabilities {
            open_world: true,
            operations: own.map(ImportedOperation::shape).collect(),
            ..ShapeCapabilities::default()
        };
        CollectionShape::new("record", Vec::new(), capabilities)
    };
    names
        .into_iter()
        .map(|name| (name.clone(), shape(name)))
        .collect()
}
