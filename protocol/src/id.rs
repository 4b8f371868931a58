//! The id of a request: a string or an integer, echoed byte for byte.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::raw;

/// The raw JSON text of an id, quotes included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId<'a>(Cow<'a, str>);

impl<'a> RequestId<'a> {
    /// A longer id is refused: ids in flight are kept, so they need a bound.
    pub const LENGTH_MAX: usize = 1024;

    /// Reads an id; `None` for anything but a string or an integer, since `null` is not an id.
    pub fn read(value: &'a RawValue) -> Option<Self> {
        (raw::is_integer(value) || raw::string(value).is_some())
            .then(|| Self(Cow::Borrowed(value.get())))
    }

    /// Returns the id as it was written, quotes included.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Copies the id if it is borrowed.
    pub fn into_owned(self) -> RequestId<'static> {
        RequestId(Cow::Owned(self.0.into_owned()))
    }

    /// Returns a key that is equal for equal ids however they are escaped; `1` and `"1"` stay apart.
    pub fn key(&self) -> Box<str> {
        if !self.0.contains('\\') {
            return self.0.as_ref().into();
        }
        match serde_json::from_str::<String>(&self.0) {
            Ok(text) => serde_json::Value::String(text).to_string().into(),
            Err(_) => self.0.as_ref().into(),
        }
    }
}
