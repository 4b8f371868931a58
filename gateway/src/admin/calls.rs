//! Tries a call as any agent, with the same checks and the same answer.

use axum::{Json, extract::State as Shared};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{AdminProblem, Answer, Ask, problem::JsonBody, staff::AdminPrincipal};
use crate::control::{
    gate::Role,
    operations::calls::{self, TrialCall, Tried},
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Trial {
    tool: String,
    #[serde(default = "no_arguments")]
    #[schema(value_type = Object)]
    arguments: Box<RawValue>,
    /// The agent of the call; by default `local`, while no key was ever made.
    #[serde(default = "local")]
    agent: String,
    /// If true, access, limits and arguments are checked, but no adapter is asked.
    #[serde(default)]
    dry_run: bool,
}

fn no_arguments() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("an object")
}

fn local() -> String {
    "local".into()
}

/// Runs one call, or checks it, as an agent would make it. It is recorded like any other. Role: editor, and operator if it may
/// change something.
#[utoipa::path(post, path = "/v1/calls", request_body = Trial, responses(
    (status = 200, body = Tried), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 413, body = AdminProblem),
    (status = 415, body = AdminProblem), (status = 422, body = AdminProblem)))]
pub(super) async fn try_call(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    JsonBody(trial): JsonBody<Trial>,
) -> Answer<Json<Tried>> {
    staff.needs(Role::Editor)?;
    let by = staff.by();
    let trial = TrialCall {
        tool: trial.tool,
        arguments: trial.arguments,
        agent: trial.agent,
        dry_run: trial.dry_run,
    };
    let tried = calls::try_call(&admin.control, trial, staff.acting(&by));
    Ok(Json(tried.await?))
}
