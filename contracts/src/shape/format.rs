//! Defines how a source that holds text writes numbers, dates and times, and what a contract may set.

use serde::{Deserialize, Serialize};

use super::ValueType;
use crate::name;

/// The format of a column's texts, if they are not written as the value table writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnFormat {
    /// The mark before the fraction of a number. By default it is a point, or a comma if points separate groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<String>,
    /// The mark between groups of three digits; by default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grouping: Option<String>,
    /// A number with its unit. `#` is the place of the number: `# €`, `$#`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// A date, as strftime writes it: `%d/%m/%Y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// A time without a zone, as strftime writes it: `%d.%m.%Y %H:%M`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datetime: Option<String>,
}

/// One way to read all texts of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnReading {
    #[serde(rename = "type")]
    pub kind: ValueType,
    #[serde(default)]
    pub format: ColumnFormat,
    /// The texts among them that mean an empty cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub null_words: Vec<String>,
}

/// A key of a format that means nothing for its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormatFault {
    pub key: &'static str,
    pub message: String,
    /// The hint what to write instead.
    pub hint: String,
}

const DECIMALS: &[&str] = &[".", ","];
/// The marks that may separate groups, including the spaces and the apostrophe that programs write instead.
const GROUPINGS: &[&str] = &[".", ",", "'", " ", "’", "\u{a0}", "\u{202f}", "\u{2009}"];
const PATTERN_MAX: usize = 40;
const UNIT_MAX: usize = 20;

impl ColumnFormat {
    /// Returns `true` if it sets nothing, so that values have the form of the value table.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns each key that is given, in the contract's words.
    pub fn keys(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let keys = [
            ("decimal", &self.decimal),
            ("grouping", &self.grouping),
            ("unit", &self.unit),
            ("date", &self.date),
            ("datetime", &self.datetime),
        ];
        keys.into_iter()
            .filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }

    /// Returns only the unit, without the number and the blanks around it.
    pub(crate) fn bare_unit(&self) -> Option<String> {
        let (before, behind) = self.unit.as_deref()?.split_once('#')?;
        Some(
            format!("{} {}", before.trim(), behind.trim())
                .trim()
                .to_owned(),
        )
    }

    /// Returns what a column with a unit contains, for people and agents, if its own name does not include the unit.
    pub(crate) fn describe_unit(&self, column: &str) -> Option<String> {
        let unit = self.bare_unit()?;
        let has_unit = name::words(column).contains(&unit.to_lowercase()) || column.contains(&unit);
        (!has_unit).then(|| format!("{} in {unit}.", column.trim()))
    }

    /// Returns the type that the keys imply, if the contract names none.
    pub(crate) fn implied(&self) -> Option<ValueType> {
        match (&self.date, &self.datetime) {
            (Some(_), _) => Some(ValueType::Date),
            (None, Some(_)) => Some(ValueType::Datetime),
            (None, None) => (!self.is_empty()).then_some(ValueType::Number),
        }
    }

    /// Returns the faults of the format for a column of this type.
    pub(crate) fn check(&self, kind: ValueType) -> Vec<FormatFault> {
        let mut wrong = Vec::new();
        let is_number = matches!(
            kind,
            ValueType::Integer | ValueType::Number | ValueType::Decimal
        );
        for (key, given) in self.keys() {
            let (fits, of, usual) = match key {
                "date" => (kind == ValueType::Date, "date", "date"),
                "datetime" => (kind == ValueType::Datetime, "datetime", "datetime"),
                _ => (is_number, "number, decimal or integer", "number"),
            };
            if !fits {
                let word = kind.word();
                wrong.push(FormatFault {
                    key,
                    message: format!("is for columns of type {of}, and this one is {word}"),
                    hint: format!("drop `{key}`, or say `type: {usual}`"),
                });
                continue;
            }
            let checked = match key {
                "decimal" if !DECIMALS.contains(&given) => Err("must be \".\" or \",\"".to_owned()),
                "grouping" if !GROUPINGS.contains(&given) => {
                    Err("must be one of \".\", \",\", \"'\" and a space".to_owned())
                }
                "grouping" if Some(given) == self.decimal.as_deref() => {
                    Err("is also the decimal mark; set another `decimal`".to_owned())
                }
                "unit" => check_unit(given),
                "date" => check_pattern(given, false),
                "datetime" => check_pattern(given, true),
                _ => Ok(()),
            };
            if let Err(message) = checked {
                let hint = format!("write it as the cells have it, such as {}", example(key));
                wrong.push(FormatFault { key, message, hint });
            }
        }
        wrong
    }
}

/// Returns a value of a key, as a contract writes it.
fn example(key: &str) -> &'static str {
    match key {
        "decimal" => "`decimal: \",\"`",
        "grouping" => "`grouping: \".\", decimal: \",\"`",
        "unit" => "`unit: \"# €\"`",
        "date" => "`date: \"%d/%m/%Y\"`",
        _ => "`datetime: \"%d.%m.%Y %H:%M\"`",
    }
}

/// Checks the pattern of a number with its unit: one `#`, and next to it nothing that could be a part of the number.
fn check_unit(pattern: &str) -> Result<(), String> {
    if pattern.chars().count() > UNIT_MAX {
        return Err(format!("is longer than {UNIT_MAX} characters"));
    }
    let mut parts = pattern.split('#');
    let (Some(before), Some(behind), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err("must have one # for the number, such as \"# €\" or \"$#\"".to_owned());
    };
    let (unit_before, unit_behind) = (before.trim_end(), behind.trim_start());
    if unit_before.is_empty() && unit_behind.is_empty() {
        return Err("has no unit next to the #".to_owned());
    }
    if unit_before.starts_with(char::is_whitespace)
        || unit_behind.ends_with(char::is_whitespace)
        || pattern
            .chars()
            .any(|next| next.is_ascii_digit() || name::is_invisible(next))
    {
        return Err(
            "may not contain digits or anything invisible, and blanks only around the #".to_owned(),
        );
    }
    match unit_before.ends_with(['+', '-', '\'', '’'])
        || unit_behind.starts_with(['+', '-', '\'', '’', '.', ','])
    {
        true => Err("has next to the number what could be a part of it".to_owned()),
        false => Ok(()),
    }
}

/// Checks a strftime pattern: it has a whole date, for a time at least hours and minutes, and each part once.
fn check_pattern(pattern: &str, with_time: bool) -> Result<(), String> {
    if pattern.chars().count() > PATTERN_MAX {
        return Err(format!("is longer than {PATTERN_MAX} characters"));
    }
    let mut seen = String::new();
    let mut rest = pattern.chars();
    while let Some(next) = rest.next() {
        if next.is_ascii_digit() || name::is_invisible(next) {
            return Err(
                "may not contain digits, or anything invisible next to its parts".to_owned(),
            );
        }
        if next != '%' {
            continue;
        }
        let mut part = rest.next();
        let unpadded = part == Some('-');
        if unpadded {
            part = rest.next();
        }
        let known = if with_time { "dmbBYyHIMSp" } else { "dmbBYy" };
        let known = if unpadded {
            known.replace(['b', 'B', 'Y', 'y', 'p'], "")
        } else {
            known.to_owned()
        };
        match part {
            Some(part) if known.contains(part) => seen.push(part),
            _ => {
                let dash = if unpadded { "-" } else { "" };
                let part = format!("%{dash}{}", part.map(String::from).unwrap_or_default());
                let all: Vec<String> = known.chars().map(|part| format!("%{dash}{part}")).collect();
                return Err(format!(
                    "has the unknown part {}; known ones: {}",
                    name::quoted(&part),
                    all.join(" ")
                ));
            }
        }
    }
    let count = |parts: &str| seen.chars().filter(|part| parts.contains(*part)).count();
    for (parts, least, what) in [
        ("d", 1, "the day (%d)"),
        ("mbB", 1, "the month (%m)"),
        ("Yy", 1, "the year (%Y)"),
        ("HI", usize::from(with_time), "the hour (%H)"),
        ("M", usize::from(with_time), "the minute (%M)"),
        ("S", 0, "the second (%S)"),
    ] {
        if count(parts) < least {
            return Err(format!("must say {what}"));
        }
        if count(parts) > 1 {
            return Err(format!("says {what} twice"));
        }
    }
    if count("I") != count("p") {
        return Err("must say %I and %p together, or %H".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for pattern in [
            "# €",
            "$#",
            "US$ #",
            "#%",
            "#\u{a0}kg",
            "# m²",
            "Rs. #",
            "CHF #",
        ] {
            assert_eq!(check_unit(pattern), Ok(()), "{pattern}");
        }
        for (pattern, wrong) in [
            ("€", "one #"),
            ("# # €", "one #"),
            ("", "one #"),
            ("#", "no unit"),
            ("  # ", "no unit"),
            ("#,€", "a part of it"),
            ("# m2", "digits"),
            ("-#€", "a part of it"),
            ("# kg ", "blanks"),
            ("#\u{200b}kg", "invisible"),
            ("# a unit of many words", "longer"),
        ] {
            let refused = check_unit(pattern).expect_err(pattern);
            assert!(refused.contains(wrong), "{pattern}: {refused}");
        }
    }

    #[test]
    fn patterns() {
        for (pattern, with_time) in [
            ("%d/%m/%Y", false),
            ("%-d.%-m.%y", false),
            ("%B %-d, %Y", false),
            ("%d.%m.%Y %H:%M", true),
            ("%m/%d/%Y %I:%M:%S %p", true),
        ] {
            assert_eq!(check_pattern(pattern, with_time), Ok(()), "{pattern}");
        }
        for (pattern, with_time, wrong) in [
            ("%d/%m", false, "the year"),
            ("%d/%m/%Y/%d", false, "twice"),
            ("%d/%m/%Y %H:%M", false, "'%H'"),
            ("%d/%m/%Y", true, "the hour"),
            ("%d/%m/%Y %I:%M", true, "%p"),
            ("%d/%m/20%y", false, "digits"),
            ("%d/%m/%-Y", false, "'%-Y'"),
            ("%d/%m/%Y%", false, "'%'"),
            ("%D", false, "'%D'"),
            ("", false, "the day"),
        ] {
            let refused = check_pattern(pattern, with_time).expect_err(pattern);
            assert!(refused.contains(wrong), "{pattern}: {refused}");
        }
        assert!(
            check_pattern(&"%d/%m/%Y ".repeat(5), false)
                .is_err_and(|message| message.contains("longer"))
        );
    }
}
