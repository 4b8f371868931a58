//! Moves the schema of a field into the tool's schema: its definitions go to the root's `$defs`, where clients look for them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use weir_schema::{
    compare::{self, ContradictionSearch},
    keyword::{
        ANCHOR, DEFINITIONS, DEFS, DYNAMIC_ANCHOR, DYNAMIC_REF, ID, RECURSIVE_REF, REF, SCHEMA,
    },
    reference::{definition, redirect, stated_in},
    walk::{self, each_inside, each_inside_at},
};

use super::{FileProblems, property::check_dialect};
use crate::{
    json::{percent_decoded, push_pointer},
    name, offer, validate,
};

/// Keywords that give a schema an address or a dialect, which a part of another schema does not have.
const ADDRESSES: &[&str] = &[
    SCHEMA,
    ID,
    ANCHOR,
    DYNAMIC_ANCHOR,
    DYNAMIC_REF,
    "$recursiveAnchor",
    RECURSIVE_REF,
    "$vocabulary",
    "id",
    DEFINITIONS,
];

/// Returns the schema of a `json` field. It is bounded like a stranger's schema, and every reference leads into its own
/// `$defs`.
pub(super) fn of_field(
    schema: &Value,
    field: &str,
    place: &str,
    problems: &mut FileProblems,
) -> Map<String, Value> {
    let schema = match schema {
        Value::Object(members) => members.clone(),
        Value::Bool(true) => return Map::new(),
        _ => {
            problems.add_hint(
                place,
                "the schema is not an object",
                "write a JSON Schema 2020-12, such as `{ type: object }`",
            );
            return Map::new();
        }
    };
    let whole = Value::Object(schema.clone());
    let refused = offer::check_schema(&whole.to_string(), &offer::SchemaLimits::default());
    if let Err(why) = refused.and_then(|()| validate::validator(&whole).map(drop)) {
        problems.add_hint(place, why, "mend the schema; `schema: {}` takes any value");
        return Map::new();
    }
    let known = problems.len();
    check_inside(&schema, place, problems);
    check_contradictions(&whole, place, problems);
    if problems.len() > known {
        return Map::new();
    }
    match leads_to_defs_alone(&schema) {
        true => schema,
        false => as_definition(schema, field),
    }
}

/// Refuses keywords that only a whole schema may have, names of members that models' interfaces refuse, and patterns of
/// another dialect.
fn check_inside(schema: &Map<String, Value>, place: &str, problems: &mut FileProblems) {
    for keyword in ADDRESSES
        .iter()
        .filter(|keyword| schema.contains_key(**keyword))
    {
        let hint = match *keyword {
            DEFINITIONS => "call it `$defs`",
            _ => "drop it; refer to a place inside by `#/$defs/NAME`",
        };
        problems.add_hint(
            format!("{place}/{keyword}"),
            format!("`{keyword}` has no place in a field's schema"),
            hint,
        );
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        check_dialect(&format!("{place}/pattern"), pattern, problems);
    }
    for (pattern, _) in walk::members(schema.get("patternProperties")) {
        check_dialect(&format!("{place}/patternProperties"), pattern, problems);
    }
    for (member, _) in walk::members(schema.get("properties")) {
        if let Err(message) = name::check_field(member) {
            let mut place = format!("{place}/properties");
            push_pointer(&mut place, member);
            problems.add_hint(
                place,
                message,
                "some models' interfaces refuse every tool for it",
            );
        }
    }
    each_inside_at(schema, &mut place.to_owned(), &mut |inner, place| {
        let schema = inner.as_object().into_iter();
        schema.for_each(|schema| check_inside(schema, place, problems));
    });
}

/// Refuses a schema that no value meets, and such parts of one. Each place is reported once.
fn check_contradictions(whole: &Value, place: &str, problems: &mut FileProblems) {
    let mut search = ContradictionSearch::new(whole);
    let mut found = BTreeMap::new();
    if let Some(contradiction) = search.find(whole, "") {
        found.insert(contradiction.place, contradiction.reason);
    }
    collect_contradictions(&mut search, whole, "", &mut found);
    for (inner, reason) in found {
        problems.add_hint(
            format!("{place}{inner}"),
            format!("no value meets the schema: {reason}"),
            "mend the schema; `schema: {}` takes any value",
        );
    }
}

/// Collects the parts whose own bounds and lists leave no value, by the place of the keyword.
fn collect_contradictions<'s>(
    search: &mut ContradictionSearch<'s>,
    schema: &'s Value,
    place: &str,
    found: &mut BTreeMap<String, String>,
) {
    let Value::Object(members) = schema else {
        return;
    };
    each_inside_at(members, &mut place.to_owned(), &mut |inner, place| {
        // A member or an item may be forbidden on purpose.
        if inner.get("not").is_none()
            && compare::is_never(inner)
            && let Some(contradiction) = search.find(inner, place)
        {
            found.insert(contradiction.place, contradiction.reason);
        }
        collect_contradictions(search, inner, place, found);
    });
}

fn leads_to_defs_alone(schema: &Map<String, Value>) -> bool {
    let here = stated_in(schema).is_none_or(|target| target.starts_with("#/$defs/"));
    let mut inside_too = true;
    each_inside(schema, &mut |inner| {
        inside_too &= inner.as_object().is_none_or(leads_to_defs_alone);
    });
    here && inside_too
}

/// Makes a schema a definition as a whole if it refers to its own root or to a place that is not a definition.
fn as_definition(mut schema: Map<String, Value>, field: &str) -> Map<String, Value> {
    let name = if field.is_empty() { "item" } else { field };
    let to = definition(name, "");
    redirect(&mut schema, &|target| {
        Some(format!("{to}{}", target.strip_prefix('#')?))
    });
    Map::from_iter([
        (REF.to_owned(), to.into()),
        (
            DEFS.to_owned(),
            Value::Object(Map::from_iter([(name.to_owned(), Value::Object(schema))])),
        ),
    ])
}

/// Moves the definitions of a part up to those of the whole. One that exists already is shared; a different one with
/// the same name gets a number.
pub(super) fn lift(part: &mut Value, defs: &mut Map<String, Value>) {
    let Value::Object(members) = part else { return };
    let Some(Value::Object(mut own)) = members.shift_remove(DEFS) else {
        return;
    };
    let clashes = own
        .iter()
        .any(|(name, schema)| defs.get(name).is_some_and(|known| known != schema));
    if clashes {
        // Definitions refer to each other, so those of the same names move together.
        let mut renamed: Map<String, Value> = Map::new();
        for name in own.keys().filter(|name| defs.contains_key(*name)) {
            let free = |number: &usize| {
                let candidate = format!("{name}_{number}");
                !defs.contains_key(&candidate) && !own.contains_key(&candidate)
            };
            let number = (2..).find(free).expect("numbers do not end");
            renamed.insert(name.clone(), format!("{name}_{number}").into());
        }
        let moved = |target: &str| {
            let pointer = percent_decoded(target.strip_prefix("#/$defs/")?);
            let (name, rest) = pointer
                .split_once('/')
                .map_or((&*pointer, ""), |(name, _)| (name, &pointer[name.len()..]));
            Some(definition(
                renamed
                    .get(&name.replace("~1", "/").replace("~0", "~"))?
                    .as_str()?,
                rest,
            ))
        };
        redirect(members, &moved);
        own = own
            .into_iter()
            .map(|(name, mut schema)| {
                schema
                    .as_object_mut()
                    .into_iter()
                    .for_each(|schema| redirect(schema, &moved));
                (
                    renamed
                        .get(&name)
                        .and_then(Value::as_str)
                        .unwrap_or(&name)
                        .to_owned(),
                    schema,
                )
            })
            .collect();
    }
    for (name, schema) in own {
        defs.entry(name).or_insert(schema);
    }
}
