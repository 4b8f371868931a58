//! Keeps the parts of refusals that are made once: constraint and example depend only on the schema, whatever was
//! sent.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use ahash::AHashMap;
use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use super::ArgumentError;
use crate::json;

/// The maximum bytes kept for one schema; what does not fit is made again for each refusal.
const BYTES_MAX: usize = 256 << 10;

/// A value of the schema and its text, so that reporting it again is only a copy.
#[derive(Clone, Debug)]
pub struct RenderedValue(Arc<RenderedInner>);

#[derive(Debug)]
struct RenderedInner {
    value: Value,
    text: Box<RawValue>,
}

/// The part of an error that does not depend on the arguments.
#[derive(Debug, Serialize)]
pub struct SchemaViolation {
    /// The top-level argument at fault; empty for the arguments as a whole.
    pub field: String,
    /// JSON Pointer into the arguments.
    pub path: String,
    /// One of [`REASONS`](super::REASONS).
    pub reason: &'static str,
    /// The violated part of the schema: `{"minimum":1,"maximum":5}`, `{"enum":[…]}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<RenderedValue>,
    /// A valid value for `path`, built only from the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<RenderedValue>,
    #[serde(skip)]
    pub(super) rank: ViolationRank,
    /// The sentence; it is made when it is first asked for, as are the line and the JSON.
    #[serde(skip)]
    pub(super) sentence: OnceLock<String>,
    #[serde(skip)]
    pub(super) line: OnceLock<String>,
    #[serde(skip)]
    pub(super) json: OnceLock<String>,
}

/// Properties in their order, then unknown ones. A container comes after its members, and the whole last, since its example
/// replaces earlier repairs.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ViolationRank {
    pub is_whole: bool,
    pub positions: Vec<usize>,
}

/// The errors of one schema that are the same for whatever is sent, by the keyword that failed and the place it failed at.
#[derive(Default)]
pub(super) struct ViolationCache {
    known: Mutex<KnownViolations>,
}

#[derive(Default)]
struct KnownViolations {
    by_keyword: AHashMap<String, AHashMap<String, Arc<SchemaViolation>>>,
    bytes: usize,
}

impl ViolationCache {
    /// Returns the violation, if it is known. `keyword` and `path` are JSON Pointers, into the schema and into the
    /// arguments.
    pub(super) fn get(&self, keyword: &str, path: &str) -> Option<Arc<SchemaViolation>> {
        let known = self.known.lock();
        known.by_keyword.get(keyword)?.get(path).cloned()
    }

    pub(super) fn keep(&self, keyword: &str, violation: &Arc<SchemaViolation>) {
        let stated = violation
            .constraint
            .iter()
            .chain(&violation.example)
            .map(|stated| 5 * stated.0.text.get().len());
        let bytes = keyword.len() + 6 * violation.path.len() + 1_000 + stated.sum::<usize>();
        let mut known = self.known.lock();
        if known.bytes + bytes <= BYTES_MAX {
            known.bytes += bytes;
            known
                .by_keyword
                .entry(keyword.to_owned())
                .or_default()
                .insert(violation.path.clone(), Arc::clone(violation));
        }
    }
}

impl SchemaViolation {
    pub(super) fn at(path: String, reason: &'static str) -> Self {
        let field = json::pointer_tokens(&path)
            .into_iter()
            .next()
            .unwrap_or_default()
            .into_owned();
        Self {
            field,
            path,
            reason,
            constraint: None,
            example: None,
            rank: ViolationRank::default(),
            sentence: OnceLock::new(),
            line: OnceLock::new(),
            json: OnceLock::new(),
        }
    }

    /// Returns the bytes of its places and of the parts taken from the schema.
    pub(super) fn bytes(&self) -> usize {
        let stated = self.constraint.iter().chain(&self.example);
        let stated: usize = stated.map(|value| value.text().len()).sum();
        self.field.len() + self.path.len() + stated
    }
}

impl RenderedValue {
    pub(super) fn text(&self) -> &str {
        self.0.text.get()
    }
}

impl From<SchemaViolation> for ArgumentError {
    fn from(violation: SchemaViolation) -> Self {
        Arc::new(violation).into()
    }
}

impl From<Arc<SchemaViolation>> for ArgumentError {
    fn from(violation: Arc<SchemaViolation>) -> Self {
        Self {
            violation,
            suggestion: None,
        }
    }
}

impl Deref for ArgumentError {
    type Target = SchemaViolation;

    fn deref(&self) -> &SchemaViolation {
        &self.violation
    }
}

impl From<Value> for RenderedValue {
    fn from(value: Value) -> Self {
        let text = serde_json::value::to_raw_value(&value).expect("a value is plain data");
        Self(Arc::new(RenderedInner { value, text }))
    }
}

impl Deref for RenderedValue {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl Serialize for RenderedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.text.serialize(serializer)
    }
}
