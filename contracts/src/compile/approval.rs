//! Tools whose calls a person approves.

use crate::{
    contract::{ApprovalRule, ToolAnnotations},
    form::{self, FileProblems},
};

/// The end of the description of such a tool.
const APPROVED: &str =
    "A person approves each call before it runs: once that is done, repeat the same call.";

/// Returns a description with what agents must know of approvals, since a model has to repeat its call.
pub(super) fn describe(form: &form::FormTool, own: String) -> String {
    match form.approval {
        None => own,
        Some(ApprovalRule::Required) => format!("{} {APPROVED}", own.trim_end()),
    }
}

/// Refuses the approval of calls that change nothing.
pub(super) fn check(
    form: &form::FormTool,
    annotations: ToolAnnotations,
    problems: &mut FileProblems,
) -> ToolAnnotations {
    if form.approval.is_some() && annotations.read_only_hint == Some(true) {
        problems.add_hint(
            format!("{}/approval", form.place),
            "the tool only reads, and a person approves writes",
            "drop `approval`",
        );
    }
    annotations
}
