//! Reads a record of a collection by the strict rules, and explains why anything else is not one.

use std::collections::BTreeMap;

use weir_plugin_sdk::Error;
use weir_plugin_sdk::serde_json::{self, Value, value::RawValue};

use super::inside;
use super::lenient::MemberList;

/// Returns the members of a record in their order. The error is the rest of a sentence about the record.
pub(crate) fn record_members(raw: &RawValue) -> Result<Vec<(String, &RawValue)>, String> {
    let kind = match raw.get().as_bytes().first() {
        Some(b'{') => None,
        Some(b'n') => Some("null"),
        Some(b't' | b'f') => Some("a boolean"),
        Some(b'"') => Some("a text"),
        Some(b'[') => Some("a list"),
        _ => Some("a number"),
    };
    if let Some(kind) = kind {
        return Err(format!("is {kind}, and not an object"));
    }
    let list = serde_json::from_str::<MemberList<'_>>(raw.get());
    let MemberList(members) = list.map_err(|_| "is not JSON that can be read".to_owned())?;
    // Such a name is read with U+FFFD in it, which a name may have on its own.
    let has_odd_name = members.iter().any(|(name, _)| name.contains('\u{fffd}'));
    if has_odd_name && super::members(raw).is_none() {
        return Err("has half a character (a lone surrogate) in the name of a member".to_owned());
    }
    Ok(members)
}

/// Returns the error for an item on a page, counted from 0, that is not a record.
pub(crate) fn not_a_record(at: usize, fault: &str) -> Error {
    let number = at + 1;
    Error::upstream_error(format!(
        "The web service's list cannot be read: record {number} of its page {fault}."
    ))
}

/// The members of a record by their names.
pub(crate) struct RecordMembers<'a> {
    /// `None`: several members have the name.
    by_name: BTreeMap<String, Option<&'a RawValue>>,
}

impl<'a> RecordMembers<'a> {
    /// Reads a record. The error is the rest of a sentence about it.
    pub(crate) fn read(raw: &'a RawValue) -> Result<Self, String> {
        Ok(Self::new(record_members(raw)?))
    }

    pub(crate) fn new(members: Vec<(String, &'a RawValue)>) -> Self {
        let mut by_name: BTreeMap<String, Option<&'a RawValue>> = BTreeMap::new();
        for (name, value) in members {
            by_name
                .entry(name)
                .and_modify(|known| *known = None)
                .or_insert(Some(value));
        }
        Self { by_name }
    }

    /// Returns a member, if the record has one of the name and not several.
    pub(crate) fn member(&self, name: &str) -> Result<Option<&'a RawValue>, String> {
        match self.by_name.get(name) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(*value)),
            Some(None) => Err(format!("has the member {name:?} twice")),
        }
    }
}

/// Follows a JSON Pointer in a record; no member on the way may occur twice.
pub(crate) fn inside_record<'a>(
    raw: &'a RawValue,
    pointer: &str,
) -> Result<Option<&'a RawValue>, String> {
    let mut raw = raw;
    for step in pointer.split('/').skip(1) {
        let found = match raw.get().starts_with('{') {
            true => {
                let name = step.replace("~1", "/").replace("~0", "~");
                RecordMembers::read(raw)?.member(&name)?
            }
            false => inside(raw, &format!("/{step}")),
        };
        match found {
            Some(inner) => raw = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(raw))
}

/// Returns the part of a member's value that no record may contain, as the rest of a sentence about the record. A number that
/// is not finite is null if it belongs to a column.
pub(crate) fn value_fault(name: &str, value: &RawValue) -> Option<String> {
    let fault = serde_json::from_str::<Value>(value.get()).err()?;
    let fault = fault.to_string();
    let is_number = !value.get().starts_with(['{', '[', '"']);
    let what = match () {
        () if is_number => return None,
        () if fault.contains("number out of range") => "a number that is out of range",
        () if fault.contains("surrogate") || fault.contains("hex escape") => {
            "half a character (a lone surrogate)"
        }
        () if fault.contains("recursion limit") => "too many levels",
        () => "what is not JSON",
    };
    Some(format!("holds {what} in its member {name:?}"))
}
