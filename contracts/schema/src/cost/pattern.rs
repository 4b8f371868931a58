//! Computes the cost of a regular expression.

use regex_syntax::hir::{Hir, HirKind};

/// The number of states of an expression that count as one step on a short text.
const STATES: u64 = 32;
/// The states of an expression that is not read here, and of one that looks around, which has a budget of its own.
const UNKNOWN: u64 = 8 * STATES;

/// The cost of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternCost {
    /// Steps on a short text: for a pattern that repeats large parts many times, they are many.
    pub(super) steps: u64,
    /// The states that the linear engine may go through for each byte of a long text.
    pub(super) states: u64,
}

impl PatternCost {
    pub(super) fn measure(pattern: &str) -> Self {
        let parsed = regex_syntax::ParserBuilder::new()
            .nest_limit(100)
            .build()
            .parse(pattern);
        let states = parsed.map_or(UNKNOWN, |hir| states(&hir));
        Self {
            steps: 1 + states / STATES,
            states,
        }
    }
}

fn states(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Capture(capture) => states(&capture.sub),
        HirKind::Repetition(repeated) => {
            let rounds = repeated.max.unwrap_or(repeated.min).max(1);
            states(&repeated.sub).saturating_mul(u64::from(rounds))
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(states(part))),
    }
}
