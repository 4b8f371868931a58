//! Form and shape become a contract: the table of field types, verbs and refusals.

use std::collections::BTreeMap;

use crate::{contract::Contract, form::Source, problem::Problem, shape::Shape};

/// Compiles one file. `shapes` holds the described shape of each collection by name.
/// Same input, same bytes; all problems at once.
pub fn compile(source: &Source, _shapes: &BTreeMap<String, Shape>) -> Result<Contract, Vec<Problem>> {
    Err(vec![Problem::new(&source.file, "", "not compiled yet")])
}

/// What `weir compile` prints: `{contract, version, tools: [{name, title?, description, inputSchema, outputSchema, annotations}]}`.
pub fn document(contract: &Contract) -> serde_json::Value {
    serde_json::json!({ "contract": contract.name, "version": contract.version.to_string(), "tools": [] })
}
