//! Reads the cells of columns from their indexes, block by block.

use std::iter::Peekable;

use weir_plugin_sdk::index::{self, Entry, Name, RANGE_MAX, Range};
use weir_plugin_sdk::serde_json::json;
use weir_plugin_sdk::{Error, Field};

use super::SheetSource;
use super::cells::{self, BlockCells};

/// The cells of a column, from the file's first row on.
pub(crate) struct CellColumn {
    name: Name,
    /// The bytes of the file that the blocks cover.
    pub(crate) covers: u64,
    entries: Peekable<std::vec::IntoIter<Entry>>,
    /// The last entry that was read, and whether it is the last of all.
    last: Option<Entry>,
    is_last: bool,
}

impl<'s> SheetSource<'s> {
    /// Returns the cells of these columns; `None` for no column, and while no index has them: then one is asked for.
    pub(crate) fn columns(&self, fields: &[usize]) -> Option<Vec<(&'s Field, CellColumn)>> {
        if fields.is_empty() {
            return None;
        }
        let mut columns = Vec::new();
        let mut has_all = true;
        for field in fields {
            let name = self.cells(*field);
            match self.covered(&name) {
                Some(covers) => {
                    let column = CellColumn::new(self.name(name), covers);
                    columns.push((self.shape.fields.get(*field)?, column));
                }
                None => {
                    index::later(&name);
                    has_all = false;
                }
            }
        }
        has_all.then_some(columns)
    }

    /// Names the cells of a column.
    pub(super) fn cells(&self, field: usize) -> String {
        json!(["cells", cells::VERSION, self.shape.fields[field].key]).to_string()
    }
}

impl CellColumn {
    fn new(name: Name, covers: u64) -> Self {
        Self {
            name,
            covers,
            entries: Vec::new().into_iter().peekable(),
            last: None,
            is_last: false,
        }
    }

    /// Returns the next block; `None` after the last one.
    pub(crate) fn next_block(&mut self) -> Result<Option<BlockCells>, Error> {
        let (mut place, mut bytes) = (None, Vec::new());
        loop {
            if self.entries.peek().is_none() && !self.is_last {
                self.read_entries()?;
            }
            let Some(entry) = self.entries.peek() else {
                break;
            };
            let (at, part) = cells::part(entry).ok_or_else(broken)?;
            if place.is_some_and(|place| place != at) {
                break;
            }
            place = Some(at);
            bytes.extend_from_slice(part);
            self.entries.next();
        }
        match place {
            Some(_) => BlockCells::parse(&bytes).map(Some).ok_or_else(broken),
            None => Ok(None),
        }
    }

    fn read_entries(&mut self) -> Result<(), Error> {
        let range = Range {
            after: self.last.take(),
            limit: RANGE_MAX,
            ..Range::default()
        };
        let entries = index::range(&self.name, &range)?;
        self.is_last = entries.len() < RANGE_MAX as usize;
        self.last = entries.last().cloned();
        self.entries = entries.into_iter().peekable();
        Ok(())
    }
}

/// Returns the error for an index with other blocks than those that were made.
pub(crate) fn broken() -> Error {
    Error::unavailable("The index of a column cannot be read.")
}
