//! Ranks the columns of a wide table: which have filters, which are answered by default, and how many records make an answer
//! of a good size.

use std::collections::BTreeMap;

use super::ContractDrafter;
use crate::{
    name,
    shape::{ShapeField, ValueType},
};

/// The values of a column in the first records of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSample {
    /// The tokens of its name and value in one record, on average.
    pub tokens: usize,
    /// Whether any of the records has a value there.
    pub is_filled: bool,
}

/// The samples of the first records by column. Columns without a known value are missing.
pub type ColumnSamples = BTreeMap<String, ColumnSample>;

/// The tokens that an answer of the default number of records should have at most.
const ANSWER_TOKENS: usize = 2_000;
/// The records of one page by default.
const ROWS_DEFAULT: usize = 50;
/// Values of more tokens than this are read one at a time, and not in a list.
const VALUE_TOKENS_MAX: usize = 60;
/// Words in the names of columns by which records are found.
const FINDING: [&str; 22] = [
    "name", "title", "email", "mail", "code", "no", "nr", "number", "id", "sku", "city", "country",
    "company", "customer", "label", "subject", "state", "region", "type", "category", "owner",
    "tag",
];
/// Words in the names of columns that are looked at in one record, and hardly ever asked for.
const REMOTE: [&str; 26] = [
    "fax",
    "url",
    "uri",
    "href",
    "link",
    "image",
    "photo",
    "picture",
    "logo",
    "icon",
    "avatar",
    "thumbnail",
    "html",
    "body",
    "hash",
    "checksum",
    "guid",
    "uuid",
    "etag",
    "lat",
    "lng",
    "lon",
    "latitude",
    "longitude",
    "metadata",
    "raw",
];

/// The use of a column for finding records; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ColumnWorth {
    Key,
    Choice,
    Time,
    Name,
    Amount,
    Text,
    Remote,
}

impl<'a> ContractDrafter<'a> {
    /// Judges a column by its type, its few values and the words of its name.
    pub(super) fn judge(&self, field: &ShapeField) -> ColumnWorth {
        if self.shape.key.contains(&field.key) {
            return ColumnWorth::Key;
        }
        let words = name::words(&field.key);
        let has_any = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let sample = self.input.samples.get(&field.key);
        let is_remote =
            sample.is_some_and(|sample| !sample.is_filled || sample.tokens > VALUE_TOKENS_MAX);
        match field.kind {
            _ if is_remote || has_any(&REMOTE) => ColumnWorth::Remote,
            ValueType::Boolean => ColumnWorth::Choice,
            ValueType::String if self.choices(field).is_some() => ColumnWorth::Choice,
            ValueType::Date | ValueType::Datetime => ColumnWorth::Time,
            ValueType::Json | ValueType::Record | ValueType::List => ColumnWorth::Remote,
            _ if has_any(&FINDING) => ColumnWorth::Name,
            ValueType::Integer | ValueType::Number | ValueType::Decimal => ColumnWorth::Amount,
            ValueType::String => ColumnWorth::Text,
        }
    }

    /// Chooses among the filters of columns: all of them, or those of the best columns, in their order.
    pub(super) fn best_filters(
        &self,
        by_column: Vec<(&'a ShapeField, Vec<String>)>,
        filters_max: usize,
    ) -> (Vec<String>, usize) {
        let all: usize = by_column.iter().map(|(_, lines)| lines.len()).sum();
        let mut order: Vec<usize> = (0..by_column.len()).collect();
        order.sort_by_key(|&at| self.judge(by_column[at].0));
        let mut left = filters_max;
        let mut kept = vec![false; by_column.len()];
        for at in order {
            let lines = by_column[at].1.len();
            // A column's two ends belong together.
            if lines <= left {
                left -= lines;
                kept[at] = true;
            }
        }
        let kept = by_column.into_iter().zip(kept).filter(|(_, kept)| *kept);
        (kept.flat_map(|((_, lines), _)| lines).collect(), all)
    }

    /// Returns how many records of these columns make an answer of a good size; `None` for the default.
    pub(super) fn rows_default(&self, answered: &[&ShapeField]) -> Option<usize> {
        let tokens = answered
            .iter()
            .map(|field| self.input.samples.get(&field.key).map(|it| it.tokens));
        let tokens: usize = tokens.sum::<Option<usize>>()?;
        let rows = ANSWER_TOKENS / tokens.max(1);
        match rows {
            ROWS_DEFAULT.. => None,
            10.. => Some(rows - rows % 5),
            _ => Some(rows.max(1)),
        }
    }
}
