//! Finds out how a delimited file is written: delimiter, line ends, quotes, byte order mark.

use weir_plugin_sdk::Error;

use crate::table::SheetRow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DelimitedLayout {
    pub(crate) delimiter: u8,
    pub(crate) line_end: LineEnd,
    /// Whether every cell of the header is in quotes, as new ones will be.
    pub(crate) quote_all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    Lf,
    CrLf,
    Cr,
}

impl LineEnd {
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            LineEnd::Lf => b"\n",
            LineEnd::CrLf => b"\r\n",
            LineEnd::Cr => b"\r",
        }
    }

    /// Returns the line end that a text begins with.
    fn find(text: &[u8]) -> Self {
        let returns = text.iter().take_while(|byte| **byte == b'\r').count();
        match (returns, text.get(returns)) {
            (0, _) => LineEnd::Lf,
            (_, Some(b'\n')) => LineEnd::CrLf,
            _ => LineEnd::Cr,
        }
    }
}

impl DelimitedLayout {
    /// Finds the layout from the start of the file. If no delimiter is given, it is the one of `, ; tab |` that is most
    /// frequent in the header, outside quotes; the comma if it has none. The header is the row that is given, counted
    /// from 1 without blank lines, or else the first.
    pub(crate) fn find(
        start: &[u8],
        delimiter: Option<u8>,
        header_row: Option<u32>,
    ) -> Result<Self, Error> {
        if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
            return Err(Error::upstream_error(
                "The file is UTF-16; save it as UTF-8.",
            ));
        }
        if start.starts_with(b"PK\x03\x04") {
            return Err(Error::upstream_error(
                "The file is a ZIP archive, such as a workbook, and not delimited text; give it the ending of what it is.",
            ));
        }
        let mut text = start;
        while let Some(behind) = text.strip_prefix(BYTE_ORDER_MARK) {
            text = behind;
        }
        text = without_blank_lines(text);
        let header_end = memchr::memchr2(b'\r', b'\n', text).unwrap_or(text.len());
        // In UTF-16, a byte of a letter may equal that of a line end.
        let is_text = std::str::from_utf8(&text[..header_end]).is_ok();
        let line_end = match is_text {
            true => header_end,
            false => memchr::memchr(b'\n', text).unwrap_or(text.len()),
        };
        if memchr::memchr(0, &text[..line_end]).is_some() {
            return Err(Error::upstream_error(
                "The header has NUL characters, as UTF-16 without a byte order mark has; save the file as UTF-8.",
            ));
        }
        let mut delimiter = delimiter;
        let mut rows_above = header_row.map_or(0, |row| row.saturating_sub(1));
        if let Some((separator, length)) = separator_line(text) {
            delimiter = delimiter.or(Some(separator));
            text = without_blank_lines(&text[length..]);
            rows_above = rows_above.saturating_sub(1);
        }
        while rows_above > 0 && !text.is_empty() {
            text = without_blank_lines(&text[row_length(text, delimiter)..]);
            rows_above -= 1;
        }
        let mut counts = [0_usize; 4];
        let mut quoted = false;
        let mut line_end = LineEnd::Lf;
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b'\r' | b'\n' => {
                    line_end = LineEnd::find(&text[at..]);
                    break;
                }
                _ => {
                    if let Some(candidate) =
                        DELIMITERS.iter().position(|delimiter| delimiter == byte)
                    {
                        counts[candidate] += 1;
                    }
                }
            }
        }
        let most = (0..counts.len())
            .rev()
            .max_by_key(|candidate| counts[*candidate])
            .unwrap_or(0);
        let delimiter = delimiter.unwrap_or(DELIMITERS[most]);
        Ok(Self {
            delimiter,
            line_end,
            quote_all: quotes_all(text, delimiter),
        })
    }

    /// Writes a row as this file would have it, without its line end.
    pub(crate) fn write_row<'a>(&self, cells: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
        let start = out.len();
        let mut count = 0;
        for cell in cells {
            if count > 0 {
                out.push(self.delimiter);
            }
            count += 1;
            self.write_cell(cell, out);
        }
        // A line of nothing would not be a row at all.
        if count == 1 && out.len() == start {
            out.extend_from_slice(b"\"\"");
        }
    }

    /// Writes a cell, in quotes if it needs them.
    pub(crate) fn write_cell(&self, cell: &str, out: &mut Vec<u8>) {
        if !self.quote_all && !self.needs_quotes(cell) {
            out.extend_from_slice(cell.as_bytes());
            return;
        }
        out.push(b'"');
        for byte in cell.bytes() {
            if byte == b'"' {
                out.push(b'"');
            }
            out.push(byte);
        }
        out.push(b'"');
    }

    fn needs_quotes(&self, cell: &str) -> bool {
        cell.bytes()
            .any(|byte| byte == self.delimiter || matches!(byte, b'"' | b'\r' | b'\n'))
    }
}

/// The byte order mark of UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

fn without_blank_lines(text: &[u8]) -> &[u8] {
    let is_line_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
    &text[text.iter().take_while(is_line_end).count()..]
}

/// Returns the length of the first row without its line end, which a cell in quotes may have within.
fn row_length(text: &[u8], delimiter: Option<u8>) -> usize {
    let mut quoted = false;
    // A quote begins a cell in quotes at the cell's start, or continues it after another one.
    let mut may_open = true;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'"' if quoted => (quoted, may_open) = (false, true),
            b'"' if may_open => (quoted, may_open) = (true, false),
            _ if quoted => {}
            b'\r' | b'\n' => return at,
            byte => {
                may_open = match delimiter {
                    Some(delimiter) => *byte == delimiter,
                    None => DELIMITERS.contains(byte),
                };
            }
        }
    }
    text.len()
}

/// Returns the delimiter that a first line such as `sep=;` names, as Excel reads it, and the length of that line.
fn separator_line(text: &[u8]) -> Option<(u8, usize)> {
    let line_end = memchr::memchr2(b'\r', b'\n', text).unwrap_or(text.len());
    let line = &text[..line_end];
    let bare = line
        .strip_prefix(b"\"")
        .and_then(|line| line.strip_suffix(b"\""))
        .unwrap_or(line);
    match bare {
        [s, e, p, b'=', separator]
            if is_separator_word([*s, *e, *p]) && is_delimiter(*separator) =>
        {
            Some((*separator, line_end))
        }
        _ => None,
    }
}

/// Returns `true` if a row is such a line, whatever delimiter it was split at.
pub(crate) fn is_separator_row(row: SheetRow<'_>) -> bool {
    let mut cells = row.cells();
    let (first, second, third) = (cells.next(), cells.next(), cells.next());
    match (first.map(str::as_bytes), second) {
        (Some([s, e, p, b'=']), Some("")) => is_separator_word([*s, *e, *p]) && third.is_none(),
        (Some([s, e, p, b'=', separator]), None) => {
            is_separator_word([*s, *e, *p]) && is_delimiter(*separator)
        }
        _ => false,
    }
}

fn is_separator_word(word: [u8; 3]) -> bool {
    word.eq_ignore_ascii_case(b"sep")
}

/// Returns `true` for a byte that can stand between cells.
pub(crate) fn is_delimiter(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | 0)
}

/// Returns `true` if the first line is `"a","b"`: it begins and ends with a quote, and each delimiter is between two.
fn quotes_all(text: &[u8], delimiter: u8) -> bool {
    let mut quoted = false;
    let mut cell_start = true;
    let mut any = false;
    for byte in text {
        match byte {
            b'"' => {
                quoted = !quoted;
                any = true;
                cell_start = false;
            }
            _ if quoted => {}
            b'\r' | b'\n' => break,
            byte if *byte == delimiter => {
                if cell_start {
                    return false;
                }
                cell_start = true;
            }
            _ => return false,
        }
    }
    any && !cell_start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_found_in_the_header() {
        for (start, delimiter, line_end, quote_all) in [
            ("a,b\n1,2\n", b',', LineEnd::Lf, false),
            ("\u{feff}a;b\r\n1,5;2\r\n", b';', LineEnd::CrLf, false),
            ("\"a;x\",\"b\"\n", b',', LineEnd::Lf, true),
            ("a\tb", b'\t', LineEnd::Lf, false),
            ("only", b',', LineEnd::Lf, false),
            ("\n\n\"a\"|b|c\n", b'|', LineEnd::Lf, false),
            ("sep=;\r\na;b,c,d\r\n", b';', LineEnd::CrLf, false),
            ("\u{feff}SEP=^\n\"a\"^\"b\"\n", b'^', LineEnd::Lf, true),
            ("\"sep=;\"\na;b\n", b';', LineEnd::Lf, false),
            ("sep=;,b\n1,2\n", b',', LineEnd::Lf, false),
            ("a;b\r1,2,3;4\r", b';', LineEnd::Cr, false),
            ("sep=;\ra;b,c,d\r", b';', LineEnd::Cr, false),
            ("\"a\"|\"b\"\r\r1|2", b'|', LineEnd::Cr, true),
            ("a;b\r\r\n1,2,3\r\r\n", b';', LineEnd::CrLf, false),
            ("\u{feff}\u{feff}\"a\";\"b\"\n", b';', LineEnd::Lf, true),
        ] {
            let expected = DelimitedLayout {
                delimiter,
                line_end,
                quote_all,
            };
            assert_eq!(
                DelimitedLayout::find(start.as_bytes(), None, None).unwrap(),
                expected,
                "{start:?}"
            );
        }
        for (start, header_row, delimiter) in [
            ("Report, of today\na;b\n1,2;3\n", 2, b';'),
            (
                "\"Report,\n, \"\"of\"\" today\"\r\n\r\n6\" pipes\r\na|b\r\n",
                3,
                b'|',
            ),
            ("Report,\n", 9, b','),
            ("sep=;\na|b|c\n1;2\n", 2, b';'),
            ("a;b\n1,2,3\n", 1, b';'),
        ] {
            let layout = DelimitedLayout::find(start.as_bytes(), None, Some(header_row)).unwrap();
            assert_eq!(layout.delimiter, delimiter, "{start:?}");
        }
        for start in [
            &[0xff, 0xfe, b'a', 0][..],
            b"a\0,\0b\0\n\0",
            b"\0a\0,\0b\0\n",
            b"\n\0a\0",
        ] {
            assert!(
                DelimitedLayout::find(start, None, None)
                    .is_err_and(|error| error.message.contains("UTF-8")),
                "{start:?}"
            );
        }
        assert!(DelimitedLayout::find(b"a,b\n1,\0\n", None, None).is_ok());
        assert!(DelimitedLayout::find(b"a,b\r1,\0\r", None, None).is_ok());
    }
}
