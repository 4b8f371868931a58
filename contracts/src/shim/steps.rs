//! The steps of a shim as a tree over the values of the old version: each step at its place.

mod compose;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use weir_schema::walk;

pub(super) use self::compose::compose;
use super::ShimStep;
use crate::{diff::SchemaSide, name, validate};

/// Matches every item of a list.
const ITEMS: &str = "*";
const DEPTH_MAX: usize = 32;

/// Keywords next to which neither a member can be given another name nor an item another value.
const UNSEEN: [&str; 9] = [
    "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const",
];
/// The same for members only, and for items only.
const UNSEEN_MEMBERS: [&str; 6] = [
    "patternProperties",
    "propertyNames",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
];
const UNSEEN_ITEMS: [&str; 3] = ["prefixItems", "contains", "unevaluatedItems"];
const LEAST_MEMBERS: &str = "minProperties";

/// Keywords that hold for another value as well, or describe it. Extensions do too.
const OF_ALL_VALUES: &[&str] = &[
    "type",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
];

/// Converts the arguments or the results of one tool.
#[derive(Clone, Debug)]
pub struct ShimConversion {
    side: SchemaSide,
    root: ShimNode,
}

/// The steps at one value and inside it.
#[derive(Clone, Debug, Default)]
struct ShimNode {
    /// By their old names.
    members: BTreeMap<String, ShimNode>,
    items: Option<Box<ShimNode>>,
    /// New names of members by the old ones, and the reverse.
    renamed: BTreeMap<String, String>,
    old_names: BTreeMap<String, String>,
    /// New texts by the old ones, and the reverse.
    values: BTreeMap<String, String>,
    old_values: BTreeMap<String, String>,
    set: BTreeMap<String, Value>,
}

impl ShimConversion {
    pub(super) fn new(steps: &[ShimStep], side: SchemaSide) -> Result<Self, String> {
        let mut root = ShimNode::default();
        for step in steps {
            let (ShimStep::Rename { at, .. }
            | ShimStep::Value { at, .. }
            | ShimStep::Set { at, .. }) = step;
            root.add(step)
                .map_err(|message| format!("the step at {}: {message}", name::quoted(at)))?;
        }
        Ok(Self { side, root })
    }

    /// Returns `true` if nothing is converted.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Makes a value of the old version one of the new version.
    pub fn up(&self, value: &mut Value) {
        self.root.up(value);
    }

    /// Makes a value of the new version one of the old version.
    pub fn down(&self, value: &mut Value) {
        self.root.down(value);
    }

    /// Makes a schema of the new version, in its one spelling, that of all old values which convert to valid ones, or of
    /// all that valid ones convert to.
    pub(super) fn old_schema(&self, schema: &mut Value) -> Result<(), String> {
        self.root.schema(schema, self.side, false)
    }

    /// Returns the old name of an argument, if it has another now.
    pub fn old_name(&self, argument: &str) -> Option<&str> {
        self.root.old_names.get(argument).map(String::as_str)
    }

    /// Returns the old names of columns that results have under other names now, by these: of the records in a result, or of
    /// the record that it is.
    pub fn old_columns(&self) -> BTreeMap<String, String> {
        let members = &self.root.members;
        let listed = members
            .get("records")
            .and_then(|list| list.items.as_deref());
        let record = members.get("record").or(listed).unwrap_or(&self.root);
        record.old_names.clone()
    }
}

impl ShimNode {
    fn is_empty(&self) -> bool {
        self.members.values().all(Self::is_empty)
            && self.items.as_deref().is_none_or(Self::is_empty)
            && self.values.is_empty()
            && !self.changes_names()
    }

    fn changes_names(&self) -> bool {
        !self.renamed.is_empty() || !self.set.is_empty()
    }

    fn add(&mut self, step: &ShimStep) -> Result<(), String> {
        let twice = || "another step says something else".to_owned();
        match step {
            ShimStep::Rename { at, to } => {
                let (node, name) = self.parent(at)?;
                let there = node.renamed.insert(name.clone(), to.clone());
                let back = node.old_names.insert(to.clone(), name);
                if there.is_some() || back.is_some() {
                    return Err(twice());
                }
            }
            ShimStep::Value { at, from, to } => {
                let node = self.find(&tokens(at)?);
                let there = node.values.insert(from.clone(), to.clone());
                let back = node.old_values.insert(to.clone(), from.clone());
                if there.is_some() || back.is_some() {
                    return Err(twice());
                }
            }
            ShimStep::Set { at, value } => {
                let (node, name) = self.parent(at)?;
                if node.set.insert(name, value.clone()).is_some() {
                    return Err(twice());
                }
            }
        }
        Ok(())
    }

    fn parent(&mut self, at: &str) -> Result<(&mut Self, String), String> {
        let mut tokens = tokens(at)?;
        match tokens.pop() {
            Some(name) if name != ITEMS => Ok((self.find(&tokens), name)),
            _ => Err("it names no member".to_owned()),
        }
    }

    fn find(&mut self, tokens: &[String]) -> &mut Self {
        tokens
            .iter()
            .fold(self, |node, token| match token.as_str() {
                ITEMS => node.items.get_or_insert_default(),
                name => node.members.entry(name.to_owned()).or_default(),
            })
    }

    fn up(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(to) = self.values.get(text) {
                    text.clone_from(to);
                }
            }
            Value::Array(items) => {
                if let Some(node) = &self.items {
                    items.iter_mut().for_each(|item| node.up(item));
                }
            }
            Value::Object(members) => {
                for (name, node) in &self.members {
                    if let Some(member) = members.get_mut(name) {
                        node.up(member);
                    }
                }
                rename(members, &self.renamed, &self.old_names);
                for (name, value) in &self.set {
                    members.entry(name).or_insert_with(|| value.clone());
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn down(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(from) = self.old_values.get(text) {
                    text.clone_from(from);
                }
            }
            Value::Array(items) => {
                if let Some(node) = &self.items {
                    items.iter_mut().for_each(|item| node.down(item));
                }
            }
            Value::Object(members) => {
                rename(members, &self.old_names, &self.renamed);
                for (name, node) in &self.members {
                    if let Some(member) = members.get_mut(name) {
                        node.down(member);
                    }
                }
                members.extend(self.set.clone());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `apart` means that the value is an item, and that items have to differ from each other.
    fn schema(&self, schema: &mut Value, side: SchemaSide, apart: bool) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        let Value::Object(rules) = schema else {
            return Err("its place is not described".to_owned());
        };
        if !self.values.is_empty() {
            self.listed_values(rules, side, apart)?;
        }
        if let Some(node) = self.items.as_deref().filter(|node| !node.is_empty()) {
            if let Some(key) = unseen(rules, &UNSEEN_ITEMS) {
                return Err(format!("no rule covers how {key} affects other items"));
            }
            let unique = apart || rules.get("uniqueItems") == Some(&Value::Bool(true));
            if unique && (node.changes_names() || !node.members.is_empty()) {
                return Err("the items of its list have to differ from each other".to_owned());
            }
            let items = rules
                .get_mut("items")
                .filter(|items| items.is_object())
                .ok_or("there is no list at its place")?;
            node.schema(items, side, unique)?;
        }
        if self.changes_names() || !self.members.is_empty() {
            self.properties(rules, side)?;
        }
        Ok(())
    }

    fn listed_values(
        &self,
        rules: &mut Map<String, Value>,
        side: SchemaSide,
        apart: bool,
    ) -> Result<(), String> {
        let mut listed = match (rules.shift_remove("enum"), rules.shift_remove("const")) {
            (Some(Value::Array(values)), None) => values,
            (None, Some(value)) => vec![value],
            _ => return Err("no values are listed at its place".to_owned()),
        };
        let is_of_all = |key: &str| OF_ALL_VALUES.contains(&key) || key.starts_with("x-");
        // The other keywords apply to the new values, and not to the old ones.
        if !rules.keys().all(|key| is_of_all(key)) {
            let is_valid = value_checker(&Value::Object(rules.clone()))?;
            listed.retain(is_valid);
            rules.retain(|key, _| is_of_all(key));
        }
        let mut old = Vec::new();
        for value in listed {
            let text = value.as_str().unwrap_or_default();
            let from = self.old_values.get(text).filter(|_| value.is_string());
            // A value that is not the new name of another one is itself in both versions.
            let is_kept = match side {
                SchemaSide::Input if !value.is_string() => true,
                // Two items that differ would become the same.
                SchemaSide::Input if apart && from.is_some() => false,
                SchemaSide::Input => !self.values.contains_key(text),
                SchemaSide::Output => from.is_none(),
            };
            old.extend(from.map(|from| json!(from)));
            old.extend(is_kept.then_some(value));
        }
        let count = old.len();
        let mut seen = BTreeSet::new();
        old.retain(|value| seen.insert(value.to_string()));
        if apart && old.len() < count {
            return Err("two values of a list would become the same".to_owned());
        }
        rules.insert("enum".to_owned(), Value::Array(old));
        Ok(())
    }

    fn properties(&self, rules: &mut Map<String, Value>, side: SchemaSide) -> Result<(), String> {
        if let Some(key) = unseen(rules, &UNSEEN_MEMBERS) {
            return Err(format!("no rule covers how {key} affects a new name"));
        }
        let properties = rules
            .get("properties")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let mut required: BTreeSet<String> = walk::elements(rules.get("required"))
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        if side == SchemaSide::Input {
            for (name, value) in &self.set {
                check_value(name, value, properties.get(name))?;
                required.remove(name);
            }
        }
        // A member of the new version with a name that the step takes away is a different one, described or not.
        let gone =
            |name: &str| self.renamed.contains_key(name) && !self.old_names.contains_key(name);
        if let Some(name) = required.iter().find(|name| gone(name))
            && side == SchemaSide::Input
        {
            return Err(format!("{} must be there", name::quoted(name)));
        }
        required.retain(|name| !gone(name));
        let drops = !self.old_names.is_empty()
            && (!is_closed(rules)
                || side == SchemaSide::Output && properties.keys().any(|name| gone(name)));
        self.least_members(rules, side, required.len(), drops)?;
        let mut old = Map::new();
        for (name, mut schema) in properties {
            if side == SchemaSide::Input
                && let (Some(value), Some(schema)) = (self.set.get(&name), schema.as_object_mut())
            {
                schema.insert("default".to_owned(), value.clone());
            }
            match self.old_names.get(&name) {
                Some(was) => drop(old.insert(was.clone(), schema)),
                None if gone(&name) => {}
                None => drop(old.insert(name, schema)),
            }
        }
        let mut required: BTreeSet<String> = required
            .into_iter()
            .map(|name| self.old_names.get(&name).cloned().unwrap_or(name))
            .collect();
        for was in self.renamed.keys() {
            if !old.contains_key(was) {
                let name = name::quoted(&self.renamed[was]);
                return Err(format!("there is no {name} in the new version"));
            }
        }
        for (name, node) in &self.members {
            let schema = old
                .get_mut(name)
                .ok_or_else(|| format!("there is no {}", name::quoted(name)))?;
            node.schema(schema, side, false)?;
        }
        if side == SchemaSide::Output {
            for (name, value) in &self.set {
                old.insert(name.clone(), json!({ "const": value }));
                required.insert(name.clone());
            }
        }
        rules.insert("properties".to_owned(), Value::Object(old));
        match required.is_empty() {
            true => drop(rules.shift_remove("required")),
            false => drop(rules.insert("required".to_owned(), json!(required))),
        }
        Ok(())
    }

    /// Keeps `minProperties` if the steps leave a value at least as many members as it had, and removes it if the members that
    /// are always there are enough. `required` is the number of those without the added ones, and `drops` is whether a step may
    /// remove a member.
    fn least_members(
        &self,
        rules: &mut Map<String, Value>,
        side: SchemaSide,
        required: usize,
        drops: bool,
    ) -> Result<(), String> {
        let Some(stated) = rules.get(LEAST_MEMBERS) else {
            return Ok(());
        };
        let least = stated
            .as_u64()
            .and_then(|least| usize::try_from(least).ok());
        let is_certain = least.is_some_and(|least| least <= required + self.set.len());
        if side == SchemaSide::Input && is_certain {
            rules.shift_remove(LEAST_MEMBERS);
            return Ok(());
        }
        match drops {
            true => Err(format!(
                "no rule covers how {LEAST_MEMBERS} affects a new name"
            )),
            false => Ok(()),
        }
    }
}

/// Returns `true` if a schema in its one spelling allows no members but those that it names.
fn is_closed(rules: &Map<String, Value>) -> bool {
    let further = rules.get("additionalProperties");
    further
        .is_some_and(|further| *further == json!({ "not": {} }) || *further == Value::Bool(false))
}

/// Checks that a value which is put in is valid.
fn check_value(name: &str, value: &Value, schema: Option<&Value>) -> Result<(), String> {
    let shown = name::quoted(name);
    let schema = schema.ok_or_else(|| format!("there is no argument {shown}"))?;
    match value_checker(schema)?(value) {
        true => Ok(()),
        false => Err(format!("{shown} cannot have the value {value}")),
    }
}

/// Returns a keyword that prevents a step.
fn unseen<'k>(rules: &Map<String, Value>, further: &[&'k str]) -> Option<&'k str> {
    let mut keys = UNSEEN.iter().chain(further);
    keys.find(|key| rules.contains_key(**key)).copied()
}

/// Returns a function that decides whether a value is valid.
fn value_checker(schema: &Value) -> Result<impl Fn(&Value) -> bool + use<>, String> {
    let checker = validate::validator(schema)
        .or_else(|message| validate::foreign_validator(schema).map_err(|_| message))?;
    Ok(move |value: &Value| checker.is_valid(value))
}

/// Gives members their other names, all at once. A member that has one of these names already cannot be meant.
fn rename(
    members: &mut Map<String, Value>,
    to: &BTreeMap<String, String>,
    from: &BTreeMap<String, String>,
) {
    if to.is_empty() {
        return;
    }
    for (name, value) in std::mem::take(members) {
        match to.get(&name) {
            Some(other) => drop(members.insert(other.clone(), value)),
            None if from.contains_key(&name) => {}
            None => drop(members.insert(name, value)),
        }
    }
}

fn tokens(at: &str) -> Result<Vec<String>, String> {
    let Some(rest) = at.strip_prefix('/') else {
        return match at.is_empty() {
            true => Ok(Vec::new()),
            false => Err("it does not begin with /".to_owned()),
        };
    };
    let tokens: Vec<String> = rest
        .split('/')
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect();
    match tokens.len() > DEPTH_MAX {
        true => Err(format!("it is deeper than {DEPTH_MAX}")),
        false => Ok(tokens),
    }
}
