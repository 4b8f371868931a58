//! Finds the rows that may contain a text with a certain part: a signature file in slices, stored as entries of an index.
//!
//! Rows that follow each other are a block. Each three adjacent bytes of a block's texts set one bit of its signature, so a block
//! that lacks a bit of the part's own threes does not contain the part. The entries of one bit give it for many blocks at once;
//! few of these are read for a part, and never the whole signatures of all blocks. ASCII letters count as lower case, so that
//! one file serves both ways to compare.

use std::collections::BTreeMap;
use std::ops::Range;

use weir_plugin_sdk::index::{Entry, KEY_MAX};

/// Counts up when the entries change, so that indexes made before are not read.
pub(crate) const VERSION: u32 = 1;

/// The bits of a signature.
const BITS: usize = 4_096;
/// A block with this many set bits takes no further row: then a three of a part is in a block by chance one time in eight.
const SET_MAX: usize = BITS / 8;
/// The bytes of the file that the rows of a block take, since it is read whole; one row may take more.
const BLOCK_BYTES_MAX: u64 = if cfg!(test) { 96 } else { 16 << 10 };
/// The bytes of a slice, and the blocks that it covers: a group of blocks is written at once.
const SLICE_BYTES: usize = if cfg!(test) { 1 } else { 240 };
const BLOCKS: usize = SLICE_BYTES * 8;
/// Bits of a part that are looked at; more would hardly leave out more.
const LOOKED_MAX: usize = 16;

/// The first byte of a key: a slice, or the place of a block.
const SLICE: u8 = 0;
const BLOCK: u8 = 1;

const _: () = assert!(1 + 2 + 8 + SLICE_BYTES <= KEY_MAX && BITS <= 1 << 16 && BLOCKS <= 1 << 16);

/// The signatures of one group of blocks, while rows go by.
pub(crate) struct BlockSignatures {
    /// For each bit, one bit of each block.
    slices: Vec<u8>,
    /// The blocks that have ended, by their bytes in the file.
    blocks: Vec<Range<u64>>,
    /// The block that rows are added to.
    signature: Box<[bool; BITS]>,
    set: Vec<u16>,
    rows: Option<Range<u64>>,
}

impl BlockSignatures {
    pub(crate) fn new() -> Self {
        Self {
            slices: vec![0; BITS * SLICE_BYTES],
            blocks: Vec::new(),
            signature: Box::new([false; BITS]),
            set: Vec::new(),
            rows: None,
        }
    }

    /// Adds a row by its bytes in the file, which are after those of the previous row.
    pub(crate) fn push(&mut self, text: &str, at: Range<u64>) {
        let has_room =
            |rows: &Range<u64>| at.end - rows.start <= BLOCK_BYTES_MAX && self.set.len() < SET_MAX;
        if !self.rows.as_ref().is_none_or(has_room) {
            self.end_block();
        }
        for bit in bits(text) {
            let is_set = &mut self.signature[usize::from(bit)];
            if !*is_set {
                *is_set = true;
                self.set.push(bit);
            }
        }
        self.rows.get_or_insert(at.clone()).end = at.end;
    }

    /// Returns `true` if the block that rows are added to is the last of its group.
    pub(crate) fn is_full(&self) -> bool {
        self.blocks.len() + 1 == BLOCKS
    }

    fn end_block(&mut self) {
        let Some(rows) = self.rows.take() else { return };
        let number = self.blocks.len();
        for bit in self.set.drain(..) {
            let bit = usize::from(bit);
            self.signature[bit] = false;
            self.slices[bit * SLICE_BYTES + number / 8] |= 1 << (number % 8);
        }
        self.blocks.push(rows);
    }

    /// Ends the group: its entries, in the order of their keys.
    pub(crate) fn take(&mut self) -> Vec<Entry> {
        self.end_block();
        let Some(group) = self.blocks.first().map(|block| block.start) else {
            return Vec::new();
        };
        let mut entries = Vec::new();
        for (bit, slice) in self.slices.chunks_exact_mut(SLICE_BYTES).enumerate() {
            let used = slice
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |last| last + 1);
            if used > 0 {
                let key = [&slice_key(bit)[..], &group.to_be_bytes(), &slice[..used]].concat();
                entries.push(Entry {
                    key,
                    at: group,
                    length: 0,
                });
                slice[..used].fill(0);
            }
        }
        for (number, block) in self.blocks.drain(..).enumerate() {
            let length = (block.end - block.start) as u32;
            entries.push(Entry {
                key: block_key(group, number),
                at: block.start,
                length,
            });
        }
        entries
    }
}

/// The keys of a slice: its first, and the first after it.
pub(crate) type Slice = (Vec<u8>, Vec<u8>);

/// Returns the slices that a part is looked for in; none if the part is too short to have one.
pub(crate) fn slices(part: &str) -> Vec<Slice> {
    let mut bits: Vec<u16> = bits(part).collect();
    bits.sort_unstable();
    bits.dedup();
    bits.truncate(LOOKED_MAX);
    bits.into_iter()
        .map(usize::from)
        .map(|bit| (slice_key(bit).to_vec(), slice_key(bit + 1).to_vec()))
        .collect()
}

/// The blocks that may contain a part, by their groups.
#[derive(Default)]
pub(crate) struct BlockCandidates(BTreeMap<u64, Vec<u8>>);

impl BlockCandidates {
    /// Returns the blocks that have the bit of these entries: all those of one slice.
    pub(crate) fn from_slice(slice: Vec<Entry>) -> Self {
        // The key also has the progress: which slice, and of which group.
        Self(
            slice
                .into_iter()
                .map(|entry| (entry.at, entry.key[1 + 2 + 8..].to_vec()))
                .collect(),
        )
    }

    /// Leaves those that have both.
    pub(crate) fn and(self, other: &Self) -> Self {
        let both = self.0.into_iter().filter_map(|(group, one)| {
            let another = other.0.get(&group)?;
            let both: Vec<u8> = one
                .iter()
                .zip(another)
                .map(|(one, another)| one & another)
                .collect();
            both.iter().any(|byte| *byte != 0).then_some((group, both))
        });
        Self(both.collect())
    }

    /// Returns how many blocks there are, of how many groups.
    pub(crate) fn count(&self) -> (usize, usize) {
        let ones = self
            .0
            .values()
            .flatten()
            .map(|byte| byte.count_ones() as usize);
        (ones.sum(), self.0.len())
    }

    /// Returns for each group the keys of its blocks, and which blocks are meant.
    pub(crate) fn blocks(
        &self,
    ) -> impl Iterator<Item = ((Vec<u8>, Vec<u8>), impl Fn(&Entry) -> bool)> {
        self.0.iter().map(|(group, blocks)| {
            let first = blocks
                .iter()
                .position(|byte| *byte != 0)
                .unwrap_or(blocks.len());
            let keys = (
                block_key(*group, first * 8),
                block_key(*group, blocks.len() * 8),
            );
            let is_meant = move |block: &Entry| {
                let [.., high, low] = block.key[..] else {
                    return false;
                };
                let number = usize::from(u16::from_be_bytes([high, low]));
                blocks
                    .get(number / 8)
                    .is_some_and(|byte| byte & (1 << (number % 8)) != 0)
            };
            (keys, is_meant)
        })
    }
}

fn slice_key(bit: usize) -> [u8; 3] {
    let [high, low] = (bit as u16).to_be_bytes();
    [SLICE, high, low]
}

fn block_key(group: u64, number: usize) -> Vec<u8> {
    [
        &[BLOCK][..],
        &group.to_be_bytes(),
        &(number as u16).to_be_bytes(),
    ]
    .concat()
}

/// Returns the bit of each three adjacent bytes.
fn bits(text: &str) -> impl Iterator<Item = u16> {
    const SHIFT: u32 = u32::BITS - BITS.ilog2();
    text.as_bytes().windows(3).map(|three| {
        let [a, b, c] =
            [three[0], three[1], three[2]].map(|byte| u32::from(byte.to_ascii_lowercase()));
        // Knuth's multiplicative hash: its high bits depend on all of the number's.
        ((a << 16 | b << 8 | c).wrapping_mul(0x9e37_79b1) >> SHIFT) as u16
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(entries: &[Entry], part: &str) -> Vec<Range<u64>> {
        let within = |(from, to): &(Vec<u8>, Vec<u8>)| -> Vec<Entry> {
            entries
                .iter()
                .filter(|entry| *from <= entry.key && entry.key < *to)
                .cloned()
                .collect()
        };
        let slices = slices(part);
        let candidates = slices
            .iter()
            .map(|keys| BlockCandidates::from_slice(within(keys)))
            .reduce(|one, next| one.and(&next));
        let candidates = candidates.expect("the part has a slice");
        let blocks = candidates.blocks().flat_map(|(keys, is_meant)| {
            let meant: Vec<Entry> = within(&keys)
                .into_iter()
                .filter(|block| is_meant(block))
                .collect();
            meant
        });
        blocks
            .map(|block| block.at..block.at + u64::from(block.length))
            .collect()
    }

    #[test]
    fn a_block_is_found_by_parts_of_its_texts_and_by_little_else() {
        let mut signatures = BlockSignatures::new();
        let mut entries = Vec::new();
        for row in 0..100_u64 {
            signatures.push(&format!("Name of {row}"), row * 40..(row + 1) * 40);
            if signatures.is_full() {
                entries.extend(signatures.take());
            }
        }
        entries.extend(signatures.take());
        assert!(entries.iter().all(|entry| entry.key.len() <= KEY_MAX));
        let of_77 = found(&entries, "OF 77");
        assert!(
            of_77.iter().any(|block| block.contains(&(77 * 40))),
            "{of_77:?}"
        );
        assert!(of_77.len() < 10, "{of_77:?}");
        assert_eq!(found(&entries, "absent"), []);
        let blocks = entries.iter().filter(|entry| entry.key[0] == BLOCK).count();
        assert_eq!(found(&entries, "name").len(), blocks, "every block");
        assert!((50..60).contains(&blocks), "{blocks} blocks of two rows");
        assert!(slices("ab").is_empty() && !slices("\u{4e2d}").is_empty());
    }

    #[test]
    fn a_block_with_many_different_texts_ends_early() {
        let mut signatures = BlockSignatures::new();
        let text: String = (0..2_000).map(|number: u32| number.to_string()).collect();
        signatures.push(&text, 0..1);
        signatures.push("", 1..2);
        assert_eq!(
            signatures.blocks.first(),
            Some(&(0..1)),
            "it takes no other row"
        );
    }
}
