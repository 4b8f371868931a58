//! Asks a caller to connect its account at the server: by a link that its client opens, or by a link in the text of a form or an
//! error.

use std::sync::Arc;

use serde_json::{Value, json};
use weir_upstream::{AccountOwner, CallOwner, UpstreamServer};

use super::failure::URLS;
use crate::{
    accounts::AccountRegistry,
    call::{CallError, asking::can_answer},
    codes::FailureCode,
    identity::CallerIdentity,
    serving::ServingGateway,
};

const ELICITATION: &str = "elicitation/create";
/// The key of the question.
const QUESTION: &str = "account";

/// The parts of a question for an account.
pub(super) struct AccountQuestions {
    accounts: Option<Arc<AccountRegistry>>,
    /// The base URL of links.
    base: Option<String>,
    agent: Arc<str>,
}

impl AccountQuestions {
    pub(super) fn new(gateway: &ServingGateway, caller: &CallerIdentity) -> Self {
        let accounts = gateway.accounts().cloned();
        let base = accounts
            .as_ref()
            .and_then(|accounts| accounts.link_base(&gateway.config()));
        Self {
            accounts,
            base,
            agent: caller.agent.clone(),
        }
    }

    /// Returns the question, as a modern server would ask it. If the caller cannot be asked, the error has the link.
    /// `capabilities`: JSON. `scopes`: those that the call needs and that the account lacks.
    pub(super) async fn ask(
        &self,
        upstream: &UpstreamServer,
        caller: &CallOwner,
        capabilities: Option<&str>,
        scopes: &[String],
    ) -> Result<Value, CallError> {
        let owner = upstream.account_owner(caller);
        let label = match &owner {
            AccountOwner::Gateway if !scopes.is_empty() => {
                let message = format!(
                    "The gateway's own account at the server of this tool needs the scopes {}: its operator adds them to \
                     `auth.scopes` and connects it again with `weir upstream connect`.",
                    scopes.join(" ")
                );
                return Err(needed(message));
            }
            AccountOwner::Gateway => {
                let message = "The gateway's own account at the server of this tool is not connected: its operator does that \
                               with `weir upstream connect`.";
                return Err(needed(message));
            }
            AccountOwner::Tenant(tenant) => format!("tenant {tenant}"),
            AccountOwner::Agent { .. } => format!("agent {}", self.agent),
        };
        let (Some(accounts), Some(base), Some(server)) =
            (&self.accounts, &self.base, upstream.oauth())
        else {
            let message = "The account at the server of this tool is not connected, and this gateway has no address that a \
                           browser could open.";
            return Err(needed(message));
        };
        let link = accounts.link(base, server, &owner, &label, scopes).await;
        let link = link.map_err(|fault| {
            CallError::new(FailureCode::Internal, "The gateway failed.").log(fault.to_string())
        })?;
        let message = match scopes {
            [] => format!(
                "The tool's server `{}` needs to know who calls. Sign in there, and allow this gateway to call it as you.",
                upstream.name
            ),
            scopes => format!(
                "The tool's server `{}` needs more permissions for this call than you have given: {}. Sign in there again, and give them too.",
                upstream.name,
                scopes.join(" ")
            ),
        };
        let id = link.rsplit('=').next().unwrap_or_default();
        let url = json!({ "mode": "url", "message": message, "url": link, "elicitationId": &id[..16.min(id.len())] });
        if can_answer(capabilities, ELICITATION, Some(&url)) {
            return Ok(question(&url));
        }
        let schema = json!({ "type": "object", "properties": {} });
        let message = format!("{message} Open this link, and accept once you are done: {link}");
        let form = json!({ "mode": "form", "message": message, "requestedSchema": schema });
        if can_answer(capabilities, ELICITATION, Some(&form)) {
            return Ok(question(&form));
        }
        let message = match scopes {
            [] => format!(
                "The server of this tool is called as the person who asks, and no one has signed in yet. Open this link within ten \
                 minutes, then call again: {link}"
            ),
            _ => format!("{message} Open this link within ten minutes, then call again: {link}"),
        };
        Err(needed(message))
    }
}

fn question(params: &Value) -> Value {
    let request = json!({ "method": ELICITATION, "params": params });
    json!({ "resultType": "input_required", "inputRequests": { QUESTION: request }, "requestState": URLS })
}

/// Returns the error of a call that needs an account. Nothing was sent.
pub(super) fn needed(message: impl Into<std::borrow::Cow<'static, str>>) -> CallError {
    let error = CallError::new(FailureCode::ToolError, message);
    CallError {
        reason: Some("account_needed".to_owned()),
        ..error
    }
}
