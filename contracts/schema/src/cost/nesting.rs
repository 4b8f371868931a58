//! Computes how deep a check nests. The validator calls itself for each schema that applies to a value and for each value
//! inside, so that a long chain of schemas takes as much of its thread's stack.

use super::graph::{NodeId, SchemaGraph};
use crate::json::DEPTH_MAX;

/// Schemas that apply within each other, from the value as a whole to one that is nested as deep as values may be. Real ones
/// have some hundred. The stack of a thread, 2 MiB, holds six times as many when faults are collected.
pub(super) const NESTED_MAX: usize = 2_048;

/// Returns how many schemas apply within each other at most, and the schema with the longest chain for one value.
pub(super) fn deepest(graph: &SchemaGraph<'_>) -> (usize, NodeId) {
    let longest = |inside: &[usize]| {
        let mut nested = vec![0; inside.len()];
        for &id in &graph.order {
            let node = &graph.nodes[id];
            let same = node.same_value().map(|id| nested[id]);
            let within = node.values_inside().map(|id| inside[id]);
            nested[id] = 1 + same.chain(within).max().unwrap_or(0);
        }
        nested
    };
    let alone = longest(&vec![0; graph.nodes.len()]);
    let chains = alone.iter().copied().enumerate();
    let chain = chains.max_by_key(|(_, length)| *length);
    let mut nested = alone.clone();
    for _ in 0..DEPTH_MAX {
        let next = longest(&nested);
        if next == nested || next[0] > NESTED_MAX {
            nested = next;
            break;
        }
        nested = next;
    }
    (nested[0], chain.map_or(0, |(id, _)| id))
}
