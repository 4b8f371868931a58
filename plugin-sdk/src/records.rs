//! Writes the records of an answer: canonical JSON, without a tree.

use crate::value::{Value, write_string};

/// A JSON array of objects, written front to back.
#[derive(Debug, Default)]
pub struct Records {
    json: String,
    count: u32,
}

impl Records {
    /// Creates an array without records.
    pub fn new() -> Self {
        Self {
            json: String::from("["),
            count: 0,
        }
    }

    /// Appends one record.
    pub fn push<'v>(&mut self, members: impl IntoIterator<Item = (&'v str, Value<'v>)>) {
        if self.count > 0 {
            self.json.push(',');
        }
        write_record(members, &mut self.json);
        self.count += 1;
    }

    /// Returns the number of records.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the bytes so far: an adapter may end a page early instead of running into the host's limit on results.
    pub fn len(&self) -> usize {
        self.json.len()
    }

    /// Returns `true` before the first record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the array.
    pub fn finish(mut self) -> String {
        self.json.push(']');
        self.json
    }
}

/// Returns one record as a JSON object.
pub fn record<'v>(members: impl IntoIterator<Item = (&'v str, Value<'v>)>) -> String {
    let mut out = String::new();
    write_record(members, &mut out);
    out
}

fn write_record<'v>(members: impl IntoIterator<Item = (&'v str, Value<'v>)>, out: &mut String) {
    out.push('{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        value.write_json(out);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_json() {
        let mut records = Records::new();
        assert!(records.is_empty());
        records.push([("a\"b", Value::Integer(1)), ("c", Value::Null)]);
        records.push([]);
        assert_eq!(records.count(), 2);
        assert_eq!(records.finish(), r#"[{"a\"b":1,"c":null},{}]"#);
    }
}
