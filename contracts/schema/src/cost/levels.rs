//! Counts the steps of every schema, one level of values deeper with each round.

use std::collections::BTreeMap;

use super::{
    ValueSteps,
    graph::{KeyedUnion, NodeId, SchemaGraph, SchemaLink, SchemaNode},
};

/// A number of steps at which counting ends.
pub(super) const ENDLESS: u64 = 1 << 50;
/// Entries of the tables that are written in total: a schema that needs more is refused.
const ENTRIES_MAX: usize = 1_000_000;

/// Why a schema is applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EvaluationMode {
    Check,
    Report,
    /// Finding the evaluated members, in order to find the others.
    Mark,
}

const TASKS: [EvaluationMode; 3] = [
    EvaluationMode::Check,
    EvaluationMode::Report,
    EvaluationMode::Mark,
];

/// Steps for the values inside: for members by name, for those with other names, and for items.
#[derive(Clone, Default)]
struct InnerSteps<'g> {
    named: BTreeMap<&'g str, u64>,
    others: u64,
    items: u64,
}

pub(super) struct CostLevels<'g> {
    graph: &'g SchemaGraph<'g>,
    /// Steps on one value, without its members.
    flat: Vec<[u64; 3]>,
    /// Steps for the single value that takes the most, among those as deep as the rounds so far.
    deep: Vec<[u64; 3]>,
    entries: usize,
}

impl<'g> CostLevels<'g> {
    pub(super) fn new(graph: &'g SchemaGraph<'g>) -> Self {
        let mut flat = vec![[0; 3]; graph.nodes.len()];
        for &id in &graph.order {
            flat[id] = TASKS.map(|task| {
                let node = &graph.nodes[id];
                let below = |task: EvaluationMode, id: NodeId| flat[id][task as usize];
                let linked = linked(node, task).map(|(task, id)| below(task, id));
                let sum = linked.fold(own(node, task), u64::saturating_add);
                let keyed = node.keyed.iter().map(|union| {
                    let arms = union
                        .arms
                        .iter()
                        .map(|arm| keyed(task).map(|task| below(task, *arm)).sum());
                    one_of(task, union, arms)
                });
                keyed.fold(sum, u64::saturating_add).min(ENDLESS)
            });
        }
        Self {
            graph,
            deep: flat.clone(),
            flat,
            entries: 0,
        }
    }

    pub(super) fn steps(&self, node: NodeId) -> ValueSteps {
        let [check, report, _] = self.deep[node];
        ValueSteps { check, report }
    }

    /// Returns the schema that takes most, and how many steps.
    pub(super) fn dearest(&self) -> Option<(NodeId, u64)> {
        let checks = self
            .deep
            .iter()
            .map(|steps| steps[EvaluationMode::Check as usize]);
        checks.enumerate().max_by_key(|(_, steps)| *steps)
    }

    /// Counts one level more. Returns `false` if that changes nothing.
    pub(super) fn deepen(&mut self) -> Result<bool, String> {
        let graph = self.graph;
        let marks = graph.nodes.iter().any(|node| node.marks);
        let tasks = if marks { &TASKS[..] } else { &TASKS[..2] };
        let mut next = self.flat.clone();
        let mut inner: Vec<[InnerSteps<'g>; 3]> = Vec::new();
        inner.resize_with(graph.nodes.len(), Default::default);
        for &id in &graph.order {
            for &task in tasks {
                let found = self.inner(&graph.nodes[id], task, &inner);
                self.entries += 1 + found.named.len();
                let most = found.named.values().copied().max().unwrap_or(0);
                let most = most.max(found.others).max(found.items);
                let steps = &mut next[id][task as usize];
                *steps = (*steps).max(most).min(ENDLESS);
                inner[id][task as usize] = found;
            }
            if self.entries > ENTRIES_MAX {
                return Err("it is too large and too entangled to be measured".to_owned());
            }
        }
        let changed = next != self.deep && self.deep[0][EvaluationMode::Check as usize] < ENDLESS;
        self.deep = next;
        Ok(changed)
    }

    fn inner(
        &mut self,
        node: &'g SchemaNode,
        task: EvaluationMode,
        inner: &[[InnerSteps<'g>; 3]],
    ) -> InnerSteps<'g> {
        let mut sum = self.own_inner(node, task);
        for (task, id) in linked(node, task) {
            self.entries += sum.add(&inner[id][task as usize]);
        }
        for union in &node.keyed {
            let mut chosen = InnerSteps::default();
            for arm in &union.arms {
                let mut one = InnerSteps::default();
                for task in keyed(task) {
                    self.entries += one.add(&inner[*arm][task as usize]);
                }
                self.entries += match task {
                    EvaluationMode::Report | EvaluationMode::Mark => chosen.add(&one),
                    EvaluationMode::Check => chosen.choose(&one, union),
                };
            }
            self.entries += sum.add(&chosen);
        }
        sum
    }

    /// Returns the steps that the schema itself has for the values inside.
    fn own_inner(&self, node: &'g SchemaNode, task: EvaluationMode) -> InnerSteps<'g> {
        let total = |ids: &[NodeId], task: EvaluationMode| {
            ids.iter()
                .map(|id| self.deep[*id][task as usize])
                .fold(0, u64::saturating_add)
        };
        // The values inside are checked again to find out which are evaluated.
        let mut marking = InnerSteps::default();
        if task == EvaluationMode::Mark || node.marks {
            let contained = total(&node.contained, EvaluationMode::Check);
            marking.others = total(&node.unevaluated, EvaluationMode::Check);
            marking.items =
                contained.saturating_add(total(&node.unevaluated_items, EvaluationMode::Check));
        }
        if task == EvaluationMode::Mark {
            return marking;
        }
        let names = total(&node.names, EvaluationMode::Check);
        let every = node
            .each
            .saturating_add(names)
            .saturating_add(total(&node.patterned, task));
        let named = node.named.iter().map(|(name, id)| {
            let steps = self.deep[*id][task as usize].saturating_add(every);
            (name.as_str(), steps)
        });
        let placed = node.prefix.iter().map(|id| self.deep[*id][task as usize]);
        let items = total(&node.items, task).max(placed.max().unwrap_or(0));
        let contained = total(&node.contained, EvaluationMode::Check);
        let items = items.saturating_add(node.each).saturating_add(contained);
        let others = total(&node.others, task).saturating_add(every);
        InnerSteps {
            named: named.collect(),
            others: others.saturating_add(marking.others),
            items: items.saturating_add(marking.items),
        }
    }
}

impl<'g> InnerSteps<'g> {
    /// Returns the steps for the member of that name.
    fn steps_of(&self, name: &str) -> u64 {
        self.named.get(name).copied().unwrap_or(self.others)
    }

    /// Adds what another schema takes for the same members. Returns the number of names that were looked at.
    fn add(&mut self, other: &Self) -> usize {
        self.combine(other, u64::saturating_add)
    }

    /// Takes what another alternative takes for the same members, of which an object chooses one.
    fn choose(&mut self, other: &Self, union: &KeyedUnion) -> usize {
        let all_items = self.items.saturating_add(other.items).min(ENDLESS);
        let looked_at = self.combine(other, u64::max);
        if !union.takes_objects_alone {
            self.items = all_items;
        }
        looked_at
    }

    fn combine(&mut self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> usize {
        let looked_at = self.named.len() + other.named.len();
        for (name, steps) in &mut self.named {
            *steps = combine(*steps, other.steps_of(name)).min(ENDLESS);
        }
        for (name, steps) in &other.named {
            let others = self.others;
            self.named
                .entry(name)
                .or_insert_with(|| combine(others, *steps).min(ENDLESS));
        }
        self.others = combine(self.others, other.others).min(ENDLESS);
        self.items = combine(self.items, other.items).min(ENDLESS);
        1 + looked_at
    }
}

fn own(node: &SchemaNode, task: EvaluationMode) -> u64 {
    match task {
        EvaluationMode::Mark => 1,
        EvaluationMode::Check | EvaluationMode::Report => node.own,
    }
}

/// Returns what a task asks of the schemas for the same value, except for keyed alternatives.
fn linked(
    node: &SchemaNode,
    task: EvaluationMode,
) -> impl Iterator<Item = (EvaluationMode, NodeId)> {
    let marked = node.marks && task != EvaluationMode::Mark;
    let marking = node.same_value().filter(move |_| marked);
    let marking = marking.flat_map(|id| [(EvaluationMode::Check, id), (EvaluationMode::Mark, id)]);
    let linked = node.same.iter().flat_map(move |(link, id)| {
        let tasks: &[EvaluationMode] = match (task, link) {
            (EvaluationMode::Check, _) | (EvaluationMode::Report, SchemaLink::Test) => {
                &[EvaluationMode::Check]
            }
            (EvaluationMode::Report, SchemaLink::Whole) => &[EvaluationMode::Report],
            (EvaluationMode::Report, SchemaLink::Arm) => {
                &[EvaluationMode::Check, EvaluationMode::Report]
            }
            (EvaluationMode::Mark, _) => &[EvaluationMode::Check, EvaluationMode::Mark],
        };
        tasks.iter().map(|task| (*task, *id))
    });
    linked.chain(marking)
}

/// Returns what a task asks of a keyed alternative.
fn keyed(task: EvaluationMode) -> impl Iterator<Item = EvaluationMode> {
    let tasks: &[EvaluationMode] = match task {
        EvaluationMode::Check => &[EvaluationMode::Check],
        EvaluationMode::Report => &[EvaluationMode::Check, EvaluationMode::Report],
        EvaluationMode::Mark => &[EvaluationMode::Check, EvaluationMode::Mark],
    };
    tasks.iter().copied()
}

/// A check of an object visits only the alternative that the object chooses. The other tasks visit all alternatives, as
/// does a check of any other value.
fn one_of(task: EvaluationMode, union: &KeyedUnion, arms: impl Iterator<Item = u64>) -> u64 {
    match task {
        EvaluationMode::Check if union.takes_objects_alone => arms.max().unwrap_or(0),
        EvaluationMode::Check | EvaluationMode::Report | EvaluationMode::Mark => {
            arms.fold(0, u64::saturating_add)
        }
    }
}
