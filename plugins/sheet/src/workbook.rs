//! XLSX and ODS: one sheet of a workbook as a table of text.

use std::io::Cursor;

use calamine::{Data, Ods, Range, Reader, Xlsx};
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
        return Err(Error::unsupported(format!("The workbook is larger than {mib} MiB; save the sheet as CSV.")));
    }
    crate::cache::make_room(crate::cache::BYTES_MAX);
    let mut bytes = Vec::with_capacity(info.size as usize);
    read_pieces(settings, info.size, |piece| {
        bytes.extend_from_slice(piece);
        Ok(Flow::Continue)
    })?;
    let range = match settings.format {
        Format::Workbook("ODS") => {
            sheet(Ods::new(Cursor::new(bytes)).map_err(|error| broken("ODS", &error))?, settings)
        }
        _ => sheet(Xlsx::new(Cursor::new(bytes)).map_err(|error| broken("XLSX", &error))?, settings),
    }?;
    table(settings, &range)
}

fn sheet<R>(mut workbook: R, settings: &Settings) -> Result<Range<Data>, Error>
where
    R: Reader<Cursor<Vec<u8>>>,
    R::Error: std::fmt::Display,
{
    let sheets = workbook.sheet_names();
    let name = match &settings.sheet {
        Some(name) if sheets.contains(name) => name.clone(),
        Some(name) => {
            let known = sheets.join(", ");
            return Err(
                Error::source_changed(format!("There is no sheet {name:?}; there are: {known}.")).field("sheet")
            );
        }
        None => sheets.first().cloned().ok_or_else(|| Error::invalid("The workbook has no sheet."))?,
    };
    workbook.worksheet_range(&name).map_err(|error| broken("sheet", &error))
}

fn table(settings: &Settings, range: &Range<Data>) -> Result<Table, Error> {
    let (Some((top, left)), Some((bottom, right))) = (range.start(), range.end()) else {
        return Err(no_header());
    };
    let width = right as usize + 1;
    if width > COLUMNS_MAX {
        return Err(Error::unsupported(format!("The sheet has more than {COLUMNS_MAX} columns.")));
    }
    if (bottom - top + 1) as usize * width > CELLS_MAX {
        return Err(Error::unsupported(format!("The sheet has more than {CELLS_MAX} cells; save it as CSV.")));
    }
    let mut table = Table::default();
    let mut header_seen = false;
    for (index, cells) in range.rows().enumerate() {
        // Rows and columns are counted from the sheet's corner, as people see them.
        let texts = std::iter::repeat_n(String::new(), left as usize).chain(cells.iter().map(text_of));
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
    if header_seen { Ok(table) } else { Err(no_header()) }
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
            let fraction = if milli == 0 { String::new() } else { format!(".{milli:03}") };
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}")
        }
        Data::DateTime(duration) => duration.as_f64().to_string(),
        // ODS writes dates and times in ISO 8601; a date alone becomes its midnight like everywhere else here.
        Data::DateTimeIso(text) if weir_plugin_sdk::value::is_date(text) => format!("{text}{MIDNIGHT}"),
        Data::DateTimeIso(text) => text.replacen('T', " ", 1),
        Data::DurationIso(text) => text.clone(),
        // #N/A and its like are no values.
        Data::Error(_) | Data::Empty => String::new(),
    }
}

fn broken(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("The {what} cannot be read: {error}."))
}
