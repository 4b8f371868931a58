//! Tries a call as any agent, with the same checks and the same answer.

use std::{collections::BTreeMap, time::Instant};

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use weir_audit::AdminAct;

use super::{ActingAdmin, FailureKind, OperationError, OperationResult};
use crate::{
    call::{self, CallRequest, CatalogueEndpoint, IncompleteCall, PolicyDecision, TRIAL},
    catalogue::CatalogueViewer,
    control::{ControlPlane, gate::Role},
    identity::CallerIdentity,
    snapshot::CatalogueSnapshot,
    telemetry::metrics::STAGES,
};

/// A call to be tried.
pub struct TrialCall {
    pub tool: String,
    /// JSON as it was written: it is read as strictly as an agent's call.
    pub arguments: Box<RawValue>,
    /// The agent of the call.
    pub agent: String,
    /// Access, limits and arguments are checked, but no adapter is asked.
    pub dry_run: bool,
}

/// The result of a call that was tried.
#[derive(Serialize, ToSchema)]
pub struct Tried {
    pub tool: String,
    pub agent: String,
    /// False if no adapter was asked.
    pub ran: bool,
    /// Milliseconds, all stages.
    pub ms: f64,
    /// The milliseconds of each stage that was reached: `lookup`, `arguments`, `intent`, `adapter`, `output`, `record`.
    pub stages_ms: BTreeMap<&'static str, f64>,
    pub is_error: bool,
    pub text: String,
    /// The result, as a client gets it under `structuredContent`; for a dry run that is valid, `{"valid": true}`. Weir's own
    /// errors are here too, even where a client gets them under `_meta`.
    #[schema(value_type = Object)]
    pub structured_content: Box<RawValue>,
    pub receipt: Option<String>,
    /// The denials of policies, or those that `mode = "enforce"` would cause; null if there are none.
    pub policy: Option<PolicyDecision>,
    /// The call's id, as in the trail and the log; null for a dry run.
    pub call_id: Option<String>,
    /// `contract@version` of the tool.
    pub contract: String,
    /// The result as a client gets it: content, structured content, `_meta`.
    #[schema(value_type = Object)]
    pub wire: Box<RawValue>,
}

const ASKS: &str =
    "the tool asks its caller a question, and a trial cannot answer: call it with an MCP client";

/// Runs one call, or checks it, as an agent would make it. It is recorded like any other. A call that may change something
/// requires the role operator.
pub async fn try_call(
    control: &ControlPlane,
    trial: TrialCall,
    admin: ActingAdmin<'_>,
) -> OperationResult<Tried> {
    if !trial.arguments.get().starts_with('{') {
        return Err(OperationError::invalid("`arguments` must be an object"));
    }
    let caller = control
        .gateway()
        .identities()
        .agent(&trial.agent)
        .ok_or_else(|| OperationError::not_found("agent", &trial.agent))?;
    let snapshot = control.gateway().snapshot();
    let tool = snapshot
        .catalogue
        .tool(
            &CatalogueEndpoint::All,
            &trial.tool,
            CatalogueViewer::Caller(&caller),
        )
        .ok_or_else(|| absent_tool(&snapshot, &trial, &caller))?;
    let contract = tool.contract_version().to_owned();
    if tool.tool.writes() && !trial.dry_run {
        admin.needs(Role::Operator)?;
    }
    if !trial.dry_run {
        // The call is recorded under the agent, since it counts against its limits; the detail names the admin who made it.
        let detail = Map::from_iter([("agent".to_owned(), Value::from(trial.agent.as_str()))]);
        control.gateway().audit().admin(
            AdminAct::TryCall,
            &trial.tool,
            None,
            admin.by,
            Some(&detail),
        )?;
    }
    let arguments = trial.arguments.get();
    let started = Instant::now();
    let result = if trial.dry_run {
        call::check(control.gateway(), &snapshot, &caller, tool, arguments).await
    } else {
        let cancel = CancellationToken::new();
        let request = CallRequest {
            arguments: Some(arguments),
            ..CallRequest::new(
                &snapshot,
                &CatalogueEndpoint::All,
                &trial.tool,
                TRIAL,
                &cancel,
            )
        };
        match call::call_tool(control.gateway(), &caller, &request)
            .await
            .unasked()
        {
            Ok(result) => result,
            Err(IncompleteCall::Asks) => return Err(OperationError::invalid(ASKS)),
            Err(IncompleteCall::NotThere) => return Err(absent_tool(&snapshot, &trial, &caller)),
        }
    };
    Ok(Tried {
        tool: trial.tool,
        agent: trial.agent,
        ran: !trial.dry_run,
        ms: started.elapsed().as_secs_f64() * 1000.0,
        stages_ms: STAGES
            .into_iter()
            .zip(result.stages)
            .filter_map(|(stage, took)| Some((stage, took?.as_secs_f64() * 1000.0)))
            .collect(),
        is_error: result.is_error,
        text: result.content.text().into_owned(),
        structured_content: result
            .error()
            .or(result.structured.as_deref())
            .and_then(|structured| serde_json::from_str(structured).ok())
            .unwrap_or_default(),
        wire: serde_json::from_str(&result.as_json()).unwrap_or_default(),
        policy: result.policy,
        receipt: result.receipt.map(|receipt| receipt.to_string()),
        call_id: result.made.as_deref().map(str::to_owned),
        contract,
    })
}

/// Returns why the agent has no such tool. Admins see everything that is served, so the answer says that a tool is hidden.
fn absent_tool(
    snapshot: &CatalogueSnapshot,
    trial: &TrialCall,
    caller: &CallerIdentity,
) -> OperationError {
    let everything = CatalogueViewer::EVERYTHING;
    let served = snapshot
        .catalogue
        .tool(&CatalogueEndpoint::All, &trial.tool, everything);
    let Some(tool) = served else {
        return OperationError::not_found("tool", &trial.tool);
    };
    let (name, agent) = (&tool.name, &trial.agent);
    let detail = match caller.access().allows(&tool.contract, name) {
        false => format!(
            "`{name}` is served, but the agent `{agent}` may not use it: its access does not hold the tool or its contract `{}`",
            tool.contract
        ),
        true => format!("`{name}` is served, but a policy hides it from the agent `{agent}`"),
    };
    OperationError::new(FailureKind::NotFound, detail)
}
