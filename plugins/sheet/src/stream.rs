//! Reads delimited text in pieces: from the granted file to rows, never all of it at once.

use weir_plugin_sdk::{Error, files, progress};

use crate::header::COLUMNS_MAX;
use crate::layout::Layout;
use crate::settings::Settings;
use crate::table::Row;

/// A longer row is refused: most likely a quote was never closed.
pub(crate) const ROW_BYTES_MAX: usize = 1 << 20;
/// Larger files take longer to read than a call may last.
pub(crate) const FILE_BYTES_MAX: u64 = 512 << 20;
/// Rows between two reports of progress, at first; later a tenth of what is done, so that their number is bounded.
const REPORT_ROWS: u64 = 20_000;

/// Reads the file from its start in pieces of at most 1 MiB. Stops early where the file is shorter than it was said to
/// be (it is another by now), or where `act` says so.
pub(crate) fn read_pieces(
    settings: &Settings,
    size: u64,
    mut act: impl FnMut(&[u8]) -> Result<Flow, Error>,
) -> Result<(), Error> {
    if size > FILE_BYTES_MAX {
        let mib = FILE_BYTES_MAX >> 20;
        return Err(Error::unsupported(format!(
            "The file is larger than {mib} MiB; a database would serve it better."
        )));
    }
    let mut offset = 0;
    while offset < size {
        if progress::cancelled() {
            return Err(Error::cancelled());
        }
        let piece = files::read(&settings.connection, &settings.path, offset, files::READ_MAX)?;
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        if act(&piece)? == Flow::Stop {
            break;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

/// Gets a row: its number, its cells and its bytes in the file.
type TakeRow<'a> = dyn FnMut(u64, Row<'_>, std::ops::Range<usize>) -> Result<Flow, Error> + 'a;

/// Bytes in, rows out. `csv-core` is the state machine of the csv crate; used directly because it says where each row
/// lies in the file (a write leaves all others as they are) and because a row can be bounded.
pub(crate) struct Parser {
    reader: csv_core::Reader,
    text: Vec<u8>,
    text_filled: usize,
    ends: Vec<usize>,
    ends_filled: usize,
    /// Bytes taken in so far, and where the row being read began.
    offset: usize,
    row_start: usize,
    /// Rows so far, blank lines not counted.
    pub(crate) rows: u64,
}

impl Parser {
    pub(crate) fn new(layout: Layout) -> Self {
        Self {
            reader: csv_core::ReaderBuilder::new().delimiter(layout.delimiter).build(),
            text: vec![0; 4096],
            text_filled: 0,
            ends: vec![0; 64],
            ends_filled: 0,
            offset: 0,
            row_start: 0,
            rows: 0,
        }
    }

    /// Starts at a row's beginning within the file.
    pub(crate) fn at(layout: Layout, offset: u64) -> Result<Self, Error> {
        let mut parser = Self::new(layout);
        // A byte order mark counts as one only at a reader's beginning, so it has to have read something.
        parser.feed(b"\n", &mut |_, _, _| Ok(Flow::Continue))?;
        parser.offset = offset as usize;
        parser.row_start = parser.offset;
        Ok(parser)
    }

    /// Reads the bytes of one row, and nothing else.
    pub(crate) fn one_row(&mut self, bytes: &[u8], act: &mut TakeRow<'_>) -> Result<(), Error> {
        self.reader.reset();
        self.feed(b"\n", act)?;
        self.feed(bytes, act)?;
        self.finish(act)
    }

    /// Returns where the row begins that is being read.
    pub(crate) fn row_start(&self) -> u64 {
        self.row_start as u64
    }

    pub(crate) fn is_within_row(&self) -> bool {
        self.text_filled > 0 || self.ends_filled > 0
    }

    /// Takes a piece of the file; `act` gets each row that ended in it, with the bytes it took: line ends of the row
    /// before may stand at their front, its own at their end.
    pub(crate) fn feed(&mut self, piece: &[u8], act: &mut TakeRow<'_>) -> Result<Flow, Error> {
        let mut input = piece;
        loop {
            let (result, read, text, ends) =
                self.reader.read_record(input, &mut self.text[self.text_filled..], &mut self.ends[self.ends_filled..]);
            input = &input[read..];
            self.offset += read;
            self.text_filled += text;
            self.ends_filled += ends;
            match result {
                csv_core::ReadRecordResult::InputEmpty | csv_core::ReadRecordResult::End => return Ok(Flow::Continue),
                csv_core::ReadRecordResult::OutputFull => self.widen_text()?,
                csv_core::ReadRecordResult::OutputEndsFull => self.widen_ends()?,
                csv_core::ReadRecordResult::Record => {
                    if self.row(act)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
            }
        }
    }

    /// Ends the file: the last row may have no line end.
    pub(crate) fn finish(&mut self, act: &mut TakeRow<'_>) -> Result<(), Error> {
        self.feed(&[], act).map(drop)
    }

    fn row(&mut self, act: &mut TakeRow<'_>) -> Result<Flow, Error> {
        self.rows += 1;
        let span = self.row_start..self.offset;
        self.row_start = self.offset;
        let (text, ends) = (&self.text[..self.text_filled], &self.ends[..self.ends_filled]);
        self.text_filled = 0;
        self.ends_filled = 0;
        let Some(row) = Row::new(text, ends) else {
            return Err(Error::invalid(format!(
                "Row {} is not UTF-8. Save the file as \"CSV UTF-8\", or convert it: iconv -f windows-1252 -t utf-8 OLD > NEW",
                self.rows
            )));
        };
        act(self.rows, row, span)
    }

    fn widen_text(&mut self) -> Result<(), Error> {
        if self.text.len() >= ROW_BYTES_MAX {
            return Err(Error::invalid(format!(
                "Row {} is longer than 1 MiB; is a quote never closed?",
                self.rows + 1
            )));
        }
        self.text.resize(self.text.len() * 2, 0);
        Ok(())
    }

    fn widen_ends(&mut self) -> Result<(), Error> {
        if self.ends.len() > COLUMNS_MAX {
            return Err(Error::invalid(format!("Row {} has more than {COLUMNS_MAX} columns.", self.rows + 1)));
        }
        self.ends.resize(self.ends.len() * 2, 0);
        Ok(())
    }
}

/// Tells the caller how far a long read has come.
pub(crate) struct Progress {
    next: u64,
    total: Option<u64>,
}

impl Progress {
    pub(crate) fn new(total: Option<u64>) -> Self {
        Self { next: REPORT_ROWS, total }
    }

    pub(crate) fn row(&mut self, rows: u64) -> Result<(), Error> {
        if rows < self.next {
            return Ok(());
        }
        self.next = rows + REPORT_ROWS.max(rows / 10);
        progress::report(rows as f64, self.total.map(|total| total as f64), &format!("{rows} rows read"));
        if progress::cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }
}
