//! Tokens: of a code, of a token to renew with, of a client itself, and of another token.

use std::time::{Duration, SystemTime};

use oauth2::{
    ExtraTokenFields, StandardTokenResponse, TokenResponse as _, TokenType, basic::BasicTokenType,
};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use weir_connections::http::NetworkReach;

use crate::{
    AuthorizationServerMetadata, OauthFault, RegisteredClient, SecretText,
    request::{EndpointRequest, post},
};

const FORM: &str = "application/x-www-form-urlencoded";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const BEARER_ASSERTION: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const ASSERTION: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// The endpoint that issues tokens, and the client that asks it.
#[derive(Clone, Debug)]
pub struct TokenEndpoint {
    pub url: String,
    pub reach: NetworkReach,
    pub client: RegisteredClient,
    /// The secret goes into the form, for servers that take it nowhere else.
    pub is_secret_posted: bool,
}

/// The answer of a token endpoint.
#[derive(Clone, Debug)]
pub struct TokenSet {
    pub access: SecretText,
    pub refresh: Option<SecretText>,
    /// The ID token of a sign-in by OpenID Connect, not validated.
    pub identity: Option<SecretText>,
    pub expires: Option<SystemTime>,
    /// The granted scopes, if the server states them.
    pub scopes: Option<Vec<String>>,
}

/// The exchange of a caller's token for another one (RFC 8693).
#[derive(Clone, Copy, Debug)]
pub struct TokenExchange<'e> {
    pub subject: &'e SecretText,
    pub audience: Option<&'e str>,
    pub resource: Option<&'e str>,
    pub scopes: &'e [String],
    /// Whether the request is for an assertion of the caller's identity, for another authorization server (ID-JAG), instead
    /// of a token.
    pub is_assertion: bool,
}

/// An assertion of the caller's identity, to be redeemed at its authorization server (RFC 7523).
#[derive(Clone, Copy, Debug)]
pub struct AssertionRequest<'e> {
    pub assertion: &'e SecretText,
    pub resource: Option<&'e str>,
    pub scopes: &'e [String],
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct MoreFields {
    id_token: Option<String>,
    issued_token_type: Option<String>,
}

impl ExtraTokenFields for MoreFields {}

/// The type of a token. That of an assertion is `N_A`, since it is not an access token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
struct AnyTokenType(String);

impl TokenType for AnyTokenType {}

impl TokenSet {
    /// Returns the lifetime of the access token from now on, if the server states it.
    pub fn lasts(&self) -> Option<Duration> {
        let now = SystemTime::now();
        let expires = self.expires?;
        Some(expires.duration_since(now).unwrap_or_default())
    }
}

impl TokenEndpoint {
    /// Creates the token endpoint of a server for one client. The secret of the client goes into the body only if the
    /// server takes no other place.
    pub fn new(
        server: &AuthorizationServerMetadata,
        client: RegisteredClient,
        reach: NetworkReach,
    ) -> Self {
        let methods = &server.token_endpoint_auth_methods_supported;
        let takes = |method: &str| methods.iter().any(|other| other == method);
        Self {
            url: server.token_endpoint.clone(),
            reach,
            client,
            is_secret_posted: takes("client_secret_post") && !takes("client_secret_basic"),
        }
    }

    /// Returns an endpoint that an operator named.
    pub fn at(url: &str, client: RegisteredClient) -> Self {
        Self {
            url: url.to_owned(),
            reach: NetworkReach::Anywhere,
            client,
            is_secret_posted: false,
        }
    }

    async fn ask(&self, parameters: &[(&str, &str)]) -> Result<TokenSet, OauthFault> {
        let answer = self.post(parameters).await?;
        self.read(&answer, parameters)
    }

    async fn post<T: DeserializeOwned>(
        &self,
        parameters: &[(&str, &str)],
    ) -> Result<T, OauthFault> {
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let (id, secret): (String, Option<String>) = (
            encoded(&self.client.id),
            self.client
                .secret
                .as_ref()
                .map(|secret| encoded(secret.reveal())),
        );
        let mut form = Vec::from(parameters);
        let basic = match &self.client.secret {
            Some(_) if !self.is_secret_posted => secret.as_deref().map(|secret| (&*id, secret)),
            Some(secret) => {
                form.push(("client_id", &self.client.id));
                form.push(("client_secret", secret.reveal()));
                None
            }
            None => {
                form.push(("client_id", &self.client.id));
                None
            }
        };
        const SECRET: [&str; 6] = [
            "code",
            "token",
            "code_verifier",
            "refresh_token",
            "subject_token",
            "assertion",
        ];
        let secrets = parameters.iter().filter(|(name, _)| SECRET.contains(name));
        let secrets = secrets.map(|(_, value)| *value);
        let secrets = secrets.chain(self.client.secret.as_ref().map(SecretText::reveal));
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        post(EndpointRequest {
            url: &self.url,
            reach: self.reach,
            kind: FORM,
            body,
            basic,
            secrets: secrets.collect(),
        })
        .await
    }

    fn read(
        &self,
        answer: &StandardTokenResponse<MoreFields, AnyTokenType>,
        parameters: &[(&str, &str)],
    ) -> Result<TokenSet, OauthFault> {
        let unusable = |why: &str| Err(OauthFault::unusable(format!("{} {why}", self.url)));
        let is_assertion = parameters.contains(&("requested_token_type", ASSERTION));
        let more = answer.extra_fields();
        if is_assertion {
            if more.issued_token_type.as_deref() != Some(ASSERTION) {
                return unusable("gives another token than an identity assertion");
            }
        } else if !answer
            .token_type()
            .0
            .eq_ignore_ascii_case(BasicTokenType::Bearer.as_ref())
        {
            return unusable("gives a token that is not of the type `Bearer`");
        }
        let access = answer.access_token().secret();
        if access.is_empty() || !access.bytes().all(|byte| byte.is_ascii_graphic()) {
            return unusable("gives a token that no header can hold");
        }
        let text = |text: &String| SecretText::new(text.as_str());
        // A lifetime of more than a century is ignored.
        let lasts = answer
            .expires_in()
            .filter(|lasts| *lasts < Duration::from_secs(100 * 31_557_600));
        Ok(TokenSet {
            access: text(access),
            refresh: answer.refresh_token().map(|token| text(token.secret())),
            identity: more.id_token.as_ref().map(text),
            expires: lasts.map(|lasts| SystemTime::now() + lasts),
            scopes: answer
                .scopes()
                .map(|scopes| scopes.iter().map(|scope| scope.to_string()).collect()),
        })
    }
}

/// Ends the grant of a token (RFC 7009). `endpoint` has the URL for that.
pub async fn revoke_token(endpoint: &TokenEndpoint, token: &SecretText) -> Result<(), OauthFault> {
    let answer = endpoint
        .post::<IgnoredAny>(&[("token", token.reveal())])
        .await;
    match answer {
        // A success has no content.
        Ok(_) | Err(OauthFault::Unusable(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Redeems the code of a sign-in.
pub async fn redeem_code(
    endpoint: &TokenEndpoint,
    code: &SecretText,
    verifier: &SecretText,
    redirect_uri: &str,
    resource: Option<&str>,
) -> Result<TokenSet, OauthFault> {
    let mut parameters = vec![
        ("grant_type", "authorization_code"),
        ("code", code.reveal()),
        ("redirect_uri", redirect_uri),
        ("code_verifier", verifier.reveal()),
    ];
    parameters.extend(resource.map(|resource| ("resource", resource)));
    endpoint.ask(&parameters).await
}

/// Renews a token. The answer may contain another refresh token, which replaces the used one.
pub async fn renew_token(
    endpoint: &TokenEndpoint,
    refresh: &SecretText,
    resource: Option<&str>,
) -> Result<TokenSet, OauthFault> {
    let mut parameters = vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.reveal()),
    ];
    parameters.extend(resource.map(|resource| ("resource", resource)));
    endpoint.ask(&parameters).await
}

/// Asks for a token of the client itself.
pub async fn request_client_token(
    endpoint: &TokenEndpoint,
    resource: Option<&str>,
    scopes: &[String],
) -> Result<TokenSet, OauthFault> {
    let scope = scopes.join(" ");
    let mut parameters = vec![("grant_type", "client_credentials")];
    parameters.extend(resource.map(|resource| ("resource", resource)));
    parameters.extend((!scope.is_empty()).then_some(("scope", &*scope)));
    endpoint.ask(&parameters).await
}

/// Exchanges a caller's token.
pub async fn exchange_token(
    endpoint: &TokenEndpoint,
    exchange: TokenExchange<'_>,
) -> Result<TokenSet, OauthFault> {
    let scope = exchange.scopes.join(" ");
    let wanted = if exchange.is_assertion {
        ASSERTION
    } else {
        ACCESS_TOKEN
    };
    let mut parameters = vec![
        ("grant_type", EXCHANGE),
        ("subject_token", exchange.subject.reveal()),
        ("subject_token_type", ACCESS_TOKEN),
        ("requested_token_type", wanted),
    ];
    parameters.extend(exchange.audience.map(|audience| ("audience", audience)));
    parameters.extend(exchange.resource.map(|resource| ("resource", resource)));
    parameters.extend((!scope.is_empty()).then_some(("scope", &*scope)));
    endpoint.ask(&parameters).await
}

/// Redeems an assertion of the caller's identity.
pub async fn redeem_assertion(
    endpoint: &TokenEndpoint,
    request: AssertionRequest<'_>,
) -> Result<TokenSet, OauthFault> {
    let scope = request.scopes.join(" ");
    let mut parameters = vec![
        ("grant_type", BEARER_ASSERTION),
        ("assertion", request.assertion.reveal()),
    ];
    parameters.extend(request.resource.map(|resource| ("resource", resource)));
    parameters.extend((!scope.is_empty()).then_some(("scope", &*scope)));
    endpoint.ask(&parameters).await
}
