//! The form of a schema whose check counts its steps and gives up when the budget is spent.
//!
//! The validator itself has no budget. So each schema of a document becomes a definition of its own that begins with a
//! keyword of ours, `{"allOf": [{"weir:steps": …}, the schema]}`: once the budget is spent the keyword fails, nothing below
//! it is visited, and the check soon ends. Alternatives are only tested for validity (`not` in `not`), since the validator
//! would collect the faults of all of them.

use std::convert::Infallible;
use std::{borrow::Cow, collections::HashMap};

use jsonschema::{Keyword, ValidationError, Validator, paths::Location};
use serde_json::{Map, Value, json};

use super::{ValidationAuthority, budget, checker::TEXT_BYTES, looking};
use crate::{
    cost::{NodeId, SchemaGraph, text_steps},
    json::push_pointer,
    keyword::{
        ANCHOR, DEFINITIONS, DEFS, DYNAMIC_ANCHOR, DYNAMIC_REF, ID, RECURSIVE_REF, REF, SCHEMA,
    },
    reference::schema_for,
    walk::map_inside,
};

const KEYWORD: &str = "weir:steps";

pub(super) struct BoundedValidator {
    pub(super) validator: Validator,
    /// Whether its faults are those of the schema. Alternatives that are only tested for validity do not report what counts
    /// as evaluated.
    pub(super) explains: bool,
    /// The place of each definition in the schema.
    places: Vec<BoundedDefinition>,
}

struct BoundedDefinition {
    place: String,
    /// The alternatives that are asked for yes or no, in the order in which they follow the schema.
    unions: Vec<&'static str>,
}

impl BoundedValidator {
    /// Compiles the form; `None` if the schema has none.
    pub(super) fn new(schema: &Value, judge: ValidationAuthority) -> Option<Self> {
        let mut schema = schema.clone();
        if judge == ValidationAuthority::Foreign {
            looking::replace(&mut schema);
        }
        let schema = &schema;
        let graph = SchemaGraph::new(schema).ok()?;
        let explains = !graph.has_unevaluated();
        let mut places = HashMap::new();
        collect_places(schema, &mut String::new(), &mut places);
        let mut definitions = Map::new();
        let mut known = Vec::new();
        for id in 0..graph.len() {
            let (definition, unions) = bounded(&graph, id, explains);
            definitions.insert(id.to_string(), definition);
            let place = places
                .remove(&std::ptr::from_ref(graph.schema(id)))
                .unwrap_or_default();
            known.push(BoundedDefinition { place, unions });
        }
        let whole = json!({ REF: by_number(0), DEFS: definitions });
        let options = super::options_for(judge).with_keyword(KEYWORD, keyword);
        Some(Self {
            validator: options.build(&whole).ok()?,
            explains,
            places: known,
        })
    }

    /// Returns the place of the keyword in the schema, for its place in this form.
    pub(super) fn keyword_place(&self, place: &str) -> Option<Cow<'static, str>> {
        let (id, rest) = place.strip_prefix("/$defs/")?.split_once("/allOf/")?;
        let definition = self.places.get(id.parse::<usize>().ok()?)?;
        let (part, keyword) = rest.split_once('/')?;
        let keyword = match part.parse::<usize>().ok()? {
            0 => return None,
            1 => keyword,
            union => *definition.unions.get(union - 2)?,
        };
        Some(format!("{}/{keyword}", definition.place).into())
    }
}

/// Returns the definition for a schema, and its alternatives that are asked for yes or no.
fn bounded(graph: &SchemaGraph<'_>, id: NodeId, opaque: bool) -> (Value, Vec<&'static str>) {
    let Value::Object(members) = graph.schema(id) else {
        return (graph.schema(id).clone(), Vec::new());
    };
    let (mut inner, mut unions, mut beside) = (Map::new(), Vec::new(), Vec::new());
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            (ID | ANCHOR | DYNAMIC_ANCHOR | SCHEMA | DEFS | DEFINITIONS, _) => {}
            ("contentSchema" | "default" | "examples" | "description" | "title", _) => {}
            (REF, _) => drop(graph.reference(id).map(|target| {
                inner.insert(REF.to_owned(), by_number(target));
            })),
            (DYNAMIC_REF | RECURSIVE_REF, _) => {}
            ("anyOf" | "oneOf", Value::Array(_)) if opaque => {
                let union = if keyword == "anyOf" { "anyOf" } else { "oneOf" };
                let arms = refer_all(graph, value);
                beside.push(json!({ "not": { "not": { union: arms } } }));
                unions.push(union);
            }
            _ => {
                let Ok(value) = map_inside(keyword, value, &mut |schema| {
                    Ok::<_, Infallible>(refer(graph, schema))
                });
                inner.insert(keyword.clone(), value);
            }
        }
    }
    let ((own, each), (states, name_states)) = (graph.steps(id), graph.states(id));
    let steps = json!({ KEYWORD: [own, each, states, name_states] });
    let mut all = vec![steps, Value::Object(inner)];
    all.extend(beside);
    let dynamic = graph.dynamic_reference(id);
    all.extend(dynamic.map(|target| schema_for(by_number(target))));
    (json!({ "allOf": all }), unions)
}

fn refer_all(graph: &SchemaGraph<'_>, value: &Value) -> Value {
    match value {
        Value::Array(schemas) => schemas.iter().map(|schema| refer(graph, schema)).collect(),
        schema => refer(graph, schema),
    }
}

fn refer(graph: &SchemaGraph<'_>, schema: &Value) -> Value {
    match graph
        .id(schema)
        .filter(|_| schema.is_object() && !is_pin(schema))
    {
        Some(id) => schema_for(by_number(id)),
        None => schema.clone(),
    }
}

/// Returns `true` for a schema of one text. It stays where it is, since the validator looks there for what tells alternatives
/// apart.
fn is_pin(schema: &Value) -> bool {
    let is_one_text = schema.get("const").is_some_and(Value::is_string)
        || matches!(
            schema
                .get("enum")
                .and_then(Value::as_array)
                .map(Vec::as_slice),
            Some([Value::String(_)])
        );
    let is_plain = |keyword: &String| {
        matches!(
            keyword.as_str(),
            "const" | "enum" | "type" | "title" | "description" | "default"
        )
    };
    is_one_text
        && schema
            .as_object()
            .is_some_and(|members| members.keys().all(is_plain))
}

fn by_number(id: NodeId) -> Value {
    format!("#/$defs/{id}").into()
}

fn collect_places(value: &Value, place: &mut String, found: &mut HashMap<*const Value, String>) {
    found.insert(std::ptr::from_ref(value), place.clone());
    let length = place.len();
    let mut within = |token: &str, inner: &Value| {
        push_pointer(place, token);
        collect_places(inner, place, found);
        place.truncate(length);
    };
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, inner)| inner.is_object() || inner.is_array())
            .for_each(|(name, inner)| within(name, inner)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, inner)| within(&index.to_string(), inner)),
        _ => {}
    }
}

/// Counts the steps of one schema on one value.
struct StepCounter {
    own: u64,
    each: u64,
    /// States of the patterns for the value, and of those for the names of its members.
    states: u64,
    name_states: u64,
}

impl StepCounter {
    fn count(&self, value: &Value) -> bool {
        let steps = match value {
            Value::String(text) => on_text(self.own, self.states, text),
            Value::Array(items) => {
                (self.each.saturating_mul(items.len() as u64)).saturating_add(self.own)
            }
            Value::Object(members) => {
                let each = members
                    .keys()
                    .map(|name| on_text(self.each, self.name_states, name));
                each.fold(self.own, u64::saturating_add)
            }
            _ => self.own,
        };
        budget::take(steps)
    }
}

/// Returns the steps for one text.
fn on_text(steps: u64, states: u64, text: &str) -> u64 {
    let parts = 1 + (text.len() / TEXT_BYTES) as u64;
    let by_bytes = text_steps(states, text.len());
    steps.saturating_mul(parts).saturating_add(by_bytes)
}

impl<'i> Keyword<'i> for StepCounter {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match self.count(instance) {
            true => Ok(()),
            false => Err(ValidationError::custom("no step is left")),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.count(instance)
    }
}

fn keyword<'a>(
    _: &'a Map<String, Value>,
    steps: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let number = |at: usize| steps.get(at).and_then(Value::as_u64).unwrap_or(1);
    Ok(Box::new(StepCounter {
        own: number(0),
        each: number(1),
        states: number(2),
        name_states: number(3),
    }))
}
