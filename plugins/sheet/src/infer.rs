//! Infers the type of a text column from all its cells, so that no later row surprises.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use weir_plugin_sdk::shape::{Reading, TextFormat};
use weir_plugin_sdk::value::{Datetime, is_date};
use weir_plugin_sdk::{Type, Zone};

use crate::amounts::{self, AmountObservations, AmountReadings};
use crate::hints::DateHints;
use crate::readings::ColumnReadings;

/// Integers with more digits are identifiers or money rather than counts, and near the limit of a double: `decimal`.
pub(crate) const INTEGER_DIGITS_MAX: usize = 14;
/// A double gives back this many digits as they were.
pub(crate) const NUMBER_DIGITS_MAX: usize = 15;

/// The properties that all cells of one column share, and those of all but the words for an empty cell.
#[derive(Debug)]
pub(crate) struct ColumnProfile {
    cells: u64,
    counts: [u64; CLASSES],
    pub(crate) readings: ColumnReadings,
    pub(crate) unique: UniqueCheck,
    /// The words for an empty cell that were seen, as they were written.
    pub(crate) null_words: BTreeSet<String>,
    null_cells: u64,
    /// The readings that all other cells allow.
    other_readings: ColumnReadings,
    /// The number of other cells that are text, and some of these for a note.
    text_cells: u64,
    texts: Vec<String>,
    /// The cells with blanks around them, and those that would be numbers or dates without the blanks.
    pub(crate) padded: u64,
    bare_values: u64,
    pub(crate) hints: DateHints,
    /// The readings of the cells as numbers with a unit, from the first that has one.
    amounts: Option<Box<AmountObservations>>,
}

/// Words that people and programs write into a cell without a value, in small letters.
const NULL_WORDS: &[&str] = &[
    "n/a", "#n/a", "na", "n.a.", "k.a.", "null", "none", "nil", "nan", "-", "--", "–", "—", "?",
    "unknown", "tbd",
];
const NULL_WORDS_MAX: usize = 16;
/// The share of cells, of a hundred, that are of a type where the others are taken for mistakes, and how many they are at least.
pub(crate) const MOSTLY_PERCENT: u64 = 95;
pub(crate) const MOSTLY_CELLS_MIN: u64 = 20;
const TEXTS_MAX: usize = 3;

/// The type of most cells of a column of text.
#[derive(Debug)]
pub(crate) struct MajorityReading {
    pub(crate) reading: Reading,
    /// The cells that are something else.
    pub(crate) others: u64,
    /// Some of these cells.
    pub(crate) examples: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellClass {
    Integer,
    LongInteger,
    Number,
    LongNumber,
    Boolean,
    Date,
    /// Midnight in a workbook, a plain datetime elsewhere.
    Midnight,
    Datetime,
    Text,
}
const CLASSES: usize = 9;

impl ColumnProfile {
    /// Creates a column. `may_be_key` is whether it matters that all cells differ.
    pub(crate) fn new(may_be_key: bool) -> Self {
        let mut unique = UniqueCheck::new();
        if !may_be_key {
            unique.give_up();
        }
        Self {
            cells: 0,
            counts: [0; CLASSES],
            readings: ColumnReadings::new(),
            unique,
            null_words: BTreeSet::new(),
            null_cells: 0,
            other_readings: ColumnReadings::new(),
            text_cells: 0,
            texts: Vec::new(),
            padded: 0,
            bare_values: 0,
            hints: DateHints::default(),
            amounts: None,
        }
    }

    /// Cells that are not empty.
    pub(crate) fn cells(&self) -> u64 {
        self.cells
    }

    pub(crate) fn note(&mut self, cell: &str) {
        if cell.is_empty() {
            return;
        }
        self.cells += 1;
        self.unique.note(cell);
        self.readings.note(cell);
        let bare = cell.trim();
        self.padded += u64::from(bare.len() < cell.len());
        if bare.len() < cell.len() {
            let is_value = classify_number(bare).is_some() || is_date(bare);
            self.bare_values += u64::from(is_value);
        }
        if cell.len() <= 10 && is_null_word(cell) {
            self.null_cells += 1;
            self.counts[CellClass::Text as usize] += 1;
            if self.null_words.len() < NULL_WORDS_MAX {
                self.null_words.insert(cell.trim().to_lowercase());
            }
            return;
        }
        self.note_amount(cell);
        self.other_readings.note(cell);
        self.hints.note(cell);
        self.note_class(cell);
    }

    fn note_amount(&mut self, cell: &str) {
        if let Some(amounts) = &mut self.amounts {
            return amounts.note(cell);
        }
        if self.text_cells > TEXTS_MAX as u64 && !self.other_readings.are_numbers()
            || amounts::cut(cell).is_none()
        {
            return;
        }
        // What the cells before this one are is known already, unless texts are among them.
        let before = self.cells - self.null_cells - 1;
        let mut numbers = Self::new(false);
        let mut others = before;
        if self.text_cells == 0 || self.other_readings.are_numbers() {
            others = 0;
            numbers.cells = before;
            numbers.counts = self.counts;
            numbers.counts[CellClass::Text as usize] = self.text_cells;
            numbers.text_cells = self.text_cells;
            numbers.readings = self.other_readings.clone();
        }
        let mut amounts = AmountObservations::new(numbers, others);
        amounts.note(cell);
        self.amounts = Some(Box::new(amounts));
    }

    /// Returns what the column is as numbers with a unit; `None` if it has none.
    pub(crate) fn amounts(&self, decimal_comma: Option<bool>) -> Option<AmountReadings> {
        let mut read = self.amounts.as_ref()?.read(decimal_comma)?;
        for reading in &mut read.readings {
            reading.null_words = self.null_words.iter().cloned().collect();
        }
        Some(read)
    }

    /// Returns whether the decimal mark is a comma, as far as a column of text can tell.
    pub(crate) fn has_decimal_comma(&self) -> Option<bool> {
        match &self.amounts {
            Some(amounts) => amounts.has_decimal_comma(),
            None => self.readings.has_decimal_comma(),
        }
    }

    fn note_class(&mut self, cell: &str) {
        // If many cells are text, the others are no evidence.
        if self.text_cells > self.cells / 10 + TEXTS_MAX as u64 {
            return;
        }
        let class = classify(cell);
        self.counts[class as usize] += 1;
        if class == CellClass::Text {
            self.text_cells += 1;
            if self.texts.len() < TEXTS_MAX {
                self.texts.push(cell.chars().take(40).collect());
            }
        }
    }

    /// Returns what all cells of a column of text are but for words for an empty cell, or all but a few.
    pub(crate) fn mostly(
        &self,
        decimal_comma: Option<bool>,
        workbook: bool,
    ) -> Option<MajorityReading> {
        let others = self.cells - self.null_cells;
        if self.cells == 0 || others == 0 || self.kind(false) != Type::String {
            return None;
        }
        let null_words: Vec<String> = self.null_words.iter().cloned().collect();
        let sum =
            |classes: &[CellClass]| classes.iter().map(|class| self.count(*class)).sum::<u64>();
        let dates: &[CellClass] = match workbook {
            true => &[CellClass::Date, CellClass::Midnight],
            false => &[CellClass::Date],
        };
        if self.null_cells > 0
            && sum(dates) < others
            && let [one] = &self.other_readings.of_text(decimal_comma)[..]
            && one.kind != Type::String
        {
            let reading = Reading {
                null_words,
                ..one.clone()
            };
            return Some(MajorityReading {
                reading,
                others: 0,
                examples: Vec::new(),
            });
        }
        let numbers = [
            CellClass::Integer,
            CellClass::LongInteger,
            CellClass::Number,
            CellClass::LongNumber,
        ];
        // If two have as many, the last is taken: only midnights are dates.
        let kinds: [(&[CellClass], Type); 4] = [
            (&numbers, self.number_kind()),
            (&[CellClass::Boolean], Type::Boolean),
            (&[CellClass::Midnight, CellClass::Datetime], Type::Datetime),
            (dates, Type::Date),
        ];
        let (count, kind) = kinds
            .into_iter()
            .map(|(classes, kind)| (sum(classes), kind))
            .max_by_key(|(count, _)| *count)?;
        let is_enough = count == others
            || (others >= MOSTLY_CELLS_MIN && count * 100 >= others * MOSTLY_PERCENT);
        (count > 0 && is_enough).then(|| MajorityReading {
            reading: Reading {
                kind,
                format: TextFormat::default(),
                null_words,
            },
            others: others - count,
            examples: self.texts.clone(),
        })
    }

    /// Returns the type that all numbers of the column have.
    fn number_kind(&self) -> Type {
        let has = |class: CellClass| self.count(class) > 0;
        match (
            has(CellClass::Number),
            has(CellClass::LongInteger) || has(CellClass::LongNumber),
        ) {
            (_, true) => Type::Decimal,
            (true, false) => Type::Number,
            (false, false) => Type::Integer,
        }
    }

    pub(crate) fn kind(&self, workbook: bool) -> Type {
        let all = |classes: &[CellClass]| {
            classes.iter().map(|class| self.count(*class)).sum::<u64>() == self.cells
        };
        if self.cells == 0 {
            Type::String
        } else if all(&[CellClass::Integer]) {
            Type::Integer
        } else if all(&[CellClass::Integer, CellClass::LongInteger]) {
            Type::Decimal
        } else if all(&[CellClass::Integer, CellClass::Number]) {
            Type::Number
        } else if all(&[
            CellClass::Integer,
            CellClass::LongInteger,
            CellClass::Number,
            CellClass::LongNumber,
        ]) {
            Type::Decimal
        } else if all(&[CellClass::Boolean]) {
            Type::Boolean
        } else if all(&[CellClass::Date])
            || (workbook && all(&[CellClass::Date, CellClass::Midnight]))
        {
            Type::Date
        } else if all(&[CellClass::Midnight, CellClass::Datetime]) {
            Type::Datetime
        } else {
            Type::String
        }
    }

    /// Returns `true` if a number has a point in it.
    pub(crate) fn has_fractions(&self) -> bool {
        self.count(CellClass::Number) + self.count(CellClass::LongNumber) > 0
    }

    /// Returns `true` for a column that is text only because of the blanks around its numbers or dates.
    pub(crate) fn is_padded_only(&self) -> bool {
        let values = [
            CellClass::Integer,
            CellClass::LongInteger,
            CellClass::Number,
            CellClass::LongNumber,
            CellClass::Date,
        ];
        let plain: u64 = values.iter().map(|class| self.count(*class)).sum();
        self.bare_values > 0 && self.bare_values + plain == self.cells - self.null_cells
    }

    fn count(&self, class: CellClass) -> u64 {
        self.counts[class as usize]
    }
}

fn is_null_word(cell: &str) -> bool {
    NULL_WORDS.contains(&cell.trim().to_lowercase().as_str())
}

/// Returns `true` for text that a type would be inferred from.
pub(crate) fn looks_otherwise(text: &str) -> bool {
    !matches!(
        classify(text),
        CellClass::Text | CellClass::Date | CellClass::Datetime | CellClass::Midnight
    )
}

fn classify(cell: &str) -> CellClass {
    if let Some(class) = classify_number(cell) {
        return class;
    }
    if cell.eq_ignore_ascii_case("true") || cell.eq_ignore_ascii_case("false") {
        return CellClass::Boolean;
    }
    if is_date(cell) {
        return CellClass::Date;
    }
    if Datetime::parse(cell, &Zone::utc()).is_some() {
        return if cell.ends_with(crate::workbook::MIDNIGHT) {
            CellClass::Midnight
        } else {
            CellClass::Datetime
        };
    }
    CellClass::Text
}

/// Classifies `-12`, `0.5` and `1.5e-7` as numbers. A leading zero, a plus, a comma or a bare `1E5` (a product code as
/// likely as not) makes a text.
fn classify_number(cell: &str) -> Option<CellClass> {
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || (whole.len() > 1 && whole.starts_with('0')) || cell == "-0" {
        return None;
    }
    match (fraction, exponent) {
        (None, None) if whole.len() <= INTEGER_DIGITS_MAX => Some(CellClass::Integer),
        (None, None) => Some(CellClass::LongInteger),
        (None, Some(_)) => None,
        (Some(fraction), None) if is_digits(fraction) => {
            let (whole_digits, fraction_digits) = significant_digits(whole.len(), whole, fraction);
            Some(if whole_digits + fraction_digits <= NUMBER_DIGITS_MAX {
                CellClass::Number
            } else {
                CellClass::LongNumber
            })
        }
        (Some(fraction), Some(exponent)) if is_digits(fraction) => {
            let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            (is_digits(unsigned) && cell.parse::<f64>().is_ok_and(f64::is_finite))
                .then_some(CellClass::Number)
        }
        _ => None,
    }
}

/// Returns the numbers of digits before and behind the point. Zeros before the first other digit say only how large the number is,
/// so that a third has as many digits as a third of ten. `whole_digits` is the number of digits in `whole`, which may have marks.
pub(crate) fn significant_digits(
    whole_digits: usize,
    whole: &str,
    fraction: &str,
) -> (usize, usize) {
    match whole {
        "0" => (0, fraction.trim_start_matches('0').len()),
        _ => (whole_digits, fraction.len()),
    }
}

/// Tells whether the cells of a column all differ, or nearly all, in eight bytes each.
#[derive(Debug)]
pub(crate) struct UniqueCheck {
    hashes: Vec<u64>,
    check_at: usize,
    still: bool,
    cells: u64,
    /// The cells that are like an earlier one, as far as they were compared.
    repeats: u64,
}

/// The bound on rows: beyond it no column is reported as unique, since the hashes take 16 MB.
const UNIQUE_ROWS_MAX: usize = 2_000_000;

impl UniqueCheck {
    fn new() -> Self {
        Self {
            hashes: Vec::new(),
            check_at: 256,
            still: true,
            cells: 0,
            repeats: 0,
        }
    }

    fn note(&mut self, cell: &str) {
        if !self.still {
            return;
        }
        let mut hasher = DefaultHasher::new();
        cell.hash(&mut hasher);
        self.hashes.push(hasher.finish());
        self.cells += 1;
        if self.hashes.len() == self.check_at {
            self.check();
            self.check_at *= 4;
        }
        if self.hashes.len() > UNIQUE_ROWS_MAX {
            self.give_up();
        }
    }

    pub(crate) fn give_up(&mut self) {
        self.still = false;
        self.hashes = Vec::new();
    }

    pub(crate) fn held(&self) -> usize {
        self.hashes.len()
    }

    pub(crate) fn holds(&mut self) -> bool {
        self.repeats() == Some(0)
    }

    /// Returns how many cells are like an earlier one; `None` if there are too many to count.
    pub(crate) fn repeats(&mut self) -> Option<u64> {
        self.check();
        self.still.then_some(self.repeats)
    }

    /// Returns `true` if a cell is known to be like an earlier one.
    pub(crate) fn has_repeats(&self) -> bool {
        self.repeats > 0
    }

    fn check(&mut self) {
        self.hashes.sort_unstable();
        let held = self.hashes.len();
        self.hashes.dedup();
        self.repeats += (held - self.hashes.len()) as u64;
        if self.repeats * 100 > self.cells * (100 - MOSTLY_PERCENT) {
            self.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_what_all_its_cells_are() {
        for (cells, expected) in [
            (vec!["1", "-2", "0"], Type::Integer),
            (vec!["1", ""], Type::Integer),
            (vec!["007", "8"], Type::String),
            (vec!["1", "2.5"], Type::Number),
            (vec!["12345678901234"], Type::Integer),
            (vec!["123456789012345", "1"], Type::Decimal),
            (vec!["9007199254740993", "0.5"], Type::Decimal),
            (vec!["0.1234567890123456"], Type::Decimal),
            (vec!["0.333333333333333", "3.33333333333333"], Type::Number),
            (vec!["-0.00123456789012345", "12"], Type::Number),
            (vec!["1.000000000000001"], Type::Decimal),
            (vec!["0.5000000000000000"], Type::Decimal),
            (vec!["1.5e-7", "2"], Type::Number),
            (vec!["1E5"], Type::String),
            (vec!["1,5"], Type::String),
            (vec!["+1"], Type::String),
            (vec!["-0"], Type::String),
            (vec!["TRUE", "false"], Type::Boolean),
            (vec!["true", "1"], Type::String),
            (vec!["2024-01-02", "2024-02-29"], Type::Date),
            (vec!["2024-01-02", "2023-02-29"], Type::String),
            (
                vec![
                    "2024-01-02 10:00",
                    "2024-01-02T10:00:00+02:00",
                    "2024-01-02 00:00:00",
                ],
                Type::Datetime,
            ),
            (vec!["2024-01-02", "2024-01-02 10:00"], Type::String),
            (vec!["=1+1"], Type::String),
            (vec![" 1"], Type::String),
            (vec!["NaN"], Type::String),
            (vec!["", ""], Type::String),
        ] {
            let mut column = ColumnProfile::new(false);
            cells.iter().for_each(|cell| column.note(cell));
            assert_eq!(column.kind(false), expected, "{cells:?}");
        }
    }

    #[test]
    fn a_column_is_unique_until_a_cell_comes_twice() {
        let mut unique = UniqueCheck::new();
        (0..1000).for_each(|number| unique.note(&number.to_string()));
        assert!(unique.holds());
        unique.note("17");
        assert!(!unique.holds());
        assert_eq!(unique.repeats(), Some(1));
        (0..100).for_each(|number| unique.note(&number.to_string()));
        assert_eq!(unique.repeats(), None, "too many to be worth a word");
    }
}
