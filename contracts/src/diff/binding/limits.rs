//! Compares what holds for every call of a tool: its limits, what the audit keeps in clear, and approval.

use serde::Serialize;
use serde_json::json;

use crate::{
    contract::{CallLimits, ContractTool},
    diff::{DiffReport, rule::ToolRule},
};

pub(super) fn limits(old: &ContractTool, new: &ContractTool, report: &mut DiffReport) {
    let (
        CallLimits {
            rate: was,
            timeout_ms: before,
        },
        CallLimits {
            rate: is,
            timeout_ms: after,
        },
    ) = (&old.limits, &new.limits);
    if was != is {
        let lowered = match (was, is) {
            (_, None) => false,
            (None, Some(_)) => true,
            // Calls per second are lowered, or fewer come at once.
            (Some(was), Some(is)) => {
                u64::from(is.0) * u64::from(was.1) < u64::from(was.0) * u64::from(is.1)
                    || is.0 < was.0
            }
        };
        let rule = if lowered {
            ToolRule::RateLowered
        } else {
            ToolRule::RateRaised
        };
        let shown = |rate: &Option<(u32, u32)>| {
            rate.map_or_else(
                || "no limit".to_owned(),
                |(calls, seconds)| format!("{calls} in {seconds} s"),
            )
        };
        note(
            report,
            rule,
            old,
            "/limits/rate",
            (was, is),
            format!("{} → {}", shown(was), shown(is)),
        );
    }
    if before != after {
        note(
            report,
            ToolRule::TimeoutChanged,
            old,
            "/limits/timeout_ms",
            (before, after),
            "another timeout".to_owned(),
        );
    }
}

/// Compares what the audit keeps in clear of the arguments.
pub(super) fn audit(old: &ContractTool, new: &ContractTool, report: &mut DiffReport) {
    let without = |fields: &[String], others: &[String]| -> Vec<String> {
        fields
            .iter()
            .filter(|field| !others.contains(field))
            .cloned()
            .collect()
    };
    let came = without(&new.audit_clear, &old.audit_clear);
    let rule = match (
        came.is_empty(),
        without(&old.audit_clear, &new.audit_clear).is_empty(),
    ) {
        (true, true) => return,
        (false, _) => ToolRule::AuditLoosened,
        (true, false) => ToolRule::AuditTightened,
    };
    let reason = match came.is_empty() {
        true => "fewer arguments are kept in clear by the audit".to_owned(),
        false => format!(
            "the audit keeps further arguments in clear: {}",
            came.join(", ")
        ),
    };
    note(
        report,
        rule,
        old,
        "/audit_clear",
        (&old.audit_clear, &new.audit_clear),
        reason,
    );
}

/// Compares whether a person approves the calls.
pub(super) fn approval(old: &ContractTool, new: &ContractTool, report: &mut DiffReport) {
    let (rule, reason) = match (old.approval, new.approval) {
        (None, Some(_)) => (
            ToolRule::ApprovalAdded,
            "a person approves each call before it runs",
        ),
        (Some(_), None) => (
            ToolRule::ApprovalDropped,
            "no person approves the calls any more",
        ),
        (None, None) | (Some(_), Some(_)) => return,
    };
    let change = (&old.approval, &new.approval);
    note(report, rule, old, "/approval", change, reason.to_owned());
}

fn note<T: Serialize>(
    report: &mut DiffReport,
    rule: ToolRule,
    tool: &ContractTool,
    path: &str,
    change: (&T, &T),
    reason: String,
) {
    report.note(
        rule,
        Some(&tool.name),
        path,
        (json!(change.0), json!(change.1)),
        reason,
    );
}
