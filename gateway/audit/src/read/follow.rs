//! Follows records appended after a given moment, in all chains, including those that begin later.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use super::{AuditFilter, AuditRecord, from_offset};
use crate::{
    ChainName,
    folder::{begun_segments, chains},
};

/// Remembers how far each chain was read.
pub struct TrailFollower {
    folder: PathBuf,
    filter: AuditFilter,
    places: BTreeMap<ChainName, SegmentOffset>,
}

#[derive(Clone, Copy, Default)]
struct SegmentOffset {
    segment: u32,
    offset: u64,
}

impl TrailFollower {
    pub(super) fn new(folder: &Path, filter: AuditFilter) -> Self {
        Self {
            folder: folder.to_owned(),
            filter,
            places: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, chain: &ChainName, segment: u32, offset: u64) {
        self.places
            .insert(chain.clone(), SegmentOffset { segment, offset });
    }

    /// Returns the records since the last time, by time; at most about 10,000, and the next call continues from there.
    pub fn poll(&mut self) -> io::Result<Vec<AuditRecord>> {
        let mut records = Vec::new();
        let chains = chains(&self.folder)?;
        self.places.retain(|name, _| {
            chains
                .binary_search_by(|(chain, _)| chain.cmp(name))
                .is_ok()
        });
        for (name, path) in chains {
            let place = self.places.entry(name.clone()).or_default();
            match read_on(&name, &path, place, &self.filter, &mut records) {
                // The segment was removed by age in the meantime, or the chain belongs to another user.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::NotFound | ErrorKind::PermissionDenied
                    ) => {}
                result => result?,
            }
        }
        records.sort_by(|a, b| (a.time, &a.chain, a.seq).cmp(&(b.time, &b.chain, b.seq)));
        Ok(records)
    }
}

fn read_on(
    chain: &ChainName,
    path: &Path,
    place: &mut SegmentOffset,
    filter: &AuditFilter,
    into: &mut Vec<AuditRecord>,
) -> io::Result<()> {
    for (number, segment) in begun_segments(path)? {
        if number < place.segment {
            continue;
        }
        if number > place.segment {
            *place = SegmentOffset {
                segment: number,
                offset: 0,
            };
        }
        let end = from_offset(chain, &segment, place.offset, filter, into)?;
        place.offset = end;
        if into.len() >= super::POLL_RECORDS_MAX {
            break;
        }
    }
    Ok(())
}
