//! The value table: which JSON texts are values of which type, one rule for all sources.

use crate::shape::ValueType;

/// Money, NUMERIC, identifiers of 15 digits and more: digits that no double may touch.
pub const DECIMAL_PATTERN: &str = r"^-?\d+(\.\d+)?$";

/// Returns `true` if a JSON string is a value of that type.
pub(crate) fn is_text_of(kind: ValueType, text: &str) -> bool {
    match kind {
        ValueType::String | ValueType::Json => true,
        ValueType::Decimal => is_decimal(text),
        ValueType::Date => is_date(text),
        ValueType::Datetime => is_datetime(text),
        _ => false,
    }
}

/// Returns `true` for `^-?\d+(\.\d+)?$` with ASCII digits.
pub fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    match unsigned.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(unsigned),
    }
}

/// Returns `true` for `YYYY-MM-DD` if the day exists.
pub fn is_date(text: &str) -> bool {
    date(text).is_some()
}

/// Returns `true` for RFC 3339 in UTC: `YYYY-MM-DDTHH:MM:SS[.fraction]Z`, in capitals.
pub fn is_datetime(text: &str) -> bool {
    text.ends_with('Z')
        && text.as_bytes().get(10) == Some(&b'T')
        && utc(text).as_deref() == Some(text)
}

/// Converts an RFC 3339 time with any offset to the same instant in UTC with `Z`; a fraction is kept as written. A
/// leap second has no separate instant in most sources: it becomes the following second.
pub fn utc(text: &str) -> Option<String> {
    if !text.is_ascii() {
        return None;
    }
    let (day, rest) = (text.get(..10)?, text.get(10..)?);
    let days = date(day)?;
    let rest = rest.strip_prefix(['T', 't'])?;
    let (clock, rest) = (rest.get(..8)?, rest.get(8..)?);
    let bytes = clock.as_bytes();
    if bytes[2] != b':' || bytes[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (
        two(&clock[..2], 23)?,
        two(&clock[3..5], 59)?,
        two(&clock[6..8], 60)?,
    );
    let fraction_length = match rest.strip_prefix('.') {
        Some(digits) => 1 + digits.bytes().take_while(u8::is_ascii_digit).count(),
        None => 0,
    };
    if fraction_length == 1 {
        return None;
    }
    let (fraction, zone) = rest.split_at(fraction_length);
    let offset_minutes = match zone {
        "Z" | "z" => 0,
        _ => {
            let sign = match zone.as_bytes().first()? {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            sign * (two(hours, 23)? * 60 + two(minutes, 59)?)
        }
    };
    let seconds = days * 86_400 + hour * 3_600 + (minute - offset_minutes) * 60 + second;
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    if !(0..=9_999).contains(&year) {
        return None;
    }
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"
    ))
}

/// Returns a number's digits without an exponent, as a decimal.
pub fn decimal_of(number: &serde_json::Number) -> String {
    let text = number.to_string();
    let Some((digits, exponent)) = text.split_once(['e', 'E']) else {
        return text;
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return text;
    };
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let point = whole.len() as i32 + exponent;
    let (whole, fraction) = match point {
        ..=0 => (
            "0".to_owned(),
            format!("{}{all}", "0".repeat(point.unsigned_abs() as usize)),
        ),
        point if point as usize >= all.len() => (
            format!("{all}{}", "0".repeat(point as usize - all.len())),
            String::new(),
        ),
        point => (
            all[..point as usize].to_owned(),
            all[point as usize..].to_owned(),
        ),
    };
    let fraction = fraction.trim_end_matches('0');
    match fraction.is_empty() {
        true => format!("{sign}{whole}"),
        false => format!("{sign}{whole}.{fraction}"),
    }
}

/// Returns the days since 1970-01-01 of a day that exists.
fn date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if !text.is_ascii() || bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = two(&text[..2], 99)? * 100 + two(&text[2..4], 99)?;
    let (month, day) = (two(&text[5..7], 12)?, two(&text[8..10], 31)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    (month >= 1 && (1..=last).contains(&day)).then(|| days(year, month, day))
}

fn two(text: &str, max: i64) -> Option<i64> {
    let valid = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|value| valid && *value <= max)
}

/// Returns the days since 1970-01-01, by Howard Hinnant's `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns the day, by its inverse `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let years = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (years + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for good in ["0", "-0", "007", "1.50", "-12345678901234567890.1"] {
            assert!(is_decimal(good), "{good}");
        }
        for bad in ["", "-", ".5", "5.", "1e3", "+1", " 1", "1\n", "١", "1.2.3"] {
            assert!(!is_decimal(bad), "{bad}");
        }
        for good in ["2024-02-29", "2000-02-29", "0000-01-01", "9999-12-31"] {
            assert!(is_date(good), "{good}");
        }
        for bad in [
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-01-00",
            "24-01-01",
            "2024-1-01",
            "+024-01-01",
            "aé1-01-01x",
        ] {
            assert!(!is_date(bad), "{bad}");
        }
        for good in ["2024-02-29T23:59:59Z", "2024-02-29T23:59:59.120Z"] {
            assert!(is_datetime(good), "{good}");
        }
        for bad in [
            "2024-02-29T23:59:59",
            "2024-02-29 23:59:59Z",
            "2024-02-29T23:59:59.Z",
            "2024-02-29t23:59:59Z",
            "2024-02-29T24:00:00Z",
            "2024-02-29T23:59:59+00:00",
            "2024-02-29T23:59:60Z",
        ] {
            assert!(!is_datetime(bad), "{bad}");
        }
    }

    #[test]
    fn instants_move_to_utc() {
        for (text, utc_text) in [
            ("2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z"),
            ("2024-12-31t23:30:00.5-01:00", "2025-01-01T00:30:00.5Z"),
            ("1969-12-31T23:59:59z", "1969-12-31T23:59:59Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ] {
            assert_eq!(utc(text).as_deref(), Some(utc_text));
        }
        assert_eq!(utc("9999-12-31T23:59:59-01:00"), None);
        for day in -800_000..800_000 {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }

    #[test]
    fn numbers_become_decimals() {
        for (number, text) in [
            (1e21, "1000000000000000000000"),
            (1.5e-7, "0.00000015"),
            (-2.5, "-2.5"),
            (1.25e20, "125000000000000000000"),
        ] {
            assert_eq!(
                decimal_of(&serde_json::Number::from_f64(number).expect("finite")),
                text
            );
        }
    }
}
