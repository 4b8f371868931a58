//! What refusals say, made once: constraint and example depend on the schema alone, whatever was sent.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use super::ArgumentError;

/// Kept for one schema at most; what does not fit is made anew for each refusal.
const BYTES_MAX: usize = 256 << 10;

/// A value of the schema and its text, so that to tell it again is to copy it.
#[derive(Clone, Debug)]
pub struct Stated(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    value: Value,
    text: Box<RawValue>,
}

/// An error and its place in the order in which errors are told.
#[derive(Clone)]
pub(super) struct Ranked {
    pub error: ArgumentError,
    pub rank: Arc<Rank>,
}

/// Properties in their order, unknown ones behind. A container comes after what is in it, and the whole last, since its
/// example replaces what was repaired before.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub is_whole: bool,
    pub positions: Vec<usize>,
}

/// The errors of one schema that are the same for whatever is sent, by the keyword that failed and the place it failed at.
#[derive(Default)]
pub(super) struct Told {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_keyword: HashMap<String, HashMap<String, Ranked>>,
    bytes: usize,
}

impl Told {
    /// `keyword` and `path` are JSON Pointers, into the schema and into the arguments.
    pub(super) fn get(&self, keyword: &str, path: &str) -> Option<Ranked> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.by_keyword.get(keyword)?.get(path).cloned()
    }

    pub(super) fn keep(&self, keyword: &str, told: &Ranked) {
        let error = &told.error;
        let stated = error.constraint.iter().chain(&error.example).map(|stated| 4 * stated.0.text.get().len());
        let bytes = keyword.len() + 3 * error.path.len() + 200 + stated.sum::<usize>();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.bytes + bytes <= BYTES_MAX {
            known.bytes += bytes;
            known.by_keyword.entry(keyword.to_owned()).or_default().insert(error.path.clone(), told.clone());
        }
    }
}

impl From<Value> for Stated {
    fn from(value: Value) -> Self {
        let text = serde_json::value::to_raw_value(&value).expect("a value is plain data");
        Self(Arc::new(Inner { value, text }))
    }
}

impl Deref for Stated {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for Stated {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Serialize for Stated {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.text.serialize(serializer)
    }
}
