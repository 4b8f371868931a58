//! Entries of an index, read by ranges of keys.

use weir_plugin_sdk::index::{self, Entry, Name, RANGE_MAX, Range};
use weir_plugin_sdk::{Error, Value};

use crate::sort_key::sort_key;

/// Entries that are asked for first, since usually no more are needed.
pub(super) const FEW: u32 = 128;

/// Returns all entries whose keys are in this range, in order. They are asked for this many at once.
pub(super) fn within(
    name: &Name,
    (from, to): (Vec<u8>, Vec<u8>),
    limit: u32,
) -> Result<Vec<Entry>, Error> {
    let mut range = Range {
        from,
        to: Some(to),
        limit,
        ..Range::default()
    };
    let mut entries = Vec::new();
    loop {
        let page = index::range(name, &range)?;
        let is_last = page.len() < range.limit as usize;
        range.after = page.last().cloned();
        range.limit = RANGE_MAX;
        entries.extend(page);
        if is_last {
            return Ok(entries);
        }
    }
}

/// Returns all entries in these ranges, in the file's order; `None` if there are more than `most`.
pub(super) fn entries(
    name: &Name,
    ranges: &[Range],
    most: usize,
) -> Result<Option<Vec<Entry>>, Error> {
    let mut entries: Vec<Entry> = Vec::new();
    for range in ranges {
        let mut range = range.clone();
        // Mostly there are few, and the host answers few at once.
        let mut page_max = FEW;
        loop {
            range.limit = (most + 1 - entries.len()).min(page_max as usize) as u32;
            page_max = (page_max * 4).min(RANGE_MAX);
            let page = index::range(name, &range)?;
            let is_last = page.len() < range.limit as usize;
            range.after = page.last().cloned();
            entries.extend(page);
            if entries.len() > most {
                return Ok(None);
            }
            if is_last {
                break;
            }
        }
    }
    entries.sort_unstable_by_key(|entry| entry.at);
    Ok(Some(entries))
}

/// Returns the range of keys with this value.
pub(super) fn exactly(value: &Value<'_>) -> Range {
    let from = sort_key(value);
    Range {
        to: Some(behind(&from)),
        from,
        ..Range::default()
    }
}

/// Returns the least key that is greater.
pub(super) fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
