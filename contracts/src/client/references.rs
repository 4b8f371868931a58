//! `$ref` replaced by what it names, for clients that follow none.

use serde_json::{Map, Value, json};

/// Schemas that name each other often grow by what they name: beyond this many, the rest stays an object of anything.
const COPIES_MAX: usize = 2_000;

/// Returns the schema without references, and the places where a reference was cut off.
pub(super) fn inlined(schema: &Value) -> (Value, Vec<String>) {
    let mut walk = Walk { root: schema, open: Vec::new(), copies: 0, ended: Vec::new() };
    let mut whole = walk.inline(schema, "");
    if let Some(whole) = whole.as_object_mut() {
        whole.shift_remove("$defs");
        whole.shift_remove("definitions");
    }
    (whole, walk.ended)
}

struct Walk<'s> {
    root: &'s Value,
    /// References that are being replaced, outermost first.
    open: Vec<&'s str>,
    copies: usize,
    ended: Vec<String>,
}

impl<'s> Walk<'s> {
    fn inline(&mut self, schema: &'s Value, at: &str) -> Value {
        match schema {
            Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
                Some(reference) => self.named(members, reference, at),
                None => Value::Object(self.members(members, at)),
            },
            Value::Array(all) => {
                all.iter().enumerate().map(|(index, one)| self.inline(one, &format!("{at}/{index}"))).collect()
            }
            plain => plain.clone(),
        }
    }

    fn members(&mut self, members: &'s Map<String, Value>, at: &str) -> Map<String, Value> {
        let is_data = |key: &str| matches!(key, "enum" | "const" | "default" | "examples");
        let written = members.iter().filter(|(key, _)| *key != "$ref" && (*key != "$defs" || !at.is_empty()));
        let each = written.map(|(key, value)| {
            let value = if is_data(key) { value.clone() } else { self.inline(value, &format!("{at}/{key}")) };
            (key.clone(), value)
        });
        each.collect()
    }

    /// Resolves a reference. Members that stand beside it override those of its target.
    fn named(&mut self, members: &'s Map<String, Value>, reference: &'s str, at: &str) -> Value {
        let beside = self.members(members, at);
        let root = self.root;
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        self.copies += 1;
        let fits = !self.open.contains(&reference) && self.copies <= COPIES_MAX;
        let Some(target) = target.filter(|_| fits) else {
            self.ended.push(at.to_owned());
            let mut whole = json!({ "type": "object" }).as_object().cloned().unwrap_or_default();
            whole.extend(beside);
            return Value::Object(whole);
        };
        self.open.push(reference);
        let named = self.inline(target, at);
        self.open.pop();
        match named {
            Value::Object(mut whole) => {
                whole.extend(beside);
                Value::Object(whole)
            }
            other => other,
        }
    }
}
