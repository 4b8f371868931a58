//! The keywords of JSON Schema that lead from one schema to another or identify a document.

pub const REF: &str = "$ref";
pub const DYNAMIC_REF: &str = "$dynamicRef";
pub const RECURSIVE_REF: &str = "$recursiveRef";
/// Every keyword that names another schema, in any dialect.
pub const REFERENCES: [&str; 3] = [REF, DYNAMIC_REF, RECURSIVE_REF];

pub const DEFS: &str = "$defs";
/// The name of [`DEFS`] in older dialects.
pub const DEFINITIONS: &str = "definitions";
/// The keywords for schemas that others refer to.
pub const SHARED: [&str; 2] = [DEFS, DEFINITIONS];

pub const SCHEMA: &str = "$schema";
pub const ID: &str = "$id";
pub const ANCHOR: &str = "$anchor";
pub const DYNAMIC_ANCHOR: &str = "$dynamicAnchor";
/// The keywords that give a schema a name which references find.
pub const ANCHORS: [&str; 2] = [ANCHOR, DYNAMIC_ANCHOR];

pub const ALL_OF: &str = "allOf";
pub const ANY_OF: &str = "anyOf";
pub const ONE_OF: &str = "oneOf";

/// The keywords that put no rule on a value, in any dialect.
pub const ANNOTATIONS: [&str; 8] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
];
