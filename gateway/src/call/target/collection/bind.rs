//! Makes the query or the change for an adapter. Exactly what was validated is sent: everything below is serialised from the
//! checked value.

use serde_json::{Map, Value, json};
use weir_contracts::{
    ToolVerb,
    contract::{CollectionTarget, FieldDestination},
};
use weir_plugin_host::{AdapterChange, AdapterCondition, AdapterQuery};
use weir_schema::validate::InvalidArguments;

use super::{CollectionRequest, ReadRequest, listing, related, summary};
use crate::{
    call::CallError,
    catalogue::{CatalogueTool, CollectionTool},
    cursor::{CursorCipher, CursorScope},
    identity::CallerIdentity,
};

pub(in crate::call::target) fn bind(
    cursors: &CursorCipher,
    caller: &CallerIdentity,
    tool: &CatalogueTool,
    target: &CollectionTool,
    mut arguments: Map<String, Value>,
) -> Result<CollectionRequest, CallError> {
    target.published.binding.inject_defaults(&mut arguments);
    Ok(match target.published.verb {
        ToolVerb::Lookup => CollectionRequest::Read(ReadRequest {
            query: query(caller, target, &arguments, 2).into(),
            bound: None,
            count: None,
            include: related::asked_relations(target, &arguments),
        }),
        ToolVerb::List => list(cursors, caller, tool, target, arguments)?,
        ToolVerb::Count => {
            let query = summary::count(query(caller, target, &arguments, 1));
            CollectionRequest::Summarize(query.into())
        }
        ToolVerb::Summarize => {
            let query = query(caller, target, &arguments, 1);
            let query = summary::summarize(target, &arguments, query)?;
            CollectionRequest::Summarize(query.into())
        }
        ToolVerb::Create | ToolVerb::Update | ToolVerb::Delete | ToolVerb::Call => {
            CollectionRequest::Write(change(caller, target, &arguments).into())
        }
    })
}

fn list(
    cursors: &CursorCipher,
    caller: &CallerIdentity,
    tool: &CatalogueTool,
    target: &CollectionTool,
    mut arguments: Map<String, Value>,
) -> Result<CollectionRequest, CallError> {
    let binding = &target.published.binding;
    let cursor = arguments.shift_remove("cursor");
    let limit = arguments
        .shift_remove("limit")
        .and_then(|limit| limit.as_u64());
    let limit = limit.map_or(binding.limit_default, |limit| {
        u32::try_from(limit).unwrap_or(binding.limit_max)
    });
    let mut query = query(caller, target, &arguments, limit.min(binding.limit_max));
    listing::apply_choices(target, &arguments, &mut query)?;
    let cursor_bound = CursorScope::new(
        &tool.name,
        tool.version.major,
        caller.principal(),
        &written(&query),
    );
    query.cursor = match cursor {
        Some(Value::String(sealed)) => {
            let open = cursors.open_sealed(&cursor_bound, &sealed);
            Some(open.ok_or_else(|| CallError::invalid(InvalidArguments::bad_cursor()))?)
        }
        _ => None,
    };
    let asks_total = binding.list.as_ref().is_some_and(|list| list.with_total)
        && arguments.get("with_total") == Some(&Value::Bool(true));
    Ok(CollectionRequest::Read(ReadRequest {
        count: asks_total.then(|| summary::count(query.clone()).into()),
        query: query.into(),
        bound: Some(cursor_bound),
        include: Vec::new(),
    }))
}

/// Returns the part of this query to which a cursor is bound, as JSON: `[[[column, comparison, value], …], [order, …], options]`.
/// Cursors in use outlive an update of Weir, so this form must not change.
fn written(query: &AdapterQuery) -> String {
    let conditions: Vec<[&str; 3]> = query
        .conditions
        .iter()
        .map(
            |AdapterCondition {
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
    caller: &CallerIdentity,
    target: &CollectionTool,
    arguments: &Map<String, Value>,
    limit: u32,
) -> AdapterQuery {
    let mut conditions = Vec::new();
    let mut params = Map::new();
    for (to, value) in target
        .published
        .binding
        .asked(arguments, &caller.agent, &caller.tenant)
    {
        match to {
            FieldDestination::Condition { column, comparison }
            | FieldDestination::Guard { column, comparison } => {
                let (comparison, value) = condition(comparison, value);
                let (column, comparison) = (column.clone(), comparison.to_owned());
                conditions.push(AdapterCondition {
                    column,
                    comparison,
                    value: value.to_string(),
                });
            }
            FieldDestination::Param(name) | FieldDestination::Column(name) => {
                params.insert(name.clone(), value);
            }
            FieldDestination::Clear => {} // of an update alone
        }
    }
    AdapterQuery {
        conditions,
        order: target.order.clone(),
        columns: target.columns.clone(),
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

fn change(
    caller: &CallerIdentity,
    target: &CollectionTool,
    arguments: &Map<String, Value>,
) -> AdapterChange {
    let CollectionTarget { verb, binding, .. } = &*target.published;
    let mut key = Map::new();
    let mut record = Map::new();
    let mut params = Map::new();
    let mut guards = Vec::new();
    for (to, value) in binding.asked(arguments, &caller.agent, &caller.tenant) {
        let (members, name) = match to {
            FieldDestination::Condition { column, .. } => (&mut key, column),
            FieldDestination::Column(column) => (&mut record, column),
            FieldDestination::Param(name) => (&mut params, name),
            FieldDestination::Guard { column, comparison } => {
                let (comparison, value) = condition(comparison, value);
                guards.push(json!({ "column": column, "comparison": comparison, "value": value }));
                continue;
            }
            FieldDestination::Clear => continue, // the fields it names are null by now
        };
        members.insert(name.clone(), value);
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
    AdapterChange {
        verb: verb.word().to_owned(),
        key: (!key.is_empty()).then(|| Value::Object(key).to_string()),
        record: (!record.is_empty()).then(|| Value::Object(record).to_string()),
        options,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any change of this text would invalidate all cursors in use.
    #[test]
    fn the_form_that_cursors_are_bound_to_stays_as_it_is() {
        let condition = |column: &str, comparison: &str, value: &str| AdapterCondition {
            column: column.to_owned(),
            comparison: comparison.to_owned(),
            value: value.to_owned(),
        };
        let mut query = AdapterQuery {
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
