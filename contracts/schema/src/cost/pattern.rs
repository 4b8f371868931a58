//! Computes the cost of a regular expression.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The number of states of an expression that count as one step on a short text.
const STATES: u64 = 32;
/// The minimum states of an expression that is not read here, and of one that looks around, which has its own budget.
const UNKNOWN: u64 = 8 * STATES;
/// Bytes that a compiled state takes.
const STATE_BYTES: u64 = 48;
/// States of a class that is not read here: those of one with all characters but a few.
const UNKNOWN_CLASS: u64 = 27;
/// Bytes that one expression takes at most: the engine refuses a larger one.
const BYTES_MAX: u64 = 1 << 20;

/// The cost of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternCost {
    /// Steps on a short text: for a pattern that repeats large parts many times, they are many.
    pub(super) steps: u64,
    /// The states that the linear engine may go through for each byte of a long text.
    pub(super) states: u64,
    /// The bytes that it takes compiled.
    pub(super) bytes: u64,
}

impl PatternCost {
    pub(super) fn measure(pattern: &str) -> Self {
        match parsed(pattern) {
            Some(hir) => {
                let states = states(&hir, |_| 1);
                // If it cannot be read with its classes of letters and digits written out, these count as larger.
                let written = parsed(&without_shorthands(pattern)).unwrap_or(hir);
                Self {
                    steps: 1 + states / STATES,
                    states,
                    bytes: bytes(self::states(&written, class_states)),
                }
            }
            // Its possible states count only towards checks: no schema is refused for them.
            None => {
                let states = unread_states(pattern);
                Self {
                    steps: 1 + UNKNOWN / STATES,
                    states,
                    bytes: bytes(states.saturating_mul(UNKNOWN_CLASS)),
                }
            }
        }
    }
}

fn parsed(pattern: &str) -> Option<Hir> {
    let mut parser = regex_syntax::ParserBuilder::new().nest_limit(100).build();
    parser.parse(pattern).ok()
}

/// Writes out the classes that mean letters and digits of ASCII in a schema, and all letters to the parser.
fn without_shorthands(pattern: &str) -> String {
    [
        ("\\w", "[0-9A-Za-z_]"),
        ("\\W", "[^0-9A-Za-z_]"),
        ("\\d", "[0-9]"),
        ("\\D", "[^0-9]"),
    ]
    .iter()
    .fold(pattern.to_owned(), |pattern, (shorthand, class)| {
        pattern.replace(shorthand, class)
    })
}

fn bytes(states: u64) -> u64 {
    states.saturating_mul(STATE_BYTES).min(BYTES_MAX)
}

/// Returns the states of a class: each of its characters is one to four bytes.
fn class_states(class: &Class) -> u64 {
    let Class::Unicode(class) = class else {
        return 1;
    };
    let ranges = class.ranges().iter().map(|range| {
        match (
            range.start().len_utf8() as u64,
            range.end().len_utf8() as u64,
        ) {
            (1, 1) => 1,
            (first, last) if first == last => 2 * last - 1,
            _ => UNKNOWN_CLASS,
        }
    });
    ranges.sum()
}

fn states(hir: &Hir, of_class: impl Fn(&Class) -> u64 + Copy) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Class(class) => of_class(class),
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Capture(capture) => states(&capture.sub, of_class),
        HirKind::Repetition(repeated) => {
            let rounds = repeated.max.unwrap_or(repeated.min).max(1);
            states(&repeated.sub, of_class).saturating_mul(u64::from(rounds))
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(0, |sum: u64, part| {
                sum.saturating_add(states(part, of_class))
            })
        }
    }
}

/// Returns the states of an expression that is read elsewhere, such as one with `\cA`, from only its groups and counts.
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
        // As measured, but for small ones.
        for (pattern, least, most) in [
            (r"^x\w{1,64}$", 0, 20_000),
            (r"[^a]{300}", 300_000, 500_000),
            (r"[ab]{8000}", 300_000, 500_000),
            (r"\p{L}{900}", BYTES_MAX, BYTES_MAX),
        ] {
            let bytes = PatternCost::measure(pattern).bytes;
            assert!((least..=most).contains(&bytes), "{pattern}: {bytes} bytes");
        }
        let unread = PatternCost::measure(r"^(?:[ab]?){8000}\cA$");
        assert_eq!(unread.steps, 1 + UNKNOWN / STATES);
    }
}
