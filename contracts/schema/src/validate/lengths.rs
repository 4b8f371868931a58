//! The lengths that texts of a pattern can have.

use regex_syntax::hir::{Hir, HirKind, Look};

/// The lengths, in characters, of the texts that meet a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternLengths {
    /// No text is shorter.
    pub least: u64,
    /// No text is longer. `None` means that there is no bound, for example if the pattern is not anchored.
    pub most: Option<u64>,
}

impl PatternLengths {
    /// The lengths of nothing.
    const EMPTY: Self = Self {
        least: 0,
        most: Some(0),
    };

    /// Reads a pattern of JSON Schema. Returns `None` if nothing is known about it.
    pub fn read(pattern: &str) -> Option<Self> {
        let hir = regex_syntax::ParserBuilder::new()
            .nest_limit(100)
            .build()
            .parse(pattern)
            .ok()?;
        let properties = hir.properties();
        let is_whole = properties.look_set_prefix().contains(Look::Start)
            && properties.look_set_suffix().contains(Look::End);
        let lengths = Self::of_matches(&hir)?;
        Some(Self {
            most: lengths.most.filter(|_| is_whole),
            ..lengths
        })
    }

    /// Returns the lengths of what an expression matches. `None` means that it matches nothing, or that its bytes are not text.
    fn of_matches(hir: &Hir) -> Option<Self> {
        let exactly = |count: usize| {
            let count = u64::try_from(count).ok()?;
            Some(Self {
                least: count,
                most: Some(count),
            })
        };
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Some(Self::EMPTY),
            HirKind::Literal(literal) => {
                exactly(std::str::from_utf8(&literal.0).ok()?.chars().count())
            }
            HirKind::Class(class) => class.minimum_len().and_then(|_| exactly(1)),
            HirKind::Capture(capture) => Self::of_matches(&capture.sub),
            HirKind::Repetition(repeated) => {
                let Some(round) = Self::of_matches(&repeated.sub) else {
                    return (repeated.min == 0).then_some(Self::EMPTY);
                };
                let rounds_max = repeated.max.map(u64::from);
                Some(Self {
                    least: round.least.saturating_mul(repeated.min.into()),
                    most: match (round.most, rounds_max) {
                        (Some(0), _) => Some(0),
                        (Some(most), Some(rounds)) => most.checked_mul(rounds),
                        _ => None,
                    },
                })
            }
            HirKind::Concat(parts) => parts.iter().try_fold(Self::EMPTY, |all, part| {
                let part = Self::of_matches(part)?;
                Some(Self {
                    least: all.least.saturating_add(part.least),
                    most: all
                        .most
                        .zip(part.most)
                        .and_then(|(all, part)| all.checked_add(part)),
                })
            }),
            HirKind::Alternation(arms) => {
                arms.iter()
                    .filter_map(Self::of_matches)
                    .reduce(|one, other| Self {
                        least: one.least.min(other.least),
                        most: one.most.zip(other.most).map(|(one, other)| one.max(other)),
                    })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_in_characters() {
        for (pattern, expected) in [
            ("^a$", Some((1, Some(1)))),
            ("^äöü$", Some((3, Some(3)))),
            ("^[A-Z]{2}\\d{3,5}$", Some((5, Some(7)))),
            ("^(?:abc|é)?$", Some((0, Some(3)))),
            ("^(?:[äé]b)+$", Some((2, None))),
            ("^(a|bc)d$", Some((2, Some(3)))),
            ("^$", Some((0, Some(0)))),
            // The text around it may be of any length.
            ("abc", Some((3, None))),
            ("^abc", Some((3, None))),
            ("^a$|b", Some((1, None))),
            ("(?=a)b", None),
            ("[^\\s\\S]", None),
        ] {
            let found = PatternLengths::read(pattern);
            let expected = expected.map(|(least, most)| PatternLengths { least, most });
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
