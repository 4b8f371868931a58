//! Writes that wait for a person: their list, and the decisions about them.

use serde::Serialize;
use serde_json::Map;
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_state::{PlanDecision, PlanRow, PlanStatus};
use weir_text::shorten;

use super::{ActingAdmin, FailureKind, OperationError, OperationResult};
use crate::{
    control::ControlPlane,
    identity::now_ms,
    plans::{self, PlannedWrite},
};

const PLANS: &str = "GET /v1/approvals and `weir approvals list` list the plans";
/// The most characters of the reason for a rejection, which the agent reads.
const REASON_MAX_CHARS: usize = 300;

/// A write that waits, or waited, for a person.
#[derive(Serialize, ToSchema)]
pub struct PlanView {
    pub id: String,
    /// The agent that asks.
    pub agent: String,
    pub tenant: String,
    /// The person to whom the caller's token was issued; null for the agent of a key.
    pub subject: Option<String>,
    /// `name@version`.
    pub contract: String,
    pub tool: String,
    /// The fingerprint that an approval names.
    pub fingerprint: String,
    pub status: PlanStatus,
    /// Whether it has expired without an effect.
    pub is_expired: bool,
    /// Milliseconds since 1970, as all times.
    pub created_ms: i64,
    pub expires_ms: i64,
    pub decided_ms: Option<i64>,
    pub decided_by: Option<String>,
    /// Why it was rejected.
    pub reason: Option<String>,
    /// What would change; null in lists, and once the plan has ended.
    pub write: Option<PlannedWrite>,
}

impl From<PlanRow> for PlanView {
    fn from(row: PlanRow) -> Self {
        let is_open = matches!(row.status, PlanStatus::Pending | PlanStatus::Approved);
        Self {
            is_expired: is_open && row.expires_ms <= now_ms(),
            id: row.id,
            agent: row.agent,
            tenant: row.tenant,
            subject: row.subject,
            contract: row.contract,
            tool: row.tool,
            fingerprint: row.fingerprint,
            status: row.status,
            created_ms: row.created_ms,
            expires_ms: row.expires_ms,
            decided_ms: row.decided_ms,
            decided_by: row.decided_by,
            reason: row.reason.filter(|_| row.status == PlanStatus::Rejected),
            write: None,
        }
    }
}

/// Returns the plans: first those that wait, then the newest of the last day.
pub async fn list(control: &ControlPlane) -> OperationResult<Vec<PlanView>> {
    let plans = control.state().plans(now_ms()).await?;
    Ok(plans.into_iter().map(PlanView::from).collect())
}

/// Returns one plan, with the change that it would make while it has not ended.
pub async fn show(control: &ControlPlane, id: &str) -> OperationResult<PlanView> {
    let row = find(control, id).await?;
    let is_over = row.expires_ms <= now_ms();
    let write = plans::open_write(control.gateway().cursors(), &row).filter(|_| !is_over);
    Ok(PlanView {
        write,
        ..row.into()
    })
}

/// Approves a plan: its caller can make the write once, until the plan expires. Callers cannot approve their own
/// writes.
pub async fn approve(
    control: &ControlPlane,
    id: &str,
    fingerprint: &str,
    admin: ActingAdmin<'_>,
) -> OperationResult<PlanView> {
    let row = find(control, id).await?;
    let oidc = control.gateway().config();
    let oidc = oidc.admin.oidc.as_ref();
    let is_named_otherwise = oidc.is_some_and(|oidc| oidc.name_claim != "sub");
    if row.subject.is_some() && admin.by.starts_with("admin:oidc:") && is_named_otherwise {
        let detail = "[admin.oidc] names people by another claim than `sub`, so it is not known whether you asked for this write: \
                      approve it with an admin key";
        return Err(OperationError::new(
            FailureKind::Forbidden,
            detail.to_owned(),
        ));
    }
    if is_own(&row, admin.by) {
        let detail = format!(
            "`{}` asked for this write and cannot approve it: another person must",
            row.agent
        );
        return Err(OperationError::new(FailureKind::Forbidden, detail));
    }
    if row.fingerprint != fingerprint {
        let detail = format!(
            "plan `{id}` has a different fingerprint: look at what it would change, and approve that"
        );
        return Err(OperationError::new(FailureKind::Conflict, detail));
    }
    decide(control, row, PlanStatus::Approved, None, admin.by).await
}

/// Rejects a plan. The agent reads the reason.
pub async fn reject(
    control: &ControlPlane,
    id: &str,
    reason: Option<&str>,
    by: &str,
) -> OperationResult<PlanView> {
    let row = find(control, id).await?;
    let reason = reason.map(|reason| {
        let plain = reason.replace(char::is_control, " ");
        shorten(plain.trim(), REASON_MAX_CHARS).into_owned()
    });
    decide(control, row, PlanStatus::Rejected, reason.as_deref(), by).await
}

async fn find(control: &ControlPlane, id: &str) -> OperationResult<PlanRow> {
    let plan = control.state().plan(id, now_ms()).await?;
    plan.ok_or_else(|| OperationError::not_found("plan", id).see(PLANS))
}

/// Returns `true` if the admin is the caller: its name is that of the agent, or of the person to whom the token was issued.
fn is_own(plan: &PlanRow, by: &str) -> bool {
    let name = by.strip_prefix("admin:").unwrap_or(by);
    let person = name.strip_prefix("oidc:").unwrap_or(name);
    person == plan.agent || plan.subject.as_deref() == Some(person)
}

async fn decide(
    control: &ControlPlane,
    row: PlanRow,
    status: PlanStatus,
    reason: Option<&str>,
    by: &str,
) -> OperationResult<PlanView> {
    let at_ms = now_ms();
    let over = |what: &str| {
        let detail = format!("plan `{}` no longer waits: {what}", row.id);
        OperationError::new(FailureKind::Conflict, detail)
    };
    if row.status != PlanStatus::Pending {
        return Err(over(&format!("it is {}", row.status)));
    }
    if row.expires_ms <= at_ms {
        return Err(over("it has expired"));
    }
    let act = match status {
        PlanStatus::Approved => AdminAct::PlanApprove,
        _ => AdminAct::PlanReject,
    };
    let mut detail = Map::from_iter([
        ("agent".to_owned(), row.agent.clone().into()),
        ("contract".to_owned(), row.contract.clone().into()),
        ("tool".to_owned(), row.tool.clone().into()),
    ]);
    if let Some(reason) = reason {
        detail.insert("reason".to_owned(), reason.into());
    }
    let audit = control.gateway().audit();
    audit.admin(act, &row.id, Some(&row.fingerprint), by, Some(&detail))?;
    let decision = PlanDecision {
        status,
        by,
        reason,
        at_ms,
    };
    let decided = match control.state().decide_plan(&row.id, &decision).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(over("it was decided, or has expired, at the same moment")),
        Err(error) => Err(error.into()),
    };
    audit.note_failure(act, &row.id, Some(&row.fingerprint), by, decided)?;
    show(control, &row.id).await
}
