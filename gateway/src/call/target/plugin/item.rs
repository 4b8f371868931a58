//! A prompt, a resource or a completion of a plugin: the request, and the check of its answer.

use serde_json::{Value, json};
use weir_plugin_host::{CallContext, ToolAnswer, ToolInvocation, ToolRef};
use weir_upstream::UpstreamOperation;

use super::run::failed;
use crate::{
    call::{
        CallError, ItemOutcome, asking,
        limits::CallPermit,
        target::{item::ItemCall, upstream::members},
    },
    catalogue::ItemPlugin,
    codes::FailureCode,
    cursor::CursorScope,
};

/// Asks the plugin for an item. `bound`: the request to which a question of the plugin belongs.
pub(in crate::call) async fn ask_item(
    call: &ItemCall<'_>,
    plugin: &ItemPlugin,
    asked: &UpstreamOperation,
    bound: &CursorScope,
    slot: CallPermit,
) -> Result<ItemOutcome, CallError> {
    let (gateway, request) = (call.gateway, call.request);
    let (method, params) = params(asked);
    let resumed = request.asking.resumed;
    let resumed = resumed
        .map(|resumed| asking::open(gateway.cursors(), bound, resumed))
        .transpose()?;
    let resumed = resumed
        .map(|(state, responses)| json!({ "state": state, "responses": responses }).to_string());
    let context = CallContext {
        tenant: call.caller.tenant.clone(),
        call_id: call.call_id.clone(),
        deadline: call.asked_at + gateway.timeout(),
        cancel: request.cancel.clone(),
        events: request.events.clone(),
        trace: call.carried.clone(),
        ran_on: call.ran_on.clone(),
    };
    let source = ToolRef {
        plugin: plugin.name.clone(),
        tool: method.into(),
        definitions: plugin.definitions.clone(),
        contract: plugin.contract.clone(),
        read_only: true,
    };
    let invocation = ToolInvocation {
        agent: call.caller.agent.clone(),
        arguments: params.to_string(),
        is_item: true,
        capabilities: request.asking.capabilities.map(str::to_owned),
        resumed,
    };
    let answer = gateway
        .host()
        .call_tool(&context, &source, &invocation.into())
        .await;
    drop(slot);
    match answer.map_err(|failure| failed(failure, false)) {
        // A listed item that does not exist counts as unknown, like an unlisted one.
        Err(error) if error.code == FailureCode::NotFound => Err(CallError::unknown()),
        Err(error) => Err(error),
        Ok(ToolAnswer::Complete { value, .. }) => {
            members(value.as_deref().unwrap_or("null")).map(ItemOutcome::Complete)
        }
        Ok(ToolAnswer::InputRequired { requests, state }) => {
            let (cursors, state) = (gateway.cursors(), state.as_deref());
            asking::ask(cursors, bound, request, &requests, state, None)
                .map(ItemOutcome::InputRequired)
        }
    }
}

fn params(asked: &UpstreamOperation) -> (&'static str, Value) {
    match asked {
        UpstreamOperation::Tool {
            name, arguments, ..
        } => (
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        ),
        UpstreamOperation::Prompt { name, arguments } => {
            let mut params = json!({ "name": name });
            if let Some(arguments) = arguments {
                params["arguments"] = json!(arguments);
            }
            ("prompts/get", params)
        }
        UpstreamOperation::Resource { uri } => ("resources/read", json!({ "uri": uri })),
        UpstreamOperation::Completion {
            reference,
            argument,
            context,
        } => {
            let mut params = json!({ "ref": reference, "argument": argument });
            if let Some(context) = context {
                params["context"] = json!(context);
            }
            ("completion/complete", params)
        }
    }
}
