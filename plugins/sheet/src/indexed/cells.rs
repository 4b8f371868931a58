//! The cells of a column in blocks of rows that follow each other, kept as entries of an index: a summary reads the columns that
//! it needs, and never the file.
//!
//! A block has the texts of the cells, in the shortest of three ways: numbers of a few bytes, positions in a list of texts, or
//! the texts. How a contract reads a cell is not part of it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use weir_plugin_sdk::index::{Entry, KEY_MAX};

/// Counts up when the blocks change, so that those made before are not read.
pub(crate) const VERSION: u32 = 1;

/// The rows of a block.
const ROWS_MAX: usize = if cfg!(test) { 7 } else { 8_192 };
/// The bytes of the texts of a block; one text may take more.
const TEXT_MAX: usize = 1 << 20;
/// The texts that a list holds, each of which has a number of one byte.
const LISTED_MAX: usize = if cfg!(test) { 3 } else { 256 };
/// The digits of a number, which an `f64` and an `i64` hold exactly.
const DIGITS_MAX: usize = 15;
/// The offset of a block's first row, and the number of the part: the beginning of a key.
const PLACE_BYTES: usize = 8 + 2;
const PART_BYTES: usize = KEY_MAX - PLACE_BYTES;

/// The first byte of a block.
const LISTED: u8 = 0;
const NUMBERS: u8 = 1;
const TEXTS: u8 = 2;

/// The next block of a column, while rows go by.
#[derive(Default)]
pub(crate) struct CellBlock {
    text: String,
    ends: Vec<usize>,
    rows: Option<Range<u64>>,
}

impl CellBlock {
    /// Adds the cell of a row by the row's bytes in the file.
    pub(crate) fn push(&mut self, cell: &str, at: Range<u64>) {
        self.text.push_str(cell);
        self.ends.push(self.text.len());
        self.rows.get_or_insert(at.clone()).end = at.end;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.ends.len() >= ROWS_MAX || self.text.len() >= TEXT_MAX
    }

    fn cells(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.text[start..*end])
    }

    /// Ends the block: its entries, in the order of their keys.
    pub(crate) fn take(&mut self) -> Vec<Entry> {
        let Some(rows) = self.rows.take() else {
            return Vec::new();
        };
        let bytes = self
            .listed()
            .or_else(|| self.numbers().filter(|bytes| self.is_short(bytes)))
            .unwrap_or_else(|| self.texts());
        self.text.clear();
        self.ends.clear();
        let parts = bytes.chunks(PART_BYTES).zip(0_u16..);
        parts
            .map(|(part, number)| Entry {
                key: [&rows.start.to_be_bytes()[..], &number.to_be_bytes(), part].concat(),
                at: rows.start,
                length: 0,
            })
            .collect()
    }

    /// Writes the different texts, and for each row the number of its text in as few bits as do.
    fn listed(&self) -> Option<Vec<u8>> {
        let (mut numbers, mut texts, mut codes) = (HashMap::new(), Vec::new(), Vec::new());
        for cell in self.cells() {
            let code = *numbers.entry(cell).or_insert_with(|| {
                texts.push(cell);
                texts.len() - 1
            });
            if texts.len() > LISTED_MAX {
                return None;
            }
            codes.push(code as u8);
        }
        let mut bytes = vec![LISTED];
        write_length(codes.len(), &mut bytes);
        write_length(texts.len(), &mut bytes);
        for text in &texts {
            write_length(text.len(), &mut bytes);
            bytes.extend_from_slice(text.as_bytes());
        }
        let bits = bits_of(texts.len());
        bytes.extend(codes.chunks(8 / bits).map(|codes| {
            let codes = codes.iter().zip(0_u32..);
            codes.fold(0, |byte, (code, at)| byte | code << (at * bits as u32))
        }));
        Some(bytes)
    }

    /// Writes numbers without their point, in as few bytes as the difference to the smallest one takes. Zero means an empty
    /// cell.
    fn numbers(&self) -> Option<Vec<u8>> {
        let mut numbers = Vec::with_capacity(self.ends.len());
        for cell in self.cells() {
            numbers.push(match cell {
                "" => None,
                cell => Some(CellNumber::parse(cell)?),
            });
        }
        let places = numbers.iter().flatten().map(|number| number.places);
        let (least, most) = (places.clone().min()?, places.max()?);
        let own_places = least != most;
        let units = |number: &CellNumber| match own_places {
            true => number.units * 16 + i64::from(number.places),
            false => number.units,
        };
        let all = numbers.iter().flatten().map(units);
        let (least, most) = (all.clone().min()?, all.max()?);
        let width = (8 - ((most - least + 1) as u64).leading_zeros() as usize / 8).max(1);
        let mut bytes = vec![NUMBERS];
        write_length(numbers.len(), &mut bytes);
        bytes.push(match own_places {
            true => u8::MAX,
            false => numbers.iter().flatten().next()?.places,
        });
        bytes.push(width as u8);
        bytes.extend_from_slice(&least.to_le_bytes());
        for number in &numbers {
            let offset = number
                .as_ref()
                .map_or(0, |number| units(number) - least + 1);
            bytes.extend_from_slice(&offset.to_le_bytes()[..width]);
        }
        Some(bytes)
    }

    /// Returns `true` for numbers that take no more than the texts, apart from the bytes before the numbers. Each text has a byte for
    /// its length, as no number is longer.
    fn is_short(&self, numbers: &[u8]) -> bool {
        numbers.len() <= self.text.len() + self.ends.len() + size_of::<i64>()
    }

    fn texts(&self) -> Vec<u8> {
        let mut bytes = vec![TEXTS];
        write_length(self.ends.len(), &mut bytes);
        for cell in self.cells() {
            write_length(cell.len(), &mut bytes);
        }
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }
}

/// A number in a cell, which is spelled in the one way that these parts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellNumber {
    /// The number without its point.
    pub(crate) units: i64,
    /// The digits after the point.
    pub(crate) places: u8,
}

impl CellNumber {
    /// Reads `-12.50`; `None` for what is spelled otherwise, such as `+1`, `007` and `-0`.
    fn parse(cell: &str) -> Option<Self> {
        let unsigned = cell.strip_prefix('-').unwrap_or(cell);
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (unsigned, ""),
        };
        let is_whole = whole == "0" || !whole.is_empty() && !whole.starts_with('0');
        let digits = whole.bytes().chain(fraction.bytes());
        if !is_whole
            || whole.len() + fraction.len() > DIGITS_MAX
            || !digits.clone().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        let units = digits.fold(0, |units, digit| units * 10 + i64::from(digit - b'0'));
        let is_negative = unsigned.len() < cell.len();
        (!(is_negative && units == 0)).then_some(Self {
            units: if is_negative { -units } else { units },
            places: fraction.len() as u8,
        })
    }

    /// Returns the cell.
    fn text(self) -> String {
        let places = usize::from(self.places);
        let digits = self.units.unsigned_abs();
        let sign = if self.units < 0 { "-" } else { "" };
        let mut text = format!("{sign}{digits:0>width$}", width = places + 1);
        if places > 0 {
            text.insert(text.len() - places, '.');
        }
        text
    }
}

/// The cells of a block, read again.
#[derive(Debug)]
pub(crate) enum BlockCells {
    /// Different texts, and the number of each cell's text.
    Listed {
        texts: Vec<String>,
        codes: Vec<u8>,
    },
    /// Numbers, with their places if these differ.
    Numbers {
        places: Option<u8>,
        units: Vec<Option<i64>>,
    },
    Texts {
        text: String,
        ends: Vec<usize>,
    },
}

impl BlockCells {
    /// Reads a block; `None` if the bytes are not one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, mut bytes) = bytes.split_first()?;
        let rows = read_length(&mut bytes)?;
        match *kind {
            LISTED => {
                let mut texts = Vec::new();
                for _ in 0..read_length(&mut bytes)? {
                    let length = read_length(&mut bytes)?;
                    let text = bytes.split_off(..length)?;
                    texts.push(std::str::from_utf8(text).ok()?.to_owned());
                }
                let bits = bits_of(texts.len());
                let mask = (u16::MAX >> (16 - bits)) as u8;
                let split = |byte: &u8| {
                    let byte = *byte;
                    (0..8 / bits).map(move |at| byte >> (at * bits) & mask)
                };
                let mut codes: Vec<u8> = bytes.iter().flat_map(split).collect();
                codes.truncate(rows);
                let is_whole = codes.len() == rows
                    && codes.iter().all(|code| usize::from(*code) < texts.len());
                is_whole.then_some(Self::Listed { texts, codes })
            }
            NUMBERS => {
                let ([places, width], bytes) = bytes.split_first_chunk()?;
                let (least, bytes) = bytes.split_first_chunk()?;
                let (least, width) = (i64::from_le_bytes(*least), usize::from(*width));
                if !(1..=8).contains(&width) || bytes.len() != rows * width {
                    return None;
                }
                let number = |bytes: &[u8]| {
                    let mut offset = [0; 8];
                    offset[..width].copy_from_slice(bytes);
                    match i64::from_le_bytes(offset) {
                        0 => None,
                        offset => Some(least.wrapping_add(offset - 1)),
                    }
                };
                Some(Self::Numbers {
                    places: (*places != u8::MAX).then_some(*places),
                    units: bytes.chunks_exact(width).map(number).collect(),
                })
            }
            TEXTS => {
                let (mut ends, mut end) = (Vec::new(), 0);
                for _ in 0..rows {
                    end += read_length(&mut bytes)?;
                    ends.push(end);
                }
                let text = std::str::from_utf8(bytes).ok()?.to_owned();
                let is_whole =
                    end == text.len() && ends.iter().all(|end| text.is_char_boundary(*end));
                is_whole.then_some(Self::Texts { text, ends })
            }
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Listed { codes, .. } => codes.len(),
            Self::Numbers { units, .. } => units.len(),
            Self::Texts { ends, .. } => ends.len(),
        }
    }

    /// Returns a cell that is a number; `None` for an empty one, and where cells are texts.
    pub(crate) fn number(&self, row: usize) -> Option<CellNumber> {
        let Self::Numbers { places, units } = self else {
            return None;
        };
        let units = units[row]?;
        Some(match *places {
            Some(places) => CellNumber { units, places },
            None => CellNumber {
                units: units.div_euclid(16),
                places: units.rem_euclid(16) as u8,
            },
        })
    }

    /// Returns the text of a cell.
    pub(crate) fn text(&self, row: usize) -> Cow<'_, str> {
        match self {
            Self::Listed { texts, codes } => Cow::Borrowed(&texts[usize::from(codes[row])]),
            Self::Numbers { .. } => {
                Cow::Owned(self.number(row).map(CellNumber::text).unwrap_or_default())
            }
            Self::Texts { text, .. } => Cow::Borrowed(&text[self.span(row)]),
        }
    }

    /// Returns where a cell is among the texts, where the block holds each cell's.
    pub(crate) fn span(&self, row: usize) -> Range<usize> {
        match self {
            Self::Texts { ends, .. } => {
                row.checked_sub(1).map_or(0, |before| ends[before])..ends[row]
            }
            _ => 0..0,
        }
    }
}

/// Returns the place of an entry's block, and its part of the block.
pub(crate) fn part(entry: &Entry) -> Option<(u64, &[u8])> {
    let (place, bytes) = entry.key.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*place), bytes.get(2..)?))
}

/// Returns the bits that the numbers of this many texts take: a divisor of eight.
fn bits_of(texts: usize) -> usize {
    match texts {
        0..=2 => 1,
        3..=4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}

/// Writes seven bits a byte, the lowest first.
fn write_length(length: usize, out: &mut Vec<u8>) {
    let mut left = length;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

fn read_length(bytes: &mut &[u8]) -> Option<usize> {
    let mut length = 0;
    for shift in (0..28).step_by(7) {
        let byte = *bytes.split_off_first()?;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the cells after they were written and read.
    fn read_again(cells: &[String]) -> Vec<String> {
        let mut block = CellBlock::default();
        for (row, cell) in cells.iter().enumerate() {
            block.push(cell, row as u64..row as u64 + 1);
        }
        let entries = block.take();
        assert!(entries.iter().all(|entry| entry.key.len() <= KEY_MAX));
        assert!(entries.is_sorted_by(|left, right| left.key < right.key));
        let parts = entries.iter().map(|entry| part(entry).expect("a part").1);
        let bytes = parts.collect::<Vec<_>>().concat();
        if cells.is_empty() {
            return Vec::new();
        }
        let block = BlockCells::parse(&bytes).expect("a block");
        // A part of a block is not a block, and breaks nothing.
        for length in 0..bytes.len() {
            let _ = BlockCells::parse(&bytes[..length]);
        }
        (0..block.len())
            .map(|row| block.text(row).into_owned())
            .collect()
    }

    proptest! {
        #[test]
        fn cells_are_the_same_when_they_are_read_again(
            numbers in proptest::collection::vec("(-?(0|[1-9][0-9]{0,9})(\\.[0-9]{1,4})?)?", 0..80),
            texts in proptest::collection::vec("([a-c]|é\"|[0-9]{0,17}|-0|007|\\.5|1\\.|\\+1|1e2|[a-z]{90})", 0..80),
            few in proptest::collection::vec("[ab]", 0..40),
        ) {
            for cells in [numbers, texts, few] {
                prop_assert_eq!(read_again(&cells), cells);
            }
        }
    }

    #[test]
    fn cells_take_little_room() {
        let bytes = |cell: fn(usize) -> String| {
            let mut block = CellBlock::default();
            (0..4_000).for_each(|row| block.push(&cell(row), 0..1));
            block
                .take()
                .iter()
                .map(|entry| entry.key.len())
                .sum::<usize>()
        };
        assert!(bytes(|row| ["open", "closed", "new"][row % 3].to_owned()) < 1_100);
        assert!(bytes(|row| format!("{}.5", row * 7 % 4_000)) < 8_500);
        assert!(bytes(|row| format!("{}.{}", row * 7 % 4_000, "5".repeat(row % 3 + 1))) < 17_000);
        // Few numbers that are far apart, among empty cells.
        let few = |row: usize| match row % 100 {
            0 => (row * 10_000_000_000).to_string(),
            _ => String::new(),
        };
        assert!(bytes(few) < 5_000);
    }
}
