//! A prompt, a resource or a completion of another server: the request, and the check of its answer.

use std::sync::Arc;

use serde_json::{Map, Value};
use weir_upstream::UpstreamOperation;

use super::{
    UpstreamAnswer, UpstreamRequest,
    bind::opened,
    run,
    shape::{input_required, members},
};
use crate::{
    call::{CallError, ItemOutcome, blocks, limits::CallPermit, target::item::ItemCall},
    cursor::CursorScope,
};

/// Makes the request for an item of the server. `bound`: the request to which a question of the server belongs.
pub(in crate::call) fn bind_item(
    call: &ItemCall<'_>,
    server: &Arc<str>,
    asked: UpstreamOperation,
    bound: &CursorScope,
) -> Result<Arc<UpstreamRequest>, CallError> {
    let resumed = call.request.asking.resumed;
    let resumed = resumed
        .map(|resumed| opened(call.gateway.cursors(), bound, resumed))
        .transpose()?;
    Ok(Arc::new(UpstreamRequest {
        resumed,
        ..reading(server, asked)
    }))
}

/// Asks the server for an item.
pub(in crate::call) async fn run_item(
    call: &ItemCall<'_>,
    request: &Arc<UpstreamRequest>,
    slot: CallPermit,
) -> Result<UpstreamAnswer, CallError> {
    run::read(
        call.gateway,
        call.caller,
        call.request,
        request,
        slot,
        call.asked_at,
        call.carried.as_ref(),
    )
    .await
}

/// Makes the outcome of a request for an item from the answer.
pub(in crate::call) fn shape_item(
    call: &ItemCall<'_>,
    bound: &CursorScope,
    answer: &UpstreamAnswer,
) -> Result<ItemOutcome, CallError> {
    let mut members = members(answer.result.get())?;
    let kind = members.shift_remove("resultType");
    match kind.as_ref().and_then(Value::as_str) {
        None | Some("complete") => {
            blocks::mend_parts(&mut members);
            Ok(ItemOutcome::Complete(members))
        }
        Some("input_required") => {
            let cursors = call.gateway.cursors();
            input_required(
                cursors,
                bound,
                call.request,
                &members,
                answer.may_ask.as_ref(),
            )
            .map(ItemOutcome::InputRequired)
        }
        Some(_) => Err(CallError::output_mismatch(
            "the result is of a type that is not known here".to_owned(),
        )),
    }
}

/// Asks the server to complete an argument, and returns the members of its answer.
pub(in crate::call) async fn complete(
    call: &ItemCall<'_>,
    server: &Arc<str>,
    asked: UpstreamOperation,
    slot: CallPermit,
) -> Result<Map<String, Value>, CallError> {
    let answer = run_item(call, &Arc::new(reading(server, asked)), slot).await?;
    members(answer.result.get())
}

fn reading(server: &Arc<str>, asked: UpstreamOperation) -> UpstreamRequest {
    UpstreamRequest {
        server: server.clone(),
        asked,
        resumed: None,
        headers: Vec::new(),
        timeout_ms: None,
        writes: false,
    }
}
