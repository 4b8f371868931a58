//! Points in time kept as text in any spelling, brought to one that compares bytewise.
//!
//! The reading is that of the value table (`weir-plugin-sdk`, `value/datetime.rs`), which a guest cannot run for every
//! row of a table.

use jiff::{
    SignedDuration, civil,
    fmt::temporal::Pieces,
    tz::{AmbiguousOffset, TimeZone},
};

/// Returns `2024-05-06T05:08:09.500000000Z`, or `None` if the text is not a point in time.
pub(super) fn canonical(text: &str, zone: &TimeZone) -> Option<String> {
    let bytes = text.as_bytes();
    if !(16..=40).contains(&bytes.len())
        || bytes[13] != b':'
        || !matches!(bytes[10], b'T' | b't' | b' ')
    {
        return None;
    }
    if text.contains('[') || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let pieces = Pieces::parse(text).ok()?;
    let civil = civil::DateTime::from_parts(pieces.date(), pieces.time()?);
    let offset = pieces.to_numeric_offset().unwrap_or_else(|| {
        match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
        }
    });
    // This does not use `jiff::Timestamp`, which ends a day before the year 9999 does.
    let utc = civil
        .checked_sub(SignedDuration::from_secs(offset.seconds().into()))
        .ok()?;
    (0..=9999)
        .contains(&utc.year())
        .then(|| format!("{utc:.9}Z"))
}

/// Reads `UTC`, an offset or an IANA name.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    match name {
        "UTC" => Some(TimeZone::UTC),
        _ if name.starts_with(['+', '-']) => jiff::fmt::temporal::DateTimeParser::new()
            .parse_time_zone(name)
            .ok(),
        _ => TimeZone::get(name).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_moment_are_one_text() {
        let vienna = zone("Europe/Vienna").expect("known");
        for text in [
            "2024-07-06 07:08:09.5",
            "2024-07-06T05:08:09.500Z",
            "2024-07-06 05:08:09.5+00",
            "2024-07-06t07:08:09.5+02:00",
        ] {
            assert_eq!(
                canonical(text, &vienna).as_deref(),
                Some("2024-07-06T05:08:09.500000000Z"),
                "{text}"
            );
        }
        for (text, expected) in [
            ("9999-12-31 23:59:59+00", "9999-12-31T23:59:59.000000000Z"),
            ("9999-12-31 23:59:59", "9999-12-31T22:59:59.000000000Z"),
            ("2024-10-27 02:30:00", "2024-10-27T00:30:00.000000000Z"),
            ("2024-03-31 02:30:00", "2024-03-31T01:30:00.000000000Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000000Z"),
        ] {
            assert_eq!(
                canonical(text, &vienna).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        let beyond = ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"];
        for text in ["2024-07-06", "noon", "", "20240706T070809"]
            .into_iter()
            .chain(beyond)
        {
            assert_eq!(canonical(text, &vienna), None, "{text}");
        }
    }
}
