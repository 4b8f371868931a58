//! The form of a schema whose check counts its steps and stops when the budget is spent.
//!
//! The validator itself has no budget. So each schema of a document becomes a separate definition that begins with a
//! keyword of ours, `{"allOf": [{"weir:steps": …}, the schema]}`: once the budget is spent the keyword fails, nothing below
//! it is visited, and the check soon ends. Alternatives are only tested for validity (`not` in `not`), since the validator
//! would collect the faults of all of them. A schema that means something else in another dynamic scope becomes a
//! definition for each of them.

use std::convert::Infallible;
use std::{borrow::Cow, collections::HashMap};

use jsonschema::{Keyword, ValidationError, Validator, paths::Location};
use serde_json::{Map, Value, json};

use super::{ValidationAuthority, budget, checker::TEXT_BYTES, looking, scope::DynamicScope};
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
/// Definitions for further dynamic scopes. A schema with more of them has no such form.
const SCOPED_MAX: usize = 10_000;

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
        let mut form = BoundedForm::new(&graph, explains);
        let mut definitions = Map::new();
        let mut known = Vec::new();
        while let Some((id, scope)) = form.open.get(known.len()).cloned() {
            if known.len() > graph.len() + SCOPED_MAX {
                return None;
            }
            let (definition, unions) = form.definition(id, &scope);
            definitions.insert(known.len().to_string(), definition);
            let place = places.get(&std::ptr::from_ref(graph.schema(id)));
            let place = place.cloned().unwrap_or_default();
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

/// The definitions of a form: one for each schema and dynamic scope.
struct BoundedForm<'g, 's> {
    graph: &'g SchemaGraph<'s>,
    /// Whether alternatives are asked for yes or no.
    is_opaque: bool,
    numbers: HashMap<(NodeId, DynamicScope), usize>,
    /// The schema of each definition, by number.
    open: Vec<(NodeId, DynamicScope)>,
}

impl<'g, 's> BoundedForm<'g, 's> {
    fn new(graph: &'g SchemaGraph<'s>, is_opaque: bool) -> Self {
        let mut form = Self {
            graph,
            is_opaque,
            numbers: HashMap::new(),
            open: Vec::new(),
        };
        form.number(0, DynamicScope::at_root(graph));
        form
    }

    fn number(&mut self, id: NodeId, scope: DynamicScope) -> usize {
        let next = self.open.len();
        let number = *self.numbers.entry((id, scope.clone())).or_insert(next);
        if number == next {
            self.open.push((id, scope));
        }
        number
    }

    /// Returns the definition for a schema, and its alternatives that are asked for yes or no.
    fn definition(&mut self, id: NodeId, scope: &DynamicScope) -> (Value, Vec<&'static str>) {
        let graph = self.graph;
        let Value::Object(members) = graph.schema(id) else {
            return (graph.schema(id).clone(), Vec::new());
        };
        let (mut inner, mut unions, mut beside) = (Map::new(), Vec::new(), Vec::new());
        let mut dynamic = None;
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                (ID | ANCHOR | DYNAMIC_ANCHOR | SCHEMA | DEFS | DEFINITIONS, _) => {}
                ("contentSchema" | "default" | "examples" | "description" | "title", _) => {}
                (REF, Value::String(reference)) => {
                    let to = self.followed(id, graph.reference(id), reference, scope);
                    inner.insert(REF.to_owned(), to);
                }
                (DYNAMIC_REF, Value::String(reference)) => {
                    let target = graph.dynamic_reference(id);
                    dynamic = Some(self.followed(id, target, reference, scope));
                }
                (RECURSIVE_REF, _) => {}
                ("anyOf" | "oneOf", Value::Array(arms)) if self.is_opaque => {
                    let union = if keyword == "anyOf" { "anyOf" } else { "oneOf" };
                    let arms: Value = arms.iter().map(|arm| self.refer(arm, scope)).collect();
                    beside.push(json!({ "not": { "not": { union: arms } } }));
                    unions.push(union);
                }
                _ => {
                    let Ok(value) = map_inside(keyword, value, &mut |schema| {
                        Ok::<_, Infallible>(self.refer(schema, scope))
                    });
                    inner.insert(keyword.clone(), value);
                }
            }
        }
        let ((own, each), (states, name_states)) = (graph.steps(id), graph.states(id));
        let steps = json!({ KEYWORD: [own, each, states, name_states] });
        let mut all = vec![steps, Value::Object(inner)];
        all.extend(beside);
        all.extend(dynamic.map(schema_for));
        (json!({ "allOf": all }), unions)
    }

    /// Returns the reference to what a reference of a schema means. One that leads out of the document is left unchanged:
    /// the validator has the schemas of the dialects.
    fn followed(
        &mut self,
        id: NodeId,
        target: Option<NodeId>,
        reference: &str,
        scope: &DynamicScope,
    ) -> Value {
        let Some(target) = target else {
            return reference.into();
        };
        let (target, scope) = scope.follow(self.graph, (id, target), reference);
        by_number(self.number(target, scope))
    }

    fn refer(&mut self, schema: &Value, scope: &DynamicScope) -> Value {
        let id = self.graph.id(schema);
        match id.filter(|_| schema.is_object() && !is_pin(schema)) {
            Some(id) => schema_for(by_number(self.number(id, scope.clone()))),
            None => schema.clone(),
        }
    }
}

/// Returns `true` for a schema of one text. It is not moved, since the validator looks there for what distinguishes
/// alternatives.
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

fn by_number(number: usize) -> Value {
    format!("#/$defs/{number}").into()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the counted form and the validator both judge each value as expected.
    fn check(schema: &Value, values: &[(Value, bool)]) {
        let plain = crate::validate::validator(schema).expect("a schema");
        let bounded = BoundedValidator::new(schema, ValidationAuthority::Own).expect("a form");
        for (value, is_valid) in values {
            assert_eq!(plain.is_valid(value), *is_valid, "{schema} {value}");
            assert_eq!(
                bounded.validator.is_valid(value),
                *is_valid,
                "counted: {schema} {value}"
            );
        }
    }

    #[test]
    fn the_outermost_dynamic_anchor_of_a_name_applies() {
        let tree = json!({
            "$id": "tree",
            "$dynamicAnchor": "node",
            "type": "object",
            "properties": {
                "data": true,
                "children": { "type": "array", "items": { "$dynamicRef": "#node" } },
            },
        });
        let strict = json!({
            "$id": "https://example.org/strict",
            "$dynamicAnchor": "node",
            "$ref": "tree",
            "unevaluatedProperties": false,
            "$defs": { "tree": tree },
        });
        let of = |name: &str| json!({ "children": [{ "children": [{ name: 1 }] }] });
        check(&strict, &[(of("data"), true), (of("daat"), false)]);

        let inner = json!({
            "$id": "inner",
            "$dynamicAnchor": "node",
            "type": ["string", "object"],
            "properties": { "b": { "$dynamicRef": "#node" } },
        });
        let outer = json!({
            "$id": "https://example.org/outer",
            "$dynamicAnchor": "node",
            "type": "object",
            "properties": { "a": { "$ref": "inner" } },
            "$defs": { "inner": inner },
        });
        let of = |value: Value| json!({ "a": { "b": value } });
        check(&outer, &[(of(json!({})), true), (of(json!("x")), false)]);
    }

    #[test]
    fn a_schema_may_apply_in_several_dynamic_scopes() {
        let list = |name: &str, kind: &str| {
            json!({
                "$id": name,
                "$ref": "list",
                "$defs": { "item": { "$dynamicAnchor": "item", "type": kind } },
            })
        };
        let lists = json!({
            "$id": "https://example.org/lists",
            "properties": { "n": { "$ref": "numbers" }, "t": { "$ref": "texts" }, "any": { "$ref": "list" } },
            "$defs": {
                "list": {
                    "$id": "list",
                    "items": { "$dynamicRef": "#item" },
                    "$defs": { "item": { "$dynamicAnchor": "item" } },
                },
                "numbers": list("numbers", "number"),
                "texts": list("texts", "string"),
            },
        });
        let values = [
            (json!({ "n": [1], "t": ["a"], "any": [1, "a"] }), true),
            (json!({ "n": ["a"] }), false),
            (json!({ "t": [1] }), false),
        ];
        check(&lists, &values);
    }

    /// A document that no reference left has no part in the dynamic scope.
    #[test]
    fn documents_in_between_do_not_count() {
        let item = json!({
            "$id": "item",
            "properties": { "content": { "$dynamicRef": "#content" } },
            "$defs": { "default": { "$dynamicAnchor": "content", "type": "integer" } },
        });
        let list = json!({
            "$id": "list",
            "items": { "$ref": "item" },
            "$defs": { "item": item, "content": { "$dynamicAnchor": "content", "type": "string" } },
        });
        let of = |reference: &str| {
            json!({
                "$id": "https://example.org/main",
                "properties": { "a": { "$ref": reference } },
                "$defs": { "list": list },
            })
        };
        let (number, text) = (json!({ "content": 1 }), json!({ "content": "a" }));
        let values = [
            (json!({ "a": number }), true),
            (json!({ "a": text }), false),
        ];
        check(&of("item"), &values);
        let values = [
            (json!({ "a": [number] }), false),
            (json!({ "a": [text] }), true),
        ];
        check(&of("list"), &values);
    }

    #[test]
    fn references_mean_what_the_validator_takes_them_for() {
        let same_end = json!({
            "$id": "https://example.org/",
            "properties": { "a": { "$ref": "b/list" } },
            "$defs": {
                "other": { "$id": "a/item", "type": "string" },
                "item": { "$id": "b/item", "type": "integer" },
                "list": { "$id": "b/list", "$ref": "item" },
            },
        });
        let inner_first = json!({
            "properties": { "a": { "$ref": "#x" } },
            "$defs": {
                "inner": { "$id": "inner", "$defs": { "x": { "$anchor": "x", "type": "string" } } },
                "x": { "$anchor": "x", "type": "integer" },
            },
        });
        let default_first = json!({
            "default": { "$anchor": "x", "type": "string" },
            "properties": { "a": { "$ref": "#x" } },
            "$defs": { "x": { "$anchor": "x", "type": "integer" } },
        });
        for schema in [same_end, inner_first, default_first] {
            check(
                &schema,
                &[(json!({ "a": 1 }), true), (json!({ "a": "b" }), false)],
            );
        }
        let dialect = json!({ "properties": { "a": { "$ref": "https://json-schema.org/draft/2020-12/schema" } } });
        let of = |kind: Value| json!({ "a": { "type": kind } });
        check(
            &dialect,
            &[(of(json!("string")), true), (of(json!(1)), false)],
        );
    }
}
