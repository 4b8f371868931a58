//! The same gate for a tool that somebody else makes: its results are held against the schema that it is published with.

use serde_json::Value;

use super::OutputMismatch;
use crate::validate::{foreign_validator, validator};

/// Checks the results of one tool. Built once per snapshot.
pub struct ResultChecker(jsonschema::Validator);

impl ResultChecker {
    /// `schema` may be any JSON Schema 2020-12; formats are asserted, regexes run in linear time, nothing is fetched.
    pub fn new(schema: &Value) -> Result<Self, String> {
        validator(schema).map(Self)
    }

    /// Likewise for results of an upstream server, whose formats are its own to judge.
    pub fn foreign(schema: &Value) -> Result<Self, String> {
        foreign_validator(schema).map(Self)
    }

    /// The first thing that is wrong, without the value it is wrong with.
    pub fn check(&self, result: &Value) -> Result<(), OutputMismatch> {
        self.0.validate(result).map_err(|error| OutputMismatch {
            path: error.instance_path().to_string(),
            reason: error.masked().to_string().chars().take(300).collect(),
            source_changed: false,
        })
    }
}
