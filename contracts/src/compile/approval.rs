//! Tools whose calls a person approves.

use crate::{
    contract::ToolAnnotations,
    form::{self, FileProblems},
};

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
