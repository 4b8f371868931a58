//! Describes what a person enters at a client that its vendor hosts. Such a client accepts neither a file nor a key: its user
//! adds a URL, and signs in at an issuer.

/// A client that its vendor hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostedClient {
    ChatGpt,
    Claude,
}

/// The server that a hosted client must reach.
pub struct HostedServer<'a> {
    pub url: &'a str,
    /// The issuers at which people sign in.
    pub issuers: &'a [String],
}

impl HostedClient {
    pub const ALL: [Self; 2] = [Self::ChatGpt, Self::Claude];

    /// Returns the name that `weir connect` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChatGpt => "chatgpt",
            Self::Claude => "claude",
        }
    }

    /// Returns what is missing before the client can connect; `None` if nothing is known to be missing.
    pub fn lacking(self, server: &HostedServer<'_>) -> Option<String> {
        let name = self.name();
        if !server.url.starts_with("https://") {
            return Some(format!(
                "`{name}` reaches only https URLs on the internet, and this one is {}: set `[http] public_url`",
                server.url
            ));
        }
        server.issuers.is_empty().then(|| {
            format!(
                "`{name}` takes no keys, and no issuer is trusted here: add `[[identity.issuers]]`"
            )
        })
    }

    /// Returns the steps for a person at the client.
    pub fn steps(self, server: &HostedServer<'_>) -> Vec<String> {
        let url = server.url;
        let place = match self {
            Self::ChatGpt => {
                "in ChatGPT, open Settings, Apps & Connectors, Advanced settings, and switch on Developer mode; then press Create"
            }
            Self::Claude => {
                "in Claude, on the web or on the desktop, open Settings, Connectors, Add custom connector"
            }
        };
        let entered = match self {
            Self::ChatGpt => {
                format!("enter {url} as the MCP server URL, and choose OAuth as authentication")
            }
            Self::Claude => format!("enter {url} as the remote MCP server URL"),
        };
        let redirects = match self {
            Self::ChatGpt => {
                "the redirect URI that this dialog shows (https://chatgpt.com/connector/oauth/…)"
            }
            Self::Claude => {
                "the redirect URIs https://claude.ai/api/mcp/auth_callback and https://claude.com/api/mcp/auth_callback"
            }
        };
        vec![
            place.to_owned(),
            entered,
            format!(
                "leave the client's id and secret empty where the issuer lets clients register themselves or knows them by their \
                 document (CIMD); otherwise register one there with {redirects} and the scopes `tools` and `tools:write`, and \
                 enter its id"
            ),
            format!("connect, and sign in at {}", server.issuers.join(" or ")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_before_the_steps() {
        let issuers = ["https://login.example/".to_owned()];
        for client in HostedClient::ALL {
            let lacking = |url, issuers| client.lacking(&HostedServer { url, issuers });
            let plain = lacking("http://127.0.0.1:8484/mcp", &issuers);
            assert!(plain.is_some_and(|text| text.contains("public_url")));
            let alone = lacking("https://mcp.example/mcp", &[]);
            assert!(alone.is_some_and(|text| text.contains("identity.issuers")));
            assert_eq!(lacking("https://mcp.example/mcp", &issuers), None);
        }
    }
}
