//! Trying a call: as any agent, with what was checked and what came back.

use std::{collections::BTreeMap, time::Instant};

use axum::{Json, extract::State as Shared};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use weir_audit::AdminAct;

use super::{Answer, Ask, Refusal, problem::Body, staff::Staff};
use crate::{
    call::{self, CallRequest, Endpoint, Unasked},
    control::gate::Role,
    telemetry::metrics::STAGES,
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Trial {
    tool: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    arguments: Map<String, Value>,
    /// Whose call it is; by default `local`, while no key was ever made.
    #[serde(default = "local")]
    agent: String,
    /// True: access, limits and arguments are checked, and no adapter is asked.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Tried {
    tool: String,
    agent: String,
    /// False: no adapter was asked.
    ran: bool,
    /// Milliseconds, all stages.
    ms: f64,
    /// Of them, by stage, as far as it came: `lookup`, `arguments`, `intent`, `adapter`, `output`, `record`.
    stages_ms: BTreeMap<&'static str, f64>,
    is_error: bool,
    text: String,
    /// As a client gets it under `structuredContent`; of a dry run that is valid, `{"valid": true}`. Weir's own errors stand
    /// here also where a client gets them under `_meta`.
    #[schema(value_type = Object)]
    structured_content: Value,
    receipt: Option<String>,
}

const ASKS: &str = "the tool asks its caller before it goes on, and a trial cannot answer: call it with an MCP client";

fn local() -> String {
    "local".into()
}

/// Runs one call, or checks it, as an agent would make it. It is recorded like any other. Role: editor, and operator
/// where it may change something.
#[utoipa::path(post, path = "/v1/calls", request_body = Trial, responses(
    (status = 200, body = Tried), (status = 400, body = Refusal), (status = 401, body = Refusal),
    (status = 403, body = Refusal), (status = 404, body = Refusal), (status = 413, body = Refusal),
    (status = 415, body = Refusal), (status = 422, body = Refusal)))]
pub(super) async fn try_call(
    Shared(admin): Ask,
    staff: Staff,
    Body(trial): Body<Trial>,
) -> Answer<Json<Tried>> {
    staff.needs(Role::Editor)?;
    let caller = admin
        .gateway
        .identities()
        .agent(&trial.agent)
        .ok_or_else(|| Refusal::not_found("agent", &trial.agent))?;
    let snapshot = admin.gateway.snapshot();
    let tool = snapshot
        .catalogue
        .tool(&Endpoint::All, &trial.tool, caller.access())
        .ok_or_else(|| Refusal::not_found("tool", &trial.tool))?;
    if tool.tool.writes() && !trial.dry_run {
        staff.needs(Role::Operator)?;
    }
    if !trial.dry_run {
        // The call is recorded as the agent's, since it counts for it; who made it stands here.
        let detail = Map::from_iter([("agent".to_owned(), Value::from(trial.agent.as_str()))]);
        admin.gateway.audit().admin(
            AdminAct::TryCall,
            &trial.tool,
            None,
            &staff.by(),
            Some(&detail),
        )?;
    }
    let arguments = Value::Object(trial.arguments).to_string();
    let started = Instant::now();
    let result = if trial.dry_run {
        call::check(&admin.gateway, &caller, tool, &arguments).await
    } else {
        let cancel = CancellationToken::new();
        let request = CallRequest {
            arguments: Some(&arguments),
            ..CallRequest::new(&snapshot, &Endpoint::All, &trial.tool, "admin", &cancel)
        };
        match call::call_tool(&admin.gateway, &caller, &request)
            .await
            .unasked()
        {
            Ok(result) => result,
            Err(Unasked::Asks) => return Err(Refusal::invalid(ASKS)),
            Err(Unasked::NotThere) => return Err(Refusal::not_found("tool", &trial.tool)),
        }
    };
    Ok(Json(Tried {
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
        receipt: result.receipt.map(|receipt| receipt.to_string()),
    }))
}
