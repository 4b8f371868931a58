//! How much of an ODS workbook its sheets fill. A few bytes can repeat a row or a cell a billion times, and calamine creates all
//! of them, for every sheet, before it returns the first.

use std::io::{BufReader, Cursor};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use weir_plugin_sdk::Error;
use zip::ZipArchive;

use super::CELLS_MAX;
use super::error_cells::{VALUES, attribute, parse_repeats, repeats};

/// Spreadsheet programs have no more rows and columns, and calamine silently leaves out what is beyond them.
const ROWS_MAX: u64 = 1_048_576;
const COLUMNS_MAX: u64 = 16_384;

/// The cells of a sheet that is not meant. They are made with the others, and fit where the plugin has memory for them.
const OTHER_CELLS_MAX: u64 = 4 * CELLS_MAX as u64;

/// Refuses a workbook with a sheet that has more cells than can be read. Empty rows and cells at the end count for nothing. The
/// chosen sheet is named, or is the only one that is not empty.
pub(super) fn check(bytes: &[u8], meant: Option<&str>) -> Result<(), Error> {
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
    let mut sheets: Vec<SheetExtent> = Vec::new();
    let mut sheet = SheetExtent::default();
    // A cell may contain a table, which is not part of the sheet.
    let mut depth = 0_u32;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let Ok(event) = reader.read_event_into(&mut buffer) else {
            return Ok(());
        };
        let has_content = matches!(event, Event::Start(_));
        match event {
            Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                "table:table" if has_content => {
                    depth += 1;
                    if depth == 1 {
                        sheet.name = attribute(&tag, "table:name").unwrap_or_default();
                    }
                }
                _ if depth != 1 => {}
                "table:table-row" => sheet.begin_row(repeats(&tag, "table:number-rows-repeated")),
                "table:table-cell" | "table:covered-table-cell" => {
                    let (columns, is_filled) = read_cell(&tag);
                    sheet.add_cells(columns, is_filled)?;
                }
                _ => {}
            },
            Event::End(tag) if tag.name().as_ref() == "table:table" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    sheets.push(std::mem::take(&mut sheet));
                }
            }
            Event::Eof => return check_meant(&sheets, meant),
            _ => {}
        }
    }
}

fn check_meant(sheets: &[SheetExtent], meant: Option<&str>) -> Result<(), Error> {
    let mut filled = sheets.iter().filter(|sheet| sheet.corner.is_some());
    let sheet = match meant {
        Some(name) => filled.find(|sheet| sheet.name == name),
        None => filled.next().filter(|_| filled.next().is_none()),
    };
    match sheet {
        Some(sheet) if sheet.size() > CELLS_MAX as u64 => Err(sheet.too_large(CELLS_MAX as u64)),
        _ => Ok(()),
    }
}

/// The part of a sheet that is not empty, as far as it was read. Ends are exclusive.
#[derive(Default)]
struct SheetExtent {
    name: String,
    /// The rows that the current element covers, and the next column in them.
    rows: (u64, u64),
    column: u64,
    /// The first row and column with something in them.
    corner: Option<(u64, u64)>,
    right: u64,
    area: u64,
    /// The cells of rows that are not repeated yet, and the number of these in the current row.
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
        self.area = (bottom - top) * (self.right - left);
        match self.size() > OTHER_CELLS_MAX {
            true => Err(self.too_large(OTHER_CELLS_MAX)),
            false => Ok(()),
        }
    }

    /// Returns how many cells the sheet expands to: from its rows as they are written, or as they are repeated.
    fn size(&self) -> u64 {
        self.area.max(self.cells)
    }

    fn too_large(&self, cells_max: u64) -> Error {
        let name = &self.name;
        Error::unsupported(format!(
            "The sheet {name:?} has more than {cells_max} cells, with those that are repeated; take away those that are not needed, \
             or save it as CSV."
        ))
    }
}

/// Returns how many columns a cell represents, and whether it has a value, a text or a formula.
fn read_cell(tag: &BytesStart<'_>) -> (u32, bool) {
    let (mut columns, mut is_filled) = (1, false);
    for attribute in tag.attributes().with_checks(false).flatten() {
        match attribute.key.as_ref() {
            "table:number-columns-repeated" => columns = parse_repeats(&attribute.value),
            "office:value-type" => is_filled |= attribute.value == "string",
            "table:formula" => is_filled |= !attribute.value.is_empty(),
            name => is_filled |= VALUES.contains(&name),
        }
    }
    (columns, is_filled)
}
