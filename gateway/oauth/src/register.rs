//! Makes a client known to an authorization server: by registration (RFC 7591), or by the document that describes it.

use serde::{Deserialize, Serialize};
use weir_connections::http::NetworkReach;

use crate::{
    AuthorizationServerMetadata, OauthFault, SecretText,
    request::{EndpointRequest, post},
};

/// A client as registered with an authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredClient {
    pub id: String,
    pub secret: Option<SecretText>,
}

/// The description of a client: for registration, and for the document of a client that is named by its URL.
#[derive(Clone, Debug, Serialize)]
pub struct ClientMetadata<'m> {
    /// The URL of the document, if this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<&'m str>,
    pub client_name: &'m str,
    pub redirect_uris: [&'m str; 1],
    grant_types: [&'static str; 2],
    response_types: [&'static str; 1],
    token_endpoint_auth_method: &'static str,
}

impl<'m> ClientMetadata<'m> {
    /// Describes a client that keeps no secret.
    pub fn new(client_id: Option<&'m str>, client_name: &'m str, redirect_uri: &'m str) -> Self {
        Self {
            client_id,
            client_name,
            redirect_uris: [redirect_uri],
            grant_types: ["authorization_code", "refresh_token"],
            response_types: ["code"],
            token_endpoint_auth_method: "none",
        }
    }
}

/// Registers a client.
pub async fn register_client(
    server: &AuthorizationServerMetadata,
    client: &ClientMetadata<'_>,
    reach: NetworkReach,
) -> Result<RegisteredClient, OauthFault> {
    #[derive(Deserialize)]
    struct RegistrationResponse {
        client_id: String,
        client_secret: Option<String>,
    }
    let Some(url) = &server.registration_endpoint else {
        return Err(OauthFault::unusable(format!(
            "{} registers no clients: register one there by hand, and set `client_id`",
            server.issuer
        )));
    };
    let body = serde_json::to_string(client).expect("plain data");
    let registered: RegistrationResponse = post(EndpointRequest {
        url,
        reach,
        kind: "application/json",
        body,
        basic: None,
        secrets: Vec::new(),
    })
    .await?;
    Ok(RegisteredClient {
        id: registered.client_id,
        secret: registered.client_secret.map(SecretText::new),
    })
}
