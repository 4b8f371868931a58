//! Computes the cost of one character for a regular expression.

use regex_syntax::hir::{Hir, HirKind};

/// The number of states of the expression that count as one step.
const STATES: u64 = 32;
/// For an expression that is not read here.
const UNKNOWN: u64 = 8;

/// Returns the steps of a pattern: for one that repeats large parts many times, they are many.
pub(super) fn steps(pattern: &str) -> u64 {
    let parsed = regex_syntax::ParserBuilder::new()
        .nest_limit(100)
        .build()
        .parse(pattern);
    parsed.map_or(UNKNOWN, |hir| 1 + states(&hir) / STATES)
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
