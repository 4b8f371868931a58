//! Server-sent events: reading a stream, each event within a bound, and writing one. (The crates for this keep what a stream sends until it ends an event.)

/// An event; the lines of its `data` are joined by newlines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub name: Option<String>,
    pub data: String,
    pub id: Option<String>,
    pub retry_ms: Option<u64>,
}

/// Bytes of a stream that make no whole event yet.
pub struct SseDecoder {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_return: bool,
    /// Nothing of the stream is read yet; a byte order mark may come first.
    is_first_line: bool,
    event_max: usize,
}

/// An event is longer than allowed.
#[derive(Debug)]
pub struct TooLong;

impl SseDecoder {
    /// Begins a stream whose events have at most `event_max` bytes.
    pub fn new(event_max: usize) -> Self {
        Self {
            line: Vec::new(),
            event: SseEvent::default(),
            has_data: false,
            after_return: false,
            is_first_line: true,
            event_max,
        }
    }

    /// Returns the events that `bytes` completes.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut whole = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            if self.line.len() + self.event.data.len() + part.len() > self.event_max {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            let Some(ended_by) = after.first() else { break };
            self.after_return = *ended_by == b'\r';
            rest = &after[1..];
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8_lossy(&line);
            let line = match std::mem::take(&mut self.is_first_line) {
                true => line.strip_prefix('\u{feff}').unwrap_or(&line),
                false => &line,
            };
            whole.extend(self.line(line));
        }
        Ok(whole)
    }

    fn line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let is_event = std::mem::take(&mut self.has_data)
                || event.id.is_some()
                || event.retry_ms.is_some();
            return is_event.then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = Some(value.to_owned()).filter(|name| !name.is_empty()),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "id" if !value.contains('\0') && value.len() <= 1024 => {
                self.event.id = Some(value.to_owned())
            }
            "retry" => self.event.retry_ms = value.parse().ok(),
            _ => {} // a comment, or a field of later days
        }
        None
    }
}

/// Appends an event with JSON on one line as its data.
pub fn write_event(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    out.reserve(data.len() + name.len() + 16);
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let stream = ": hello\r\n\r\nevent: message\r\nid: 7\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nretry: 20\n\ndata:é\n\n";
        for size in 1..stream.len() {
            let mut events = SseDecoder::new(1000);
            let found: Vec<SseEvent> = stream
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| events.feed(chunk).expect("short"))
                .collect();
            let first = SseEvent {
                name: Some("message".to_owned()),
                data: "{\"a\":\n1}".to_owned(),
                id: Some("7".to_owned()),
                retry_ms: None,
            };
            assert_eq!(found.len(), 3, "{size}: {found:?}");
            assert_eq!(found[0], first);
            assert_eq!((found[1].retry_ms, found[2].data.as_str()), (Some(20), "é"));
        }
    }

    #[test]
    fn a_byte_order_mark_before_the_stream_is_no_part_of_it() {
        for size in 1..8 {
            let mut events = SseDecoder::new(1000);
            let found: Vec<SseEvent> = "\u{feff}data: 1\n\n\u{feff}data: 2\n\n"
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| events.feed(chunk).expect("short"))
                .collect();
            let data: Vec<&str> = found.iter().map(|event| event.data.as_str()).collect();
            assert_eq!(data, ["1"], "{size}");
        }
    }

    #[test]
    fn an_event_with_an_empty_name_has_none() {
        let events = SseDecoder::new(1000).feed(b"event:\ndata: 1\n\nevent: \ndata: 2\n\n");
        let names: Vec<Option<String>> = events
            .expect("short")
            .into_iter()
            .map(|event| event.name)
            .collect();
        assert_eq!(names, [None, None]);
    }

    #[test]
    fn an_event_without_an_end_is_refused() {
        let mut events = SseDecoder::new(1000);
        let endless = (0..100)
            .map(|_| events.feed(b"data: 0123456789\n"))
            .find(Result::is_err);
        assert!(endless.is_some());
    }
}
