//! A lookup or a list: from a cached table, or in one pass over the file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use weir_plugin_sdk::files::{self, Info};
use weir_plugin_sdk::{Error, Page, Query, Shape, Type, Zone};

use crate::cache;
use crate::header::{ColumnPositions, names};
use crate::indexed::{self, SheetSource};
use crate::layout::{DelimitedLayout, is_separator_row};
use crate::select::{RowCollector, SheetSelect};
use crate::settings::{SheetFormat, SheetSettings};
use crate::stream::{DelimitedParser, RowFlow, SheetProgress, missing_file, read_pieces};
use crate::table::{OwnedRow, SheetRow, SheetTable};
use crate::workbook;

/// The number of times that a file may change during a read before the read fails.
const ATTEMPTS: usize = 5;

pub(crate) fn read(
    settings: &SheetSettings,
    shape: &Shape,
    zone: &Zone,
    query: &Query,
) -> Result<Page, Error> {
    let select = SheetSelect::new(shape, zone, query)?;
    let scan = SheetScan {
        settings,
        shape,
        select: &select,
        begin: |columns: &ColumnPositions| select.over(columns),
    };
    settled(settings, |info, table| {
        if let Some(table) = table {
            return Ok(scan.table(&table)?.finish());
        }
        if matches!(settings.format, SheetFormat::Delimited(_))
            && let Some(page) = from_index(settings, info, &select, shape, zone, query)?
        {
            return Ok(page);
        }
        Ok(scan.rows(info)?.finish())
    })
}

/// Reads the file until it did not change during a read. `read` gets its table, if there is one in memory.
pub(crate) fn settled<T>(
    settings: &SheetSettings,
    read: impl Fn(&Info, Option<Rc<SheetTable>>) -> Result<T, Error>,
) -> Result<T, Error> {
    for _ in 0..ATTEMPTS {
        let info = stat(settings)?;
        let table = cache::get(settings, &info.version);
        let is_kept = table.is_some();
        let answer = read(&info, table);
        // The failure may come from the change: the indexes are those of the new version by now.
        if is_kept || stat(settings)?.version == info.version {
            return answer;
        }
        cache::forget(settings);
    }
    Err(Error::unavailable("The file changes faster than it can be read.").retry_after_ms(1_000))
}

/// Takes the rows of a file as they go by.
pub(crate) trait RowSink {
    fn take(&mut self, row: SheetRow<'_>) -> Result<(), Error>;

    /// Returns `true` once no later row matters.
    fn is_done(&self) -> bool;
}

impl RowSink for RowCollector<'_> {
    fn take(&mut self, row: SheetRow<'_>) -> Result<(), Error> {
        self.consider(row);
        Ok(())
    }

    fn is_done(&self) -> bool {
        RowCollector::is_done(self)
    }
}

/// Returns the version and size of the file.
pub(crate) fn stat(settings: &SheetSettings) -> Result<Info, Error> {
    files::stat(&settings.connection, &settings.path).map_err(|error| missing_file(settings, error))
}

fn from_index(
    settings: &SheetSettings,
    info: &Info,
    select: &SheetSelect<'_>,
    shape: &Shape,
    zone: &Zone,
    query: &Query,
) -> Result<Option<Page>, Error> {
    match indexed::applies(settings, info) {
        true => SheetSource::open(settings, shape, zone, info)?.read(select, query),
        false => Ok(None),
    }
}

/// Returns the error for a file without a header, which cannot be a table.
pub(crate) fn no_header() -> Error {
    Error::source_changed("The file has no header row.")
}

/// Returns a workbook's table for a shape that has recorded times of day as points in time, or durations as numbers.
fn as_recorded(table: &SheetTable, shape: &Shape, columns: &ColumnPositions) -> Option<SheetTable> {
    let mut kinds: HashMap<usize, Type> = HashMap::new();
    for (at, field) in shape.fields.iter().enumerate() {
        if let Ok(column) = columns.position(at, shape)
            && table.clocks.get(column) == Some(&true)
            && field.kind != Type::String
        {
            kinds.insert(column, field.kind);
        }
    }
    if kinds.is_empty() {
        return None;
    }
    let mut changed = SheetTable::default();
    changed.names.clone_from(&table.names);
    for row in table.rows() {
        let cells: Vec<Cow<'_, str>> = row
            .cells()
            .enumerate()
            .map(|(column, cell)| {
                let kind = kinds.get(&column);
                let before = kind.and_then(|kind| workbook::as_published_before(cell, *kind));
                before.map_or(Cow::Borrowed(cell), Cow::Owned)
            })
            .collect();
        changed.push(OwnedRow::from_cells(cells.iter().map(Cow::as_ref)).as_row());
    }
    Some(changed)
}

/// One look at all rows of a file, wherever they are.
pub(crate) struct SheetScan<'s, B> {
    pub(crate) settings: &'s SheetSettings,
    pub(crate) shape: &'s Shape,
    pub(crate) select: &'s SheetSelect<'s>,
    /// Makes what takes the rows of a file with these columns.
    pub(crate) begin: B,
}

impl<S: RowSink, B: Fn(&ColumnPositions) -> Result<S, Error>> SheetScan<'_, B> {
    /// Takes the rows of a file.
    pub(crate) fn rows(&self, info: &Info) -> Result<S, Error> {
        match self.settings.format {
            SheetFormat::Delimited(delimiter) => self.file(info, delimiter),
            SheetFormat::Workbook(_) => {
                let table = workbook::load(self.settings, info)?;
                self.table(&keep(self.settings, info, table))
            }
        }
    }

    /// Takes the rows of a table.
    pub(crate) fn table(&self, table: &SheetTable) -> Result<S, Error> {
        let columns = ColumnPositions::locate(&table.names, self.shape);
        let recorded = as_recorded(table, self.shape, &columns);
        let table = recorded.as_ref().unwrap_or(table);
        let mut sink = (self.begin)(&columns)?;
        if let Some(candidates) = self.select.candidates(table, &columns) {
            for row in candidates {
                sink.take(row)?;
            }
            return Ok(sink);
        }
        let mut progress = SheetProgress::new(Some(table.len() as u64));
        for (index, row) in table.rows().enumerate() {
            sink.take(row)?;
            if sink.is_done() {
                break;
            }
            progress.row(index as u64 + 1)?;
        }
        Ok(sink)
    }

    fn file(&self, info: &Info, delimiter: Option<u8>) -> Result<S, Error> {
        let settings = self.settings;
        let mut pass = ScanPass {
            scan: self,
            table: None,
            sink: None,
            progress: SheetProgress::new(None),
            rows: 0,
        };
        if info.size <= cache::BYTES_MAX as u64 && !indexed::applies(settings, info) {
            cache::make_room(info.size as usize);
            pass.table = Some(SheetTable::default());
        }
        let mut parser = None;
        read_pieces(settings, info.size, |piece| {
            if parser.is_none() {
                let layout = DelimitedLayout::find(piece, delimiter, settings.header_row)?;
                parser = Some(DelimitedParser::new(layout).with_closed_quotes());
            }
            let parser = parser.as_mut().expect("it was just made");
            parser.feed(piece, &mut |number, row, _| pass.row(number, row))
        })?;
        if let Some(mut parser) = parser {
            parser.finish(&mut |number, row, _| pass.row(number, row))?;
        }
        let ScanPass { table, sink, .. } = pass;
        let sink = sink.ok_or_else(no_header)?;
        if let Some(table) = table {
            keep(settings, info, table);
        }
        Ok(sink)
    }
}

/// One pass over the rows of a file: they are judged, and kept while they fit.
struct ScanPass<'p, S, B> {
    scan: &'p SheetScan<'p, B>,
    table: Option<SheetTable>,
    /// The receiver of the rows, which exists from the header on.
    sink: Option<S>,
    progress: SheetProgress,
    rows: u64,
}

impl<S: RowSink, B: Fn(&ColumnPositions) -> Result<S, Error>> ScanPass<'_, S, B> {
    fn row(&mut self, number: u64, row: SheetRow<'_>) -> Result<RowFlow, Error> {
        let Some(sink) = &mut self.sink else {
            if is_header(self.scan.settings, number, row) {
                let names = names(row.cells());
                let columns = ColumnPositions::locate(&names, self.scan.shape);
                self.sink = Some((self.scan.begin)(&columns)?);
                if let Some(table) = &mut self.table {
                    table.names = names;
                }
            }
            return Ok(RowFlow::Continue);
        };
        if row.is_blank() {
            return Ok(RowFlow::Continue);
        }
        sink.take(row)?;
        self.rows += 1;
        self.progress.row(self.rows)?;
        if let Some(table) = &mut self.table {
            table.push(row);
            if table.bytes() > cache::BYTES_MAX {
                self.table = None;
            }
        }
        // A table must be whole to be kept, so reading continues while there is one.
        Ok(if self.table.is_none() && sink.is_done() {
            RowFlow::Stop
        } else {
            RowFlow::Continue
        })
    }
}

/// Returns `true` for the header: the row that the settings name, or else the first that is not blank. A line that names the
/// delimiter counts as a row, but is never the header unless the settings name it.
pub(crate) fn is_header(settings: &SheetSettings, number: u64, row: SheetRow<'_>) -> bool {
    let names_delimiter = || {
        number == 1 && matches!(settings.format, SheetFormat::Delimited(_)) && is_separator_row(row)
    };
    match settings.header_row {
        Some(wanted) => number == u64::from(wanted),
        None => !row.is_blank() && !names_delimiter(),
    }
}

fn keep(settings: &SheetSettings, info: &Info, table: SheetTable) -> Rc<SheetTable> {
    let table = Rc::new(table);
    if table.bytes() <= cache::BYTES_MAX {
        cache::put(settings, &info.version, table.clone());
    }
    table
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use weir_plugin_sdk::testing::{self, files};

    use super::*;

    /// Reads a file, and fails the given number of times, each time after the file has changed or not.
    fn read_failing(failures: u32, changes: bool) -> Result<u32, Error> {
        testing::reset();
        cache::make_room(cache::BYTES_MAX);
        files::put("data", "x.csv", "id\n1\n");
        let settings = SheetSettings::parse(r#"{"connection":"data","path":"x.csv"}"#)?;
        let tries = Cell::new(0);
        settled(&settings, |_, _| {
            tries.set(tries.get() + 1);
            if tries.get() > failures {
                return Ok(tries.get());
            }
            if changes {
                files::put(
                    "data",
                    "x.csv",
                    "id\n".to_owned() + &"1\n".repeat(tries.get() as usize + 1),
                );
            }
            Err(Error::unavailable("the index is of another version"))
        })
    }

    #[test]
    fn what_fails_while_the_file_changes_is_read_again() {
        assert_eq!(read_failing(0, false).unwrap(), 1);
        assert_eq!(read_failing(1, true).unwrap(), 2);
        let error = read_failing(1, false).expect_err("the file did not change");
        assert!(error.is("unavailable"));
    }
}
