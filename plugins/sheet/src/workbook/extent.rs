//! How much of an ODS workbook its sheets fill. A few bytes say that a row or a cell comes a billion times, and calamine makes all
//! of them, of every sheet, before it returns the first.

use std::io::{BufReader, Cursor};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use weir_plugin_sdk::Error;
use zip::ZipArchive;

use super::CELLS_MAX;
use super::error_cells::{VALUES, attribute, repeats};

/// Spreadsheet programs have no more rows and columns, and calamine leaves out what is behind them without a word.
const ROWS_MAX: u64 = 1_048_576;
const COLUMNS_MAX: u64 = 16_384;

/// Refuses a workbook of which a sheet has more cells than can be read. Empty rows and cells at the end count for nothing.
pub(super) fn check(bytes: &[u8]) -> Result<(), Error> {
    // What cannot be read is reported where the cells are.
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else {
        return Ok(());
    };
    let Ok(content) = archive.by_name("content.xml") else {
        return Ok(());
    };
    let mut reader = Reader::from_reader(BufReader::new(content));
    let config = reader.config_mut();
    config.check_end_names = false;
    let mut sheet: Option<SheetExtent> = None;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let Ok(event) = reader.read_event_into(&mut buffer) else {
            return Ok(());
        };
        match event {
            Event::Start(tag) | Event::Empty(tag) => match (tag.name().as_ref(), &mut sheet) {
                ("table:table", sheet) => {
                    *sheet = Some(SheetExtent {
                        name: attribute(&tag, "table:name").unwrap_or_default(),
                        ..SheetExtent::default()
                    });
                }
                ("table:table-row", Some(sheet)) => {
                    sheet.begin_row(repeats(&tag, "table:number-rows-repeated"));
                }
                ("table:table-cell" | "table:covered-table-cell", Some(sheet)) => {
                    let columns = repeats(&tag, "table:number-columns-repeated");
                    sheet.add_cells(columns, is_filled(&tag))?;
                }
                _ => {}
            },
            Event::End(tag) if tag.name().as_ref() == "table:table" => sheet = None,
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// The part of a sheet that has something in it, as far as it was read. Ends are behind the last.
#[derive(Default)]
struct SheetExtent {
    name: String,
    /// The rows that the present element covers, and the next column in them.
    rows: (u64, u64),
    column: u64,
    /// The first row and column with something in them.
    corner: Option<(u64, u64)>,
    right: u64,
    /// The cells of rows that are not repeated yet, and those of the present row among them.
    cells: u64,
    row_cells: u64,
}

impl SheetExtent {
    fn begin_row(&mut self, count: u32) {
        self.rows = (self.rows.1, self.rows.1.saturating_add(u64::from(count)));
        (self.column, self.row_cells) = (0, 0);
    }

    fn add_cells(&mut self, count: u32, is_filled: bool) -> Result<(), Error> {
        let first = self.column;
        self.column = first.saturating_add(u64::from(count));
        if !is_filled {
            return Ok(());
        }
        let (top, left) = self.corner.unwrap_or((self.rows.0, first));
        let left = left.min(first);
        self.corner = Some((top, left));
        self.right = self.right.max(self.column);
        let (name, bottom) = (&self.name, self.rows.1);
        if bottom > ROWS_MAX || self.right > COLUMNS_MAX {
            return Err(Error::unsupported(format!(
                "The sheet {name:?} has cells behind row {ROWS_MAX} or column {COLUMNS_MAX}, the last that spreadsheet programs have; \
                 take away those that are not needed."
            )));
        }
        self.cells += self.column - self.row_cells;
        self.row_cells = self.column;
        let area = (bottom - top) * (self.right - left);
        if area.max(self.cells) > CELLS_MAX as u64 {
            return Err(Error::unsupported(format!(
                "The sheet {name:?} has more than {CELLS_MAX} cells, with those that are repeated; take away those that are not needed, \
                 or save it as CSV."
            )));
        }
        Ok(())
    }
}

/// Returns `true` for a cell with a value, a text or a formula.
fn is_filled(tag: &BytesStart<'_>) -> bool {
    let mut attributes = tag.attributes();
    let mut known = attributes.with_checks(false).flatten();
    known.any(|attribute| match attribute.key.as_ref() {
        "office:value-type" => attribute.value == "string",
        "table:formula" => !attribute.value.is_empty(),
        name => VALUES.contains(&name),
    })
}
