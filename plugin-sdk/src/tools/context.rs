//! The caller and the contract of a tool's call, and the reports of the call on its way.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::{Elicited, dispatch};
use crate::error::{Error, Result};
use crate::schema::ToolSchema;
use crate::{log, progress};

/// The call a tool runs in. A parameter `&Context` receives it and is not part of the schema.
pub struct Context {
    json: String,
    /// The parsed members. Most tools never read them, so they are parsed at the first use.
    members: OnceCell<Map<String, Value>>,
    resumed: Option<String>,
    resumption: OnceCell<Map<String, Value>>,
}

impl Context {
    /// Creates a context from JSON; for a unit test, `Context::new("{}", None)`.
    pub fn new(json: impl Into<String>, resumed: Option<String>) -> Self {
        Self {
            json: json.into(),
            members: OnceCell::new(),
            resumed,
            resumption: OnceCell::new(),
        }
    }

    /// Returns the agent that calls, as the operator named it.
    pub fn agent(&self) -> Option<&str> {
        self.text("agent")
    }

    /// Returns the tenant the agent belongs to.
    pub fn tenant(&self) -> Option<&str> {
        self.text("tenant")
    }

    /// Returns the id of the call in the audit trail.
    pub fn call_id(&self) -> Option<&str> {
        self.text("call_id")
    }

    /// Returns the contract the tool is published under.
    pub fn contract(&self) -> Option<&str> {
        self.text("contract")
    }

    /// Returns the caller's language, if it is known: `de-AT`.
    pub fn locale(&self) -> Option<&str> {
        self.text("locale")
    }

    /// Whether the caller can be asked: `elicitation`, `sampling` or `roots`. A question that it cannot answer ends the call.
    pub fn can_ask(&self, capability: &str) -> bool {
        self.get("client_capabilities")
            .is_some_and(|stated| stated.get(capability).is_some())
    }

    /// When the call must have ended: milliseconds since 1970, like [`crate::clock::now_ms`].
    pub fn deadline_ms(&self) -> Option<u64> {
        self.get("deadline_ms")?.as_u64()
    }

    /// Returns any other member that the gateway passes about the call.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members().get(name)
    }

    /// Returns everything that the gateway passes about the call.
    pub fn members(&self) -> &Map<String, Value> {
        self.members
            .get_or_init(|| serde_json::from_str(&self.json).unwrap_or_default())
    }

    /// Returns the operator's settings for this plugin.
    pub fn settings<T: ToolSchema>(&self) -> Result<T> {
        let settings = dispatch::settings();
        let value = if settings.is_empty() {
            Value::Object(Map::new())
        } else {
            serde_json::from_str(&settings).unwrap_or_default()
        };
        T::read(value).map_err(|mismatch| {
            let place = if mismatch.path.is_empty() {
                String::new()
            } else {
                format!("`{}` ", mismatch.path)
            };
            Error::invalid(format!(
                "The settings of the plugin are wrong: {place}{}.",
                mismatch.message
            ))
            .field("settings")
        })
    }

    /// Reports how far the call has come; `done` must grow with every report.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        progress::report(done, total, message);
    }

    /// Returns `true` once the caller is gone: stop early.
    pub fn cancelled(&self) -> bool {
        progress::cancelled()
    }

    /// Ends a call whose caller is gone: `ctx.check_cancelled()?;`.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.cancelled() {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }

    /// Writes a line to the gateway's log.
    pub fn log(&self, message: &str) {
        log::info(message);
    }

    /// Returns `true` if this call continues one that asked back.
    pub fn is_resumed(&self) -> bool {
        self.resumed.is_some()
    }

    /// Returns the state that the question kept.
    pub fn state(&self) -> Option<&str> {
        self.resumption().get("state")?.as_str()
    }

    /// Returns the response to a question, as MCP writes it.
    pub fn response(&self, key: &str) -> Option<&Value> {
        self.resumption().get("responses")?.get(key)
    }

    /// Returns the response to a form; `None` if the form was not asked yet, or came back without a response.
    pub fn elicited<T: ToolSchema>(&self, key: &str) -> Result<Option<Elicited<T>>> {
        let Some(response) = self.response(key) else {
            return Ok(None);
        };
        Elicited::read(response)
            .map(Some)
            .map_err(|mismatch| mismatch.inside(key).into())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    fn resumption(&self) -> &Map<String, Value> {
        self.resumption.get_or_init(|| {
            self.resumed
                .as_deref()
                .and_then(|resumed| serde_json::from_str(resumed).ok())
                .unwrap_or_default()
        })
    }
}
