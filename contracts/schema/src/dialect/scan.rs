//! Finds the identifiers and anchors of a schema.

use serde_json::Value;

use super::{DialectTranslator, SchemaDialect, SchemaResource};
use crate::{
    keyword::{ANCHOR, DYNAMIC_ANCHOR, ID, REF},
    reference::joined,
    walk::each_inside_at,
};

impl DialectTranslator<'_> {
    /// Finds identifiers and anchors.
    pub(super) fn scan(&mut self, schema: &Value, pointer: &str, resource: usize) {
        let Value::Object(members) = schema else {
            return;
        };
        let mut resource = resource;
        let overridden = self.dialect <= SchemaDialect::Draft7 && members.contains_key(REF);
        let id = members
            .get(if self.dialect == SchemaDialect::Draft4 {
                "id"
            } else {
                ID
            })
            .and_then(Value::as_str);
        if let Some(id) = id.filter(|_| !overridden) {
            match id.strip_prefix('#') {
                Some(anchor) if self.dialect <= SchemaDialect::Draft7 && !anchor.is_empty() => {
                    self.anchors
                        .insert((resource, anchor.to_owned()), pointer.to_owned());
                }
                _ => {
                    let id = joined(&self.resources[resource].id, id);
                    if pointer.is_empty() {
                        self.resources[0].id = id;
                    } else {
                        self.resources.push(SchemaResource {
                            id,
                            pointer: pointer.to_owned(),
                        });
                        resource = self.resources.len() - 1;
                    }
                }
            }
        }
        self.has_recursive_anchor |= members.get("$recursiveAnchor") == Some(&Value::Bool(true));
        let anchor = |keyword: &str| {
            members
                .get(keyword)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        if self.dialect >= SchemaDialect::Draft2019
            && let Some(name) = anchor(ANCHOR)
        {
            self.anchors.insert((resource, name), pointer.to_owned());
        }
        if self.dialect == SchemaDialect::Draft2020
            && let Some(name) = anchor(DYNAMIC_ANCHOR)
        {
            self.dynamic
                .entry(name.clone())
                .or_default()
                .push(pointer.to_owned());
            self.anchors.insert((resource, name), pointer.to_owned());
        }
        each_inside_at(members, &mut pointer.to_owned(), &mut |schema, place| {
            self.scan(schema, place, resource);
        });
    }
}
