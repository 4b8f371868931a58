//! Reading one object of a file: each key by its type, unknown keys refused, every problem kept.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::keys::{self, FormKey};
use crate::{json, name, problem::FileProblem};

pub(crate) const TITLE_MAX: usize = 200;
pub(crate) const TEXT_MAX: usize = 20_000;

/// The problems found so far.
#[derive(Clone, Debug)]
pub(crate) struct FileProblems {
    file: String,
    found: Vec<FileProblem>,
    /// The numbers of the items that could not be read, in ascending order, by the place of their list.
    unread: BTreeMap<String, Vec<usize>>,
}

/// Reports at most this many; a file with more is one mistake repeated.
const PROBLEMS_MAX: usize = 1_000;

impl FileProblems {
    /// Adds a problem together with what to write instead, since a mere refusal leaves its reader to guess.
    pub(crate) fn add_hint(
        &mut self,
        place: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(FileProblem::new(&self.file, place, message).hint(hint));
    }

    pub(crate) fn into_vec(self) -> Vec<FileProblem> {
        self.found
    }

    pub(crate) fn continued(file: &str, found: Vec<FileProblem>) -> Self {
        Self {
            file: file.to_owned(),
            found,
            unread: BTreeMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    pub(crate) fn finish<T>(self, value: T) -> Result<T, Vec<FileProblem>> {
        match self.found.is_empty() {
            true => Ok(value),
            false => Err(self.found),
        }
    }

    /// Returns the first `max` entries; more than those are a problem.
    pub(crate) fn bounded<'v>(
        &mut self,
        place: &str,
        entries: &'v [Value],
        max: usize,
        what: &str,
    ) -> &'v [Value] {
        if entries.len() > max {
            let hint = format!("leave out {} of them", entries.len() - max);
            self.add_hint(place, format!("more than {max} {what}"), hint);
        }
        &entries[..entries.len().min(max)]
    }

    fn push(&mut self, mut problem: FileProblem) {
        if self.found.len() >= PROBLEMS_MAX {
            return;
        }
        if let Some(place) = self.counted_in_file(&problem.place) {
            problem.place = place;
        }
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }

    /// Returns the place of an item by its number in the file, where items before it could not be read.
    fn counted_in_file(&self, place: &str) -> Option<String> {
        let (list, index) = place.rsplit_once('/')?;
        let unread = self.unread.get(list)?;
        let read: usize = index.parse().ok()?;
        let index = unread
            .iter()
            .fold(read, |index, unread| index + usize::from(*unread <= index));
        Some(format!("{list}/{index}"))
    }
}

pub(crate) struct FormTable<'v> {
    place: String,
    map: &'v Map<String, Value>,
}

impl<'v> FormTable<'v> {
    pub(crate) fn new(
        value: &'v Value,
        place: String,
        problems: &mut FileProblems,
    ) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self { place, map }),
            other => {
                let message = format!("must be an object, not {}", kind(other));
                problems.add_hint(place, message, OBJECT_HINT);
                None
            }
        }
    }

    pub(crate) fn at(&self, key: &str) -> String {
        let mut place = self.place.clone();
        json::push_pointer(&mut place, key);
        place
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'v Value> {
        self.map.get(key)
    }

    pub(crate) fn check_known(&self, known: &'static [FormKey], problems: &mut FileProblems) {
        self.check_keys(&keys::names(known).collect::<Vec<_>>(), problems);
    }

    pub(crate) fn check_keys(&self, known: &[&str], problems: &mut FileProblems) {
        for key in self.map.keys().filter(|key| !known.contains(&key.as_str())) {
            let hint = match name::nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("known keys: {}", known.join(", ")),
            };
            problems.add_hint(
                self.at(key),
                format!("unknown key {}", name::quoted(key)),
                hint,
            );
        }
    }

    pub(crate) fn text(
        &self,
        key: &str,
        characters_max: usize,
        problems: &mut FileProblems,
    ) -> Option<String> {
        let value = self.map.get(key)?;
        let Value::String(text) = value else {
            let message = format!("must be text, not {}", kind(value));
            problems.add_hint(self.at(key), message, text_hint(value));
            return None;
        };
        if text.chars().count() > characters_max {
            problems.add_hint(
                self.at(key),
                format!("is longer than {characters_max} characters"),
                "shorten it",
            );
            return None;
        }
        Some(text.clone())
    }

    pub(crate) fn required_text(&self, key: &str, problems: &mut FileProblems) -> Option<String> {
        if !self.has(key) {
            problems.add_hint(
                self.place.clone(),
                format!("'{key}' is missing"),
                format!("add `{key}: …`"),
            );
        }
        self.text(key, TITLE_MAX, problems)
    }

    pub(crate) fn flag(&self, key: &str, problems: &mut FileProblems) -> Option<bool> {
        match self.map.get(key)? {
            Value::Bool(flag) => Some(*flag),
            other => {
                problems.add_hint(
                    self.at(key),
                    format!("must be true or false, not {}", kind(other)),
                    format!("write `{key}: true`, or leave it out"),
                );
                None
            }
        }
    }

    pub(crate) fn number(
        &self,
        key: &str,
        problems: &mut FileProblems,
    ) -> Option<serde_json::Number> {
        match self.map.get(key)? {
            Value::Number(number) => Some(number.clone()),
            other => {
                problems.add_hint(
                    self.at(key),
                    format!("must be a number, not {}", kind(other)),
                    format!("write `{key}: 5`, without quotes"),
                );
                None
            }
        }
    }

    pub(crate) fn count(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<u64>,
        problems: &mut FileProblems,
    ) -> Option<u64> {
        let value = self.map.get(key)?;
        match value.as_u64() {
            Some(count) if range.contains(&count) => Some(count),
            _ => {
                problems.add_hint(
                    self.at(key),
                    format!(
                        "must be a whole number from {} to {}",
                        range.start(),
                        range.end()
                    ),
                    format!("write such a number, without quotes, or leave `{key}` out"),
                );
                None
            }
        }
    }

    pub(crate) fn list(&self, key: &str, problems: &mut FileProblems) -> Option<&'v [Value]> {
        match self.map.get(key)? {
            Value::Array(items) => Some(items),
            other => {
                let message = format!("must be a list, not {}", kind(other));
                problems.add_hint(self.at(key), message, format!("write `{key}: [ … ]`"));
                None
            }
        }
    }

    pub(crate) fn object(
        &self,
        key: &str,
        problems: &mut FileProblems,
    ) -> Option<&'v Map<String, Value>> {
        match self.map.get(key)? {
            Value::Object(map) => Some(map),
            other => {
                problems.add_hint(
                    self.at(key),
                    format!("must be an object, not {}", kind(other)),
                    OBJECT_HINT,
                );
                None
            }
        }
    }

    /// Reads a list of names: columns, keys, orders. Returns `None` if there is no list, or if nothing in it could be read.
    pub(crate) fn names(&self, key: &str, problems: &mut FileProblems) -> Option<Vec<String>> {
        const NAMES_MAX: usize = 1_000;
        let place = self.at(key);
        let items = self.list(key, problems)?;
        let items = problems.bounded(&place, items, NAMES_MAX, "names");
        let mut names: Vec<String> = Vec::new();
        let mut unread = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let names_before = names.len();
            match item {
                Value::String(name) if names.contains(name) => {
                    problems.add_hint(
                        format!("{place}/{index}"),
                        format!("{} occurs twice", name::quoted(name)),
                        "drop one of the two",
                    );
                }
                Value::String(name) if name.chars().count() <= TITLE_MAX => {
                    names.push(name.clone())
                }
                Value::String(_) => problems.add_hint(
                    format!("{place}/{index}"),
                    format!("is longer than {TITLE_MAX} characters"),
                    "shorten it",
                ),
                other => problems.add_hint(
                    format!("{place}/{index}"),
                    format!("must be a name, not {}", kind(other)),
                    text_hint(other),
                ),
            }
            if names.len() == names_before {
                unread.push(index);
            }
        }
        // A list that names nothing would be another problem.
        let is_read = unread.is_empty() || !names.is_empty();
        if !unread.is_empty() {
            problems.unread.insert(place, unread);
        }
        is_read.then_some(names)
    }
}

/// The hint if an object is expected.
const OBJECT_HINT: &str = "write `{ key: value }`, or a line with each key below";

/// Returns the hint if a text is expected instead of a value.
fn text_hint(value: &Value) -> &'static str {
    match value {
        Value::Number(_) | Value::Bool(_) => "put it in quotes",
        _ => "write one text",
    }
}

pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
