//! Does what happens under the trail's lock: it chains one record to the last, and makes one write for all that came
//! since the last one.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    mem,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use crate::{
    RecordHash,
    folder::{self, ChainAct, ChainEvent, SegmentHeader, UncertainRange},
    line::{self, ChainLine, RecordClock},
};

/// Lines that wait for their write take at most this much memory, except for the last one.
const WAITING_MAX_BYTES: usize = 1 << 20;
/// The room that is kept; what unusually many or long lines took beyond it is given back.
const ROOM_BYTES: usize = 32 << 10;
/// The room for which a trail that fails is looked at: that of a long record.
const TRIED_BYTES: usize = 4 << 10;

pub(super) struct ChainWriter {
    chain: PathBuf,
    segment: u32,
    segment_first_seq: u64,
    file: Arc<File>,
    /// Length of the complete lines in the file.
    whole_bytes: u64,
    place: TailState,
    /// The last record in the file.
    head: (u64, RecordHash),
    /// The last record that has its place in the chain.
    tip: (u64, RecordHash),
    /// The records between them.
    waiting: Vec<u8>,
    batch: Arc<WriteBatch>,
    bytes: u64,
    clock: RecordClock,
    /// Earlier segments that are not synced.
    earlier: Vec<Arc<File>>,
    append_failing: bool,
    sync_failing: bool,
    /// Records of failed syncs that no record names yet.
    unstated: Option<UncertainRange>,
    /// The number of uncertain records, stated ones included.
    uncertain: u64,
    last_error: Option<String>,
    failures: u64,
}

/// The place where the next line would go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TailState {
    /// The next line goes after the last complete one.
    Good,
    /// The next line would go after bytes of a failed one, which could not be taken back.
    Torn,
    /// The next line would go into a file that is no longer where readers look.
    Gone,
}

/// Records that one write puts into the file.
#[derive(Default)]
pub(super) struct WriteBatch(OnceLock<BatchOutcome>);

/// The outcome of a write: the number of the last record in it, and why it went no further.
struct BatchOutcome {
    last: u64,
    failed: Option<io::Error>,
}

impl WriteBatch {
    /// Returns whether a record of the batch is in the file; `None` before the write.
    pub(super) fn outcome(&self, seq: u64) -> Option<io::Result<()>> {
        let written = self.0.get()?;
        Some(match &written.failed {
            Some(error) if seq > written.last => Err(again(error)),
            _ => Ok(()),
        })
    }
}

impl ChainWriter {
    pub(super) fn begin(chain: PathBuf, file: File, opening: &[u8]) -> io::Result<Self> {
        let mut writer = Self {
            chain,
            segment: 1,
            segment_first_seq: 1,
            file: Arc::new(file),
            whole_bytes: 0,
            place: TailState::Good,
            head: (0, RecordHash::NONE),
            tip: (0, RecordHash::NONE),
            waiting: Vec::with_capacity(4096),
            batch: Arc::default(),
            bytes: 0,
            clock: RecordClock::new(),
            earlier: Vec::new(),
            append_failing: false,
            sync_failing: false,
            unstated: None,
            uncertain: 0,
            last_error: None,
            failures: 0,
        };
        writer.put(opening)?;
        Ok(writer)
    }

    /// Gives a record its place in the chain: its number and hash, and the batch that it is written with.
    pub(super) fn enter(&mut self, body: &[u8]) -> io::Result<(u64, RecordHash, Arc<WriteBatch>)> {
        if self.place != TailState::Good
            && let Err(error) = self.mend()
        {
            self.append_failed(&error);
            return Err(error);
        }
        let batch = self.batch.clone();
        let seq = self.tip.0 + 1;
        let hash = line::seal(&mut self.waiting, seq, &self.clock.now(), body, &self.tip.1);
        self.tip = (seq, hash);
        if self.waiting.len() > WAITING_MAX_BYTES {
            self.flush();
        }
        Ok((seq, hash, batch))
    }

    /// Writes all that waits, at once. The outcome is with their batch.
    pub(super) fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        match self.write_waiting() {
            Ok(()) if mem::take(&mut self.append_failing) => {
                tracing::info!("the audit trail is written again")
            }
            Ok(()) => {}
            Err(error) => self.append_failed(&error),
        }
    }

    /// Tries whether a record could be written while the trail fails: no call may come that brings one.
    pub(super) fn try_again(&mut self) {
        self.flush();
        if !self.append_failing {
            return;
        }
        let mended = match self.place {
            TailState::Good => Ok(()),
            TailState::Torn | TailState::Gone => self.mend(),
        };
        if mended.and_then(|()| self.try_room()).is_ok() {
            self.append_failing = false;
            tracing::info!("the audit trail can be written again");
        }
    }

    /// Writes bytes that are not a record after the last record, and removes them again.
    fn try_room(&mut self) -> io::Result<()> {
        let (_, written) = write(&self.file, &[b' '; TRIED_BYTES]);
        self.take_back();
        written.and(match self.place {
            TailState::Good => Ok(()),
            TailState::Torn | TailState::Gone => Err(ErrorKind::Other.into()),
        })
    }

    /// Writes one record at once.
    pub(super) fn put(&mut self, body: &[u8]) -> io::Result<()> {
        let _ = self.enter(body)?;
        self.write_waiting()
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        let (bytes, written) = write(&self.file, &self.waiting);
        // Whole lines among the written bytes are kept: those records are written.
        let whole = self.waiting[..bytes]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        self.whole_bytes += whole as u64;
        self.bytes += whole as u64;
        if written.is_ok() {
            self.head = self.tip;
        } else {
            if let Some(last) = last_line(&self.waiting[..whole]) {
                self.head = (last.seq, last.hash);
            }
            self.tip = self.head;
            self.take_back();
        }
        self.waiting.clear();
        self.waiting.shrink_to(ROOM_BYTES);
        let failed = written.as_ref().err().map(again);
        let ended = mem::take(&mut self.batch).0.set(BatchOutcome {
            last: self.head.0,
            failed,
        });
        debug_assert!(ended.is_ok(), "a batch is written once");
        written
    }

    /// Removes what a failed write left, so that the next line does not follow half a line.
    fn take_back(&mut self) {
        self.place = match self.file.set_len(self.whole_bytes) {
            Ok(()) => TailState::Good,
            Err(_) => TailState::Torn,
        };
    }

    /// Finds a place for the next line after a failure that left none: the same file if it can be cut, else a new
    /// segment.
    fn mend(&mut self) -> io::Result<()> {
        if self.place == TailState::Torn {
            self.take_back();
            if self.place == TailState::Good {
                return Ok(());
            }
        }
        let number = self.next_segment();
        let name = self
            .chain
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let chain = name.parse().expect("the folder of a chain has its name");
        let opening = SegmentHeader::new(chain, number);
        let body = line::body(&ChainEvent {
            act: ChainAct::Segment,
            process: None,
            opening: Some(&opening),
            uncertain: None,
        });
        let file = match folder::create(&self.path(number)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.take_left(number)?,
            file => file?,
        };
        let switched = self.switch(number, file, &body.expect("a short record"));
        if switched.is_err() {
            self.discard(number);
        }
        switched
    }

    fn path(&self, segment: u32) -> PathBuf {
        self.chain.join(folder::segment_name(segment))
    }

    /// Takes the file of a segment that is not begun, which a failed switch made and could not remove. A file that
    /// contains a whole line is left alone.
    pub(super) fn take_left(&mut self, segment: u32) -> io::Result<File> {
        let path = self.path(segment);
        if segment <= self.segment || folder::repair::complete_bytes(&path)? > 0 {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let file = fs::OpenOptions::new().append(true).open(&path)?;
        file.set_len(0)?;
        Ok(file)
    }

    /// Removes the file of a segment that was not begun. If that fails, the next try reuses the file.
    pub(super) fn discard(&mut self, segment: u32) {
        if segment > self.segment
            && let Err(error) = fs::remove_file(self.path(segment))
        {
            tracing::warn!(%error, segment, "an audit segment that was not begun cannot be removed");
        }
    }

    /// Continues in another file, whose first record is `opening`. On failure nothing changes.
    pub(super) fn switch(&mut self, segment: u32, file: File, opening: &[u8]) -> io::Result<()> {
        if segment <= self.segment {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "another segment was begun meanwhile",
            ));
        }
        // The waiting records have their place before the opening; those who wait get the failure.
        self.flush();
        let file = mem::replace(&mut self.file, Arc::new(file));
        let (whole_bytes, place) = (self.whole_bytes, self.place);
        (self.whole_bytes, self.place) = (0, TailState::Good);
        if let Err(error) = self.put(opening) {
            (self.file, self.whole_bytes, self.place) = (file, whole_bytes, place);
            return Err(error);
        }
        self.earlier.push(file);
        self.segment = segment;
        self.segment_first_seq = self.head.0;
        Ok(())
    }

    /// Checks that the file is where readers look for it. If it is not, writing into it records nothing, and fails from
    /// now on.
    pub(super) fn check_place(&mut self) {
        // Lines do not wait if there is no room for them.
        self.flush();
        let path = self.chain.join(folder::segment_name(self.segment));
        let here = |file: &File| {
            let (held, seen) = (file.metadata()?, fs::symlink_metadata(&path)?);
            Ok((held.dev(), held.ino()) == (seen.dev(), seen.ino()))
        };
        let problem = match here(&self.file) {
            Ok(true) => return,
            Ok(false) => io::Error::other("another file is in the place of the segment"),
            Err(error) => error,
        };
        if self.place != TailState::Gone {
            self.place = TailState::Gone;
            self.append_failed(&problem);
        }
    }

    /// Notes that nothing is recorded, since the kept segments are not copied.
    pub(super) fn refuse_overfull(&mut self) -> io::Error {
        let why = "the trail has its greatest size, and its segments are not copied yet";
        let error = io::Error::new(ErrorKind::StorageFull, why);
        self.append_failed(&error);
        error
    }

    fn append_failed(&mut self, error: &io::Error) {
        if !self.append_failing {
            tracing::error!(%error, "the audit trail cannot be written: calls are refused until it can");
        }
        self.append_failing = true;
        self.failed(error);
    }

    fn failed(&mut self, error: &io::Error) {
        self.failures += 1;
        self.last_error = Some(error.to_string());
    }

    pub(super) fn unsynced_files(&mut self) -> Vec<Arc<File>> {
        let mut files = mem::take(&mut self.earlier);
        files.push(self.file.clone());
        files
    }

    /// Takes note of a sync of `files`, which was to bring `records` to the disk. On failure the files are synced again. A
    /// later success does not repair the loss, and a record names the records that may be lost. Returns `true` if such a
    /// record was written.
    pub(super) fn synced(
        &mut self,
        mut files: Vec<Arc<File>>,
        result: &io::Result<()>,
        records: UncertainRange,
    ) -> bool {
        match result {
            Ok(()) => {
                self.sync_failing = false;
                self.state_uncertain()
            }
            Err(error) => {
                let before = self.unstated.map_or(0, UncertainRange::count);
                let all = UncertainRange {
                    from: self.unstated.map_or(records.from, |known| known.from),
                    to: records.to,
                };
                self.uncertain += all.count() - before;
                self.unstated = Some(all);
                if !self.sync_failing {
                    tracing::error!(%error, "the audit trail cannot be synced: records may not outlive the machine");
                }
                self.sync_failing = true;
                self.failed(error);
                files.retain(|file| !Arc::ptr_eq(file, &self.file));
                files.append(&mut self.earlier);
                self.earlier = files;
                false
            }
        }
    }

    fn state_uncertain(&mut self) -> bool {
        let Some(uncertain) = self.unstated.take() else {
            return false;
        };
        let UncertainRange { from, to } = uncertain;
        tracing::error!(
            from,
            to,
            "the audit trail is synced again, but these records may be lost with the machine: a sync of them failed, and the \
             system forgets what it did not write then"
        );
        let event = ChainEvent {
            act: ChainAct::Uncertain,
            process: None,
            opening: None,
            uncertain: Some(uncertain),
        };
        match self.put(&line::body(&event).expect("a short record")) {
            Ok(()) => true,
            Err(error) => {
                self.append_failed(&error);
                self.unstated = Some(uncertain);
                false
            }
        }
    }

    pub(super) fn uncertain(&self) -> u64 {
        self.uncertain
    }

    /// Returns the last record in the file.
    pub(super) fn head(&self) -> (u64, RecordHash) {
        self.head
    }

    pub(super) fn segment(&self) -> u32 {
        self.segment
    }

    pub(super) fn next_segment(&self) -> u32 {
        self.segment + 1
    }

    pub(super) fn bytes_in_segment(&self) -> u64 {
        self.whole_bytes
    }

    /// Returns `true` if the segment holds more than its opening.
    pub(super) fn has_records(&self) -> bool {
        self.head.0 > self.segment_first_seq
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn append_failing(&self) -> bool {
        self.append_failing
    }

    pub(super) fn sync_failing(&self) -> bool {
        self.sync_failing
    }

    pub(super) fn failing(&self) -> bool {
        self.append_failing || self.sync_failing
    }

    pub(super) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    pub(super) fn failures(&self) -> u64 {
        self.failures
    }
}

/// Makes one write and returns how many bytes went in. A full disk gives a short write first, and writing the rest
/// then reports why.
fn write(mut file: &File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

fn last_line(lines: &[u8]) -> Option<ChainLine<'_>> {
    ChainLine::parse(
        lines
            .strip_suffix(b"\n")?
            .rsplit(|byte| *byte == b'\n')
            .next()?,
    )
}

/// Returns the same error for one more waiting caller.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(
        || io::Error::new(error.kind(), error.to_string()),
        io::Error::from_raw_os_error,
    )
}
