//! XLSX and ODS: one sheet of a workbook as a table of text.

use std::io::Cursor;

use calamine::{Cell, Data, DataRef, Ods, Range, Reader, Xlsx, XlsxError};
use weir_plugin_sdk::Error;
use weir_plugin_sdk::files::Info;

use crate::header::{COLUMNS_MAX, names};
use crate::infer::looks_otherwise;
use crate::scan::{is_header, no_header};
use crate::settings::{Format, Settings};
use crate::stream::{Flow, read_pieces};
use crate::table::{OwnedRow, Table};

/// The ending of a date without a time: workbooks know only points in time.
pub(crate) const MIDNIGHT: &str = " 00:00:00";

/// The bound on a workbook's file: unpacked it takes several times its size, and an instance has 64 MB.
const FILE_BYTES_MAX: u64 = 8 << 20;
const CELLS_MAX: usize = 1_000_000;

pub(crate) fn load(settings: &Settings, info: &Info) -> Result<Table, Error> {
    if info.size > FILE_BYTES_MAX {
        let mib = FILE_BYTES_MAX >> 20;
        return Err(Error::unsupported(format!(
            "The workbook is larger than {mib} MiB; save the sheet as CSV."
        )));
    }
    crate::cache::make_room(crate::cache::BYTES_MAX);
    let mut bytes = Vec::with_capacity(info.size as usize);
    read_pieces(settings, info.size, |piece| {
        bytes.extend_from_slice(piece);
        Ok(Flow::Continue)
    })?;
    let bytes = Cursor::new(bytes);
    let range = match settings.format {
        Format::Workbook("ODS") => {
            let mut workbook: Ods<_> = Ods::new(bytes).map_err(|error| broken("ODS", &error))?;
            let name = sheet(workbook.sheet_names(), settings)?;
            workbook
                .worksheet_range(&name)
                .map_err(|error| broken("sheet", &error))?
        }
        _ => {
            let mut workbook: Xlsx<_> = Xlsx::new(bytes).map_err(|error| broken("XLSX", &error))?;
            let name = sheet(workbook.sheet_names(), settings)?;
            cells(&mut workbook, &name)?
        }
    };
    table(settings, &range)
}

/// Returns the name of the sheet that is meant.
fn sheet(sheets: Vec<String>, settings: &Settings) -> Result<String, Error> {
    match &settings.sheet {
        Some(name) if sheets.contains(name) => Ok(name.clone()),
        Some(name) => {
            let known = sheets.join(", ");
            Err(
                Error::source_changed(format!("There is no sheet {name:?}; there are: {known}."))
                    .field("sheet"),
            )
        }
        None => sheets
            .into_iter()
            .next()
            .ok_or_else(|| Error::invalid("The workbook has no sheet.")),
    }
}

/// Returns the cells of a sheet. They are counted as they come: one stray cell in the last row makes a range larger than
/// the memory.
fn cells(workbook: &mut Xlsx<Cursor<Vec<u8>>>, name: &str) -> Result<Range<Data>, Error> {
    let unreadable = |error: XlsxError| broken("sheet", &error);
    let mut reader = match workbook.worksheet_cells_reader(name) {
        // A sheet of a chart has no cells.
        Err(XlsxError::NotAWorksheet(_)) => return Ok(Range::default()),
        reader => reader.map_err(unreadable)?,
    };
    let mut cells = Vec::new();
    let (mut top, mut bottom, mut right) = (u32::MAX, 0, 0);
    while let Some(cell) = reader.next_cell().map_err(unreadable)? {
        if matches!(cell.get_value(), DataRef::Empty) {
            continue;
        }
        let (row, column) = cell.get_position();
        (top, bottom, right) = (top.min(row), bottom.max(row), right.max(column));
        check(top, bottom, right)?;
        cells.push(Cell::new(
            (row, column),
            Data::from(cell.get_value().clone()),
        ));
    }
    Ok(Range::from_sparse(cells))
}

/// Checks that a sheet of these rows and columns is within bounds. Returns its width.
fn check(top: u32, bottom: u32, right: u32) -> Result<usize, Error> {
    let width = right as usize + 1;
    if width > COLUMNS_MAX {
        return Err(Error::unsupported(format!(
            "The sheet has more than {COLUMNS_MAX} columns."
        )));
    }
    if (bottom - top + 1) as usize * width > CELLS_MAX {
        return Err(Error::unsupported(format!(
            "The sheet has more than {CELLS_MAX} cells; save it as CSV."
        )));
    }
    Ok(width)
}

fn table(settings: &Settings, range: &Range<Data>) -> Result<Table, Error> {
    let (Some((top, left)), Some((bottom, right))) = (range.start(), range.end()) else {
        return Err(no_header());
    };
    let width = check(top, bottom, right)?;
    let mut table = Table::default();
    let mut header_seen = false;
    for (index, cells) in range.rows().enumerate() {
        // Rows and columns are counted from the sheet's corner, as people see them.
        let texts =
            std::iter::repeat_n(String::new(), left as usize).chain(cells.iter().map(text_of));
        let texts: Vec<String> = texts.collect();
        let row = OwnedRow::from_cells(texts.iter().map(String::as_str));
        let row = row.as_row();
        if header_seen {
            if !row.is_blank() {
                note_textual(&mut table.textual, cells, left as usize);
                table.push(row);
            }
        } else if is_header(settings, u64::from(top) + index as u64 + 1, row) {
            header_seen = true;
            table.names = names(row.cells());
            table.textual = vec![false; width];
        }
    }
    if header_seen {
        Ok(table)
    } else {
        Err(no_header())
    }
}

/// Notes columns of text: a text cell that would read as something else was made text on purpose, such as `007` or a
/// number with an apostrophe.
fn note_textual(textual: &mut [bool], cells: &[Data], left: usize) {
    for (column, cell) in cells.iter().enumerate() {
        if let Data::String(text) = cell
            && looks_otherwise(text)
            && let Some(textual) = textual.get_mut(left + column)
        {
            *textual = true;
        }
    }
}

fn text_of(cell: &Data) -> String {
    match cell {
        Data::Int(integer) => integer.to_string(),
        Data::Float(number) => number.to_string(),
        Data::String(text) => text.clone(),
        Data::Bool(boolean) => boolean.to_string(),
        Data::DateTime(datetime) if datetime.is_datetime() => {
            let (year, month, day, hour, minute, second, milli) = datetime.to_ymd_hms_milli();
            let fraction = if milli == 0 {
                String::new()
            } else {
                format!(".{milli:03}")
            };
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}")
        }
        Data::DateTime(duration) => duration.as_f64().to_string(),
        // ODS writes dates and times in ISO 8601; a date alone becomes its midnight like everywhere else here.
        Data::DateTimeIso(text) if weir_plugin_sdk::value::is_date(text) => {
            format!("{text}{MIDNIGHT}")
        }
        Data::DateTimeIso(text) => text.replacen('T', " ", 1),
        Data::DurationIso(text) => text.clone(),
        // #N/A and its like are no values.
        Data::Error(_) | Data::Empty => String::new(),
    }
}

fn broken(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("The {what} cannot be read: {error}."))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use weir_plugin_sdk::testing::{self, files};
    use weir_plugin_sdk::{Adapter, Shape};
    use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

    use super::*;
    use crate::Sheet;

    /// Describes a workbook of one sheet with these cells.
    fn described(cells: &[(&str, &str)]) -> Result<Shape, Error> {
        let rows = cells.iter().map(|(place, text)| {
            let row = place.trim_start_matches(char::is_alphabetic);
            format!(
                r#"<row r="{row}"><c r="{place}" t="inlineStr"><is><t>{text}</t></is></c></row>"#
            )
        });
        let sheet = format!(
            "<worksheet><sheetData>{}</sheetData></worksheet>",
            rows.collect::<String>()
        );
        let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let root = format!(
            r#"<Relationships><Relationship Id="r1" Type="{relation}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
        );
        let workbook = format!(
            r#"<workbook xmlns:r="{relation}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
        );
        let relations = format!(
            r#"<Relationships><Relationship Id="r1" Type="{relation}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#
        );
        let parts = [
            ("_rels/.rels", root),
            ("xl/workbook.xml", workbook),
            ("xl/_rels/workbook.xml.rels", relations),
            ("xl/worksheets/sheet1.xml", sheet),
        ];
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in parts {
            archive
                .start_file(
                    name,
                    SimpleFileOptions::default().compression_method(CompressionMethod::Stored),
                )
                .unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        testing::reset();
        files::put("data", "x.xlsx", archive.finish().unwrap().into_inner());
        Sheet::describe(r#"{"connection":"data","path":"x.xlsx"}"#)
    }

    #[test]
    fn a_stray_cell_is_refused_before_it_takes_the_memory() {
        let shape = described(&[("A1", "name"), ("A2", "x")]).expect("a table");
        assert_eq!(shape.fields[0].key, "name");
        for (stray, said) in [
            ("XFD1048576", "more than 2000 columns"),
            ("B1048576", "more than 1000000 cells"),
        ] {
            let error = described(&[("A1", "name"), ("A2", "x"), (stray, "x")])
                .map(|_| ())
                .expect_err(stray);
            assert!(
                error.is("unsupported") && error.message.contains(said),
                "{error}"
            );
        }
    }
}
