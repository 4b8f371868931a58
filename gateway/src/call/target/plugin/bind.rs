//! Makes the invocation of a plugin's function.

use serde_json::{Map, Value, json};
use weir_plugin_host::ToolInvocation;

use crate::{
    call::{
        CallError,
        asking::{self, CallerInteraction},
    },
    catalogue::{CatalogueTool, PluginTool},
    cursor::CursorCipher,
    identity::CallerIdentity,
};

/// Returns the invocation, with defaults filled in, and the caller's answers to an earlier question.
pub(in crate::call::target) fn bind(
    cursors: &CursorCipher,
    caller: &CallerIdentity,
    tool: &CatalogueTool,
    target: &PluginTool,
    mut arguments: Map<String, Value>,
    asking: CallerInteraction<'_>,
) -> Result<ToolInvocation, CallError> {
    for (name, default) in &target.defaults {
        if !arguments.contains_key(name) {
            arguments.insert(name.clone(), default.clone());
        }
    }
    let arguments = Value::Object(arguments).to_string();
    let bound = asking::bound(caller, tool, &target.source.definitions, &arguments);
    let resumed = asking
        .resumed
        .map(|resumed| asking::open(cursors, &bound, resumed))
        .transpose()?;
    let read = |(state, responses)| json!({ "state": state, "responses": responses }).to_string();
    let resumed = resumed.map(read);
    Ok(ToolInvocation {
        agent: caller.agent.clone(),
        arguments,
        is_item: false,
        capabilities: asking.capabilities.map(str::to_owned),
        resumed,
    })
}
