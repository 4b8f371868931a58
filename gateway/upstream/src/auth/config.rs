//! Holds what an operator writes under `[upstreams.NAME.auth]` of `weir.toml`.

use std::{fmt, path::Path, path::PathBuf};

use serde::Deserialize;
use weir_connections::config::{resolve, resolve_named, secret_files};
use weir_oauth::{NetworkReach, RegisteredClient, SecretText};

use crate::config::{UpstreamIsolation, Wrong};

/// The authorization of requests to a server. Secrets may be references, as in `headers`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AuthConfig {
    /// By a header that is the same for all.
    Header {
        #[serde(default = "authorization")]
        name: String,
        value: String,
    },
    /// By tokens of the gateway itself.
    ClientCredentials(MachineConfig),
    /// By the tokens of accounts that callers connect.
    Oauth(OauthConfig),
    /// By tokens that the callers' own are exchanged for.
    Exchange(ExchangeConfig),
}

impl AuthConfig {
    /// Returns the word of the configuration.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Header { .. } => "header",
            Self::ClientCredentials(_) => "client_credentials",
            Self::Oauth(_) => "oauth",
            Self::Exchange(_) => "exchange",
        }
    }
}

/// The gateway's own account at a server, for all callers: OAuth's client credentials.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineConfig {
    pub client_id: String,
    pub client_secret: String,
    /// The endpoint that issues tokens; by default it comes from the server's metadata.
    #[serde(default)]
    pub token_url: Option<String>,
    /// The name of the server as a resource; by default the one in its metadata.
    #[serde(default)]
    pub resource: Option<String>,
    /// By default those that the server's metadata names.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// The client for accounts of callers, which each caller connects by signing in.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OauthConfig {
    /// The client that was registered by hand; by default the gateway registers itself.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// The issuer to sign in at, where the server names several.
    pub issuer: Option<String>,
    pub resource: Option<String>,
    pub scopes: Vec<String>,
}

/// The client that exchanges callers' tokens for those of a server (RFC 8693).
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeConfig {
    pub client_id: String,
    #[serde(default)]
    pub client_secret: Option<String>,
    /// The endpoint that exchanges tokens; by default it comes from the server's metadata.
    #[serde(default)]
    pub token_url: Option<String>,
    #[serde(default)]
    pub audience: Option<String>,
    #[serde(default)]
    pub resource: Option<String>,
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The client at the server's own issuer. With it the callers' tokens are exchanged for identity assertions (ID-JAG),
    /// which that issuer takes.
    #[serde(default)]
    pub assertion: Option<AssertionClient>,
}

/// A client at the issuer of a server.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssertionClient {
    pub client_id: String,
    #[serde(default)]
    pub client_secret: Option<String>,
}

fn authorization() -> String {
    "Authorization".to_owned()
}

impl AuthConfig {
    /// Returns the faults other than the types of its values.
    pub(crate) fn check(
        &self,
        url: Option<&str>,
        has_header: bool,
        isolation: UpstreamIsolation,
    ) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        let mut note = |key, what: &str, hint: &str| {
            wrong.push((key, what.to_owned(), hint.to_owned()));
        };
        match url {
            None => note(
                "auth",
                "`auth` is for a URL",
                "leave it out; a command takes `env`",
            ),
            // One that is a reference is looked at when it is resolved.
            Some(url)
                if !url.contains("${") && !url.starts_with("env:") && !url.starts_with("file:") =>
            {
                if let Err(error) = NetworkReach::Anywhere.check(url) {
                    let hint = "tokens are sent by https, or to a server of this machine";
                    note("url", &error, hint);
                }
            }
            Some(_) => {}
        }
        if has_header {
            let hint = "leave out the header, or `auth`";
            note(
                "headers",
                "`auth` sets the header `Authorization` too",
                hint,
            );
        }
        if matches!(self, Self::Exchange(config) if config.token_url.is_none()) {
            let what = "`exchange` sends the callers' own tokens to `token_url`";
            note("auth", what, "set `token_url`: that of the callers' issuer");
        }
        if matches!(self, Self::Exchange(_))
            && !matches!(
                isolation,
                UpstreamIsolation::Agent | UpstreamIsolation::Session
            )
        {
            let what = "with `kind = \"exchange\"` each caller has a token of its own";
            note("isolation", what, "leave it out, or set \"session\"");
        }
        for url in self.urls() {
            if let Err(error) = NetworkReach::Anywhere.check(url) {
                note(
                    "auth",
                    &error,
                    "write an https URL, or an http URL of this machine",
                );
            }
        }
        wrong
    }

    fn urls(&self) -> impl Iterator<Item = &String> {
        let url = match self {
            Self::Header { .. } => None,
            Self::ClientCredentials(config) => config.token_url.as_ref(),
            Self::Oauth(config) => config.issuer.as_ref(),
            Self::Exchange(config) => config.token_url.as_ref(),
        };
        url.into_iter()
    }

    fn secrets_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Header { value, .. } => vec![value],
            Self::ClientCredentials(config) => vec![&mut config.client_secret],
            Self::Oauth(config) => config.client_secret.iter_mut().collect(),
            Self::Exchange(config) => {
                let assertion = config.assertion.as_mut();
                let assertion = assertion.and_then(|client| client.client_secret.as_mut());
                config.client_secret.iter_mut().chain(assertion).collect()
            }
        }
    }

    /// Returns the files that its secrets are read from.
    pub(crate) fn secret_files(&self, base: &Path) -> Vec<PathBuf> {
        let mut copy = self.clone();
        let files = copy.secrets_mut().into_iter();
        files.flat_map(|value| secret_files(value, base)).collect()
    }

    /// Returns it with every secret filled in. The error names the reference, never a value.
    pub(crate) fn resolved(&self, base: &Path) -> Result<Self, String> {
        let mut resolved = self.clone();
        if let Self::Header { name, value } = &mut resolved {
            *value = resolve_named(name, value, base)?;
            return Ok(resolved);
        }
        for secret in resolved.secrets_mut() {
            let value = resolve(secret, base)?;
            weir_connections::mask::learn(&value);
            *secret = value;
        }
        Ok(resolved)
    }
}

/// Returns a client as the messages of OAuth name it.
pub(super) fn client(id: &str, secret: Option<&str>) -> RegisteredClient {
    RegisteredClient {
        id: id.to_owned(),
        secret: secret.map(SecretText::new),
    }
}

impl OauthConfig {
    /// Returns the client that was registered by hand.
    pub fn client(&self) -> Option<RegisteredClient> {
        let id = self.client_id.as_deref()?;
        Some(client(id, self.client_secret.as_deref()))
    }
}

/// Leaves out whatever may be a secret, written there or not.
impl fmt::Debug for AuthConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Header { .. } => "Header",
            Self::ClientCredentials(_) => "ClientCredentials",
            Self::Oauth(_) => "Oauth",
            Self::Exchange(_) => "Exchange",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UpstreamConfig;

    #[test]
    fn tokens_go_by_https_and_to_no_command() {
        let auth = |text: &str| serde_json::from_str::<AuthConfig>(text).expect("auth");
        let keys = |url: Option<&str>, text: &str, isolation| -> Vec<&str> {
            let config = UpstreamConfig {
                url: url.map(str::to_owned),
                command: url.is_none().then(|| "x".to_owned()).into_iter().collect(),
                auth: Some(auth(text)),
                isolation,
                ..UpstreamConfig::default()
            };
            let wrong = config.check("it").into_iter();
            wrong.map(|(key, ..)| key).collect()
        };
        let (oauth, there) = (r#"{"kind":"oauth"}"#, Some("https://a.example/mcp"));
        let exchange =
            r#"{"kind":"exchange","client_id":"c","token_url":"https://login.example/token"}"#;
        for (url, text, isolation, expected) in [
            (there, oauth, UpstreamIsolation::Tenant, None),
            (
                Some("http://127.0.0.1:1/mcp"),
                oauth,
                UpstreamIsolation::Agent,
                None,
            ),
            (None, oauth, UpstreamIsolation::Agent, Some("auth")),
            (
                Some("http://a.example/mcp"),
                oauth,
                UpstreamIsolation::Agent,
                Some("url"),
            ),
            (there, exchange, UpstreamIsolation::Agent, None),
            (
                there,
                exchange,
                UpstreamIsolation::Tenant,
                Some("isolation"),
            ),
            (
                there,
                r#"{"kind":"exchange","client_id":"c"}"#,
                UpstreamIsolation::Agent,
                Some("auth"),
            ),
            (
                there,
                r#"{"kind":"oauth","issuer":"http://a.example"}"#,
                UpstreamIsolation::Agent,
                Some("auth"),
            ),
        ] {
            let expected: Vec<&str> = expected.into_iter().collect();
            assert_eq!(keys(url, text, isolation), expected, "{url:?} {text}");
        }
        assert!(serde_json::from_str::<AuthConfig>(r#"{"kind":"oauth","tokne":"x"}"#).is_err());
        let machine = r#"{"kind":"client_credentials","client_id":"c","client_secret":"hunter2"}"#;
        assert!(!format!("{:?}", auth(machine)).contains("hunter2"));
    }
}
