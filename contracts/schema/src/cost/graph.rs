//! The schemas of a document, and which of them apply to the same value or to the values inside it.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::{keyed, pattern::PatternCost};
use crate::{
    json::push_pointer,
    keyword::{DYNAMIC_REF, RECURSIVE_REF, REF},
    reference::NamedSchemas,
    walk::{SubschemaKind, inside},
};

/// The number of a schema in its document; the root is 0.
pub(crate) type NodeId = usize;

/// How a schema applies to the value of another schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaLink {
    /// The value must meet both.
    Whole,
    /// One of several: it is checked, and its faults are collected if none fits.
    Arm,
    /// Whether it is valid is all that is asked.
    Test,
}

/// Alternatives of which a property of the value, or for a dynamic reference the schemas around it, chooses one.
pub(super) struct KeyedUnion {
    pub(super) arms: Vec<NodeId>,
    /// Whether each of them immediately refuses any value other than an object. If not, all of them check such a value.
    pub(super) takes_objects_alone: bool,
}

#[derive(Default)]
pub(super) struct SchemaNode {
    reference: Option<NodeId>,
    dynamic_reference: Option<NodeId>,
    /// Steps of the keywords that look only at the value itself.
    pub(super) own: u64,
    /// Schemas for the same value.
    pub(super) same: Vec<(SchemaLink, NodeId)>,
    /// Alternatives of which a property of the value chooses one.
    pub(super) keyed: Vec<KeyedUnion>,
    pub(super) named: Vec<(String, NodeId)>,
    pub(super) patterned: Vec<NodeId>,
    /// For other members.
    pub(super) others: Vec<NodeId>,
    /// For the names of all members.
    pub(super) names: Vec<NodeId>,
    pub(super) prefix: Vec<NodeId>,
    pub(super) items: Vec<NodeId>,
    pub(super) contained: Vec<NodeId>,
    /// For members and for items that no other schema evaluates; they are among `others` and `items` too.
    pub(super) unevaluated: Vec<NodeId>,
    pub(super) unevaluated_items: Vec<NodeId>,
    /// Steps for each member or item in addition to those of its schemas.
    pub(super) each: u64,
    /// States of the patterns for the value, and of those for the names of its members.
    states: u64,
    name_states: u64,
    /// Whether unevaluated members have a rule, so that the schemas for the same value are visited again.
    pub(super) marks: bool,
}

pub(crate) struct SchemaGraph<'s> {
    pub(super) nodes: Vec<SchemaNode>,
    /// Nodes after all those that apply to the same value.
    pub(super) order: Vec<NodeId>,
    schemas: Vec<&'s Value>,
    ids: HashMap<*const Value, NodeId>,
    names: NamedSchemas<'s>,
    /// Names of dynamic anchors that a reference leads to and several schemas have.
    dynamic_names: BTreeSet<&'s str>,
    /// The bytes of each pattern.
    patterns: HashMap<&'s str, u64>,
    copied_bytes: usize,
}

impl<'s> SchemaGraph<'s> {
    /// Reads the document. References that lead back to themselves on the same value are refused, since they never end.
    pub(crate) fn new(root: &'s Value) -> Result<Self, String> {
        let mut reader = GraphBuilder {
            names: NamedSchemas::new(root),
            ids: HashMap::new(),
            nodes: Vec::new(),
            schemas: Vec::new(),
            dynamic_names: BTreeSet::new(),
            patterns: HashMap::new(),
            copied_bytes: 0,
        };
        reader.id(root);
        let mut next = 0;
        while let Some(schema) = reader.schemas.get(next).copied() {
            reader.nodes[next] = reader.read(schema)?;
            next += 1;
        }
        let order = ordered(&reader.nodes).ok_or("a reference leads back to itself")?;
        Ok(Self {
            nodes: reader.nodes,
            order,
            schemas: reader.schemas,
            ids: reader.ids,
            names: reader.names,
            dynamic_names: reader.dynamic_names,
            patterns: reader.patterns,
            copied_bytes: reader.copied_bytes,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn schema(&self, node: NodeId) -> &'s Value {
        self.schemas[node]
    }

    pub(crate) fn id(&self, schema: &Value) -> Option<NodeId> {
        self.ids.get(&std::ptr::from_ref(schema)).copied()
    }

    pub(crate) fn reference(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node].reference
    }

    pub(crate) fn dynamic_reference(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node].dynamic_reference
    }

    pub(crate) fn names(&self) -> &NamedSchemas<'s> {
        &self.names
    }

    /// Returns the document that each schema belongs to.
    pub(super) fn documents(&self) -> impl Iterator<Item = &'s Value> {
        let schemas = self.schemas.iter();
        schemas.map(|schema| self.names.document(schema))
    }

    /// Returns the names of dynamic anchors whose meaning depends on the schemas around the value.
    pub(crate) fn dynamic_names(&self) -> impl ExactSizeIterator<Item = &'s str> {
        self.dynamic_names.iter().copied()
    }

    /// Returns the steps of the schema on one value, and those for each value directly inside.
    pub(crate) fn steps(&self, node: NodeId) -> (u64, u64) {
        (self.nodes[node].own, self.nodes[node].each)
    }

    /// Returns the states of the schema's patterns for a value, and of those for the names of its members.
    pub(crate) fn states(&self, node: NodeId) -> (u64, u64) {
        (self.nodes[node].states, self.nodes[node].name_states)
    }

    /// Returns the states of all patterns.
    pub(super) fn all_states(&self) -> u64 {
        let each = self
            .nodes
            .iter()
            .flat_map(|node| [node.states, node.name_states]);
        each.fold(0, u64::saturating_add)
    }

    /// Returns the bytes that all patterns take compiled, each once.
    pub(super) fn pattern_bytes(&self) -> u64 {
        self.patterns.values().copied().fold(0, u64::saturating_add)
    }

    /// Returns the bytes of the schema that one fault has a copy of at most.
    pub(super) fn copied_bytes(&self) -> usize {
        self.copied_bytes
    }

    /// Returns `true` if a schema has a rule for what the other ones have not evaluated.
    pub(crate) fn has_unevaluated(&self) -> bool {
        self.nodes.iter().any(|node| node.marks)
    }
}

impl SchemaNode {
    pub(super) fn same_value(&self) -> impl Iterator<Item = NodeId> {
        let linked = self.same.iter().map(|(_, node)| *node);
        linked.chain(
            self.keyed
                .iter()
                .flat_map(|union| union.arms.iter().copied()),
        )
    }

    /// Returns the schemas that the same value must meet too.
    pub(super) fn required(&self) -> impl Iterator<Item = NodeId> {
        let linked = self.linked(SchemaLink::Whole);
        let refers = self.reference.is_some();
        let dynamic = self.keyed.iter().filter(move |_| refers);
        linked.chain(dynamic.flat_map(|union| union.arms.iter().copied()))
    }

    pub(super) fn alternatives(&self) -> impl Iterator<Item = NodeId> {
        let keyed = self.keyed.iter();
        let keyed = keyed.flat_map(|union| union.arms.iter().copied());
        self.linked(SchemaLink::Arm).chain(keyed)
    }

    fn linked(&self, wanted: SchemaLink) -> impl Iterator<Item = NodeId> {
        let linked = self.same.iter().filter(move |(link, _)| *link == wanted);
        linked.map(|(_, node)| *node)
    }

    /// Returns the schemas for the values directly inside.
    pub(super) fn values_inside(&self) -> impl Iterator<Item = NodeId> {
        let lists = [
            &self.patterned,
            &self.others,
            &self.names,
            &self.prefix,
            &self.items,
            &self.contained,
        ];
        let named = self.named.iter().map(|(_, id)| *id);
        named.chain(lists.into_iter().flatten().copied())
    }
}

struct GraphBuilder<'s> {
    names: NamedSchemas<'s>,
    ids: HashMap<*const Value, NodeId>,
    nodes: Vec<SchemaNode>,
    schemas: Vec<&'s Value>,
    dynamic_names: BTreeSet<&'s str>,
    patterns: HashMap<&'s str, u64>,
    copied_bytes: usize,
}

impl<'s> GraphBuilder<'s> {
    fn id(&mut self, schema: &'s Value) -> NodeId {
        *self
            .ids
            .entry(std::ptr::from_ref(schema))
            .or_insert_with(|| {
                self.nodes.push(SchemaNode::default());
                self.schemas.push(schema);
                self.schemas.len() - 1
            })
    }

    fn all(&mut self, value: &'s Value) -> Vec<NodeId> {
        match value {
            Value::Array(schemas) => schemas.iter().map(|schema| self.id(schema)).collect(),
            schema => vec![self.id(schema)],
        }
    }

    fn read(&mut self, schema: &'s Value) -> Result<SchemaNode, String> {
        let mut node = SchemaNode {
            own: 1,
            ..SchemaNode::default()
        };
        let Value::Object(members) = schema else {
            return Ok(node);
        };
        for (keyword, value) in members {
            self.copied_bytes = self.copied_bytes.max(copied_bytes(keyword, value));
            self.keyword(schema, keyword, value, &mut node)?;
        }
        Ok(node)
    }

    fn keyword(
        &mut self,
        schema: &Value,
        keyword: &str,
        value: &'s Value,
        node: &mut SchemaNode,
    ) -> Result<(), String> {
        let size = |value: &Value| match value {
            Value::Array(values) => values.len() as u64,
            Value::Object(members) => members.len() as u64,
            _ => 0,
        };
        match (keyword, value) {
            (REF | DYNAMIC_REF | RECURSIVE_REF, Value::String(reference)) => {
                self.reference(schema, keyword, reference, node)?;
            }
            ("allOf" | "then" | "else", _) => self.same(node, SchemaLink::Whole, value),
            ("not" | "if", _) => self.same(node, SchemaLink::Test, value),
            ("anyOf" | "oneOf", Value::Array(arms)) => {
                self.alternatives(arms, node)?;
            }
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                for schema in schemas.values().filter(|schema| !schema.is_array()) {
                    let id = self.id(schema);
                    node.same.push((SchemaLink::Whole, id));
                }
                node.own += size(value);
            }
            ("properties", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    node.named.push((name.clone(), self.id(schema)));
                }
                node.own += size(value) / 4;
            }
            ("patternProperties", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    node.patterned.push(self.id(schema));
                    let cost = PatternCost::measure(name);
                    self.patterns.insert(name, cost.bytes);
                    node.each = node.each.saturating_add(cost.steps);
                    node.name_states = node.name_states.saturating_add(cost.states);
                }
            }
            ("additionalProperties", _) => node.others.push(self.id(value)),
            ("unevaluatedProperties", _) => {
                let id = self.id(value);
                node.others.push(id);
                node.unevaluated.push(id);
                node.marks = true;
            }
            ("propertyNames", _) => node.names.push(self.id(value)),
            ("prefixItems", _) | ("items", Value::Array(_)) => node.prefix = self.all(value),
            ("items" | "additionalItems", _) => node.items.push(self.id(value)),
            ("unevaluatedItems", _) => {
                let id = self.id(value);
                node.items.push(id);
                node.unevaluated_items.push(id);
                node.marks = true;
            }
            ("contains", _) => node.contained.push(self.id(value)),
            // Each item is compared with some of the others.
            ("uniqueItems", Value::Bool(true)) => node.each += 8,
            ("pattern", Value::String(text)) => {
                let cost = PatternCost::measure(text);
                self.patterns.insert(text, cost.bytes);
                node.own = node.own.saturating_add(cost.steps);
                node.states = cost.states;
            }
            ("format" | "contentEncoding" | "contentMediaType" | "multipleOf", _) => node.own += 4,
            ("enum" | "const" | "required" | "dependentRequired", _) => {
                node.own += 1 + whole_size(value) / 8;
            }
            // Definitions are measured wherever they are used, and once on their own.
            _ if inside(keyword) == SubschemaKind::Named => {
                if let Value::Object(schemas) = value {
                    schemas.values().for_each(|schema| _ = self.id(schema));
                }
            }
            _ => node.own += u64::from(!value.is_string()),
        }
        Ok(())
    }

    fn reference(
        &mut self,
        schema: &Value,
        keyword: &str,
        reference: &'s str,
        node: &mut SchemaNode,
    ) -> Result<(), String> {
        let Some(target) = self.names.target(schema, reference)? else {
            return Ok(());
        };
        // The validator looks at dynamic anchors for every reference that names one.
        let others = self.names.dynamic_targets(reference, target)?;
        let target = self.id(target);
        if others.is_empty() {
            node.same.push((SchemaLink::Whole, target));
        } else {
            self.dynamic_names
                .extend(reference.split_once('#').map(|(_, name)| name));
            // One of them applies, whatever the value is.
            let others = others.into_iter().map(|other| self.id(other));
            node.keyed.push(KeyedUnion {
                arms: [target].into_iter().chain(others).collect(),
                takes_objects_alone: true,
            });
        }
        match keyword {
            REF => node.reference = Some(target),
            DYNAMIC_REF => node.dynamic_reference = Some(target),
            // Only another dialect has it.
            _ => {}
        }
        Ok(())
    }

    fn alternatives(&mut self, arms: &'s [Value], node: &mut SchemaNode) -> Result<(), String> {
        let are_keyed = keyed::by_property(&mut self.names, arms)?;
        let takes_objects_alone = are_keyed && keyed::takes_objects_alone(&mut self.names, arms)?;
        let ids: Vec<NodeId> = arms.iter().map(|arm| self.id(arm)).collect();
        if !are_keyed {
            node.same
                .extend(ids.into_iter().map(|arm| (SchemaLink::Arm, arm)));
            return Ok(());
        }
        node.own += arms.len() as u64 / 8;
        node.keyed.push(KeyedUnion {
            arms: ids,
            takes_objects_alone,
        });
        Ok(())
    }

    fn same(&mut self, node: &mut SchemaNode, link: SchemaLink, value: &'s Value) {
        let schemas = self.all(value);
        node.same
            .extend(schemas.into_iter().map(|schema| (link, schema)));
    }
}

/// Returns the number of values in a value of the schema that others are compared with.
fn whole_size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(|item| 1 + whole_size(item)).sum(),
        Value::Object(members) => members.values().map(|member| 1 + whole_size(member)).sum(),
        _ => 0,
    }
}

/// Returns the bytes of a keyword that a fault has a copy of, as the validator makes it. It shares the values of `enum` and `const`.
fn copied_bytes(keyword: &str, value: &Value) -> usize {
    let longest = |names: &Value| {
        let names = names.as_array().into_iter().flatten();
        names.filter_map(Value::as_str).map(str::len).max()
    };
    match (keyword, value) {
        ("not", schema) => schema.to_string().len(),
        ("pattern", Value::String(text)) => text.len(),
        ("required", names) => longest(names).unwrap_or(0),
        ("dependentRequired" | "dependencies", Value::Object(lists)) => {
            lists.values().filter_map(longest).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Returns the nodes in an order in which those that apply to the same value come first; `None` if there is a cycle.
fn ordered(nodes: &[SchemaNode]) -> Option<Vec<NodeId>> {
    let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); nodes.len()];
    let mut open: Vec<usize> = vec![0; nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        for used in node.same_value() {
            users[used].push(id);
            open[id] += 1;
        }
    }
    let mut order: Vec<NodeId> = (0..nodes.len()).filter(|id| open[*id] == 0).collect();
    let mut next = 0;
    while let Some(done) = order.get(next).copied() {
        next += 1;
        for &user in &users[done] {
            open[user] -= 1;
            if open[user] == 0 {
                order.push(user);
            }
        }
    }
    (order.len() == nodes.len()).then_some(order)
}

/// Returns the JSON Pointer of a schema in the document.
pub(super) fn place_of(root: &Value, schema: &Value) -> Option<String> {
    fn search(here: &Value, schema: &Value, place: &mut String) -> bool {
        if std::ptr::eq(here, schema) {
            return true;
        }
        let length = place.len();
        let mut within = |token: &str, inner: &Value| {
            push_pointer(place, token);
            let found = search(inner, schema, place);
            if !found {
                place.truncate(length);
            }
            found
        };
        match here {
            Value::Object(members) => members.iter().any(|(name, inner)| within(name, inner)),
            Value::Array(items) => {
                let mut numbered = items.iter().enumerate();
                numbered.any(|(index, inner)| within(&index.to_string(), inner))
            }
            _ => false,
        }
    }
    let mut place = String::new();
    search(root, schema, &mut place).then_some(place)
}
