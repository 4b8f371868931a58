//! Drafts: changes that wait for approval.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use weir_contracts::{CompiledContract, compiled_document, lint};
use weir_state::{DraftFilter, DraftRow, ListedDraft, StateError};

use super::{
    ActingAdmin, OperationError, OperationResult,
    contracts::{NowLive, read_contract, value},
    versions::{KeepRequest, KeepingView, beside},
};
use crate::control::{
    ControlPlane,
    gate::{ChangeClass, DraftApproval, DraftStatus, Role},
    impact::{Impact, impact, inputs},
};

const DRAFTS: &str = "GET /v1/drafts and `weir contracts list` name those that wait";

/// The most drafts in one answer that no longer wait; those that wait are always included.
pub(super) const DRAFTS_MAX: u32 = 200;

/// A draft with its change and its outcome.
#[derive(Serialize, ToSchema)]
pub struct DraftView {
    pub id: String,
    pub contract: String,
    /// The live version it was compared with.
    pub base: Option<String>,
    /// The version that it would become; null if the contract would be retired.
    pub version: Option<String>,
    pub class: ChangeClass,
    pub fingerprint: String,
    /// The role that may publish it; null if it is decided.
    pub needs: Option<Role>,
    pub status: DraftStatus,
    pub created_ms: i64,
    pub created_by: String,
    pub decided_ms: Option<i64>,
    pub decided_by: Option<String>,
    /// The difference: `{class, breaking, fingerprint, items}`.
    #[schema(value_type = Object)]
    pub report: Value,
    /// The agents whose past calls it would have refused; null if no calls are kept, and in lists.
    pub impact: Option<Impact>,
    /// The compiled document that it would become, as `weir compile` prints it; null in lists, and if the contract would be
    /// retired.
    #[schema(value_type = Option<Object>)]
    pub document: Option<Value>,
    /// The findings of lint that the live version does not have; null in lists.
    #[schema(value_type = Option<Vec<Object>>)]
    pub findings: Option<Value>,
    /// The server whose offer it is; null in lists, and for other drafts.
    pub upstream: Option<DraftUpstream>,
    /// A preview of keeping the live version; null in lists, and if none of its callers would break.
    pub keeping: Option<KeepingView>,
}

/// The server that a draft comes from.
#[derive(Serialize, ToSchema)]
pub struct DraftUpstream {
    pub name: String,
    /// For each published tool name, the server's own name for the tool, which an overlay uses.
    pub tools: BTreeMap<String, String>,
}

impl DraftUpstream {
    fn new(contract: &CompiledContract) -> Option<Self> {
        let offers = contract.tools.iter().filter_map(|tool| {
            let offer = tool.offer()?;
            Some((tool.name.to_string(), offer.name.clone()))
        });
        Some(Self {
            name: contract.upstream()?.to_owned(),
            tools: offers.collect(),
        })
    }
}

/// Returns all waiting drafts, then the newest 200 of the others, newest first.
pub async fn list(control: &ControlPlane, of: DraftFilter<'_>) -> OperationResult<Vec<DraftView>> {
    let listed = control.state().drafts(of, DRAFTS_MAX).await;
    let drafts = listed.map_err(|error| match (error, of.before) {
        (StateError::Unknown(what), Some(id)) => OperationError::not_found(what, id).see(DRAFTS),
        (error, _) => error.into(),
    })?;
    Ok(drafts.into_iter().map(DraftView::from).collect())
}

/// Returns one draft.
pub async fn show(control: &ControlPlane, id: &str) -> OperationResult<DraftView> {
    let draft = control
        .state()
        .draft(id)
        .await?
        .ok_or_else(|| OperationError::not_found("draft", id).see(DRAFTS))?;
    let new = draft.artifact.as_deref().map(read_contract).transpose()?;
    let DraftRow { head, report, .. } = draft;
    let impact = impact(
        control.gateway(),
        control.state(),
        &head.contract,
        &inputs(new.as_ref()),
    )
    .await?;
    let gate = control.gate();
    gate.refresh().await?;
    let live = gate.live().get(&head.contract).cloned();
    let is_pending = head.status == DraftStatus::Pending;
    let keeping = new.as_ref().filter(|_| is_pending);
    let keeping = keeping.and_then(|new| gate.keep_preview(id, head.base.as_deref(), new));
    let known = live
        .map(|live| lint::lint_contract(&live.contract))
        .unwrap_or_default();
    let found = new.as_ref().map(lint::lint_contract).unwrap_or_default();
    let findings: Vec<_> = found
        .into_iter()
        .filter(|finding| !known.contains(finding))
        .collect();
    Ok(DraftView {
        impact,
        document: new.as_ref().map(compiled_document),
        findings: Some(value(&findings)),
        upstream: new.as_ref().and_then(DraftUpstream::new),
        keeping: keeping.as_deref().map(KeepingView::from),
        ..ListedDraft { head, report }.into()
    })
}

/// Publishes a draft exactly as it was reported.
pub async fn approve(
    control: &ControlPlane,
    id: &str,
    fingerprint: &str,
    keep: KeepRequest,
    admin: ActingAdmin<'_>,
) -> OperationResult<NowLive> {
    let keep = keep.read()?;
    let approval = DraftApproval {
        by: admin.by,
        role: admin.role,
        fingerprint,
    };
    let approved = control
        .publisher()
        .approve(id, &approval, keep.as_ref())
        .await;
    let (draft, version) =
        approved.map_err(|error| OperationError::at_the_gate(error, id, DRAFTS))?;
    let live = control.gate().live().get(&draft.contract).cloned();
    Ok(NowLive {
        kept: live.map_or_else(Vec::new, |live| beside(&live)),
        contract: draft.contract,
        version: version.map(|version| version.to_string()),
    })
}

/// Discards a draft that waits.
pub async fn reject(control: &ControlPlane, id: &str, by: &str) -> OperationResult<()> {
    let discarded = control.gate().discard(id, by).await;
    discarded.map_err(|error| OperationError::at_the_gate(error, id, DRAFTS))
}

impl From<ListedDraft> for DraftView {
    fn from(ListedDraft { head, report }: ListedDraft) -> Self {
        Self {
            needs: (head.status == DraftStatus::Pending).then(|| Role::for_class(head.class)),
            report: serde_json::from_str(&report).unwrap_or_default(),
            impact: None,
            document: None,
            findings: None,
            upstream: None,
            keeping: None,
            id: head.id,
            contract: head.contract,
            base: head.base,
            version: head.version,
            class: head.class,
            fingerprint: head.fingerprint,
            status: head.status,
            created_ms: head.created_ms,
            created_by: head.created_by,
            decided_ms: head.decided_ms,
            decided_by: head.decided_by,
        }
    }
}

/// Returns the impact of a waiting draft.
pub(super) async fn impact_of(
    control: &ControlPlane,
    draft: &DraftRow,
) -> OperationResult<Option<Impact>> {
    let new = draft.artifact.as_deref().map(read_contract).transpose()?;
    Ok(impact(
        control.gateway(),
        control.state(),
        &draft.head.contract,
        &inputs(new.as_ref()),
    )
    .await?)
}
