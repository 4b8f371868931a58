//! Follows the quotes of delimited text beside `csv-core`, which takes any text and does not say that a quote was never
//! closed, or closed where another cell was meant to begin.

/// The quotes of the row that is being read.
#[derive(Debug, Default)]
pub(crate) struct QuoteTracker {
    place: QuotePlace,
    /// The cell in quotes goes over several lines.
    has_lines: bool,
    /// Text follows directly on the quote that closed such a cell.
    has_swallowed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QuotePlace {
    #[default]
    CellStart,
    Plain,
    Quoted,
    /// Behind a quote within a cell in quotes: it closes the cell, or is the first of two.
    Closing,
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
                QuotePlace::Closing => {
                    self.place = match first {
                        b'"' => QuotePlace::Quoted,
                        byte if is_cell_end(*byte, delimiter) => QuotePlace::CellStart,
                        byte => {
                            self.has_swallowed |= self.has_lines && !matches!(byte, b' ' | b'\t');
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

    /// Returns `true` if a quote was closed only where the next cell in quotes begins, so that rows became part of a cell.
    pub(crate) fn has_swallowed(&self) -> bool {
        self.has_swallowed
    }
}

fn is_cell_end(byte: u8, delimiter: u8) -> bool {
    byte == delimiter || matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_that_take_in_rows_are_known() {
        for (text, is_open, has_swallowed) in [
            ("1,\"a\",2\n", false, false),
            ("1,\"a\nb\",2\n", false, false),
            ("1,\"a \"\"b\"\"\n\",2\n", false, false),
            ("1,5\" pipe,2\n", false, false),
            ("1,\"a\"b,2\n", false, false),
            ("1,\"a\nb\" ,2\n", false, false),
            ("1,\"a,2\n2,b,3\n", true, false),
            ("1,\"a,2\n2,\"b\",3\n", false, true),
            ("1,\"a,2\n2,\"\",3\n", true, false),
            ("1,\"", true, false),
            ("1,\"\"", false, false),
        ] {
            let mut whole = QuoteTracker::default();
            whole.note(text.as_bytes(), b',');
            let mut bytewise = QuoteTracker::default();
            for byte in text.as_bytes() {
                bytewise.note(&[*byte], b',');
            }
            for quotes in [whole, bytewise] {
                assert_eq!(quotes.is_open(), is_open, "{text:?}");
                assert_eq!(quotes.has_swallowed(), has_swallowed, "{text:?}");
            }
        }
    }
}
