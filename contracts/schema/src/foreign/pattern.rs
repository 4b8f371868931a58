//! Decides whether a stranger's regular expression can be given to engines that backtrack, as those of most clients do.
//!
//! A repetition inside a repetition takes exponential time if a text can be split between the two in many ways:
//! `(a+)+$`. Where every round of the outer one begins or ends with a character that the inner ones never take, it
//! cannot: `([a-z]+\.)*` is harmless, and patterns for host names and mail addresses are commonly written that way.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// A repetition that is bounded higher than this is as good as unbounded.
const ROUNDS_MAX: u32 = 32;

/// Checks a pattern. The error is the second half of a sentence that begins with the pattern.
pub fn check(pattern: &str, chars_max: usize) -> Result<(), String> {
    if pattern.chars().count() > chars_max {
        return Err(format!("is longer than {chars_max} characters"));
    }
    let plain = without_lookaround(pattern);
    match regex_syntax::ParserBuilder::new()
        .nest_limit(100)
        .build()
        .parse(&plain)
    {
        Ok(hir) if is_ambiguous(&hir) => Err(
            "repeats a repetition; engines that backtrack can take exponential time over it"
                .to_owned(),
        ),
        Err(_) if has_back_reference(pattern) => Err(
            "has a back reference; engines that backtrack can take exponential time over it"
                .to_owned(),
        ),
        // An invalid expression is refused where the schema is compiled.
        _ => Ok(()),
    }
}

/// Rewrites lookaround as plain groups: repetitions in them are judged like others.
fn without_lookaround(pattern: &str) -> String {
    let mut plain = pattern.to_owned();
    for look in ["(?=", "(?!", "(?<=", "(?<!"] {
        plain = plain.replace(look, "(?:");
    }
    plain
}

fn has_back_reference(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let refers = escaped && (c.is_ascii_digit() && c != '0' || c == 'k');
        escaped = !escaped && c == '\\';
        refers
    })
}

fn is_ambiguous(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Repetition(repetition) => {
            if is_unbounded(repetition.max) {
                let taken = characters_of_loops(&repetition.sub);
                if !taken.ranges().is_empty() && !is_separated(&repetition.sub, &taken) {
                    return true;
                }
            }
            is_ambiguous(&repetition.sub)
        }
        HirKind::Capture(capture) => is_ambiguous(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(is_ambiguous),
        _ => false,
    }
}

fn is_unbounded(max: Option<u32>) -> bool {
    max.is_none_or(|max| max > ROUNDS_MAX)
}

/// Returns every character that some repetition inside may take.
fn characters_of_loops(hir: &Hir) -> ClassUnicode {
    let mut taken = ClassUnicode::empty();
    match hir.kind() {
        HirKind::Repetition(inner) if is_unbounded(inner.max) => taken = characters(&inner.sub),
        HirKind::Repetition(inner) => taken = characters_of_loops(&inner.sub),
        HirKind::Capture(capture) => taken = characters_of_loops(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts
                .iter()
                .for_each(|part| taken.union(&characters_of_loops(part)));
        }
        _ => {}
    }
    taken
}

fn characters(hir: &Hir) -> ClassUnicode {
    let mut found = ClassUnicode::empty();
    match hir.kind() {
        HirKind::Literal(literal) => {
            for c in String::from_utf8_lossy(&literal.0).chars() {
                found.push(ClassUnicodeRange::new(c, c));
            }
        }
        HirKind::Class(Class::Unicode(class)) => found = class.clone(),
        HirKind::Class(Class::Bytes(_)) => found.push(ClassUnicodeRange::new('\0', char::MAX)),
        HirKind::Repetition(inner) => found = characters(&inner.sub),
        HirKind::Capture(capture) => found = characters(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().for_each(|part| found.union(&characters(part)));
        }
        HirKind::Empty | HirKind::Look(_) => {}
    }
    found
}

/// Returns `true` if the round begins or ends with a character that no repetition inside takes.
fn is_separated(round: &Hir, taken: &ClassUnicode) -> bool {
    match round.kind() {
        HirKind::Capture(capture) => is_separated(&capture.sub, taken),
        HirKind::Alternation(rounds) => rounds.iter().all(|round| is_separated(round, taken)),
        HirKind::Concat(parts) => [parts.first(), parts.last()]
            .into_iter()
            .flatten()
            .any(|part| {
                let mut ends = match part.kind() {
                    HirKind::Literal(_) | HirKind::Class(_) => characters(part),
                    _ => return false,
                };
                ends.intersect(taken);
                ends.ranges().is_empty()
            }),
        _ => false,
    }
}
