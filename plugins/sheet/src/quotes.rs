//! Follows the quotes of delimited text along with `csv-core`, which takes any text and does not report that a quote
//! was never closed, or was closed where another cell was meant to begin, or that text follows it.

/// The quotes of the row that is being read.
#[derive(Debug, Default)]
pub(crate) struct QuoteTracker {
    place: QuotePlace,
    /// The cell in quotes spans several lines.
    has_lines: bool,
    /// Text follows directly on the quote that closed such a cell.
    has_swallowed: bool,
    /// Other text than blanks follows on a closed quote.
    has_text_behind: bool,
}

/// Rows in which text follows on a closed quote: `"a"b`, or `"a \"b\""` with backslashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnclearQuotes {
    first: u64,
    last: u64,
    count: u64,
}

impl UnclearQuotes {
    /// Adds a row by its number, counted from 1. Rows come in their order, and one may come several times.
    pub(crate) fn add(&mut self, row: u64) {
        if self.last != row {
            self.last = row;
            self.count += 1;
        }
        if self.count == 1 {
            self.first = row;
        }
    }

    /// Returns the note for a person who drafts a contract; `None` if there are no such rows.
    pub(crate) fn note(&self) -> Option<String> {
        let first = self.first;
        let which = match self.count {
            0 => return None,
            1 => format!("Row {first} has text behind the quote that closes a cell"),
            count => format!(
                "{count} rows have text behind the quote that closes a cell, the first is row {first}"
            ),
        };
        Some(format!(
            "{which}: the cell is read without that quote. Write a quote that belongs to the text as two (`\"\"`), and not behind a \
             backslash."
        ))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QuotePlace {
    #[default]
    CellStart,
    Plain,
    Quoted,
    /// After a quote within a cell in quotes: it closes the cell, or is the first of two.
    Closing,
    /// After blanks that follow a closed quote.
    Closed,
}

impl QuoteTracker {
    /// Takes note of the next bytes of the file.
    pub(crate) fn note(&mut self, bytes: &[u8], delimiter: u8) {
        let mut left = bytes;
        while let Some((first, behind)) = left.split_first() {
            match self.place {
                QuotePlace::CellStart => {
                    self.place = match first {
                        b'"' => QuotePlace::Quoted,
                        byte if is_cell_end(*byte, delimiter) => QuotePlace::CellStart,
                        _ => QuotePlace::Plain,
                    };
                    self.has_lines = false;
                    left = behind;
                }
                QuotePlace::Plain => {
                    let Some(at) = memchr::memchr3(delimiter, b'\n', b'\r', left) else {
                        return;
                    };
                    self.place = QuotePlace::CellStart;
                    left = &left[at + 1..];
                }
                QuotePlace::Quoted => {
                    let end = memchr::memchr(b'"', left);
                    let text = &left[..end.unwrap_or(left.len())];
                    self.has_lines |= memchr::memchr2(b'\n', b'\r', text).is_some();
                    let Some(at) = end else {
                        return;
                    };
                    self.place = QuotePlace::Closing;
                    left = &left[at + 1..];
                }
                QuotePlace::Closing if *first == b'"' => {
                    self.place = QuotePlace::Quoted;
                    left = behind;
                }
                QuotePlace::Closing | QuotePlace::Closed => {
                    self.place = match first {
                        byte if is_cell_end(*byte, delimiter) => QuotePlace::CellStart,
                        b' ' | b'\t' => QuotePlace::Closed,
                        _ => {
                            let is_direct = self.place == QuotePlace::Closing;
                            self.has_swallowed |= self.has_lines && is_direct;
                            self.has_text_behind = true;
                            QuotePlace::Plain
                        }
                    };
                    left = behind;
                }
            }
        }
    }

    /// Returns `true` if a quote is open after the bytes so far.
    pub(crate) fn is_open(&self) -> bool {
        self.place == QuotePlace::Quoted
    }

    /// Returns `true` if a quote is open that takes in a line end.
    pub(crate) fn is_open_over_lines(&self) -> bool {
        self.is_open() && self.has_lines
    }

    /// Returns `true` if a quote was closed only where the next cell in quotes begins, so that rows became part of a cell.
    pub(crate) fn has_swallowed(&self) -> bool {
        self.has_swallowed
    }

    /// Returns `true` if other text than blanks followed on a closed quote since the last question.
    pub(crate) fn take_text_behind(&mut self) -> bool {
        std::mem::take(&mut self.has_text_behind)
    }
}

fn is_cell_end(byte: u8, delimiter: u8) -> bool {
    byte == delimiter || matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_that_are_open_or_before_text_are_known() {
        for (text, is_open, has_swallowed, has_text_behind) in [
            ("1,\"a\",2\n", false, false, false),
            ("1,\"a\nb\",2\n", false, false, false),
            ("1,\"a \"\"b\"\"\n\",2\n", false, false, false),
            ("1,5\" pipe,2\n", false, false, false),
            ("1,\"a\"b,2\n", false, false, true),
            ("1,\"a\" b,2\n", false, false, true),
            ("1,\"a\" \"b\",2\n", false, false, true),
            ("1,\"a \\\"q\\\" b\",2\n", false, false, true),
            ("1,\"a\" \t,2\n", false, false, false),
            ("1,\"a\nb\" ,2\n", false, false, false),
            ("1,\"a,2\n2,b,3\n", true, false, false),
            ("1,\"a,2\n2,\"b\",3\n", false, true, true),
            ("1,\"a,2\n2,\"\",3\n", true, false, false),
            ("1,\"", true, false, false),
            ("1,\"\"", false, false, false),
        ] {
            let mut whole = QuoteTracker::default();
            whole.note(text.as_bytes(), b',');
            let mut bytewise = QuoteTracker::default();
            for byte in text.as_bytes() {
                bytewise.note(&[*byte], b',');
            }
            for mut quotes in [whole, bytewise] {
                assert_eq!(quotes.is_open(), is_open, "{text:?}");
                assert_eq!(quotes.has_swallowed(), has_swallowed, "{text:?}");
                assert_eq!(quotes.take_text_behind(), has_text_behind, "{text:?}");
            }
        }
    }
}
