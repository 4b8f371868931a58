//! Finds the ways to read a column's texts that the value table writes differently: `1.234,50`, `28/2/2026`. Like types
//! they are judged over all cells: one cell that does not fit rules a reading out.

use weir_plugin_sdk::Type;
use weir_plugin_sdk::shape::{Reading, TextFormat};

use crate::infer::{INTEGER_DIGITS_MAX, NUMBER_DIGITS_MAX, significant_digits};

/// The readings that all cells of one column allow so far.
#[derive(Clone, Debug)]
pub(crate) struct ColumnReadings {
    numbers: Vec<NumberReading>,
    /// The most digits of the cells that have only digits, which fit all of these.
    plain_digits: usize,
    dates: Vec<DateReading>,
}

impl ColumnReadings {
    pub(crate) fn new() -> Self {
        let marks = [
            (',', '.'),
            (',', ' '),
            (',', '\''),
            ('.', ','),
            ('.', ' '),
            ('.', '\''),
        ];
        let dates = [
            DateOrder::DayMonthYear,
            DateOrder::MonthDayYear,
            DateOrder::YearMonthDay,
        ]
        .into_iter()
        .flat_map(|order| {
            ['/', '.', '-']
                .into_iter()
                .flat_map(move |mark| [false, true].map(|time| DateReading::new(order, mark, time)))
        });
        Self {
            numbers: marks
                .map(|(decimal, grouping)| NumberReading::new(decimal, grouping))
                .to_vec(),
            plain_digits: 0,
            dates: dates.collect(),
        }
    }

    /// Takes note of a cell that is not empty.
    pub(crate) fn note(&mut self, cell: &str) {
        // A column of the value table's own dates needs no reading, and one such date among others fits no reading.
        if weir_plugin_sdk::value::is_date(cell) {
            self.numbers.clear();
            self.dates.clear();
            return;
        }
        let digits = cell.strip_prefix('-').unwrap_or(cell);
        if digits.bytes().all(|byte| byte.is_ascii_digit())
            && (digits.len() == 1 || digits.starts_with(|first| first > '0'))
        {
            self.plain_digits = self.plain_digits.max(digits.len());
            self.dates.clear();
            return;
        }
        self.numbers.retain_mut(|numbers| numbers.note(cell));
        self.dates.retain_mut(|dates| dates.note(cell));
    }

    /// Returns `true` while all cells may be numbers.
    pub(crate) fn are_numbers(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Returns whether the decimal mark is a comma, as far as this column alone can tell.
    pub(crate) fn has_decimal_comma(&self) -> Option<bool> {
        let readings = self.distinct_numbers();
        match readings.as_slice() {
            [one] if one.uses_decimal || one.grouping_used == Some('.') => Some(one.decimal == ','),
            _ => None,
        }
    }

    /// Returns the readings of a column that is text by its plain spelling. `decimal_comma` is what the other columns
    /// of the file show.
    pub(crate) fn of_text(&self, decimal_comma: Option<bool>) -> Vec<Reading> {
        let mut numbers = self.distinct_numbers();
        if numbers.len() > 1
            && let Some(comma) = decimal_comma
        {
            numbers.retain(|numbers| (numbers.decimal == ',') == comma);
        }
        let is_doubtful = |numbers: &&NumberReading| {
            !numbers.uses_decimal
                && matches!(numbers.grouping_used, Some(mark) if mark != '.' && mark != ',')
        };
        // `555 123` is a telephone number as likely as not.
        let doubtful = numbers
            .iter()
            .any(|numbers| is_doubtful(&numbers) && decimal_comma.is_none());
        let mut readings: Vec<Reading> = numbers.iter().map(NumberReading::reading).collect();
        // The day comes before the month wherever points stand between them.
        let is_usual =
            |dates: &&DateReading| dates.order != DateOrder::MonthDayYear || dates.mark != '.';
        let dates: Vec<&DateReading> = self.dates.iter().filter(is_usual).collect();
        // `1.2.10` may be a version.
        let doubtful = doubtful || dates.iter().any(|dates| dates.short_year);
        readings.extend(dates.iter().map(|dates| dates.reading()));
        if doubtful && !readings.is_empty() {
            readings.push(Reading {
                kind: Type::String,
                ..Reading::default()
            });
        }
        readings
    }

    /// Returns `true` if points can only stand between groups of digits here.
    pub(crate) fn groups_by_points(&self) -> bool {
        matches!(self.distinct_numbers().as_slice(), [one] if one.grouping_used == Some('.'))
    }

    /// Returns the readings of a column of numbers with points, in a file in which no other column has decimal points:
    /// `1.234` may be 1234 or a little over one, unless another column has groups like these.
    pub(crate) fn of_points(&self, plain: Type, groups_elsewhere: bool) -> Vec<Reading> {
        let Some(grouped) = self
            .distinct_numbers()
            .into_iter()
            .find(|numbers| numbers.grouping_used == Some('.'))
        else {
            return Vec::new();
        };
        let plain = Reading {
            kind: plain,
            ..Reading::default()
        };
        match groups_elsewhere {
            true => vec![grouped.reading()],
            false => vec![grouped.reading(), plain],
        }
    }

    /// Returns the readings without those that differ only in marks which no cell has.
    fn distinct_numbers(&self) -> Vec<NumberReading> {
        let mut distinct: Vec<NumberReading> = Vec::new();
        for numbers in self
            .numbers
            .iter()
            .filter(|numbers| numbers.uses_decimal || numbers.grouping_used.is_some())
        {
            if distinct
                .iter()
                .all(|other| other.format() != numbers.format())
            {
                let whole_digits = numbers.whole_digits.max(self.plain_digits);
                distinct.push(NumberReading {
                    whole_digits,
                    ..numbers.clone()
                });
            }
        }
        distinct
    }
}

/// Numbers with these marks.
#[derive(Clone, Debug)]
struct NumberReading {
    decimal: char,
    grouping: char,
    uses_decimal: bool,
    /// The mark between groups, as the file writes it.
    grouping_used: Option<char>,
    whole_digits: usize,
    fraction_digits: usize,
}

impl NumberReading {
    fn new(decimal: char, grouping: char) -> Self {
        Self {
            decimal,
            grouping,
            uses_decimal: false,
            grouping_used: None,
            whole_digits: 0,
            fraction_digits: 0,
        }
    }

    /// Returns `false` for a cell that is not a number with these marks. A leading zero makes it an identifier.
    fn note(&mut self, cell: &str) -> bool {
        let unsigned = cell.strip_prefix('-').unwrap_or(cell);
        let (whole, fraction) = match unsigned.split_once(self.decimal) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (unsigned, None),
        };
        let is_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let mut groups = whole.split(|mark| self.is_grouping(mark));
        let Some(first) = groups.next().filter(|first| is_digits(first)) else {
            return false;
        };
        let (mut digits, mut grouped) = (first.len(), false);
        for group in groups {
            if group.len() != 3 || !is_digits(group) || first.len() > 3 {
                return false;
            }
            digits += 3;
            grouped = true;
        }
        if (first.starts_with('0') && digits > 1)
            || fraction.is_some_and(|fraction| !is_digits(fraction))
        {
            return false;
        }
        if grouped && self.grouping_used.is_none() {
            self.grouping_used = whole.chars().find(|mark| self.is_grouping(*mark));
        }
        self.uses_decimal |= fraction.is_some();
        let (whole_digits, fraction_digits) =
            significant_digits(digits, whole, fraction.unwrap_or_default());
        self.whole_digits = self.whole_digits.max(whole_digits);
        self.fraction_digits = self.fraction_digits.max(fraction_digits);
        true
    }

    fn is_grouping(&self, mark: char) -> bool {
        match self.grouping {
            ' ' => matches!(mark, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}'),
            '\'' => matches!(mark, '\'' | '’'),
            grouping => mark == grouping,
        }
    }

    fn format(&self) -> TextFormat {
        // If no cell has a fraction, the mark before it follows from the mark between groups.
        let decimal = self.decimal == ',' && self.uses_decimal;
        TextFormat {
            decimal: decimal.then(|| ",".to_owned()),
            grouping: self.grouping_used.map(String::from),
            ..TextFormat::default()
        }
    }

    fn reading(&self) -> Reading {
        let kind = match self.whole_digits + self.fraction_digits {
            digits if !self.uses_decimal && digits <= INTEGER_DIGITS_MAX => Type::Integer,
            digits if self.uses_decimal && digits <= NUMBER_DIGITS_MAX => Type::Number,
            _ => Type::Decimal,
        };
        Reading {
            kind,
            format: self.format(),
            ..Reading::default()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DateOrder {
    DayMonthYear,
    MonthDayYear,
    YearMonthDay,
}

/// Dates in this order with this mark between their parts, optionally followed by a time of day.
#[derive(Clone, Debug)]
struct DateReading {
    order: DateOrder,
    mark: char,
    time: bool,
    /// Whether a day, month or hour below ten was seen with a zero in front, or without.
    padded: [bool; 3],
    unpadded: [bool; 3],
    short_year: bool,
    seconds: Option<bool>,
    cells: u64,
}

impl DateReading {
    fn new(order: DateOrder, mark: char, time: bool) -> Self {
        Self {
            order,
            mark,
            time,
            padded: [false; 3],
            unpadded: [false; 3],
            short_year: false,
            seconds: None,
            cells: 0,
        }
    }

    fn note(&mut self, cell: &str) -> bool {
        self.parts(cell).is_some()
    }

    fn parts(&mut self, cell: &str) -> Option<()> {
        // The value table's own date needs no reading, and no format is longer than this.
        if cell.len() > 20 || !cell.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let (date, time) = match (cell.split_once(' '), self.time) {
            (None, false) => (cell, None),
            (Some((date, time)), true) => (date, Some(time)),
            _ => return None,
        };
        let mut parts = date.split(self.mark);
        let three = [parts.next()?, parts.next()?, parts.next()?];
        if parts.next().is_some() {
            return None;
        }
        let [year, month, day] = match self.order {
            DateOrder::DayMonthYear => [three[2], three[1], three[0]],
            DateOrder::MonthDayYear => [three[2], three[0], three[1]],
            DateOrder::YearMonthDay => three,
        };
        let short_year = year.len() == 2 && self.order != DateOrder::YearMonthDay;
        if !(year.len() == 4 || short_year) || (self.cells > 0 && short_year != self.short_year) {
            return None;
        }
        let (year, month_number, day_number) = (number(year)?, number(month)?, number(day)?);
        let year = if short_year { 2000 + year } else { year };
        if year < 1000 || month.len() > 2 || day.len() > 2 {
            return None;
        }
        weir_plugin_sdk::value::is_date(&format!("{year:04}-{month_number:02}-{day_number:02}"))
            .then_some(())?;
        if let Some(time) = time {
            self.clock(time)?;
        }
        self.short_year = short_year;
        self.cells += 1;
        self.note_padding(0, day);
        self.note_padding(1, month);
        Some(())
    }

    /// Reads `9:30` or `09:30:00`.
    fn clock(&mut self, time: &str) -> Option<()> {
        let parts: Vec<&str> = time.split(':').collect();
        let (hour, rest) = parts.split_first()?;
        let fits = |part: &&str, most: u16| {
            part.len() == 2 && number(part).is_some_and(|number| number <= most)
        };
        let with_seconds = rest.len() == 2;
        let is_clock = (1..=2).contains(&hour.len())
            && number(hour)? <= 23
            && matches!(rest.len(), 1 | 2)
            && rest.iter().all(|part| fits(part, 59));
        if !is_clock || self.seconds.is_some_and(|seconds| seconds != with_seconds) {
            return None;
        }
        self.seconds = Some(with_seconds);
        self.note_padding(2, hour);
        Some(())
    }

    fn note_padding(&mut self, part: usize, text: &str) {
        self.padded[part] |= text.len() == 2 && text.starts_with('0');
        self.unpadded[part] |= text.len() == 1;
    }

    fn reading(&self) -> Reading {
        let part = |at: usize, letter: char| match self.unpadded[at] && !self.padded[at] {
            true => format!("%-{letter}"),
            false => format!("%{letter}"),
        };
        let (day, month, mark) = (part(0, 'd'), part(1, 'm'), self.mark);
        let year = if self.short_year { "%y" } else { "%Y" };
        let date = match self.order {
            DateOrder::DayMonthYear => format!("{day}{mark}{month}{mark}{year}"),
            DateOrder::MonthDayYear => format!("{month}{mark}{day}{mark}{year}"),
            DateOrder::YearMonthDay => format!("{year}{mark}{month}{mark}{day}"),
        };
        match self.time {
            false => Reading {
                kind: Type::Date,
                format: TextFormat {
                    date: Some(date),
                    ..TextFormat::default()
                },
                ..Reading::default()
            },
            true => {
                let seconds = if self.seconds == Some(true) {
                    ":%S"
                } else {
                    ""
                };
                let datetime = format!("{date} {}:%M{seconds}", part(2, 'H'));
                Reading {
                    kind: Type::Datetime,
                    format: TextFormat {
                        datetime: Some(datetime),
                        ..TextFormat::default()
                    },
                    ..Reading::default()
                }
            }
        }
    }
}

fn number(digits: &str) -> Option<u16> {
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `type decimal grouping date datetime` of each reading, as a contract would write it.
    fn readings(cells: &[&str], decimal_comma: Option<bool>) -> Vec<String> {
        let mut readings = ColumnReadings::new();
        cells.iter().for_each(|cell| readings.note(cell));
        let shown = |reading: Reading| {
            let kind = weir_plugin_sdk::serde_json::to_value(reading.kind).unwrap();
            let TextFormat {
                decimal,
                grouping,
                unit,
                date,
                datetime,
            } = reading.format;
            let marks = [decimal, grouping, unit, date, datetime]
                .map(|mark| mark.map(|mark| format!(" {mark}")).unwrap_or_default());
            format!("{}{}", kind.as_str().unwrap(), marks.concat())
        };
        readings
            .of_text(decimal_comma)
            .into_iter()
            .map(shown)
            .collect()
    }

    #[test]
    fn what_only_one_reading_fits_is_that() {
        for (cells, expected) in [
            (&["1.234,50", "12,5", "-7"][..], "number , ."),
            (&["12,5", "3,75"], "number ,"),
            (&["0,333333333333333"], "number ,"),
            (&["1,234.50"], "number ,"),
            (&["1.234.567", "5"], "integer ."),
            (&["1.234.567", "123456789012345"], "decimal ."),
            (&["1,234,567"], "integer ,"),
            (&["1 234,50"], "number ,  "),
            (&["1\u{202f}234,50"], "number , \u{202f}"),
            (&["1'234.50"], "number '"),
            (&["123.456.789.012.345,67"], "decimal , ."),
            (&["28/2/2026", "1/12/2026"], "date %-d/%-m/%Y"),
            (&["28/02/2026", "01/12/2026"], "date %d/%m/%Y"),
            (&["2/28/2026"], "date %-m/%d/%Y"),
            (&["01.02.2026"], "date %d.%m.%Y"),
            (&["2026/02/01"], "date %Y/%m/%d"),
            (
                &["28.02.2026 14:30", "01.03.2026 09:05"],
                "datetime %d.%m.%Y %H:%M",
            ),
            (&["28.2.2026 9:30:00"], "datetime %d.%-m.%Y %-H:%M:%S"),
        ] {
            assert_eq!(readings(cells, None), [expected], "{cells:?}");
        }
    }

    #[test]
    fn what_may_be_two_things_is_asked_for() {
        for (cells, expected) in [
            (&["1,234", "2,500"][..], &["number ,", "integer ,"][..]),
            (
                &["1/2/2026", "3/4/2026"],
                &["date %-d/%-m/%Y", "date %-m/%-d/%Y"],
            ),
            (&["1.2.10", "3.4.12"], &["date %-d.%-m.%y", "string"]),
            (&["555 123"], &["integer  ", "string"]),
        ] {
            assert_eq!(readings(cells, None), expected, "{cells:?}");
        }
        assert_eq!(
            readings(&["1,234", "2,500"], Some(true)),
            ["number ,"],
            "the other columns have decimal commas"
        );
        assert_eq!(readings(&["1,234", "2,500"], Some(false)), ["integer ,"]);
    }

    #[test]
    fn text_is_left_alone() {
        for cells in [
            &["12,5", "n/a"][..],
            &["0123,5"],
            &["1,23,456"],
            &["1234.567,8"],
            &["12.5", "1,5"],
            &["31/2/2026"],
            &["28/2/2026", "28.2.2026"],
            &["28/2/2026", "28/2/26"],
            &["28/2/2026", "28/2/2026 10:00"],
            &["1.2.3.4"],
            &["Ж"],
            &["+1,5"],
            &["1,5 €"],
            &["2026-02-01", "2026-2-3"],
        ] {
            assert!(
                readings(cells, None).is_empty(),
                "{cells:?}: {:?}",
                readings(cells, None)
            );
        }
    }
}
