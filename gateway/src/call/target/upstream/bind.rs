//! Makes the request to the server: the arguments in the server's form, and the caller's answers to an earlier question.

use serde_json::{Map, Value, value::RawValue};
use weir_upstream::UpstreamOperation;

use super::{
    ResumedCall, UpstreamRequest,
    parked::{self, QUESTION},
};
use crate::{
    call::{CallError, asking},
    catalogue::{CatalogueTool, UpstreamTool},
    codes::FailureCode,
    cursor::{CursorCipher, CursorScope},
    identity::CallerIdentity,
};

/// Returns the arguments in the server's form, and the caller's answers to an earlier question.
pub(in crate::call::target) fn bind(
    cursors: &CursorCipher,
    caller: &CallerIdentity,
    tool: &CatalogueTool,
    target: &UpstreamTool,
    arguments: Map<String, Value>,
    resumed: Option<asking::CallerResponses<'_>>,
) -> Result<UpstreamRequest, CallError> {
    let arguments = Value::Object(arguments);
    let mirrored = tool.mirrored.iter();
    let mut headers: Vec<(String, String)> = mirrored
        .filter_map(|one| Some((one.header.clone(), one.value(&arguments)?)))
        .collect();
    let set = tool
        .tool
        .offer()
        .into_iter()
        .flat_map(|offer| &offer.set_headers);
    headers.extend(set.map(|(name, value)| (name.clone(), value.clone())));
    let Value::Object(arguments) = arguments else {
        unreachable!("it was made of an object")
    };
    let arguments = tool
        .tool
        .arguments_for_upstream(|| target.checked_input(), arguments);
    let arguments = raw(&Value::Object(arguments))?;
    let bound = || asking::bound(caller, tool, tool.contract_version(), arguments.get());
    let resumed = resumed
        .map(|resumed| opened(cursors, &bound(), resumed))
        .transpose()?;
    let asked = UpstreamOperation::Tool {
        name: target.name.clone(),
        arguments: Some(arguments),
        as_task: target.as_task,
    };
    Ok(UpstreamRequest {
        server: target.upstream.clone(),
        asked,
        resumed,
        headers,
        timeout_ms: tool.tool.limits.timeout_ms,
        writes: target.writes,
    })
}

/// Returns the answers to an earlier question of the server, with the server's state.
pub(super) fn opened(
    cursors: &CursorCipher,
    bound: &CursorScope,
    resumed: asking::CallerResponses<'_>,
) -> Result<ResumedCall, CallError> {
    let (state, responses) = asking::open(cursors, bound, resumed)?;
    if let Some(handle) = state.as_str().filter(|state| parked::is_handle(state)) {
        let answer = responses.get(QUESTION).map(raw).transpose()?;
        return Ok(ResumedCall::Parked {
            handle: handle.to_owned(),
            answer,
        });
    }
    let state = if state.is_null() {
        None
    } else {
        Some(raw(&state)?)
    };
    Ok(ResumedCall::Again(weir_upstream::CallResumption {
        responses: raw(&responses)?,
        state,
    }))
}

pub(in crate::call) fn raw(value: &Value) -> Result<Box<RawValue>, CallError> {
    RawValue::from_string(value.to_string()).map_err(|error| {
        CallError::new(
            FailureCode::Internal,
            "The arguments of this tool cannot be sent.",
        )
        .log(error.to_string())
    })
}
