//! Finds the schemas inside a schema.

use serde_json::{Map, Value};

/// The kind of value that stands under a keyword, in any dialect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// Schemas by name.
    Named,
    /// One schema, or a list of them.
    Schemas,
    Nothing,
}

pub fn inside(keyword: &str) -> Inside {
    match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => Inside::Named,
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
        | "contentSchema" => Inside::Schemas,
        _ => Inside::Nothing,
    }
}

/// Calls `visit` with every schema directly inside.
pub fn each_inside<'s>(members: &'s Map<String, Value>, visit: &mut dyn FnMut(&'s Value)) {
    for (keyword, value) in members {
        match (inside(keyword), value) {
            (Inside::Named, Value::Object(schemas)) => schemas.values().for_each(&mut *visit),
            (Inside::Schemas, Value::Array(schemas)) => schemas.iter().for_each(&mut *visit),
            (Inside::Schemas, schema) => visit(schema),
            _ => {}
        }
    }
}

/// Visits the schemas inside, to change them.
pub fn each_inside_mut(members: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Value)) {
    for (keyword, value) in members.iter_mut() {
        match (inside(keyword), value) {
            (Inside::Named, Value::Object(schemas)) => schemas.values_mut().for_each(&mut *visit),
            (Inside::Schemas, Value::Array(schemas)) => schemas.iter_mut().for_each(&mut *visit),
            (Inside::Schemas, schema) => visit(schema),
            _ => {}
        }
    }
}
