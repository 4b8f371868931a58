//! Checks the results of a tool that somebody else makes against the schema that the tool is published with.

use serde_json::Value;

use super::OutputMismatch;
use crate::validate::{foreign_validator, validator};

/// Checks the results of one tool. Built once per snapshot.
pub struct ResultChecker(jsonschema::Validator);

impl ResultChecker {
    /// Compiles a schema, which may be any JSON Schema 2020-12. Formats are asserted, regexes run in linear time, and
    /// nothing is fetched.
    pub fn new(schema: &Value) -> Result<Self, String> {
        validator(schema).map(Self)
    }

    /// Compiles a schema for results of an upstream server, which judges formats by itself.
    pub fn foreign(schema: &Value) -> Result<Self, String> {
        foreign_validator(schema).map(Self)
    }

    /// Returns the first fault, without the value that has it.
    pub fn check(&self, result: &Value) -> Result<(), OutputMismatch> {
        self.0.validate(result).map_err(|error| OutputMismatch {
            path: error.instance_path().to_string(),
            record: None,
            column: None,
            reason: error.masked().to_string().chars().take(300).collect(),
            source_changed: false,
        })
    }
}
