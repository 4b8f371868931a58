//! Lines of bounded length. A longer line is skipped.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The byte order mark that some runtimes, such as .NET, write first.
const MARK: &[u8] = b"\xEF\xBB\xBF";

pub(super) struct StdinLines<R, F> {
    reader: BufReader<R>,
    line: Vec<u8>,
    has_begun: bool,
    /// Returns the current bound on a line, in bytes.
    bytes_max: F,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum StdinLine<'a> {
    Message(&'a [u8]),
    /// The line was longer than this number of bytes.
    TooLong(usize),
}

impl<R: AsyncRead + Unpin, F: Fn() -> usize> StdinLines<R, F> {
    pub(super) fn new(reader: R, bytes_max: F) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            line: Vec::new(),
            has_begun: false,
            bytes_max,
        }
    }

    /// Returns the next line that is not blank, without its end; `None` at the end of input.
    pub(super) async fn next(&mut self) -> io::Result<Option<StdinLine<'_>>> {
        loop {
            let (ended, too_long) = self.fill().await?;
            if !std::mem::replace(&mut self.has_begun, true) && self.line.starts_with(MARK) {
                self.line.drain(..MARK.len());
            }
            if let Some(bytes_max) = too_long {
                return Ok(Some(StdinLine::TooLong(bytes_max)));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
            if ended {
                return Ok(None);
            }
        }
        Ok(Some(StdinLine::Message(self.line.trim_ascii())))
    }

    /// Reads one line into `self.line`. Returns whether the input ended, and the bound if the line exceeded it.
    async fn fill(&mut self) -> io::Result<(bool, Option<usize>)> {
        self.line.clear();
        // The buffer of a huge line is kept only until the next line.
        self.line.shrink_to(64 << 10);
        let mut too_long = None;
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((true, too_long));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let (text, used) = end.map_or((chunk, chunk.len()), |end| (&chunk[..end], end + 1));
            let bytes_max = (self.bytes_max)();
            if too_long.is_none() && self.line.len() + text.len() > bytes_max {
                too_long = Some(bytes_max);
                self.line.clear();
            }
            if too_long.is_none() {
                self.line.extend_from_slice(text);
            }
            self.reader.consume(used);
            if end.is_some() {
                return Ok((false, too_long));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_byte_order_mark_before_the_first_line_is_no_part_of_it() {
        let input = "\u{feff}one\n\u{feff}two\n";
        let mut lines = StdinLines::new(input.as_bytes(), || 10);
        for expected in ["one", "\u{feff}two"] {
            let line = lines.next().await.unwrap();
            assert_eq!(line, Some(StdinLine::Message(expected.as_bytes())));
        }
    }

    #[tokio::test]
    async fn lines_are_bounded() {
        let long = "x".repeat(200_000);
        let input = format!("\n  \r\none\r\n{long}\ntwo\n{}\nlast", "y".repeat(10));
        let mut lines = StdinLines::new(input.as_bytes(), || 10);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(match line {
                StdinLine::Message(text) => String::from_utf8(text.to_vec()).unwrap(),
                StdinLine::TooLong(bytes_max) => format!("(more than {bytes_max})"),
            });
        }
        assert_eq!(read, ["one", "(more than 10)", "two", "yyyyyyyyyy", "last"]);
    }
}
