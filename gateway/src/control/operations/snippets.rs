//! Lists the text that a person writes into a client's configuration so that it connects, as `weir connect` writes it.

use serde::Serialize;
use utoipa::ToSchema;

use super::{OperationError, OperationResult, sessions::mcp_url};
use crate::{
    client_entry::{HostedClient, HostedServer, KEY, McpClient, ServerEntry},
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
    /// The entry for the client's configuration, without its other servers, or the URL to enter at a client that its vendor
    /// hosts; null if it cannot be connected this way.
    pub text: Option<String>,
    /// What else to do, or why there is no text.
    pub note: Option<String>,
}

/// Returns how clients connect to this gateway, for all clients or one; `agent` is the agent whose key they are given, if any.
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
    let needs_key = identities.are_required();
    let local = McpClient::ALL.map(|client| snippet(client, &url, needs_key));
    let config = control.gateway().config();
    let issuers = config.identity.issuers.iter();
    let server = HostedServer {
        url: &url,
        issuers: &issuers
            .map(|issuer| issuer.issuer.clone())
            .collect::<Vec<_>>(),
    };
    let hosted = HostedClient::ALL.map(|client| hosted_snippet(client, &server));
    let all: Vec<ClientSnippet> = local.into_iter().chain(hosted).collect();
    let Some(name) = client else {
        return Ok(all);
    };
    let names = all.iter().map(|snippet| snippet.client).collect::<Vec<_>>();
    let unknown = || {
        OperationError::not_found("client", name).see(&format!("there are {}", names.join(", ")))
    };
    let found = all.into_iter().find(|snippet| snippet.client == name);
    Ok(vec![found.ok_or_else(unknown)?])
}

/// Returns what to enter at a client that its vendor hosts: the URL and the steps.
fn hosted_snippet(client: HostedClient, server: &HostedServer<'_>) -> ClientSnippet {
    let lacking = client.lacking(server);
    ClientSnippet {
        client: client.name(),
        text: lacking.is_none().then(|| server.url.to_owned()),
        note: Some(lacking.unwrap_or_else(|| client.steps(server).join(". "))),
    }
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
            Ok(_) if by_header => Some("replace KEY with the key".to_owned()),
            Ok(_) => None,
        },
        text: written.ok().map(|entry| client.document(NAME, &entry)),
    }
}
