//! Makes one conversion of two that follow each other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{ITEMS, ShimConversion, ShimNode, ShimStep};
use crate::{diff::SchemaSide, json::push_pointer};

/// Returns the steps that convert as `first` does and then as `second`, whose places are those that `first` leads to. The
/// error names a step that cannot be made.
pub(in crate::shim) fn compose(
    first: &[ShimStep],
    second: &[ShimStep],
    side: SchemaSide,
) -> Result<Vec<ShimStep>, String> {
    let first = ShimConversion::new(first, side)?;
    let second = ShimConversion::new(second, side)?;
    let mut composed = ComposedSteps {
        side,
        steps: Vec::new(),
    };
    composed.add("", &first.root, &second.root);
    Ok(composed.steps)
}

struct ComposedSteps {
    side: SchemaSide,
    steps: Vec<ShimStep>,
}

impl ComposedSteps {
    /// Adds the steps at one place of the first version, and inside it.
    fn add(&mut self, at: &str, first: &ShimNode, second: &ShimNode) {
        self.add_values(at, first, second);
        let none = ShimNode::default();
        let items = (first.items.as_deref(), second.items.as_deref());
        if items.0.is_some() || items.1.is_some() {
            let (first, second) = (items.0.unwrap_or(&none), items.1.unwrap_or(&none));
            self.add(&format!("{at}/{ITEMS}"), first, second);
        }
        let mut names: BTreeSet<&str> = first.renamed.keys().map(String::as_str).collect();
        names.extend(first.members.keys().map(String::as_str));
        let later = second.renamed.keys().chain(second.members.keys());
        names.extend(later.filter_map(|name| first.old_member(name)));
        for name in names {
            let Some(between) = first.new_member(name) else {
                continue;
            };
            let place = member_place(at, name);
            if let Some(to) = second.new_member(between).filter(|to| *to != name) {
                self.steps.push(ShimStep::Rename {
                    at: place.clone(),
                    to: to.to_owned(),
                });
            }
            let first = first.members.get(name).unwrap_or(&none);
            let second = second.members.get(between).unwrap_or(&none);
            self.add(&place, first, second);
        }
        for (name, value) in self.set_members(first, second) {
            self.steps.push(ShimStep::Set {
                at: member_place(at, &name),
                value,
            });
        }
    }

    fn add_values(&mut self, at: &str, first: &ShimNode, second: &ShimNode) {
        let mut texts: BTreeSet<&String> = first.values.keys().collect();
        let later = second.values.keys();
        texts.extend(later.map(|text| first.old_values.get(text).unwrap_or(text)));
        for text in texts {
            let between = first.values.get(text).unwrap_or(text);
            let to = second.values.get(between).unwrap_or(between);
            if to != text {
                self.steps.push(ShimStep::Value {
                    at: at.to_owned(),
                    from: text.clone(),
                    to: to.clone(),
                });
            }
        }
    }

    /// Returns the members that are put in: into arguments by their names in the last version, into results by those of the
    /// first one.
    fn set_members(&self, first: &ShimNode, second: &ShimNode) -> BTreeMap<String, Value> {
        let mut set = BTreeMap::new();
        match self.side {
            SchemaSide::Input => {
                for (name, value) in &first.set {
                    let mut value = value.clone();
                    if let Some(node) = second.members.get(name) {
                        node.up(&mut value);
                    }
                    if let Some(name) = second.new_member(name) {
                        set.insert(name.to_owned(), value);
                    }
                }
                // The members that the first one added are there already.
                for (name, value) in &second.set {
                    set.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            SchemaSide::Output => {
                for (name, value) in &second.set {
                    let Some(name) = first.old_member(name) else {
                        continue;
                    };
                    let mut value = value.clone();
                    if let Some(node) = first.members.get(name) {
                        node.down(&mut value);
                    }
                    set.insert(name.to_owned(), value);
                }
                set.extend(first.set.clone());
            }
        }
        set
    }
}

impl ShimNode {
    /// Returns the new name of a member; `None` if another member takes its name.
    fn new_member<'n>(&'n self, old: &'n str) -> Option<&'n str> {
        match self.renamed.get(old) {
            Some(new) => Some(new),
            None => (!self.old_names.contains_key(old)).then_some(old),
        }
    }

    /// Returns the old name of a member; `None` if another member had its name.
    fn old_member<'n>(&'n self, new: &'n str) -> Option<&'n str> {
        match self.old_names.get(new) {
            Some(old) => Some(old),
            None => (!self.renamed.contains_key(new)).then_some(new),
        }
    }
}

fn member_place(at: &str, name: &str) -> String {
    let mut place = at.to_owned();
    push_pointer(&mut place, name);
    place
}
