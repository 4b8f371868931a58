//! Lists the text that a person writes into a client's configuration so that it connects, as `weir connect` writes it.

use serde::Serialize;
use utoipa::ToSchema;

use super::{OperationError, OperationResult, sessions::mcp_url};
use crate::{
    client_entry::{KEY, McpClient, ServerEntry},
    control::ControlPlane,
};

/// The name of this server in clients.
const NAME: &str = "weir";
/// The placeholder of the key.
const PLACEHOLDER: &str = "Bearer KEY";

#[derive(Serialize, ToSchema)]
pub(crate) struct ClientSnippet {
    /// The client's name in `weir connect CLIENT`.
    pub client: &'static str,
    /// What the client's configuration has, without its other servers; null where it cannot be connected so.
    pub text: Option<String>,
    /// What to do beside it, or why there is no text.
    pub note: Option<String>,
}

/// Returns how clients connect to this gateway, all of them or one; `agent` is whose key they are given, if any.
pub(crate) fn list(
    control: &ControlPlane,
    client: Option<&str>,
    agent: Option<&str>,
) -> OperationResult<Vec<ClientSnippet>> {
    let identities = control.gateway().identities();
    if let Some(agent) = agent.filter(|agent| identities.agent(agent).is_none()) {
        return Err(OperationError::not_found("agent", agent));
    }
    let url = mcp_url(control).ok_or_else(|| {
        let detail =
            "HTTP is not served at a configured address: set `[http] listen` or `public_url`";
        OperationError::new(super::FailureKind::Conflict, detail)
    })?;
    let clients: Vec<McpClient> = match client {
        None => McpClient::ALL.to_vec(),
        Some(name) => {
            let known = McpClient::ALL
                .into_iter()
                .find(|known| known.name() == name);
            vec![known.ok_or_else(|| {
                let names = McpClient::ALL.map(McpClient::name).join(", ");
                OperationError::not_found("client", name).see(&format!("there are {names}"))
            })?]
        }
    };
    let needs_key = identities.are_required();
    let snippets = clients.into_iter();
    Ok(snippets
        .map(|client| snippet(client, &url, needs_key))
        .collect())
}

fn snippet(client: McpClient, url: &str, needs_key: bool) -> ClientSnippet {
    let by_variable = needs_key && client.reference(KEY).is_some();
    let by_header = needs_key && !by_variable;
    let entry = ServerEntry::Url {
        url: url.to_owned(),
        headers: match by_header {
            true => vec![("Authorization".to_owned(), PLACEHOLDER.to_owned())],
            false => Vec::new(),
        },
        key: by_variable.then(|| KEY.to_owned()),
    };
    let written = client.entry(&entry);
    ClientSnippet {
        client: client.name(),
        note: match &written {
            Err(failure) => Some(failure.in_one_line()),
            Ok(_) if by_variable => Some(format!("set {KEY} to the key where the client starts")),
            Ok(_) if by_header => Some("write the key in the place of KEY".to_owned()),
            Ok(_) => None,
        },
        text: written.ok().map(|entry| client.document(NAME, &entry)),
    }
}
