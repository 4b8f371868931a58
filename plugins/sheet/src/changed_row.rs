//! Rewrites a row after an update: changed cells in this file's style for new ones, all others with their own bytes.

use std::ops::Range;

use crate::layout::DelimitedLayout;
use crate::table::SheetRow;

/// Returns the bytes of a row whose cells were `before` and are `after`, which has at least as many. Neither has line ends
/// around it.
pub(crate) fn changed_row(
    bytes: &[u8],
    before: SheetRow<'_>,
    after: &[String],
    layout: &DelimitedLayout,
) -> Vec<u8> {
    let cells = RawCells::find(bytes, layout.delimiter);
    let mut out = Vec::with_capacity(bytes.len() + 64);
    // Text added after an open quote would become part of its cell.
    let has_room = !cells.is_open || after.len() == cells.ranges.len();
    if cells.ranges.len() != before.cells().count() || !has_room {
        layout.write_row(after.iter().map(String::as_str), &mut out);
        return out;
    }
    for (at, cell) in after.iter().enumerate() {
        if at > 0 {
            out.push(layout.delimiter);
        }
        match cells.ranges.get(at) {
            Some(range) if before.cell(at) == cell => out.extend_from_slice(&bytes[range.clone()]),
            _ => layout.write_cell(cell, &mut out),
        }
    }
    out
}

/// The cells of a row as the file has them, with their quotes.
struct RawCells {
    ranges: Vec<Range<usize>>,
    /// The last cell has a quote that is not closed.
    is_open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CellPlace {
    Start,
    Plain,
    Quoted,
    /// After a quote within a cell in quotes: it closes the cell, or is the first of two.
    Closing,
}

impl RawCells {
    /// Finds the cells by the rules of the reader, for which a quote has a meaning only at a cell's beginning and inside a
    /// cell that began with one.
    fn find(row: &[u8], delimiter: u8) -> Self {
        let mut ranges = Vec::new();
        let (mut start, mut place) = (0, CellPlace::Start);
        for (at, byte) in row.iter().enumerate() {
            place = match (place, *byte) {
                (CellPlace::Quoted, b'"') => CellPlace::Closing,
                (CellPlace::Quoted, _) | (CellPlace::Start | CellPlace::Closing, b'"') => {
                    CellPlace::Quoted
                }
                (_, byte) if byte == delimiter => {
                    ranges.push(start..at);
                    start = at + 1;
                    CellPlace::Start
                }
                _ => CellPlace::Plain,
            };
        }
        ranges.push(start..row.len());
        Self {
            ranges,
            is_open: place == CellPlace::Quoted,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::LineEnd;
    use crate::stream::{DelimitedParser, RowFlow};
    use crate::table::OwnedRow;

    const LAYOUT: DelimitedLayout = DelimitedLayout {
        delimiter: b',',
        line_end: LineEnd::Lf,
        quote_all: false,
    };

    /// Returns the cells of a text that is one row.
    fn cells(text: &str) -> Option<Vec<String>> {
        let mut rows = Vec::new();
        let mut take = |_: u64, row: SheetRow<'_>, _: Range<usize>| {
            rows.push(row.cells().map(str::to_owned).collect::<Vec<_>>());
            Ok(RowFlow::Continue)
        };
        let mut parser = DelimitedParser::new(LAYOUT);
        parser.feed(text.as_bytes(), &mut take).expect("a row");
        parser.finish(&mut take).expect("a row");
        match rows.len() {
            1 => rows.pop(),
            _ => None,
        }
    }

    fn changed(text: &str, before: &[String], after: &[String]) -> String {
        let row = OwnedRow::from_cells(before.iter().map(String::as_str));
        let bytes = changed_row(text.as_bytes(), row.as_row(), after, &LAYOUT);
        String::from_utf8(bytes).expect("a text")
    }

    #[test]
    fn other_cells_keep_their_bytes() {
        for (text, at, cell, expected) in [
            ("1,\"a\"b,c", 2, "d", "1,\"a\"b,d"),
            ("1,\"a\" ,c", 2, "d", "1,\"a\" ,d"),
            ("1,\"a \\\"q\\\" b\",c", 0, "2", "2,\"a \\\"q\\\" b\",c"),
            ("\"1\",\"\",\"c\"", 2, "d", "\"1\",\"\",d"),
            (
                "1,\"a,\n\"\"b\"\"\",c",
                2,
                "d,e",
                "1,\"a,\n\"\"b\"\"\",\"d,e\"",
            ),
            ("1,6\" pipe,c", 2, "", "1,6\" pipe,"),
            ("1,\"a\"b", 3, "d", "1,\"a\"b,,d"),
            ("1,\"open", 0, "2", "2,\"open"),
            ("1,\"open", 1, "d", "1,d"),
            ("1,\"open", 2, "d", "1,open,d"),
        ] {
            let before = cells(text).expect("one row");
            let mut after = before.clone();
            after.resize(before.len().max(at + 1), String::new());
            after[at] = cell.to_owned();
            assert_eq!(changed(text, &before, &after), expected, "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

        #[test]
        fn a_changed_row_has_the_cells_that_were_meant(text in "[ab,\" \\\\]{1,30}", at in 0_usize..6, cell in "[a,\"]{0,4}") {
            if let Some(before) = cells(&text) {
                let raw = RawCells::find(text.as_bytes(), b',');
                prop_assert_eq!(raw.ranges.len(), before.len());
                prop_assert_eq!(&changed(&text, &before, &before), &text);
                let mut after = before.clone();
                after.resize(before.len().max(at + 1), String::new());
                after[at] = cell;
                let row = changed(&text, &before, &after);
                if !row.is_empty() {
                    prop_assert_eq!(cells(&row), Some(after));
                }
            }
        }
    }
}
