//! Names of arguments that clients refuse, published under others and mapped back in every call.
//!
//! Some models' interfaces refuse a whole request for one property in any tool's input, at whatever depth, with
//! characters other than `A-Z a-z 0-9 _ . -`. Each such name gets one that they take, the same everywhere in one tool
//! and unique there, so that it can be mapped back wherever the published schema names it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value};

use crate::{
    json::{self, push_pointer},
    keyword::REF,
    name,
    reference::pointed_from,
    validate,
    walk::{self, SubschemaKind, each_inside, each_inside_mut, inside},
};

/// Schemas that speak about one value at once.
const PARTS_MAX: usize = 2_000;

/// Renames what has to be; the table is published name → the maker's own. The error explains why a name cannot be changed.
pub fn publish(schema: &mut Value) -> Result<BTreeMap<String, String>, String> {
    let mut names = MemberNames::default();
    names.collect(schema);
    let refused: Vec<String> = names
        .properties
        .iter()
        .filter(|name| !name::is_field(name))
        .cloned()
        .collect();
    if refused.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut taken = names.mentioned;
    let mut published = BTreeMap::new();
    for own in refused {
        let safe = free_name(&name::plain_field(&own), &taken);
        taken.insert(safe.clone());
        published.insert(own, safe);
    }
    let original = schema.clone();
    check(schema, &published)?;
    rename(schema, &original, &published);
    Ok(published
        .into_iter()
        .map(|(own, safe)| (safe, own))
        .collect())
}

/// Returns the arguments that the published schema takes, as their maker names them.
pub fn restore(
    root: &Value,
    keys: &BTreeMap<String, String>,
    arguments: Map<String, Value>,
) -> Map<String, Value> {
    let mut value = Value::Object(arguments);
    MemberRenaming { root, names: keys }.within(&[root], &mut value);
    match value {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    }
}

/// Names of members that a schema is about.
#[derive(Default)]
struct MemberNames {
    /// Each once, in their order.
    properties: Vec<String>,
    mentioned: BTreeSet<String>,
}

impl MemberNames {
    fn collect(&mut self, schema: &Value) {
        let mut known: BTreeSet<String> = BTreeSet::new();
        self.within(schema, &mut known);
        self.mentioned.extend(known);
    }

    fn within(&mut self, schema: &Value, known: &mut BTreeSet<String>) {
        let Value::Object(members) = schema else {
            return;
        };
        let keys = |keyword: &str| {
            members
                .get(keyword)
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::keys)
        };
        self.properties.extend(
            keys("properties")
                .filter(|name| known.insert((*name).clone()))
                .cloned(),
        );
        self.mentioned.extend(
            keys("dependentSchemas")
                .chain(keys("dependentRequired"))
                .cloned(),
        );
        let dependent = members
            .get("dependentRequired")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::values);
        for list in members.get("required").into_iter().chain(dependent) {
            self.mentioned.extend(
                list.as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned),
            );
        }
        each_inside(members, &mut |schema| self.within(schema, known));
    }
}

fn free_name(wanted: &str, taken: &BTreeSet<String>) -> String {
    let mut number = 1;
    let mut name = wanted.to_owned();
    while taken.contains(&name) {
        number += 1;
        let end = format!("_{number}");
        // Safe names are ASCII.
        name = format!(
            "{}{end}",
            &wanted[..wanted.len().min(name::FIELD_LENGTH_MAX - end.len())]
        );
    }
    name
}

/// Refuses schemas that look at the names themselves, since they would see other names.
fn check(schema: &Value, published: &BTreeMap<String, String>) -> Result<(), String> {
    let Value::Object(members) = schema else {
        return Ok(());
    };
    let one = published
        .keys()
        .next()
        .map(|own| name::quoted(own))
        .unwrap_or_default();
    if let Some(Value::Object(patterns)) = members.get("patternProperties") {
        for pattern in patterns.keys() {
            let meant = jsonschema_pattern(pattern)?;
            for (own, safe) in published {
                if meant(own) || meant(safe) {
                    let own = name::quoted(own);
                    return Err(format!(
                        "clients refuse the name {own}, and `patternProperties` is about such names"
                    ));
                }
            }
        }
    }
    if members
        .get("propertyNames")
        .is_some_and(|names| !is_any_name(names))
    {
        return Err(format!(
            "clients refuse the name {one}, and `propertyNames` is about all names"
        ));
    }
    let values = members
        .get("const")
        .into_iter()
        .chain(walk::elements(members.get("enum")).iter());
    for value in values {
        if names_one(value, published) {
            return Err(format!(
                "clients refuse a name such as {one}, and a `const` or `enum` has it in its values"
            ));
        }
    }
    let mut outcome = Ok(());
    each_inside(members, &mut |schema| {
        if outcome.is_ok() {
            outcome = check(schema, published);
        }
    });
    outcome
}

/// Returns a function that checks whether a pattern matches a name, as the validator reads patterns.
fn jsonschema_pattern(pattern: &str) -> Result<impl Fn(&str) -> bool, String> {
    let schema = serde_json::json!({ "pattern": pattern });
    let validator = validate::foreign_validator(&schema)?;
    Ok(move |name: &str| validator.is_valid(&Value::String(name.to_owned())))
}

fn is_any_name(names: &Value) -> bool {
    match names {
        Value::Bool(any) => *any,
        Value::Object(members) => members
            .iter()
            .all(|(keyword, value)| keyword == "type" && value == "string"),
        _ => false,
    }
}

fn names_one(value: &Value, published: &BTreeMap<String, String>) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| published.contains_key(name) || names_one(value, published)),
        Value::Array(values) => values.iter().any(|value| names_one(value, published)),
        _ => false,
    }
}

/// Renames the properties of a schema. `original` is the root before anything was renamed: example values are renamed
/// according to it.
fn rename(schema: &mut Value, original: &Value, published: &BTreeMap<String, String>) {
    let Value::Object(members) = &mut *schema else {
        return;
    };
    let renaming = MemberRenaming {
        root: original,
        names: published,
    };
    if members.contains_key("default") || members.contains_key("examples") {
        let own = Value::Object(members.clone());
        if let Some(default) = members.get_mut("default") {
            renaming.within(&[&own], default);
        }
        if let Some(Value::Array(examples)) = members.get_mut("examples") {
            examples
                .iter_mut()
                .for_each(|example| renaming.within(&[&own], example));
        }
    }
    let renamed = |name: &str| {
        published
            .get(name)
            .cloned()
            .unwrap_or_else(|| name.to_owned())
    };
    let rename_all = |names: &mut Value| {
        for name in names.as_array_mut().into_iter().flatten() {
            if let Some(safe) = name.as_str().and_then(|name| published.get(name)) {
                *name = safe.as_str().into();
            }
        }
    };
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "dependentSchemas", Value::Object(schemas)) => {
                *schemas = std::mem::take(schemas)
                    .into_iter()
                    .map(|(name, schema)| (renamed(&name), schema))
                    .collect();
            }
            ("dependentRequired", Value::Object(names)) => {
                names.values_mut().for_each(&rename_all);
                *names = std::mem::take(names)
                    .into_iter()
                    .map(|(name, names)| (renamed(&name), names))
                    .collect();
            }
            ("required", names) => rename_all(names),
            (REF, Value::String(target)) => *target = pointed(target, published),
            _ => {}
        }
    }
    each_inside_mut(members, &mut |schema| rename(schema, original, published));
}

/// Renames the properties that a pointer goes through.
fn pointed(target: &str, published: &BTreeMap<String, String>) -> String {
    let Some(pointer) = target.strip_prefix('#') else {
        return target.to_owned();
    };
    let pointer = json::percent_decoded(pointer);
    let mut now = String::new();
    let mut is_name = None;
    for token in json::pointer_tokens(&pointer) {
        match is_name {
            Some(is_property) => {
                let safe = published.get(&*token).filter(|_| is_property);
                push_pointer(&mut now, safe.map_or(&*token, String::as_str));
                is_name = None;
            }
            None => {
                push_pointer(&mut now, &token);
                is_name = (inside(&token) == SubschemaKind::Named)
                    .then(|| ["properties", "dependentSchemas"].contains(&&*token));
            }
        }
    }
    format!("#{}", json::percent_encoded(&now))
}

/// Members of a value that a schema names are renamed.
struct MemberRenaming<'r> {
    root: &'r Value,
    names: &'r BTreeMap<String, String>,
}

impl MemberRenaming<'_> {
    /// Renames within a value. `schemas` are all those that describe it.
    fn within(&self, schemas: &[&Value], value: &mut Value) {
        match value {
            Value::Object(members) => {
                let parts = self.parts(schemas);
                let mut renamed = Map::new();
                for (name, mut member) in std::mem::take(members) {
                    let inner: Vec<&Value> = parts
                        .iter()
                        .flat_map(|part| of_member(part, &name))
                        .collect();
                    self.within(&inner, &mut member);
                    match self
                        .names
                        .get(&name)
                        .filter(|_| parts.iter().any(|part| is_named(part, &name)))
                    {
                        Some(other) => _ = renamed.insert(other.clone(), member),
                        // A member that no schema names gives way to one that has its name.
                        None => _ = renamed.entry(name).or_insert(member),
                    }
                }
                *members = renamed;
            }
            Value::Array(items) => {
                let parts = self.parts(schemas);
                for (index, item) in items.iter_mut().enumerate() {
                    let inner: Vec<&Value> =
                        parts.iter().flat_map(|part| of_item(part, index)).collect();
                    self.within(&inner, item);
                }
            }
            _ => {}
        }
    }

    /// Returns everything that may describe the same value: the targets of references, and every alternative.
    fn parts<'s>(&'s self, schemas: &[&'s Value]) -> Vec<&'s Map<String, Value>> {
        let mut parts = Vec::new();
        let mut open = schemas.to_vec();
        let mut seen: HashSet<*const Value> = HashSet::new();
        while let Some(schema) = open.pop() {
            let Value::Object(members) = schema else {
                continue;
            };
            if parts.len() == PARTS_MAX || !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            parts.push(members);
            open.extend(pointed_from(self.root, schema));
            for keyword in ["allOf", "anyOf", "oneOf"] {
                open.extend(walk::elements(members.get(keyword)).iter());
            }
            open.extend(
                ["if", "then", "else"]
                    .iter()
                    .filter_map(|keyword| members.get(*keyword)),
            );
            open.extend(
                members
                    .get("dependentSchemas")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(Map::values),
            );
        }
        parts
    }
}

fn is_named(part: &Map<String, Value>, name: &str) -> bool {
    let is_in = |names: &Value| {
        names
            .as_array()
            .is_some_and(|names| names.iter().any(|listed| listed == name))
    };
    let has = |keyword: &str| {
        part.get(keyword)
            .is_some_and(|names| names.get(name).is_some())
    };
    ["properties", "dependentSchemas", "dependentRequired"]
        .into_iter()
        .any(has)
        || part.get("required").is_some_and(is_in)
        || part
            .get("dependentRequired")
            .and_then(Value::as_object)
            .is_some_and(|names| names.values().any(is_in))
}

fn of_member<'s>(part: &'s Map<String, Value>, name: &str) -> Vec<&'s Value> {
    let property = part
        .get("properties")
        .and_then(|properties| properties.get(name));
    let patterns = part
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values);
    let rest = ["additionalProperties", "unevaluatedProperties"]
        .into_iter()
        .filter_map(|keyword| part.get(keyword));
    property
        .into_iter()
        .chain(patterns)
        .chain(rest.filter(|_| property.is_none()))
        .collect()
}

fn of_item(part: &Map<String, Value>, index: usize) -> Vec<&Value> {
    let placed = part
        .get("prefixItems")
        .and_then(|items| items.get(index))
        .or_else(|| part.get("items"));
    let any = ["contains", "unevaluatedItems"]
        .into_iter()
        .filter_map(|keyword| part.get(keyword));
    placed.into_iter().chain(any).collect()
}
