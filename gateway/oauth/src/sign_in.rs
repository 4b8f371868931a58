//! A person's sign-in at an authorization server: the URL for the browser, and the parameters with which it returns.

use oauth2::{CsrfToken, PkceCodeChallenge};
use url::Url;

use crate::{AuthorizationServerMetadata, OauthFault, RegisteredClient, SecretText};

/// The bound on a parameter of an answer.
const PARAMETER_MAX_BYTES: usize = 4 << 10;

/// The parameters of a sign-in.
#[derive(Clone, Copy, Debug)]
pub struct SignInRequest<'r> {
    pub client: &'r RegisteredClient,
    pub redirect_uri: &'r str,
    /// The server that the token is for (RFC 8707).
    pub resource: Option<&'r str>,
    pub scopes: &'r [String],
    /// The number that an ID token has to repeat, of a sign-in by OpenID Connect.
    pub nonce: Option<&'r str>,
}

/// A sign-in that has begun.
#[derive(Clone, Debug)]
pub struct BegunSignIn {
    /// The URL to which the browser is redirected.
    pub url: String,
    /// What the answer has to repeat.
    pub state: SecretText,
    /// The verifier, known only to the process that began the sign-in (PKCE).
    pub verifier: SecretText,
}

/// The parameters with which a browser returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInAnswer {
    pub state: SecretText,
    issuer: Option<String>,
    outcome: Result<SecretText, (String, Option<String>)>,
}

/// Begins a sign-in.
pub fn begin_sign_in(
    server: &AuthorizationServerMetadata,
    request: SignInRequest<'_>,
) -> Result<BegunSignIn, OauthFault> {
    let endpoint = server.authorization_endpoint.as_deref();
    let endpoint = endpoint.and_then(|endpoint| Url::parse(endpoint).ok());
    let mut url = endpoint.ok_or_else(|| {
        OauthFault::unusable(format!("{} has no sign-in for people", server.issuer))
    })?;
    if !server.has_pkce() {
        return Err(OauthFault::unusable(format!(
            "{} does not declare support for PKCE with S256",
            server.issuer
        )));
    }
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let state = CsrfToken::new_random_len(32);
    let scope = request.scopes.join(" ");
    let mut query = url.query_pairs_mut();
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &request.client.id)
        .append_pair("redirect_uri", request.redirect_uri)
        .append_pair("state", state.secret())
        .append_pair("code_challenge", challenge.as_str())
        .append_pair("code_challenge_method", "S256");
    let optional = [
        ("scope", (!scope.is_empty()).then_some(&*scope)),
        ("resource", request.resource),
        ("nonce", request.nonce),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    // Without the word the official providers of OpenID Connect give no token to renew with.
    if request.scopes.iter().any(|scope| scope == "offline_access") {
        query.append_pair("prompt", "consent");
    }
    drop(query);
    Ok(BegunSignIn {
        url: url.to_string(),
        state: SecretText::new(state.secret().as_str()),
        verifier: SecretText::new(verifier.secret().as_str()),
    })
}

impl SignInAnswer {
    /// Reads the query of a callback; `None` if it is not an answer, or has a parameter twice.
    pub fn read(query: &str) -> Option<Self> {
        let (mut state, mut issuer, mut code) = (None, None, None);
        let (mut error, mut description) = (None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match &*name {
                "state" => &mut state,
                "iss" => &mut issuer,
                "code" => &mut code,
                "error" => &mut error,
                "error_description" => &mut description,
                _ => continue,
            };
            if place.is_some() || value.len() > PARAMETER_MAX_BYTES {
                return None;
            }
            *place = Some(value.into_owned());
        }
        let outcome = match (code, error) {
            (Some(code), None) => Ok(SecretText::new(code)),
            (_, Some(error)) => Err((error, description)),
            (None, None) => return None,
        };
        Some(Self {
            state: SecretText::new(state?),
            issuer,
            outcome,
        })
    }

    /// Returns the code, if the answer comes from this issuer. `names_issuer`: its answers name it (RFC 9207).
    pub fn into_code(self, issuer: &str, names_issuer: bool) -> Result<SecretText, OauthFault> {
        match &self.issuer {
            Some(named) if named != issuer => {
                return Err(OauthFault::unusable(
                    "the answer to the sign-in is one of another issuer",
                ));
            }
            None if names_issuer => {
                return Err(OauthFault::unusable(
                    "the answer to the sign-in does not name its issuer, as the answers of this issuer do",
                ));
            }
            _ => {}
        }
        self.outcome.map_err(|(error, description)| {
            OauthFault::refused(issuer, &error, description.as_deref())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(methods: &str) -> AuthorizationServerMetadata {
        let text = format!(
            r#"{{"issuer":"https://i.example","authorization_endpoint":"https://i.example/auth?x=1",
                "token_endpoint":"https://i.example/token","code_challenge_methods_supported":{methods}}}"#
        );
        serde_json::from_str(&text).expect("metadata")
    }

    #[test]
    fn a_sign_in_has_pkce_a_state_and_the_resource() {
        let client = RegisteredClient {
            id: "weir".to_owned(),
            secret: None,
        };
        let request = SignInRequest {
            client: &client,
            redirect_uri: "https://w.example/back",
            resource: Some("https://a.example/mcp"),
            scopes: &["tools".to_owned()],
            nonce: None,
        };
        let begun = begin_sign_in(&server(r#"["plain","S256"]"#), request).expect("begun");
        for part in [
            "https://i.example/auth?x=1&response_type=code&client_id=weir",
            "redirect_uri=https%3A%2F%2Fw.example%2Fback",
            "resource=https%3A%2F%2Fa.example%2Fmcp",
            "code_challenge_method=S256",
            "scope=tools",
        ] {
            assert!(begun.url.contains(part), "{} in {}", part, begun.url);
        }
        assert!(!begun.url.contains(begun.verifier.reveal()));
        assert!(!format!("{begun:?}").contains(begun.verifier.reveal()));
        for methods in ["[]", r#"["plain"]"#] {
            assert!(begin_sign_in(&server(methods), request).is_err());
        }
    }

    #[test]
    fn an_answer_of_another_issuer_has_no_code() {
        let issuer = "https://i.example";
        let code = |query: &str, names_issuer: bool| {
            let answer = SignInAnswer::read(query).expect("an answer");
            answer.into_code(issuer, names_issuer)
        };
        let own = "code=c&state=s&iss=https%3A%2F%2Fi.example";
        assert_eq!(code(own, true).expect("a code").reveal(), "c");
        assert!(code("code=c&state=s&iss=https%3A%2F%2Fi.example%2F", false).is_err());
        assert!(code("code=c&state=s", true).is_err());
        assert!(code("code=c&state=s", false).is_ok());
        assert!(code("error=access_denied&state=s", false).is_err());
        for query in [
            "",
            "code=c",
            "state=s",
            "code=c&code=d&state=s",
            "code=c&state=s&state=t",
        ] {
            assert_eq!(SignInAnswer::read(query), None, "{query}");
        }
    }
}
