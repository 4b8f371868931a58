//! Defines the gateway's requests to a plugin with tools, the answers of the tools, and the gate that accepts their builds.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwapOption;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use weir_text::shorten;

use crate::{CallContext, bindings::v0_1::weir::plugin::answers};

/// The bound on the state that a plugin has kept between a question and its answer: it travels through the caller.
const STATE_MAX_BYTES: usize = 8 << 10;

/// One tool of one contract version. It is cheap to clone, and prepared once per snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRef {
    pub plugin: Arc<str>,
    /// The plugin's name for the tool; the published name may begin with a prefix.
    pub tool: Arc<str>,
    /// sha256, hex, of the definitions that the contract was made from. No build that defines something else is called.
    pub definitions: Arc<str>,
    /// `contract@version`, as the tool receives it.
    pub contract: Arc<str>,
    /// Whether the tool was published as one that reads: then no connection lets it write.
    pub read_only: bool,
}

/// The parts of one call of a tool.
#[derive(Clone, Debug)]
pub struct ToolInvocation {
    pub agent: Arc<str>,
    /// JSON object: the arguments of the tool, or the params of the method if it is an item.
    pub arguments: String,
    /// A prompt or a resource is asked for: [`ToolRef::tool`] is the method.
    pub is_item: bool,
    /// JSON object: what the caller declares that it can answer. `None`: it cannot be asked.
    pub capabilities: Option<String>,
    /// JSON `{"state", "responses"}`: the caller's answer to an [`ToolAnswer::InputRequired`].
    pub resumed: Option<String>,
}

/// The answer of a tool as the guest wrote it, which is not to be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolAnswer {
    Complete {
        /// JSON.
        value: Option<String>,
        /// JSON array of content blocks.
        content: Option<String>,
    },
    /// The tool has questions for its caller, and is called again with the answers.
    InputRequired {
        /// JSON object: key → `{"method", "params"}`.
        requests: String,
        state: Option<String>,
    },
}

/// The tools that a build defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinitions {
    /// JSON array of MCP Tool objects, as the guest wrote it. Of a plugin with prompts or resources: an object of what the
    /// guest wrote, `{"tools": [...], "items": {...}}`.
    pub text: Arc<str>,
    /// sha256 of the text, hex.
    pub digest: Arc<str>,
}

/// The part of the gateway that decides which tools are published.
pub trait ToolGate: Send + Sync {
    /// Decides whether this build may serve. It is asked before the build goes live; the current build serves in the
    /// meantime, and after a refusal.
    fn admit<'a>(
        &'a self,
        plugin: &'a str,
        build: &'a str,
        definitions: &'a ToolDefinitions,
    ) -> Admitting<'a>;

    /// Builds were swapped: what waited for one can be served.
    fn loaded(&self) {}

    /// Called when a plugin reports that something of it has changed.
    fn changed(&self, _plugin: &str, _changed: PluginChange) {}

    /// The plugins that published contracts call, and the digest of the definitions each was promised with.
    fn promised(&self) -> Vec<(String, Arc<str>)>;
}

/// A change that a plugin reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginChange {
    Tools,
    Prompts,
    Resources,
    /// The contents of the resource of this URI.
    Resource(String),
}

/// The gate, once there is one: every instance of a plugin may have to report something.
pub(crate) type Gate = Arc<ArcSwapOption<Arc<dyn ToolGate>>>;

/// The decision about a build, once it is made.
pub type Admitting<'a> = Pin<Box<dyn Future<Output = BuildAdmission> + Send + 'a>>;

/// Whether a build of a plugin with these tools may serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildAdmission {
    Yes,
    /// The change waits for an approval, for this reason.
    Held(String),
    Refused(String),
}

impl ToolDefinitions {
    /// Creates definitions from their text, with its SHA-256.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            digest: hex::encode(Sha256::digest(text)).into(),
        }
    }

    /// `tools` and `items` as the guest wrote them.
    pub(crate) fn text(tools: &str, items: Option<&str>) -> String {
        match items {
            None => tools.to_owned(),
            Some(items) => format!(r#"{{"tools":{tools},"items":{items}}}"#),
        }
    }
}

impl ToolAnswer {
    /// Returns the bytes that the guest handed over.
    pub fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Complete { value, content } => length(value) + length(content),
            Self::InputRequired { requests, state } => requests.len() + length(state),
        }
    }

    /// Reads an answer. Its kind is a word from the guest: one that this gateway does not know must not pass for an answer.
    pub(crate) fn read(answer: answers::Answer) -> Result<Self, String> {
        let answers::Answer {
            kind,
            value,
            content,
            requests,
            state,
            options: _,
        } = answer;
        match (kind.as_str(), requests) {
            ("complete", None) if state.is_none() => Ok(Self::Complete { value, content }),
            ("complete", _) => Err("its answer is `complete` and asks for something".to_owned()),
            ("input-required", _) if value.is_some() || content.is_some() => {
                Err("its answer is `input-required` and has a value or content".to_owned())
            }
            ("input-required", Some(_))
                if state
                    .as_ref()
                    .is_some_and(|state| state.len() > STATE_MAX_BYTES) =>
            {
                Err(format!("its state takes more than {STATE_MAX_BYTES} bytes"))
            }
            ("input-required", Some(requests)) => Ok(Self::InputRequired { requests, state }),
            ("input-required", None) => {
                Err("its answer is `input-required` and has no `requests`".to_owned())
            }
            _ => Err(format!(
                "its answer is of the kind {:?}",
                shorten(&kind, 32)
            )),
        }
    }
}

/// A tool's information about its call.
#[derive(Serialize)]
struct InvocationContext<'a> {
    agent: &'a str,
    tenant: &'a str,
    call_id: &'a str,
    contract: &'a str,
    /// Milliseconds since 1970, as the plugin's own clock counts them.
    deadline_ms: u64,
    /// What the caller can be asked, in the form of MCP's client capabilities; absent if it cannot be asked anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_capabilities: Option<&'a RawValue>,
}

/// JSON.
pub(crate) fn context_json(
    context: &CallContext,
    tool: &ToolRef,
    invocation: &ToolInvocation,
) -> String {
    let left = context.deadline.saturating_duration_since(Instant::now());
    let deadline = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        + left;
    let context = InvocationContext {
        agent: &invocation.agent,
        tenant: &context.tenant,
        call_id: &context.call_id,
        contract: &tool.contract,
        deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        client_capabilities: invocation
            .capabilities
            .as_deref()
            .and_then(|stated| serde_json::from_str(stated).ok()),
    };
    serde_json::to_string(&context).expect("plain data")
}
