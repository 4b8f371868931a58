//! Computes the cost of a regular expression.

use regex_syntax::hir::{Hir, HirKind};

/// The number of states of an expression that count as one step on a short text.
const STATES: u64 = 32;
/// The states at least of an expression that is not read here, and of one that looks around, which has a budget of its own.
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
        match parsed.map(|hir| states(&hir)) {
            Ok(states) => Self {
                steps: 1 + states / STATES,
                states,
            },
            // Only its checks count what it may have: no schema is refused for that.
            Err(_) => Self {
                steps: 1 + UNKNOWN / STATES,
                states: unread_states(pattern),
            },
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

/// Returns the states of an expression that is read elsewhere, such as one with `\cA`: from its groups and counts alone.
fn unread_states(pattern: &str) -> u64 {
    let mut groups = Vec::new(); // the states before each group that is open
    let (mut before, mut last) = (0_u64, 0_u64);
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let part = match character {
            '(' => {
                groups.push(before.saturating_add(last));
                (before, last) = (0, 0);
                continue;
            }
            ')' => {
                let group = before.saturating_add(last);
                (before, last) = (groups.pop().unwrap_or(0), 0);
                group
            }
            '{' => match read_count(characters.as_str()) {
                Some((rounds, rest)) => {
                    last = last.saturating_mul(rounds);
                    characters = rest.chars();
                    continue;
                }
                None => 1,
            },
            '[' => {
                skip_class(&mut characters);
                1
            }
            '\\' => {
                _ = characters.next();
                1
            }
            character => character.len_utf8() as u64,
        };
        before = before.saturating_add(last);
        last = part;
    }
    let open = groups.into_iter().fold(0, u64::saturating_add);
    let states = open.saturating_add(before).saturating_add(last);
    states.max(UNKNOWN)
}

/// Reads the rest of a count such as `2,5}`, and returns the most rounds and what follows.
fn read_count(text: &str) -> Option<(u64, &str)> {
    let (count, rest) = text.split_once('}')?;
    let (least, most) = count.split_once(',').unwrap_or((count, count));
    let least: u64 = least.trim().parse().ok()?;
    let most = most.trim().parse().unwrap_or(least);
    Some((most.max(1), rest))
}

fn skip_class(characters: &mut std::str::Chars<'_>) {
    while let Some(character) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            ']' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_of_an_unread_expression_are_counted_by_its_groups() {
        for (pattern, expected) in [
            (r"^(?:[ab]?){8000}\cA$", 8000 * 4 + 4),
            (r"[[](?:x{2,}[^]\]]{300}){10}", 1 + 10 * (2 + 2 + 302)),
            (r"\cA{1000000}{1000000}{1000000}{1000000}", u64::MAX),
            (r"(?=a", UNKNOWN),
            (r"a){2}{", UNKNOWN),
        ] {
            assert_eq!(unread_states(pattern), expected, "{pattern}");
        }
        let unread = PatternCost::measure(r"^(?:[ab]?){8000}\cA$");
        assert_eq!(unread.steps, 1 + UNKNOWN / STATES);
    }
}
