//! Makes each schema of a document independent: in 2020-12, with its definitions in its own `$defs`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use weir_schema::{
    keyword::{DEFINITIONS, DEFS, REF},
    reference::{schema_for, stated_in},
    rewrite,
    schema::each_once,
    walk::{self, SubschemaKind, inside},
};
use weir_text::shorten;

use super::{
    contradiction, discriminator::SchemaDiscriminator, document::ImportDocument, text::sentence,
};
use crate::{json, name, offer, upstream, validate};

/// Schemas inside one argument, or of one body or answer, with all that they refer to.
pub(super) const SCHEMAS_MAX: usize = 5_000;
const DEPTH_MAX: usize = 60;
const TEXT_MAX: usize = 300;
const PATTERN_MAX: usize = 1_000;
/// A time of day as services write and take it: most have no offset, which the format `time` of JSON Schema requires.
const TIME_OF_DAY: &str =
    r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?([Zz]|[+-][0-9]{2}:[0-9]{2})?$";
/// The parts of `allOf`s and the names in them that are looked through for one argument.
const PARTS_MAX: usize = 50_000;

/// Keywords that mean the same in 2020-12 and hold no schemas.
const KEPT: &[&str] = &[
    "type",
    "enum",
    "const",
    "format",
    "required",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
    "dependentRequired",
    "contentEncoding",
    "contentMediaType",
    "deprecated",
];
const NUMERIC: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
const REFUSED: &[&str] = &[
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
];

/// A lifted schema, with the keywords that were dropped: the kind of each, and a sentence.
pub(super) struct LiftedSchema {
    pub(super) schema: Value,
    pub(super) dropped: Vec<(&'static str, String)>,
}

/// Lifts a schema out of the document. The error explains in one sentence why it cannot be that of an argument.
pub(super) fn lift(document: &ImportDocument, schema: &Value) -> Result<LiftedSchema, String> {
    let lifted = lift_as(document, schema, true)?;
    // Where a schema must not be met, one that takes more refuses more.
    match has_negation(&lifted.schema) {
        true => lift_as(document, schema, false),
        false => Ok(lifted),
    }
}

/// Returns `true` if a schema may have a part that a value must not meet, or not too often.
fn has_negation(schema: &Value) -> bool {
    let text = schema.to_string();
    ["not", "if", "maxContains"]
        .iter()
        .any(|keyword| text.contains(&format!("\"{keyword}\":")))
}

fn lift_as(
    document: &ImportDocument,
    schema: &Value,
    loosens: bool,
) -> Result<LiftedSchema, String> {
    let mut lifter = SchemaLifter {
        document,
        loosens,
        defs: Map::new(),
        names: BTreeMap::new(),
        open: Vec::new(),
        left: SCHEMAS_MAX,
        left_in_parts: PARTS_MAX,
        dropped: Vec::new(),
        left_out: BTreeSet::new(),
    };
    let start = match document.is_3_0 || schema.as_object().is_some_and(|schema| schema.len() == 1)
    {
        true => document.resolved(schema)?,
        false => schema,
    };
    let mut lifted = lifter.schema(start, 0)?;
    while let Some((name, reference)) = lifter.open.pop() {
        let definition = lifter.schema(document.target(&reference)?, 0)?;
        lifter.defs.insert(name, definition);
    }
    if let Value::Object(members) = &mut lifted
        && !lifter.defs.is_empty()
    {
        members.insert(DEFS.to_owned(), Value::Object(lifter.defs));
    }
    rewrite::leave_out_patterns(&mut lifted, &lifter.left_out);
    upstream::plain_types(&mut lifted);
    Ok(LiftedSchema {
        schema: lifted,
        dropped: lifter.dropped,
    })
}

/// Takes the schema of an object, with the names in it, from what may still be looked at. Returns `false` if that is less.
pub(super) fn spend(left: &mut usize, members: &Map<String, Value>) -> bool {
    let properties = members
        .get("properties")
        .and_then(Value::as_object)
        .map_or(0, Map::len);
    let required = members
        .get("required")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    let spent = left.checked_sub(1 + properties + required);
    *left = spent.unwrap_or(0);
    spent.is_some()
}

/// Adds the members that only answers have, as the parts of an `allOf` name them. `left` is how much may still be looked at.
fn read_only_in_parts<'s>(
    document: &'s ImportDocument,
    members: &'s Map<String, Value>,
    left: &mut usize,
    found: &mut Vec<String>,
) -> Result<(), String> {
    // Without recursion: parts may refer to each other in a circle, until nothing is left.
    let mut open = vec![members];
    while let Some(members) = open.pop() {
        for part in walk::elements(members.get("allOf")) {
            let Value::Object(part) = document.resolved(part)? else {
                continue;
            };
            if !spend(left, part) {
                return Ok(());
            }
            for (name, schema) in walk::members(part.get("properties")) {
                if document.is_read_only(schema)? {
                    found.push(name.clone());
                }
            }
            open.push(part);
        }
    }
    Ok(())
}

/// Takes a time of day without seconds or an offset too, unless the schema has its own pattern.
fn loosen_time(lifted: &mut Map<String, Value>) {
    let is_time = lifted.get("format").is_some_and(|format| format == "time");
    let may_be_text = lifted
        .get("type")
        .is_none_or(|kind| kind == "string" || kind.is_array());
    if is_time && may_be_text {
        lifted.shift_remove("format");
        lifted
            .entry("pattern")
            .or_insert_with(|| TIME_OF_DAY.into());
    }
}

struct SchemaLifter<'d> {
    document: &'d ImportDocument,
    /// A value may meet several of the alternatives in a `oneOf`.
    loosens: bool,
    defs: Map<String, Value>,
    /// Reference → the name of its definition.
    names: BTreeMap<String, String>,
    /// Definitions that are still to be lifted: a chain of references may be longer than a schema is deep.
    open: Vec<(String, String)>,
    left: usize,
    /// The number of parts of `allOf`s that may still be examined.
    left_in_parts: usize,
    dropped: Vec<(&'static str, String)>,
    /// The patterns that are left out.
    left_out: BTreeSet<String>,
}

impl SchemaLifter<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Result<Value, String> {
        self.part(schema, depth, &[])
    }

    /// Lifts a schema that is part of an `allOf`: what a client does not send for the whole, it does not send for the part.
    fn part(
        &mut self,
        schema: &Value,
        depth: usize,
        unsent_of_whole: &[String],
    ) -> Result<Value, String> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or("the schema with all that it refers to is too large")?;
        if depth > DEPTH_MAX {
            return Err("the schema is nested too deeply".to_owned());
        }
        let members = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(members) => members,
            _ => return Err("a schema is not an object".to_owned()),
        };
        if let Some(keyword) = REFUSED
            .iter()
            .find(|keyword| members.contains_key(**keyword))
        {
            return Err(format!("a schema has `{keyword}`, which is not read"));
        }
        let mut lifted = Map::new();
        if let Some(reference) = stated_in(members) {
            lifted.insert(REF.to_owned(), self.definition(reference).into());
            // In 3.0 the members next to a reference are ignored.
            if self.document.is_3_0 {
                return Ok(Value::Object(lifted));
            }
        }
        let mut unsent = self.unsent(members)?;
        unsent.extend_from_slice(unsent_of_whole);
        // Alternatives of documents overlap, and then a value may fit more than one: only the service judges that.
        let loosens = self.loosens && !members.contains_key("anyOf");
        for (keyword, value) in members.iter().filter(|(keyword, _)| *keyword != REF) {
            let keyword = match keyword.as_str() {
                "oneOf" if loosens => "anyOf",
                keyword => keyword,
            };
            self.keyword(keyword, value, &unsent, depth, &mut lifted)?;
        }
        let contradictions = contradiction::mend(&mut lifted).into_iter();
        self.dropped
            .extend(contradictions.map(|why| ("schema", why)));
        if self.loosens {
            loosen_time(&mut lifted);
        }
        self.discriminate(members, &unsent, &mut lifted);
        if self.document.is_3_0 {
            exclusive(members, &mut lifted);
            if members.get("nullable") == Some(&Value::Bool(true)) {
                return Ok(or_null(lifted));
            }
        }
        Ok(Value::Object(lifted))
    }

    /// Lets the discriminator choose one of the alternatives.
    fn discriminate(
        &mut self,
        members: &Map<String, Value>,
        unsent: &[String],
        lifted: &mut Map<String, Value>,
    ) {
        let Some(discriminator) = SchemaDiscriminator::read(self.document, members)
            .filter(|discriminator| !unsent.iter().any(|name| name == discriminator.property))
        else {
            return;
        };
        let stated = ["oneOf", "anyOf"]
            .iter()
            .find_map(|keyword| members.get(*keyword)?.as_array());
        let Some(choices) = stated.and_then(|arms| discriminator.choices(arms)) else {
            return;
        };
        let arms = choices.into_iter().map(|choice| {
            let reference = schema_for(self.definition(&choice.reference));
            match choice.rule {
                Some(rule) => json!({ "allOf": [reference, rule] }),
                None => reference,
            }
        });
        let arms: Vec<Value> = arms.collect();
        // A value without the property chooses none, and may fit several.
        let is_exact = arms
            .iter()
            .all(|arm| arm.pointer("/allOf/1/required").is_some());
        lifted.shift_remove("oneOf");
        lifted.shift_remove("anyOf");
        let keyword = if is_exact { "oneOf" } else { "anyOf" };
        lifted.insert(keyword.to_owned(), arms.into());
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        unsent: &[String],
        depth: usize,
        lifted: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let kept = match keyword {
            "required" => {
                let names = each_once(value).into_iter();
                let names: Vec<&Value> = names
                    .filter(|name| unsent.iter().all(|unsent| **name != **unsent))
                    .collect();
                (!names.is_empty()).then(|| json!(names))
            }
            "properties" => {
                let mut properties = Map::new();
                for (name, schema) in value.as_object().into_iter().flatten() {
                    if !unsent.contains(name) {
                        properties.insert(name.clone(), self.schema(schema, depth + 1)?);
                    }
                }
                Some(Value::Object(properties))
            }
            "description" | "title" => value.as_str().map(|text| sentence(text, TEXT_MAX).into()),
            "pattern" => value.as_str().map(|pattern| {
                self.check_pattern(pattern);
                pattern.into()
            }),
            "default" => can_be_shown(value).then(|| value.clone()),
            "example" => (self.document.is_3_0 && can_be_shown(value))
                .then(|| {
                    lifted.insert("examples".to_owned(), json!([value]));
                })
                .and(None),
            "examples" => value
                .as_array()
                .filter(|all| !self.document.is_3_0 && all.iter().all(can_be_shown))
                .map(|all| json!(all)),
            // References find these by their place in the document.
            DEFS | DEFINITIONS => None,
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => None,
            keyword if NUMERIC.contains(&keyword) => value
                .as_f64()
                .filter(|number| number.abs() <= json::INTEGER_MAX as f64)
                .map(|_| value.clone()),
            "enum" | "const" if !json::is_exact(value) => {
                return Err(
                    "a schema names a number that is too large to be sent exactly".to_owned(),
                );
            }
            "enum" => Some(json!(each_once(value))),
            // A length or count beyond the exact integers of readers bounds nothing.
            keyword if KEPT.contains(&keyword) => json::is_exact(value).then(|| value.clone()),
            keyword => match (inside(keyword), value) {
                (SubschemaKind::Named, Value::Object(schemas)) => {
                    let mut inner = Map::new();
                    for (name, schema) in schemas {
                        if keyword == "patternProperties" {
                            self.check_pattern(name);
                        }
                        inner.insert(name.clone(), self.schema(schema, depth + 1)?);
                    }
                    Some(Value::Object(inner))
                }
                (SubschemaKind::Schemas, Value::Array(schemas)) => {
                    let unsent = if keyword == "allOf" { unsent } else { &[] };
                    Some(
                        schemas
                            .iter()
                            .map(|schema| self.part(schema, depth + 1, unsent))
                            .collect::<Result<_, _>>()?,
                    )
                }
                (SubschemaKind::Schemas, schema) => Some(self.schema(schema, depth + 1)?),
                // `xml` and extensions do not constrain a value. A discriminator chooses among alternatives.
                _ => None,
            },
        };
        if let Some(kept) = kept {
            lifted.insert(keyword.to_owned(), kept);
        }
        Ok(())
    }

    /// Returns the members that a client does not send: those that only answers have, and those whose names no tool may
    /// have.
    fn unsent(&mut self, members: &Map<String, Value>) -> Result<Vec<String>, String> {
        let mut unsent = Vec::new();
        read_only_in_parts(self.document, members, &mut self.left_in_parts, &mut unsent)?;
        let required = |name: &str| {
            members
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|names| names.iter().any(|one| one == name))
        };
        for (name, schema) in walk::members(members.get("properties")) {
            if self.document.is_read_only(schema)? {
                unsent.push(name.clone());
            } else if !name::is_field(name) {
                let shown = name::quoted(name);
                if required(name) {
                    return Err(format!(
                        "it must have a member {shown}, whose name some models' interfaces refuse"
                    ));
                }
                self.dropped.push((
                    "member-name",
                    format!(
                        "the member {shown} is left out: some models' interfaces refuse its name"
                    ),
                ));
                unsent.push(name.clone());
            }
        }
        Ok(unsent)
    }

    /// Notes a pattern that takes long, or that our engine or JSON Schema does not support: it is left out, and only the
    /// service checks it.
    fn check_pattern(&mut self, pattern: &str) {
        let runs = offer::check_pattern(pattern, PATTERN_MAX).is_ok()
            && validate::validator(&json!({ "type": "string", "pattern": pattern })).is_ok();
        let fault = match (runs, validate::is_pattern(pattern)) {
            (true, true) if is_delimited(pattern) => {
                "is written between slashes, which no text fits"
            }
            (true, true) => return,
            (true, false) => "is not one of JSON Schema",
            (false, _) => "does not run in linear time",
        };
        let shown = shorten(pattern, 60);
        self.dropped.push((
            "pattern",
            format!("the pattern `{shown}` {fault}; only the service checks it"),
        ));
        self.left_out.insert(pattern.to_owned());
    }

    /// Returns `#/$defs/NAME` for a place in the document.
    fn definition(&mut self, reference: &str) -> String {
        if let Some(name) = self.names.get(reference) {
            return format!("#/$defs/{name}");
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let plain: String = last
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "_.-".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .take(60)
            .collect();
        let plain = if plain.is_empty() {
            "schema".to_owned()
        } else {
            plain
        };
        let others = (2..).map(|number| format!("{plain}_{number}"));
        let is_free = |name: &String| !self.names.values().any(|taken| taken == name);
        let name = std::iter::once(plain.clone())
            .chain(others)
            .find(is_free)
            .expect("numbers do not end");
        self.names.insert(reference.to_owned(), name.clone());
        self.open.push((name.clone(), reference.to_owned()));
        format!("#/$defs/{name}")
    }
}

/// Returns `true` for a pattern as JavaScript writes it, such as `/^[a-z]+$/i`. No text begins after its first character, or
/// ends before its last one.
fn is_delimited(pattern: &str) -> bool {
    let flags = |flag: char| flag.is_ascii_lowercase();
    let inner = pattern
        .strip_prefix('/')
        .and_then(|rest| rest.trim_end_matches(flags).strip_suffix('/'));
    inner.is_some_and(|inner| {
        inner.starts_with('^') || (inner.ends_with('$') && !inner.ends_with("\\$"))
    })
}

/// Rewrites exclusive bounds of 3.0, which has booleans next to the bounds.
fn exclusive(members: &Map<String, Value>, lifted: &mut Map<String, Value>) {
    for (bound, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        if members.get(exclusive) == Some(&Value::Bool(true))
            && let Some(value) = lifted.shift_remove(bound)
        {
            lifted.insert(exclusive.to_owned(), value);
        }
    }
}

/// Adds null as an alternative. Texts are kept outside, where clients look for them.
fn or_null(mut schema: Map<String, Value>) -> Value {
    let mut outer = Map::new();
    for text in ["title", "description", "default", "examples"] {
        outer.extend(
            schema
                .shift_remove(text)
                .map(|value| (text.to_owned(), value)),
        );
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let lists_null_alone = schema
        .get("enum")
        .is_some_and(|values| values == &json!([]));
    let mut whole = match lists_null_alone {
        true => Map::from_iter([("type".to_owned(), "null".into())]),
        false => Map::from_iter([("anyOf".to_owned(), json!([schema, { "type": "null" }]))]),
    };
    whole.extend(outer);
    Value::Object(whole)
}

/// Returns `true` for a default or example that is short, and whose numbers readers hold exactly.
pub(super) fn can_be_shown(value: &Value) -> bool {
    !matches!(value, Value::Object(_)) && value.to_string().len() <= 200 && json::is_exact(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_between_slashes_is_known() {
        for pattern in ["/^[a-z]+$/i", "/^a/", "/a$/gu"] {
            assert!(is_delimited(pattern), "{pattern}");
        }
        for pattern in ["^/a/$", "/a/b", "/a\\$/", "^/^$/x1", "/", "//", ""] {
            assert!(!is_delimited(pattern), "{pattern}");
        }
    }
}
