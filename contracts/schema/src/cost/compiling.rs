//! Computes what compiling a schema takes. For each rule about unevaluated members the validator writes out the schemas that apply
//! to the value, and for each union it looks for what the alternatives require. References are followed again each time.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::{
    graph::{NodeId, SchemaGraph},
    levels::ENDLESS,
};

/// Steps for all of a schema. Looking at a schema is one; these take a tenth of a second. A part is compiled again for
/// each example that a refusal makes, so the limit is low.
pub(super) const COMPILING_MAX: u64 = 200_000;
/// Steps of a schema that is written out: it is kept, in about a kilobyte.
const KEPT_STEPS: u64 = 8;
/// Schemas of documents inside that are compiled on all ways to them. Each takes ten microseconds and a kilobyte.
const WAYS_MAX: usize = 100_000;

/// Returns the steps, and the schema that takes the most.
pub(super) fn steps(graph: &SchemaGraph<'_>) -> (u64, NodeId) {
    let mut looked_at = vec![0_u64; graph.nodes.len()];
    let mut kept = looked_at.clone();
    for &id in &graph.order {
        let node = &graph.nodes[id];
        looked_at[id] = 1 + sum(&looked_at, node.required());
        kept[id] = 1 + sum(&kept, node.same_value());
    }
    let steps = graph.nodes.iter().enumerate().map(|(id, node)| {
        let union = sum(&looked_at, node.alternatives());
        match node.marks {
            true => union.saturating_add(kept[id].saturating_mul(KEPT_STEPS)),
            false => union,
        }
    });
    let steps: Vec<u64> = steps.collect();
    let dearest = steps.iter().enumerate().max_by_key(|(_, steps)| **steps);
    let dearest = dearest.map_or(0, |(id, _)| id);
    (steps.into_iter().fold(0, u64::saturating_add), dearest)
}

/// Returns `true` if documents inside, those with an `$id`, refer to each other in too many ways: the validator compiles each
/// of them again for every chain of documents through which references reach it.
pub(super) fn has_too_many_ways(graph: &SchemaGraph<'_>) -> bool {
    let mut numbers: HashMap<*const Value, usize> = HashMap::new();
    let documents = graph.documents().map(|document| {
        let next = numbers.len();
        *numbers.entry(std::ptr::from_ref(document)).or_insert(next)
    });
    let documents: Vec<usize> = documents.collect();
    if numbers.len() == 1 {
        return false;
    }
    let mut sizes = vec![0; numbers.len()];
    let mut used = vec![BTreeSet::new(); numbers.len()];
    for (node, &own) in graph.nodes.iter().zip(&documents) {
        sizes[own] += 1;
        let others = node.same_value().chain(node.values_inside());
        let others = others.map(|id| documents[id]);
        used[own].extend(others.filter(|other| *other != own));
    }
    let used: Vec<Vec<usize>> = used.into_iter().map(Vec::from_iter).collect();
    let mut is_left = vec![false; used.len()];
    let (mut way, mut steps) = (vec![(0, 0)], 0);
    while let Some((document, at)) = way.last_mut() {
        is_left[*document] = true;
        let Some(&other) = used[*document].get(*at) else {
            is_left[*document] = false;
            way.pop();
            continue;
        };
        *at += 1;
        steps += 1;
        if !is_left[other] {
            steps += sizes[other];
            way.push((other, 0));
        }
        if steps > WAYS_MAX {
            return true;
        }
    }
    false
}

/// Returns the sum of the counts of schemas. It saturates instead of overflowing.
fn sum(counts: &[u64], ids: impl Iterator<Item = NodeId>) -> u64 {
    ids.fold(0_u64, |sum, id| sum.saturating_add(counts[id]))
        .min(ENDLESS)
}
