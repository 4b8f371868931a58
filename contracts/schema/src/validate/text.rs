//! Writes refusals in words: a sentence about the first error, and a line about each for the text block, which is all
//! that most models are shown.
//!
//! A line is for a person and a program: `/path: the fault and the allowed values. Example: JSON`. It may end with `Leave it
//! out.` or `Did you mean "name"?` instead. The path is a JSON Pointer, quoted as a JSON string if it has other characters
//! than names have. `arguments` is the path of the arguments as a whole.

use std::{borrow::Cow, fmt::Write as _};

use serde::de::IgnoredAny;
use serde_json::Value;
use weir_text::shorten;

use super::{ArgumentError, InvalidArguments, SchemaViolation};
use crate::{json, name};

/// The bound on the text of one refusal.
const TEXT_BYTES_MAX: usize = 12 << 10;
/// A longer example is left to the structured content.
const EXAMPLE_BYTES_MAX: usize = 1_000;
/// Characters of a constraint that are shown.
const SHOWN_MAX: usize = 200;
/// Values of a list that are shown.
const VALUES_MAX: usize = 20;

impl InvalidArguments {
    /// Returns one sentence about the first error.
    pub fn message(&self) -> String {
        match self.errors.as_slice() {
            [] => "Invalid arguments.".to_owned(),
            [only] => format!("Invalid arguments: {}.", only.sentence()),
            [first, more @ ..] => format!(
                "Invalid arguments: {} ({} more).",
                first.sentence(),
                more.len()
            ),
        }
    }

    /// Returns a line for every error.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(128 + 160 * self.errors.len());
        text.push_str("Invalid arguments; nothing was done. Repair this and call again:");
        for (at, error) in self.errors.iter().enumerate() {
            let before = text.len();
            text.push('\n');
            error.push_line(&mut text);
            if text.len() > TEXT_BYTES_MAX {
                text.truncate(before);
                let _ = write!(text, "\n… and {} more.", self.errors.len() - at);
                break;
            }
        }
        text
    }
}

impl ArgumentError {
    /// Returns the fault, without the final stop and without any value of the arguments.
    fn sentence(&self) -> Cow<'_, str> {
        match &self.suggestion {
            Some(near) if self.reason == "unknown_argument" => format!(
                "{}; did you mean '{}'",
                self.violation.sentence(),
                render_visible(near)
            )
            .into(),
            _ => self.violation.sentence().into(),
        }
    }

    fn push_line(&self, text: &mut String) {
        text.push_str(self.violation.line());
        match (self.reason, &self.suggestion, &self.example) {
            ("unknown_argument" | "not_in_enum", Some(near), _) => {
                let _ = write!(text, " Did you mean {}?", quoted(near));
            }
            ("unknown_argument" | "bad_cursor", _, _) => text.push_str(" Leave it out."),
            (_, _, Some(example)) if example.text().len() <= EXAMPLE_BYTES_MAX => {
                text.push_str(" Example: ");
                text.push_str(example.text());
            }
            ("not_allowed", _, None) if self.constraint.is_none() => {
                text.push_str(" Leave it out.")
            }
            _ => {}
        }
    }
}

impl SchemaViolation {
    fn sentence(&self) -> &str {
        self.sentence
            .get_or_init(|| match json::pointer_tokens(&self.path) {
                tokens if tokens.is_empty() => format!("the arguments {}", self.phrase()),
                tokens => format!("'{}' {}", render_visible(&tokens.join(".")), self.phrase()),
            })
    }

    /// Returns the place, the fault and the allowed values.
    fn line(&self) -> &str {
        self.line.get_or_init(|| {
            let place = match self.path.is_empty() {
                true => "arguments".into(),
                false if self.path.chars().all(is_of_a_name) => Cow::Borrowed(&*self.path),
                false => quoted(&self.path).into(),
            };
            let rules = match self.reason {
                "missing_required" | "wrong_type" => self.rules(),
                _ => String::new(),
            };
            match rules.is_empty() {
                true => format!("{place}: {}.", self.phrase()),
                false => format!("{place}: {} ({rules}).", self.phrase()),
            }
        })
    }

    /// Returns the fault, as words that follow the name of the argument.
    fn phrase(&self) -> String {
        let bound = |key: &str| self.render_constraint(key);
        match self.reason {
            "missing_required" => "is required".to_owned(),
            "unknown_argument" => "is not an argument of this tool".to_owned(),
            "wrong_type" => format!("must be of type {}", self.types().unwrap_or_default()),
            "not_in_enum" if self.allows_nothing() => {
                "may have no value: the schema allows none".to_owned()
            }
            "not_in_enum" => match self.allowed_values() {
                Some(allowed) => format!("must be one of {allowed}"),
                None => "is not one of the allowed values".to_owned(),
            },
            "out_of_range" => format!("must be {}", self.bounds().join(" and ")),
            "bad_format" => format!(
                "must be a valid {}",
                bound("format").unwrap_or_else(|| "text".to_owned())
            ),
            "too_long" => format!(
                "may have at most {}",
                counted(&bound("maxLength").unwrap_or_default(), "character")
            ),
            "too_short" => {
                format!(
                    "must have at least {}",
                    counted(&bound("minLength").unwrap_or_default(), "character")
                )
            }
            "pattern_mismatch" => format!("must match {}", bound("pattern").unwrap_or_default()),
            "too_many_items" => match bound("maxItems") {
                Some(most) => format!("has too many items, may have {most}"),
                None => "has too many items".to_owned(),
            },
            "too_few_items" => match bound("minItems") {
                Some(least) => format!("has too few items, must have {least}"),
                None => "has too few items".to_owned(),
            },
            "missing_item" => "lacks an item".to_owned(),
            "not_unique" => "has an item twice".to_owned(),
            "not_multiple" => format!(
                "must be a multiple of {}",
                bound("multipleOf").unwrap_or_default()
            ),
            "too_few_properties" => {
                let least = bound("minProperties").unwrap_or_default();
                match self.lacks_members(&least) {
                    true => format!("must have at least {}", counted(&least, "member")),
                    false => format!("or another argument must be there, at least {least} in total"),
                }
            }
            "too_many_properties" => "has too many members".to_owned(),
            "ambiguous_match" => "fits more than one alternative".to_owned(),
            "set_and_cleared" => {
                let set = self
                    .constraint
                    .as_ref()
                    .and_then(|constraint| constraint.pointer("/items/not/enum"));
                let set = set.map(|names| render_visible(&plain(names))).unwrap_or_default();
                format!(
                    "names {set}, which has a value in the same call: give it a value or name it, not both"
                )
            }
            "not_allowed" => "is not allowed".to_owned(),
            "duplicate_key" => "is there twice".to_owned(),
            "invalid_json" => "are not valid JSON".to_owned(),
            "too_deep" => format!("are nested deeper than {} levels", json::DEPTH_MAX),
            "too_costly" => {
                "take more steps to check than one call may have: send fewer items, or nest them less deeply"
                    .to_owned()
            }
            "bad_cursor" => "is not a cursor of this tool and these arguments, or is too old".to_owned(),
            _ => match self.alternatives() {
                Some(alternatives) => format!("fits none of the alternatives: {alternatives}"),
                None if self.has_alternatives() => "fits none of the alternatives".to_owned(),
                None => "must be valid as a whole".to_owned(),
            },
        }
    }

    /// Returns `true` if the place is that of an object with too few members, and not of one that may be added.
    fn lacks_members(&self, least: &str) -> bool {
        let members = match self.example.as_deref() {
            Some(Value::Object(members)) => members.len(),
            Some(_) => 0,
            None => usize::MAX,
        };
        self.path.is_empty() || least.parse().is_ok_and(|least: usize| members >= least)
    }

    fn has_alternatives(&self) -> bool {
        let constraint = self.constraint.as_ref();
        constraint.is_some_and(|constraint| {
            ["anyOf", "oneOf"]
                .iter()
                .any(|keyword| constraint.get(*keyword).is_some())
        })
    }

    /// Returns the values and types that would be valid, as far as they distinguish the alternatives.
    fn alternatives(&self) -> Option<String> {
        let constraint = self.constraint.as_ref()?;
        let schemas = ["anyOf", "oneOf"]
            .iter()
            .find_map(|key| constraint.get(*key)?.as_array())?;
        let mut all: Vec<String> = Vec::new();
        for schema in schemas {
            let named = schema
                .get("const")
                .or_else(|| schema.get("enum"))
                .map(|values| render_value(values, quote_odd));
            let one = named
                .or_else(|| Some(format!("a value of type {}", plain(schema.get("type")?))))?;
            if !all.contains(&one) {
                all.push(one);
            }
        }
        let more = if all.len() > VALUES_MAX { " …" } else { "" };
        all.truncate(VALUES_MAX);
        Some(format!("{}{more}", render_visible(&all.join(", "))))
    }

    /// Returns the rules that a value must meet in addition to its type. If the value is missing, its type is among them.
    fn rules(&self) -> String {
        let rule = |key: &str, before: &str, after: &str| {
            Some(format!("{before}{}{after}", self.render_constraint(key)?))
        };
        let number = |key: &str, before: &str, what: &str| {
            Some(format!(
                "{before} {}",
                counted(&self.render_constraint(key)?, what)
            ))
        };
        let types = self.types().filter(|_| self.reason == "missing_required");
        let listed = self.allowed_values();
        let listed = listed.map(|values| match self.allows_nothing() {
            true => "no value is allowed".to_owned(),
            false => format!("one of {values}"),
        });
        let rules = [types, listed]
            .into_iter()
            .chain(self.bounds().into_iter().map(Some));
        let rules = rules.chain([
            rule("multipleOf", "a multiple of ", ""),
            number("minLength", "at least", "character"),
            number("maxLength", "at most", "character"),
            rule("pattern", "matching ", ""),
            rule("format", "a valid ", ""),
            number("minItems", "at least", "item"),
            number("maxItems", "at most", "item"),
            self.render_constraint("uniqueItems")
                .filter(|flag| flag == "true")
                .map(|_| "no item twice".to_owned()),
        ]);
        rules.flatten().collect::<Vec<_>>().join(", ")
    }

    /// Returns `true` if the schema lists the values that are allowed, and none is on the list.
    fn allows_nothing(&self) -> bool {
        let listed = self.constraint.as_ref().and_then(|rules| rules.get("enum"));
        listed
            .and_then(Value::as_array)
            .is_some_and(|values| values.is_empty())
    }

    fn types(&self) -> Option<String> {
        Some(self.render_constraint("type")?.replace(", ", " or "))
    }

    fn bounds(&self) -> Vec<String> {
        let keys = [
            ("minimum", "at least"),
            ("exclusiveMinimum", "greater than"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "less than"),
        ];
        keys.iter()
            .filter_map(|(key, words)| Some(format!("{words} {}", self.render_constraint(key)?)))
            .collect()
    }

    /// Returns the values of an enum or a const.
    fn allowed_values(&self) -> Option<String> {
        let constraint = self.constraint.as_ref()?;
        let values = constraint.get("enum").or_else(|| constraint.get("const"))?;
        Some(render_visible(&render_value(values, quote_odd)))
    }

    /// Returns a part of the constraint as it is shown.
    fn render_constraint(&self, key: &str) -> Option<String> {
        Some(render_visible(&plain(self.constraint.as_ref()?.get(key)?)))
    }
}

/// Returns a value of the schema in a sentence.
fn plain(value: &Value) -> String {
    render_value(value, str::to_owned)
}

/// Returns a value of the schema, or the first ones of a list, with texts as `write` writes them.
fn render_value(value: &Value, write: fn(&str) -> String) -> String {
    match value {
        Value::String(text) => write(text),
        Value::Array(items) => {
            let first = items.iter().take(VALUES_MAX);
            let first: Vec<String> = first.map(|item| render_value(item, write)).collect();
            let more = if items.len() > VALUES_MAX {
                ", …"
            } else {
                ""
            };
            format!("{}{more}", first.join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns an allowed text as it is, or as a JSON string if it would otherwise be read as another value, or as several.
fn quote_odd(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.trim() == text
        && !text.contains([',', '"'])
        && serde_json::from_str::<IgnoredAny>(text).is_err();
    match is_plain {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// Returns the text unchanged if all of it is visible, otherwise escaped and cut.
fn render_visible(text: &str) -> String {
    if text.len() <= SHOWN_MAX && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let shown: String = shorten(text, SHOWN_MAX)
        .chars()
        .flat_map(char::escape_debug)
        .collect();
    shown
        .replace("\\'", "'")
        .replace("\\\"", "\"")
        .replace("\\\\", "\\")
}

/// Returns a JSON string in which nothing is invisible; a long one is cut.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in shorten(text, SHOWN_MAX).chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            unseen if name::is_invisible(unseen) => {
                let mut units = [0; 2];
                for unit in unseen.encode_utf16(&mut units) {
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
            seen => quoted.push(seen),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns `true` for a character that a path may have without quotes: it neither ends the path nor is invisible.
fn is_of_a_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '/' | '~' | '_' | '-' | '.' | '$' | '@')
}
/// Writes a number with its unit: `1 character`, `80 characters`.
fn counted(number: &str, what: &str) -> String {
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} {what}{ending}")
}
