//! A folder that the chains of several machines are collected in.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Read, Write as _},
    ops::RangeInclusive,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use weir_files::FilePermission;

use crate::{
    ChainName,
    folder::{self, begun_segments, segment_name},
    line::{ChainLine, LinePiece, LineReader},
    verify::{CollectedHeads, HEADS_FILE},
};

/// The bytes of one segment that are taken, at most.
const SEGMENT_MAX_BYTES: u64 = 16 << 30;
/// Gaps of a chain that are listed.
const GAPS_MAX: usize = 100;
const LOCK: &str = ".collect.lock";

/// A folder with chains of several machines, and what is known about their ends.
pub struct CollectedTrail {
    folder: PathBuf,
    /// Keeps another process from collecting into the folder.
    _lock: File,
}

impl CollectedTrail {
    /// Takes a folder, which is made if need be.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        folder::make(folder)?;
        let lock = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(folder.join(LOCK))?;
        weir_files::hand_over(&lock, folder);
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let why = "another process collects into it";
                return Err(io::Error::new(ErrorKind::ResourceBusy, why));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        Ok(Self {
            folder: folder.to_owned(),
            _lock: lock,
        })
    }

    /// Begins a segment, whose lines are then written in order.
    pub fn begin_segment(&self, chain: &ChainName, segment: u32) -> io::Result<CollectedSegment> {
        let part = self.folder.join(format!(".collecting-{chain}-{segment}"));
        let file = create_part(&part)?;
        Ok(CollectedSegment {
            chain: chain.clone(),
            segment,
            place: self.folder.join(chain.as_str()).join(segment_name(segment)),
            part,
            file,
            bytes: 0,
        })
    }

    /// Returns the numbers of the records that are missing between others of a chain; of the gaps a hundred at most.
    pub fn missing_records(&self, chain: &ChainName) -> io::Result<Vec<RangeInclusive<u64>>> {
        let mut missing = Vec::new();
        let mut last = None;
        let segments = match begun_segments(&self.folder.join(chain.as_str())) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(missing),
            segments => segments?,
        };
        for (_, path) in segments {
            let mut lines = LineReader::new(File::open(path)?);
            while let Some(piece) = lines.next()? {
                let LinePiece::Line(text) = piece else {
                    continue;
                };
                let Some(line) = ChainLine::parse(text) else {
                    continue;
                };
                if let Some(last) = last
                    && line.seq > last + 1
                    && missing.len() < GAPS_MAX
                {
                    missing.push(last + 1..=line.seq - 1);
                }
                last = last.max(Some(line.seq));
            }
        }
        Ok(missing)
    }

    /// Stores the heads next to the chains, keeping those collected before that are further along.
    pub fn put_heads(&self, heads: CollectedHeads) -> io::Result<()> {
        let mut known = CollectedHeads::read(&self.folder)?.unwrap_or_default();
        for head in heads.heads {
            match known
                .heads
                .iter_mut()
                .find(|known| known.chain == head.chain)
            {
                Some(known) if known.seq >= head.seq => {}
                Some(known) => *known = head,
                None => known.heads.push(head),
            }
        }
        let text = serde_json::to_vec_pretty(&known)?;
        weir_files::replace(&self.folder.join(HEADS_FILE), &text, FilePermission::Owner)
    }
}

/// The lines of one segment while they are collected, in a separate file. Without [`Self::finish`] they are discarded.
pub struct CollectedSegment {
    chain: ChainName,
    segment: u32,
    place: PathBuf,
    part: PathBuf,
    file: File,
    bytes: u64,
}

impl CollectedSegment {
    /// Returns how many bytes were written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes what follows.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.bytes += lines.len() as u64;
        if self.bytes > SEGMENT_MAX_BYTES {
            return Err(self.refuse("is longer than any"));
        }
        self.file.write_all(lines)
    }

    /// Puts the segment into its place, together with the lines that were collected before. Lines that differ from those are
    /// refused: they were changed since.
    pub fn finish(self) -> io::Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.file.sync_all()?;
        let (known_bytes, same_bytes) = match File::open(&self.place) {
            Err(error) if error.kind() == ErrorKind::NotFound => (0, 0),
            file => {
                let known = file?;
                (known.metadata()?.len(), same_bytes(known, &self.part)?)
            }
        };
        if same_bytes == self.bytes {
            return Ok(());
        }
        if same_bytes < known_bytes && !self.merge()? {
            return Err(self.refuse("differs from what was collected before, which is kept"));
        }
        let chain = self.place.parent().unwrap_or(Path::new("."));
        folder::make(chain)?;
        weir_files::move_over(&self.part, &self.place)
    }

    /// Adds the lines that were collected before, where these are other records, or the same. Returns `false` if a record
    /// differs.
    fn merge(&self) -> io::Result<bool> {
        let merged = self.part.with_extension("merged");
        let mut out = BufWriter::new(create_part(&merged)?);
        let (known, new) = (File::open(&self.place)?, File::open(&self.part)?);
        let done = merge_lines(LineReader::new(known), LineReader::new(new), &mut out)
            .and_then(|is_merged| out.into_inner()?.sync_all().map(|()| is_merged));
        match done {
            Ok(true) => weir_files::move_over(&merged, &self.part)?,
            _ => fs::remove_file(&merged)?,
        }
        done
    }

    fn refuse(&self, why: &str) -> io::Error {
        let (chain, segment) = (&self.chain, self.segment);
        let why = format!("segment {segment} of {chain} {why}");
        io::Error::new(ErrorKind::InvalidData, why)
    }
}

impl Drop for CollectedSegment {
    fn drop(&mut self) {
        // It was moved, or is of no use.
        let _ = fs::remove_file(&self.part);
    }
}

/// Creates a file in the place of one that a killed process left.
fn create_part(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => folder::create(path),
    }
}

/// Returns how many bytes at the beginning of both files are the same.
fn same_bytes(known: File, new: &Path) -> io::Result<u64> {
    const BLOCK: usize = 64 << 10;
    let new = File::open(new)?;
    let (mut one, mut other) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
    let mut same = 0;
    loop {
        one.clear();
        other.clear();
        (&known).take(BLOCK as u64).read_to_end(&mut one)?;
        (&new).take(BLOCK as u64).read_to_end(&mut other)?;
        let equal = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
        same += equal as u64;
        if equal < BLOCK {
            return Ok(same);
        }
    }
}

/// Writes the records of both in the order of their numbers, each once. Returns `false` if a record of both differs, or one has
/// other lines than records in order.
fn merge_lines(
    mut known: LineReader<File>,
    mut new: LineReader<File>,
    out: &mut impl io::Write,
) -> io::Result<bool> {
    let (mut one, mut other) = (NextRecord::read(&mut known)?, NextRecord::read(&mut new)?);
    let mut last = None;
    loop {
        let (seq, text) = match (&one, &other) {
            (NextRecord::None, NextRecord::None) => return Ok(true),
            (NextRecord::Unordered, _) | (_, NextRecord::Unordered) => return Ok(false),
            (NextRecord::Record(seq, text), NextRecord::Record(new, other)) if seq == new => {
                if text != other {
                    return Ok(false);
                }
                (*seq, text)
            }
            (NextRecord::Record(seq, text), NextRecord::Record(new, _)) if seq < new => {
                (*seq, text)
            }
            (NextRecord::Record(seq, text), NextRecord::None) => (*seq, text),
            (_, NextRecord::Record(seq, text)) => (*seq, text),
        };
        if last.is_some_and(|last| seq <= last) {
            return Ok(false);
        }
        last = Some(seq);
        out.write_all(text)?;
        out.write_all(b"\n")?;
        let (from_known, from_new) = (one.is(seq), other.is(seq));
        if from_known {
            one = NextRecord::read(&mut known)?;
        }
        if from_new {
            other = NextRecord::read(&mut new)?;
        }
    }
}

/// The next line of a segment that is merged.
enum NextRecord {
    Record(u64, Vec<u8>),
    /// The line is not a whole record.
    Unordered,
    None,
}

impl NextRecord {
    fn read(lines: &mut LineReader<File>) -> io::Result<Self> {
        Ok(match lines.next()? {
            None => Self::None,
            Some(LinePiece::Line(text)) => match ChainLine::parse(text) {
                Some(line) => Self::Record(line.seq, text.to_vec()),
                None => Self::Unordered,
            },
            Some(_) => Self::Unordered,
        })
    }

    fn is(&self, seq: u64) -> bool {
        matches!(self, Self::Record(own, _) if *own == seq)
    }
}
