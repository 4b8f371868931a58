//! The trail of one process: its own chain, appended to by every call, refusal and admin act.

mod keeper;
mod writer;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use self::{
    keeper::TrailKeeper,
    writer::{ChainWriter, WriteBatch},
};
use crate::{
    AuditEvent, AuditReceipt, ChainName, LINE_MAX_BYTES, RecordHash,
    folder::{
        self, ChainAct, ChainEvent, ChainProcess, FolderSurvey, SegmentHeader, UncertainRange,
        repair::repair,
        retention::{Copied, RetentionLimits, SegmentRemoval},
    },
    line,
};
use parking_lot::{Mutex, MutexGuard};

/// The settings of a trail.
#[derive(Clone, Debug)]
pub struct TrailSettings {
    /// The work of the process, for readers of the trail: `serve`, `stdio`, `call`.
    pub process: String,
    pub fsync: FsyncPolicy,
    /// The bytes after which a new segment is begun.
    pub segment_max_bytes: u64,
    /// The time after which a new segment is begun, if there is something to record in it.
    pub segment_max_age: Duration,
    /// Segments that ended longer ago are removed. `None` keeps them.
    pub keep_age: Option<Duration>,
    /// The oldest segments are removed when all chains hold more. `None` keeps them.
    pub keep_bytes: Option<u64>,
    /// Whether a segment is kept until [`AuditTrail::set_copied`] reports that it is copied, and recording stops if all chains
    /// therefore hold more than `keep_bytes`.
    pub waits_for_copies: bool,
    /// The heads of chains on other machines, which the opening names.
    pub heads_elsewhere: Vec<AuditReceipt>,
}

impl Default for TrailSettings {
    fn default() -> Self {
        Self {
            process: "weir".into(),
            fsync: FsyncPolicy::default(),
            segment_max_bytes: 64 << 20,
            segment_max_age: Duration::from_secs(3600),
            keep_age: Some(Duration::from_secs(90 * 24 * 3600)),
            keep_bytes: Some(8 << 30),
            waits_for_copies: false,
            heads_elsewhere: Vec::new(),
        }
    }
}

/// When records are made to outlive the machine. They outlive the process as soon as they are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsyncPolicy {
    /// A sync follows at the latest this long after an append.
    Interval(Duration),
    /// A sync comes before `append` returns; appends at the same time share one.
    Each,
    /// The system syncs when it likes.
    Off,
}

impl Default for FsyncPolicy {
    fn default() -> Self {
        Self::Interval(Duration::from_millis(200))
    }
}

/// Why a trail cannot be opened, or a record cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit trail in {folder} cannot be {what}: {source}")]
    Folder {
        what: &'static str,
        folder: PathBuf,
        source: io::Error,
    },
    /// Nothing was recorded.
    #[error("the audit trail cannot be written: {0}")]
    Write(#[source] io::Error),
    /// The record is written, but may not outlive the machine.
    #[error("the audit trail cannot be synced: {0}")]
    Sync(#[source] io::Error),
    #[error("an audit record would be longer than {LINE_MAX_BYTES} bytes")]
    TooLong,
}

/// The numbers behind the metrics and the alert.
#[derive(Clone, Debug)]
pub struct TrailHealth {
    /// Whether an append or sync has failed, and none has succeeded since.
    pub failing: bool,
    /// The last failure, kept also when it is over.
    pub last_error: Option<String>,
    /// The failed appends and syncs since the start.
    pub failures: u64,
    pub chain: ChainName,
    pub segment: u32,
    /// Records appended since the start, those of the chain itself included.
    pub records: u64,
    /// Bytes of those records.
    pub bytes: u64,
    /// Records that may not outlive the machine yet; none counts with [`FsyncPolicy::Off`].
    pub unsynced: u64,
    /// Records since the start that were written before a sync that failed: a later sync does not confirm them.
    pub uncertain: u64,
}

/// An open trail. Dropping it ends the chain with a closing record.
pub struct AuditTrail {
    shared: Arc<TrailState>,
    keeper: Option<TrailKeeper>,
}

struct TrailState {
    folder: PathBuf,
    chain: ChainName,
    settings: TrailSettings,
    writer: Mutex<ChainWriter>,
    /// Locked while syncing, so that one sync serves all who wait.
    syncing: Mutex<()>,
    synced_seq: AtomicU64,
    /// Whether there are records since the last sync.
    dirty: AtomicBool,
    /// The segment has its length.
    full: AtomicBool,
    /// The heads of chains on other machines that the next segment names.
    elsewhere: Mutex<Vec<AuditReceipt>>,
    copied: Mutex<Copied>,
    /// Whether there is more than is kept, since it is not copied.
    overfull: AtomicBool,
    /// Whether there may be room again.
    room_due: AtomicBool,
    /// Chains that are known to have been removed as a whole.
    removed: Mutex<BTreeSet<ChainName>>,
    /// Locked as long as the process lives; closing the file releases it.
    _lock: File,
}

impl AuditTrail {
    /// Repairs what killed processes left behind, then begins a chain in `folder`, which is created if necessary. The
    /// chain appears with its first record, which names the heads of the other chains.
    pub fn open(folder: &Path, settings: TrailSettings) -> Result<Self, AuditError> {
        let error = |source| AuditError::Folder {
            what: "opened",
            folder: folder.to_owned(),
            source,
        };
        let shared = Arc::new(TrailState::open(folder, settings).map_err(error)?);
        let keeper = TrailKeeper::start(shared.clone()).map_err(error)?;
        Ok(Self {
            shared,
            keeper: Some(keeper),
        })
    }

    /// Records one event. When this returns a receipt, the record outlives the process; see [`FsyncPolicy`] for the machine.
    pub fn append(&self, event: &AuditEvent<'_>) -> Result<AuditReceipt, AuditError> {
        self.enter(event)?.written()
    }

    /// Gives one event its place in the chain. It is recorded once it is [`TrailEntry::written`]: what has been entered
    /// in the meantime shares one write.
    pub fn enter(&self, event: &AuditEvent<'_>) -> Result<TrailEntry<'_>, AuditError> {
        let body = line::body(event).ok_or(AuditError::TooLong)?;
        let mut writer = self.shared.writer();
        if self.shared.overfull.load(Ordering::Relaxed) {
            return Err(AuditError::Write(writer.refuse_overfull()));
        }
        let (seq, hash, batch) = writer.enter(&body).map_err(AuditError::Write)?;
        drop(writer);
        Ok(TrailEntry {
            trail: self,
            seq,
            hash,
            batch: Some(batch),
        })
    }

    fn wait_for(&self, batch: &WriteBatch, seq: u64) -> Result<(), AuditError> {
        let shared = &self.shared;
        let mut full = false;
        let written = batch.outcome(seq).unwrap_or_else(|| {
            let mut writer = shared.writer();
            writer.flush();
            full = writer.bytes_in_segment() >= shared.settings.segment_max_bytes;
            batch.outcome(seq).expect("a flush ends every batch")
        });
        written.map_err(AuditError::Write)?;
        let keeper = self
            .keeper
            .as_ref()
            .expect("the keeper runs until the drop");
        match shared.settings.fsync {
            FsyncPolicy::Each => shared.sync_up_to(seq).map_err(AuditError::Sync)?,
            FsyncPolicy::Interval(_) if !shared.dirty.swap(true, Ordering::Relaxed) => {
                keeper.wake()
            }
            FsyncPolicy::Interval(_) | FsyncPolicy::Off => {}
        }
        if full && !shared.full.swap(true, Ordering::Relaxed) {
            keeper.wake();
        }
        Ok(())
    }

    /// Returns the last record, for keeping the head of the chain elsewhere.
    pub fn head(&self) -> AuditReceipt {
        let (seq, hash) = self.shared.writer().head();
        AuditReceipt {
            chain: self.shared.chain.clone(),
            seq,
            hash,
        }
    }

    /// Notes the last segment of each chain up to which all is copied elsewhere. They may then be removed.
    pub fn set_copied(&self, copied: BTreeMap<ChainName, u32>) {
        let shared = &self.shared;
        if !shared.settings.waits_for_copies {
            return;
        }
        *shared.copied.lock() = Some(copied);
        if shared.overfull.load(Ordering::Relaxed) {
            shared.room_due.store(true, Ordering::Relaxed);
            if let Some(keeper) = &self.keeper {
                keeper.wake();
            }
        }
    }

    /// Sets the heads of chains on other machines, which the next segment names.
    pub fn set_heads_elsewhere(&self, heads: Vec<AuditReceipt>) {
        *self.shared.elsewhere.lock() = heads;
    }

    /// Returns the chains that retention has removed as a whole, as far as it is still stated; each is returned once.
    pub fn take_removed_chains(&self) -> Vec<ChainName> {
        let removed = std::mem::take(&mut *self.shared.removed.lock());
        removed.into_iter().collect()
    }

    /// Returns the state of the trail, for metrics and the admin API.
    pub fn health(&self) -> TrailHealth {
        let synced = self.shared.synced_seq.load(Ordering::Relaxed);
        let writer = self.shared.writer();
        let (seq, _) = writer.head();
        TrailHealth {
            failing: writer.failing(),
            last_error: writer.last_error().map(str::to_owned),
            failures: writer.failures(),
            chain: self.shared.chain.clone(),
            segment: writer.segment(),
            records: seq,
            bytes: writer.bytes(),
            uncertain: writer.uncertain(),
            unsynced: if self.shared.settings.fsync == FsyncPolicy::Off {
                0
            } else {
                seq.saturating_sub(synced)
            },
        }
    }

    /// Returns `true` while events are refused: the last write failed, or the last sync where each event waits for one, or
    /// there is no room before older segments are copied.
    pub fn is_refusing(&self) -> bool {
        let shared = &self.shared;
        let writer = shared.writer();
        shared.overfull.load(Ordering::Relaxed)
            || writer.append_failing()
            || (writer.sync_failing() && shared.settings.fsync == FsyncPolicy::Each)
    }

    /// Makes everything appended so far outlive the machine.
    pub fn sync(&self) -> Result<(), AuditError> {
        let (seq, _) = self.shared.writer().head();
        self.shared.sync_up_to(seq).map_err(AuditError::Sync)
    }

    /// Begins a new segment and removes expired ones, as the trail does automatically when one is due.
    pub fn rotate(&self) -> Result<(), AuditError> {
        let shared = &self.shared;
        let error = |source| AuditError::Folder {
            what: "rotated",
            folder: shared.folder.clone(),
            source,
        };
        shared.rotate(true).map_err(error)
    }
}

/// A record that has its place in the chain. If dropped, it is written too.
#[must_use = "it is recorded when it is written"]
pub struct TrailEntry<'a> {
    trail: &'a AuditTrail,
    seq: u64,
    hash: RecordHash,
    /// `None` once the result is known.
    batch: Option<Arc<WriteBatch>>,
}

impl TrailEntry<'_> {
    /// Writes the record with all that has been entered until now, unless it is written already. The receipt confirms
    /// that the record outlives the process.
    pub fn written(mut self) -> Result<AuditReceipt, AuditError> {
        if let Some(batch) = self.batch.take() {
            self.trail.wait_for(&batch, self.seq)?;
        }
        Ok(AuditReceipt {
            chain: self.trail.shared.chain.clone(),
            seq: self.seq,
            hash: self.hash,
        })
    }
}

impl Drop for TrailEntry<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            // A failure is logged where it happens, and no caller waits for it here.
            let _ = self.trail.wait_for(&batch, self.seq);
        }
    }
}

impl Drop for AuditTrail {
    fn drop(&mut self) {
        self.keeper.take();
        let close = ChainEvent {
            act: ChainAct::Close,
            process: None,
            opening: None,
            uncertain: None,
        };
        let body = line::body(&close).expect("a short record");
        if let Err(error) = self.shared.writer().put(&body) {
            tracing::warn!(%error, "the end of the audit chain is not recorded");
        } else if self.shared.settings.fsync != FsyncPolicy::Off {
            // A failure is logged where it happens.
            let _ = self.sync();
        }
    }
}

impl TrailState {
    fn open(folder: &Path, settings: TrailSettings) -> io::Result<Self> {
        folder::make(folder)?;
        let survey = FolderSurvey::take(folder)?;
        survey.warn();
        let repaired = repair(&survey);
        let copied: Copied = settings.waits_for_copies.then(BTreeMap::new);
        let removal = SegmentRemoval::plan(folder, &survey, None, settings.keep(), &copied)?;
        let chain = ChainName::new()?;
        let opening = SegmentHeader {
            chain: chain.clone(),
            segment: 1,
            heads: survey.unnamed_heads(None, &settings.heads_elsewhere),
            repaired,
            removed: removal.statements.clone(),
            horizon: removal.horizon.clone(),
        };
        let process = ChainProcess {
            name: &settings.process,
            pid: std::process::id(),
        };
        let opening = ChainEvent {
            act: ChainAct::Open,
            process: Some(process),
            opening: Some(&opening),
            uncertain: None,
        };
        let (writer, lock) = begin(folder, &chain, &opening)?;
        let mut removed = survey.removed_chains();
        removed.extend(removal.whole_chains());
        removal.carry_out(folder);
        let elsewhere = Mutex::new(settings.heads_elsewhere.clone());
        Ok(Self {
            folder: folder.to_owned(),
            chain,
            settings,
            writer: Mutex::new(writer),
            syncing: Mutex::new(()),
            synced_seq: AtomicU64::new(0),
            dirty: AtomicBool::new(true),
            full: AtomicBool::new(false),
            elsewhere,
            copied: Mutex::new(copied),
            overfull: AtomicBool::new(false),
            room_due: AtomicBool::new(false),
            removed: Mutex::new(removed),
            _lock: lock,
        })
    }

    /// Makes room if all chains are larger than allowed, and notes whether they still are: segments without a copy are kept.
    fn check_room(&self) -> io::Result<()> {
        let (true, Some(kept)) = (self.settings.waits_for_copies, self.settings.keep_bytes) else {
            return Ok(());
        };
        let mut is_over = folder::total_bytes(&self.folder)? > kept;
        if is_over {
            self.rotate(false)?;
            is_over = folder::total_bytes(&self.folder)? > kept;
        }
        self.overfull.store(is_over, Ordering::Relaxed);
        Ok(())
    }

    /// Retries what failed, since nothing else would: a failing trail receives no calls.
    fn try_again(&self) {
        if self.overfull.load(Ordering::Relaxed) {
            return; // this ends when segments are copied
        }
        self.writer().try_again();
        let (seq, is_unsynced) = {
            let writer = self.writer();
            (writer.head().0, writer.sync_failing())
        };
        if is_unsynced && self.settings.fsync == FsyncPolicy::Each {
            let _ = self.sync_up_to(seq); // a failure was logged when it began
        }
    }

    fn writer(&self) -> MutexGuard<'_, ChainWriter> {
        // No panic is possible with the lock taken, between writing a record and taking note of it.
        self.writer.lock()
    }

    /// Returns immediately if another thread has synced beyond `seq` in the meantime.
    fn sync_up_to(&self, seq: u64) -> io::Result<()> {
        let _syncing = self.syncing.lock();
        if self.synced_seq.load(Ordering::Relaxed) >= seq {
            return Ok(());
        }
        let (files, (last, _)) = {
            let mut writer = self.writer();
            (writer.unsynced_files(), writer.head())
        };
        let synced = files.iter().try_for_each(|file| file.sync_data());
        let first = self.synced_seq.load(Ordering::Relaxed) + 1;
        if self.writer().synced(
            files,
            &synced,
            UncertainRange {
                from: first,
                to: last,
            },
        ) {
            // The record of uncertain records is not synced.
            self.dirty.store(true, Ordering::Relaxed);
        }
        if synced.is_ok() {
            self.synced_seq.store(last, Ordering::Relaxed);
        }
        synced
    }

    /// Begins a new segment: it is surveyed and created here, and switched to under the lock by one write. `asked`
    /// begins one even if there is nothing to record.
    fn rotate(&self, asked: bool) -> io::Result<()> {
        let survey = FolderSurvey::take(&self.folder)?;
        let removal = SegmentRemoval::plan(
            &self.folder,
            &survey,
            Some(&self.chain),
            self.settings.keep(),
            &self.copied.lock().clone(),
        )?;
        let heads = survey.unnamed_heads(Some(&self.chain), &self.elsewhere.lock());
        let (number, worth) = {
            let writer = self.writer();
            (writer.next_segment(), writer.has_records())
        };
        if !asked && !worth && heads.is_empty() && removal.statements.is_empty() {
            return Ok(());
        }
        let (removed, horizon) = (removal.statements.clone(), removal.horizon.clone());
        let opening = SegmentHeader {
            heads,
            removed,
            horizon,
            ..SegmentHeader::new(self.chain.clone(), number)
        };
        let body = line::body(&ChainEvent {
            act: ChainAct::Segment,
            process: None,
            opening: Some(&opening),
            uncertain: None,
        });
        let body = body.ok_or_else(|| io::Error::other(AuditError::TooLong))?;
        let path = self
            .folder
            .join(self.chain.as_str())
            .join(folder::segment_name(number));
        let file = match folder::create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.writer().take_left(number)?
            }
            file => file?,
        };
        let mut writer = self.writer();
        if let Err(error) = writer.switch(number, file, &body) {
            writer.discard(number);
            return Err(error);
        }
        drop(writer);
        self.full.store(false, Ordering::Relaxed);
        self.dirty.store(true, Ordering::Relaxed);
        if self.settings.fsync != FsyncPolicy::Off {
            folder::sync(&self.folder.join(self.chain.as_str()))?;
        }
        self.removed.lock().extend(removal.whole_chains());
        removal.carry_out(&self.folder);
        Ok(())
    }
}

impl TrailSettings {
    fn keep(&self) -> RetentionLimits {
        RetentionLimits {
            age: self.keep_age,
            bytes: self.keep_bytes,
        }
    }
}

/// Begins a chain. It is made next to its place and then moved there: a chain visible to others has a first record and a held
/// lock.
fn begin(
    folder: &Path,
    chain: &ChainName,
    opening: &ChainEvent<'_>,
) -> io::Result<(ChainWriter, File)> {
    let body = line::body(opening).ok_or_else(|| io::Error::other(AuditError::TooLong))?;
    let fresh = folder.join(format!(".new-{chain}"));
    let place = folder.join(chain.as_str());
    folder::make(&fresh)?;
    let begun = (|| {
        let lock = folder::take_lock(&fresh)?;
        let file = folder::create(&fresh.join(folder::segment_name(1)))?;
        let writer = ChainWriter::begin(place.clone(), file, &body)?;
        fs::rename(&fresh, &place)?;
        folder::sync(folder)?;
        Ok((writer, lock))
    })();
    if begun.is_err() {
        // A folder that cannot be removed either is not seen as a chain.
        let _ = fs::remove_dir_all(&fresh);
    }
    begun
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> AuditTrail {
        let fsync = FsyncPolicy::Interval(Duration::from_secs(3600));
        AuditTrail::open(
            folder,
            TrailSettings {
                fsync,
                ..TrailSettings::default()
            },
        )
        .expect("opened")
    }

    /// The system forgets what a failed sync did not write: the next one succeeds without it.
    #[test]
    fn a_sync_that_succeeds_after_one_that_failed_is_no_repair() {
        let folder = tempfile::tempdir().expect("a folder");
        let trail = open(folder.path());
        trail.sync().expect("synced");
        let body =
            line::body(&std::collections::BTreeMap::from([("kind", "admin")])).expect("short");
        let put = || trail.shared.writer().put(&body).expect("written");
        (0..3).for_each(|_| put());
        let fail = || {
            let mut writer = trail.shared.writer();
            let (files, (last, _)) = (writer.unsynced_files(), writer.head());
            let from = trail.shared.synced_seq.load(Ordering::Relaxed) + 1;
            writer.synced(
                files,
                &Err(io::Error::from_raw_os_error(5)),
                UncertainRange { from, to: last },
            );
        };
        fail();
        put();
        fail();
        assert!(
            trail.health().failing && trail.health().uncertain == 4,
            "{:?}",
            trail.health()
        );
        trail.sync().expect("synced");
        assert!(!trail.health().failing);
        assert_eq!(trail.health().uncertain, 4, "it stays uncertain");
        drop(trail);
        let report = crate::verify(folder.path(), &[]).expect("read");
        assert!(report.is_ok(), "{report:?}");
        let details: Vec<_> = report
            .warnings
            .iter()
            .map(|warning| warning.detail.as_str())
            .collect();
        assert!(
            details.len() == 1 && details[0].starts_with("the records 2 to 5 are uncertain"),
            "{details:?}"
        );
    }

    /// A rotation that failed, and could not take its file away again, left this behind.
    #[test]
    fn a_segment_that_a_failed_rotation_left_does_not_block_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let trail = open(folder.path());
        let left = folder
            .path()
            .join(trail.shared.chain.as_str())
            .join(folder::segment_name(2));
        fs::write(&left, b"half of an open").expect("written");
        trail.rotate().expect("another segment");
        assert_eq!(trail.health().segment, 2);
        // A file with whole records in it is not ours to overwrite.
        fs::write(left.with_file_name(folder::segment_name(3)), b"{}\n").expect("written");
        assert!(trail.rotate().is_err());
        fs::remove_file(left.with_file_name(folder::segment_name(3))).expect("removed");
        drop(trail);
        let report = crate::verify(folder.path(), &[]).expect("read");
        assert!(report.is_ok() && report.segments == 2, "{report:?}");
    }
}
