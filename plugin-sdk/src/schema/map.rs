//! Maps, whose keys are texts or enums without fields; printed in the order of their keys.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use serde_json::{Map, Value};

use super::{Kind, Mismatch, ToolSchema, Writer, print_member};

/// A type that can be the key of a map: a text, or an enum without fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a map: JSON names members by texts",
    label = "not a text and not an enum without fields",
    note = "write `String`, or an enum without fields that has `#[data]` above it"
)]
pub trait MapKey: Sized {
    /// Writes what the names of the members are, where not every text is one.
    fn write_names(schema: &mut Writer);

    /// Reads a member's name.
    fn read_name(name: String) -> Result<Self, Mismatch>;

    /// Returns the member's name.
    fn name(&self) -> &str;
}

impl MapKey for String {
    fn write_names(_schema: &mut Writer) {}

    fn read_name(name: String) -> Result<Self, Mismatch> {
        Ok(name)
    }

    fn name(&self) -> &str {
        self
    }
}

fn write_map<K: MapKey, T: ToolSchema>(schema: &mut Writer) {
    schema.set("type", "\"object\"");
    let names = schema.inner(K::write_names);
    if names != "{}" {
        schema.set("propertyNames", names);
    }
    let values = schema.inner(T::write);
    schema.set("additionalProperties", values);
}

fn read_map<K: MapKey, T: ToolSchema, M: FromIterator<(K, T)>>(
    value: Value,
) -> Result<M, Mismatch> {
    let Value::Object(members) = value else {
        return Err(Mismatch::new("must be an object"));
    };
    let read = members.into_iter().map(|(name, value)| {
        let value = T::read(value).map_err(|mismatch| mismatch.inside(&name))?;
        Ok((K::read_name(name)?, value))
    });
    read.collect()
}

fn print_map<'a, K: MapKey + 'a, T: ToolSchema + 'a>(
    members: impl Iterator<Item = (&'a K, &'a T)>,
    out: &mut String,
) {
    // The order is always that of the names, whatever the hasher and the key are, so that equal maps are equal bytes.
    let mut members: Vec<(&str, &T)> = members.map(|(key, value)| (key.name(), value)).collect();
    members.sort_by_key(|(name, _)| *name);
    out.push('{');
    for (name, value) in members {
        print_member(name, value, out);
    }
    out.push('}');
}

impl<K: MapKey + Hash + Eq, T: ToolSchema, S: BuildHasher + Default> ToolSchema
    for HashMap<K, T, S>
{
    const KIND: Kind = Kind::Map;

    fn write(schema: &mut Writer) {
        write_map::<K, T>(schema);
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        read_map(value)
    }

    fn print(&self, out: &mut String) {
        print_map(self.iter(), out);
    }
}

impl<K: MapKey + Ord, T: ToolSchema> ToolSchema for BTreeMap<K, T> {
    const KIND: Kind = Kind::Map;

    fn write(schema: &mut Writer) {
        write_map::<K, T>(schema);
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        read_map(value)
    }

    fn print(&self, out: &mut String) {
        print_map(self.iter(), out);
    }
}

impl ToolSchema for Map<String, Value> {
    const KIND: Kind = Kind::Map;

    fn write(schema: &mut Writer) {
        schema.set("type", "\"object\"");
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        match value {
            Value::Object(members) => Ok(members),
            _ => Err(Mismatch::new("must be an object")),
        }
    }

    fn print(&self, out: &mut String) {
        out.push_str(&serde_json::to_string(self).expect("a map of JSON values prints"));
    }
}

impl ToolSchema for Value {
    fn write(_schema: &mut Writer) {}

    fn read(value: Value) -> Result<Self, Mismatch> {
        Ok(value)
    }

    fn print(&self, out: &mut String) {
        out.push_str(&self.to_string());
    }
}
