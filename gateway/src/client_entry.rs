//! Writes a server into the configurations of MCP clients.

mod hosted;

use serde_json::{Map, Value, json};
use weir_upstream::{UpstreamFailure, UpstreamFailureKind};

pub use self::hosted::{HostedClient, HostedServer};

/// A client whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpClient {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    VsCode,
    Codex,
    Cline,
    Gemini,
    Windsurf,
    Zed,
}

/// How a client reaches a server. `key`: the variable that holds the client's key.
pub enum ServerEntry {
    Command {
        program: String,
        arguments: Vec<String>,
        key: Option<String>,
    },
    Url {
        url: String,
        headers: Vec<(String, String)>,
        key: Option<String>,
    },
}

/// The variable from which Weir reads the key on stdio.
pub const KEY: &str = "WEIR_KEY";

impl McpClient {
    pub const ALL: [Self; 9] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Cline,
        Self::Gemini,
        Self::Windsurf,
        Self::Zed,
    ];

    /// Returns the name that `weir connect` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Cline => "cline",
            Self::Gemini => "gemini",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
        }
    }

    /// Returns the text of a configuration that names one server: JSON, or TOML for Codex.
    pub fn document(self, name: &str, entry: &Value) -> String {
        let document = json!({ self.member(): { name: entry } });
        match self {
            Self::Codex => toml::to_string(&document).expect("plain data"),
            _ => serde_json::to_string_pretty(&document).expect("plain data") + "\n",
        }
    }

    /// Returns the member that holds the servers by name.
    pub fn member(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// Returns how this client's configuration writes the value of an environment variable; `None` if it cannot.
    /// Microsoft's APM checked it with the clients (microsoft.github.io/apm/reference/mcp-variable-compatibility); for Zed
    /// it is github.com/zed-industries/zed/issues/60459. Codex names the variable itself, see [`McpClient::entry`].
    pub fn reference(self, variable: &str) -> Option<String> {
        match self {
            Self::ClaudeCode | Self::Gemini => Some(format!("${{{variable}}}")),
            Self::Cursor | Self::VsCode | Self::Windsurf => Some(format!("${{env:{variable}}}")),
            Self::Codex => Some(variable.to_owned()),
            Self::ClaudeDesktop | Self::Cline | Self::Zed => None,
        }
    }

    /// Returns the entry of the server in this client's format. The failure states what the client cannot express.
    pub fn entry(self, entry: &ServerEntry) -> Result<Value, UpstreamFailure> {
        let (ServerEntry::Command { key, .. } | ServerEntry::Url { key, .. }) = entry;
        let key = key.as_deref().map(|variable| {
            Ok((
                variable,
                self.reference(variable)
                    .ok_or_else(|| self.no_variables())?,
            ))
        });
        let key: Option<(&str, String)> = key.transpose()?;
        let (url, headers) = match entry {
            ServerEntry::Command {
                program, arguments, ..
            } => {
                let mut written = json!({ "command": program, "args": arguments });
                if matches!(self, Self::ClaudeCode | Self::VsCode) {
                    written = json!({ "type": "stdio", "command": program, "args": arguments });
                }
                match key {
                    None => {}
                    // Codex passes only these variables on to a server.
                    Some((KEY, _)) if self == Self::Codex => written["env_vars"] = json!([KEY]),
                    Some((variable, _)) if self == Self::Codex => {
                        let cause = format!(
                            "Codex hands a variable on under its own name, but Weir does not read {variable}"
                        );
                        let failure = UpstreamFailure::new(
                            UpstreamFailureKind::Start,
                            format!("the key in {KEY}"),
                            cause,
                        );
                        return Err(
                            failure.step(format!("name the variable like this: --key-env {KEY}"))
                        );
                    }
                    Some((_, reference)) => written["env"] = json!({ KEY: reference }),
                }
                return Ok(written);
            }
            ServerEntry::Url { url, headers, .. } => (url, headers),
        };
        let mut written = match self {
            Self::ClaudeDesktop => {
                let expected = "a client that takes a URL";
                return Err(UpstreamFailure::new(
                    UpstreamFailureKind::Start,
                    expected,
                    "Claude Desktop starts servers itself",
                )
                .step("leave out --url, and Claude Desktop starts Weir")
                .step("or add the URL in its settings, under Connectors"));
            }
            Self::ClaudeCode | Self::VsCode => json!({ "type": "http", "url": url }),
            Self::Cline => json!({ "type": "streamableHttp", "url": url }),
            Self::Gemini => json!({ "httpUrl": url }),
            Self::Windsurf => json!({ "serverUrl": url }),
            Self::Cursor | Self::Codex | Self::Zed => json!({ "url": url }),
        };
        let mut headers: Map<String, Value> = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        match key {
            Some((variable, _)) if self == Self::Codex => {
                written["bearer_token_env_var"] = variable.into()
            }
            Some((_, reference)) => drop(headers.insert(
                "Authorization".to_owned(),
                format!("Bearer {reference}").into(),
            )),
            None => {}
        }
        if !headers.is_empty() {
            written[if self == Self::Codex {
                "http_headers"
            } else {
                "headers"
            }] = headers.into();
        }
        Ok(written)
    }

    fn no_variables(self) -> UpstreamFailure {
        let name = self.name();
        UpstreamFailure::new(
            UpstreamFailureKind::Start,
            "a client that reads variables of its environment",
            format!("`{name}` takes the values of its configuration literally"),
        )
        .step("leave out --key-env, and write the key itself: --header 'Authorization: Bearer KEY' with --url")
        .step(format!("or, where {name} starts Weir, \"env\": {{\"{KEY}\": \"KEY\"}} in the entry"))
    }
}
