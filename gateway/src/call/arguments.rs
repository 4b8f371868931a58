//! Arguments: validated against the published schema, then bound to what the source is asked.
//! What was validated is what is sent: everything below is re-serialised from the checked value.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use weir_contracts::{
    Verb,
    contract::{Binding, Destination},
    impact::Profile,
    validate::InvalidArguments,
};
use weir_plugin_host::{Change, Condition, Query};

use super::{
    CallError, Code,
    cursor::{Bound, Cursors},
};
use crate::{catalogue::CatalogueTool, identity::Caller};

/// What is asked of the source. Only this stage makes one.
pub(super) struct Input {
    pub ask: Ask,
    /// What the next page's cursor will be bound to.
    pub bound: Option<Bound>,
    /// What the contract lists to be recorded in clear.
    pub clear: Map<String, Value>,
    /// What they looked like, where that is kept.
    pub profile: Option<Profile>,
}

pub(super) enum Ask {
    Read(Arc<Query>),
    Write(Arc<Change>),
}

pub(super) fn bind(
    cursors: &Cursors,
    caller: &Caller,
    tool: &CatalogueTool,
    arguments: Option<&str>,
    keep_profile: bool,
) -> Result<Input, CallError> {
    let (Some(binding), Some(verb)) = (&tool.tool.binding, tool.tool.verb) else {
        return Err(CallError::new(Code::Internal, "This tool is not bound to a collection."));
    };
    let Some(validator) = tool.arguments() else {
        return Err(CallError::new(Code::Internal, "The arguments of this tool cannot be checked."));
    };
    let mut arguments = validator.validate(arguments.unwrap_or("{}")).map_err(CallError::invalid)?;
    let profile = keep_profile.then(|| tool.profiler().profile(&arguments));
    let in_clear = |field: &String| Some((field.clone(), arguments.get(field)?.clone()));
    let clear = tool.tool.audit_clear.iter().filter_map(in_clear).collect();
    binding.inject_defaults(&mut arguments);
    let input = match verb {
        Verb::Lookup => Input::of(Ask::Read(query(caller, tool, binding, &arguments, 2).into())),
        Verb::List => list(cursors, caller, tool, binding, arguments)?,
        Verb::Create => Input::of(write("create", caller, binding, &arguments)),
        Verb::Update => Input::of(write("update", caller, binding, &arguments)),
        Verb::Delete => Input::of(write("delete", caller, binding, &arguments)),
        Verb::Call => Input::of(write("call", caller, binding, &arguments)),
    };
    Ok(Input { clear, profile, ..input })
}

impl Input {
    fn of(ask: Ask) -> Self {
        Self { ask, bound: None, clear: Map::new(), profile: None }
    }
}

fn list(
    cursors: &Cursors,
    caller: &Caller,
    tool: &CatalogueTool,
    binding: &Binding,
    mut arguments: Map<String, Value>,
) -> Result<Input, CallError> {
    let cursor = arguments.shift_remove("cursor");
    let limit = arguments.shift_remove("limit").and_then(|limit| limit.as_u64());
    let limit = limit.map_or(binding.limit_default, |limit| u32::try_from(limit).unwrap_or(binding.limit_max));
    let mut query = query(caller, tool, binding, &arguments, limit.min(binding.limit_max));
    let conditions = format!("{:?}{:?}{:?}", query.conditions, query.order, query.options);
    let bound = Bound::new(&tool.name, tool.version.major, &caller.agent, &conditions);
    query.cursor = match cursor {
        Some(Value::String(sealed)) => {
            let open = cursors.open_sealed(&bound, &sealed);
            Some(open.ok_or_else(|| CallError::invalid(InvalidArguments::bad_cursor()))?)
        }
        _ => None,
    };
    Ok(Input { bound: Some(bound), ..Input::of(Ask::Read(query.into())) })
}

fn query(
    caller: &Caller,
    tool: &CatalogueTool,
    binding: &Binding,
    arguments: &Map<String, Value>,
    limit: u32,
) -> Query {
    let mut conditions = Vec::new();
    let mut params = Map::new();
    for (to, value) in binding.asked(arguments, &caller.agent, &caller.tenant) {
        match to {
            Destination::Condition { column, comparison } | Destination::Guard { column, comparison } => {
                let (comparison, value) = condition(comparison, value);
                let (column, comparison) = (column.clone(), comparison.to_owned());
                conditions.push(Condition { column, comparison, value: value.to_string() });
            }
            Destination::Param(name) | Destination::Column(name) => {
                params.insert(name.clone(), value);
            }
        }
    }
    Query {
        conditions,
        order: tool.order.clone(),
        columns: tool.columns.clone(),
        limit,
        cursor: None,
        options: (!params.is_empty()).then(|| json!({ "params": params }).to_string()),
    }
}

/// A null can only come from a nullable field; to equal null is to be empty.
fn condition(comparison: &str, value: Value) -> (&str, Value) {
    match (comparison, value) {
        ("equals", Value::Null) => ("is-empty", Value::Bool(true)),
        ("not-equals", Value::Null) => ("is-empty", Value::Bool(false)),
        asked => asked,
    }
}

fn write(verb: &str, caller: &Caller, binding: &Binding, arguments: &Map<String, Value>) -> Ask {
    let mut key = Map::new();
    let mut record = Map::new();
    let mut params = Map::new();
    let mut guards = Vec::new();
    for (to, value) in binding.asked(arguments, &caller.agent, &caller.tenant) {
        let (target, name) = match to {
            Destination::Condition { column, .. } => (&mut key, column),
            Destination::Column(column) => (&mut record, column),
            Destination::Param(name) => (&mut params, name),
            Destination::Guard { column, comparison } => {
                let (comparison, value) = condition(comparison, value);
                guards.push(json!({ "column": column, "comparison": comparison, "value": value }));
                continue;
            }
        };
        target.insert(name.clone(), value);
    }
    let mut members = Map::new();
    if let Some(operation) = &binding.operation {
        members.insert("operation".to_owned(), operation.clone().into());
    }
    if binding.operation.is_some() || !params.is_empty() {
        members.insert("params".to_owned(), Value::Object(params));
    }
    if !guards.is_empty() {
        members.insert("conditions".to_owned(), Value::Array(guards));
    }
    let options = (!members.is_empty()).then(|| Value::Object(members).to_string());
    let change = Change {
        verb: verb.to_owned(),
        key: (!key.is_empty()).then(|| Value::Object(key).to_string()),
        record: (!record.is_empty()).then(|| Value::Object(record).to_string()),
        options,
    };
    Ask::Write(change.into())
}
