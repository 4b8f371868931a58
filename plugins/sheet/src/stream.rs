//! Reads delimited text in pieces: from the granted file to rows, never all of it at once.

use weir_plugin_sdk::{Error, files, progress};

use crate::header::COLUMNS_MAX;
use crate::layout::{BYTE_ORDER_MARK, DelimitedLayout};
use crate::quotes::{QuoteTracker, UnclearQuotes};
use crate::settings::SheetSettings;
use crate::table::SheetRow;

/// A longer row is refused: most likely a quote was never closed.
pub(crate) const ROW_BYTES_MAX: usize = 1 << 20;
/// Larger files take longer to read than a call may last.
pub(crate) const FILE_BYTES_MAX: u64 = 512 << 20;
/// Rows between two reports of progress, at first; later a tenth of those done, so that the number of reports is bounded.
const REPORT_ROWS: u64 = 20_000;

/// Reads the file from its start in pieces of at most 1 MiB. Stops early if the file is shorter than its stated size (it
/// was replaced in the meantime), or if `act` stops it.
pub(crate) fn read_pieces(
    settings: &SheetSettings,
    size: u64,
    mut act: impl FnMut(&[u8]) -> Result<RowFlow, Error>,
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
        let piece = files::read(
            &settings.connection,
            &settings.path,
            offset,
            files::READ_MAX,
        )
        .map_err(|error| missing_file(settings, error))?;
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        if act(&piece)? == RowFlow::Stop {
            break;
        }
    }
    Ok(())
}

/// Returns the error of a call if the file cannot be read: `not_found` is reserved for a missing record.
pub(crate) fn missing_file(settings: &SheetSettings, error: Error) -> Error {
    match error.is("not_found") {
        true => Error::unavailable(format!(
            "The file {:?} cannot be read: {}.",
            settings.path, error.message
        )),
        false => error,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFlow {
    Continue,
    Stop,
}

/// Gets a row: its number, its cells and its bytes in the file.
type TakeRow<'a> =
    dyn FnMut(u64, SheetRow<'_>, std::ops::Range<usize>) -> Result<RowFlow, Error> + 'a;

/// Bytes in, rows out. `csv-core` is the state machine of the csv crate; it is used directly because it reports where
/// each row is in the file (a write leaves all others as they are) and because a row can be bounded.
pub(crate) struct DelimitedParser {
    reader: csv_core::Reader,
    delimiter: u8,
    /// Nothing of the next row has been read, and the reader's state is that at the beginning of a row.
    is_between_rows: bool,
    /// No row before this place can be taken unchanged.
    plain_from: usize,
    text: Vec<u8>,
    text_filled: usize,
    ends: Vec<usize>,
    ends_filled: usize,
    /// The quotes of the rows, if rows that quotes took in are refused.
    quotes: Option<QuoteTracker>,
    /// The rows whose quotes may be meant differently, if quotes are followed.
    pub(crate) unclear_quotes: UnclearQuotes,
    pub(crate) place: ParserPosition,
}

/// The progress of a parser.
#[derive(Default)]
pub(crate) struct ParserPosition {
    /// Bytes taken in so far, and where the row being read began.
    offset: usize,
    row_start: usize,
    /// Rows so far, blank lines not counted.
    pub(crate) rows: u64,
}

impl DelimitedParser {
    pub(crate) fn new(layout: DelimitedLayout) -> Self {
        Self {
            reader: csv_core::ReaderBuilder::new()
                .delimiter(layout.delimiter)
                .build(),
            delimiter: layout.delimiter,
            is_between_rows: false,
            plain_from: 0,
            text: vec![0; 4096],
            text_filled: 0,
            ends: vec![0; 64],
            ends_filled: 0,
            quotes: None,
            unclear_quotes: UnclearQuotes::default(),
            place: ParserPosition::default(),
        }
    }

    /// Refuses rows that became part of a cell because its quote is not closed.
    pub(crate) fn with_closed_quotes(self) -> Self {
        Self {
            quotes: Some(QuoteTracker::default()),
            ..self
        }
    }

    /// Starts at a row's beginning within the file.
    pub(crate) fn at(layout: DelimitedLayout, offset: u64) -> Result<Self, Error> {
        let mut parser = Self::new(layout);
        // A byte order mark counts as one only at a reader's beginning, so it has to have read something.
        parser.feed(b"\n", &mut |_, _, _| Ok(RowFlow::Continue))?;
        parser.is_between_rows = true;
        parser.place.offset = offset as usize;
        parser.place.row_start = parser.place.offset;
        Ok(parser)
    }

    /// Reads the bytes of whole rows, and nothing else.
    pub(crate) fn rows_alone(&mut self, bytes: &[u8], act: &mut TakeRow<'_>) -> Result<(), Error> {
        self.reader.reset();
        self.is_between_rows = false;
        self.feed(b"\n", act)?;
        self.is_between_rows = true;
        self.plain_from = self.place.offset;
        self.feed(bytes, act)?;
        self.finish(act)
    }

    /// Returns where the row begins that is being read.
    pub(crate) fn row_start(&self) -> u64 {
        self.place.row_start as u64
    }

    pub(crate) fn is_within_row(&self) -> bool {
        self.text_filled > 0 || self.ends_filled > 0
    }

    /// Takes a piece of the file; `act` gets each row that ended in it, with the bytes it took: line ends of the row
    /// before may stand at their front, its own at their end.
    pub(crate) fn feed(&mut self, piece: &[u8], act: &mut TakeRow<'_>) -> Result<RowFlow, Error> {
        let mut input = piece;
        // Programs that put a mark before a file that has one already leave several, of which the reader skips only the first.
        if self.place.offset == 0 {
            while let Some(behind) = input.strip_prefix(BYTE_ORDER_MARK) {
                input = behind;
                self.place.offset += BYTE_ORDER_MARK.len();
            }
            if input.is_empty() && !piece.is_empty() {
                return Ok(RowFlow::Continue);
            }
        }
        loop {
            if self.is_between_rows
                && self.place.offset >= self.plain_from
                && let Some((line, count, read)) = self.plain_row(input)
            {
                self.place.offset += read;
                let row = SheetRow::of_line(&input[line], &self.ends[..count]);
                let flow = self.place.row(row, act)?;
                input = &input[read..];
                if flow == RowFlow::Stop {
                    return Ok(RowFlow::Stop);
                }
                continue;
            }
            self.is_between_rows = false;
            let (result, read, text, ends) = self.reader.read_record(
                input,
                &mut self.text[self.text_filled..],
                &mut self.ends[self.ends_filled..],
            );
            if let Some(quotes) = &mut self.quotes {
                quotes.note(&input[..read], self.delimiter);
                if quotes.has_swallowed() {
                    return Err(self
                        .place
                        .open_quote("is closed only in a later line, before other text"));
                }
                if quotes.take_text_behind() {
                    self.unclear_quotes.add(self.place.rows + 1);
                }
            }
            input = &input[read..];
            self.place.offset += read;
            self.text_filled += text;
            self.ends_filled += ends;
            match result {
                csv_core::ReadRecordResult::InputEmpty | csv_core::ReadRecordResult::End => {
                    return Ok(RowFlow::Continue);
                }
                csv_core::ReadRecordResult::OutputFull => self.widen_text()?,
                csv_core::ReadRecordResult::OutputEndsFull => self.widen_ends()?,
                csv_core::ReadRecordResult::Record => {
                    self.is_between_rows = true;
                    let row = SheetRow::new(
                        &self.text[..self.text_filled],
                        &self.ends[..self.ends_filled],
                    );
                    (self.text_filled, self.ends_filled) = (0, 0);
                    if self.place.row(row, act)? == RowFlow::Stop {
                        return Ok(RowFlow::Stop);
                    }
                }
            }
        }
    }

    /// Finds a row that is whole and has no quotes: its line, the number of its cells, and of the bytes that it takes. Most rows
    /// are so, and are taken as they stand; the others are read byte by byte.
    fn plain_row(&mut self, input: &[u8]) -> Option<(std::ops::Range<usize>, usize, usize)> {
        let start = input
            .iter()
            .take_while(|byte| matches!(byte, b'\n' | b'\r'))
            .count();
        let input = &input[start..];
        let (mut count, mut stopped_at) = (0, input.len());
        for at in memchr::memchr3_iter(self.delimiter, b'\n', b'"', input) {
            stopped_at = at;
            if input[at] == b'"' || count == self.ends.len() {
                break;
            }
            self.ends[count] = at;
            count += 1;
            if input[at] != b'\n' {
                continue;
            }
            // Its line end is `\r` then, and the rest belongs to the next row.
            let (line, read) = match input[..at].strip_suffix(b"\r") {
                Some(line) => (line, at),
                None => (&input[..at], at + 1),
            };
            if memchr::memchr(b'\r', line).is_some() {
                break;
            }
            self.ends[count - 1] = line.len();
            return Some((start..start + line.len(), count, start + read));
        }
        self.plain_from = self.place.offset + start + stopped_at;
        None
    }

    /// Refuses a quote that is open where the file ends.
    pub(crate) fn check_quotes(&self) -> Result<(), Error> {
        match self.quotes.as_ref().is_some_and(QuoteTracker::is_open) {
            true => Err(self.place.open_quote("is never closed")),
            false => Ok(()),
        }
    }

    /// Ends the file like `finish`, but leaves a quote open that takes in no line: the row is then what the file has.
    pub(crate) fn finish_last_line(&mut self, act: &mut TakeRow<'_>) -> Result<(), Error> {
        let quotes = self.quotes.as_ref();
        match quotes.is_some_and(QuoteTracker::is_open_over_lines) {
            true => self.finish(act),
            false => self.feed(&[], act).map(drop),
        }
    }

    /// Ends the file: the last row may have no line end.
    pub(crate) fn finish(&mut self, act: &mut TakeRow<'_>) -> Result<(), Error> {
        self.check_quotes()?;
        self.feed(&[], act).map(drop)
    }

    fn widen_text(&mut self) -> Result<(), Error> {
        if self.text.len() >= ROW_BYTES_MAX {
            return Err(Error::upstream_error(format!(
                "Row {} is longer than 1 MiB; is a quote never closed?",
                self.place.rows + 1
            )));
        }
        self.text.resize(self.text.len() * 2, 0);
        Ok(())
    }

    fn widen_ends(&mut self) -> Result<(), Error> {
        if self.ends.len() > COLUMNS_MAX {
            return Err(Error::upstream_error(format!(
                "Row {} has more than {COLUMNS_MAX} columns; take away those that are not needed.",
                self.place.rows + 1
            )));
        }
        self.ends.resize(self.ends.len() * 2, 0);
        Ok(())
    }
}

impl ParserPosition {
    /// Returns the error for a quote in the row that is being read.
    fn open_quote(&self, problem: &str) -> Error {
        Error::upstream_error(format!(
            "Row {} has a quote that {problem}, so lines behind it are part of its cell. Close the quote, or write a quote that \
             belongs to the text as two in a cell in quotes.",
            self.rows + 1
        ))
    }

    /// Gives a row to `act`. `None`: it is not UTF-8.
    fn row(&mut self, row: Option<SheetRow<'_>>, act: &mut TakeRow<'_>) -> Result<RowFlow, Error> {
        self.rows += 1;
        let span = self.row_start..self.offset;
        self.row_start = self.offset;
        let Some(row) = row else {
            return Err(Error::upstream_error(format!(
                "Row {} is not UTF-8. Save the file as \"CSV UTF-8\", or convert it: iconv -f windows-1252 -t utf-8 OLD > NEW",
                self.rows
            )));
        };
        act(self.rows, row, span)
    }
}

/// Reports to the caller how far a long read has come.
pub(crate) struct SheetProgress {
    next: u64,
    total: Option<u64>,
}

impl SheetProgress {
    pub(crate) fn new(total: Option<u64>) -> Self {
        Self {
            next: REPORT_ROWS,
            total,
        }
    }

    pub(crate) fn row(&mut self, rows: u64) -> Result<(), Error> {
        if rows < self.next {
            return Ok(());
        }
        self.next = rows + REPORT_ROWS.max(rows / 10);
        progress::report(
            rows as f64,
            self.total.map(|total| total as f64),
            &format!("{rows} rows read"),
        );
        if progress::cancelled() {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::LineEnd;

    type Read = (Vec<String>, std::ops::Range<usize>);

    fn read<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Vec<Read> {
        let mut rows = Vec::new();
        let mut take = |_: u64, row: SheetRow<'_>, span: std::ops::Range<usize>| {
            rows.push((row.cells().map(str::to_owned).collect(), span));
            Ok(RowFlow::Continue)
        };
        let mut parser = DelimitedParser::new(DelimitedLayout {
            delimiter: b',',
            line_end: LineEnd::Lf,
            quote_all: false,
        });
        for piece in pieces {
            parser.feed(piece, &mut take).unwrap();
        }
        parser.finish(&mut take).unwrap();
        rows
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

        /// A single byte is never a whole row, so that each row is read byte by byte.
        #[test]
        fn rows_are_the_same_in_whatever_pieces_they_come(text in "([a-b,\"\r\n]|a,b\n|a\r\n|é|[a-z]{60}){0,60}", at in 0_usize..300) {
            let bytes = text.as_bytes();
            let (front, back) = bytes.split_at(at.min(bytes.len()));
            let rows = read(bytes.chunks(1));
            prop_assert_eq!(&read([bytes].into_iter()), &rows);
            prop_assert_eq!(&read([front, back].into_iter()), &rows);
        }
    }
}
