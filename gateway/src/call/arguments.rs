//! Arguments: validated against the published schema, then bound to what the source is asked.
//! What was validated is what is sent: everything below is re-serialised from the checked value.

use serde_json::{Map, Value};
use weir_contracts::{
    Verb,
    contract::{Binding, Destination},
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
}

pub(super) enum Ask {
    Read(Query),
    Write(Change),
}

pub(super) fn bind(
    cursors: &Cursors,
    caller: &Caller,
    tool: &CatalogueTool,
    arguments: Option<&str>,
) -> Result<Input, CallError> {
    let mut arguments = tool.arguments().validate(arguments.unwrap_or("{}")).map_err(CallError::invalid)?;
    let (Some(binding), Some(verb)) = (&tool.tool.binding, tool.tool.verb) else {
        return Err(CallError::new(Code::Internal, "This tool is not bound to a collection."));
    };
    binding.inject_defaults(&mut arguments);
    match verb {
        Verb::Lookup => Ok(Input { ask: Ask::Read(query(binding, &arguments, 2)), bound: None }),
        Verb::List => list(cursors, caller, tool, binding, arguments),
        Verb::Create => Ok(write("create", binding, &arguments)),
        Verb::Update => Ok(write("update", binding, &arguments)),
        Verb::Delete => Ok(write("delete", binding, &arguments)),
        Verb::Call => Ok(write("call", binding, &arguments)),
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
    let mut query = query(binding, &arguments, limit.min(binding.limit_max));
    let conditions = format!("{:?}{:?}{:?}", query.conditions, query.order, query.options);
    let bound = Bound::new(&tool.name, tool.version.major, &caller.agent, &conditions);
    query.cursor = match cursor {
        Some(Value::String(sealed)) => {
            let open = cursors.open_sealed(&bound, &sealed);
            Some(open.ok_or_else(|| CallError::invalid(InvalidArguments::bad_cursor()))?)
        }
        _ => None,
    };
    Ok(Input { ask: Ask::Read(query), bound: Some(bound) })
}

fn query(binding: &Binding, arguments: &Map<String, Value>, limit: u32) -> Query {
    let mut conditions = Vec::new();
    let mut params = Map::new();
    for input in &binding.inputs {
        let Some(value) = arguments.get(&input.field) else { continue };
        match &input.to {
            Destination::Condition { column, comparison } => conditions.push(condition(column, comparison, value)),
            Destination::Param(name) | Destination::Column(name) => {
                params.insert(name.clone(), value.clone());
            }
        }
    }
    Query {
        conditions,
        order: binding.order.clone(),
        columns: binding.columns.clone(),
        limit,
        cursor: None,
        options: (!params.is_empty()).then(|| options([("params", Value::Object(params))])),
    }
}

/// A null can only come from a nullable field; to equal null is to be empty.
fn condition(column: &str, comparison: &str, value: &Value) -> Condition {
    let (comparison, value) = match (comparison, value) {
        ("equals", Value::Null) => ("is-empty", "true".to_owned()),
        ("not-equals", Value::Null) => ("is-empty", "false".to_owned()),
        (comparison, value) => (comparison, value.to_string()),
    };
    Condition { column: column.to_owned(), comparison: comparison.to_owned(), value }
}

fn write(verb: &str, binding: &Binding, arguments: &Map<String, Value>) -> Input {
    let mut key = Map::new();
    let mut record = Map::new();
    let mut params = Map::new();
    for input in &binding.inputs {
        let Some(value) = arguments.get(&input.field) else { continue };
        let (target, name) = match &input.to {
            Destination::Condition { column, .. } => (&mut key, column),
            Destination::Column(column) => (&mut record, column),
            Destination::Param(name) => (&mut params, name),
        };
        target.insert(name.clone(), value.clone());
    }
    let options = match &binding.operation {
        Some(operation) => {
            Some(options([("operation", Value::String(operation.clone())), ("params", Value::Object(params))]))
        }
        None => (!params.is_empty()).then(|| options([("params", Value::Object(params))])),
    };
    let change = Change {
        verb: verb.to_owned(),
        key: (!key.is_empty()).then(|| Value::Object(key).to_string()),
        record: (!record.is_empty()).then(|| Value::Object(record).to_string()),
        options,
    };
    Input { ask: Ask::Write(change), bound: None }
}

fn options<const N: usize>(members: [(&str, Value); N]) -> String {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()).to_string()
}
