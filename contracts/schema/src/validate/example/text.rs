//! Example texts: by format, by pattern, by length.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::validate::budget;

/// Longest text that is made.
const LENGTH_MAX: usize = 100_000;
/// Bytes that take one step.
const STEP_BYTES: usize = 8;

pub(super) fn build(
    format: Option<&str>,
    patterns: &[&str],
    least: usize,
    most: usize,
    nth: usize,
) -> Option<String> {
    let steps = (least / STEP_BYTES) as u64;
    if least > LENGTH_MAX || least > most || !budget::take(steps) {
        return None;
    }
    match (format.and_then(|format| of_format(format, nth)), patterns) {
        (Some(text), []) => Some(lengthened(text, format.unwrap_or_default(), least)),
        (Some(text), _) if fits(&text, least, most) => Some(text),
        (_, [pattern, ..]) => of_pattern(pattern, least, most, nth),
        (None, []) => {
            let word = if nth == 0 {
                "text".to_owned()
            } else {
                format!("text{}", nth + 1)
            };
            let mut text: String = match fits(&word, 0, most) {
                true => word,
                false => plain(nth, most),
            };
            let missing = least.saturating_sub(text.chars().count());
            text.extend(std::iter::repeat_n('x', missing));
            Some(text)
        }
    }
}

/// Returns short texts that differ: a, b, c, …
fn plain(mut nth: usize, most: usize) -> String {
    let mut text = String::new();
    while text.len() < most {
        text.push(char::from(b'a' + (nth % 26) as u8));
        nth /= 26;
        if nth == 0 {
            break;
        }
    }
    text
}

fn of_format(format: &str, nth: usize) -> Option<String> {
    let day = 1 + nth % 28;
    let text = match format {
        "date" => format!("2024-{:02}-{day:02}", 1 + nth / 28 % 12),
        "date-time" => format!("2024-{:02}-{day:02}T12:00:00Z", 1 + nth / 28 % 12),
        "time" => format!("12:{:02}:00Z", nth % 60),
        "duration" => format!("P{}D", nth + 1),
        "email" | "idn-email" if nth == 0 => "user@example.com".to_owned(),
        "email" | "idn-email" => format!("user{}@example.com", nth + 1),
        "hostname" | "idn-hostname" if nth == 0 => "example.com".to_owned(),
        "hostname" | "idn-hostname" => format!("host{}.example.com", nth + 1),
        "ipv4" => format!("192.0.2.{}", 1 + nth % 254),
        "ipv6" => format!("2001:db8::{:x}", nth + 1),
        "uri" | "iri" if nth == 0 => "https://example.com/".to_owned(),
        "uri" | "iri" => format!("https://example.com/{}", nth + 1),
        "uri-reference" | "iri-reference" | "uri-template" | "json-pointer" => {
            format!("/{}", nth + 1)
        }
        "relative-json-pointer" => format!("{nth}"),
        "uuid" => format!("00000000-0000-4000-8000-{:012x}", nth + 1),
        "regex" => format!("a{{{}}}", nth + 1),
        _ => return None,
    };
    Some(text)
}

/// Makes a format's example longer if the format has room for it.
fn lengthened(text: String, format: &str, least: usize) -> String {
    let missing = least.saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    match format {
        "email" | "idn-email" => {
            let local = (missing + 4).min(64) - 4;
            let rest = missing - local;
            let labels: String = (0..rest)
                .map(|index| if index % 60 == 59 { '.' } else { 'a' })
                .collect();
            text.replacen('@', &format!("{}@{labels}", "r".repeat(local)), 1)
        }
        "uri" | "iri" | "uri-reference" | "iri-reference" | "json-pointer" | "uri-template" => {
            format!("{text}{}", "a".repeat(missing))
        }
        "date-time" => {
            let digits = "0".repeat(missing.saturating_sub(1).max(1));
            text.replacen('Z', &format!(".{digits}Z"), 1)
        }
        _ => text,
    }
}

fn fits(text: &str, least: usize, most: usize) -> bool {
    let length = text.chars().count();
    (least..=most).contains(&length)
}

/// Makes a text that matches a pattern: the shortest way through it, with its loops run until the text is long enough.
fn of_pattern(pattern: &str, least: usize, most: usize, nth: usize) -> Option<String> {
    if !budget::take(pattern.len() as u64) {
        return None;
    }
    // In these schemas `\d` is an ASCII digit.
    let hir = regex_syntax::ParserBuilder::new()
        .unicode(true)
        .build()
        .parse(&ascii_classes(pattern))
        .ok()?;
    let mut anchored = (false, false);
    anchors(&hir, &mut anchored);
    for extra in (0..=64).chain([128, 256, 512, 1_024, 4_096]) {
        let mut writer = PatternWriter {
            text: String::new(),
            extra,
            nth,
            over: false,
        };
        writer.write(&hir);
        let steps = 1 + writer.text.len() / STEP_BYTES;
        if writer.over || !budget::take(steps as u64) {
            break;
        }
        let mut text = writer.text;
        let length = text.chars().count();
        if length < least {
            let missing = least - length;
            match anchored {
                (_, false) => text.push_str(&"a".repeat(missing)),
                (false, true) => text.insert_str(0, &"a".repeat(missing)),
                (true, true) => {}
            }
        }
        if fits(&text, least, most) {
            return Some(text);
        }
        if length > most {
            break;
        }
    }
    None
}

/// Rewrites ECMA classes as their ASCII forms, which is how the validator reads them.
fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match (characters.next(), in_class) {
                (Some('d'), true) => out.push_str("0-9"),
                (Some('d'), false) => out.push_str("[0-9]"),
                (Some('w'), true) => out.push_str("A-Za-z0-9_"),
                (Some('w'), false) => out.push_str("[A-Za-z0-9_]"),
                (Some('/'), _) => out.push('/'),
                (Some('-'), _) => out.push_str("\\-"),
                (Some(other), _) => out.extend(['\\', other]),
                (None, _) => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            '[' => out.push_str("\\["),
            other => out.push(other),
        }
    }
    out
}

fn anchors(hir: &Hir, found: &mut (bool, bool)) {
    let properties = hir.properties();
    found.0 = properties
        .look_set_prefix()
        .contains(regex_syntax::hir::Look::Start);
    found.1 = properties
        .look_set_suffix()
        .contains(regex_syntax::hir::Look::End);
}

struct PatternWriter {
    text: String,
    /// The number of rounds that an endless loop runs beyond its least.
    extra: u32,
    nth: usize,
    over: bool,
}

impl PatternWriter {
    fn write(&mut self, hir: &Hir) {
        if self.text.len() > LENGTH_MAX {
            self.over = true;
            return;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => self.text.push_str(&String::from_utf8_lossy(&literal.0)),
            HirKind::Class(class) => self.write_class(class),
            HirKind::Repetition(repetition) => {
                let most = repetition.max.unwrap_or(u32::MAX);
                for _ in 0..repetition.min.saturating_add(self.extra).min(most) {
                    self.write(&repetition.sub);
                    if self.over {
                        return;
                    }
                }
            }
            HirKind::Capture(capture) => self.write(&capture.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.write(part)),
            HirKind::Alternation(parts) => {
                if let Some(part) = parts.get(self.nth % parts.len()) {
                    self.write(part);
                }
            }
        }
    }

    fn write_class(&mut self, class: &Class) {
        let Class::Unicode(class) = class else {
            self.text.push('a');
            return;
        };
        let inside = |wanted: char| {
            class
                .iter()
                .any(|range| range.start() <= wanted && wanted <= range.end())
        };
        let good: Vec<char> = ('a'..='z')
            .chain('A'..='Z')
            .chain('0'..='9')
            .chain("-_. ".chars())
            .filter(|next| inside(*next))
            .collect();
        let chosen = match good.is_empty() {
            true => class.iter().next().map(|range| range.start()),
            false => Some(good[self.nth % good.len()]),
        };
        self.text.extend(chosen);
    }
}
