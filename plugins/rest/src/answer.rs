//! Reads answers: status codes become our errors, and bodies must be JSON if that was promised.

mod charset;
pub(crate) mod lenient;
pub(crate) mod record;

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_plugin_sdk::serde_json::{self, json, value::RawValue};
use weir_plugin_sdk::{Error, clock, http};

use crate::settings::{RestSettings, ServiceErrors};
use crate::words;

/// Sends a request. What the service answers in a charset that is known is UTF-8 then.
pub(crate) fn send(request: &http::Request) -> Result<http::Response, Error> {
    let mut response = http::send(request)?;
    if let Some(text) = charset::decode_body(&response) {
        response.body = text.into_bytes();
    }
    Ok(response)
}

/// Returns the answer's body, or the error its status means. The caller interprets `not_found`, since only it knows
/// whether it asked for a record or a list.
pub(crate) fn checked(response: &http::Response) -> Result<&[u8], Error> {
    let error = match response.status {
        200..300 => return Ok(without_mark(&response.body)),
        404 | 410 => Error::not_found("There is no record with this key."),
        409 | 412 => Error::conflict(
            "The web service refuses the change: it is in conflict with what is there.",
        ),
        400 | 422 => Error::invalid("The web service refuses the values."),
        401 | 403 => Error::upstream_error("The web service refuses the connection's credentials."),
        408 | 504 => Error::new("timeout", "The web service did not answer in time."),
        429 => Error::new("rate_limited", "The web service asks for fewer calls."),
        502 | 503 => Error::unavailable("The web service is not available."),
        _ => Error::upstream_error("The web service answers with an error."),
    };
    let error = match retry_after_ms(response) {
        Some(wait) if matches!(response.status, 429 | 503) => error.retry_after_ms(wait),
        _ => error,
    };
    let body: String = String::from_utf8_lossy(&response.body)
        .chars()
        .take(500)
        .collect();
    let mut details = json!({ "status": response.status, "body": body });
    if let Some(words) = words::refusal_words(response, without_mark(&response.body)) {
        details["says"] = words.into();
    }
    Err(error.details(details))
}

/// Adds the service's own words about a refusal to the sentence that the agent reads, unless the settings hide them.
pub(crate) fn with_words(error: Error, settings: &RestSettings) -> Error {
    let details = error.details.as_deref().map(serde_json::from_str);
    let Some(Ok(RefusalDetails { says: Some(words) })) =
        details.filter(|_| settings.errors == ServiceErrors::Shown)
    else {
        return error;
    };
    Error {
        message: format!("{} It says: \"{words}\"", error.message),
        ..error
    }
}

/// The part of an error's details that is read again.
#[derive(Deserialize)]
struct RefusalDetails {
    says: Option<String>,
}

/// Passes over a byte order mark, as RFC 8259 lets readers do: some services begin their JSON with one.
fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body)
}

/// Returns the JSON at a pointer, with its numbers as they were written; `None` if the body is empty or nothing is
/// there.
pub(crate) fn at<'a>(body: &'a [u8], pointer: &str) -> Result<Option<&'a RawValue>, Error> {
    let body = without_mark(body);
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let raw: &RawValue = serde_json::from_slice(body)
        .map_err(|_| Error::upstream_error("The web service does not answer JSON."))?;
    Ok(inside(raw, pointer))
}

/// The lists of an answer that are named at most, and the members deep that they are looked for.
const LISTS_MAX: usize = 8;
const LISTS_DEPTH: usize = 3;

/// Returns the error for an answer without a list at its place. The details name where else it has lists of records.
pub(crate) fn misplaced_list(body: &[u8]) -> Error {
    let mut lists = Vec::new();
    if let Ok(body) = serde_json::from_slice(without_mark(body)) {
        add_lists(&body, String::new(), &mut lists);
    }
    Error::upstream_error("The web service's list is not where it should be.")
        .details(json!({ "lists": lists }))
}

fn add_lists(value: &serde_json::Value, place: String, lists: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(items) => {
            let is_list = items.first().is_some_and(serde_json::Value::is_object);
            if is_list && lists.len() < LISTS_MAX {
                lists.push(place);
            }
        }
        serde_json::Value::Object(members) if place.matches('/').count() < LISTS_DEPTH => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                add_lists(value, format!("{place}/{name}"), lists);
            }
        }
        _ => {}
    }
}

/// Lists where an answer has lists of records, for a person who describes the service.
pub(crate) fn with_lists(error: Error) -> Error {
    #[derive(Deserialize)]
    struct FoundLists {
        lists: Vec<String>,
    }
    let found = error.details.as_deref().map(serde_json::from_str);
    let Some(Ok(FoundLists { lists })) = found else {
        return error;
    };
    let more = match &lists[..] {
        [] => " It has no list of records; name where it is by `records`.".to_owned(),
        lists => format!(
            " There are records at `{}`: name the place by `records`.",
            lists.join("`, `")
        ),
    };
    Error {
        message: format!("{}{more}", error.message),
        ..error
    }
}

/// Follows a JSON Pointer in raw JSON.
pub(crate) fn inside<'a>(mut raw: &'a RawValue, pointer: &str) -> Option<&'a RawValue> {
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        raw = if raw.get().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
            items.get(step.parse::<usize>().ok()?).copied()?
        } else {
            members(raw)?.remove(&step)?
        };
    }
    Some(raw)
}

pub(crate) fn members(raw: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// Seconds, or a date.
fn retry_after_ms(response: &http::Response) -> Option<u32> {
    let text = response.header("retry-after")?.trim();
    let wait = match text.parse::<u64>() {
        Ok(seconds) => seconds.saturating_mul(1000),
        Err(_) => http_date_ms(text)?.saturating_sub(clock::now_ms()),
    };
    Some(u32::try_from(wait).unwrap_or(u32::MAX))
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, and the two forms that HTTP had before: `Sunday, 06-Nov-94 08:49:37 GMT` and
/// `Sun Nov  6 08:49:37 1994`.
fn http_date_ms(text: &str) -> Option<u64> {
    let date = match text.split_once(", ") {
        Some((_, date)) => date.replace('-', " "),
        None => {
            let parts: Vec<&str> = text.split_ascii_whitespace().collect();
            let [_, month, day, time, year] = parts[..] else {
                return None;
            };
            format!("{day} {month} {year} {time}")
        }
    };
    let mut parts = date.split(' ');
    let day: i64 = parts.next()?.parse().ok()?;
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let name = parts.next()?;
    let month = months.iter().position(|month| *month == name)? as i64 + 1;
    let year = match parts.next()?.parse::<i64>().ok()? {
        year @ 70..=99 => 1900 + year,
        year @ 0..70 => 2000 + year,
        year => Some(year).filter(|year| (1970..=9999).contains(year))?,
    };
    let mut time = parts
        .next()?
        .split(':')
        .map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    // Days since 1970, with the year beginning in March so that leap days come last.
    let (shifted_year, shifted_month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = shifted_year * 365 + shifted_year / 4 - shifted_year / 100
        + shifted_year / 400
        + (153 * shifted_month + 2) / 5
        + day
        - 1
        - 719_468;
    u64::try_from((days * 86_400 + hour * 3600 + minute * 60 + second) * 1000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        assert_eq!(
            http_date_ms("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777_000)
        );
        assert_eq!(
            http_date_ms("Thu, 29 Feb 2024 00:00:00 GMT"),
            Some(1_709_164_800_000)
        );
        for same in ["Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(http_date_ms(same), Some(784_111_777_000), "{same}");
        }
        for none in ["tomorrow", "Sun, 06 Nov 1066 08:49:37 GMT", "a b c d e"] {
            assert_eq!(http_date_ms(none), None, "{none}");
        }
    }
}
