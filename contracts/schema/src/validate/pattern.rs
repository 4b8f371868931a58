//! Patterns that every text meets, and those that none does.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// A longer pattern is not read, in bytes: it hardly says nothing at all.
const BYTES_MAX: usize = 256;

/// Returns `true` if every text meets the pattern, so that it is no rule. That is so if it matches nothing at the start or at
/// the end of any text, or all characters in between.
pub fn takes_every_text(pattern: &str) -> bool {
    parsed(pattern).is_some_and(|hir| {
        is_met_at(&hir, Look::Start)
            || is_met_at(&hir, Look::End)
            // Engines differ in the line breaks that a dot leaves out, and each leaves out some.
            || !pattern.contains('.') && takes_whole_text(&hir)
    })
}

/// Returns `true` if no text meets the pattern.
pub fn takes_no_text(pattern: &str) -> bool {
    parsed(pattern).is_some_and(|hir| is_met_nowhere(&hir))
}

fn parsed(pattern: &str) -> Option<Hir> {
    if pattern.len() > BYTES_MAX {
        return None;
    }
    let mut parser = regex_syntax::ParserBuilder::new().nest_limit(100).build();
    parser.parse(pattern).ok()
}

/// Returns `true` if the expression matches without a character at this end of every text.
fn is_met_at(hir: &Hir, end: Look) -> bool {
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Look(look) => *look == end,
        HirKind::Literal(_) | HirKind::Class(_) => false,
        HirKind::Repetition(repeated) => repeated.min == 0 || is_met_at(&repeated.sub, end),
        HirKind::Capture(capture) => is_met_at(&capture.sub, end),
        HirKind::Concat(parts) => parts.iter().all(|part| is_met_at(part, end)),
        HirKind::Alternation(arms) => arms.iter().any(|arm| is_met_at(arm, end)),
    }
}

/// Returns `true` for `^[\s\S]*$` and the like.
fn takes_whole_text(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Capture(capture) => takes_whole_text(&capture.sub),
        HirKind::Concat(parts) => match parts.as_slice() {
            [start, all, end] => {
                is_look(start, Look::Start) && is_any_number(all) && is_look(end, Look::End)
            }
            _ => false,
        },
        _ => false,
    }
}

fn is_look(hir: &Hir, look: Look) -> bool {
    matches!(hir.kind(), HirKind::Look(found) if *found == look)
}

/// Returns `true` for any number of any characters.
fn is_any_number(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Capture(capture) => is_any_number(&capture.sub),
        HirKind::Repetition(repeated) => {
            repeated.min == 0 && repeated.max.is_none() && is_any_character(&repeated.sub)
        }
        _ => false,
    }
}

fn is_any_character(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Capture(capture) => is_any_character(&capture.sub),
        HirKind::Class(Class::Unicode(class)) => match class.ranges() {
            [range] => range.start() == '\0' && range.end() == char::MAX,
            _ => false,
        },
        _ => false,
    }
}

/// Returns `true` if the expression matches in no text: a class without characters is asked for, or a character before the
/// start or behind the end.
fn is_met_nowhere(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) => false,
        HirKind::Class(class) => class.minimum_len().is_none(),
        HirKind::Repetition(repeated) => repeated.min > 0 && is_met_nowhere(&repeated.sub),
        HirKind::Capture(capture) => is_met_nowhere(&capture.sub),
        HirKind::Alternation(arms) => arms.iter().all(is_met_nowhere),
        HirKind::Concat(parts) => parts.iter().any(is_met_nowhere) || is_beyond_an_end(parts),
    }
}

fn is_beyond_an_end(parts: &[Hir]) -> bool {
    let has_characters = |part: &Hir| part.properties().minimum_len() > Some(0);
    let start = parts.iter().rposition(|part| is_look(part, Look::Start));
    let end = parts.iter().position(|part| is_look(part, Look::End));
    start.is_some_and(|start| parts[..start].iter().any(has_characters))
        || end.is_some_and(|end| parts[end..].iter().any(has_characters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_may_take_every_text() {
        for pattern in [
            "",
            "^",
            "$",
            ".*",
            "^.*",
            ".*$",
            "a*",
            "(?:ab)?",
            "(a|)",
            "a{0,3}",
            "^[\\s\\S]*$",
            "^([^ab]|[ab])*$",
            "^(?:[\\w\\W]*)$",
            "^$|",
        ] {
            assert!(takes_every_text(pattern), "{pattern}");
            assert!(!takes_no_text(pattern), "{pattern}");
        }
        for pattern in [
            // A line break is none of these characters.
            "^.*$",
            "^(.|\\n)*$",
            "^$",
            ".",
            ".+",
            "^[\\s\\S]+$",
            "^[\\s\\S]{0,9}$",
            "^a*$",
            "^$|a",
            "\\b",
            "(?=a)",
            "(",
        ] {
            assert!(!takes_every_text(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_may_take_no_text() {
        for pattern in ["[^\\s\\S]", "a^", "$a", "(?:x^|b$c)", "(?:[^\\w\\W])+z"] {
            assert!(takes_no_text(pattern), "{pattern}");
        }
        for pattern in ["a*^", "$a?", "^^a", "a$$", "(?:a^)?b", "a^|b", "(?=a)b^"] {
            assert!(!takes_no_text(pattern), "{pattern}");
        }
    }
}
