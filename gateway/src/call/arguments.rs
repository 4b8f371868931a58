//! Arguments: validated against the published schema, then bound to what the source is asked.
//! What was validated is what is sent: everything below is re-serialised from the checked value.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use weir_contracts::{
    Verb,
    contract::{CollectionTarget, Destination},
    impact::Profile,
    validate::InvalidArguments,
};
use weir_plugin_host::{Change, Condition, Invocation, Query};

use super::{CallError, asking::Asking, code, foreign};
use crate::{
    catalogue::{BoundCollection, CatalogueTool, CodeTool, ForeignTool, Target},
    codes::Code,
    cursor::{Bound, Cursors},
    identity::Caller,
};

/// The request to the target. Only this stage makes one.
pub(super) struct Input<'t> {
    pub ask: Ask<'t>,
    /// The list that the next page's cursor will be bound to.
    pub bound: Option<Bound>,
    /// The arguments that the contract lists to be recorded in clear.
    pub clear: Map<String, Value>,
    /// The profile of the arguments, if those are kept.
    pub profile: Option<Profile>,
}

pub(super) enum Ask<'t> {
    Read(&'t BoundCollection, Arc<Query>),
    Write(&'t BoundCollection, Arc<Change>),
    /// A plugin's tool.
    Code(&'t CodeTool, Arc<Invocation>),
    /// Another server's tool, with the arguments as it takes them.
    Foreign(&'t ForeignTool, Arc<foreign::Sent>),
}

impl Ask<'_> {
    /// Returns `true` if the target may be changed.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Read(..) => false,
            Self::Write(..) => true,
            Self::Code(code, _) => !code.source.read_only,
            Self::Foreign(foreign, _) => foreign.writes,
        }
    }
}

pub(super) fn bind<'t>(
    cursors: &Cursors,
    caller: &Caller,
    tool: &'t CatalogueTool,
    arguments: Option<&str>,
    asking: Asking<'_>,
    keep_profile: bool,
) -> Result<Input<'t>, CallError> {
    let checks = tool.checks();
    let Some(validator) = checks.arguments() else {
        return Err(CallError::new(
            Code::Internal,
            "The arguments of this tool cannot be checked.",
        ));
    };
    let arguments = validator
        .validate(arguments.unwrap_or("{}"))
        .map_err(CallError::invalid)?;
    let profile = keep_profile.then(|| checks.profiler().profile(&arguments));
    let in_clear = |field: &String| Some((field.clone(), arguments.get(field)?.clone()));
    let clear = tool.tool.audit_clear.iter().filter_map(in_clear).collect();
    let input = match &tool.target {
        Target::Collection(bound) => collection(cursors, caller, tool, bound, arguments)?,
        Target::Code(code) => {
            let invocation = code::invocation(cursors, caller, tool, code, arguments, asking)?;
            Input::of(Ask::Code(code, invocation.into()))
        }
        Target::Foreign(foreign) => {
            let sent = foreign::sent(cursors, caller, tool, foreign, arguments, asking.resumed)?;
            Input::of(Ask::Foreign(foreign, sent.into()))
        }
    };
    Ok(Input {
        clear,
        profile,
        ..input
    })
}

fn collection<'t>(
    cursors: &Cursors,
    caller: &Caller,
    tool: &CatalogueTool,
    bound: &'t BoundCollection,
    mut arguments: Map<String, Value>,
) -> Result<Input<'t>, CallError> {
    bound.published.binding.inject_defaults(&mut arguments);
    Ok(match bound.published.verb {
        Verb::Lookup => Input::of(Ask::Read(bound, query(caller, bound, &arguments, 2).into())),
        Verb::List => list(cursors, caller, tool, bound, arguments)?,
        Verb::Create | Verb::Update | Verb::Delete | Verb::Call => {
            Input::of(Ask::Write(bound, change(caller, bound, &arguments).into()))
        }
    })
}

impl<'t> Input<'t> {
    fn of(ask: Ask<'t>) -> Self {
        Self {
            ask,
            bound: None,
            clear: Map::new(),
            profile: None,
        }
    }
}

fn list<'t>(
    cursors: &Cursors,
    caller: &Caller,
    tool: &CatalogueTool,
    bound: &'t BoundCollection,
    mut arguments: Map<String, Value>,
) -> Result<Input<'t>, CallError> {
    let binding = &bound.published.binding;
    let cursor = arguments.shift_remove("cursor");
    let limit = arguments
        .shift_remove("limit")
        .and_then(|limit| limit.as_u64());
    let limit = limit.map_or(binding.limit_default, |limit| {
        u32::try_from(limit).unwrap_or(binding.limit_max)
    });
    let mut query = query(caller, bound, &arguments, limit.min(binding.limit_max));
    let cursor_bound = Bound::new(
        &tool.name,
        tool.version.major,
        &caller.agent,
        &written(&query),
    );
    query.cursor = match cursor {
        Some(Value::String(sealed)) => {
            let open = cursors.open_sealed(&cursor_bound, &sealed);
            Some(open.ok_or_else(|| CallError::invalid(InvalidArguments::bad_cursor()))?)
        }
        _ => None,
    };
    Ok(Input {
        bound: Some(cursor_bound),
        ..Input::of(Ask::Read(bound, query.into()))
    })
}

/// Returns what a cursor of this query is bound to, as JSON: `[[[column, comparison, value], …], [order, …], options]`.
/// Cursors that are in use outlive an update of Weir, so this form stays as it is.
fn written(query: &Query) -> String {
    let conditions: Vec<[&str; 3]> = query
        .conditions
        .iter()
        .map(
            |Condition {
                 column,
                 comparison,
                 value,
             }| [column.as_str(), comparison.as_str(), value.as_str()],
        )
        .collect();
    serde_json::to_string(&(conditions, &*query.order, &query.options))
        .expect("texts have a JSON form")
}

fn query(
    caller: &Caller,
    bound: &BoundCollection,
    arguments: &Map<String, Value>,
    limit: u32,
) -> Query {
    let mut conditions = Vec::new();
    let mut params = Map::new();
    for (to, value) in bound
        .published
        .binding
        .asked(arguments, &caller.agent, &caller.tenant)
    {
        match to {
            Destination::Condition { column, comparison }
            | Destination::Guard { column, comparison } => {
                let (comparison, value) = condition(comparison, value);
                let (column, comparison) = (column.clone(), comparison.to_owned());
                conditions.push(Condition {
                    column,
                    comparison,
                    value: value.to_string(),
                });
            }
            Destination::Param(name) | Destination::Column(name) => {
                params.insert(name.clone(), value);
            }
            Destination::Clear => {} // of an update alone
        }
    }
    Query {
        conditions,
        order: bound.order.clone(),
        columns: bound.columns.clone(),
        limit,
        cursor: None,
        options: (!params.is_empty()).then(|| json!({ "params": params }).to_string()),
    }
}

/// Turns equality with null into emptiness; a null can only come from a nullable field.
fn condition(comparison: &str, value: Value) -> (&str, Value) {
    match (comparison, value) {
        ("equals", Value::Null) => ("is-empty", Value::Bool(true)),
        ("not-equals", Value::Null) => ("is-empty", Value::Bool(false)),
        asked => asked,
    }
}

fn change(caller: &Caller, bound: &BoundCollection, arguments: &Map<String, Value>) -> Change {
    let CollectionTarget { verb, binding, .. } = &*bound.published;
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
            Destination::Clear => continue, // the fields it names are null by now
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
    Change {
        verb: verb.word().to_owned(),
        key: (!key.is_empty()).then(|| Value::Object(key).to_string()),
        record: (!record.is_empty()).then(|| Value::Object(record).to_string()),
        options,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another text here would make every cursor in use invalid.
    #[test]
    fn the_form_that_cursors_are_bound_to_stays_as_it_is() {
        let condition = |column: &str, comparison: &str, value: &str| Condition {
            column: column.to_owned(),
            comparison: comparison.to_owned(),
            value: value.to_owned(),
        };
        let mut query = Query {
            conditions: vec![
                condition("country", "equals", r#""NO""#),
                condition("elevation_ft", "at-least", "100"),
            ],
            order: vec!["iata".to_owned()].into(),
            columns: Vec::new().into(),
            limit: 20,
            cursor: None,
            options: Some(r#"{"params":{"year":2026}}"#.to_owned()),
        };
        let expected = r#"[[["country","equals","\"NO\""],["elevation_ft","at-least","100"]],["iata"],"{\"params\":{\"year\":2026}}"]"#;
        assert_eq!(written(&query), expected);
        query.options = None;
        query.conditions.clear();
        assert_eq!(written(&query), r#"[[],["iata"],null]"#);
    }
}
