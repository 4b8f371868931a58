//! Objects and lists: what the code of `#[data]` reads them with, and prints them with.

use serde_json::{Map, Value};

use super::{Mismatch, Parameter, ToolSchema};
use crate::value::write_string;

/// The members of an object while they are read.
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Returns the members of a value that must be an object.
    pub fn of(value: Value) -> Result<Self, Mismatch> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(Mismatch::new("must be an object")),
        }
    }

    /// Takes a member out; `None` if it is absent.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.shift_remove(name)
    }

    /// Takes a member whose value is one text: the tag of an enum.
    pub fn tag(&mut self, name: &str) -> Result<String, Mismatch> {
        match self.remove(name) {
            Some(Value::String(tag)) => Ok(tag),
            Some(_) => Err(Mismatch::new("must be a text").inside(name)),
            None => Err(missing(name)),
        }
    }

    /// Reads a member that must be present, unless its type has a value for an absent member.
    pub fn take<T>(&mut self, name: &str, field: &Parameter<T>) -> Result<T, Mismatch> {
        match self.remove(name) {
            Some(value) => (field.read)(value).map_err(|mismatch| mismatch.inside(name)),
            None => (field.absent)().ok_or_else(|| missing(name)),
        }
    }

    /// Reads a member, or makes it if it is left out.
    pub fn take_or<T>(
        &mut self,
        name: &str,
        field: &Parameter<T>,
        make: fn() -> T,
    ) -> Result<T, Mismatch> {
        match self.remove(name) {
            Some(value) => (field.read)(value).map_err(|mismatch| mismatch.inside(name)),
            None => Ok(make()),
        }
    }

    /// Reads a member, or a JSON text if it is left out.
    pub fn take_json<T>(
        &mut self,
        name: &str,
        field: &Parameter<T>,
        json: &str,
    ) -> Result<T, Mismatch> {
        let value = match self.remove(name) {
            Some(value) => value,
            None => serde_json::from_str(json).unwrap_or_default(),
        };
        (field.read)(value).map_err(|mismatch| mismatch.inside(name))
    }

    /// Returns the members that have not been taken.
    pub fn rest(self) -> Value {
        Value::Object(self.0)
    }

    /// Refuses what has not been taken.
    pub fn end(self) -> Result<(), Mismatch> {
        match self.0.keys().next() {
            Some(name) => Err(Mismatch::new("is not a member").inside(name)),
            None => Ok(()),
        }
    }
}

fn missing(name: &str) -> Mismatch {
    Mismatch::new("is required").inside(name)
}

/// Returns the elements of a value that must be a list.
pub fn elements(value: Value) -> Result<Vec<Value>, Mismatch> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(Mismatch::new("must be a list")),
    }
}

/// Returns the elements of a list that must have `count` of them.
pub fn tuple_elements(value: Value, count: usize) -> Result<Vec<Value>, Mismatch> {
    let values = elements(value)?;
    if values.len() == count {
        Ok(values)
    } else {
        Err(Mismatch::new(format!("must have {count} items")))
    }
}

/// Appends a member to an object that was opened with `{`.
pub fn print_member<T: ToolSchema>(name: &str, value: &T, out: &mut String) {
    print_field(name, value, T::print, out);
}

/// Prints a field, with the type's trait erased.
pub fn print_field<T>(name: &str, value: &T, print: fn(&T, &mut String), out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    write_string(name, out);
    out.push(':');
    print(value, out);
}

/// Appends an element to a list that was opened with `[`.
pub fn print_element<T: ToolSchema>(value: &T, out: &mut String) {
    if !out.ends_with('[') {
        out.push(',');
    }
    value.print(out);
}

/// Appends an object that was printed, with its tag in front: `{"kind":"circle","radius":1}`.
pub fn splice_tag(tag: &str, name: &str, object: &str, out: &mut String) {
    out.push('{');
    print_member(tag, &name.to_owned(), out);
    match object.strip_prefix('{') {
        Some("}") | None => out.push('}'),
        Some(members) => {
            out.push(',');
            out.push_str(members);
        }
    }
}
