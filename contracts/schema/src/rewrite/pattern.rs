//! Patterns of a dialect other than JSON Schema's: a schema without them takes at least what it took before.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::RewriteReport;
use crate::{
    reference::{pointed, stated_in},
    schema::add_to_all_of,
    validate::is_pattern,
    walk::{each_inside, each_inside_mut},
};

/// Schemas that are searched for patterns to leave out. Beyond this number, a schema counts as one that has such a pattern.
const SCHEMAS_MAX: usize = 200_000;

/// Writes patterns as JavaScript reads them with its flag `u`, as JSON Schema advises: clients that compile a pattern in
/// another form lose the tool, or all tools. A pattern that cannot be written that way is left out.
pub fn plain_patterns(schema: &mut Value, lowered: &mut RewriteReport) {
    plain_escapes(schema, lowered);
    let mut foreign = BTreeSet::new();
    collect_foreign(schema, &mut foreign);
    if leave_out_patterns(schema, &foreign) {
        lowered.tell("patterns that are not of JSON Schema are left out, and the server alone judges by them");
    }
}

fn plain_escapes(schema: &mut Value, lowered: &mut RewriteReport) {
    let Value::Object(members) = schema else {
        return;
    };
    each_inside_mut(members, &mut |schema| plain_escapes(schema, lowered));
    if let Some(Value::String(pattern)) = members.get_mut("pattern")
        && let Some(plain) = without_needless_escapes(pattern)
    {
        *pattern = plain;
        lowered.tell("characters in patterns lose a backslash that they do not need, such as `\\<` and `\\-`");
    }
}

fn collect_foreign(schema: &Value, found: &mut BTreeSet<String>) {
    let Value::Object(members) = schema else {
        return;
    };
    for pattern in patterns(members) {
        if !found.contains(pattern) && !is_pattern(pattern) {
            found.insert(pattern.to_owned());
        }
    }
    each_inside(members, &mut |inner| collect_foreign(inner, found));
}

/// Returns the patterns of one schema: its own, and those of the names of its members.
fn patterns(members: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let own = members.get("pattern").and_then(Value::as_str);
    let named = members.get("patternProperties").and_then(Value::as_object);
    let named = named.into_iter().flat_map(Map::keys).map(String::as_str);
    own.into_iter().chain(named)
}

/// Leaves these patterns out, and every rule that would refuse more without them. Returns `true` if there were some.
pub fn leave_out_patterns(schema: &mut Value, left_out: &BTreeSet<String>) -> bool {
    if left_out.is_empty() {
        return false;
    }
    let root = schema.clone();
    let mut search = PatternSearch {
        root: &root,
        left_out,
        left: SCHEMAS_MAX,
    };
    if !search.finds(&root) {
        return false;
    }
    search.widen(schema);
    true
}

struct PatternSearch<'s> {
    root: &'s Value,
    left_out: &'s BTreeSet<String>,
    /// The schemas that may still be looked at.
    left: usize,
}

impl PatternSearch<'_> {
    fn widen(&mut self, schema: &mut Value) {
        let Value::Object(members) = schema else {
            return;
        };
        // Where values must not meet a schema, a wider one would refuse more.
        if self.finds_in(members, "not") {
            members.shift_remove("not");
        }
        if self.finds_in(members, "if") {
            for keyword in ["if", "then", "else"] {
                members.shift_remove(keyword);
            }
        }
        if members.contains_key("maxContains") && self.finds_in(members, "contains") {
            members.shift_remove("maxContains");
        }
        self.widen_choice(members);
        let is_left_out = |pattern: &Value| {
            let pattern = pattern.as_str();
            pattern.is_some_and(|pattern| self.left_out.contains(pattern))
        };
        if members.get("pattern").is_some_and(is_left_out) {
            members.shift_remove("pattern");
        }
        if let Some(Value::Object(named)) = members.get_mut("patternProperties") {
            let before = named.len();
            named.retain(|pattern, _| !self.left_out.contains(pattern));
            if named.len() < before {
                // Members by such a name would be refused as further ones.
                members.shift_remove("additionalProperties");
                members.shift_remove("unevaluatedProperties");
            }
        }
        each_inside_mut(members, &mut |inner| self.widen(inner));
    }

    /// Lets a value fit several alternatives of which only one may fit, unless they are of different types.
    fn widen_choice(&mut self, members: &mut Map<String, Value>) {
        if !self.finds_in(members, "oneOf") || are_of_other_types(&members["oneOf"]) {
            return;
        }
        let Some(arms) = members.shift_remove("oneOf") else {
            return;
        };
        match members.contains_key("anyOf") {
            true => add_to_all_of(members, json!({ "anyOf": arms })),
            false => _ = members.insert("anyOf".to_owned(), arms),
        }
    }

    fn finds_in(&mut self, members: &Map<String, Value>, keyword: &str) -> bool {
        match members.get(keyword) {
            Some(Value::Array(schemas)) => schemas.iter().any(|schema| self.finds(schema)),
            Some(schema) => self.finds(schema),
            None => false,
        }
    }

    /// Returns `true` if such a pattern is in the schema, or in one that it refers to.
    fn finds(&mut self, schema: &Value) -> bool {
        let mut open = vec![schema];
        let mut followed = BTreeSet::new();
        while let Some(schema) = open.pop() {
            let Some(left) = self.left.checked_sub(1) else {
                return true;
            };
            self.left = left;
            let Value::Object(members) = schema else {
                continue;
            };
            if patterns(members).any(|pattern| self.left_out.contains(pattern)) {
                return true;
            }
            if let Some(reference) = stated_in(members)
                && followed.insert(reference)
            {
                open.extend(pointed(self.root, reference));
            }
            each_inside(members, &mut |inner| open.push(inner));
        }
        false
    }
}

/// Returns `true` if each alternative has one type, and no two the same: a value fits at most one of them.
fn are_of_other_types(arms: &Value) -> bool {
    let mut types = BTreeSet::new();
    arms.as_array().into_iter().flatten().all(|arm| {
        let word = arm.get("type").and_then(Value::as_str);
        // An integer is a number as well.
        let word = word.map(|word| if word == "integer" { "number" } else { word });
        word.is_some_and(|word| types.insert(word))
    })
}

/// Returns `true` if a backslash is in front of a character that needs none, which JavaScript refuses with its flag `u`.
pub fn has_needless_escapes(pattern: &str) -> bool {
    without_needless_escapes(pattern).is_some()
}

/// Returns the pattern without the backslashes that JavaScript refuses, if there are any. In a class `-` needs its backslash.
/// `\<` and `\>` are the ends of a word to our engine.
fn without_needless_escapes(pattern: &str) -> Option<String> {
    const PLAIN: &str = "<>-_@#%:;=!\"'` ";
    let mut plain = String::with_capacity(pattern.len());
    let (mut characters, mut in_class) = (pattern.chars(), false);
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let Some(escaped) = characters.next() else {
                    plain.push(character);
                    break;
                };
                if !PLAIN.contains(escaped) || (in_class && escaped == '-') {
                    plain.push(character);
                }
                plain.push(escaped);
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        plain.push(character);
    }
    (plain.len() < pattern.len()).then_some(plain)
}
