//! Numbers and dates as people write them in a sheet: `1.234,50`, `12,90 €`, `28/2/2026`. The shape defines how ([`TextFormat`]);
//! the values are those of the one value table in both directions.

use std::borrow::Cow;

use jiff::civil;

use super::{Datetime, Decimal, Value, Zone};
use crate::shape::{Field, TextFormat, Type};

/// Longer cells are neither a number nor a date.
const TEXT_MAX: usize = 1_200;

/// Reads a cell that is not empty, as its column writes it; `None` if the cell is not written so.
pub(super) fn read(
    text: &str,
    kind: Type,
    format: &TextFormat,
    zone: &Zone,
) -> Option<Value<'static>> {
    if text.len() > TEXT_MAX {
        return None;
    }
    match kind {
        Type::Integer => {
            let digits = plain_digits(text, format)?;
            Decimal::parse(&digits)?.to_integer().map(Value::Integer)
        }
        Type::Decimal => Decimal::parse(&plain_digits(text, format)?)
            .map(|decimal| Value::Decimal(decimal.into_owned())),
        Type::Number => plain_digits(text, format)?
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(Value::Number),
        Type::Date => read_date(text, format.date.as_deref()?)
            .map(|date| Value::Date(Cow::Owned(date.to_string()))),
        Type::Datetime => {
            read_datetime(text, format.datetime.as_deref()?, zone).map(Value::Datetime)
        }
        Type::String | Type::Boolean | Type::Json | Type::Record | Type::List => None,
    }
}

impl Value<'_> {
    /// Returns the text of a cell that [`Value::from_text`] reads back as this value. `None` means that the column's format
    /// cannot express the whole value: a time of day in a format without seconds, a year of the last century in one of two
    /// digits, a text that means an empty cell.
    pub fn to_text(&self, field: &Field, zone: &Zone) -> Option<String> {
        let text = match self {
            Value::Null => return Some(String::new()),
            Value::Text(text) => text.to_string(),
            Value::Json(json) | Value::Unfit(json) => json.to_string(),
            Value::Boolean(boolean) => boolean.to_string(),
            Value::Integer(integer) => number(&integer.to_string(), field),
            Value::Decimal(decimal) => number(decimal.as_str(), field),
            Value::Number(_) if has_digits_of_its_own(field) => {
                number(Decimal::parse(&self.to_json())?.as_str(), field)
            }
            Value::Number(_) => self.to_json(),
            Value::Date(date) => match format(field).and_then(|format| format.date.as_deref()) {
                Some(pattern) => print(
                    date.parse::<civil::Date>()
                        .ok()?
                        .to_datetime(civil::Time::midnight()),
                    pattern,
                )?,
                None => date.to_string(),
            },
            Value::Datetime(datetime) => {
                match format(field).and_then(|format| format.datetime.as_deref()) {
                    Some(pattern) => print(datetime.in_zone(zone)?, pattern)?,
                    None => datetime.to_string(),
                }
            }
        };
        let is_plain = field.format.is_none() && field.null_words.is_empty();
        let is_whole = is_plain || Value::from_text(&text, field, zone) == *self;
        is_whole.then_some(text)
    }
}

fn format(field: &Field) -> Option<&TextFormat> {
    field.format.as_deref()
}

fn has_digits_of_its_own(field: &Field) -> bool {
    format(field).is_some_and(|format| {
        format.decimal.is_some() || format.grouping.is_some() || format.unit.is_some()
    })
}

/// A cell with a number in it: `-$1,200.00` is `$`, `1,200.00`, negative, with the sign in front of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberText<'a> {
    /// The text before the number, with its blanks and without the sign.
    pub before: &'a str,
    /// The digits and the marks between them.
    pub digits: &'a str,
    /// The text after the number, with its blanks.
    pub behind: &'a str,
    /// Whether there is a minus.
    pub is_negative: bool,
}

impl<'a> NumberText<'a> {
    /// Cuts a text before its first and after its last digit. `None` without a digit, or with two signs.
    pub fn cut(text: &'a str) -> Option<Self> {
        let (unsigned, signed_first) = match text.strip_prefix('-') {
            Some(unsigned) => (unsigned, true),
            None => (text, false),
        };
        let is_digit = |next: char| next.is_ascii_digit();
        let (first, last) = (unsigned.find(is_digit)?, unsigned.rfind(is_digit)? + 1);
        let (before, signed_second) = match unsigned[..first].strip_suffix('-') {
            Some(before) => (before, true),
            None => (&unsigned[..first], false),
        };
        (!(signed_first && signed_second)).then_some(Self {
            before,
            digits: &unsigned[first..last],
            behind: &unsigned[last..],
            is_negative: signed_first || signed_second,
        })
    }

    /// Returns `true` if the number has no text next to it.
    pub fn is_bare(&self) -> bool {
        self.before.is_empty() && self.behind.is_empty()
    }

    /// Returns `true` if the text next to the number is this unit, whatever blanks are between them.
    fn has_unit(&self, pattern: &str) -> bool {
        let Some((before, behind)) = pattern.split_once('#') else {
            return false;
        };
        before.trim_end() == self.before.trim_end()
            && behind.trim_start() == self.behind.trim_start()
    }
}

impl TextFormat {
    /// Splits a cell into its number and the unit next to it. `None` if the cell has another unit, or the column has none.
    fn number_text<'a>(&self, text: &'a str) -> Option<NumberText<'a>> {
        let pattern = self.unit.as_deref()?;
        let cut = NumberText::cut(text)?;
        (cut.is_bare() || cut.has_unit(pattern)).then_some(cut)
    }

    /// Returns `true` for a number with a unit other than the column's. A unit is short before a number (`USD`), and at
    /// most two words after it (`fl oz`): the text `see note 3` has none.
    pub(crate) fn has_other_unit(&self, text: &str) -> bool {
        const BEFORE_MAX: usize = 4;
        const BEHIND_MAX: usize = 24;
        self.unit.is_some()
            && text.len() <= TEXT_MAX
            && self.number_text(text).is_none()
            && NumberText::cut(text).is_some_and(|cut| {
                cut.before.trim().chars().count() <= BEFORE_MAX
                    && cut.behind.len() <= BEHIND_MAX
                    && cut.behind.split_whitespace().count() <= 2
                    && cut.digits.chars().all(is_of_number)
            })
    }
}

/// Returns `true` for the characters of numbers, whatever marks a column has.
fn is_of_number(character: char) -> bool {
    character.is_ascii_digit() || ".,'’ \u{a0}\u{202f}\u{2009}".contains(character)
}

/// Returns the decimal mark: a point unless the column defines another, or has points between its groups.
fn decimal_mark(format: &TextFormat) -> &str {
    match (&format.decimal, &format.grouping) {
        (Some(decimal), _) => decimal,
        (None, Some(grouping)) if grouping == "." => ",",
        (None, _) => ".",
    }
}

/// Rewrites `1.234,50` or, in a column with that unit, `1.234,50 €` as `1234.50`.
fn plain_digits(text: &str, format: &TextFormat) -> Option<String> {
    if format.unit.is_none() {
        return digits_with_marks(text, format);
    }
    let number = format.number_text(text)?;
    let digits = digits_with_marks(number.digits, format)?;
    Some(match number.is_negative {
        true => format!("-{digits}"),
        false => digits,
    })
}

/// Rewrites a number without the marks of its column. Groups have three digits, and either all or none are separated.
fn digits_with_marks(text: &str, format: &TextFormat) -> Option<String> {
    let decimal = decimal_mark(format);
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once(decimal) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut digits = String::with_capacity(text.len());
    digits.push_str(&text[..text.len() - unsigned.len()]);
    if is_digits(whole) {
        digits.push_str(whole);
    } else {
        let wanted = format.grouping.as_deref()?.chars().next()?;
        let mut groups = whole.split(|mark: char| is_same_mark(mark, wanted));
        let first = groups
            .next()
            .filter(|first| is_digits(first) && first.len() <= 3)?;
        digits.push_str(first);
        for group in groups {
            if group.len() != 3 || !is_digits(group) {
                return None;
            }
            digits.push_str(group);
        }
    }
    if let Some(fraction) = fraction {
        if !is_digits(fraction) {
            return None;
        }
        digits.push('.');
        digits.push_str(fraction);
    }
    Some(digits)
}

/// Returns `true` for marks that people and programs use for each other, such as several kinds of space or apostrophe.
fn is_same_mark(mark: char, wanted: char) -> bool {
    const SPACES: [char; 4] = [' ', '\u{a0}', '\u{202f}', '\u{2009}'];
    const APOSTROPHES: [char; 2] = ['\'', '’'];
    let both = |marks: &[char]| marks.contains(&mark) && marks.contains(&wanted);
    mark == wanted || both(&SPACES) || both(&APOSTROPHES)
}

/// Writes digits with a point as the column does.
fn number(digits: &str, field: &Field) -> String {
    let Some(format) = format(field) else {
        return digits.to_owned();
    };
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let unit = format.unit.as_deref();
    let (before, behind) = unit
        .and_then(|unit| unit.split_once('#'))
        .unwrap_or_default();
    let mut out = String::from(&digits[..digits.len() - unsigned.len()]);
    out.push_str(before);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push_str(format.grouping.as_deref().unwrap_or_default());
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push_str(decimal_mark(format));
        out.push_str(fraction);
    }
    out.push_str(behind);
    out
}

fn read_date(text: &str, pattern: &str) -> Option<civil::Date> {
    let date = civil::Date::strptime(pattern, text).ok()?;
    is_plausible(date.year(), text).then_some(date)
}

fn read_datetime(text: &str, pattern: &str, zone: &Zone) -> Option<Datetime> {
    let civil = civil::DateTime::strptime(pattern, text).ok()?;
    let (hour, minute, second) = (civil.hour(), civil.minute(), civil.second());
    let datetime = Datetime::from_civil(
        civil.year(),
        civil.month(),
        civil.day(),
        hour,
        minute,
        second,
        zone,
    )?;
    is_plausible(civil.year(), text).then_some(datetime)
}

/// Returns `true` for a plausible date: a year of one to three digits was cut off, and no date has a sign.
fn is_plausible(year: i16, text: &str) -> bool {
    (1000..=9999).contains(&year) && !text.contains('+')
}

fn print(datetime: civil::DateTime, pattern: &str) -> Option<String> {
    jiff::fmt::strtime::format(pattern, datetime).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: Type, format: TextFormat) -> Field {
        Field {
            format: Some(Box::new(format)),
            ..Field::new("column", kind)
        }
    }

    fn numbers(kind: Type, decimal: &str, grouping: &str) -> Field {
        let given = |mark: &str| (!mark.is_empty()).then(|| mark.to_owned());
        column(
            kind,
            TextFormat {
                decimal: given(decimal),
                grouping: given(grouping),
                ..TextFormat::default()
            },
        )
    }

    fn amounts(unit: &str, decimal: &str, grouping: &str) -> Field {
        let mut field = numbers(Type::Number, decimal, grouping);
        field.format.as_mut().expect("a format").unit = Some(unit.to_owned());
        field
    }

    fn dates(pattern: &str) -> Field {
        column(
            Type::Date,
            TextFormat {
                date: Some(pattern.to_owned()),
                ..TextFormat::default()
            },
        )
    }

    fn times(pattern: &str) -> Field {
        column(
            Type::Datetime,
            TextFormat {
                datetime: Some(pattern.to_owned()),
                ..TextFormat::default()
            },
        )
    }

    #[test]
    fn a_note_is_no_other_unit() {
        let field = amounts("# €", ",", ".");
        let format = format(&field).expect("a format");
        for other in ["5 USD", "USD 5", "-$5", "12,5 fl oz", "5 %"] {
            assert!(format.has_other_unit(other), "{other}");
        }
        for none in [
            "12,90 €",
            "7",
            "see note 3",
            "soon",
            "5-10 kg",
            "3 of them are broken",
        ] {
            assert!(!format.has_other_unit(none), "{none}");
        }
    }

    #[test]
    fn a_cell_is_read_as_its_column_writes_it() {
        for (field, text, expected) in [
            (numbers(Type::Number, ",", "."), "1.234,50", "1234.5"),
            (numbers(Type::Number, ",", "."), "1234,50", "1234.5"),
            (numbers(Type::Number, ",", "."), "-1.234.567", "-1234567"),
            (
                numbers(Type::Decimal, ",", "."),
                "12.345.678.901.234,567",
                "\"12345678901234.567\"",
            ),
            (numbers(Type::Integer, "", "."), "1.234", "1234"),
            (numbers(Type::Number, "", ","), "1,234.5", "1234.5"),
            (numbers(Type::Number, ",", " "), "1\u{202f}234,5", "1234.5"),
            (numbers(Type::Number, "", "'"), "1’234.5", "1234.5"),
            (amounts("# €", ",", "."), "1.234,50 €", "1234.5"),
            (amounts("# €", ",", "."), "-12,90\u{a0}€", "-12.9"),
            (amounts("# €", ",", "."), "12,90€", "12.9"),
            (amounts("# €", ",", "."), "12,90", "12.9"),
            (amounts("$#", "", ","), "$1,200.00", "1200"),
            (amounts("$#", "", ","), "-$5", "-5"),
            (amounts("$#", "", ","), "$ -5", "-5"),
            (amounts("#%", "", ""), "12 %", "12"),
            (amounts("# €", ",", "."), "12,90 EUR", "\"12,90 EUR\""),
            (amounts("# €", ",", "."), "€ 12,90", "\"€ 12,90\""),
            (amounts("# €", ",", "."), "12.90 €", "\"12.90 €\""),
            (amounts("$#", "", ","), "-$-5", "\"-$-5\""),
            (amounts("# kg", "", ""), "5-10 kg", "\"5-10 kg\""),
            (amounts("# kg", "", ""), "5 kg ", "\"5 kg \""),
            (amounts("# kg", "", ""), "kg", "\"kg\""),
            // Texts that are written differently are passed on as they are.
            (numbers(Type::Number, ",", "."), "1.23,5", "\"1.23,5\""),
            (numbers(Type::Number, ",", "."), "1,234,5", "\"1,234,5\""),
            (numbers(Type::Number, ",", "."), "1234.5", "\"1234.5\""),
            (numbers(Type::Number, ",", ""), "1.234,5", "\"1.234,5\""),
            (numbers(Type::Number, ",", "."), ".234", "\".234\""),
            (numbers(Type::Number, ",", "."), "1e5", "\"1e5\""),
            (dates("%d/%m/%Y"), "28/2/2026", "\"2026-02-28\""),
            (dates("%d/%m/%Y"), "28/02/2026", "\"2026-02-28\""),
            (dates("%-d.%-m.%Y"), "1.12.2026", "\"2026-12-01\""),
            (dates("%d.%m.%y"), "28.02.26", "\"2026-02-28\""),
            (dates("%d/%m/%Y"), "2026-02-28", "\"2026-02-28\""),
            (dates("%d/%m/%Y"), "29/2/2025", "\"29/2/2025\""),
            (dates("%d/%m/%Y"), "2/28/2026", "\"2/28/2026\""),
            (dates("%d/%m/%Y"), "28/2/26", "\"28/2/26\""),
            (dates("%d/%m/%Y"), "28/2/-2026", "\"28/2/-2026\""),
            (dates("%d/%m/%Y"), "28/2/2026 ", "\"28/2/2026 \""),
            (
                times("%d.%m.%Y %H:%M"),
                "28.02.2026 14:30",
                "\"2026-02-28T14:30:00Z\"",
            ),
            (
                times("%d.%m.%Y %H:%M"),
                "2026-02-28T14:30:00+01:00",
                "\"2026-02-28T13:30:00Z\"",
            ),
        ] {
            assert_eq!(
                Value::from_text(text, &field, &Zone::utc()).to_json(),
                expected,
                "{text} as {field:?}"
            );
        }
    }

    #[test]
    fn a_value_is_written_as_its_column_is() {
        let vienna = Zone::parse("Europe/Vienna").unwrap();
        let datetime = |text: &str| Value::Datetime(Datetime::parse(text, &vienna).unwrap());
        for (field, value, expected) in [
            (
                numbers(Type::Number, ",", "."),
                Value::Number(1234.5),
                Some("1.234,5"),
            ),
            (
                numbers(Type::Number, ",", "."),
                Value::Number(1e-7),
                Some("0,0000001"),
            ),
            (
                numbers(Type::Number, ",", ""),
                Value::Number(1234.5),
                Some("1234,5"),
            ),
            (
                numbers(Type::Integer, "", "."),
                Value::Integer(-1_234_567),
                Some("-1.234.567"),
            ),
            (
                numbers(Type::Integer, "", "."),
                Value::Integer(-123),
                Some("-123"),
            ),
            (
                numbers(Type::Decimal, ",", " "),
                Value::Decimal(Decimal::parse("1234567.89").unwrap()),
                Some("1 234 567,89"),
            ),
            (
                amounts("# €", ",", "."),
                Value::Number(-1234.5),
                Some("-1.234,5 €"),
            ),
            (
                amounts("US$ #", "", ","),
                Value::Number(-1234.5),
                Some("-US$ 1,234.5"),
            ),
            (
                amounts("#%", "", ""),
                Value::Number(1e-7),
                Some("0.0000001%"),
            ),
            (
                dates("%-d/%-m/%Y"),
                Value::Date("2026-02-28".into()),
                Some("28/2/2026"),
            ),
            (
                dates("%d/%m/%Y"),
                Value::Date("2026-02-03".into()),
                Some("03/02/2026"),
            ),
            (dates("%d/%m/%y"), Value::Date("1950-02-03".into()), None),
            (dates("%d/%m/%Y"), Value::Date("0950-02-03".into()), None),
            (
                times("%d.%m.%Y %H:%M"),
                datetime("2026-07-28T12:30:00Z"),
                Some("28.07.2026 14:30"),
            ),
            (
                times("%d.%m.%Y %H:%M"),
                datetime("2026-07-28T12:30:01Z"),
                None,
            ),
            // The second of the two hours that the clock shows twice.
            (
                times("%d.%m.%Y %H:%M"),
                datetime("2024-10-27T01:30:00Z"),
                None,
            ),
            (numbers(Type::Number, ",", "."), Value::Null, Some("")),
        ] {
            assert_eq!(
                value.to_text(&field, &vienna).as_deref(),
                expected,
                "{value:?} as {field:?}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_reads_back(
            unscaled in proptest::prelude::any::<i64>(),
            places in 0_u32..12,
            marks in proptest::sample::select(vec![(",", "."), (",", ""), ("", ","), (",", "\u{a0}"), ("", "'"), (",", "’")]),
            unit in proptest::sample::select(vec![None, Some("# €"), Some("$#"), Some("a # b"), Some("#%")]),
            date in (1000_i16..=9999, 1_i8..=12, 1_i8..=28),
            pattern in proptest::sample::select(vec!["%d/%m/%Y", "%-d/%-m/%Y", "%m-%d-%Y", "%d.%m.%Y", "%Y/%m/%d", "%-d %b %Y", "%B %d, %Y"]),
        ) {
            let utc = Zone::utc();
            let text = format!("{unscaled}e-{places}");
            let decimal = Value::Decimal(Decimal::parse(&text).unwrap());
            for (kind, value) in [
                (Type::Decimal, decimal),
                (Type::Number, Value::Number(text.parse().unwrap())),
                (Type::Integer, Value::Integer(unscaled.into())),
            ] {
                let mut field = numbers(kind, marks.0, marks.1);
                field.format.as_mut().expect("a format").unit = unit.map(str::to_owned);
                let written = value.to_text(&field, &utc).expect("every number can be written");
                proptest::prop_assert_eq!(Value::from_text(&written, &field, &utc), value);
            }
            let field = dates(pattern);
            let value = Value::Date(format!("{:04}-{:02}-{:02}", date.0, date.1, date.2).into());
            let written = value.to_text(&field, &utc).expect("every day can be written");
            proptest::prop_assert_eq!(Value::from_text(&written, &field, &utc), value);
        }

        #[test]
        fn no_cell_breaks_the_reader(text in "\\PC{0,30}|[0-9.,' /:+-]{0,24}") {
            for field in [numbers(Type::Number, ",", "."), numbers(Type::Integer, ".", "'"), dates("%d/%m/%Y"), times("%d.%m.%Y %H:%M:%S")] {
                let value = Value::from_text(&text, &field, &Zone::utc());
                if !matches!(value, Value::Unfit(_) | Value::Null) {
                    let written = value.to_text(&field, &Zone::utc());
                    if let Some(written) = written {
                        proptest::prop_assert_eq!(Value::from_text(&written, &field, &Zone::utc()), value);
                    }
                }
            }
        }
    }
}
