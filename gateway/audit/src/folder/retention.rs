//! Retention: removes old segments, oldest first, and records which, so that the rest still verifies.
//!
//! Only the beginning of a chain is removed, and only in ended chains and in the process's own. The statement is
//! written before the files are removed; after a kill in between, the next run states and removes them again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{ChainName, ChainView, FolderSurvey, SegmentView, lock_ended, remove_lock, sync};
use crate::RecordHash;

/// The number of statements in one record; at about 200 bytes each they fit into the longest line.
const STATEMENTS_MAX: usize = 1000;
/// Segments that one run removes.
const SEGMENTS_MAX: usize = 500;

/// A removal: everything of a chain up to a record is gone, and was meant to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemovalStatement {
    pub(crate) chain: ChainName,
    /// The last segment that went.
    pub(crate) segment: u32,
    /// The last record that went, and its hash: the `prev` of the first that is left.
    pub(crate) seq: u64,
    pub(crate) hash: RecordHash,
    /// Whether nothing of the chain is left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) whole: bool,
}

/// The age and size up to which records are kept; `None` means unlimited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetentionLimits {
    pub(crate) age: Option<Duration>,
    pub(crate) bytes: Option<u64>,
}

/// The last segment of each chain up to which all is copied elsewhere; `None` if nothing is to be copied.
pub(crate) type Copied = Option<BTreeMap<ChainName, u32>>;

/// The segments to be removed. It holds the locks that keep other processes from doing the same.
#[derive(Default)]
pub(crate) struct SegmentRemoval {
    /// The statements to be written down first. They include those of removed chains that a record still names.
    pub(crate) statements: Vec<RemovalStatement>,
    /// The chain up to which statements were dropped, now or before. It is to be written down too.
    pub(crate) horizon: Option<ChainName>,
    victims: Vec<RemovalTarget>,
    _locks: Vec<File>,
}

struct RemovalTarget {
    chain: PathBuf,
    segments: Vec<PathBuf>,
    whole: bool,
}

/// A segment that may be removed, and the record about that.
struct RemovalCandidate<'a> {
    ended: Timestamp,
    chain: &'a ChainView,
    bytes: u64,
    removed: RemovalStatement,
}

impl SegmentRemoval {
    /// Plans a removal. It is empty if nothing is due, or if another process is at it. `own` is the chain of this
    /// process.
    pub(crate) fn plan(
        folder: &Path,
        survey: &FolderSurvey,
        own: Option<&ChainName>,
        keep: RetentionLimits,
        copied: &Copied,
    ) -> io::Result<Self> {
        let horizon = survey
            .openings()
            .filter_map(|opening| opening.horizon.clone())
            .max();
        let nothing = Self {
            horizon,
            ..Self::default()
        };
        let due = due(survey, own, keep, copied, Timestamp::now());
        if due.is_empty() {
            return Ok(nothing);
        }
        let lock = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(folder.join(".retention.lock"))?;
        weir_files::hand_over(&lock, folder);
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(nothing),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let mut locks = vec![lock];
        let mut last_of = BTreeMap::<&ChainName, (&ChainView, RemovalStatement)>::new();
        for candidate in due {
            let name = &candidate.chain.name;
            if !last_of.contains_key(name) && Some(name) != own {
                match lock_ended(&candidate.chain.path) {
                    Ok(Some(lock)) => locks.push(lock),
                    _ => continue,
                }
            }
            last_of.insert(name, (candidate.chain, candidate.removed));
        }
        let (statements, dropped) = statements(survey, &last_of);
        if statements.len() > STATEMENTS_MAX {
            tracing::warn!("audit retention waits: too many records name what was removed");
            return Ok(nothing);
        }
        let horizon = nothing.horizon.max(dropped);
        let victims = last_of
            .into_values()
            .map(|(chain, removed)| RemovalTarget::new(chain, &removed))
            .collect();
        Ok(Self {
            statements,
            horizon,
            victims,
            _locks: locks,
        })
    }

    /// Returns the chains that are completely gone afterwards.
    pub(crate) fn whole_chains(&self) -> impl Iterator<Item = ChainName> {
        let whole = self.statements.iter().filter(|removed| removed.whole);
        whole.map(|removed| removed.chain.clone())
    }

    /// Removes the files. A failure is logged: the next run finds the rest.
    pub(crate) fn carry_out(self, folder: &Path) {
        for victim in &self.victims {
            if let Err(error) = victim.remove() {
                tracing::warn!(chain = %victim.chain.display(), %error, "old audit records cannot be removed");
            }
        }
        if !self.victims.is_empty()
            && let Err(error) = sync(folder)
        {
            tracing::warn!(%error, "the audit folder cannot be synced");
        }
    }
}

impl RemovalTarget {
    fn new(chain: &ChainView, removed: &RemovalStatement) -> Self {
        let gone = chain
            .segments
            .iter()
            .filter(|segment| removed.whole || segment.number <= removed.segment);
        let segments = gone.map(|segment| segment.path.clone()).collect();
        Self {
            chain: chain.path.clone(),
            segments,
            whole: removed.whole,
        }
    }

    /// Removes the segments in order, so that a kill in between leaves the end of the chain.
    fn remove(&self) -> io::Result<()> {
        for segment in &self.segments {
            fs::remove_file(segment)?;
            match fs::remove_file(segment.with_extension("torn")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.whole {
            remove_lock(&self.chain)?;
            fs::remove_dir(&self.chain)?;
        }
        Ok(())
    }
}

/// Returns the segments that are too old, and the oldest ones while there are too many, within a chain in order.
fn due<'a>(
    survey: &'a FolderSurvey,
    own: Option<&ChainName>,
    keep: RetentionLimits,
    copied: &Copied,
    now: Timestamp,
) -> Vec<RemovalCandidate<'a>> {
    let mut candidates: Vec<_> = survey
        .chains
        .iter()
        .flat_map(|chain| removable(chain, own, copied))
        .collect();
    candidates.sort_by(|a, b| {
        (a.ended, &a.chain.name, a.removed.segment).cmp(&(
            b.ended,
            &b.chain.name,
            b.removed.segment,
        ))
    });
    let oldest_kept = keep
        .age
        .and_then(|age| now.checked_sub(SignedDuration::try_from(age).ok()?).ok());
    let mut bytes: u64 = survey
        .chains
        .iter()
        .flat_map(|chain| &chain.segments)
        .map(|segment| segment.bytes)
        .sum();
    let mut due = Vec::new();
    for candidate in candidates.into_iter().take(SEGMENTS_MAX) {
        let old = oldest_kept.is_some_and(|oldest| candidate.ended < oldest);
        let much = keep.bytes.is_some_and(|kept| bytes > kept);
        if !old && !much {
            break;
        }
        bytes -= candidate.bytes;
        due.push(candidate);
    }
    due
}

/// Returns the segments of a chain that may go: from its beginning up to one that cannot be read, or that was not copied and
/// has to be.
fn removable<'a>(
    chain: &'a ChainView,
    own: Option<&ChainName>,
    copied: &Copied,
) -> Vec<RemovalCandidate<'a>> {
    let is_own = Some(&chain.name) == own;
    if chain.live && !is_own {
        return Vec::new();
    }
    let filled: Vec<&SegmentView> = chain
        .segments
        .iter()
        .filter(|segment| segment.bytes > 0)
        .collect();
    let mut candidates = Vec::new();
    let mut ended = Timestamp::MIN;
    for (index, segment) in filled.iter().enumerate() {
        let last_copied = match copied {
            Some(copied) => copied.get(&chain.name).copied().unwrap_or_default(),
            None => u32::MAX,
        };
        if segment.first.is_none() || segment.number > last_copied {
            break;
        }
        // A segment ends where the next one begins; the last one with the chain.
        let end = match filled.get(index + 1) {
            Some(next) => next
                .first
                .as_ref()
                .map(|first| (first.time, first.seq.saturating_sub(1), first.prev, false)),
            None if is_own => None,
            None => chain
                .last
                .map(|last| (last.time, last.seq, last.hash, true)),
        };
        let Some((time, seq, hash, whole)) = end else {
            break;
        };
        ended = ended.max(time);
        let removed = RemovalStatement {
            chain: chain.name.clone(),
            segment: segment.number,
            seq,
            hash,
            whole,
        };
        candidates.push(RemovalCandidate {
            ended,
            chain,
            bytes: segment.bytes,
            removed,
        });
    }
    candidates
}

/// Returns the new statements, and those that go with the segments that hold them although a remaining record still
/// needs them. It also returns the youngest chain whose statement is removed for good.
fn statements(
    survey: &FolderSurvey,
    last_of: &BTreeMap<&ChainName, (&ChainView, RemovalStatement)>,
) -> (Vec<RemovalStatement>, Option<ChainName>) {
    let goes = |chain: &ChainView, segment: &SegmentView| {
        last_of
            .get(&chain.name)
            .is_some_and(|(_, removed)| removed.whole || segment.number <= removed.segment)
    };
    let mut named = BTreeSet::new();
    let mut kept = BTreeMap::<&ChainName, u64>::new();
    let mut going = BTreeMap::<&ChainName, &RemovalStatement>::new();
    for chain in &survey.chains {
        named.insert(&chain.name);
        for segment in &chain.segments {
            let Some(first) = &segment.first else {
                continue;
            };
            if goes(chain, segment) {
                for removed in &first.opening.removed {
                    let known = going.entry(&removed.chain).or_insert(removed);
                    if removed.seq > known.seq {
                        *known = removed;
                    }
                }
                continue;
            }
            named.extend(first.opening.heads.iter().map(|head| &head.chain));
            for removed in &first.opening.removed {
                let seq = kept.entry(&removed.chain).or_default();
                *seq = (*seq).max(removed.seq);
            }
        }
    }
    let going = going.into_values().filter(|removed| {
        let newer = last_of.contains_key(&removed.chain);
        let stated = kept
            .get(&removed.chain)
            .is_some_and(|seq| *seq >= removed.seq);
        !newer && !stated
    });
    let (carried, dropped): (Vec<_>, Vec<_>) =
        going.partition(|removed| named.contains(&removed.chain));
    let new = last_of.values().map(|(_, removed)| removed);
    let dropped = dropped
        .into_iter()
        .map(|removed| removed.chain.clone())
        .max();
    (new.chain(carried).cloned().collect(), dropped)
}
