//! The time zones of collections: the offsets and names that adapters can read.

use jiff::tz::{self, TimeZoneName};

use super::FileProblems;
use crate::{form::FormCollection, name, shape::CollectionShape};

/// Checks that the zone of a collection is known, whether the contract names it or its source. With an unknown one, each call
/// would fail.
pub(super) fn check(
    entry: &FormCollection,
    described: Option<&CollectionShape>,
    problems: &mut FileProblems,
) {
    if let Some(zone) = &entry.timezone {
        if !is_known(zone) {
            let place = format!("{}/timezone", entry.place);
            problems.add_hint(place, "is not a time zone", hint(zone));
        }
        return;
    }
    let Some(zone) = described.and_then(|shape| shape.timezone.as_deref()) else {
        return;
    };
    if !is_known(zone) {
        let message = format!(
            "the shape of {} has the time zone {}, which is not known",
            entry.name,
            name::quoted(zone)
        );
        problems.add_hint(entry.place.clone(), message, hint(zone));
    }
}

/// Returns `true` for an offset or a name that the database of time zones has.
fn is_known(zone: &str) -> bool {
    match zone.strip_prefix(['+', '-']) {
        Some(offset) => is_offset(offset),
        None => tz::db().get(zone).is_ok(),
    }
}

/// Returns `true` for hours and minutes such as `02:00`.
fn is_offset(text: &str) -> bool {
    let is_number = |part: &str, max: u32| {
        part.len() == 2
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse().is_ok_and(|value: u32| value <= max)
    };
    text.split_once(':')
        .is_some_and(|(hours, minutes)| is_number(hours, 14) && is_number(minutes, 59))
}

/// Returns what to write in place of an unknown zone.
fn hint(zone: &str) -> String {
    let names: Vec<TimeZoneName<'_>> = tz::db().available().collect();
    match name::nearest(zone, names.iter().map(TimeZoneName::as_str)) {
        Some(near) => format!("did you mean '{near}'? An offset such as +02:00 is a zone too"),
        None => "write an IANA name such as Europe/Berlin, or an offset such as +02:00".to_owned(),
    }
}
