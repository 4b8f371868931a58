//! Rows of text, compactly: blocks of cells, so that a large table grows without being copied.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use weir_plugin_sdk::shape::TextFormat;
use weir_plugin_sdk::{Field, Type, Value, Zone};

const BLOCK_ROWS: usize = 1024;
/// Ctrl-Z, which DOS programs write after the last line.
const FILE_END: &str = "\u{1a}";

/// A row: the text of its cells joined, and where each ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SheetRow<'a> {
    text: &'a str,
    ends: &'a [usize],
    /// The bytes between two cells: the delimiter, or none.
    gap: u8,
}

impl<'a> SheetRow<'a> {
    /// Creates a row; `None` if the bytes, as a whole or in a cell, are not UTF-8.
    pub(crate) fn new(bytes: &'a [u8], ends: &'a [usize]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        ends.iter()
            .all(|end| text.is_char_boundary(*end))
            .then_some(Self { text, ends, gap: 0 })
    }

    /// Creates a row from a line whose cells are separated by delimiters of one byte; `None` if it is not UTF-8.
    pub(crate) fn of_line(bytes: &'a [u8], ends: &'a [usize]) -> Option<Self> {
        // A delimiter is ASCII, and never within a character.
        Some(Self {
            text: std::str::from_utf8(bytes).ok()?,
            ends,
            gap: 1,
        })
    }

    /// Returns a cell; one that the row is too short for is empty.
    pub(crate) fn cell(&self, column: usize) -> &'a str {
        match self.ends.get(column) {
            Some(end) => {
                &self.text[if column == 0 {
                    0
                } else {
                    self.ends[column - 1] + usize::from(self.gap)
                }..*end]
            }
            None => "",
        }
    }

    pub(crate) fn cells(self) -> impl Iterator<Item = &'a str> {
        (0..self.ends.len()).map(move |column| self.cell(column))
    }

    /// Returns `true` for a row of empty cells, and for the sign that ends a file of DOS programs.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.len() == self.ends.len().saturating_sub(1) * usize::from(self.gap)
            || (self.ends.len() == 1 && self.text == FILE_END)
    }

    pub(crate) fn to_owned(self) -> OwnedRow {
        OwnedRow {
            text: self.text.to_owned(),
            ends: self.ends.to_vec(),
            gap: self.gap,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct OwnedRow {
    text: String,
    ends: Vec<usize>,
    gap: u8,
}

impl OwnedRow {
    pub(crate) fn from_cells<'a>(cells: impl Iterator<Item = &'a str>) -> Self {
        let mut row = Self {
            text: String::new(),
            ends: Vec::new(),
            gap: 0,
        };
        for cell in cells {
            row.text.push_str(cell);
            row.ends.push(row.text.len());
        }
        row
    }

    pub(crate) fn as_row(&self) -> SheetRow<'_> {
        SheetRow {
            text: &self.text,
            ends: &self.ends,
            gap: self.gap,
        }
    }
}

#[derive(Debug, Default)]
struct CellBlock {
    text: String,
    ends: Vec<usize>,
    /// The end of each row in `text` and in `ends`, and the bytes between its cells.
    rows: Vec<(u32, u32, u8)>,
}

/// A whole file, parsed. The header is not among the rows.
#[derive(Debug, Default)]
pub(crate) struct SheetTable {
    pub(crate) names: Vec<String>,
    /// Workbooks: columns with a text cell that would read as a number or a boolean, so they are text on purpose.
    pub(crate) textual: Vec<bool>,
    /// Workbooks: the cells of the header with a text, and notes on the sheets.
    pub(crate) given_names: usize,
    pub(crate) notes: Vec<String>,
    /// Workbooks: columns with times of day or durations.
    pub(crate) clocks: Vec<bool>,
    blocks: Vec<CellBlock>,
    bytes: usize,
    indexes: RefCell<HashMap<IndexKey, Rc<Index>>>,
}

/// A column, and how its cells are read: two contracts may read one column as two types.
type IndexKey = (usize, Type, Option<Box<TextFormat>>, Vec<String>);

/// Rows by the hash of one column's value, sorted by it.
type Index = Vec<(u32, u32)>;

impl SheetTable {
    pub(crate) fn push(&mut self, row: SheetRow<'_>) {
        if self
            .blocks
            .last()
            .is_none_or(|block| block.rows.len() == BLOCK_ROWS || block.text.len() > 1 << 20)
        {
            self.blocks.push(CellBlock::default());
        }
        let block = self.blocks.last_mut().expect("one was just pushed");
        block.text.push_str(row.text);
        block.ends.extend_from_slice(row.ends);
        block
            .rows
            .push((block.text.len() as u32, block.ends.len() as u32, row.gap));
        self.bytes += row.text.len() + size_of_val(row.ends) + 12;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = SheetRow<'_>> {
        self.blocks
            .iter()
            .flat_map(|block| (0..block.rows.len()).map(|at| block.row(at)))
    }

    /// Returns the rows whose `column` may contain `value`, in the file's order: at least those that do.
    pub(crate) fn candidates(
        &self,
        column: usize,
        field: &Field,
        value: &Value<'_>,
    ) -> Vec<SheetRow<'_>> {
        let index = self.index(column, field);
        let hash = hash(value);
        let from = index.partition_point(|(of, _)| *of < hash);
        index[from..]
            .iter()
            .take_while(|(of, _)| *of == hash)
            .map(|(_, row)| self.row(*row as usize))
            .collect()
    }

    fn row(&self, at: usize) -> SheetRow<'_> {
        let mut at = at;
        for block in &self.blocks {
            if at < block.rows.len() {
                return block.row(at);
            }
            at -= block.rows.len();
        }
        unreachable!("an index holds rows of its own table")
    }

    fn index(&self, column: usize, field: &Field) -> Rc<Index> {
        let key = (
            column,
            field.kind,
            field.format.clone(),
            field.null_words.clone(),
        );
        if let Some(index) = self.indexes.borrow().get(&key) {
            return index.clone();
        }
        let utc = Zone::utc();
        let hash_of =
            |row: SheetRow<'_>| hash(&crate::select::cell_value(row.cell(column), field, &utc));
        let mut index: Index = self
            .rows()
            .enumerate()
            .map(|(at, row)| (hash_of(row), at as u32))
            .collect();
        index.sort_unstable();
        let index = Rc::new(index);
        self.indexes.borrow_mut().insert(key, index.clone());
        index
    }
}

impl CellBlock {
    fn row(&self, at: usize) -> SheetRow<'_> {
        let (text_from, ends_from, _) = if at == 0 {
            (0, 0, 0)
        } else {
            self.rows[at - 1]
        };
        let (text_to, ends_to, gap) = self.rows[at];
        SheetRow {
            gap,
            text: &self.text[text_from as usize..text_to as usize],
            ends: &self.ends[ends_from as usize..ends_to as usize],
        }
    }
}

/// Returns FNV-1a over the canonical JSON: equal values have equal bytes.
fn hash(value: &Value<'_>) -> u32 {
    let json = value.to_json();
    json.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
