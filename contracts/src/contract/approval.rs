//! The rule that a person approves the calls of a tool.

use serde::{Deserialize, Serialize};

/// The end of the description of a tool whose calls a person approves.
const APPROVED: &str =
    "A person approves each call before it runs: once that is done, repeat the same call.";

/// When a person approves the calls of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalRule {
    /// Before each call.
    Required,
}

impl ApprovalRule {
    /// Returns a description with what agents must know about approvals, since a model has to repeat its call.
    pub(crate) fn describe(rule: Option<Self>, own: String) -> String {
        match rule {
            None => own,
            Some(Self::Required) => format!("{} {APPROVED}", own.trim_end())
                .trim_start()
                .to_owned(),
        }
    }
}
