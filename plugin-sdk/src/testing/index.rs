//! Indexes in memory, and the work that was asked for.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::index::{Entry, KEY_MAX, Name, RANGE_MAX, Range};

#[derive(Default)]
struct Indexes {
    done: BTreeMap<Name, (u64, Vec<Entry>)>,
    building: BTreeMap<Name, (u64, Vec<Entry>)>,
    later: Vec<String>,
    ranges: u64,
    before_range: Option<Box<dyn FnMut()>>,
}

thread_local! { static INDEXES: RefCell<Indexes> = RefCell::default(); }

/// Returns the work that was asked for since the last look.
pub fn asked() -> Vec<String> {
    INDEXES.with_borrow_mut(|indexes| std::mem::take(&mut indexes.later))
}

/// Returns the number of ranges read, to see that an index was used.
pub fn ranges() -> u64 {
    INDEXES.with_borrow(|indexes| indexes.ranges)
}

/// Runs before each range is read: here a test lets a writer come first.
pub fn before_range(act: impl FnMut() + 'static) {
    INDEXES.with_borrow_mut(|indexes| indexes.before_range = Some(Box::new(act)));
}

/// Returns how much the index covers.
pub fn find(name: &Name) -> Option<u64> {
    INDEXES.with_borrow(|indexes| indexes.done.get(name).map(|(covers, _)| *covers))
}

/// Returns the entries of a range.
pub fn range(name: &Name, range: &Range) -> Result<Vec<Entry>> {
    // The action is taken out while it runs, so that it may change indexes itself.
    if let Some(mut act) = INDEXES.with_borrow_mut(|indexes| indexes.before_range.take()) {
        act();
        INDEXES.with_borrow_mut(|indexes| indexes.before_range = Some(act));
    }
    INDEXES.with_borrow_mut(|indexes| {
        indexes.ranges += 1;
        let (_, entries) = indexes
            .done
            .get(name)
            .ok_or_else(|| Error::not_found("There is no such index."))?;
        let wanted = |entry: &&Entry| {
            entry.key >= range.from && range.to.as_ref().is_none_or(|to| entry.key < *to)
        };
        let mut found: Vec<Entry> = entries.iter().filter(wanted).cloned().collect();
        found.sort_by(|left, right| {
            let keys = left.key.cmp(&right.key);
            if range.descending {
                keys.reverse()
            } else {
                keys
            }
            .then(left.at.cmp(&right.at))
        });
        if let Some(after) = &range.after {
            let at = found
                .iter()
                .position(|entry| (&entry.key, entry.at) == (&after.key, after.at));
            found.drain(..at.map_or(0, |at| at + 1));
        }
        found.truncate(range.limit.clamp(1, RANGE_MAX) as usize);
        Ok(found)
    })
}

/// Asks for work.
pub fn later(work: &str) {
    INDEXES.with_borrow_mut(|indexes| {
        if !indexes.later.iter().any(|asked| asked == work) {
            indexes.later.push(work.to_owned());
        }
    });
}

/// Begins an index, or continues one.
pub fn begin(name: &Name) -> Result<u64> {
    INDEXES.with_borrow_mut(|indexes| Ok(indexes.building.entry(name.clone()).or_default().0))
}

/// Adds entries.
pub fn add(name: &Name, entries: &[Entry], from: u64, to: u64) -> Result<()> {
    assert!(
        entries.iter().all(|entry| entry.key.len() <= KEY_MAX),
        "a key is too long"
    );
    INDEXES.with_borrow_mut(|indexes| {
        let build = indexes
            .building
            .get_mut(name)
            .ok_or_else(|| Error::not_found("There is no such index."))?;
        if build.0 != from {
            return Err(Error::conflict("The index has been built further."));
        }
        build.0 = to;
        build.1.extend_from_slice(entries);
        Ok(())
    })
}

/// Finishes an index.
pub fn finish(name: &Name) -> Result<()> {
    INDEXES.with_borrow_mut(|indexes| {
        let build = indexes
            .building
            .remove(name)
            .ok_or_else(|| Error::not_found("There is no such index."))?;
        indexes
            .done
            .retain(|other, _| (&other.source, &other.column) != (&name.source, &name.column));
        indexes.done.insert(name.clone(), build);
        Ok(())
    })
}

/// Gives the indexes of one version to another.
pub fn extend(source: &str, old: &str, new: &str) -> Result<()> {
    INDEXES.with_borrow_mut(|indexes| {
        let done = std::mem::take(&mut indexes.done);
        let renamed = done.into_iter().map(|(mut name, index)| {
            if name.source == source && name.version == old {
                name.version = new.to_owned();
            }
            (name, index)
        });
        indexes.done = renamed.collect();
        Ok(())
    })
}

pub(super) fn reset() {
    INDEXES.with_borrow_mut(|indexes| *indexes = Indexes::default());
}
