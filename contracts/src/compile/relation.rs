//! Compiles relations: which records of another collection a lookup can answer along with its own. The other record is read by
//! its key through the same adapter, after the first one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{FileProblems, collection::no_column, result};
use crate::{
    contract::{ContractCollection, RecordInclusion, ToolVerb},
    form::{self, ContractSource},
    name,
    shape::ShapeField,
};

const INCLUDE: &str = "include";

/// The relations that can be followed, by the name of their collection and their own.
pub(super) type Relations<'s> = BTreeMap<(&'s str, &'s str), RecordInclusion>;

/// Compiles the relations of all collections. Those that are refused are missing.
pub(super) fn compile<'s>(
    source: &'s ContractSource,
    collections: &BTreeMap<&str, Option<ContractCollection>>,
    problems: &mut FileProblems,
) -> Relations<'s> {
    let mut relations = Relations::new();
    for entry in &source.collections {
        for relation in &entry.relations {
            if let Some(inclusion) = follow(entry, relation, collections, problems) {
                relations.insert((&entry.name, &relation.name), inclusion);
            }
        }
    }
    relations
}

fn follow(
    entry: &form::FormCollection,
    relation: &form::FormRelation,
    collections: &BTreeMap<&str, Option<ContractCollection>>,
    problems: &mut FileProblems,
) -> Option<RecordInclusion> {
    if let Err(message) = name::check_field(&relation.name) {
        let hint = format!("call it '{}'", name::plain_field(&relation.name));
        problems.add_hint(relation.place.clone(), message, hint);
        return None;
    }
    let wanted = relation.collection.as_str();
    let Some(other) = collections.get(wanted) else {
        let hint = match name::nearest(wanted, collections.keys().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => "describe it under `collections:`".to_owned(),
        };
        let message = format!("there is no collection {}", name::quoted(wanted));
        problems.add_hint(format!("{}/collection", relation.place), message, hint);
        return None;
    };
    // A refused collection has its own problems.
    let (own, other) = (
        collections.get(entry.name.as_str())?.as_ref()?,
        other.as_ref()?,
    );
    let before = problems.len();
    check_source(own, other, relation, problems);
    check_columns(own, other, relation, problems);
    (problems.len() == before).then(|| RecordInclusion {
        name: relation.name.clone(),
        collection: relation.collection.clone(),
        columns: relation.columns.clone(),
    })
}

/// Checks that the other record can be read by its key, through the same connection.
fn check_source(
    own: &ContractCollection,
    other: &ContractCollection,
    relation: &form::FormRelation,
    problems: &mut FileProblems,
) {
    let place = || format!("{}/collection", relation.place);
    let named = name::quoted(&other.name);
    let connection = |collection: &ContractCollection| collection.settings["connection"].clone();
    if own.adapter != other.adapter || connection(own) != connection(other) {
        problems.add_hint(
            place(),
            format!("collection {named} is reached by another connection or adapter"),
            "relate collections of one connection: a lookup reads both records through it",
        );
        return;
    }
    let capabilities = &other.shape.capabilities;
    if other.shape.key.is_empty() {
        let hint = "say `key:` there, if a column distinguishes its records";
        problems.add_hint(place(), format!("collection {named} has no key"), hint);
    }
    let asks = |key: &String| {
        capabilities
            .compares(key)
            .iter()
            .any(|known| known == "equals")
    };
    if !capabilities.read || !other.shape.key.iter().all(asks) {
        problems.add_hint(
            place(),
            format!("the source of {named} cannot be asked for a record by its key"),
            "drop the relation, or let the collection be read by its key",
        );
    }
    if let Some(param) = capabilities.params.iter().find(|param| param.required) {
        problems.add_hint(
            place(),
            format!(
                "collection {named} needs the parameter {}",
                name::quoted(&param.name)
            ),
            "relate a collection without parameters: a related record is read only by its key",
        );
    }
}

/// Checks that the columns contain a key of the other collection.
fn check_columns(
    own: &ContractCollection,
    other: &ContractCollection,
    relation: &form::FormRelation,
    problems: &mut FileProblems,
) {
    let place = format!("{}/columns", relation.place);
    let key = &other.shape.key;
    if relation.columns.len() != key.len() && !key.is_empty() {
        let message = format!(
            "{} columns cannot hold the key of {}, which has {}",
            relation.columns.len(),
            name::quoted(&other.name),
            key.len()
        );
        problems.add_hint(place, message, format!("its key: {}", key.join(", ")));
        return;
    }
    for (index, (column, key)) in relation.columns.iter().zip(key).enumerate() {
        let place = format!("{place}/{index}");
        let Some(field) = own.shape.field(column) else {
            no_column(place, column, &own.shape, problems);
            continue;
        };
        let Some(known) = other.shape.field(key) else {
            continue;
        };
        if field.kind != known.kind {
            let message = format!(
                "column {} is {}, and {} of {} is {}",
                name::quoted(column),
                field.kind.word(),
                name::quoted(key),
                name::quoted(&other.name),
                known.kind.word()
            );
            problems.add_hint(place, message, "give both one type under `shape:`");
        }
    }
}

/// Chooses the relations that a lookup names. `answered` are the columns of its records.
pub(super) fn chosen(
    form: &form::FormTool,
    own: &ContractCollection,
    source: &ContractSource,
    relations: &Relations<'_>,
    answered: &[String],
    problems: &mut FileProblems,
) -> Vec<RecordInclusion> {
    let Some(wanted) = &form.include else {
        return Vec::new();
    };
    let mut chosen = Vec::new();
    if wanted.is_empty() {
        let place = format!("{}/{INCLUDE}", form.place);
        problems.add_hint(place, "names no relation", "drop it, or name relations");
    }
    let declared = source
        .collections
        .iter()
        .find(|entry| entry.name == own.name);
    let declared: Vec<&str> = declared
        .into_iter()
        .flat_map(|entry| &entry.relations)
        .map(|relation| relation.name.as_str())
        .collect();
    for (index, name) in wanted.iter().enumerate() {
        let place = format!("{}/{INCLUDE}/{index}", form.place);
        if !declared.contains(&name.as_str()) {
            let hint = match (
                name::nearest(name, declared.iter().copied()),
                declared.is_empty(),
            ) {
                (Some(near), _) => format!("did you mean '{near}'?"),
                (None, true) => format!("declare it under `relations:` of '{}'", own.name),
                (None, false) => format!("relations: {}", declared.join(", ")),
            };
            let message = format!("there is no relation {}", name::quoted(name));
            problems.add_hint(place, message, hint);
            continue;
        }
        let Some(inclusion) = relations.get(&(own.name.as_str(), name.as_str())) else {
            continue; // its declaration has the problem
        };
        if answered.contains(name) || result::ERROR_MEMBERS.contains(&name.as_str()) {
            let message = format!("{} is a member of the answer already", name::quoted(name));
            problems.add_hint(place, message, "give the relation another name");
            continue;
        }
        if let Some(bound) = bound_tool(source, &inclusion.collection) {
            let message = format!(
                "{} reaches '{}' with bound fields, and a related record is read only by its key",
                name::quoted(&bound.tool),
                inclusion.collection
            );
            let hint =
                "relate a collection without them: one over a view whose rows every caller may see";
            problems.add_hint(place, message, hint);
            continue;
        }
        let is_answered = |column: &&String| !answered.contains(column);
        if let Some(column) = inclusion.columns.iter().find(is_answered) {
            let message = format!(
                "the lookup does not answer {}, by which the record is found",
                name::quoted(column)
            );
            problems.add_hint(place, message, "publish the column, and answer it");
            continue;
        }
        chosen.push(inclusion.clone());
    }
    chosen
}

/// Returns a tool that shows its callers only some records of a collection: the others must not leave by another way.
fn bound_tool<'s>(source: &'s ContractSource, collection: &str) -> Option<&'s form::FormTool> {
    let mut tools = source.tools.iter();
    tools.find(|tool| {
        tool.collection.as_deref() == Some(collection)
            && tool.verb.is_some_and(ToolVerb::is_query)
            && !tool.bound.is_empty()
    })
}

/// Checks the key that only a lookup has, and the name that it takes for itself.
pub(super) fn check_keys(form: &form::FormTool, verb: ToolVerb, problems: &mut FileProblems) {
    if form.include.is_none() {
        return;
    }
    if verb != ToolVerb::Lookup {
        let place = format!("{}/{INCLUDE}", form.place);
        problems.add_hint(place, "only a lookup has it", "drop it");
        return;
    }
    for field in form.fields.iter().filter(|field| field.name == INCLUDE) {
        let place = format!("{}/name", field.place);
        let message = "this lookup has its own 'include'";
        problems.add_hint(place, message, "choose another name");
    }
}

/// Adds the argument by which an agent asks for related records.
pub(super) fn add_input(include: &[RecordInclusion], input_schema: &mut Value) {
    let Some(properties) = input_schema["properties"].as_object_mut() else {
        return;
    };
    if include.is_empty() {
        return;
    }
    let names: Vec<&str> = include.iter().map(|one| one.name.as_str()).collect();
    let argument = json!({
        "type": "array", "items": { "type": "string", "enum": names }, "minItems": 1, "uniqueItems": true,
        "description": "Related records to answer beside it, each under its name.",
    });
    properties.insert(INCLUDE.to_owned(), argument);
}

/// Adds the related records to the schema of an answer. `find` returns the fields of a collection and which of these may
/// leave the source.
pub(crate) fn add_outputs<'c>(
    include: &[RecordInclusion],
    find: impl Fn(&str) -> Option<(&'c [ShapeField], &'c [String])>,
    output_schema: &mut Value,
) {
    let Some(properties) = output_schema["properties"].as_object_mut() else {
        return;
    };
    for one in include {
        let Some((fields, published)) = find(&one.collection) else {
            continue;
        };
        let (members, required) = result::record_members(fields, published);
        let mut schema = Map::from_iter([("type".to_owned(), json!(["object", "null"]))]);
        schema.insert("properties".into(), Value::Object(members));
        schema.insert("required".into(), Value::Array(required));
        let about = format!(
            "The record of {} that belongs to it, if `include` asked for it; null if there is none.",
            one.collection
        );
        schema.insert("description".into(), about.into());
        properties.insert(one.name.clone(), Value::Object(schema));
    }
}
