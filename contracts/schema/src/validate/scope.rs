//! The dynamic scope of a schema (core, 7.1 and 8.2.3.2): the documents that references have left on the way to it. The outermost
//! one with a dynamic anchor decides what a reference to that name means.

use serde_json::Value;

use crate::{
    cost::{NodeId, SchemaGraph},
    keyword::DYNAMIC_ANCHOR,
};

/// What the documents around a schema decide.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct DynamicScope {
    /// Whether a reference was followed.
    is_inside: bool,
    /// The outermost schema for each name of the graph, if there is one.
    outermost: Vec<Option<NodeId>>,
}

impl DynamicScope {
    /// Returns the scope of the root.
    pub(super) fn at_root(graph: &SchemaGraph<'_>) -> Self {
        let names = graph.dynamic_names().len();
        Self {
            // Without such names every scope is the same.
            is_inside: names == 0,
            outermost: vec![None; names],
        }
    }

    /// Returns what a reference means in this scope, and the scope there. As in the validator, a document is entered
    /// only through a reference, and every reference to a dynamic anchor is a dynamic one.
    pub(super) fn follow(
        &self,
        graph: &SchemaGraph<'_>,
        (schema, target): (NodeId, NodeId),
        reference: &str,
    ) -> (NodeId, Self) {
        let mut scope = self.clone();
        let names = graph.names();
        let document = names.document(graph.schema(schema));
        let leaves = names
            .addressed(graph.schema(schema), reference)
            .is_some_and(|other| !std::ptr::eq(other, document));
        if leaves || !scope.is_inside {
            scope.enter(graph, document);
        }
        let (_, fragment) = reference.split_once('#').unwrap_or_default();
        let at = graph.dynamic_names().position(|name| name == fragment);
        let anchor = graph.schema(target).get(DYNAMIC_ANCHOR);
        let outermost = at
            .filter(|_| anchor.and_then(Value::as_str) == Some(fragment))
            .and_then(|at| scope.outermost[at]);
        (outermost.unwrap_or(target), scope)
    }

    fn enter(&mut self, graph: &SchemaGraph<'_>, document: &Value) {
        self.is_inside = true;
        for (name, outermost) in graph.dynamic_names().zip(&mut self.outermost) {
            if outermost.is_none() {
                let anchor = graph.names().dynamic_anchor(document, name);
                *outermost = anchor.and_then(|anchor| graph.id(anchor));
            }
        }
    }
}
