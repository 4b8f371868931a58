//! Patterns that look around or refer back. No engine runs them in linear time, so they get steps from the call's budget;
//! where those are not enough the pattern is not judged here, and the server that made it judges.

use std::sync::OnceLock;

use jsonschema::{
    Keyword, PatternOptions, ValidationError, Validator, error::ValidationErrorKind,
    paths::Location,
};
use serde_json::{Map, Value, json};

use super::budget;
use crate::walk::each_inside_mut;

/// The keyword that replaces `pattern` in the compiled form of a schema.
pub(super) const KEYWORD: &str = "weir:pattern";
/// Steps back in one search: most texts take few.
const BACKTRACKS: [usize; 3] = [500, 5_000, 50_000];
/// A longer text is not judged, in bytes.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// A step over a short text counts as one over this many bytes.
const TEXT_BYTES_MIN: usize = 16;

/// A pattern with one engine for each number of steps back.
struct LookingPattern {
    schema: Value,
    engines: [OnceLock<Option<Validator>>; 3],
}

impl LookingPattern {
    /// Returns whether the text matches; `None` if that takes too many steps.
    fn matches(&self, text: &Value) -> Option<bool> {
        let length = text.as_str()?.len();
        if length > TEXT_BYTES_MAX {
            return None;
        }
        for (most, engine) in BACKTRACKS.iter().zip(&self.engines) {
            if !budget::take_looking((most * length.max(TEXT_BYTES_MIN)) as u64) {
                return None;
            }
            let engine = engine.get_or_init(|| engine_for(&self.schema, *most).ok());
            match engine.as_ref()?.validate(text) {
                Ok(()) => return Some(true),
                Err(error) if matches!(error.kind(), ValidationErrorKind::Pattern { .. }) => {
                    return Some(false);
                }
                Err(_) => {} // the match did not finish
            }
        }
        None
    }
}

impl<'i> Keyword<'i> for LookingPattern {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match self.is_valid(instance) {
            true => Ok(()),
            false => Err(ValidationError::custom(format!(
                "value does not match {}",
                self.schema["pattern"]
            ))),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        !instance.is_string() || self.matches(instance) != Some(false)
    }
}

fn engine_for(schema: &Value, backtracks: usize) -> Result<Validator, String> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(backtracks)
        .size_limit(super::PATTERN_BYTES_MAX)
        .dfa_size_limit(super::PATTERN_BYTES_MAX);
    let options = jsonschema::options().with_pattern_options(patterns);
    options
        .build(schema)
        .map_err(|error| error.masked().to_string())
}

/// Makes the keyword that judges such a pattern.
pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    pattern: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let schema = json!({ "pattern": pattern });
    engine_for(&schema, BACKTRACKS[0]).map_err(ValidationError::custom)?;
    Ok(Box::new(LookingPattern {
        schema,
        engines: Default::default(),
    }))
}

/// Returns `true` for a pattern that looks around or refers back: the linear engine does not take it.
fn looks_around(pattern: &str) -> bool {
    let may = ["(?=", "(?!", "(?<=", "(?<!"]
        .iter()
        .any(|look| pattern.contains(look));
    (may || pattern.contains('\\')) && super::linear(pattern).is_err()
}

/// Puts our keyword in the place of such patterns. Members by such a pattern are not judged: it is dropped, with the rules
/// for the members that no pattern names.
pub(super) fn replace(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(Value::String(pattern)) = members.get("pattern")
        && looks_around(pattern)
    {
        let pattern = members.remove("pattern").unwrap_or_default();
        members.insert(KEYWORD.to_owned(), pattern);
    }
    if let Some(Value::Object(named)) = members.get_mut("patternProperties") {
        let before = named.len();
        named.retain(|pattern, _| !looks_around(pattern));
        if named.len() < before {
            members.shift_remove("additionalProperties");
            members.shift_remove("unevaluatedProperties");
        }
    }
    each_inside_mut(members, &mut |inner| replace(inner));
}

/// Returns every pattern in the schema that looks around, each once.
pub fn looking_patterns(schema: &Value) -> Vec<&str> {
    fn collect<'s>(schema: &'s Value, found: &mut Vec<&'s str>) {
        let Value::Object(members) = schema else {
            return;
        };
        let own = members.get("pattern").and_then(Value::as_str);
        let named = members.get("patternProperties").and_then(Value::as_object);
        let named = named.into_iter().flat_map(Map::keys).map(String::as_str);
        for pattern in own.into_iter().chain(named) {
            if !found.contains(&pattern) && looks_around(pattern) {
                found.push(pattern);
            }
        }
        crate::walk::each_inside(members, &mut |inner| collect(inner, found));
    }
    let mut found = Vec::new();
    collect(schema, &mut found);
    found
}
