//! Follows the quotes of delimited text beside `csv-core`, which takes any text and does not say that a quote was never
//! closed, or closed where another cell was meant to begin, or that text follows on it.

/// The quotes of the row that is being read.
#[derive(Debug, Default)]
pub(crate) struct QuoteTracker {
    place: QuotePlace,
    /// The cell in quotes goes over several lines.
    has_lines: bool,
    fault: Option<QuoteFault>,
}

/// A closed quote with text behind it: what the cell was meant to be is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuoteFault {
    /// The quote was closed only where the next cell in quotes begins, so that rows became part of a cell.
    TakesInRows,
    /// The quote is within the text of one line, as in `"5" pipe"` or `"a \"b\""`.
    TextBehind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QuotePlace {
    #[default]
    CellStart,
    Plain,
    Quoted,
    /// Behind a quote within a cell in quotes: it closes the cell, or is the first of two.
    Closing,
    /// Behind blanks that follow on a closed quote.
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
                            self.fault.get_or_insert(match self.has_lines && is_direct {
                                true => QuoteFault::TakesInRows,
                                false => QuoteFault::TextBehind,
                            });
                            QuotePlace::Plain
                        }
                    };
                    left = behind;
                }
            }
        }
    }

    /// Returns `true` if a quote is open behind the bytes so far.
    pub(crate) fn is_open(&self) -> bool {
        self.place == QuotePlace::Quoted
    }

    /// Returns the first quote that was closed before other text than the end of its cell.
    pub(crate) fn fault(&self) -> Option<QuoteFault> {
        self.fault
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
        let (rows, text_behind) = (Some(QuoteFault::TakesInRows), Some(QuoteFault::TextBehind));
        for (text, is_open, fault) in [
            ("1,\"a\",2\n", false, None),
            ("1,\"a\nb\",2\n", false, None),
            ("1,\"a \"\"b\"\"\n\",2\n", false, None),
            ("1,5\" pipe,2\n", false, None),
            ("1,\"a\"b,2\n", false, text_behind),
            ("1,\"a\" b,2\n", false, text_behind),
            ("1,\"a\" \"b\",2\n", false, text_behind),
            ("1,\"a \\\"q\\\" b\",2\n", false, text_behind),
            ("1,\"a\" \t,2\n", false, None),
            ("1,\"a\nb\" ,2\n", false, None),
            ("1,\"a,2\n2,b,3\n", true, None),
            ("1,\"a,2\n2,\"b\",3\n", false, rows),
            ("1,\"a,2\n2,\"\",3\n", true, None),
            ("1,\"", true, None),
            ("1,\"\"", false, None),
        ] {
            let mut whole = QuoteTracker::default();
            whole.note(text.as_bytes(), b',');
            let mut bytewise = QuoteTracker::default();
            for byte in text.as_bytes() {
                bytewise.note(&[*byte], b',');
            }
            for quotes in [whole, bytewise] {
                assert_eq!(quotes.is_open(), is_open, "{text:?}");
                assert_eq!(quotes.fault(), fault, "{text:?}");
            }
        }
    }
}
