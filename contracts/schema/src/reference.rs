//! References from one schema to another: their targets, and their text.

use std::collections::{HashMap, HashSet};

use jsonschema::{Uri, uri};
use serde_json::{Map, Value, json};

use crate::{
    json::{percent_decoded, percent_encoded, push_pointer},
    keyword::{ALL_OF, ANCHORS, DEFINITIONS, DEFS, DYNAMIC_ANCHOR, ID, REF, SCHEMA},
    schema::add_to_all_of,
    walk::{each_inside, each_inside_mut},
};

/// References followed one after another.
const CHAIN_MAX: usize = 32;
/// Levels of a document that are searched for a name.
const DEPTH_MAX: usize = 64;
/// Why a document is refused.
const TOO_MANY: &str = "it has too many references";
/// Schemas looked at for the references of one document.
const LOOKUPS_MAX: usize = 2_000_000;

/// Returns the reference that a schema states.
pub fn stated(schema: &Value) -> Option<&str> {
    stated_in(schema.as_object()?)
}

/// Returns the reference among the members of a schema.
pub fn stated_in(members: &Map<String, Value>) -> Option<&str> {
    members.get(REF)?.as_str()
}

/// Returns what a reference names by a JSON Pointer in its own document.
pub fn pointed<'v>(root: &'v Value, reference: &str) -> Option<&'v Value> {
    root.pointer(&percent_decoded(reference.strip_prefix('#')?))
}

/// Returns what the reference of a schema names, as [`pointed`] does.
pub fn pointed_from<'v>(root: &'v Value, schema: &Value) -> Option<&'v Value> {
    pointed(root, stated(schema)?)
}

/// Returns a schema that is a reference and nothing else.
pub fn schema_for(reference: impl Into<Value>) -> Value {
    json!({ REF: reference.into() })
}

/// Returns the reference to a place below the definition of that name; `below` is a JSON Pointer from there.
pub fn definition(name: &str, below: &str) -> String {
    let mut pointer = format!("/{DEFS}");
    push_pointer(&mut pointer, name);
    format!("#{}", percent_encoded(&(pointer + below)))
}

/// Follows `$ref` to its target, as far as it remains in the document.
pub fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> Option<&'s Value> {
    for _ in 0..CHAIN_MAX {
        let Some(reference) = stated(schema) else {
            return Some(schema);
        };
        schema = find(root, reference)?;
    }
    None
}

/// Returns every schema that describes the same value as `schema`: itself, the targets of its references, and its `allOf`.
pub fn parts<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Map<String, Value>> {
    let mut parts = Vec::new();
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let Value::Object(map) = schema else { continue };
        if parts.len() >= CHAIN_MAX {
            break;
        }
        parts.push(map);
        open.extend(stated_in(map).and_then(|reference| find(root, reference)));
        if let Some(Value::Array(all)) = map.get(ALL_OF) {
            open.extend(all.iter().rev());
        }
    }
    parts
}

/// Returns what a reference names: by a JSON Pointer, an anchor or the `$id` of a schema.
pub fn find<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let root = match address.is_empty() {
        true => root,
        false => identified(root, address, 0)?,
    };
    match fragment.is_empty() || fragment.starts_with('/') {
        true => root.pointer(&percent_decoded(fragment)),
        false => anchored(root, fragment, 0),
    }
}

/// Returns the schema with this `$id`, in full or by the end of its address.
fn identified<'s>(schema: &'s Value, address: &str, depth: usize) -> Option<&'s Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    match schema {
        Value::Object(map) => match map.get(ID) {
            Some(Value::String(id)) if is_meant(id.trim_end_matches('#'), address) => Some(schema),
            _ => map
                .values()
                .find_map(|inner| identified(inner, address, depth + 1)),
        },
        Value::Array(items) => items
            .iter()
            .find_map(|inner| identified(inner, address, depth + 1)),
        _ => None,
    }
}

fn anchored<'s>(schema: &'s Value, name: &str, depth: usize) -> Option<&'s Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    match schema {
        Value::Object(map) => {
            let is_here = ANCHORS
                .iter()
                .any(|key| map.get(*key).is_some_and(|it| it == name));
            if is_here {
                return Some(schema);
            }
            map.values()
                .find_map(|inner| anchored(inner, name, depth + 1))
        }
        Value::Array(items) => items
            .iter()
            .find_map(|inner| anchored(inner, name, depth + 1)),
        _ => None,
    }
}

/// Resolves a reference to a document as another one sees it: RFC 3986, section 5. Text that is not an address is returned as
/// written.
pub(crate) fn joined(base: &str, reference: &str) -> String {
    let reference = reference.trim_end_matches('#');
    let address = match Uri::parse(base) {
        Ok(base) => uri::resolve_against(&base, reference),
        Err(_) => uri::from_str(reference),
    };
    address.map_or_else(|_| reference.to_owned(), |address| address.to_string())
}

/// Returns the keyword with the address of a schema, in the dialect of the whole document.
pub(crate) fn id_keyword(root: &Value) -> &'static str {
    match root.get(SCHEMA).and_then(Value::as_str) {
        Some(dialect) if dialect.contains("json-schema.org/draft-04/") => "id",
        _ => ID,
    }
}

/// The names in a document, for a schema with many references.
pub struct NamedSchemas<'s> {
    root: &'s Value,
    /// The keyword with the address of a schema.
    id: &'static str,
    /// The first schema with an anchor in each document.
    anchors: HashMap<(*const Value, &'s str), &'s Value>,
    /// All schemas with a dynamic anchor of that name.
    dynamic_anchors: HashMap<&'s str, Vec<&'s Value>>,
    /// The first one in each document, without those in places that do not hold schemas as such.
    scoped_anchors: HashMap<(*const Value, &'s str), &'s Value>,
    /// The documents by address: the root, and every schema with an `$id`.
    documents: HashMap<String, &'s Value>,
    addresses: HashMap<*const Value, String>,
    /// The document inside that a schema belongs to: its references start from there.
    inner_documents: HashMap<*const Value, &'s Value>,
    lookups: usize,
}

impl<'s> NamedSchemas<'s> {
    /// Collects the names in a document.
    pub fn new(root: &'s Value) -> Self {
        let mut names = Self {
            root,
            id: id_keyword(root),
            anchors: HashMap::new(),
            dynamic_anchors: HashMap::new(),
            scoped_anchors: HashMap::new(),
            documents: HashMap::new(),
            addresses: HashMap::new(),
            inner_documents: HashMap::new(),
            lookups: 0,
        };
        let mut schemas = HashSet::new();
        names.collect(root, root, &mut schemas);
        names.collect_others(root, root, &schemas);
        names
    }

    /// Collects the names of a schema and of the schemas inside it.
    fn collect(
        &mut self,
        schema: &'s Value,
        document: &'s Value,
        schemas: &mut HashSet<*const Value>,
    ) {
        let Value::Object(members) = schema else {
            return;
        };
        schemas.insert(std::ptr::from_ref(schema));
        let document = self.add(schema, members, document);
        if let Some(Value::String(name)) = members.get(DYNAMIC_ANCHOR) {
            let place = (std::ptr::from_ref(document), name.as_str());
            self.scoped_anchors.entry(place).or_insert(schema);
        }
        each_inside(members, &mut |inner| self.collect(inner, document, schemas));
    }

    /// Collects names in places that do not hold schemas as such, since a pointer may lead there. A schema's own names come
    /// before these.
    fn collect_others(
        &mut self,
        value: &'s Value,
        mut document: &'s Value,
        schemas: &HashSet<*const Value>,
    ) {
        match value {
            Value::Object(members) => {
                document = match schemas.contains(&std::ptr::from_ref(value)) {
                    true => self.document(value),
                    false => self.add(value, members, document),
                };
                let inside = members.values();
                inside.for_each(|inner| self.collect_others(inner, document, schemas));
            }
            Value::Array(items) => items
                .iter()
                .for_each(|inner| self.collect_others(inner, document, schemas)),
            _ => {}
        }
    }

    /// Adds what one schema is named. Returns the document that it belongs to.
    fn add(
        &mut self,
        schema: &'s Value,
        members: &'s Map<String, Value>,
        mut document: &'s Value,
    ) -> &'s Value {
        let place = std::ptr::from_ref(schema);
        let id = members.get(self.id).and_then(Value::as_str);
        // Older dialects write an anchor like this.
        let anchor = id.and_then(|id| id.strip_prefix('#'));
        if let Some(id) = id.filter(|_| anchor.is_none()) {
            let address = joined(self.address(document), id);
            self.documents.entry(address.clone()).or_insert(schema);
            self.addresses.insert(place, address);
            document = schema;
        }
        if !std::ptr::eq(document, self.root) {
            self.inner_documents.insert(place, document);
        }
        let named = ANCHORS.iter().filter_map(|keyword| members.get(*keyword));
        let names = named.filter_map(Value::as_str).chain(anchor);
        for name in names {
            let place = (std::ptr::from_ref(document), name);
            self.anchors.entry(place).or_insert(schema);
        }
        if let Some(Value::String(name)) = members.get(DYNAMIC_ANCHOR) {
            self.dynamic_anchors.entry(name).or_default().push(schema);
        }
        document
    }

    /// Returns the document that a schema belongs to.
    pub fn document(&self, schema: &Value) -> &'s Value {
        let place = std::ptr::from_ref(schema);
        let inner = self.inner_documents.get(&place).copied();
        inner.unwrap_or(self.root)
    }

    fn address(&self, document: &Value) -> &str {
        let place = std::ptr::from_ref(document);
        self.addresses.get(&place).map_or("", String::as_str)
    }

    /// Returns the document that a reference of a schema names.
    pub fn addressed(&self, schema: &Value, reference: &str) -> Option<&'s Value> {
        let (address, _) = reference.split_once('#').unwrap_or((reference, ""));
        let document = self.document(schema);
        match address.is_empty() {
            true => Some(document),
            false => {
                let address = joined(self.address(document), address);
                self.documents.get(&address).copied()
            }
        }
    }

    /// Returns the schema of a document with this dynamic anchor.
    pub fn dynamic_anchor(&self, document: &Value, name: &str) -> Option<&'s Value> {
        let place = (std::ptr::from_ref(document), name);
        self.scoped_anchors.get(&place).copied()
    }

    /// Returns all schemas that a reference to a dynamic anchor may mean besides its target, depending on the schemas around
    /// its value. Fails if there are too many.
    pub fn dynamic_targets(
        &mut self,
        reference: &str,
        target: &Value,
    ) -> Result<Vec<&'s Value>, String> {
        let (_, fragment) = reference.split_once('#').unwrap_or_default();
        // Any other reference means what it names, whatever its keyword.
        if target.get(DYNAMIC_ANCHOR).and_then(Value::as_str) != Some(fragment) {
            return Ok(Vec::new());
        }
        let anchors = self.dynamic_anchors.get(fragment);
        let anchors = anchors.map(Vec::as_slice).unwrap_or_default();
        self.lookups += anchors.len();
        if self.lookups > LOOKUPS_MAX {
            return Err(TOO_MANY.to_owned());
        }
        let others = anchors
            .iter()
            .filter(|other| !std::ptr::eq(**other, target));
        Ok(others.copied().collect())
    }

    /// Returns what a reference of a schema names. Fails if there are too many references.
    pub fn target(&mut self, schema: &Value, reference: &str) -> Result<Option<&'s Value>, String> {
        self.lookups += 1;
        if self.lookups > LOOKUPS_MAX {
            return Err(TOO_MANY.to_owned());
        }
        let Some(document) = self.addressed(schema, reference) else {
            return Ok(None);
        };
        let (_, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(document.pointer(&percent_decoded(fragment)));
        }
        let place = (std::ptr::from_ref(document), fragment);
        Ok(self.anchors.get(&place).copied())
    }
}

/// Returns `true` if the address is that of the `$id`, in full or by its end.
fn is_meant(id: &str, address: &str) -> bool {
    id == address
        || id
            .strip_suffix(address)
            .is_some_and(|front| front.ends_with('/'))
        || address.ends_with(id)
}

/// Returns every member of the schema and of the schemas that the same value must meet.
pub fn member_parts<'s>(
    names: &mut NamedSchemas<'s>,
    schema: &'s Value,
) -> Result<Vec<&'s Map<String, Value>>, String> {
    const PARTS_MAX: usize = 32;
    let (mut parts, mut open, mut seen) = (Vec::new(), vec![schema], HashSet::new());
    while let Some(schema) = open.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        if parts.len() == PARTS_MAX || !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        parts.push(members);
        if let Some(reference) = stated_in(members) {
            open.extend(names.target(schema, reference)?);
        }
        if let Some(Value::Array(all)) = members.get(ALL_OF) {
            open.extend(all);
        }
    }
    Ok(parts)
}

/// Replaces a reference by its target. If there are other keywords next to the reference, the target becomes one
/// schema of `allOf`.
pub fn write_out_reference(schema: &mut Value, root: &Value) {
    inline(schema, root);
    if let Value::Object(members) = schema
        && let Some(reference) = members.shift_remove(REF)
    {
        add_to_all_of(members, json!({ REF: reference }));
    }
}

/// Replaces an alternative that is only a reference by its target.
pub fn inline(schema: &mut Value, root: &Value) {
    // A chain of references is short, or leads in a circle.
    for _ in 0..CHAIN_MAX {
        let Some(Value::Object(target)) = pointed_from(root, schema) else {
            return;
        };
        let Value::Object(members) = &*schema else {
            return;
        };
        let texts = ["title", "description", "default", "examples", "$comment"];
        if members
            .keys()
            .any(|keyword| keyword != REF && !texts.contains(&keyword.as_str()))
        {
            return;
        }
        let mut inlined = target.clone();
        for keyword in [DEFS, DEFINITIONS, SCHEMA] {
            inlined.shift_remove(keyword);
        }
        let own = members.iter().filter(|(keyword, _)| *keyword != REF);
        inlined.extend(own.map(|(keyword, text)| (keyword.clone(), text.clone())));
        *schema = Value::Object(inlined);
    }
}

/// Rewrites the references of a schema and of all inside.
pub fn redirect(schema: &mut Map<String, Value>, to: &dyn Fn(&str) -> Option<String>) {
    if let Some(Value::String(target)) = schema.get_mut(REF)
        && let Some(moved) = to(target)
    {
        *target = moved;
    }
    each_inside_mut(schema, &mut |inner| {
        inner
            .as_object_mut()
            .into_iter()
            .for_each(|inner| redirect(inner, to));
    });
}

/// Visits every schema in a document once: those under keywords that hold some, and those that references lead to, wherever
/// they stand.
pub fn each_reached(root: &Value, found: &mut dyn FnMut(&Value)) {
    let (mut known, mut next) = (HashSet::new(), vec![root]);
    while let Some(schema) = next.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        if !known.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        found(schema);
        next.extend(pointed_from(root, schema));
        let inside = next.len();
        each_inside(members, &mut |inner| next.push(inner));
        next[inside..].reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn a_reference_is_resolved_as_an_address() {
        let base = "https://example.org/a/b?of=/c/d";
        for (reference, expected) in [
            ("tree", "https://example.org/a/tree"),
            ("./tree#", "https://example.org/a/tree"),
            ("/tree", "https://example.org/tree"),
            ("../tree", "https://example.org/tree"),
            ("../../tree", "https://example.org/tree"),
            ("x/./../tree", "https://example.org/a/tree"),
            ("?of=e", "https://example.org/a/b?of=e"),
            ("//example.com/tree", "https://example.com/tree"),
            ("HTTPS://EXAMPLE.com/tree", "https://example.com/tree"),
            ("urn:example:tree", "urn:example:tree"),
            ("no address", "no address"),
        ] {
            assert_eq!(joined(base, reference), expected, "{reference}");
        }
        // A document without an address has the same one throughout.
        assert_eq!(joined("", "tree"), joined(&joined("", "a"), "/tree"));
    }
}
