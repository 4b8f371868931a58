//! Selects records by their members and time.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

use super::{AuditRecord, RecordPlace};
use crate::ChainName;

/// The kinds of records.
pub const RECORD_KINDS: [&str; 5] = ["call", "intent", "refused", "admin", "chain"];

/// The outcomes of calls.
pub const CALL_OUTCOMES: [&str; 5] = ["ok", "refused", "failed", "cancelled", "unknown"];

/// A filter. A part that is `None` or empty takes all.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Records that stand before that one.
    pub before: Option<RecordPlace>,
    /// Any of them: `call`, `intent`, `refused`, `admin`, `chain`.
    pub kinds: Vec<String>,
    pub agent: Option<String>,
    pub tenant: Option<String>,
    pub tool: Option<String>,
    /// `name` for every version, or `name@version`.
    pub contract: Option<String>,
    pub outcome: Option<String>,
    pub call_id: Option<String>,
    /// Anywhere in the line.
    pub text: Option<String>,
    /// The maximum number of records; the oldest are taken.
    pub limit: Option<usize>,
}

/// A segment is skipped if it ended, or began, this long before or after the requested time: the clock may have been set
/// back.
const CLOCK_MARGIN: SignedDuration = SignedDuration::from_hours(1);

impl AuditFilter {
    /// Returns `true` if `until` is not later than `since`, so that no record can match.
    pub fn has_no_time(&self) -> bool {
        let range = self.since.zip(self.until);
        range.is_some_and(|(since, until)| until <= since)
    }

    /// Returns `true` if nothing that is asked for was written by then.
    pub(super) fn is_before(&self, time: Timestamp) -> bool {
        self.since
            .and_then(|since| since.checked_sub(CLOCK_MARGIN).ok())
            .is_some_and(|since| time < since)
    }

    /// Returns `true` if nothing that is asked for was written from then on.
    pub(super) fn is_after(&self, time: Timestamp) -> bool {
        let before = self.before.as_ref().map(|place| place.time);
        let ends = self.until.into_iter().chain(before);
        ends.filter_map(|end| end.checked_add(CLOCK_MARGIN).ok())
            .any(|end| time > end)
    }

    /// Returns the record of the line, if it is one and matches.
    pub(super) fn record(&self, chain: &ChainName, line: &[u8]) -> Option<AuditRecord> {
        // This is checked before the line is parsed, since most lines do not match.
        let wanted = [&self.text, &self.call_id].into_iter().flatten();
        let mut wanted = wanted.map(|text| text.as_str()).peekable();
        if wanted.peek().is_some() {
            let line = std::str::from_utf8(line).ok()?;
            if !wanted.all(|text| line.contains(text)) {
                return None;
            }
        }
        AuditRecord::parse(chain, line).filter(|record| self.matches(record))
    }

    fn matches(&self, record: &AuditRecord) -> bool {
        let is = |member: &str, wanted: &Option<String>| {
            wanted
                .as_deref()
                .is_none_or(|wanted| record.text(member) == Some(wanted))
        };
        let kind = || {
            record
                .text("kind")
                .is_some_and(|kind| self.kinds.iter().any(|wanted| wanted == kind))
        };
        let contract = |wanted: &String| {
            let contract = record.text("contract").unwrap_or_default();
            contract == wanted
                || contract
                    .split_once('@')
                    .is_some_and(|(name, _)| name == wanted)
        };
        self.since.is_none_or(|since| record.time >= since)
            && self.until.is_none_or(|until| record.time < until)
            && self
                .before
                .as_ref()
                .is_none_or(|before| record.place() < *before)
            && (self.kinds.is_empty() || kind())
            && is("agent", &self.agent)
            && is("tenant", &self.tenant)
            && is("tool", &self.tool)
            && is("outcome", &self.outcome)
            && is("call_id", &self.call_id)
            && self.contract.as_ref().is_none_or(contract)
    }
}

/// The error for a text that is not a time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time is like 2026-08-22T10:15:30Z, 2026-08-22 (in UTC), or 90s, 15m, 2h, 7d ago")]
pub struct NotATime;

/// Reads a time, for command lines and query strings.
pub fn parse_time(text: &str) -> Result<Timestamp, NotATime> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(date) = text.parse::<Date>() {
        return date
            .to_zoned(TimeZone::UTC)
            .map(|start| start.timestamp())
            .map_err(|_| NotATime);
    }
    let unit_seconds = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        _ => return Err(NotATime),
    };
    let count: u32 = text[..text.len() - 1].parse().map_err(|_| NotATime)?;
    let ago = SignedDuration::from_secs(i64::from(count) * unit_seconds);
    Timestamp::now().checked_sub(ago).map_err(|_| NotATime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_command_line() {
        assert_eq!(
            parse_time("2026-08-22").unwrap().to_string(),
            "2026-08-22T00:00:00Z"
        );
        assert_eq!(
            parse_time("2026-08-22T10:15:30+02:00").unwrap().to_string(),
            "2026-08-22T08:15:30Z"
        );
        let two_hours_ago = parse_time("2h").unwrap();
        assert_eq!(Timestamp::now().duration_since(two_hours_ago).as_hours(), 2);
        for wrong in [
            "",
            "h",
            "-1h",
            "2w",
            "é",
            "2026-13-01",
            "99999999999d",
            "4294967295d",
        ] {
            assert_eq!(parse_time(wrong), Err(NotATime), "{wrong}");
        }
    }
}
