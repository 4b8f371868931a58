//! Reads the trail: all chains as one, by time. It reads the records as they are; `verify` finds changes.

mod filter;
mod follow;
mod place;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    fs::File,
    io::{self, ErrorKind, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde_json::{Map, Value};

pub use self::{
    filter::{AuditFilter, CALL_OUTCOMES, NotATime, RECORD_KINDS, parse_time},
    follow::TrailFollower,
    place::{NotAPlace, RecordPlace},
};
use crate::{
    AuditReceipt, ChainName, RecordHash,
    folder::{ChainView, FolderSurvey, SegmentView, repair::complete_bytes},
    line::{ChainLine, LinePiece, LineReader},
};

/// Records of one poll; the next continues from there.
const POLL_RECORDS_MAX: usize = 10_000;

/// A record as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRecord {
    pub chain: ChainName,
    pub seq: u64,
    pub hash: RecordHash,
    pub time: Timestamp,
    /// The members of the line, in its order.
    pub members: Map<String, Value>,
    /// The line itself, without its newline.
    pub line: String,
}

impl AuditRecord {
    fn parse(chain: &ChainName, line: &[u8]) -> Option<Self> {
        let ChainLine { seq, hash, .. } = ChainLine::parse(line)?;
        let members: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let time = members.get("time")?.as_str()?.parse().ok()?;
        let line = String::from_utf8(line.to_vec()).ok()?;
        Some(Self {
            chain: chain.clone(),
            seq,
            hash,
            time,
            members,
            line,
        })
    }

    /// Returns its place among all records.
    pub fn place(&self) -> RecordPlace {
        RecordPlace {
            time: self.time,
            chain: self.chain.clone(),
            seq: self.seq,
        }
    }

    /// Returns the receipt that proves this record.
    pub fn receipt(&self) -> AuditReceipt {
        AuditReceipt {
            chain: self.chain.clone(),
            seq: self.seq,
            hash: self.hash,
        }
    }

    /// Returns a member that is text.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member)?.as_str()
    }
}

/// Returns the records that match, oldest first. Those of one chain come in its order, whatever the clock did.
pub fn read(folder: &Path, filter: AuditFilter) -> io::Result<RecordIter> {
    let survey = FolderSurvey::take(folder)?;
    survey.warn();
    let mut records = RecordIter {
        left: filter.limit.unwrap_or(usize::MAX),
        filter,
        chains: BinaryHeap::new(),
    };
    for chain in survey.chains {
        records
            .chains
            .extend(ChainReader::new(chain, &records.filter).map(Reverse));
    }
    Ok(records)
}

/// Returns the last `count` records that match, oldest first, and what follows them.
pub fn tail(
    folder: &Path,
    filter: AuditFilter,
    count: usize,
) -> io::Result<(Vec<AuditRecord>, TrailFollower)> {
    let mut survey = FolderSurvey::take(folder)?;
    survey.warn();
    let mut follow = TrailFollower::new(folder, filter.clone());
    let mut last: Vec<AuditRecord> = Vec::new();
    // The chain that was written to last comes first: most others end before the records that theirs would have to be newer than.
    survey
        .chains
        .sort_by_key(|chain| Reverse(chain.last.map(|last| last.time)));
    for chain in &survey.chains {
        let segments = chain.begun_segments();
        let Some(newest) = segments.last() else {
            continue;
        };
        let Some(end) = if_there(complete_bytes(&newest.path))? else {
            continue;
        };
        follow.begin(&chain.name, newest.number, end);
        let newest = chain.last.map_or(Timestamp::MAX, |last| last.time);
        let full = last.len() >= count;
        if !(full && last.first().is_some_and(|oldest| oldest.time > newest)) {
            last.extend(last_of_chain(&chain.name, segments, end, &filter, count)?);
            last.sort_by_cached_key(AuditRecord::place);
            last.drain(..last.len().saturating_sub(count));
        }
    }
    Ok((last, follow))
}

/// Returns the last `count` records that match before byte `end` of the last segment, read segment by segment from the
/// last, and no further than there may be any.
fn last_of_chain(
    chain: &ChainName,
    segments: &[SegmentView],
    end: u64,
    filter: &AuditFilter,
    count: usize,
) -> io::Result<Vec<AuditRecord>> {
    let mut found = VecDeque::new();
    for (index, segment) in segments.iter().enumerate().rev() {
        if segments
            .get(index + 1)
            .and_then(SegmentView::began)
            .is_some_and(|next| filter.is_before(next))
        {
            break;
        }
        if segment.began().is_some_and(|began| filter.is_after(began)) {
            continue;
        }
        // Segments that were removed by age in the meantime were the oldest.
        let Some(file) = if_there(File::open(&segment.path))? else {
            break;
        };
        let end = if index == segments.len() - 1 {
            end
        } else {
            u64::MAX
        };
        let mut here = VecDeque::new();
        let mut lines = LineReader::new(file);
        while lines.offset < end
            && let Some(piece) = lines.next()?
        {
            let LinePiece::Line(line) = piece else {
                continue;
            };
            here.extend(filter.record(chain, line));
            if here.len() + found.len() > count {
                here.pop_front();
            }
        }
        here.extend(found);
        found = here;
        if found.len() >= count {
            break;
        }
    }
    Ok(found.into())
}

fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// An iterator over records; see [`read`].
pub struct RecordIter {
    filter: AuditFilter,
    left: usize,
    chains: BinaryHeap<Reverse<ChainReader>>,
}

impl Iterator for RecordIter {
    type Item = io::Result<AuditRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        // A chain in the heap is as far as its time; its record is read when no other chain is before it.
        while let Some(Reverse(mut chain)) = self.chains.pop() {
            let record = chain.record.take();
            match chain.advance(&self.filter) {
                Ok(true) => self.chains.push(Reverse(chain)),
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
            if let Some(record) = record {
                self.left -= 1;
                return Some(Ok(record));
            }
        }
        None
    }
}

/// A chain that is opened when its time has come.
struct ChainReader {
    name: ChainName,
    segments: VecDeque<PathBuf>,
    lines: Option<LineReader<File>>,
    /// The time, which never goes back within a chain.
    time: Timestamp,
    record: Option<AuditRecord>,
}

impl ChainReader {
    /// Opens a chain; `None` if it ended before the requested time.
    fn new(mut chain: ChainView, filter: &AuditFilter) -> Option<Self> {
        if !chain.live && chain.last.is_some_and(|last| filter.is_before(last.time)) {
            return None;
        }
        chain.segments.truncate(chain.begun_segments().len());
        let firsts: Vec<_> = chain.segments.iter().map(SegmentView::began).collect();
        let skipped = firsts
            .iter()
            .skip(1)
            .take_while(|first| first.is_some_and(|time| filter.is_before(time)))
            .count();
        let time = firsts
            .get(skipped)
            .copied()
            .flatten()
            .unwrap_or(Timestamp::MIN);
        let segments = chain
            .segments
            .into_iter()
            .skip(skipped)
            .map(|segment| segment.path)
            .collect();
        Some(Self {
            name: chain.name,
            segments,
            lines: None,
            time,
            record: None,
        })
    }

    /// Advances to the next record that matches; `false` if there is none.
    fn advance(&mut self, filter: &AuditFilter) -> io::Result<bool> {
        loop {
            let Some(lines) = &mut self.lines else {
                let Some(path) = self.segments.pop_front() else {
                    return Ok(false);
                };
                // A segment may have been removed by its age in the meantime.
                self.lines = if_there(File::open(path))?.map(LineReader::new);
                continue;
            };
            match lines.next()? {
                Some(LinePiece::Line(line)) => {
                    if let Some(record) = filter.record(&self.name, line) {
                        self.time = self.time.max(record.time);
                        self.record = Some(record);
                        return Ok(true);
                    }
                }
                Some(LinePiece::TooLong | LinePiece::Torn { .. }) => {}
                None => self.lines = None,
            }
        }
    }
}

impl PartialEq for ChainReader {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ChainReader {}

impl PartialOrd for ChainReader {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ChainReader {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, &self.name).cmp(&(other.time, &other.name))
    }
}

/// Returns the records of a segment from a byte on, and the byte after the last whole line.
fn from_offset(
    chain: &ChainName,
    path: &Path,
    offset: u64,
    filter: &AuditFilter,
    into: &mut Vec<AuditRecord>,
) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut lines = LineReader::new(file);
    let mut end = offset;
    while let Some(piece) = lines.next()? {
        match piece {
            LinePiece::Line(line) => into.extend(filter.record(chain, line)),
            LinePiece::TooLong => {}
            LinePiece::Torn { .. } => break,
        }
        end = offset + lines.offset;
        if into.len() >= POLL_RECORDS_MAX {
            break;
        }
    }
    Ok(end)
}
