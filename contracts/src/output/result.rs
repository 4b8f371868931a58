//! Checks the results of plugins' and servers' tools against their published schema.

use serde_json::Value;
use weir_schema::validate::{SchemaChecker, ValidationAuthority};

use super::OutputMismatch;

/// Checks the results of one tool. Built once per snapshot.
pub struct ResultChecker(SchemaChecker);

impl ResultChecker {
    /// Compiles a schema, which may be any JSON Schema 2020-12. Formats are asserted, regexes run in linear time, and
    /// nothing is fetched.
    pub fn new(schema: &Value) -> Result<Self, String> {
        SchemaChecker::new(schema, ValidationAuthority::Own).map(Self)
    }

    /// Compiles a schema for results of an upstream server, which judges formats itself.
    pub fn foreign(schema: &Value) -> Result<Self, String> {
        SchemaChecker::new(schema, ValidationAuthority::Foreign).map(Self)
    }

    /// Returns `true` if this result may take long to check: not on a thread that others wait for.
    pub fn is_heavy(&self, text: &str) -> bool {
        self.0.is_heavy(text)
    }

    /// Returns the first fault, without the value that has it. The result is all of `text`, or a part of it.
    pub fn check(&self, result: &Value, text: &str) -> Result<(), OutputMismatch> {
        match self.0.first_fault(result, text) {
            None => Ok(()),
            Some((path, reason)) => Err(OutputMismatch {
                path,
                record: None,
                column: None,
                reason,
                source_changed: false,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_says_which_member_is_missing_or_wrong() {
        let item = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"], "additionalProperties": false });
        let own = json!({ "properties": { "items": { "type": "array", "items": item } }, "required": ["items"] });
        let error = json!({ "required": ["code"] });
        let published = json!({ "type": "object", "anyOf": [own, error] });
        let checker = ResultChecker::new(&published).expect("a schema");
        for (result, expected) in [
            (json!({}), "the member is missing at /items"),
            (
                json!({ "items": [{}] }),
                "the member is missing at /items/0/n",
            ),
            (
                json!({ "items": [{ "n": 1, "m": 2 }] }),
                "the member is not declared at /items/0/m",
            ),
            (
                json!({ "items": [{ "n": "1" }] }),
                "the member is wrong (value is not of type \"integer\") at /items/0/n",
            ),
            (json!([]), "value is not of type \"object\""),
        ] {
            let found = checker
                .check(&result, &result.to_string())
                .expect_err("it does not fit");
            assert_eq!(found.to_string(), expected);
        }
        assert_eq!(checker.check(&json!({ "code": "x" }), "{}"), Ok(()));
    }
}
