//! The tests of the crate as one program: each one of its own would be linked with the whole crate again.

mod artifact;
mod cells;
mod clear;
mod code;
mod compile;
mod cost;
mod diff;
mod diff_contracts;
#[path = "diff_properties/main.rs"]
mod diff_properties;
mod documented;
mod draft;
mod draft_database;
mod form;
mod impact;
mod import;
mod lint;
mod list_choices;
mod lock;
mod offer;
mod records;
mod relations;
mod repair;
mod search;
mod shape;
mod shim;
mod spellings;
mod statements;
mod summaries;
mod toolbox;
mod upstream;
mod upstream_schemas;
mod vocabulary;
