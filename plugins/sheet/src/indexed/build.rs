//! Builds an index of a file, piece by piece: of a column's values, of the parts of its texts, or of its cells.

use weir_plugin_sdk::index::{self, Entry};
use weir_plugin_sdk::{Error, Value, clock, files};

use super::SheetSource;
use super::cells::CellBlock;
use super::signatures::BlockSignatures;
use crate::header::ColumnPositions;
use crate::scan::stat;
use crate::select::cell_value;
use crate::sort_key::sort_key;
use crate::stream::{DelimitedParser, RowFlow};

/// The processor time of an instance for one piece of building.
const PIECE_NS: u64 = 400_000_000;
/// The times that one piece of building adds to its index, at most. Each is two calls of the host, whose number is bounded; a piece
/// of the file ends at most 64 blocks.
const ADDS_MAX: usize = 200;
const ENTRIES_AT_ONCE: usize = 8_192;

impl SheetSource<'_> {
    /// Continues to build an index of a column for a while; returns true while more is left.
    pub(crate) fn build(&self, column: &str) -> Result<bool, Error> {
        let mut fields = 0..self.shape.fields.len();
        let found = fields.find_map(|at| match column {
            _ if column == self.column(at) => Some((at, IndexBatch::Values(Vec::new()))),
            _ if column == self.signatures(at) => {
                Some((at, IndexBatch::Signatures(BlockSignatures::new())))
            }
            _ if column == self.cells(at) => Some((at, IndexBatch::Cells(CellBlock::default()))),
            _ => None,
        });
        let Some((at, mut making)) = found else {
            return Err(Error::invalid("There is no such column.").field(column));
        };
        if self.covered(column).is_some() {
            return Ok(false);
        }
        let name = self.name(column.to_owned());
        let field = &self.shape.fields[at];
        let position =
            ColumnPositions::locate(&self.head.names, self.shape).position(at, self.shape)?;
        let began = clock::monotonic_ns();
        let mut covered = index::begin(&name)?;
        let mut offset = covered.max(self.head.body_at);
        let mut parser = DelimitedParser::at(self.head.layout, offset)?.with_closed_quotes();
        // The rows read belong to this version only if the file still has it.
        let has_changed = || Ok::<_, Error>(stat(self.settings)?.version != self.info.version);
        let (mut is_over, mut adds) = (false, 0);
        while !is_over {
            let mut piece = files::read(
                &self.settings.connection,
                &self.settings.path,
                offset,
                files::READ_MAX,
            )?;
            offset += piece.len() as u64;
            is_over = piece.is_empty() || offset >= self.info.size;
            if is_over {
                // A line end closes the last row.
                piece.push(b'\n');
            }
            parser.feed(&piece, &mut |_, row, span| {
                let span = span.start as u64..span.end as u64;
                if !row.is_blank() {
                    let cell = row.cell(position);
                    making.push(cell, || cell_value(cell, field, self.zone), span.clone());
                }
                if making.is_full() {
                    if has_changed()? {
                        return Ok(RowFlow::Stop);
                    }
                    let upto = span.end.min(self.info.size);
                    index::add(&name, &making.take(), covered, upto)?;
                    covered = upto;
                    adds += 1;
                }
                Ok(RowFlow::Continue)
            })?;
            if making.is_full() {
                return Ok(false);
            }
            if is_over {
                // Text after an open quote would swallow appended rows: such a file gets no index.
                parser.check_quotes()?;
            }
            if adds >= ADDS_MAX || clock::monotonic_ns().saturating_sub(began) >= PIECE_NS {
                break;
            }
        }
        if has_changed()? {
            return Ok(false);
        }
        let upto = if is_over {
            self.info.size
        } else {
            parser.row_start()
        };
        index::add(&name, &making.take(), covered, upto)?;
        if is_over {
            index::finish(&name)?;
        }
        Ok(!is_over)
    }
}

/// The next entries of an index that is built.
enum IndexBatch {
    /// Of a column's values: an entry a row.
    Values(Vec<Entry>),
    Signatures(BlockSignatures),
    Cells(CellBlock),
}

impl IndexBatch {
    /// Adds a row by its bytes in the file.
    fn push<'v>(
        &mut self,
        cell: &str,
        value: impl FnOnce() -> Value<'v>,
        at: std::ops::Range<u64>,
    ) {
        match self {
            Self::Values(entries) => entries.push(Entry {
                key: sort_key(&value()),
                at: at.start,
                length: (at.end - at.start) as u32,
            }),
            Self::Signatures(signatures) => match value() {
                Value::Text(text) => signatures.push(&text, at),
                _ => signatures.push("", at),
            },
            Self::Cells(block) => block.push(cell, at),
        }
    }

    fn is_full(&self) -> bool {
        match self {
            Self::Values(entries) => entries.len() >= ENTRIES_AT_ONCE,
            Self::Signatures(signatures) => signatures.is_full(),
            Self::Cells(block) => block.is_full(),
        }
    }

    fn take(&mut self) -> Vec<Entry> {
        match self {
            Self::Values(entries) => std::mem::take(entries),
            Self::Signatures(signatures) => signatures.take(),
            Self::Cells(block) => block.take(),
        }
    }
}
