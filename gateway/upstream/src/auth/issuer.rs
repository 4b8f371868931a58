//! Finds the issuer of a server's tokens.

use std::time::Duration;

use tokio::time::timeout;
use url::Url;
use weir_oauth::{
    AuthorizationServerMetadata, NetworkReach, OauthFault, find_issuer, find_resource,
};

use crate::link::ask_for_challenge;

/// The time that a server may take to refuse a request without a token.
const CHALLENGE_MAX: Duration = Duration::from_secs(10);

/// The issuer of a server's tokens, and what to ask it for.
#[derive(Clone, Debug)]
pub struct ServerIssuer {
    pub metadata: AuthorizationServerMetadata,
    /// The name of the server as a resource.
    pub resource: String,
    pub scopes: Vec<String>,
    /// The networks in which its endpoints may be.
    pub reach: NetworkReach,
}

/// Returns what a server asks for (`WWW-Authenticate`) if it answers 401 to a request without a token.
pub async fn find_challenge(url: &str) -> Option<String> {
    timeout(CHALLENGE_MAX, ask_for_challenge(url)).await.ok()?
}

/// Finds the issuer of a server's tokens. `issuer`: the one to take, where an operator chose it.
pub async fn find_server_issuer(
    url: &str,
    issuer: Option<&str>,
) -> Result<ServerIssuer, OauthFault> {
    let server = Url::parse(url)
        .map_err(|_| OauthFault::Unusable("the address of the server is not a URL".to_owned()))?;
    let reach = NetworkReach::named_by(&server).await;
    let challenge = find_challenge(url).await;
    let found = find_resource(&server, challenge.as_deref(), reach).await?;
    let chosen = match issuer {
        None => &found.issuers[0],
        Some(wanted) => found
            .issuers
            .iter()
            .find(|issuer| *issuer == wanted)
            .ok_or_else(|| {
                OauthFault::Unusable(format!(
                    "the server no longer names `{wanted}` as an issuer of its tokens"
                ))
            })?,
    };
    let metadata = find_issuer(chosen, reach).await?;
    Ok(ServerIssuer {
        metadata,
        resource: found.resource,
        scopes: found.scopes,
        reach,
    })
}
