//! A prompt, a resource or a completion of a plugin: what it is asked, and what becomes of its answer.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use serde_json::{Map, Value, json};
use weir_plugin_host::{CallContext, Invocation, ToolAnswer, ToolRef};
use weir_upstream::Asked;

use super::{CallError, CallRequest, InputRequired, asking, code, foreign::members, limits::Slot};
use crate::{
    catalogue::ItemPlugin, codes::Code, cursor::Bound, gateway::Gateway, identity::Caller,
};

/// One request for a plugin, on the way through the call path.
pub(super) struct Request<'r> {
    pub caller: &'r Caller,
    pub plugin: &'r ItemPlugin,
    pub request: &'r CallRequest<'r>,
    pub call_id: Arc<str>,
    pub asked_at: Instant,
    /// Where the host says which build it was.
    pub ran_on: Arc<OnceLock<Arc<str>>>,
}

/// What the plugin answered.
pub(super) enum Answered {
    /// The result of the method.
    Members(Map<String, Value>),
    InputRequired(InputRequired),
}

impl Request<'_> {
    /// `bound`: what a question of the plugin belongs to.
    pub(super) async fn answer(
        self,
        gateway: &Gateway,
        slot: Slot,
        asked: &Asked,
        bound: &Bound,
    ) -> Result<Answered, CallError> {
        let (method, params) = params(asked);
        let resumed = self.request.asking.resumed;
        let resumed = resumed
            .map(|resumed| asking::open(gateway.cursors(), bound, resumed))
            .transpose()?;
        let resumed = resumed.map(|(state, responses)| {
            json!({ "state": state, "responses": responses }).to_string()
        });
        let context = CallContext {
            tenant: self.caller.tenant.clone(),
            call_id: self.call_id,
            deadline: self.asked_at + gateway.timeout(),
            cancel: self.request.cancel.clone(),
            events: self.request.events.clone(),
            ran_on: self.ran_on,
        };
        let of = ToolRef {
            plugin: self.plugin.name.clone(),
            tool: method.into(),
            definitions: self.plugin.definitions.clone(),
            contract: self.plugin.contract.clone(),
            read_only: true,
        };
        let agent = self.caller.agent.clone();
        let capabilities = self.request.asking.capabilities.map(str::to_owned);
        let invocation = Arc::new(Invocation {
            agent,
            arguments: params.to_string(),
            is_item: true,
            capabilities,
            resumed,
        });
        let answer = gateway.host().call_tool(&context, &of, &invocation).await;
        drop(slot);
        match answer.map_err(|failure| code::failed(failure, false)) {
            // What is listed and not there is as unknown as what is not listed.
            Err(error) if error.code == Code::NotFound => Err(CallError::unknown()),
            Err(error) => Err(error),
            Ok(ToolAnswer::Complete { value, .. }) => {
                members(value.as_deref().unwrap_or("null")).map(Answered::Members)
            }
            Ok(ToolAnswer::InputRequired { requests, state }) => {
                let asked = asking::ask(
                    gateway.cursors(),
                    bound,
                    self.request,
                    &requests,
                    state.as_deref(),
                    None,
                );
                asked.map(Answered::InputRequired)
            }
        }
    }
}

fn params(asked: &Asked) -> (&'static str, Value) {
    match asked {
        Asked::Tool {
            name, arguments, ..
        } => (
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        ),
        Asked::Prompt { name, arguments } => {
            let mut params = json!({ "name": name });
            if let Some(arguments) = arguments {
                params["arguments"] = json!(arguments);
            }
            ("prompts/get", params)
        }
        Asked::Resource { uri } => ("resources/read", json!({ "uri": uri })),
        Asked::Completion {
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
