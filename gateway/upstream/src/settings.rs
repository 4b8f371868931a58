//! Defines what a session is opened to, and its bounds.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use serde::Deserialize;

use crate::{
    auth::{AuthConfig, TokenSource},
    sandbox::KeptFiles,
};

/// The address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamTarget {
    Command(UpstreamCommand),
    Url(UpstreamUrl),
}

/// A server that is started as a child and spoken to over its stdin and stdout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamCommand {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// The child's environment in addition to `PATH`, `HOME`, `LANG` and `TMPDIR`; nothing else of Weir's environment
    /// reaches the child.
    pub environment: BTreeMap<OsString, OsString>,
    pub folder: Option<PathBuf>,
    /// The words that start [`guard`](crate::guard()), before which the command is put. Without it a child outlives us
    /// when we are killed, unless it watches its stdin.
    pub guard: Vec<OsString>,
    /// What the guard keeps from the child.
    pub kept: KeptFiles,
}

/// A server that is reached over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamUrl {
    pub url: String,
    /// The headers sent with every request, which are never shown.
    pub headers: Vec<(String, String)>,
    pub transport: UpstreamTransport,
    /// The authorization of requests, in addition.
    pub auth: Option<AuthConfig>,
}

/// The transport that a server is reached by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamTransport {
    /// Streamable HTTP, or HTTP+SSE if the address does not support that.
    #[default]
    Either,
    Http,
    /// HTTP+SSE, of the revision 2024-11-05.
    Sse,
}

/// The era of the protocol that a server is addressed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EraPreference {
    /// The modern one where the server speaks it.
    #[default]
    #[serde(skip_deserializing)]
    Either,
    Legacy,
    Modern,
}

/// The settings of one session.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// The name of the server in the log.
    pub name: Arc<str>,
    pub era: EraPreference,
    /// The questions that the server may ask of a client; it may list other tools if it may ask.
    pub ask: Vec<ClientCapability>,
    /// Whether callers that must not see each other's messages share the session.
    pub is_shared: bool,
    /// The time from the start of the process, or of the first connection, until both have agreed on an era.
    pub start: Duration,
    pub request: Duration,
    /// The time that a child may keep silent to the question for its era before the other question is asked too.
    pub probe: Duration,
    /// The time without a `list_changed` after which the lists are taken for settled.
    pub quiet: Duration,
    pub bounds: UpstreamBounds,
    /// The tokens that requests carry.
    pub tokens: Option<TokenSource>,
}

/// What a server may ask of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientCapability {
    Elicitation,
    Sampling,
    Roots,
    /// MCP Apps.
    Ui,
}

/// Bounds on what a server sends.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamBounds {
    /// The bound on one message of the server: a line of its stdout, a body, an event.
    pub message_max_bytes: usize,
    /// The bound on all lists together.
    pub list_max_bytes: usize,
    pub items_max: usize,
    pub pages_max: usize,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            name: "".into(),
            era: EraPreference::Either,
            ask: Vec::new(),
            is_shared: false,
            start: Duration::from_secs(60),
            request: Duration::from_secs(30),
            probe: Duration::from_secs(5),
            quiet: Duration::from_millis(500),
            bounds: UpstreamBounds::default(),
            tokens: None,
        }
    }
}

impl Default for UpstreamBounds {
    fn default() -> Self {
        Self {
            message_max_bytes: 8 << 20,
            list_max_bytes: 4 << 20,
            items_max: 2000,
            pages_max: 1000,
        }
    }
}

impl std::fmt::Debug for UpstreamUrl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Url")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl ClientCapability {
    /// Returns the client's capability that the question needs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
            Self::Ui => "extensions",
        }
    }

    /// Returns a member of the capabilities, or of `extensions` in them.
    pub(crate) fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => r#""elicitation":{"form":{},"url":{}}"#,
            Self::Sampling => r#""sampling":{}"#,
            Self::Roots => r#""roots":{}"#,
            Self::Ui => {
                r#""io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}"#
            }
        }
    }
}
