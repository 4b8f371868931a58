//! Numbers with their unit in a column of text: `12,90 €`, `$1,200.00`, `45 kg`.

use weir_plugin_sdk::Type;
use weir_plugin_sdk::shape::{Reading, TextFormat};
use weir_plugin_sdk::value::NumberText;

use crate::infer::ColumnProfile;

/// Currencies, which precede or follow a number, in lower case.
const CURRENCIES: &[&str] = &[
    "€", "$", "£", "¥", "₹", "₽", "₩", "₺", "₪", "฿", "₴", "₫", "us$", "a$", "c$", "r$", "eur",
    "usd", "gbp", "chf", "jpy", "cny", "inr", "rub", "aud", "cad", "nzd", "brl", "mxn", "sek",
    "nok", "dkk", "pln", "czk", "huf", "try", "zar", "kr", "zł", "kč", "rs", "rs.", "fr.",
];
/// Units that are recognized only after a number, in lower case. Before a number, these and other letters may be a part
/// of a code: `A1`.
const UNITS: &[&str] = &[
    "%", "‰", "°", "°c", "°f", "kg", "g", "mg", "µg", "t", "lb", "lbs", "oz", "km", "m", "cm",
    "mm", "µm", "nm", "mi", "ft", "in", "yd", "m²", "m³", "km²", "ha", "ft²", "l", "ml", "cl",
    "gal", "wh", "kwh", "mwh", "gwh", "w", "kw", "mw", "gw", "v", "hz", "khz", "mhz", "ghz", "pa",
    "hpa", "bar", "psi", "mbar", "j", "kj", "cal", "kcal", "kb", "mb", "gb", "tb", "mbps", "kbps",
    "km/h", "mph", "m/s", "ppm", "px", "h", "hr", "hrs", "min", "mins", "s", "sec", "ms", "hours",
    "minutes", "seconds", "days", "weeks", "months", "years", "yrs", "pcs", "pc", "st", "stk",
];
/// Cells are longer only by mistake.
const CELL_MAX: usize = 60;
/// Spellings of a unit that are kept apart.
const PATTERNS_MAX: usize = 8;
const TEXTS_MAX: usize = 3;
/// The share of cells, of a hundred, that are amounts where the others are taken for mistakes, and how many they are at least.
const MOSTLY_PERCENT: u64 = 95;
const MOSTLY_CELLS_MIN: u64 = 20;

/// The observations of a column in which a number with a unit was seen.
#[derive(Debug)]
pub(crate) struct AmountObservations {
    /// The patterns of the unit around `#`, and the number of cells of each.
    patterns: Vec<(String, u64)>,
    with_unit: u64,
    /// The number of cells that are not numbers, and some of these cells for a note.
    others: u64,
    texts: Vec<String>,
    example: String,
    numbers: ColumnProfile,
}

/// The findings about a column of amounts.
#[derive(Debug)]
pub(crate) struct AmountReadings {
    pub(crate) readings: Vec<Reading>,
    /// A note about the column, to follow its name.
    pub(crate) note: String,
}

impl AmountObservations {
    /// Starts with the first cell that has a unit. `numbers` has what the cells before it are, if all are numbers, and
    /// `others` how many they are otherwise.
    pub(crate) fn new(numbers: ColumnProfile, others: u64) -> Self {
        Self {
            patterns: Vec::new(),
            with_unit: 0,
            others,
            texts: Vec::new(),
            example: String::new(),
            numbers,
        }
    }

    /// Takes note of a cell that is neither empty nor a word for an empty one.
    pub(crate) fn note(&mut self, cell: &str) {
        if let Some((pattern, number)) = cut(cell) {
            if self.with_unit == 0 {
                self.example = cell.to_owned();
            }
            self.with_unit += 1;
            self.numbers.note(&number);
            let mut known = self.patterns.iter_mut();
            if let Some((_, count)) = known.find(|(known, _)| *known == pattern) {
                *count += 1;
            } else if self.patterns.len() < PATTERNS_MAX {
                self.patterns.push((pattern, 1));
            }
        } else if is_number(cell) {
            self.numbers.note(cell);
        } else {
            self.others += 1;
            if self.texts.len() < TEXTS_MAX {
                self.texts.push(cell.chars().take(40).collect());
            }
        }
    }

    /// Returns whether the decimal mark is a comma, as far as this column can tell.
    pub(crate) fn has_decimal_comma(&self) -> Option<bool> {
        match self.numbers.kind(false) {
            Type::Number | Type::Decimal => {
                let points = self.numbers.readings.of_points(Type::Number, false);
                points.is_empty().then_some(false)
            }
            _ => self.numbers.readings.has_decimal_comma(),
        }
    }

    /// Returns the ways to read the cells as numbers with one unit, and a note on them. A column of several units has a note
    /// and no reading. `None`: the column has amounts by chance.
    pub(crate) fn read(&self, decimal_comma: Option<bool>) -> Option<AmountReadings> {
        let cells = self.numbers.cells() + self.others;
        let fitting = cells - self.others;
        let is_enough = self.others == 0
            || (cells >= MOSTLY_CELLS_MIN && fitting * 100 >= cells * MOSTLY_PERCENT);
        if !is_enough || self.with_unit * 2 < fitting {
            return None;
        }
        let example = &self.example;
        let unit = self.unit();
        let Some(unit) = unit else {
            return Some(AmountReadings {
                readings: Vec::new(),
                note: format!(
                    "has numbers with several units, such as {example:?}, and remains text: they cannot be added."
                ),
            });
        };
        let plain = |kind| Reading {
            kind,
            ..Reading::default()
        };
        let mut readings = match self.numbers.kind(false) {
            Type::Number if decimal_comma != Some(false) => {
                let readings = self.numbers.readings.of_points(Type::Number, false);
                match readings.is_empty() {
                    true => vec![plain(Type::Number)],
                    false => readings,
                }
            }
            kind @ (Type::Integer | Type::Number | Type::Decimal) => vec![plain(kind)],
            _ => self.numbers.readings.of_text(decimal_comma),
        };
        // Next to a unit, `555 123` is not a telephone number.
        readings
            .retain(|reading| matches!(reading.kind, Type::Integer | Type::Number | Type::Decimal));
        for reading in &mut readings {
            reading.format = TextFormat {
                unit: Some(unit.to_owned()),
                ..std::mem::take(&mut reading.format)
            };
        }
        let note = match readings.is_empty() {
            true => format!(
                "has numbers with their unit in several spellings, such as {example:?}, and stays text: written in one they can be compared \
                 and added."
            ),
            false => self.describe(unit, fitting),
        };
        Some(AmountReadings { readings, note })
    }

    /// Returns the most frequent spelling of the unit, if there is only one unit.
    fn unit(&self) -> Option<&str> {
        let counted: u64 = self.patterns.iter().map(|(_, count)| *count).sum();
        let bare = |pattern: &str| pattern.replace(char::is_whitespace, "");
        let (first, _) = self.patterns.first()?;
        let is_one = counted == self.with_unit
            && self
                .patterns
                .iter()
                .all(|(pattern, _)| bare(pattern) == bare(first));
        let most = self.patterns.iter().rev().max_by_key(|(_, count)| *count)?;
        is_one.then_some(most.0.as_str())
    }

    fn describe(&self, unit: &str, fitting: u64) -> String {
        let mut note = format!("is read as numbers with their unit, `{unit}`");
        let counted = |count: u64, one: &str, several: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {several}"),
        };
        let without = fitting - self.with_unit;
        if without > 0 {
            let cells = counted(
                without,
                "cell without a unit is read like them",
                "cells without a unit are read like them",
            );
            note.push_str(&format!("; {cells}"));
        }
        if self.others > 0 {
            let cells = counted(self.others, "cell is", "cells are");
            let texts: Vec<String> = self.texts.iter().map(|text| format!("{text:?}")).collect();
            let texts = match texts.is_empty() {
                true => String::new(),
                false => format!(", such as {},", texts.join(", ")),
            };
            note.push_str(&format!("; {cells} something else{texts} and null then"));
        }
        note.push('.');
        note
    }
}

/// Cuts `12,90 €` into how its unit is written, `# €`, and its number. `None` for a text without a unit that is known.
pub(crate) fn cut(cell: &str) -> Option<(String, String)> {
    if cell.len() > CELL_MAX || cell.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = NumberText::cut(cell)?;
    let known = |unit: &str, lists: &[&[&str]]| {
        let unit = unit.to_lowercase();
        lists.iter().any(|list| list.contains(&unit.as_str()))
    };
    let is_known = match (number.before.trim_end(), number.behind.trim_start()) {
        (unit, "") => known(unit, &[CURRENCIES]),
        ("", unit) => known(unit, &[CURRENCIES, UNITS]),
        _ => false,
    };
    if !is_known || !is_number(number.digits) {
        return None;
    }
    let minus = if number.is_negative { "-" } else { "" };
    Some((
        format!(
            "{}#{}",
            in_pattern(number.before.trim_start()),
            in_pattern(number.behind.trim_end())
        ),
        format!("{minus}{}", number.digits),
    ))
}

/// Returns `true` for digits with marks between them, whatever the marks mean.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_mark = |next: char| {
        matches!(
            next,
            '.' | ',' | '\'' | '’' | ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}'
        )
    };
    digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.ends_with(|last: char| last.is_ascii_digit())
        && digits
            .chars()
            .all(|next| next.is_ascii_digit() || is_mark(next))
}

/// Returns the text next to a number as a pattern may have it: without line breaks and tabs.
fn in_pattern(beside: &str) -> String {
    beside.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `type unit decimal grouping` of each reading, or the note if there is no reading.
    fn read(cells: &[&str]) -> Vec<String> {
        let mut column = ColumnProfile::new(false);
        cells.iter().for_each(|cell| column.note(cell));
        let Some(read) = column.amounts(None) else {
            return Vec::new();
        };
        let one = |reading: &Reading| {
            let format = &reading.format;
            let marks = [&format.unit, &format.decimal, &format.grouping];
            let marks: String = marks
                .into_iter()
                .flatten()
                .map(|mark| format!(" {mark}"))
                .collect();
            format!("{:?}{marks}", reading.kind)
        };
        match read.readings.is_empty() {
            true => vec![read.note],
            false => read.readings.iter().map(one).collect(),
        }
    }

    #[test]
    fn one_unit_is_read() {
        for (cells, expected) in [
            (&["12,90 €", "1.200,00 €"][..], "Number # € , ."),
            (&["12.90 €", "7.00€", "3.00 €"], "Number # €"),
            (&["$1,200.00", "-$5", "$-3.50"], "Number $# ,"),
            (&["45 kg", "7kg", "9kg"], "Integer #kg"),
            (&["12 %", "-3 %", "0"], "Integer # %"),
            (&["0", "1,5", "12,25 %", "3 %", "4 %"], "Number # % ,"),
            (&["12,90 €", "n/a", "-"], "Number # € ,"),
            (&["USD 5", "USD 1,234,567"], "Integer USD # ,"),
            (&["1 234,50 kr", "12,00 kr"], "Number # kr ,  "),
        ] {
            assert_eq!(read(cells), [expected], "{cells:?}");
        }
        assert_eq!(
            read(&["1.234 €", "5.678 €"]).len(),
            2,
            "1.234 may be two numbers"
        );
    }

    #[test]
    fn what_is_no_unit_or_several_stays_text() {
        for (cells, expected) in [
            (
                &["12 EUR", "USD 5"][..],
                "several units, such as \"12 EUR\"",
            ),
            (&["5 kg", "5 g"], "several units"),
            (&["5 kg", "5 Kg"], "several units"),
            (&["€ 5", "5 €"], "several units"),
            (&["1,5 €", "1.5 €"], "several spellings"),
        ] {
            let read = read(cells);
            assert!(
                read.iter().any(|note| note.contains(expected)),
                "{cells:?}: {read:?}"
            );
        }
        for cells in [
            &["12,90 €", "soon"][..],
            &["soon", "12,90 €"],
            &["A1", "B2"],
            &["M1", "T5", "H3"],
            &["12", "13"],
            &["1", "2", "3", "4 kg"],
            &["12 m 30 s"],
            &["5-10 kg"],
            &["€"],
            &["v1.2"],
            &[],
        ] {
            assert!(read(cells).is_empty(), "{cells:?}: {:?}", read(cells));
        }
    }

    #[test]
    fn a_few_other_texts_are_counted() {
        let mut cells = vec!["soon"];
        cells.extend(["12,90 €"; 30]);
        cells.push("7,00");
        let mut column = ColumnProfile::new(false);
        cells.iter().for_each(|cell| column.note(cell));
        let read = column.amounts(None).expect("amounts");
        assert_eq!(
            read.note,
            "is read as numbers with their unit, `# €`; 1 cell without a unit is read like them; 1 cell is something else and null then."
        );
    }
}
