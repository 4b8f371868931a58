//! Points in time: any RFC 3339 or SQL spelling in, UTC with `Z` out.

use std::fmt;

use jiff::civil;
use jiff::fmt::temporal::{DateTimeParser, Pieces};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use crate::error::{Error, Result};

/// A time up to which `jiff::Timestamp` has all.
const LAST_TIMESTAMP: civil::DateTime = civil::datetime(9999, 12, 30, 0, 0, 0, 0);

/// A point in time, to the nanosecond, between the years 0000 and 9999.
///
/// Kept as UTC's calendar and clock: `jiff::Timestamp` ends a day before the year 9999 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Datetime(civil::DateTime);

impl Datetime {
    /// Reads `2024-05-06T07:08:09.5+02:00`, with a space for the `T`, without seconds, with a short offset (`+02`) or
    /// none: then it is a time in `zone`. A bare date is not a time.
    pub fn parse(text: &str, zone: &Zone) -> Option<Self> {
        let bytes = text.as_bytes();
        // jiff also reads ISO 8601's basic form (20240506T0708) and week dates; a spreadsheet's digits must not match.
        if bytes.len() < 16
            || bytes.len() > 40
            || !is_date(text.get(..10)?)
            || !matches!(bytes[10], b'T' | b't' | b' ')
        {
            return None;
        }
        if bytes[13] != b':' || text.contains('[') {
            return None;
        }
        let pieces = Pieces::parse(text).ok()?;
        let civil = civil::DateTime::from_parts(pieces.date(), pieces.time()?);
        let offset = pieces
            .to_numeric_offset()
            .unwrap_or_else(|| zone.offset_at(civil));
        Self::at_offset(civil, offset)
    }

    /// Returns the time of a calendar's day and a clock's time in `zone`.
    pub fn from_civil(
        year: i16,
        month: i8,
        day: i8,
        hour: i8,
        minute: i8,
        second: i8,
        zone: &Zone,
    ) -> Option<Self> {
        let civil = civil::DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
        Self::at_offset(civil, zone.offset_at(civil))
    }

    /// Returns what the calendar and clock of a zone show at this point in time, without an offset: `2024-05-06T07:08:09`.
    /// `None` at the very ends of the calendar.
    pub fn to_local(&self, zone: &Zone) -> Option<String> {
        let local = self.in_zone(zone)?;
        let text = (local.year() >= 0).then(|| Self(local).to_string())?;
        text.strip_suffix('Z').map(str::to_owned)
    }

    /// Returns the calendar and clock of a zone at this point in time; `None` at the very ends of the calendar.
    pub(super) fn in_zone(&self, zone: &Zone) -> Option<civil::DateTime> {
        let offset = match zone.0.to_fixed_offset() {
            Ok(offset) => offset,
            // No clocks change on the last days of the calendar.
            Err(_) => {
                let known = self.0.min(LAST_TIMESTAMP);
                zone.0.to_offset(TimeZone::UTC.to_timestamp(known).ok()?)
            }
        };
        let offset = jiff::SignedDuration::from_secs(offset.seconds().into());
        self.0.checked_add(offset).ok()
    }

    fn at_offset(civil: civil::DateTime, offset: Offset) -> Option<Self> {
        let utc = civil
            .checked_sub(jiff::SignedDuration::from_secs(offset.seconds().into()))
            .ok()?;
        (0..=9999).contains(&utc.year()).then_some(Self(utc))
    }
}

/// Writes `2024-05-06T05:08:09.5Z`, without zeros at the end of the fraction.
impl fmt::Display for Datetime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = self.0;
        let (year, month, day) = (civil.year(), civil.month(), civil.day());
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            civil.hour(),
            civil.minute(),
            civil.second()
        )?;
        if civil.subsec_nanosecond() != 0 {
            let fraction = format!("{:09}", civil.subsec_nanosecond());
            write!(formatter, ".{}", fraction.trim_end_matches('0'))?;
        }
        formatter.write_str("Z")
    }
}

/// The zone that zoneless datetimes of a collection are read in. In the hour a clock is set back the first reading is
/// taken; in the hour it skips, the time moves forward with the clock.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

impl Zone {
    /// Reads `UTC`, an offset (`+02:00`) or an IANA name (`Europe/Vienna`).
    pub fn parse(name: &str) -> Result<Self> {
        if name.eq_ignore_ascii_case("UTC") || name == "Z" {
            return Ok(Self(TimeZone::UTC));
        }
        if name.starts_with(['+', '-']) {
            let parsed = DateTimeParser::new().parse_time_zone(name).ok();
            return parsed.map(Self).ok_or_else(|| unknown_zone(name));
        }
        TimeZone::get(name)
            .map(Self)
            .map_err(|_| unknown_zone(name))
    }

    /// Returns the shape's zone, or UTC if it has none.
    pub fn from_shape(shape: &crate::Shape) -> Result<Self> {
        shape
            .timezone
            .as_deref()
            .map_or_else(|| Ok(Self::utc()), Self::parse)
    }

    /// Returns UTC.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Returns the offset of a time that does not state one.
    fn offset_at(&self, civil: civil::DateTime) -> Offset {
        match self.0.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
        }
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self::utc()
    }
}

fn unknown_zone(name: &str) -> Error {
    Error::invalid(format!(
        "The time zone {name:?} is neither UTC, an offset such as +02:00 nor an IANA name."
    ))
    .field("timezone")
}

/// Returns `true` for a date of the calendar written `YYYY-MM-DD`.
pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |from: usize, to: usize| -> Option<i16> {
        let digits = &bytes[from..to];
        if digits.iter().all(u8::is_ascii_digit) {
            Some(
                digits
                    .iter()
                    .fold(0, |sum, digit| sum * 10 + i16::from(digit - b'0')),
            )
        } else {
            None
        }
    };
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    civil::Date::new(year, month as i8, day as i8).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, zone: &str) -> Option<String> {
        Datetime::parse(text, &Zone::parse(zone).unwrap()).map(|datetime| datetime.to_string())
    }

    #[test]
    fn every_spelling_becomes_utc() {
        for (text, zone, expected) in [
            ("2024-05-06T07:08:09Z", "UTC", "2024-05-06T07:08:09Z"),
            ("2024-05-06t07:08:09z", "UTC", "2024-05-06T07:08:09Z"),
            (
                "2024-05-06T07:08:09.500+02:00",
                "UTC",
                "2024-05-06T05:08:09.5Z",
            ),
            (
                "2024-05-06 07:08:09.123456+00",
                "UTC",
                "2024-05-06T07:08:09.123456Z",
            ),
            ("2024-05-06 07:08", "UTC", "2024-05-06T07:08:00Z"),
            ("2024-05-06 07:08:09", "+02:00", "2024-05-06T05:08:09Z"),
            ("2024-05-06 07:08:09", "-0330", "2024-05-06T10:38:09Z"),
            (
                "2024-01-06 07:08:09",
                "Europe/Vienna",
                "2024-01-06T06:08:09Z",
            ),
            (
                "2024-07-06 07:08:09",
                "Europe/Vienna",
                "2024-07-06T05:08:09Z",
            ),
            (
                "2024-07-06T07:08:09Z",
                "Europe/Vienna",
                "2024-07-06T07:08:09Z",
            ),
            // The hour that Vienna lives twice, and the one it skips.
            (
                "2024-10-27 02:30:00",
                "Europe/Vienna",
                "2024-10-27T00:30:00Z",
            ),
            (
                "2024-03-31 02:30:00",
                "Europe/Vienna",
                "2024-03-31T01:30:00Z",
            ),
            ("0000-01-01T00:00:00Z", "UTC", "0000-01-01T00:00:00Z"),
            // Many sources write this for "never ends".
            ("9999-12-31 23:59:59+00", "UTC", "9999-12-31T23:59:59Z"),
            (
                "9999-12-31T23:59:59.999999999Z",
                "UTC",
                "9999-12-31T23:59:59.999999999Z",
            ),
            (
                "9999-12-31 23:59:59",
                "Europe/Vienna",
                "9999-12-31T22:59:59Z",
            ),
            (
                "9999-12-31 18:59:59",
                "America/New_York",
                "9999-12-31T23:59:59Z",
            ),
        ] {
            assert_eq!(
                read(text, zone).as_deref(),
                Some(expected),
                "{text} in {zone}"
            );
        }
        for text in [
            "2024-05-06",
            "20240506T070809",
            "2024-05-06T0708",
            "2024-02-30T00:00:00Z",
            "2024-05-06T25:00:00Z",
            "2024-05-06 07:08:09 Europe/Vienna",
            "2024-05-06T07:08:09[Europe/Vienna]",
            "2024-W19-1T07:08:09",
            "noon",
            "0000-01-01T00:00:00+02:00",
            "9999-12-31T23:59:59-01:00",
            "",
            "2024-05-06é07:08:09Z",
        ] {
            assert_eq!(read(text, "UTC"), None, "{text}");
        }
    }

    #[test]
    fn clocks_go_on_to_the_end_of_the_calendar() {
        for (moment, zone, expected) in [
            (
                "2024-07-06T05:08:09.5Z",
                "Europe/Vienna",
                Some("2024-07-06T07:08:09.5"),
            ),
            (
                "9999-12-31T22:59:59Z",
                "Europe/Vienna",
                Some("9999-12-31T23:59:59"),
            ),
            (
                "9999-12-31T23:59:59Z",
                "America/New_York",
                Some("9999-12-31T18:59:59"),
            ),
            ("9999-12-31T23:00:00Z", "Europe/Vienna", None),
            ("0000-01-01T00:00:00Z", "America/New_York", None),
        ] {
            let zone = Zone::parse(zone).unwrap();
            let moment = Datetime::parse(moment, &Zone::utc()).unwrap();
            assert_eq!(moment.to_local(&zone).as_deref(), expected, "{moment}");
        }
    }

    #[test]
    fn unknown_zones_are_refused() {
        for name in ["Mars/Olympus", "", "+99:00", "Europe/Wien; DROP"] {
            assert!(
                Zone::parse(name).is_err_and(|error| error.field.as_deref() == Some("timezone")),
                "{name}"
            );
        }
    }

    #[test]
    fn a_date_is_one_of_the_calendar() {
        assert!(is_date("2024-02-29"));
        for text in [
            "2023-02-29",
            "2024-1-1",
            "2024-13-01",
            "24-01-01",
            "2024-01-01 ",
            "2024/01/01",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }
}
