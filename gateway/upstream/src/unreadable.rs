//! Finds which request a text answers that is not JSON, such as one with `NaN` in it, or is more than one message.

use serde_json::{Deserializer, value::RawValue};

use crate::message::{IncomingMessage, own_id, without_mark};

/// Returns the id of an answer that is mostly unreadable. `None`: it has no id of this client, or is not an answer.
pub(crate) fn answered_id(text: &str) -> Option<u64> {
    let mut id = None;
    let members = members(text)?;
    if members.unfinished == Some("method") {
        return None;
    }
    for (name, value) in members.finished {
        match name {
            "method" => return None,
            "id" => id = Some(value),
            _ => {}
        }
    }
    let id: &RawValue = serde_json::from_str(id?.trim()).ok()?;
    own_id(id)
}

/// Returns `true` if a text begins as an answer does: a result or an error is in its first bytes, and no method.
pub(crate) fn begins_answer(text: &[u8]) -> bool {
    const BEGINNING_BYTES: usize = 256;
    let beginning = String::from_utf8_lossy(&text[..text.len().min(BEGINNING_BYTES)]);
    let Some(members) = members(without_mark(&beginning)) else {
        return false;
    };
    let finished = members.finished.iter().map(|(name, _)| *name);
    let names: Vec<&str> = finished.chain(members.unfinished).collect();
    !names.contains(&"method") && (names.contains(&"result") || names.contains(&"error"))
}

/// Returns the id of an answer of which only the beginning and the end are known; most programs write the id in one of these.
pub(crate) fn id_of_parts(beginning: &[u8], end: &[u8]) -> Option<u64> {
    const BEGINNING_BYTES: usize = 4096;
    if !begins_answer(beginning) {
        return None;
    }
    let beginning = String::from_utf8_lossy(&beginning[..beginning.len().min(BEGINNING_BYTES)]);
    answered_id(without_mark(&beginning)).or_else(|| id_at_end(&String::from_utf8_lossy(end)))
}

/// Returns the id that is the last member of a message, or the one before its version. The last brace is that of the message.
fn id_at_end(text: &str) -> Option<u64> {
    let inner = text.trim_end().strip_suffix('}')?.trim_end();
    let inner = without_version(inner).unwrap_or(inner);
    let (name, id) = inner.rsplit_once(':')?;
    let id: &RawValue = serde_json::from_str(id.trim()).ok()?;
    name.trim_end().strip_suffix("\"id\"")?;
    own_id(id)
}

fn without_version(inner: &str) -> Option<&str> {
    let name = inner.strip_suffix("\"2.0\"")?.trim_end();
    let name = name.strip_suffix(':')?.trim_end();
    let before = name.strip_suffix("\"jsonrpc\"")?.trim_end();
    before.strip_suffix(',')
}

/// Returns the id of an answer that is written after other text, such as the beginning of a log's line.
pub(crate) fn id_behind_text(text: &str) -> Option<u64> {
    const BEGINNINGS_MAX: usize = 8;
    if text.starts_with('{') {
        return None;
    }
    let mut beginnings = text.match_indices('{').take(BEGINNINGS_MAX);
    beginnings.find_map(|(at, _)| {
        let mut messages = Deserializer::from_str(&text[at..]).into_iter::<IncomingMessage<'_>>();
        let message = messages.next()?.ok()?;
        let is_answer = message.result.is_some() || message.error.is_some();
        message.id.filter(|_| is_answer).and_then(own_id)
    })
}

/// Returns the messages of a text that are written one after the other; none if anything else is among them.
pub(crate) fn messages_in_row(text: &str) -> Vec<&RawValue> {
    let messages = Deserializer::from_str(text).into_iter::<&RawValue>();
    messages.collect::<Result<_, _>>().unwrap_or_default()
}

/// The members of the outermost object of a text.
struct OuterMembers<'t> {
    /// Each with the text up to the next comma.
    finished: Vec<(&'t str, &'t str)>,
    /// The name of the member in which the text ends.
    unfinished: Option<&'t str>,
}

/// Returns the members of the outermost object. Nothing is read but texts and brackets.
fn members(text: &str) -> Option<OuterMembers<'_>> {
    const MEMBERS_MAX: usize = 16;
    let inner = text.strip_prefix('{')?;
    let (bytes, mut members) = (inner.as_bytes(), Vec::new());
    let (mut depth, mut at, mut from) = (0_usize, 0, 0);
    let mut name = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let Some(end) = text_end(bytes, at) else {
                    break;
                };
                let is_name = depth == 0 && name.is_none();
                if is_name {
                    name = Some(inner.get(at + 1..end)?);
                }
                at = end;
            }
            b':' if depth == 0 => from = at + 1,
            b'{' | b'[' => depth += 1,
            b',' | b'}' if depth == 0 => {
                members.extend(name.take().zip(inner.get(from..at)));
                if bytes[at] == b'}' || members.len() == MEMBERS_MAX {
                    break;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Some(OuterMembers {
        finished: members,
        unfinished: name,
    })
}

/// Returns the place of the quote that ends the text which begins at `start`.
fn text_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_answer_is_found_beside_what_is_no_json() {
        for (text, id) in [
            (r#"{"id":7,"result":{"x":NaN}}"#, Some(7)),
            (
                r#"{"result":{"x":[Infinity,{"id":1}]}, "id" : "12" }"#,
                Some(12),
            ),
            (r#"{"result":{"x":"a\"b,}","y":NaN},"id":3}"#, Some(3)),
            (r#"{"id":3,"id":3,"result":{}}"#, Some(3)),
            (r#"{"id":7,"method":"ping","params":{"x":NaN}}"#, None),
            (r#"{"id":7,"result":{"x":NaN"#, Some(7)),
            (r#"{"id":7,"result":{"x":"a line"#, Some(7)),
            (r#"{"id":7,"method":"a line"#, None),
            (r#"{"result":{"x":"a line"#, None),
            (r#"{"id":{"id":7},"result":NaN}"#, None),
            (r#"{"result":{"id":7,"x":NaN}}"#, None),
            ("starting on port 7", None),
            (r#"{"id":"#, None),
        ] {
            assert_eq!(answered_id(text), id, "{text}");
        }
    }

    #[test]
    fn an_answer_is_known_by_its_beginning() {
        let long = "x".repeat(1_000);
        for (text, is_answer) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"x":"{long}"}}}}"#),
                true,
            ),
            (
                format!(r#"{{"result":{{"x":"{long}"}},"jsonrpc":"2.0","id":7}}"#),
                true,
            ),
            (format!(r#"{{"error":"{long}","id":7}}"#), true),
            (format!(r#"{{"result":7,"id":7,"x":"{long}"}}"#), true),
            (
                format!(r#"{{"method":"ping","params":{{"x":"{long}"}}}}"#),
                false,
            ),
            (
                format!(r#"{{"params":{{"result":"{long}"}},"method":"ping"}}"#),
                false,
            ),
            (format!(r#"[{{"id":7,"result":"{long}"}}]"#), false),
            (long.clone(), false),
        ] {
            assert_eq!(begins_answer(text.as_bytes()), is_answer, "{text}");
        }
    }

    #[test]
    fn the_id_of_an_answer_is_found_in_its_beginning_or_at_its_end() {
        for (beginning, end, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"x":""#,
                r#"x"}}"#,
                Some(7),
            ),
            (
                r#"{"result":{"x":""#,
                r#"x"},"jsonrpc":"2.0","id":7}"#,
                Some(7),
            ),
            (
                r#"{"result":{"x":""#,
                r#"x"}, "id": "7", "jsonrpc": "2.0" }"#,
                Some(7),
            ),
            (r#"{"result":{"x":""#, r#"x","y":{"id":7}}}"#, None),
            (r#"{"result":{"x":""#, r#"\"id\":7}"#, None),
            (r#"{"method":"ping","x":""#, r#"x","id":7}"#, None),
            ("INFO: x", r#"x","id":7}"#, None),
        ] {
            let found = id_of_parts(beginning.as_bytes(), end.as_bytes());
            assert_eq!(found, id, "{beginning} {end}");
        }
    }

    #[test]
    fn the_id_of_an_answer_is_found_behind_other_text() {
        for (text, id) in [
            (r#"INFO: {"id":7,"result":{}}"#, Some(7)),
            (r#"[INFO] {worker} {"id":"7","error":{}} in 3 ms"#, Some(7)),
            (r#"INFO: {"id":7,"method":"ping","params":{}}"#, None),
            (r#"INFO: {"id":7,"text":"done"}"#, None),
            (r#"{"level":"info","sent":{"id":7,"result":{}}}"#, None),
            ("starting on port 7", None),
        ] {
            assert_eq!(id_behind_text(text), id, "{text}");
        }
    }

    #[test]
    fn messages_in_a_row_are_found() {
        for (text, count) in [
            (r#"{"id":7,"result":{}}{"id":8,"result":{}}"#, 2),
            (r#"{"method":"a"} {"id":7,"result":{}} {}"#, 3),
            (r#"{"id":7,"result":{}} in 3 ms"#, 0),
            (r#"{"id":7,"result":{}}{"id":8,"result":NaN}"#, 0),
        ] {
            assert_eq!(messages_in_row(text).len(), count, "{text}");
        }
    }
}
