//! Computes the cost of a schema: the most steps that a check of one value takes, with every reference followed.
//!
//! A small schema can ask for a lot of work: thirty definitions that each name the next one twice apply the last one 2^30
//! times. Such a schema is refused before anything expands it, and so is one that takes long to compile. What the other ones
//! cost depends on how deep a value is, and decides whether a check may run without a budget.

mod compiling;
mod graph;
mod keyed;
mod levels;
mod nesting;
mod pattern;

use serde_json::Value;

pub(crate) use self::graph::{NodeId, SchemaGraph};
use self::levels::CostLevels;

/// The steps that one value may take at most, in a value that is nested [`LEVELS`] deep. The largest schemas of real servers
/// and services take about 1,100.
pub(crate) const STEPS_MAX: u64 = 200_000;
/// How deep the values are that a schema is measured by. A schema within itself may cost more with each level; what calls
/// send deeper is bounded by their budget.
const LEVELS: usize = 4;
/// The states that count as one step for each byte of a long text. The engine is linear in the text; when it cannot cache what
/// it computed, it goes through all of its states again for each byte.
const BYTE_STATES: u64 = 24;

/// Bytes that the compiled patterns of a schema may take.
const PATTERN_BYTES_MAX: u64 = 64 << 20;

/// The steps for one value, by how deep the whole value is nested.
#[derive(Clone, Debug)]
pub(crate) struct SchemaCost {
    by_depth: Vec<ValueSteps>,
    /// The states of all patterns.
    states: u64,
    copied_bytes: usize,
}

/// The steps for one value at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValueSteps {
    /// Telling whether it is valid.
    pub(crate) check: u64,
    /// Collecting every fault.
    pub(crate) report: u64,
}

impl SchemaCost {
    /// Measures a schema. The error explains in one sentence why it is refused.
    pub(crate) fn measure(schema: &Value) -> Result<Self, String> {
        let graph = SchemaGraph::new(schema)?;
        let (nested, node) = nesting::deepest(&graph);
        if nested > nesting::NESTED_MAX {
            let place = graph::place_of(schema, graph.schema(node)).unwrap_or_default();
            return Err(too_nested(&place));
        }
        let mut levels = CostLevels::new(&graph);
        let mut by_depth = Vec::new();
        loop {
            by_depth.push(levels.steps(0));
            if by_depth.len() == LEVELS + 1 || !levels.deepen()? {
                break;
            }
        }
        if let Some((node, steps)) = levels.dearest().filter(|(_, steps)| *steps > STEPS_MAX) {
            let place = graph::place_of(schema, graph.schema(node)).unwrap_or_default();
            return Err(too_costly(&place, steps));
        }
        let (steps, node) = compiling::steps(&graph);
        if steps > compiling::COMPILING_MAX {
            let place = graph::place_of(schema, graph.schema(node)).unwrap_or_default();
            return Err(too_long_to_compile(&place, steps));
        }
        let bytes = graph.pattern_bytes();
        if bytes > PATTERN_BYTES_MAX {
            return Err(format!(
                "its patterns take some {} MiB compiled, and at most {} are accepted: repeat classes of characters less often",
                bytes >> 20,
                PATTERN_BYTES_MAX >> 20
            ));
        }
        if compiling::has_too_many_ways(&graph) {
            return Err("the schemas with an `$id` in it refer to each other in too many ways to compile it".to_owned());
        }
        while by_depth.len() <= crate::json::DEPTH_MAX {
            match levels.deepen() {
                Ok(true) => by_depth.push(levels.steps(0)),
                Ok(false) => break,
                // Deeper schemas are checked in counted steps.
                Err(_) => {
                    by_depth.push(ValueSteps {
                        check: levels::ENDLESS,
                        report: levels::ENDLESS,
                    });
                    break;
                }
            }
        }
        Ok(Self {
            by_depth,
            states: graph.all_states(),
            copied_bytes: graph.copied_bytes(),
        })
    }

    /// Returns the steps for one value within a value that is nested this deep.
    pub(crate) fn at_depth(&self, depth: usize) -> ValueSteps {
        let last = self.by_depth.len() - 1;
        self.by_depth[depth.min(last)]
    }

    /// Returns the bytes of the schema that one fault has a copy of at most.
    pub(crate) fn copied_bytes(&self) -> usize {
        self.copied_bytes
    }

    /// Returns the steps of all patterns for this many bytes of long texts.
    pub(crate) fn for_texts(&self, bytes: usize) -> u64 {
        text_steps(self.states, bytes)
    }

    /// Returns the steps for one value, however deep.
    pub(crate) fn at_any_depth(&self) -> ValueSteps {
        self.at_depth(usize::MAX)
    }
}

/// Returns the steps that patterns with this many states take on a long text.
pub(crate) fn text_steps(states: u64, bytes: usize) -> u64 {
    states.saturating_mul(bytes as u64) / BYTE_STATES
}

fn counted(steps: u64) -> String {
    match steps >= levels::ENDLESS {
        true => "more steps than can be counted".to_owned(),
        false => format!("{steps} steps"),
    }
}

fn too_long_to_compile(place: &str, steps: u64) -> String {
    let place = if place.is_empty() { "its root" } else { place };
    format!(
        "compiling it can take {} with all references followed, most of them for {place}, and at most {} are accepted: \
         refer to the same schema less often, or name members instead of `unevaluatedProperties`",
        counted(steps),
        compiling::COMPILING_MAX
    )
}

fn too_costly(place: &str, steps: u64) -> String {
    let place = if place.is_empty() { "its root" } else { place };
    let steps = counted(steps);
    format!(
        "checking one value at {place} can take {steps} with all references followed, and at most {STEPS_MAX} are \
         accepted: refer to the same schema less often, or give each alternative a required property with a `const` of its own"
    )
}

fn too_nested(place: &str) -> String {
    let place = if place.is_empty() { "its root" } else { place };
    format!(
        "references lead through too many schemas, most of them at {place}: at most {} may apply within each other to a \
         value that is nested {} levels deep",
        nesting::NESTED_MAX,
        crate::json::DEPTH_MAX
    )
}

/// Checks a schema that is compiled elsewhere.
pub(crate) fn check(schema: &Value) -> Result<(), String> {
    SchemaCost::measure(schema).map(drop)
}

#[cfg(test)]
mod tests;
