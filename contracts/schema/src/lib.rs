//! JSON, and JSON Schema 2020-12.
//!
//! Pure functions: no I/O, no async, no clock, and nothing specific to contracts. [`json`] is the one strict reader.
//! [`RawSchema`] is a schema as it is published, [`walk`] goes through the schemas inside one, and [`reference`] finds what a
//! `$ref` names. [`foreign`] decides whether a stranger's schema may be used, [`dialect`] translates older dialects,
//! [`rewrite`], [`presets`] and [`renaming`] write one in the form that all clients take, [`client`] in the form for one
//! particular client. [`validate`] is the gate in front of a source, and [`compare`] reports what a change of a schema does
//! to callers.

pub mod client;
pub mod compare;
mod cost;
pub mod dialect;
pub mod foreign;
pub mod json;
pub mod keyword;
pub mod name;
pub mod presets;
pub mod reference;
pub mod renaming;
pub mod rewrite;
pub mod schema;
pub mod text;
pub mod validate;
pub mod walk;

pub use schema::RawSchema;
