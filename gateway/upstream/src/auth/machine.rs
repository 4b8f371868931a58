//! The gateway's own tokens (client credentials). They are kept only in memory.

use tokio::sync::Mutex;
use weir_oauth::{OauthFault, SecretText, TokenEndpoint, TokenSet, request_client_token};

use super::{
    BearerTokens, Granting, IssuedToken, MachineConfig, config::client, find_server_issuer,
    without_token,
};

pub(crate) struct MachineTokens {
    url: String,
    config: MachineConfig,
    /// Locked while a token is requested: all callers that need one wait for the same.
    issued: Mutex<Option<IssuedToken>>,
}

impl MachineTokens {
    pub(crate) fn new(url: &str, config: MachineConfig) -> Self {
        Self {
            url: url.to_owned(),
            config,
            issued: Mutex::default(),
        }
    }

    async fn request(&self) -> Result<TokenSet, OauthFault> {
        let config = &self.config;
        let client = client(&config.client_id, Some(&config.client_secret));
        if let Some(url) = &config.token_url {
            let endpoint = TokenEndpoint::at(url, client);
            return request_client_token(&endpoint, config.resource.as_deref(), &config.scopes)
                .await;
        }
        let issuer = find_server_issuer(&self.url, None).await?;
        let endpoint = TokenEndpoint::new(&issuer.metadata, client, issuer.reach);
        let resource = config.resource.as_deref().unwrap_or(&issuer.resource);
        let scopes = match config.scopes.is_empty() {
            true => &issuer.scopes,
            false => &config.scopes,
        };
        request_client_token(&endpoint, Some(resource), scopes).await
    }
}

impl BearerTokens for MachineTokens {
    fn token<'t>(&'t self, refused: Option<&'t SecretText>) -> Granting<'t, SecretText> {
        Box::pin(async move {
            let mut issued = self.issued.lock().await;
            if let Some(token) = issued.as_ref().and_then(|issued| issued.usable(refused)) {
                return Ok(token);
            }
            let tokens = self
                .request()
                .await
                .map_err(|fault| without_token(&fault))?;
            let token = tokens.access.clone();
            *issued = Some(IssuedToken::new(tokens));
            Ok(token)
        })
    }
}
