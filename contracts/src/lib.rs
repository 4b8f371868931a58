//! Forms become tool contracts.
//!
//! Pure functions: no I/O, no async, no clock. A form file is read ([`form`]), joined with the recorded shapes of
//! its collections ([`shape`]) and compiled ([`compile`]) into a [`CompiledContract`]: the tools an agent sees, and the
//! bindings the gateway follows. A published one is kept as its [`artifact`], and [`diff`] reports what the next
//! one breaks; both are stored in a [`lock`] file. [`impact`] reports which past calls it would have refused.
//! [`validate`] is the gate in front of a source, [`output`] the one behind it. [`drift`] says what a source that
//! changed means for them. [`lint`] judges what a model reads. [`offer`] reads the lists of other servers,
//! [`metadata`] what describes their items, and [`upstream`] makes a contract of them. [`openapi`] writes down
//! the tools as operations of an HTTP API, and [`import`] makes a contract from such a document. [`search`] finds
//! the tools that a question is about, and [`vocabulary`] what a file may say. [`shim`] converts calls between
//! two versions.

pub mod artifact;
pub mod code;
pub mod compile;
pub mod contract;
pub mod diff;
pub mod draft;
pub mod drift;
pub mod form;
pub mod impact;
pub mod import;
pub mod lint;
pub mod listed;
pub mod lock;
pub mod metadata;
pub mod mirror;
pub mod name;
pub mod offer;
pub mod openapi;
pub mod output;
pub mod problem;
pub mod search;
pub mod secret;
pub mod shape;
pub mod shim;
pub mod upstream;
pub mod uri;
pub mod values;
pub mod vocabulary;

pub use compile::compile;
pub use contract::{CompiledContract, ContractTool, ContractVersion, ToolVerb};
pub use listed::document as compiled_document;
pub use problem::FileProblem;
pub use shape::CollectionShape;
pub use weir_schema::{RawSchema, client, json, schema, text, validate};
