//! Rewrites each schema in one spelling: local references are inlined, booleans and trivial unions are written out, and a
//! pattern that every text meets is left out.
//!
//! A schema that cannot be inlined (a recursion, another document, a schema with its own base) stays a `$ref`, together
//! with a digest of everything it leads to: two such places are the same if all of that is. What a recursion leads to is kept
//! beside the schema, so that it can be followed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::digest;
use crate::{
    keyword::{ANCHOR, DEFINITIONS, DEFS, DYNAMIC_REF, ID, RECURSIVE_REF, REF, REFERENCES, SCHEMA},
    reference::pointed,
    schema::{add_to_all_of, keyword_group},
    validate::takes_every_text,
    walk::map_inside,
};

/// The most schemas of one side after inlining; a doubling chain of references would never end.
const NODES_MAX: usize = 50_000;
const DEPTH_MAX: usize = 64;

/// Keywords without any rule.
pub const TEXTS: &[&str] = &[
    "title",
    "description",
    "examples",
    "help",
    "$comment",
    "deprecated",
    ARM_TEXTS,
];
/// Texts of alternatives that were folded into one schema.
const ARM_TEXTS: &str = "$texts";
/// The key under which a reference that is not inlined keeps the digest of its target.
const LEADS_TO: &str = "$leads-to";
/// Keywords of a document rather than of a value.
const DOCUMENT: &[&str] = &[SCHEMA, ID, ANCHOR, DEFS, DEFINITIONS, "$vocabulary"];
/// Keywords that have no effect when empty, and that no other keyword looks at.
const APPLIED_ALONE: &[&str] = &[
    "propertyNames",
    "patternProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
];
/// Keywords that apply to values of one type only, and may therefore stand next to those of another.
const TYPED_KEYS: &[&str] = &[
    "type",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
];

/// A schema in its one spelling.
#[derive(Clone, Debug)]
pub struct NormalSchema {
    pub(super) root: Value,
    /// What recursions lead to, by the `$ref` that stays in the root or in one of these.
    pub(super) recursions: BTreeMap<String, Value>,
}

impl NormalSchema {
    /// Spells a schema. The error says why that cannot be done.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let mut inliner = SchemaInliner::new(schema);
        let root = inliner.schema(schema, 0)?;
        let mut recursions: BTreeMap<String, Value> = BTreeMap::new();
        // One may lead to others.
        while let Some(reference) = inliner.recursive.pop_first() {
            let Some(target) =
                pointed(schema, reference).filter(|_| !recursions.contains_key(reference))
            else {
                continue;
            };
            inliner.open.push(reference);
            let target = inliner.schema(target, 0);
            inliner.open.pop();
            // What is too large is not followed.
            let Ok(target) = target else { break };
            recursions.insert(reference.to_owned(), target);
        }
        Ok(Self { root, recursions })
    }

    /// Returns what a schema of it says once its recursion is followed: itself if it is no reference. `None` means that the
    /// reference leads elsewhere, or that there is a rule beside it.
    pub(super) fn follow<'s>(&'s self, schema: &'s Value) -> Option<&'s Value> {
        let Some(members) = schema.as_object().filter(|_| is_reference(schema)) else {
            return Some(schema);
        };
        let is_bare = |name: &String| name == REF || name == LEADS_TO || !holds_a_rule(name);
        let reference = members.get(REF)?.as_str()?;
        self.recursions
            .get(reference)
            .filter(|_| members.keys().all(is_bare))
    }
}

/// Returns the schema in its one spelling, or why it has none.
pub fn normal(schema: &Value) -> Result<Value, String> {
    SchemaInliner::new(schema).schema(schema, 0)
}

/// Returns the schema without texts, and with lists that are sets in order. Two results are equal exactly if both
/// schemas state the same with the same keywords.
pub(super) fn canonical(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    let mut out = Map::new();
    for (key, value) in map.iter().filter(|(key, _)| !TEXTS.contains(&key.as_str())) {
        let value = match (key.as_str(), value) {
            ("type", Value::Array(words)) if words.len() == 1 => words[0].clone(),
            ("enum", Value::Array(values)) if values.len() == 1 && !map.contains_key("const") => {
                out.insert("const".to_owned(), values[0].clone());
                continue;
            }
            ("required" | "enum" | "type", Value::Array(items)) => {
                let mut items = items.clone();
                items.sort_by_cached_key(Value::to_string);
                Value::Array(items)
            }
            (key, value) => map_inside(key, value, &mut |schema| Ok(canonical(schema)))
                .unwrap_or_else(|()| value.clone()),
        };
        out.insert(key.clone(), value);
    }
    Value::Object(out)
}

/// Returns `true` if one keyword has the same value in both schemas, texts aside.
pub(super) fn same_rules(key: &str, old: &Value, new: &Value) -> bool {
    let only = |schema: &Value| canonical(&json!({ key: schema.get(key) }));
    only(old) == only(new)
}

/// Returns `true` if the schema is `false` in its one spelling, or lists no value.
pub(super) fn is_false(schema: &Value) -> bool {
    let is_not_anything = |inner: &Value| inner.as_object().is_some_and(Map::is_empty);
    let is_no_list = |values: &Value| values.as_array().is_some_and(Vec::is_empty);
    schema.get("not").is_some_and(is_not_anything) || schema.get("enum").is_some_and(is_no_list)
}

/// Returns `true` if the schema is a reference that could not be inlined.
pub(super) fn is_reference(schema: &Value) -> bool {
    schema.get(LEADS_TO).is_some()
}

/// Returns `true` if there is such a reference anywhere inside.
pub fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key(LEADS_TO) || map.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

struct SchemaInliner<'s> {
    root: &'s Value,
    /// Whether a second `$id` exists: then a reference may mean something other than it seems to.
    has_bases: bool,
    open: Vec<&'s str>,
    /// Whether every text meets a pattern, by the pattern.
    no_rules: BTreeMap<&'s str, bool>,
    /// The references that stay because they lead back to a schema around them.
    recursive: BTreeSet<&'s str>,
    /// The digest of what a reference leads to, by the reference.
    digests: BTreeMap<&'s str, String>,
    left: usize,
}

impl<'s> SchemaInliner<'s> {
    fn new(root: &'s Value) -> Self {
        let has_bases = match root {
            Value::Object(map) => map.values().any(has_base),
            _ => false,
        };
        Self {
            root,
            has_bases,
            open: Vec::new(),
            no_rules: BTreeMap::new(),
            recursive: BTreeSet::new(),
            digests: BTreeMap::new(),
            left: NODES_MAX,
        }
    }

    fn schema(&mut self, schema: &'s Value, depth: usize) -> Result<Value, String> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or("the schema is too large with its references inlined")?;
        if depth > DEPTH_MAX {
            return Err(format!(
                "the schema is nested deeper than {DEPTH_MAX} levels"
            ));
        }
        let map = match schema {
            Value::Bool(true) => return Ok(json!({})),
            Value::Bool(false) => return Ok(json!({ "not": {} })),
            Value::Object(map) => map,
            _ => return Err("a schema is neither an object nor a boolean".to_owned()),
        };
        let mut out = Map::new();
        for (key, value) in map {
            if DOCUMENT.contains(&key.as_str()) || key == REF || self.is_no_rule(key, value) {
                continue;
            }
            let mut value = map_inside(key, value, &mut |inner| self.schema(inner, depth + 1))?;
            if key == "propertyNames" {
                drop_type_of_names(&mut value);
            }
            if !(APPLIED_ALONE.contains(&key.as_str()) && is_empty(&value)) {
                out.insert(key.clone(), value);
            }
        }
        if let Some(Value::Array(all)) = out.shift_remove("allOf") {
            for part in all {
                match part {
                    Value::Object(part) => join(&mut out, part),
                    _ => return Err("an allOf contains something that is not a schema".to_owned()),
                }
            }
        }
        drop_idle(&mut out);
        unwrap_only_arm(&mut out);
        if let Some(folded) = fold_union(&out) {
            out = folded;
        }
        for key in [DYNAMIC_REF, RECURSIVE_REF, REF] {
            match map.get(key) {
                Some(Value::String(reference)) => {
                    self.reference(key, reference, &mut out, depth)?
                }
                Some(_) => return Err(format!("a {key} is not a text")),
                None => {}
            }
        }
        Ok(Value::Object(out))
    }

    /// Returns `true` for a pattern that every text meets.
    fn is_no_rule(&mut self, key: &str, value: &'s Value) -> bool {
        let pattern = value.as_str().filter(|_| key == "pattern");
        pattern.is_some_and(|pattern| {
            let known = self.no_rules.entry(pattern);
            *known.or_insert_with(|| takes_every_text(pattern))
        })
    }

    /// Merges the target of `reference` with the keywords beside it.
    fn reference(
        &mut self,
        key: &str,
        reference: &'s str,
        beside: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), String> {
        let root = self.root;
        let is_local = key == REF && !self.has_bases;
        let is_open = self.open.contains(&reference);
        if is_local && is_open {
            self.recursive.insert(reference);
        }
        let target = match is_local && !is_open {
            true => pointed(root, reference),
            false => None,
        };
        let Some(target) = target else {
            let known = self.digests.get(reference).cloned();
            let leads_to = known.unwrap_or_else(|| self.leads_to(reference));
            self.digests.insert(reference, leads_to.clone());
            // A part of `allOf` may have left a reference here already.
            if beside.contains_key(LEADS_TO) {
                add_to_all_of(beside, json!({ key: reference, LEADS_TO: leads_to }));
            } else {
                beside.insert(key.to_owned(), reference.into());
                beside.insert(LEADS_TO.to_owned(), leads_to.into());
            }
            return Ok(());
        };
        self.open.push(reference);
        let target = self.schema(target, depth + 1);
        self.open.pop();
        match target? {
            Value::Object(target) if !beside.keys().any(holds_a_rule) => {
                target
                    .into_iter()
                    .for_each(|(name, value)| _ = beside.entry(name).or_insert(value));
            }
            Value::Object(target) => join(beside, target),
            _ => {}
        }
        Ok(())
    }

    /// Returns a digest of everything that the reference reaches. If the target is not found (an anchor, an address), it may
    /// be anything in the document.
    fn leads_to(&self, reference: &str) -> String {
        if self.has_bases {
            return digest(self.root);
        }
        let mut reached: BTreeMap<String, Value> = BTreeMap::new();
        let mut open = vec![reference.to_owned()];
        while let Some(reference) = open.pop() {
            if reached.contains_key(&reference) {
                continue;
            }
            let Some(found) = pointed(self.root, &reference) else {
                return digest(self.root);
            };
            references(found, &mut open);
            reached.insert(reference, found.clone());
        }
        digest(&json!(reached))
    }
}

/// Merges two schemas for the same value if no keyword of one looks at keywords of the other; otherwise the second
/// stays in `allOf`.
fn join(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    if !are_apart(schema, &other) {
        return add_to_all_of(schema, Value::Object(other));
    }
    for (name, value) in other {
        schema.entry(name).or_insert(value);
    }
}

/// Returns `true` if no keyword of one schema looks at keywords of the other.
fn are_apart(schema: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let of_schema = || schema.keys().filter(|name| holds_a_rule(name));
    let is_apart = |name: &String| {
        !looks_around(name)
            && of_schema()
                .all(|beside| beside != name && keyword_group(beside) != keyword_group(name))
    };
    other.keys().filter(|name| holds_a_rule(name)).all(is_apart)
}

fn holds_a_rule(keyword: &String) -> bool {
    !TEXTS.contains(&keyword.as_str()) && keyword != "default"
}

/// Returns `true` if the keyword applies to what no other keyword of its own schema has evaluated. Next to the keywords
/// of another schema it would mean something else.
fn looks_around(keyword: &str) -> bool {
    matches!(keyword, "unevaluatedProperties" | "unevaluatedItems")
}

/// Drops keywords that say nothing without another one, and a `not` that excludes nothing.
fn drop_idle(schema: &mut Map<String, Value>) {
    const NEEDED: [(&str, &str); 4] = [
        ("then", "if"),
        ("else", "if"),
        ("minContains", "contains"),
        ("maxContains", "contains"),
    ];
    for (keyword, needed) in NEEDED {
        if !schema.contains_key(needed) {
            schema.shift_remove(keyword);
        }
    }
    let is_nothing = |excluded: &Value| {
        excluded
            .as_object()
            .is_some_and(|members| members.len() == 1)
            && is_false(excluded)
    };
    if schema.get("not").is_some_and(is_nothing) {
        schema.shift_remove("not");
    }
}

/// Writes a union of one alternative as that alternative, where both can be one schema and no text is lost.
fn unwrap_only_arm(schema: &mut Map<String, Value>) {
    for key in ["anyOf", "oneOf"] {
        let arms = schema.get(key).and_then(Value::as_array);
        let Some([Value::Object(arm)]) = arms.map(Vec::as_slice) else {
            continue;
        };
        let (arm, mut joined) = (arm.clone(), schema.clone());
        joined.shift_remove(key);
        let is_kept =
            |(name, text): (&String, &Value)| joined.get(name).is_none_or(|other| other == text);
        let mut texts = arm.iter().filter(|(name, _)| !holds_a_rule(name));
        if texts.all(is_kept) && are_apart(&joined, &arm) {
            join(&mut joined, arm);
            *schema = joined;
        }
    }
}

/// Folds a union of alternatives of different types into one schema with several types, if its keywords allow it:
/// `anyOf: [{type: string, minLength: 1}, {type: null}]` becomes `type: [string, null], minLength: 1`, and an enum
/// in a union with null gets null among its values.
fn fold_union(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let key = ["anyOf", "oneOf"]
        .into_iter()
        .find(|key| schema.contains_key(*key))?;
    let beside_it =
        |name: &String| name == key || name == "default" || TEXTS.contains(&name.as_str());
    if !schema.keys().all(beside_it) {
        return None;
    }
    let mut types: Vec<Value> = Vec::new();
    let mut texts = Vec::new();
    let mut folded = Map::new();
    let arms = schema.get(key)?.as_array()?;
    for arm in arms {
        for (name, value) in arm.as_object()? {
            match name.as_str() {
                "type" => {}
                "enum" => {
                    let mut values = value.as_array()?.clone();
                    let mut others = arms.iter().filter(|other| !std::ptr::eq(*other, arm));
                    others.all(says_null).then_some(())?;
                    if arms.len() > 1 && !values.contains(&Value::Null) {
                        values.push(Value::Null);
                    }
                    folded.insert("enum".to_owned(), Value::Array(values));
                }
                name if TEXTS.contains(&name) => texts.push(value.clone()),
                name if TYPED_KEYS.contains(&name) && speaks_of_its_type(arm, name) => {
                    folded
                        .insert(name.to_owned(), value.clone())
                        .is_none()
                        .then_some(())?;
                }
                _ => return None,
            }
        }
        let word = arm.get("type")?.as_str()?;
        let clashes = |known: &Value| {
            known == word || (is_number(known) && matches!(word, "integer" | "number"))
        };
        if types.iter().any(clashes) {
            return None;
        }
        types.push(word.into());
    }
    folded.insert("type".to_owned(), Value::Array(types));
    if !texts.is_empty() {
        folded.insert(ARM_TEXTS.to_owned(), Value::Array(texts));
    }
    folded.extend(
        schema
            .iter()
            .filter(|(name, _)| *name != key)
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    Some(folded)
}

/// Returns `true` if the schema is `{type: null}`, texts aside.
fn says_null(schema: &Value) -> bool {
    let rules = schema
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !TEXTS.contains(&name.as_str()));
    rules
        .map(|(name, rule)| name == "type" && rule == "null")
        .eq([true])
}

fn is_number(word: &Value) -> bool {
    word == "integer" || word == "number"
}

/// Returns `true` if the keyword belongs to the alternative's own type. A keyword of another type has no effect
/// there, but would have one in the folded schema.
fn speaks_of_its_type(arm: &Value, keyword: &str) -> bool {
    let of: &[&str] = match keyword {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            &["integer", "number"]
        }
        "minLength" | "maxLength" | "pattern" | "format" => &["string"],
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" => &["array"],
        _ => &["object"],
    };
    arm.get("type")
        .and_then(Value::as_str)
        .is_some_and(|word| of.contains(&word))
}

/// Drops a type that every name of a member has: each is a string.
fn drop_type_of_names(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    let takes_strings = match members.get("type") {
        Some(Value::Array(words)) => words.iter().any(|word| word == "string"),
        word => word.is_some_and(|word| word == "string"),
    };
    if takes_strings {
        members.shift_remove("type");
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

fn has_base(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.get(ID).is_some_and(Value::is_string) || map.values().any(has_base)
        }
        Value::Array(items) => items.iter().any(has_base),
        _ => false,
    }
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            for key in REFERENCES {
                found.extend(map.get(key).and_then(Value::as_str).map(str::to_owned));
            }
            map.values().for_each(|inner| references(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| references(inner, found)),
        _ => {}
    }
}
