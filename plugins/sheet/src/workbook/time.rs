//! Dates, times of day and durations of workbooks as text, the same from every format. XLSX has numbers of days, whose
//! meaning the format of the cell gives; ODS has ISO 8601.

use calamine::{Data, ExcelDateTime};
use weir_plugin_sdk::value::{Datetime, is_date};
use weir_plugin_sdk::{Type, Zone};

use super::MIDNIGHT;

/// The day that Excel counts and that never was: 1900-02-29.
const FALSE_LEAP_DAY: u64 = 60;
/// 9999-12-31, by both ways of counting.
const LAST_DAY: u64 = 2_958_465;
const LAST_DAY_1904: u64 = 2_957_003;
const DAY_MS: f64 = 86_400_000.0;

/// Returns the code of a number format. Excel writes formats of Chinese, Japanese and Korean only by number, and calamine has no
/// code for them: 32 and 33 are times of day in all three, the others are a time in one and a date in another.
pub(super) fn code_of(id: Option<u32>, code: &str, days: f64) -> &str {
    match id {
        Some(32 | 33) if code == "General" => "h:mm",
        // A date has a day.
        Some(34 | 35 | 55 | 56) if code == "General" && days > 0.0 && days < 1.0 => "h:mm",
        _ => code,
    }
}

/// Returns what a number of days is in a cell of this format; nothing if it is not a date, as Excel shows `####`.
pub(super) fn from_days(days: ExcelDateTime, format: Option<&str>, from_1904: bool) -> Data {
    let value = days.as_f64();
    let is_time = format.is_some_and(shows_time_alone);
    if days.is_duration() || (is_time && (0.0..1.0).contains(&value)) {
        return clock(value * DAY_MS).map_or(Data::Empty, Data::DurationIso);
    }
    let (first, last) = match from_1904 {
        true => (0, LAST_DAY_1904),
        false => (1, LAST_DAY),
    };
    let day = value.floor();
    let is_day = day >= first as f64 && day <= last as f64;
    if !is_day || (!from_1904 && day as u64 == FALSE_LEAP_DAY) {
        return Data::Empty;
    }
    let (year, month, day, hour, minute, second, milli) = days.to_ymd_hms_milli();
    let fraction = fraction_text(u64::from(milli));
    Data::DateTimeIso(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}"
    ))
}

/// Returns the text of a date or a time in ISO 8601; `None` if a record cannot hold it. A date without a time becomes its
/// midnight as everywhere else here.
pub(super) fn from_iso(text: &str) -> Option<String> {
    // A time of day in a cell of dates: the day that its number counts from was never meant.
    if text.starts_with("1899-12-30T") {
        return None;
    }
    if is_date(text) {
        return Some(format!("{text}{MIDNIGHT}"));
    }
    let spaced = text.replacen('T', " ", 1);
    if Datetime::parse(&spaced, &Zone::utc()).is_some() {
        return Some(spaced);
    }
    // A time without a date, as XLSX may have it too.
    from_clock(text.strip_prefix('T').unwrap_or(text))
}

fn from_clock(text: &str) -> Option<String> {
    seconds_of(text).is_some().then(|| text.to_owned())
}

/// Returns the text of a duration in ISO 8601, as ODS has times of day and durations: `PT26H30M00S` is `26:30:00`.
pub(super) fn from_iso_duration(text: &str) -> Option<String> {
    let (sign, unsigned) = signed(text);
    let Some(unsigned) = unsigned.strip_prefix('P') else {
        return from_clock(text);
    };
    let (days, time) = unsigned.split_once('T')?;
    let mut total = match days {
        "" => 0.0,
        days => DAY_MS * days.strip_suffix('D')?.parse::<u32>().ok().map(f64::from)?,
    };
    let mut rest = time;
    for (unit, length) in [('H', 3_600_000.0), ('M', 60_000.0), ('S', 1_000.0)] {
        if let Some((number, behind)) = rest.split_once(unit) {
            total += length * number.replace(',', ".").parse::<f64>().ok()?;
            rest = behind;
        }
    }
    rest.is_empty().then(|| clock(sign * total)).flatten()
}

/// Returns `09:00:00`, and for a duration of a day or more `26:30:00`.
fn clock(milliseconds: f64) -> Option<String> {
    let rounded = milliseconds.round();
    // Excel counts no further than its last day.
    if rounded.is_nan() || rounded.abs() >= LAST_DAY as f64 * DAY_MS {
        return None;
    }
    let sign = if rounded < 0.0 { "-" } else { "" };
    let total = rounded.abs() as u64;
    let (seconds, milli) = (total / 1000, total % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = fraction_text(milli);
    Some(format!(
        "{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}"
    ))
}

fn signed(text: &str) -> (f64, &str) {
    match text.strip_prefix('-') {
        Some(unsigned) => (-1.0, unsigned),
        None => (1.0, text),
    }
}

fn fraction_text(milli: u64) -> String {
    match milli {
        0 => String::new(),
        milli => format!(".{milli:03}"),
    }
}

/// Returns `true` for the format of a cell that shows a time and no day: `h:mm`, `mm:ss`.
fn shows_time_alone(format: &str) -> bool {
    let mut marks = format.chars();
    let (mut has_time, mut has_day) = (false, false);
    while let Some(mark) = marks.next() {
        match mark {
            // Literal text.
            '"' => drop(marks.by_ref().find(|mark| *mark == '"')),
            '\\' | '_' | '*' => drop(marks.next()),
            '[' => drop(marks.by_ref().find(|mark| *mark == ']')),
            ';' => break,
            'h' | 'H' | 's' | 'S' => has_time = true,
            'y' | 'Y' | 'd' | 'D' => has_day = true,
            _ => {}
        }
    }
    has_time && !has_day
}

/// Returns the seconds of `09:00:00`, a time of day or a duration.
fn seconds_of(clock: &str) -> Option<f64> {
    let (sign, unsigned) = signed(clock);
    let (hours, rest) = unsigned.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = seconds.split_once('.').map_or(seconds, |(whole, _)| whole);
    if hours.len() < 2 || minutes.len() != 2 || whole.len() != 2 {
        return None;
    }
    let fraction = &seconds[whole.len()..];
    if ![hours, minutes, whole, fraction.trim_start_matches('.')]
        .into_iter()
        .all(is_digits)
    {
        return None;
    }
    let number = |text: &str| text.parse::<f64>().ok();
    Some(sign * (number(hours)? * 3600.0 + number(minutes)? * 60.0 + number(seconds)?))
}

/// Returns what versions published before such texts were read have recorded for a time of day or a duration: a point in
/// time, or a number of days.
pub(crate) fn as_published_before(clock: &str, kind: Type) -> Option<String> {
    let seconds = seconds_of(clock)?;
    match kind {
        Type::Datetime => (0.0..86_400.0)
            .contains(&seconds)
            .then(|| format!("1899-12-31 {clock}")),
        Type::Number | Type::Decimal | Type::Integer => Some((seconds / 86_400.0).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use calamine::ExcelDateTimeType;

    use super::super::text_of;
    use super::*;

    #[test]
    fn days_are_dates_times_or_nothing() {
        for (value, format, from_1904, expected) in [
            (45000.0, "mm-dd-yy", false, Some("2023-03-15 00:00:00")),
            (
                45000.4375,
                "m/d/yy h:mm",
                false,
                Some("2023-03-15 10:30:00"),
            ),
            (60.0, "mm-dd-yy", false, None),
            (60.5, "mm-dd-yy h:mm", false, None),
            (60.0, "mm-dd-yy", true, Some("1904-03-01 00:00:00")),
            (59.0, "mm-dd-yy", false, Some("1900-02-28 00:00:00")),
            (61.0, "mm-dd-yy", false, Some("1900-03-01 00:00:00")),
            (0.0, "mm-dd-yy", false, None),
            (-1.0, "mm-dd-yy", false, None),
            (2_958_465.0, "mm-dd-yy", false, Some("9999-12-31 00:00:00")),
            (2_958_466.0, "mm-dd-yy", false, None),
            (2_957_004.0, "mm-dd-yy", true, None),
            (f64::NAN, "mm-dd-yy", false, None),
            (0.375, "h:mm", false, Some("09:00:00")),
            (0.0, "h:mm AM/PM", false, Some("00:00:00")),
            (0.375, "yyyy-mm-dd hh:mm", false, None),
            (0.75, "mm:ss.0", false, Some("18:00:00")),
            (45000.375, "hh:mm", false, Some("2023-03-15 09:00:00")),
            (0.375, "\"day\" h\\d:mm", false, Some("09:00:00")),
            (-0.5, "h:mm", false, None),
        ] {
            let days = ExcelDateTime::new(value, ExcelDateTimeType::DateTime, from_1904);
            let text = text_of(&from_days(days, Some(format), from_1904));
            assert_eq!(text, expected.unwrap_or_default(), "{value} {format}");
        }
        for (value, expected) in [
            (1.1041666666666667, Some("26:30:00")),
            (0.375, Some("09:00:00")),
            (-0.0625, Some("-01:30:00")),
            (1e300, None),
        ] {
            let days = ExcelDateTime::new(value, ExcelDateTimeType::TimeDelta, false);
            let text = text_of(&from_days(days, Some("[h]:mm"), false));
            assert_eq!(text, expected.unwrap_or_default(), "{value}");
        }
    }

    #[test]
    fn iso_8601_is_the_same_text() {
        for (text, expected) in [
            ("2024-02-29", Some("2024-02-29 00:00:00")),
            ("2024-02-29T10:30:00", Some("2024-02-29 10:30:00")),
            ("1850-01-01", Some("1850-01-01 00:00:00")),
            ("1899-12-30T09:00:00", None),
            ("12024-01-01", None),
            ("2024-02-29 10:30:00", Some("2024-02-29 10:30:00")),
            ("09:00:00", Some("09:00:00")),
            ("T09:00:00.5", Some("09:00:00.5")),
            ("26:30:00", Some("26:30:00")),
            ("9:00", None),
            ("2023-02-29", None),
        ] {
            assert_eq!(from_iso(text).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("PT09H00M00S", Some("09:00:00")),
            ("PT26H30M00S", Some("26:30:00")),
            ("PT00H00M01.5000000S", Some("00:00:01.500")),
            ("-PT1H30M", Some("-01:30:00")),
            ("P1DT2H", Some("26:00:00")),
            ("PT1Y", None),
            ("9 hours", None),
        ] {
            assert_eq!(from_iso_duration(text).as_deref(), expected, "{text}");
        }
    }
}
