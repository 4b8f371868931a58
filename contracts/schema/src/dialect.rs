//! Converts schemas of older dialects to JSON Schema 2020-12. The same values are valid before and after.
//!
//! References become pointers from the root, and identifiers and anchors are removed: a published schema is part of a list,
//! where no reader resolves them. Keywords unknown to the dialect are ignored.

mod scan;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::{
    json::{self, push_pointer},
    keyword::{
        ANCHOR, ANNOTATIONS, DEFINITIONS, DEFS, DYNAMIC_ANCHOR, DYNAMIC_REF, ID, RECURSIVE_REF,
        REF, SCHEMA,
    },
    name,
    reference::joined,
    schema::{DIALECT, each_once},
    walk::{SubschemaKind, each_inside_mut, inside},
};

/// References into places that do not hold schemas as such; each becomes a schema under `$defs`.
const LIFTED_MAX: usize = 1_000;
const BOUNDS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SchemaDialect {
    Draft4,
    Draft6,
    Draft7,
    Draft2019,
    Draft2020,
}

impl SchemaDialect {
    fn from_schema(schema: &Value) -> Result<Self, String> {
        schema.get(SCHEMA).map_or(Ok(Self::Draft2020), Self::named)
    }

    fn named(stated: &Value) -> Result<Self, String> {
        let stated = stated.as_str().unwrap_or_default();
        let known = stated
            .trim_end_matches('#')
            .split_once("://")
            .map(|(_, dialect)| dialect);
        match known {
            Some("json-schema.org/draft-04/schema") => Ok(Self::Draft4),
            Some("json-schema.org/draft-06/schema") => Ok(Self::Draft6),
            Some("json-schema.org/draft-07/schema") => Ok(Self::Draft7),
            Some("json-schema.org/draft/2019-09/schema") => Ok(Self::Draft2019),
            Some("json-schema.org/draft/2020-12/schema") => Ok(Self::Draft2020),
            _ => Err(format!("the dialect {} is not known", name::quoted(stated))),
        }
    }

    /// Returns the first dialect with a keyword, if that is not the oldest one.
    fn since(keyword: &str) -> Self {
        match keyword {
            "const" | "contains" | "propertyNames" => Self::Draft6,
            "if" | "then" | "else" => Self::Draft7,
            "dependentRequired"
            | "dependentSchemas"
            | "minContains"
            | "maxContains"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => Self::Draft2019,
            "prefixItems" => Self::Draft2020,
            _ => Self::Draft4,
        }
    }
}

/// Returns `true` if the dialect that the schema names is known here, or if it names none.
pub fn is_known(schema: &Value) -> bool {
    SchemaDialect::from_schema(schema).is_ok()
}

/// Translates the schema into 2020-12. The error names what has no counterpart there.
pub fn translate(schema: &Value) -> Result<Value, String> {
    let dialect = SchemaDialect::from_schema(schema)?;
    let mut translator = DialectTranslator {
        root: schema,
        dialect,
        resources: vec![SchemaResource {
            id: String::new(),
            pointer: String::new(),
        }],
        anchors: BTreeMap::new(),
        dynamic: BTreeMap::new(),
        moved: BTreeMap::new(),
        lifted: BTreeSet::new(),
        wanted: BTreeSet::new(),
        has_recursive_anchor: false,
        has_contains: false,
        has_unevaluated_items: false,
    };
    translator.scan(schema, "", 0);
    let mut translated = translator.schema(schema, "", "", 0)?;
    translator.lift(&mut translated)?;
    if dialect == SchemaDialect::Draft2019
        && translator.has_contains
        && translator.has_unevaluated_items
    {
        return Err(
            "`contains` next to `unevaluatedItems` means something else in 2019-09 than in 2020-12"
                .to_owned(),
        );
    }
    point(&mut translated, &translator.moved);
    if let (Some(_), Value::Object(members)) = (schema.get(SCHEMA), &mut translated) {
        members.shift_insert(0, SCHEMA.to_owned(), DIALECT.into());
    }
    Ok(translated)
}

/// A schema with its own identifier.
struct SchemaResource {
    /// The address; empty for a document without one.
    id: String,
    pointer: String,
}

struct DialectTranslator<'s> {
    root: &'s Value,
    dialect: SchemaDialect,
    /// The first one is the document.
    resources: Vec<SchemaResource>,
    /// Pointers by resource and name.
    anchors: BTreeMap<(usize, String), String>,
    /// Dynamic anchors: pointers by name.
    dynamic: BTreeMap<String, Vec<String>>,
    /// The place in the translation of each schema of the original.
    moved: BTreeMap<String, String>,
    /// Those that have become definitions.
    lifted: BTreeSet<String>,
    /// Pointers of the original that references lead to.
    wanted: BTreeSet<String>,
    /// Whether there is a recursive anchor. If not, `$recursiveRef` means the same as `$ref`.
    has_recursive_anchor: bool,
    has_contains: bool,
    has_unevaluated_items: bool,
}

impl DialectTranslator<'_> {
    fn schema(
        &mut self,
        schema: &Value,
        old: &str,
        new: &str,
        resource: usize,
    ) -> Result<Value, String> {
        if !self.lifted.contains(old) {
            self.moved.insert(old.to_owned(), new.to_owned());
        }
        let Value::Object(members) = schema else {
            return Ok(schema.clone());
        };
        let own = self
            .resources
            .iter()
            .position(|resource| resource.pointer == old);
        let resource = own.unwrap_or(resource);
        let overridden =
            self.dialect <= SchemaDialect::Draft7 && members.get(REF).is_some_and(Value::is_string);
        let mut out = Map::new();
        // `dependencies` joins the keywords that took its place, and comes after them.
        let joins = ["dependentRequired", "dependentSchemas"]
            .iter()
            .any(|keyword| members.contains_key(*keyword));
        let (last, first): (Vec<_>, Vec<_>) = members
            .iter()
            .partition(|(keyword, _)| joins && *keyword == "dependencies");
        for (keyword, value) in first.into_iter().chain(last) {
            let keyword = keyword.as_str();
            let is_ignored = overridden
                && !ANNOTATIONS.contains(&keyword)
                && ![REF, DEFINITIONS, DEFS].contains(&keyword);
            if is_ignored || SchemaDialect::since(keyword) > self.dialect {
                continue;
            }
            self.keyword(members, keyword, value, &mut out, (old, new), resource)?;
        }
        Ok(Value::Object(out))
    }

    fn keyword(
        &mut self,
        members: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        out: &mut Map<String, Value>,
        (old, new): (&str, &str),
        resource: usize,
    ) -> Result<(), String> {
        let at = below(old, keyword);
        match keyword {
            SCHEMA if SchemaDialect::named(value) == Ok(self.dialect) => {}
            SCHEMA => return Err(format!("a schema inside is of another dialect, at {at}")),
            "id" if self.dialect == SchemaDialect::Draft4 && value.is_string() => {}
            ID | ANCHOR | DYNAMIC_ANCHOR | "$recursiveAnchor" | "$vocabulary" => {}
            REF => self.refer(&self.resolved(value, resource)?, out),
            DYNAMIC_REF if self.dialect == SchemaDialect::Draft2020 => {
                self.refer_dynamically(value, &at, resource, out)?;
            }
            RECURSIVE_REF if self.dialect == SchemaDialect::Draft2019 => {
                if self.resources.len() > 1 && self.has_recursive_anchor {
                    return Err(format!(
                        "`$recursiveRef` at {at} may mean one of several schemas"
                    ));
                }
                self.refer(&self.resolved(value, resource)?, out);
            }
            DYNAMIC_REF | RECURSIVE_REF | "additionalItems" => {}
            DEFINITIONS | DEFS => {
                let to = if self.dialect == SchemaDialect::Draft2020 {
                    keyword
                } else {
                    DEFS
                };
                self.named(value, (&at, new), to, resource, out)?;
            }
            "properties" | "patternProperties" | "dependentSchemas" => {
                self.named(value, (&at, new), keyword, resource, out)?;
            }
            "dependencies" => self.dependencies(value, (&at, new), resource, out)?,
            "items" if value.is_array() => {
                self.translate_tuple(members, value, out, (old, new), resource)?;
            }
            "minimum" | "maximum" if self.dialect == SchemaDialect::Draft4 => {
                translate_bound(members, keyword, value, out);
            }
            "exclusiveMinimum" | "exclusiveMaximum" if self.dialect == SchemaDialect::Draft4 => {}
            bound if BOUNDS.contains(&bound) && is_no_bound(bound, value) => {}
            "default" | "examples" if !json::is_exact(value) => {}
            "const" | "enum" if !json::is_exact(value) => {
                return Err(format!("a number at {at} is too large to be sent exactly"));
            }
            "enum" if value.is_array() => {
                let items = each_once(value).into_iter().cloned();
                out.insert(keyword.to_owned(), items.collect());
            }
            _ => {
                self.has_contains |= keyword == "contains";
                self.has_unevaluated_items |= keyword == "unevaluatedItems";
                let to = below(new, keyword);
                let translated = match (inside(keyword), value) {
                    (SubschemaKind::Schemas, Value::Array(_)) => {
                        self.listed(value, &at, &to, resource)?
                    }
                    (SubschemaKind::Schemas, value) => self.schema(value, &at, &to, resource)?,
                    _ => value.clone(),
                };
                out.insert(keyword.to_owned(), translated);
            }
        }
        Ok(())
    }

    /// Refers to what a dynamic reference means, if that is one schema.
    fn refer_dynamically(
        &mut self,
        value: &Value,
        at: &str,
        resource: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let target = self.resolved(value, resource)?;
        let anchor = value
            .as_str()
            .and_then(|reference| reference.split_once('#'))
            .map(|(_, name)| name);
        let is_one = anchor
            .and_then(|name| self.dynamic.get(name))
            .is_none_or(|places| places.len() == 1);
        if !is_one {
            return Err(format!(
                "`$dynamicRef` at {at} may mean one of several schemas"
            ));
        }
        self.refer(&target, out);
        Ok(())
    }

    /// Writes an array of `items` as `prefixItems`, and `additionalItems` as `items`.
    fn translate_tuple(
        &mut self,
        members: &Map<String, Value>,
        value: &Value,
        out: &mut Map<String, Value>,
        (old, new): (&str, &str),
        resource: usize,
    ) -> Result<(), String> {
        let items = self.listed(
            value,
            &below(old, "items"),
            &below(new, "prefixItems"),
            resource,
        )?;
        out.insert("prefixItems".to_owned(), items);
        if let Some(rest) = members.get("additionalItems") {
            let rest = self.schema(
                rest,
                &below(old, "additionalItems"),
                &below(new, "items"),
                resource,
            )?;
            out.insert("items".to_owned(), rest);
        }
        Ok(())
    }

    fn named(
        &mut self,
        value: &Value,
        (old, new): (&str, &str),
        to: &str,
        resource: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let Value::Object(schemas) = value else {
            return Ok(());
        };
        for (name, schema) in schemas {
            let there = out.entry(to).or_insert_with(|| Value::Object(Map::new()));
            // `definitions` and `$defs` may both have it.
            let free = free_name(name, there);
            let translated = self.schema(
                schema,
                &below(old, name),
                &below(&below(new, to), &free),
                resource,
            )?;
            if let Some(Value::Object(there)) = out.get_mut(to) {
                there.insert(free, translated);
            }
        }
        if schemas.is_empty() {
            out.entry(to).or_insert_with(|| Value::Object(Map::new()));
        }
        Ok(())
    }

    fn listed(
        &mut self,
        value: &Value,
        old: &str,
        new: &str,
        resource: usize,
    ) -> Result<Value, String> {
        let schemas = value.as_array().into_iter().flatten().enumerate();
        schemas
            .map(|(index, schema)| {
                self.schema(
                    schema,
                    &format!("{old}/{index}"),
                    &format!("{new}/{index}"),
                    resource,
                )
            })
            .collect()
    }

    /// Names are required together, or apply a schema to the whole object.
    fn dependencies(
        &mut self,
        value: &Value,
        (old, new): (&str, &str),
        resource: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let mut schemas = Map::new();
        for (name, dependency) in value.as_object().into_iter().flatten() {
            if dependency.is_array() {
                let names = out
                    .entry("dependentRequired")
                    .or_insert_with(|| Value::Object(Map::new()));
                if names.get(name).is_some_and(|other| other != dependency) {
                    return Err(format!(
                        "{} is in `dependencies` and in `dependentRequired`",
                        name::quoted(name)
                    ));
                }
                names[name] = dependency.clone();
            } else {
                let to = below(&below(new, "dependentSchemas"), name);
                schemas.insert(
                    name.clone(),
                    self.schema(dependency, &below(old, name), &to, resource)?,
                );
            }
        }
        for (name, schema) in schemas {
            let there = out
                .entry("dependentSchemas")
                .or_insert_with(|| Value::Object(Map::new()));
            if there.get(&name).is_some() {
                return Err(format!(
                    "{} is in `dependencies` and in `dependentSchemas`",
                    name::quoted(&name)
                ));
            }
            there[&name] = schema;
        }
        Ok(())
    }

    /// Writes the pointer into the original; its place in the translation is known only at the end.
    fn refer(&mut self, target: &str, out: &mut Map<String, Value>) {
        self.wanted.insert(target.to_owned());
        out.insert(REF.to_owned(), target.into());
    }

    /// Returns the pointer from the document's root that a reference means.
    fn resolved(&self, reference: &Value, resource: usize) -> Result<String, String> {
        let reference = reference.as_str().unwrap_or_default();
        let shown = || name::quoted(reference);
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = match document.is_empty() {
            true => resource,
            false => {
                let address = joined(&self.resources[resource].id, document);
                let is_meant = |resource: &SchemaResource| resource.id == address;
                let found = self.resources.iter().position(is_meant);
                found.ok_or_else(|| {
                    format!(
                        "`$ref` names another document ({}), which is never fetched",
                        shown()
                    )
                })?
            }
        };
        let base = &self.resources[resource].pointer;
        let fragment = json::percent_decoded(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            let mut pointer = base.clone();
            json::pointer_tokens(&fragment)
                .iter()
                .for_each(|token| push_pointer(&mut pointer, token));
            return match self.root.pointer(&pointer) {
                Some(Value::Object(_) | Value::Bool(_)) => Ok(pointer),
                _ => Err(format!("`$ref` leads to no schema: {}", shown())),
            };
        }
        let anchor = self.anchors.get(&(resource, fragment));
        anchor
            .cloned()
            .ok_or_else(|| format!("`$ref` leads to no schema: {}", shown()))
    }

    /// Returns `true` if references can still name this place: a definition at the root stays where it is; other schemas of a
    /// published schema may change or go.
    fn is_steady(&self, pointer: &str) -> bool {
        self.moved.get(pointer).is_some_and(|now| {
            let definition = now
                .strip_prefix("/$defs/")
                .or_else(|| now.strip_prefix("/definitions/"));
            // What a reference in a document inside this one means depends on its place.
            now.is_empty()
                || definition.is_some_and(|name| !name.contains('/'))
                || self.resources.len() > 1
        })
    }

    /// Makes definitions of schemas in other places, such as `#/components/schemas/Pet` or `#/properties/first`.
    fn lift(&mut self, translated: &mut Value) -> Result<(), String> {
        while let Some(pointer) = self
            .wanted
            .iter()
            .find(|pointer| !self.is_steady(pointer))
            .cloned()
        {
            if self.lifted.len() >= LIFTED_MAX {
                return Err(format!(
                    "more than {LIFTED_MAX} references lead to places outside of `$defs`"
                ));
            }
            let Some(schema) = self.root.pointer(&pointer).cloned() else {
                return Err(format!(
                    "`$ref` leads to no schema: {}",
                    name::quoted(&pointer)
                ));
            };
            let plain = |character: char| {
                if character.is_ascii_alphanumeric() {
                    character
                } else {
                    '_'
                }
            };
            let last = json::pointer_tokens(&pointer)
                .last()
                .map(|token| token.chars().map(plain).collect::<String>());
            let Value::Object(root) = &mut *translated else {
                return Ok(());
            };
            let definitions = root
                .entry(DEFS)
                .or_insert_with(|| Value::Object(Map::new()));
            let free = free_name(last.as_deref().unwrap_or("schema"), definitions);
            // The place is reserved before anything inside asks for one.
            definitions[&free] = Value::Bool(true);
            let place = below("/$defs", &free);
            if self.moved.insert(pointer.clone(), place.clone()).is_none() {
                self.scan(&schema, &pointer, 0);
            }
            self.lifted.insert(pointer.clone());
            let schema = self.schema(&schema, &pointer, &place, 0)?;
            if let Some(definition) = translated
                .pointer_mut("/$defs")
                .and_then(|all| all.get_mut(&free))
            {
                *definition = schema;
            }
        }
        Ok(())
    }
}

/// Turns references with a pointer into the original into pointers into the translation.
fn point(schema: &mut Value, moved: &BTreeMap<String, String>) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(Value::String(target)) = members.get_mut(REF)
        && let Some(now) = moved.get(target.as_str())
    {
        *target = format!("#{}", json::percent_encoded(now));
    }
    each_inside_mut(members, &mut |schema| point(schema, moved));
}

fn below(pointer: &str, token: &str) -> String {
    let mut below = pointer.to_owned();
    push_pointer(&mut below, token);
    below
}

fn free_name(wanted: &str, taken: &Value) -> String {
    let mut names =
        std::iter::once(wanted.to_owned()).chain((2..).map(|number| format!("{wanted}_{number}")));
    names
        .find(|name| taken.get(name).is_none())
        .expect("there are infinitely many names")
}

/// Writes a bound of draft 4, where an adjacent flag makes it exclusive.
fn translate_bound(
    members: &Map<String, Value>,
    keyword: &str,
    value: &Value,
    out: &mut Map<String, Value>,
) {
    let exclusive = if keyword == "minimum" {
        "exclusiveMinimum"
    } else {
        "exclusiveMaximum"
    };
    let is_exclusive = members.get(exclusive) == Some(&Value::Bool(true));
    if !is_no_bound(keyword, value) {
        out.insert(
            if is_exclusive { exclusive } else { keyword }.to_owned(),
            value.clone(),
        );
    }
}

/// Returns `true` for a bound beyond the integers that our readers take: it is true for every value.
fn is_no_bound(keyword: &str, value: &Value) -> bool {
    let Some(bound) = value.as_f64() else {
        return false;
    };
    match keyword {
        "maximum" | "exclusiveMaximum" => bound > json::INTEGER_MAX as f64,
        "minimum" | "exclusiveMinimum" => bound < -(json::INTEGER_MAX as f64),
        _ => false,
    }
}
