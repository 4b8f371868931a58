//! Joins the lines of a message that a child writes over several, as programs do that print JSON for people.

use std::{borrow::Cow, mem};

use serde::de::IgnoredAny;

use crate::{message::without_mark, unreadable::answered_id};

/// A message whose first lines were received.
#[derive(Default)]
pub(super) struct SpreadMessage {
    text: String,
    /// The brackets that are open.
    depth: usize,
}

impl SpreadMessage {
    /// Returns the lines that have come, and forgets them, if `line` is a message on its own: then they did not begin one.
    pub(super) fn interrupt(&mut self, line: &str) -> Option<Cow<'static, str>> {
        if self.text.is_empty() || !is_message(line) {
            return None;
        }
        self.depth = 0;
        Some(Cow::Owned(mem::take(&mut self.text)))
    }

    /// Returns the line, or after the last line of a message the whole message. `None`: more of its lines have to come.
    pub(super) fn join<'l>(&mut self, line: Cow<'l, str>) -> Option<Cow<'l, str>> {
        if self.text.is_empty() && !is_beginning(&line) {
            return Some(line);
        }
        self.text.push_str(&line);
        self.depth = depth_behind(&line, self.depth);
        (self.depth == 0).then(|| Cow::Owned(mem::take(&mut self.text)))
    }

    /// Returns the bytes of the lines that have come.
    pub(super) fn length(&self) -> usize {
        self.text.len()
    }
}

fn is_message(line: &str) -> bool {
    let line = without_mark(line);
    line.starts_with('{')
        && line.contains("\"jsonrpc\"")
        && serde_json::from_str::<IgnoredAny>(line).is_ok()
}

/// Returns `true` if the line is the beginning of an object. One that names its request already fails that at once.
fn is_beginning(line: &str) -> bool {
    let line = without_mark(line);
    line.starts_with('{')
        && !line.ends_with('}')
        && serde_json::from_str::<IgnoredAny>(line).is_err_and(|error| error.is_eof())
        && answered_id(line).is_none()
}

/// Returns how many brackets are open after a line. No string of JSON continues on the next line.
fn depth_behind(line: &str, mut depth: usize) -> usize {
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in line.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => depth += 1,
            b'}' | b']' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what the lines of a text are received as.
    fn received(text: &str) -> Vec<String> {
        let mut spread = SpreadMessage::default();
        let mut received = Vec::new();
        for line in text.split_inclusive('\n') {
            received.extend(spread.interrupt(line).map(Cow::into_owned));
            received.extend(spread.join(Cow::Borrowed(line)).map(Cow::into_owned));
        }
        received
    }

    #[test]
    fn a_message_is_received_whole_whatever_its_lines() {
        let spread = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 7,\n  \"result\": {\n    \"x\": \"}\\\"}\"\n  }\n}\n";
        let plain = "{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}\n";
        assert_eq!(received(&format!("{spread}{plain}")), [spread, plain]);
    }

    #[test]
    fn what_begins_no_message_keeps_none_back() {
        let plain = "{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}\n";
        for log in [
            "{not json\n",
            "[1,2\n",
            "{\"a\":1}\n",
            "{\n",
            "{\"id\":7,\"result\":{\"x\":[\n",
        ] {
            assert_eq!(received(&format!("{log}{plain}")), [log, plain]);
        }
    }
}
