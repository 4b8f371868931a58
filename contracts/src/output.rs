//! The gate behind a source: every record is read strictly, projected to the published columns and checked
//! against its shape in one pass, before it may enter an answer.
//!
//! No tree is built: a value is checked while it is read and written out again in its one form. A record that passes
//! conforms to the published output schema by construction, which a property test compares with `jsonschema`.

mod result;
mod value;

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{
    json::{self, push_pointer},
    shape::{CollectionShape, ShapeField},
};
pub use result::ResultChecker;
use value::{OutputSeed, OutputType};

/// Checks and projects the records of one tool. Built once per snapshot.
pub struct RecordChecker {
    columns: Vec<OutputColumn>,
    positions: HashMap<String, usize>,
    /// The records are results of an operation, which may have changed something: a value that does not fit a column which
    /// may be null is null, and the rest passes.
    is_lenient: bool,
}

/// The records of a page, and those that are missing from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPage {
    pub records: Vec<String>,
    pub skipped: Option<SkippedRecords>,
    pub left_out: Option<LeftOutRecords>,
}

impl From<Vec<String>> for CheckedPage {
    fn from(records: Vec<String>) -> Self {
        Self {
            records,
            skipped: None,
            left_out: None,
        }
    }
}

/// Records that no condition ruled out, and that a condition could not judge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedRecords {
    pub count: u64,
    /// The columns that could not be judged.
    pub columns: Vec<String>,
}

/// Records of the whole list that no answer can have, since a column that may not be null holds a value that is none of its
/// type.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutRecords {
    pub count: u64,
    /// The columns with such values.
    pub columns: Vec<String>,
    /// Whether there may be more: not all records were looked at.
    pub more: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportedPage<'a> {
    #[serde(borrow)]
    records: &'a RawValue,
    skipped: Option<SkippedRecords>,
    left_out: Option<LeftOutRecords>,
}

struct OutputColumn {
    /// `"name":`, as it is written into every record.
    prefix: Vec<u8>,
    name: String,
    kind: OutputType,
}

/// A record that passed, and the parts of it that did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRecord {
    /// JSON on one line.
    pub json: String,
    /// The columns in which something was left out or became null, each with the reason; no value is in it.
    pub odd: Vec<(String, String)>,
}

/// A record that does not match the recorded shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", if path.is_empty() { String::new() } else { format!(" at {path}") })]
pub struct OutputMismatch {
    /// JSON Pointer within the records.
    pub path: String,
    /// The number of the record, from 0, if there are several.
    pub record: Option<usize>,
    /// The column, if it is one that may leave: other names are the source's own words.
    pub column: Option<String>,
    /// The reason for the log: the expected type and the kind of the value, but never the value.
    pub reason: String,
    /// Whether a published column is missing, which means that the source changed.
    pub source_changed: bool,
}

impl RecordChecker {
    /// Prepares the check for records of `shape`. Only `columns` may leave, in that order.
    pub fn new(shape: &CollectionShape, columns: &[String]) -> Self {
        Self::prepared(&shape.fields, columns, false)
    }

    /// Prepares the check for records of these fields, as an operation returns them. A column that is not a field may
    /// contain anything.
    pub fn for_fields(fields: &[ShapeField], columns: &[String]) -> Self {
        Self::prepared(fields, columns, true)
    }

    fn prepared(fields: &[ShapeField], columns: &[String], is_lenient: bool) -> Self {
        let column = |name: &String| OutputColumn {
            prefix: [&value::quoted(name)[..], b":"].concat(),
            name: name.clone(),
            kind: fields
                .iter()
                .find(|field| field.key == *name)
                .map_or_else(OutputType::anything, OutputType::from_field),
        };
        Self {
            is_lenient,
            columns: columns.iter().map(column).collect(),
            positions: columns
                .iter()
                .enumerate()
                .map(|(position, name)| (name.clone(), position))
                .collect(),
        }
    }

    /// Reads a JSON array of objects as the guest wrote it; returns each record's canonical JSON text.
    pub fn records(&self, json: &str) -> Result<Vec<String>, OutputMismatch> {
        self.read_records(json, false)
    }

    fn read_records(&self, json: &str, reads_digits: bool) -> Result<Vec<String>, OutputMismatch> {
        let walk = OutputWalk {
            reads_digits,
            ..OutputWalk::default()
        };
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let read = RecordsSeed {
            checker: self,
            walk: &walk,
            size: json.len(),
        }
        .deserialize(&mut deserializer);
        let read = read.and_then(|records| deserializer.end().map(|()| records));
        match (read, walk.marked(json)) {
            (Ok(_), Some(marked)) => self.read_records(&marked, true),
            (Ok(records), None) => Ok(records),
            (Err(error), _) => Err(self.mismatch(walk, &error, true)),
        }
    }

    /// Reads the records of a page whose adapter may say how many others a condition could not judge, and how many no answer
    /// can have: `{"records": […], "skipped": {"count": 3, "columns": ["amount"]}}`, and `left_out` likewise, with `more`.
    pub fn page(&self, json: &str) -> Result<CheckedPage, OutputMismatch> {
        if !json.starts_with('{') {
            return self.records(json).map(CheckedPage::from);
        }
        let page: ReportedPage<'_> = serde_json::from_str(json)
            .map_err(|error| self.mismatch(OutputWalk::default(), &error, true))?;
        Ok(CheckedPage {
            records: self.records(page.records.get())?,
            skipped: page.skipped,
            left_out: page.left_out,
        })
    }

    /// Returns the records of a page that [`RecordChecker::page`] reads.
    pub fn records_of(json: &str) -> Option<&str> {
        if !json.starts_with('{') {
            return Some(json);
        }
        let page: ReportedPage<'_> = serde_json::from_str(json).ok()?;
        Some(page.records.get())
    }

    /// Reads one JSON object.
    pub fn record(&self, json: &str) -> Result<CheckedRecord, OutputMismatch> {
        let mismatch = match self.read_record(json, false) {
            Ok(record) => return Ok(record),
            Err(mismatch) => mismatch,
        };
        if let Some(record) = self.emptied(json) {
            return Ok(record);
        }
        // The reader itself ends at a number that is not finite, and at half a character.
        let mended = self.is_lenient.then(|| json::mended(json)).flatten();
        match mended.and_then(|mended| self.read_record(&mended, false).ok()) {
            Some(mut record) => {
                let what = "a number is not finite, or a text holds half a character";
                record.odd.push((String::new(), what.to_owned()));
                Ok(record)
            }
            None => Err(mismatch),
        }
    }

    /// Returns a record of nulls for the result of an operation that is not an object, or an object with none of the columns;
    /// `None` if a column may not be null.
    fn emptied(&self, json: &str) -> Option<CheckedRecord> {
        let found = match json.trim_start().as_bytes().first()? {
            b'[' => "a list",
            b'"' => "a text",
            b't' | b'f' => "a boolean",
            b'-' | b'0'..=b'9' => "a number",
            b'{' if self.has_others_alone(json) => "one with other members",
            _ => return None,
        };
        if !self.is_lenient || !self.columns.iter().all(|column| column.kind.may_be_null()) {
            return None;
        }
        serde_json::from_str::<IgnoredAny>(json).ok()?;
        let mut text = vec![b'{'];
        for (at, column) in self.columns.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&column.prefix);
            text.extend_from_slice(b"null");
        }
        text.push(b'}');
        let reason = format!("expected an object, found {found}");
        Some(CheckedRecord {
            json: String::from_utf8(text).ok()?,
            odd: vec![(String::new(), reason)],
        })
    }

    /// Returns `true` if an object has members, and none of them is a column.
    fn has_others_alone(&self, json: &str) -> bool {
        let members: Option<HashMap<String, IgnoredAny>> = serde_json::from_str(json).ok();
        members.is_some_and(|members| {
            !members.is_empty()
                && members
                    .keys()
                    .all(|name| !self.positions.contains_key(name))
        })
    }

    fn read_record(&self, json: &str, reads_digits: bool) -> Result<CheckedRecord, OutputMismatch> {
        let walk = OutputWalk {
            is_lenient: self.is_lenient,
            reads_digits,
            ..OutputWalk::default()
        };
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let read = RecordSeed {
            checker: self,
            walk: &walk,
            scratch: &mut RecordBuffers::default(),
        }
        .deserialize(&mut deserializer);
        let read = read.and_then(|record| deserializer.end().map(|()| record));
        match (read, walk.marked(json)) {
            (Ok(_), Some(marked)) => self.read_record(&marked, true),
            (Ok(json), None) => Ok(CheckedRecord {
                json,
                odd: walk.odd.into_inner(),
            }),
            (Err(error), _) => Err(self.mismatch(walk, &error, false)),
        }
    }

    #[cold]
    fn mismatch(
        &self,
        walk: OutputWalk,
        error: &serde_json::Error,
        are_several: bool,
    ) -> OutputMismatch {
        let (tokens, mut path) = (walk.place.into_inner(), String::new());
        tokens
            .iter()
            .rev()
            .for_each(|token| push_pointer(&mut path, token));
        let mut from_outside = tokens.iter().rev();
        let record = if are_several {
            from_outside.next().and_then(|token| token.parse().ok())
        } else {
            None
        };
        let column = from_outside
            .next()
            .filter(|column| self.positions.contains_key(*column))
            .cloned();
        let (reason, source_changed) = match walk.fault.into_inner() {
            Some(OutputFault::Missing(reason)) => (reason, true),
            Some(OutputFault::Other(reason)) => (reason, false),
            // The reader's own messages name positions and expectations, never content.
            None => (format!("not the JSON asked for: {error}"), false),
        };
        OutputMismatch {
            path,
            record,
            column,
            reason,
            source_changed,
        }
    }
}

/// The fault and its place, kept separately from the reader's own error, which has no room for them.
#[derive(Default)]
struct OutputWalk {
    fault: RefCell<Option<OutputFault>>,
    /// The place, filled from the inside outwards while an error leaves.
    place: RefCell<Vec<String>>,
    is_lenient: bool,
    /// Texts after [`json::DIGITS_MARK`] are integers of more than 64 bits.
    reads_digits: bool,
    /// A whole number beyond ±(2^53−1) was read as a double.
    has_large_double: Cell<bool>,
    /// Columns, empty while they are read, and the parts of their values that were not passed on.
    odd: RefCell<Vec<(String, String)>>,
}

enum OutputFault {
    Missing(String),
    Other(String),
}

impl OutputWalk {
    fn fail<E: serde::de::Error>(&self, fault: OutputFault) -> E {
        self.fault.borrow_mut().get_or_insert(fault);
        E::custom("refused")
    }

    /// Returns the text that was read with the digits of its integers, if some were rounded.
    fn marked(&self, json: &str) -> Option<String> {
        (self.has_large_double.get() && !self.reads_digits)
            .then(|| json::with_marked_digits(json))
            .flatten()
    }

    /// Notes that a part of the value that is read is not passed on.
    fn note(&self, reason: String) {
        let mut odd = self.odd.borrow_mut();
        if odd.len() < ODD_MAX {
            odd.push((String::new(), reason));
        }
    }

    /// Names the column that the last notes are about.
    fn name_notes(&self, column: &str) {
        let mut odd = self.odd.borrow_mut();
        let unnamed = odd.iter_mut().rev().take_while(|(name, _)| name.is_empty());
        unnamed.for_each(|(name, _)| column.clone_into(name));
    }

    /// Names the level that an error leaves.
    fn at<T, E>(&self, outcome: Result<T, E>, token: impl FnOnce() -> String) -> Result<T, E> {
        if outcome.is_err() {
            self.place.borrow_mut().push(token());
        }
        outcome
    }
}

const THERE_TWICE: &str = "the member is there twice";

/// Notes of one record.
const ODD_MAX: usize = 32;

/// Room made before the first record is read, in bytes.
const FIRST_MAX: usize = 4 << 10;

/// Buffers that one record leaves to the next.
#[derive(Default)]
struct RecordBuffers {
    values: Vec<u8>,
    ranges: Vec<Option<(usize, usize)>>,
    others: HashSet<String>,
}

struct RecordsSeed<'c> {
    checker: &'c RecordChecker,
    walk: &'c OutputWalk,
    /// The size of the whole text in bytes.
    size: usize,
}

impl<'de> DeserializeSeed<'de> for RecordsSeed<'_> {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RecordsSeed<'_> {
    type Value = Vec<String>;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Vec<String>, A::Error> {
        let mut records = Vec::new();
        let mut scratch = RecordBuffers {
            values: Vec::with_capacity(self.size.min(FIRST_MAX)),
            ..RecordBuffers::default()
        };
        loop {
            let seed = RecordSeed {
                checker: self.checker,
                walk: self.walk,
                scratch: &mut scratch,
            };
            let read = self
                .walk
                .at(access.next_element_seed(seed), || records.len().to_string())?;
            let Some(record) = read else {
                return Ok(records);
            };
            records.push(record);
        }
    }
}

struct RecordSeed<'c, 's> {
    checker: &'c RecordChecker,
    walk: &'c OutputWalk,
    scratch: &'s mut RecordBuffers,
}

impl<'de> DeserializeSeed<'de> for RecordSeed<'_, '_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordSeed<'_, '_> {
    type Value = String;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<String, A::Error> {
        let Self {
            checker,
            walk,
            scratch,
        } = self;
        let mut next = 0;
        scratch.values.clear();
        scratch.others.clear();
        scratch.ranges.clear();
        scratch.ranges.resize(checker.columns.len(), None);
        while let Some(key) = access.next_key_seed(KeySeed { checker, next })? {
            let twice = match key {
                OutputKey::Column(position) => {
                    next = position + 1;
                    let start = scratch.values.len();
                    let column = &checker.columns[position];
                    let seed = OutputSeed {
                        kind: &column.kind,
                        walk,
                        out: &mut scratch.values,
                        depth: 2,
                    };
                    walk.at(access.next_value_seed(seed), || column.name.clone())?;
                    let range = &mut scratch.ranges[position];
                    let is_there_twice = range.is_some();
                    // Of two members with the same name the first is kept.
                    range.get_or_insert((start, scratch.values.len()));
                    if walk.is_lenient {
                        if is_there_twice {
                            walk.note(THERE_TWICE.to_owned());
                        }
                        walk.name_notes(&column.name);
                    }
                    is_there_twice.then(|| column.name.clone())
                }
                // A column added to the source is not published until a new version is.
                OutputKey::Other(name) => {
                    walk.at(access.next_value::<IgnoredAny>(), || name.clone())?;
                    match scratch.others.contains(&name) {
                        true => Some(name),
                        false => {
                            scratch.others.insert(name);
                            None
                        }
                    }
                }
            };
            if let Some(name) = twice.filter(|_| !walk.is_lenient) {
                let fault = walk.fail(OutputFault::Other(THERE_TWICE.to_owned()));
                return walk.at(Err(fault), || name);
            }
        }
        checker.write(walk, scratch)
    }
}

/// A member's name, looked up without being copied.
struct KeySeed<'c> {
    checker: &'c RecordChecker,
    /// The column that comes where the source keeps to their order.
    next: usize,
}

enum OutputKey {
    Column(usize),
    Other(String),
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = OutputKey;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<OutputKey, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_> {
    type Value = OutputKey;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<OutputKey, E> {
        if self
            .checker
            .columns
            .get(self.next)
            .is_some_and(|column| column.name == name)
        {
            return Ok(OutputKey::Column(self.next));
        }
        Ok(match self.checker.positions.get(name) {
            Some(&position) => OutputKey::Column(position),
            None => OutputKey::Other(name.to_owned()),
        })
    }
}

impl RecordChecker {
    /// Returns the record's text: the published columns only, in their order.
    fn write<E: serde::de::Error>(
        &self,
        walk: &OutputWalk,
        scratch: &RecordBuffers,
    ) -> Result<String, E> {
        let names: usize = self
            .columns
            .iter()
            .map(|column| column.prefix.len() + 1)
            .sum();
        let mut text = Vec::with_capacity(scratch.values.len() + names + 2);
        text.push(b'{');
        for (column, range) in self.columns.iter().zip(&scratch.ranges) {
            let Some((start, end)) = range else {
                let fault = walk.fail(OutputFault::Missing(
                    "a published column is missing".to_owned(),
                ));
                return walk.at(Err(fault), || column.name.clone());
            };
            if text.len() > 1 {
                text.push(b',');
            }
            text.extend_from_slice(&column.prefix);
            text.extend_from_slice(&scratch.values[*start..*end]);
        }
        text.push(b'}');
        String::from_utf8(text).map_err(E::custom)
    }
}
