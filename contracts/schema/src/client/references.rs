//! Replaces `$ref` by its target, for clients that follow none.

use serde_json::{Map, Value, json};

use crate::{
    json::push_pointer,
    keyword::{ANNOTATIONS, REF, SCHEMA, SHARED},
    reference::{pointed, stated_in},
    schema::{add_to_all_of, keyword_group},
    walk::{SubschemaKind, inside},
};

/// Schemas that name each other often grow when they are copied. A schema may grow to this many times its own size, a small one
/// to the smaller of these sizes in bytes, and none beyond the larger; past the limit, the rest becomes an unconstrained
/// object.
const GROWTH_MAX: usize = 16;
const COPIED_BYTES: (usize, usize) = (128 << 10, 2 << 20);
/// The bytes that a value takes in addition to its text.
const VALUE_BYTES: usize = 16;
/// Returns the schema without references, and the places where a reference was cut off.
pub(super) fn inlined(schema: &Value) -> (Value, Vec<String>) {
    let mut walk = ReferenceExpander {
        root: schema,
        open: Vec::new(),
        copied: 0,
        copied_max: size(schema)
            .saturating_mul(GROWTH_MAX)
            .clamp(COPIED_BYTES.0, COPIED_BYTES.1),
        ended: Vec::new(),
    };
    let mut whole = walk.inline(schema, "");
    if let Some(whole) = whole.as_object_mut() {
        for keyword in SHARED {
            whole.shift_remove(keyword);
        }
    }
    (whole, walk.ended)
}

struct ReferenceExpander<'s> {
    root: &'s Value,
    /// References that are being replaced, outermost first.
    open: Vec<&'s str>,
    /// Bytes.
    copied: usize,
    copied_max: usize,
    ended: Vec<String>,
}

impl<'s> ReferenceExpander<'s> {
    fn inline(&mut self, schema: &'s Value, at: &str) -> Value {
        let Value::Object(members) = schema else {
            return self.plain(schema);
        };
        match stated_in(members) {
            Some(reference) => self.named(members, reference, at),
            None => Value::Object(self.members(members, at)),
        }
    }

    fn members(&mut self, members: &'s Map<String, Value>, at: &str) -> Map<String, Value> {
        let is_defined_at_root = |key: &str| at.is_empty() && SHARED.contains(&key);
        // Copies of the root inside it would state the dialect again, which clients of an older one refuse.
        let is_copy = !self.open.is_empty();
        let is_left_out = |key: &str| key == REF || (is_copy && key == SCHEMA);
        let written = members
            .iter()
            .filter(|(key, _)| !is_left_out(key) && !is_defined_at_root(key));
        let each = written.map(|(key, value)| {
            self.count(key.len() + VALUE_BYTES);
            let at = below(at, key);
            let value = match (inside(key), value) {
                (SubschemaKind::Named, Value::Object(named)) => {
                    let each = named.iter().map(|(name, schema)| {
                        self.count(name.len() + VALUE_BYTES);
                        (name.clone(), self.inline(schema, &below(&at, name)))
                    });
                    Value::Object(each.collect())
                }
                (SubschemaKind::Schemas, Value::Array(all)) => {
                    let each = all.iter().enumerate();
                    each.map(|(index, schema)| self.inline(schema, &format!("{at}/{index}")))
                        .collect()
                }
                (SubschemaKind::Schemas, schema) => self.inline(schema, &at),
                _ => self.plain(value),
            };
            (key.clone(), value)
        });
        each.collect()
    }

    /// Copies a value without schemas.
    fn plain(&mut self, value: &Value) -> Value {
        self.count(size(value));
        value.clone()
    }

    fn count(&mut self, bytes: usize) {
        if !self.open.is_empty() {
            self.copied += bytes;
        }
    }

    /// Resolves a reference. The rules of its target and those next to it both apply.
    fn named(&mut self, members: &'s Map<String, Value>, reference: &'s str, at: &str) -> Value {
        let mut beside = self.members(members, at);
        let root = self.root;
        let target = pointed(root, reference);
        self.copied += VALUE_BYTES;
        let fits = !self.open.contains(&reference) && self.copied <= self.copied_max;
        let Some(target) = target.filter(|_| fits) else {
            self.ended.push(at.to_owned());
            let mut whole = json!({ "type": "object" })
                .as_object()
                .cloned()
                .unwrap_or_default();
            whole.extend(beside);
            return Value::Object(whole);
        };
        self.open.push(reference);
        let named = self.inline(target, at);
        self.open.pop();
        match named {
            Value::Object(mut whole) if are_apart(&whole, &beside) => {
                whole.extend(beside);
                Value::Object(whole)
            }
            Value::Object(whole) => {
                add_to_all_of(&mut beside, Value::Object(whole));
                Value::Object(beside)
            }
            Value::Bool(true) if !beside.is_empty() => Value::Object(beside),
            other => other,
        }
    }
}

/// Returns `true` if a target and the keywords next to its reference mean the same when merged into one schema.
fn are_apart(target: &Map<String, Value>, beside: &Map<String, Value>) -> bool {
    let is_rule = |key: &str| !ANNOTATIONS.contains(&key);
    let own: Vec<(&String, &Value)> = target.iter().filter(|(key, _)| is_rule(key)).collect();
    let is_apart = |key: &str, value: &Value| {
        own.iter().all(|(other, rule)| match key == other.as_str() {
            true => value == *rule,
            false => {
                !other.starts_with("unevaluated") && keyword_group(key) != keyword_group(other)
            }
        })
    };
    let mut rules = beside.iter().filter(|(key, _)| is_rule(key));
    rules.all(|(key, value)| is_apart(key, value))
}

fn below(at: &str, key: &str) -> String {
    let mut pointer = at.to_owned();
    push_pointer(&mut pointer, key);
    pointer
}

fn size(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| name.len() + size(member))
            .sum(),
        _ => 0,
    };
    VALUE_BYTES + inside
}
