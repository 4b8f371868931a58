//! XLSX and ODS: one sheet of a workbook as a table of text.

mod column_notes;
mod drawings;
mod error_cells;
mod extent;
mod formulas;
mod number_format;
mod tidied;
mod tidied_xlsx;
mod time;
mod unknown_errors;

use std::io::Cursor;

use calamine::{
    Cell, Data, DataRef, Ods, Range, Reader, Sheet, SheetType, SheetVisible, Xlsx, XlsxError,
};
use weir_plugin_sdk::Error;
use weir_plugin_sdk::files::Info;
use weir_plugin_sdk::shape::SourcePart;
use weir_plugin_sdk::value::is_date;

use crate::header::{COLUMNS_MAX, names};
use crate::scan::{is_header, no_header};
use crate::settings::{SheetFormat, SheetSettings};
use crate::stream::{RowFlow, read_pieces};
use crate::table::{OwnedRow, SheetTable};

use column_notes::{note_clocks, note_long, note_textual};
use unknown_errors::UnknownErrors;

pub(crate) use time::as_published_before;

use formulas::UncomputedFormulas;
use number_format::shown_value;

/// The ending of a date without a time: workbooks have only points in time.
pub(crate) const MIDNIGHT: &str = " 00:00:00";

/// The bound on a workbook's file: unpacked it takes several times its size, and an instance has 64 MB.
const FILE_BYTES_MAX: u64 = 8 << 20;
const CELLS_MAX: usize = 1_000_000;
/// Sheets of one workbook that are looked at.
const SHEETS_MAX: usize = 100;
/// Rows of a sheet, from its first cell or its header on, that decide whether it is a table.
const JUDGED_ROWS: u32 = 100;

fn read_bytes(settings: &SheetSettings, info: &Info) -> Result<Vec<u8>, Error> {
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
        Ok(RowFlow::Continue)
    })?;
    check_container(&bytes)?;
    Ok(bytes)
}

/// Refuses files that other programs also call workbooks, with words about what to do.
fn check_container(bytes: &[u8]) -> Result<(), Error> {
    // A ZIP archive ends with its table of contents, which programs that save in place write last.
    let has_end = memchr::memmem::rfind(bytes, b"PK\x05\x06").is_some();
    let message = match bytes {
        [] => "The file is empty.",
        [0xd0, 0xcf, 0x11, 0xe0, ..] => {
            "The workbook has a password or is one of Excel 97 to 2003: save it as XLSX without a password."
        }
        _ if has_end => return Ok(()),
        [b'P', b'K', ..] => {
            let message = "The end of the workbook is missing: a program may be saving it now. If this persists, it was not copied completely.";
            return Err(Error::unavailable(message).retry_after_ms(1_000));
        }
        _ => {
            "The content of the file is not a workbook, though its name suggests it: open it in a spreadsheet program and save it as one."
        }
    };
    Err(Error::upstream_error(message))
}

pub(crate) fn load(settings: &SheetSettings, info: &Info) -> Result<SheetTable, Error> {
    let bytes = read_bytes(settings, info)?;
    let mut buffer = Vec::new();
    let (range, mut notes) = match settings.format {
        SheetFormat::Workbook("ODS") => {
            extent::check(&bytes, settings.sheet.as_deref())?;
            let mut workbook = tidied::open(&bytes, &mut buffer)?;
            let sheets = workbook.sheets_metadata().to_vec();
            let mut uncomputed = None;
            let (range, mut notes) = choose_sheet(&sheets, settings, |name| {
                let (range, formulas) = ods_cells(&mut workbook, &bytes, name)?;
                uncomputed = formulas.note();
                Ok(range)
            })?;
            notes.extend(uncomputed);
            (range, notes)
        }
        _ => {
            let mut workbook = tidied_xlsx::open(&bytes, &mut buffer)?;
            let sheets = workbook.sheets_metadata().to_vec();
            let mut uncomputed = None;
            let (range, mut notes) = choose_sheet(&sheets, settings, |name| {
                let read = cells(&mut workbook, name, None)?;
                if read.has_blanks {
                    uncomputed = note_uncomputed(&mut workbook, name);
                }
                Ok(read.range)
            })?;
            notes.extend(uncomputed);
            (range, notes)
        }
    };
    let mut table = table(settings, &range)?;
    notes.append(&mut table.notes);
    table.notes = notes;
    Ok(table)
}

/// Returns the sheets of a workbook, with the reason for each that is not a table. Empty for a workbook with one sheet.
pub(crate) fn parts(settings: &SheetSettings, info: &Info) -> Result<Vec<SourcePart>, Error> {
    let bytes = read_bytes(settings, info)?;
    let mut buffer = Vec::new();
    Ok(match settings.format {
        SheetFormat::Workbook("ODS") => {
            extent::check(&bytes, settings.sheet.as_deref())?;
            let mut workbook = tidied::open(&bytes, &mut buffer)?;
            let sheets = workbook.sheets_metadata().to_vec();
            judge_sheets(&sheets, settings, |name, rows| {
                let range = workbook.worksheet_range(name);
                range
                    .map(|range| first_rows(&range, rows))
                    .map_err(|error| broken("sheet", &error))
            })
        }
        _ => {
            let mut workbook = tidied_xlsx::open(&bytes, &mut buffer)?;
            let sheets = workbook.sheets_metadata().to_vec();
            judge_sheets(&sheets, settings, |name, rows| {
                cells(&mut workbook, name, Some(rows)).map(|read| read.range)
            })
        }
    })
}

fn judge_sheets(
    sheets: &[Sheet],
    settings: &SheetSettings,
    mut read: impl FnMut(&str, u32) -> Result<Range<Data>, Error>,
) -> Vec<SourcePart> {
    if sheets.len() < 2 {
        return Vec::new();
    }
    let rows = JUDGED_ROWS.saturating_add(settings.header_row.unwrap_or_default());
    let mut parts = Vec::new();
    for (at, sheet) in sheets.iter().enumerate() {
        let left_out = match (sheet.typ == SheetType::WorkSheet, sheet.visible) {
            _ if at >= SHEETS_MAX => Some(format!("{SHEETS_MAX} sheets are looked at")),
            (false, _) => Some("it has no cells, such as a chart".to_owned()),
            _ if count_named(sheets, &sheet.name) > 1 => {
                Some("another sheet has the same name".to_owned())
            }
            (true, SheetVisible::Visible) => why_no_table(settings, read(&sheet.name, rows)),
            (true, _) => Some("it is hidden".to_owned()),
        };
        parts.push(SourcePart {
            name: sheet.name.clone(),
            left_out,
        });
    }
    parts
}

/// Returns why a sheet is not a table, if it is not one: a cover has a title, but no header of several columns.
fn why_no_table(settings: &SheetSettings, range: Result<Range<Data>, Error>) -> Option<String> {
    let range = match range {
        Ok(range) if range.is_empty() => return Some("it has no cells".to_owned()),
        Ok(range) => range,
        Err(error) => return Some(error.message),
    };
    match table(settings, &range) {
        Ok(table) if table.given_names < 2 => {
            Some("its first row has one cell, which is a title rather than a header".to_owned())
        }
        Ok(table) if table.len() == 0 => Some("it has no rows below its header".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.message),
    }
}

/// Notes which other sheets there are, if the settings do not name one.
fn note_sheets(sheets: &[Sheet], chosen: &str) -> Vec<String> {
    let others = sheets.iter().filter(|sheet| sheet.name != chosen);
    let others: Vec<String> = others
        .map(|sheet| {
            let why = match (sheet.typ == SheetType::WorkSheet, sheet.visible) {
                (false, _) => " (no cells)",
                (true, SheetVisible::Visible) => "",
                (true, _) => " (hidden)",
            };
            format!("{:?}{why}", sheet.name)
        })
        .collect();
    match others.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "The sheet {chosen:?} of the workbook is read, and not {}: name another as `sheet:` in the settings.",
            others.join(", ")
        )],
    }
}

/// Returns the cells of the chosen sheet: the one that the settings name, or else the first with visible cells.
fn choose_sheet(
    sheets: &[Sheet],
    settings: &SheetSettings,
    mut read: impl FnMut(&str) -> Result<Range<Data>, Error>,
) -> Result<(Range<Data>, Vec<String>), Error> {
    if let Some(name) = &settings.sheet {
        return match count_named(sheets, name) {
            1 => Ok((read(name)?, Vec::new())),
            2.. => Err(named_twice(name)),
            0 => {
                let known: Vec<&str> = sheets.iter().map(|sheet| sheet.name.as_str()).collect();
                let known = known.join(", ");
                Err(Error::source_changed(format!(
                    "There is no sheet {name:?}; there are: {known}."
                ))
                .field("sheet"))
            }
        };
    }
    for sheet in sheets.iter().filter(|sheet| is_table(sheet)) {
        if count_named(sheets, &sheet.name) > 1 {
            return Err(named_twice(&sheet.name));
        }
        let range = read(&sheet.name)?;
        if !range.is_empty() {
            return Ok((range, note_sheets(sheets, &sheet.name)));
        }
    }
    Err(Error::upstream_error(
        "The workbook has no visible sheet with cells; name one by `sheet`.",
    ))
}

fn count_named(sheets: &[Sheet], name: &str) -> usize {
    sheets.iter().filter(|sheet| sheet.name == name).count()
}

/// Returns the error for a name that several sheets have, as spreadsheet programs let no two: either could be meant.
fn named_twice(name: &str) -> Error {
    Error::upstream_error(format!(
        "The workbook has several sheets named {name:?}; give each a different name."
    ))
}

/// Returns `true` for a sheet of cells that people see.
fn is_table(sheet: &Sheet) -> bool {
    sheet.visible == SheetVisible::Visible && sheet.typ == SheetType::WorkSheet
}

fn ods_cells(
    workbook: &mut Ods<Cursor<&[u8]>>,
    bytes: &[u8],
    name: &str,
) -> Result<(Range<Data>, UncomputedFormulas), Error> {
    let mut range = workbook
        .worksheet_range(name)
        .map_err(|error| broken("sheet", &error))?;
    let formulas = error_cells::clear(bytes, name, &mut range)?;
    Ok((range, formulas))
}

/// Returns the first rows of a sheet.
fn first_rows(range: &Range<Data>, rows: u32) -> Range<Data> {
    match (range.start(), range.end()) {
        (Some((top, left)), Some((bottom, right))) => {
            let bottom = bottom.min(top.saturating_add(rows));
            range.range((top, left), (bottom, right))
        }
        _ => Range::default(),
    }
}

/// The cells of a sheet.
#[derive(Default)]
struct SheetCells {
    range: Range<Data>,
    /// Some have a format and no value.
    has_blanks: bool,
}

/// Notes that formulas have no value, as written by libraries that do not compute them. A cell without a value may be one.
fn note_uncomputed(workbook: &mut Xlsx<Cursor<&[u8]>>, name: &str) -> Option<String> {
    let mut reader = workbook.worksheet_cells_reader(name).ok()?;
    let mut formulas = UncomputedFormulas::default();
    // A formula that cannot be read costs the note and not the sheet.
    while let Some(cell) = reader.next_cell_with_formula_metadata().ok()? {
        if cell.formula.is_some() && matches!(cell.value, DataRef::Empty) {
            formulas.add(cell.pos.0, 1);
        }
    }
    formulas.note()
}

/// Returns the cells of a sheet, or of its first rows. They are counted as they come: one stray cell in the last row makes
/// a range larger than the memory.
fn cells(
    workbook: &mut Xlsx<Cursor<&[u8]>>,
    name: &str,
    rows_max: Option<u32>,
) -> Result<SheetCells, Error> {
    let unreadable = |error: XlsxError| broken("sheet", &error);
    let from_1904 = workbook.has_1904_epoch();
    let mut reader = match workbook.worksheet_cells_reader(name) {
        // A sheet of a chart has no cells.
        Err(XlsxError::NotAWorksheet(_)) => return Ok(SheetCells::default()),
        reader => reader.map_err(unreadable)?,
    };
    let mut cells = Vec::new();
    let mut has_blanks = false;
    let (mut top, mut bottom, mut right) = (u32::MAX, 0, 0);
    let mut unknown_errors = UnknownErrors::default();
    loop {
        let next = match reader.next_cell_with_style_id() {
            Err(XlsxError::CellError(_)) => {
                unknown_errors.note();
                continue;
            }
            next => next.map_err(unreadable)?,
        };
        let Some((cell, style)) = next else { break };
        unknown_errors.note_cell(cell.get_position());
        let value = match cell.get_value() {
            DataRef::Empty => {
                has_blanks = true;
                continue;
            }
            DataRef::DateTime(days) => {
                let style = reader.styles().get(style);
                shown_value(days.as_f64(), Some(*days), style, from_1904)
            }
            DataRef::Float(number) => {
                shown_value(*number, None, reader.styles().get(style), from_1904)
            }
            value => Data::from(value.clone()),
        };
        let (row, column) = cell.get_position();
        if rows_max.is_some_and(|rows| row > top.saturating_add(rows)) {
            break;
        }
        (top, bottom, right) = (top.min(row), bottom.max(row), right.max(column));
        check(top, bottom, right)?;
        cells.push(Cell::new((row, column), value));
    }
    drop(reader);
    unknown_errors.check(workbook, name)?;
    Ok(SheetCells {
        range: Range::from_sparse(cells),
        has_blanks,
    })
}

/// Returns a date without its midnight.
pub(crate) fn without_midnight(cell: &str) -> &str {
    let date = cell.strip_suffix(MIDNIGHT);
    date.filter(|date| is_date(date)).unwrap_or(cell)
}

/// Checks that a sheet of these rows and columns is within bounds. Returns its width.
fn check(top: u32, bottom: u32, right: u32) -> Result<usize, Error> {
    let width = right as usize + 1;
    if width > COLUMNS_MAX {
        return Err(Error::unsupported(format!(
            "The sheet has more than {COLUMNS_MAX} columns; take away those that are not needed."
        )));
    }
    if (bottom - top + 1) as usize * width > CELLS_MAX {
        return Err(Error::unsupported(format!(
            "The sheet has more than {CELLS_MAX} cells; save it as CSV."
        )));
    }
    Ok(width)
}

fn table(settings: &SheetSettings, range: &Range<Data>) -> Result<SheetTable, Error> {
    let (Some((top, left)), Some((bottom, right))) = (range.start(), range.end()) else {
        return Err(no_header());
    };
    let width = check(top, bottom, right)?;
    let mut table = SheetTable::default();
    let mut header_seen = false;
    let mut has_long = vec![false; width];
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
                note_clocks(&mut table.clocks, cells, left as usize);
                note_long(&mut has_long, cells, left as usize);
                table.push(row);
            }
        } else if is_header(settings, u64::from(top) + index as u64 + 1, row) {
            header_seen = true;
            // A date in the header is only the date, as people see it there.
            table.names = names(row.cells().map(without_midnight));
            table.given_names = row.cells().filter(|cell| !cell.trim().is_empty()).count();
            table.textual = vec![false; width];
            table.clocks = vec![false; width];
        }
    }
    if !header_seen {
        return Err(no_header());
    }
    for (name, _) in table.names.iter().zip(has_long).filter(|(_, long)| *long) {
        table.notes.push(format!(
            "The column {name:?} has whole numbers of more than 15 digits. A number of a workbook keeps no more, so that those behind \
             may be others than were written: make its cells text in the workbook."
        ));
    }
    Ok(table)
}

fn text_of(cell: &Data) -> String {
    match cell {
        Data::Int(integer) => integer.to_string(),
        Data::Float(number) => number_text(*number),
        Data::String(text) => text.clone(),
        Data::Bool(boolean) => boolean.to_string(),
        Data::DateTimeIso(text) => time::from_iso(text).unwrap_or_default(),
        Data::DurationIso(text) => time::from_iso_duration(text).unwrap_or_default(),
        // Errors such as #N/A are not values. Numbers of days are texts by now.
        Data::DateTime(_) | Data::Error(_) | Data::Empty => String::new(),
    }
}

/// Returns a number as spreadsheet programs show it: with at most 15 digits, where the result of a formula has 17
/// (`0.1+0.2`); nothing for one that is not finite.
fn number_text(number: f64) -> String {
    if !number.is_finite() {
        return String::new();
    }
    if number.fract() == 0.0 {
        return number.to_string();
    }
    rounded(number).to_string()
}

/// Returns a number with at most 15 digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.14e}").parse().unwrap_or(number)
}

fn broken(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::upstream_error(format!("The {what} cannot be read: {error}."))
}

#[cfg(test)]
mod tests;
