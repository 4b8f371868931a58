//! Answers what the component interface asks of a plugin with tools: the definitions, and one call.

use std::cell::RefCell;

use serde_json::Value;

use super::{Context, Definition, Tool};
use crate::error::{Error, Result};
use crate::plugin::Plugin;
use crate::schema::Fields;

/// A call as the gateway sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The tool's name.
    pub tool: String,
    /// A JSON object: validated, defaults put in.
    pub arguments: String,
    /// A JSON object: agent, tenant, call_id, contract, deadline_ms.
    pub context: String,
    /// JSON `{state, responses}` where this call continues one that asked back.
    pub resumed: Option<String>,
    /// A JSON object, for what the interface does not know yet.
    pub options: Option<String>,
}

/// The outcome of a call, as the gateway takes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// `complete` or `input-required`.
    pub kind: String,
    /// JSON that matches the output schema.
    pub value: Option<String>,
    /// A JSON array of MCP content blocks; if absent, the gateway makes a block from `value`.
    pub content: Option<String>,
    /// The requests of `input-required`: a JSON object, key → `{method, params}`.
    pub requests: Option<String>,
    /// The tool's own text of `input-required`, which the gateway seals.
    pub state: Option<String>,
    /// A JSON object, for what the interface does not know yet.
    pub options: Option<String>,
}

impl Reply {
    pub(crate) fn complete(value: Option<String>, content: Option<String>) -> Self {
        Self {
            kind: "complete".to_owned(),
            value,
            content,
            ..Self::default()
        }
    }
}

/// An exported tool, with its type erased.
#[derive(Clone, Copy)]
pub struct Entry {
    pub(crate) definition: &'static Definition,
    call: fn(Fields, &Context) -> Result<Reply>,
}

/// A function in `export!`.
pub struct Function<T>(std::marker::PhantomData<T>);

impl<T: Tool> Function<T> {
    /// Whether the function is a tool: here it is.
    pub const KNOWN: bool = true;

    /// The function's entry.
    pub const ENTRY: Entry = Entry {
        definition: &T::DEFINITION,
        call: T::call,
    };
}

/// Replaces [`Function`]'s own constants if the function is not a tool.
pub trait NoTool {
    /// Whether the function is a tool: here it is not.
    const KNOWN: bool = false;
    /// A stand-in entry.
    const ENTRY: Entry = Entry {
        definition: &NONE,
        call: |_, _| Err(Error::internal("This function is not a tool.")),
    };
}

impl<T> NoTool for Function<T> {}

const NONE: Definition = Definition {
    name: "",
    title: None,
    description: None,
    annotations: &[],
    requests: &[],
    task: None,
    input: None,
    meta: None,
    parameters: &[],
    output: None,
};

thread_local! { static SETTINGS: RefCell<String> = RefCell::default(); }

/// Keeps the operator's settings: JSON, or an empty text for none.
pub fn configure(settings: &str) -> Result<()> {
    if !settings.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(settings).is_err() {
        return Err(Error::invalid("The settings are not JSON.").field("settings"));
    }
    SETTINGS.set(settings.to_owned());
    Ok(())
}

pub(super) fn settings() -> String {
    SETTINGS.with_borrow(Clone::clone)
}

/// Returns the definitions of a plugin's tools: a JSON array of MCP Tool objects. Fails if a default does not meet its
/// own schema, or if two tools have one name.
pub fn definitions<P: Plugin>() -> Result<String> {
    let tools = P::tools();
    let mut out = String::from("[");
    for (at, tool) in tools.iter().enumerate() {
        let name = tool.definition.name;
        if tools[..at]
            .iter()
            .any(|earlier| earlier.definition.name == name)
        {
            return Err(Error::internal(format!(
                "Two tools have the name `{name}`: give one another by `name`."
            )));
        }
        if at > 0 {
            out.push(',');
        }
        out.push_str(&tool.definition.to_json()?);
    }
    out.push(']');
    Ok(out)
}

/// Calls one tool of a plugin.
pub fn call<P: Plugin>(invocation: Invocation) -> Result<Reply> {
    let Invocation {
        tool,
        arguments,
        context,
        resumed,
        ..
    } = invocation;
    let entry = P::tools()
        .into_iter()
        .find(|entry| entry.definition.name == tool);
    let entry =
        entry.ok_or_else(|| Error::unsupported(format!("This plugin has no tool `{tool}`.")))?;
    let arguments: Value = serde_json::from_str(&arguments)
        .map_err(|_| Error::invalid("The arguments are not JSON.").field("arguments"))?;
    (entry.call)(Fields::of(arguments)?, &Context::new(context, resumed))
}
