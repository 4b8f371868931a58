//! What happens under the trail's lock: chain one record to the last, and one write.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::Arc,
};

use crate::{
    Hash,
    folder::{self, ChainAct, Chained, Opening},
    line::{self, Clock},
};

pub(super) struct Writer {
    chain: PathBuf,
    segment: u32,
    segment_first_seq: u64,
    file: Arc<File>,
    /// Length of the complete lines in the file.
    whole_bytes: u64,
    place: Place,
    seq: u64,
    head: Hash,
    bytes: u64,
    clock: Clock,
    line: Vec<u8>,
    /// Earlier segments that are not synced.
    earlier: Vec<Arc<File>>,
    append_failing: bool,
    sync_failing: bool,
    last_error: Option<String>,
    failures: u64,
}

/// Where the next line would go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// After the last complete one.
    Good,
    /// After bytes of a failed one, which could not be taken back.
    Torn,
    /// Into a file that is no longer where readers look.
    Gone,
}

impl Writer {
    pub(super) fn begin(chain: PathBuf, file: File, opening: &[u8]) -> io::Result<Self> {
        let mut writer = Self {
            chain,
            segment: 1,
            segment_first_seq: 1,
            file: Arc::new(file),
            whole_bytes: 0,
            place: Place::Good,
            seq: 0,
            head: Hash::NONE,
            bytes: 0,
            clock: Clock::new(),
            line: Vec::with_capacity(4096),
            earlier: Vec::new(),
            append_failing: false,
            sync_failing: false,
            last_error: None,
            failures: 0,
        };
        writer.put(opening)?;
        Ok(writer)
    }

    /// One record: its number and hash, or nothing was recorded.
    pub(super) fn append(&mut self, body: &[u8]) -> io::Result<(u64, Hash)> {
        let appended = match self.place {
            Place::Good => self.put(body),
            Place::Torn | Place::Gone => self.mend().and_then(|()| self.put(body)),
        };
        match &appended {
            Ok(_) if self.append_failing => {
                self.append_failing = false;
                tracing::info!("the audit trail is written again");
            }
            Ok(_) => {}
            Err(error) => self.append_failed(error),
        }
        appended
    }

    fn put(&mut self, body: &[u8]) -> io::Result<(u64, Hash)> {
        let seq = self.seq + 1;
        let hash = line::seal(&mut self.line, seq, &self.clock.now(), body, &self.head);
        if let Err(error) = write_line(&self.file, &self.line) {
            self.take_back();
            return Err(error);
        }
        self.seq = seq;
        self.head = hash;
        self.whole_bytes += self.line.len() as u64;
        self.bytes += self.line.len() as u64;
        // One record of unusual length does not stay in memory.
        self.line.shrink_to(4096);
        Ok((seq, hash))
    }

    /// Removes what a failed write left, so that the next line does not follow half a one.
    fn take_back(&mut self) {
        self.place = match self.file.set_len(self.whole_bytes) {
            Ok(()) => Place::Good,
            Err(_) => Place::Torn,
        };
    }

    /// After a failure that left no place for the next line: the same file if it can be cut, else a new segment.
    fn mend(&mut self) -> io::Result<()> {
        if self.place == Place::Torn {
            self.take_back();
            if self.place == Place::Good {
                return Ok(());
            }
        }
        let number = self.next_segment();
        let name = self.chain.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let chain = name.parse().expect("the folder of a chain has its name");
        let opening = Opening::new(chain, number);
        let body = line::body(&Chained { act: ChainAct::Segment, process: None, opening: Some(&opening) });
        let path = self.chain.join(folder::segment_name(number));
        let file = folder::create(&path)?;
        let switched = self.switch(number, file, &body.expect("a short record"));
        if switched.is_err() {
            fs::remove_file(&path)?;
        }
        switched
    }

    /// Goes on in another file, whose first record is `opening`. On failure all is as before.
    pub(super) fn switch(&mut self, segment: u32, file: File, opening: &[u8]) -> io::Result<()> {
        if segment <= self.segment {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "another segment was begun meanwhile"));
        }
        let file = std::mem::replace(&mut self.file, Arc::new(file));
        let (whole_bytes, place) = (self.whole_bytes, self.place);
        (self.whole_bytes, self.place) = (0, Place::Good);
        if let Err(error) = self.put(opening) {
            (self.file, self.whole_bytes, self.place) = (file, whole_bytes, place);
            return Err(error);
        }
        self.earlier.push(file);
        self.segment = segment;
        self.segment_first_seq = self.seq;
        Ok(())
    }

    /// True when the file is where readers look for it. Else writing into it records nothing, and fails from now on.
    pub(super) fn check_place(&mut self) {
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
        if self.place != Place::Gone {
            self.place = Place::Gone;
            self.append_failed(&problem);
        }
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
        let mut files = std::mem::take(&mut self.earlier);
        files.push(self.file.clone());
        files
    }

    /// Takes note of a sync of `files`; on failure they are tried again.
    pub(super) fn synced(&mut self, mut files: Vec<Arc<File>>, result: &io::Result<()>) {
        match result {
            Ok(()) => self.sync_failing = false,
            Err(error) => {
                if !self.sync_failing {
                    tracing::error!(%error, "the audit trail cannot be synced: records may not outlive the machine");
                }
                self.sync_failing = true;
                self.failed(error);
                files.retain(|file| !Arc::ptr_eq(file, &self.file));
                files.append(&mut self.earlier);
                self.earlier = files;
            }
        }
    }

    pub(super) fn head(&self) -> (u64, Hash) {
        (self.seq, self.head)
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

    /// The segment holds more than its opening.
    pub(super) fn has_records(&self) -> bool {
        self.seq > self.segment_first_seq
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
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

/// One write; a short one is what a full disk gives first, and the rest then tells why.
fn write_line(mut file: &File, line: &[u8]) -> io::Result<()> {
    file.write_all(line)
}
