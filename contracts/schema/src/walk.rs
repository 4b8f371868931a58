//! Goes through a schema: its lists and members, and the schemas inside it.

use std::convert::Infallible;

use serde_json::{Map, Value};

use crate::{
    json::push_pointer,
    keyword::{DEFINITIONS, DEFS},
};

/// Returns the elements of a list; nothing if it is not a list.
pub fn elements(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the members of an object; nothing if it is not an object.
pub fn members(object: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    object.and_then(Value::as_object).into_iter().flatten()
}

/// The kind of value that a keyword has, in any dialect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SubschemaKind {
    /// Schemas by name.
    Named,
    /// One schema, or a list of schemas.
    Schemas,
    Nothing,
}

/// Returns what the value of a keyword has in it. An unknown keyword has no schemas.
pub fn inside(keyword: &str) -> SubschemaKind {
    match keyword {
        "properties" | "patternProperties" | DEFS | DEFINITIONS | "dependentSchemas"
        | "dependencies" => SubschemaKind::Named,
        "items"
        | "prefixItems"
        | "additionalItems"
        | "additionalProperties"
        | "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => SubschemaKind::Schemas,
        _ => SubschemaKind::Nothing,
    }
}

/// Calls `visit` with every schema directly inside.
pub fn each_inside<'s>(members: &'s Map<String, Value>, visit: &mut dyn FnMut(&'s Value)) {
    for (keyword, value) in members {
        match (inside(keyword), value) {
            (SubschemaKind::Named, Value::Object(schemas)) => {
                schemas.values().for_each(&mut *visit)
            }
            (SubschemaKind::Schemas, Value::Array(schemas)) => schemas.iter().for_each(&mut *visit),
            (SubschemaKind::Schemas, schema) => visit(schema),
            _ => {}
        }
    }
}

/// Visits the schemas inside, to change them.
pub fn each_inside_mut(members: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Value)) {
    for (keyword, value) in members.iter_mut() {
        match (inside(keyword), value) {
            (SubschemaKind::Named, Value::Object(schemas)) => {
                schemas.values_mut().for_each(&mut *visit)
            }
            (SubschemaKind::Schemas, Value::Array(schemas)) => {
                schemas.iter_mut().for_each(&mut *visit)
            }
            (SubschemaKind::Schemas, schema) => visit(schema),
            _ => {}
        }
    }
}

/// Calls `visit` with every schema directly inside, and its place as a JSON Pointer. `place` is that of the schema around
/// them, and afterwards again. The first error ends it.
pub fn try_each_inside_at<'s, E>(
    members: &'s Map<String, Value>,
    place: &mut String,
    visit: &mut dyn FnMut(&'s Value, &mut String) -> Result<(), E>,
) -> Result<(), E> {
    let own = place.len();
    for (keyword, value) in members {
        push_pointer(place, keyword);
        let around = place.len();
        match (inside(keyword), value) {
            (SubschemaKind::Named, Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    push_pointer(place, name);
                    visit(schema, place)?;
                    place.truncate(around);
                }
            }
            (SubschemaKind::Schemas, Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    push_pointer(place, &index.to_string());
                    visit(schema, place)?;
                    place.truncate(around);
                }
            }
            (SubschemaKind::Schemas, schema) => visit(schema, place)?,
            _ => {}
        }
        place.truncate(own);
    }
    Ok(())
}

/// Calls `visit` like [`try_each_inside_at`], with every schema.
pub fn each_inside_at<'s>(
    members: &'s Map<String, Value>,
    place: &mut String,
    visit: &mut dyn FnMut(&'s Value, &mut String),
) {
    let mut always = |schema, place: &mut String| {
        visit(schema, place);
        Ok::<(), Infallible>(())
    };
    let Ok(()) = try_each_inside_at(members, place, &mut always);
}

/// Returns the value of a keyword with every schema directly inside rewritten. A value without any is copied.
pub fn map_inside<'s, E>(
    keyword: &str,
    value: &'s Value,
    rewrite: &mut impl FnMut(&'s Value) -> Result<Value, E>,
) -> Result<Value, E> {
    Ok(match (inside(keyword), value) {
        (SubschemaKind::Schemas, Value::Array(schemas)) => {
            Value::Array(schemas.iter().map(rewrite).collect::<Result<_, E>>()?)
        }
        (SubschemaKind::Named, Value::Object(named)) => {
            let mut written = Map::new();
            for (name, inner) in named {
                // `dependencies` may list names.
                let inner = match inner {
                    Value::Array(_) if keyword == "dependencies" => inner.clone(),
                    schema => rewrite(schema)?,
                };
                written.insert(name.clone(), inner);
            }
            Value::Object(written)
        }
        (SubschemaKind::Schemas, Value::Object(_) | Value::Bool(_)) => rewrite(value)?,
        _ => value.clone(),
    })
}
