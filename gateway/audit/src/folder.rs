//! The trail's folder: a folder for each chain, in it the numbered segments and a lock that the chain's process holds.
//!
//! A chain's statements about other chains stand in the first record of its segments ([`SegmentHeader`]), so that a survey
//! reads one line of each file.

pub(crate) mod repair;
pub(crate) mod retention;

use std::{
    collections::BTreeSet,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{
    AuditReceipt, LINE_MAX_BYTES, RecordHash,
    line::{ChainLine, LinePiece, LineReader},
};

const LOCK: &str = "lock";
const NAME_MAX_BYTES: usize = 64;
/// Heads that one record names; the next record names the rest.
const HEADS_MAX: usize = 256;

/// `<utc>-<pid>-<random>`, as in `20260822T101530Z-4711-9f3c2a01`; also the name of the chain's folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainName(Arc<str>);

/// The error for a text that cannot be the name of a chain.
#[derive(Debug, thiserror::Error)]
#[error("a chain is called like 20260822T101530Z-4711-9f3c2a01")]
pub struct NotAChainName;

impl ChainName {
    pub(crate) fn new() -> io::Result<Self> {
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        Ok(Self(
            format!("{now}-{}-{}", std::process::id(), hex::encode(random)).into(),
        ))
    }

    /// Returns the name, which is that of the chain's folder too.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ChainName {
    type Err = NotAChainName;

    fn from_str(text: &str) -> Result<Self, NotAChainName> {
        let mut parts = text.split('-');
        let mut part = || parts.next().unwrap_or_default();
        let (utc, pid, random) = (part(), part(), part());
        let time = utc.len() == 16
            && utc
                .bytes()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b'T' | b'Z'));
        let pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
        let random = random.len() == 8
            && random
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let whole = parts.next().is_none() && text.len() <= NAME_MAX_BYTES;
        (time && pid && random && whole)
            .then(|| Self(text.into()))
            .ok_or(NotAChainName)
    }
}

impl fmt::Display for ChainName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for ChainName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Serialize for ChainName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ChainName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(from)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// The chain's words about itself: the first record of each segment, and its last.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename = "chain")]
pub(crate) struct ChainEvent<'a> {
    pub(crate) act: ChainAct,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<ChainProcess<'a>>,
    #[serde(flatten)]
    pub(crate) opening: Option<&'a SegmentHeader>,
    #[serde(flatten)]
    pub(crate) uncertain: Option<UncertainRange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChainAct {
    Open,
    Segment,
    /// A sync failed, and a later one did not: the records between may still be lost with the machine, since the system
    /// forgets what a failed sync did not write.
    Uncertain,
    Close,
}

/// The numbers of the records that a failed sync was to bring to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UncertainRange {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl UncertainRange {
    pub(crate) fn count(self) -> u64 {
        (self.to + 1).saturating_sub(self.from)
    }

    /// Reads the range in a record that states one.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct UncertainRecord {
            kind: String,
            act: ChainAct,
            #[serde(flatten)]
            uncertain: UncertainRange,
        }
        const MARK: &[u8] = b"\"act\":\"uncertain\"";
        // Nearly no line is one: the others are not read twice.
        let is_one = line.windows(MARK.len()).any(|part| part == MARK);
        let record: UncertainRecord = is_one.then(|| serde_json::from_slice(line).ok())??;
        (record.kind == "chain" && record.act == ChainAct::Uncertain).then_some(record.uncertain)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct ChainProcess<'a> {
    pub(crate) name: &'a str,
    pub(crate) pid: u32,
}

/// The first record of a segment: its process, and the findings and changes in the folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SegmentHeader {
    pub(crate) chain: ChainName,
    pub(crate) segment: u32,
    /// Heads of other chains that no other record names yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) heads: Vec<PeerHead>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) repaired: Vec<repair::TailRepair>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) removed: Vec<retention::RemovalStatement>,
    /// Chains up to this one may have been removed so long ago that no record states it anymore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) horizon: Option<ChainName>,
}

impl SegmentHeader {
    /// Creates an opening without statements about other chains.
    pub(crate) fn new(chain: ChainName, segment: u32) -> Self {
        Self {
            chain,
            segment,
            heads: Vec::new(),
            repaired: Vec::new(),
            removed: Vec::new(),
            horizon: None,
        }
    }
}

/// The last record of a chain when it was seen. An `ended` chain gets no more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PeerHead {
    pub(crate) chain: ChainName,
    pub(crate) seq: u64,
    pub(crate) hash: RecordHash,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ended: bool,
    /// The chain is in the folder of another machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) elsewhere: bool,
}

/// All chains of a folder by name, and so by age.
pub(crate) struct FolderSurvey {
    pub(crate) chains: Vec<ChainView>,
    /// Folders that this user may not read: they are left alone, and do not stop recording.
    denied: Vec<PathBuf>,
}

pub(crate) struct ChainView {
    pub(crate) name: ChainName,
    pub(crate) path: PathBuf,
    /// Whether the chain's process runs.
    pub(crate) live: bool,
    pub(crate) segments: Vec<SegmentView>,
    pub(crate) last: Option<LastRecord>,
}

pub(crate) struct SegmentView {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// `None` when empty, or not (or no longer) what a trail writes.
    pub(crate) first: Option<FirstRecord>,
    /// Whether the segment ends without a whole line.
    torn: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FirstRecord {
    pub(crate) seq: u64,
    #[serde(deserialize_with = "crate::line::read_time")]
    pub(crate) time: Timestamp,
    pub(crate) prev: RecordHash,
    #[serde(flatten)]
    pub(crate) opening: SegmentHeader,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct LastRecord {
    pub(crate) seq: u64,
    #[serde(deserialize_with = "crate::line::read_time")]
    pub(crate) time: Timestamp,
    pub(crate) hash: RecordHash,
}

impl FirstRecord {
    /// Parses a segment's first line; `None` if it was changed, or opens no segment.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        ChainLine::parse(line).filter(ChainLine::is_intact)?;
        serde_json::from_slice(line).ok()
    }
}

impl FolderSurvey {
    pub(crate) fn take(folder: &Path) -> io::Result<Self> {
        let mut survey = Self {
            chains: Vec::new(),
            denied: Vec::new(),
        };
        for (name, path) in chains(folder)? {
            match ChainView::look(name, path.clone()) {
                Ok(chain) => survey.chains.push(chain),
                // A chain that goes away while we look was removed by its age; that is stated elsewhere.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    survey.denied.push(path)
                }
                Err(error) => return Err(error),
            }
        }
        Ok(survey)
    }

    /// Logs what cannot be read, and so is not part of the answer.
    pub(crate) fn warn(&self) {
        for chain in &self.denied {
            tracing::warn!(
                "{} cannot be read by this user: its records are left out",
                chain.display()
            );
        }
    }

    /// Heads that no opening names yet, oldest chain first, and then those of `elsewhere` whose chains are not in this
    /// folder. Named heads are covered by the chain that names them, and so on.
    pub(crate) fn unnamed_heads(
        &self,
        own: Option<&ChainName>,
        elsewhere: &[AuditReceipt],
    ) -> Vec<PeerHead> {
        let mut named = std::collections::HashMap::<&ChainName, (u64, bool)>::new();
        for head in self.openings().flat_map(|opening| &opening.heads) {
            let known = named.entry(&head.chain).or_default();
            *known = (*known).max((head.seq, head.ended));
        }
        let others = self.chains.iter().filter(|chain| Some(&chain.name) != own);
        let heads = others.filter_map(|chain| {
            let last = chain.last?;
            Some(PeerHead {
                chain: chain.name.clone(),
                seq: last.seq,
                hash: last.hash,
                ended: !chain.live,
                elsewhere: false,
            })
        });
        let removed = self.removed_chains();
        let is_here = |name: &ChainName| {
            own == Some(name)
                || removed.contains(name)
                || self.chains.iter().any(|chain| chain.name == *name)
        };
        let elsewhere = elsewhere.iter().filter(|head| !is_here(&head.chain));
        let elsewhere = elsewhere.map(|head| PeerHead {
            chain: head.chain.clone(),
            seq: head.seq,
            hash: head.hash,
            ended: false,
            elsewhere: true,
        });
        let unnamed = heads.chain(elsewhere).filter(|head| {
            named
                .get(&head.chain)
                .is_none_or(|known| *known < (head.seq, head.ended))
        });
        unnamed.take(HEADS_MAX).collect()
    }

    /// Returns the chains that were removed as a whole, as far as it is still stated.
    pub(crate) fn removed_chains(&self) -> BTreeSet<ChainName> {
        self.openings()
            .flat_map(|opening| &opening.removed)
            .filter(|removed| removed.whole)
            .map(|removed| removed.chain.clone())
            .collect()
    }

    pub(crate) fn openings(&self) -> impl Iterator<Item = &SegmentHeader> {
        self.chains
            .iter()
            .flat_map(|chain| &chain.segments)
            .filter_map(|segment| Some(&segment.first.as_ref()?.opening))
    }
}

impl ChainView {
    /// Returns the segments to read, like the function [`begun_segments`].
    pub(crate) fn begun_segments(&self) -> &[SegmentView] {
        let empty = self
            .segments
            .iter()
            .rev()
            .take_while(|segment| segment.bytes == 0)
            .count();
        &self.segments[..self.segments.len() - empty]
    }

    fn look(name: ChainName, path: PathBuf) -> io::Result<Self> {
        let live = is_live(&path)?;
        let segments = segments_of(&path)?.into_iter();
        let segments = segments.map(|(number, path)| SegmentView::look(&name, number, path));
        let segments = segments.collect::<io::Result<Vec<_>>>()?;
        let last = match segments.iter().rfind(|segment| segment.bytes > 0) {
            Some(segment) => {
                last_line(&segment.path)?.and_then(|line| serde_json::from_slice(&line).ok())
            }
            None => None,
        };
        Ok(Self {
            name,
            path,
            live,
            segments,
            last,
        })
    }
}

impl SegmentView {
    /// Returns when its first record was written, if that can be read.
    pub(crate) fn began(&self) -> Option<Timestamp> {
        self.first.as_ref().map(|first| first.time)
    }

    fn look(chain: &ChainName, number: u32, path: PathBuf) -> io::Result<Self> {
        let mut file = File::open(&path)?;
        let bytes = file.metadata()?.len();
        let first = first_of(&file, chain, number)?;
        let mut end = *b"\n";
        if bytes > 0 {
            file.seek(SeekFrom::Start(bytes - 1))?;
            // Nothing is there if another process has just moved a torn tail aside.
            let _ = file.read(&mut end)?;
        }
        Ok(Self {
            number,
            path,
            bytes,
            first,
            torn: end != *b"\n",
        })
    }
}

/// Returns the folders of chains, by name. Anything else in the folder is ignored.
pub(crate) fn chains(folder: &Path) -> io::Result<Vec<(ChainName, PathBuf)>> {
    let mut chains = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(name) = name
            && entry.file_type()?.is_dir()
        {
            chains.push((name, entry.path()));
        }
    }
    chains.sort();
    Ok(chains)
}

/// Returns the bytes of all segments.
pub(crate) fn total_bytes(folder: &Path) -> io::Result<u64> {
    let mut total = 0;
    for (_, path) in chains(folder)? {
        for (_, segment) in segments_of(&path).unwrap_or_default() {
            // One that is gone takes no room.
            total += fs::metadata(&segment).map_or(0, |it| it.len());
        }
    }
    Ok(total)
}

/// Returns the segments of a chain by number; they are plain files only, and links are not followed.
pub(crate) fn segments_of(chain: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(chain)? {
        let entry = entry?;
        if let Some(number) = entry.file_name().to_str().and_then(segment_number)
            && entry.file_type()?.is_file()
        {
            segments.push((number, entry.path()));
        }
    }
    segments.sort();
    Ok(segments)
}

/// Returns the segments to read: those that were begun when this was asked. All but the last then have all their
/// records. That would not hold if a segment were made before, and begun after, the one before it was read.
pub(crate) fn begun_segments(chain: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut segments = segments_of(chain)?;
    while let Some((_, last)) = segments.last()
        && fs::metadata(last)?.len() == 0
    {
        segments.pop();
    }
    Ok(segments)
}

pub(crate) fn segment_name(number: u32) -> String {
    format!("{number:06}.jsonl")
}

fn segment_number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".jsonl")?.parse().ok()?;
    (segment_name(number) == name).then_some(number)
}

/// Returns `true` for the files that a trail puts into a chain's folder.
pub(crate) fn is_part_of_chain(name: &str) -> bool {
    let torn = || segment_number(&format!("{}.jsonl", name.strip_suffix(".torn")?));
    name == LOCK || segment_number(name).is_some() || torn().is_some()
}

/// Makes the folder, readable only by its owner.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    weir_files::create_folder(folder, 0o700)
}

/// Creates a file readable only by its owner; writes append to it.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    weir_files::hand_over(&file, path.parent().unwrap_or(Path::new(".")));
    Ok(file)
}

/// Takes the lock in a new chain's folder, which shows that the process of this chain is running.
pub(crate) fn take_lock(chain: &Path) -> io::Result<File> {
    let file = create(&chain.join(LOCK))?;
    file.lock()?;
    Ok(file)
}

/// Takes the lock of an ended chain, to repair or remove it; `None` while its process lives.
pub(crate) fn lock_ended(chain: &Path) -> io::Result<Option<File>> {
    if is_live(chain)? {
        return Ok(None);
    }
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(chain.join(LOCK))?;
    weir_files::hand_over(&file, chain);
    // An ended process never takes its lock again: any other holder only reads, or repairs.
    file.lock()?;
    Ok(Some(file))
}

/// Returns `true` if a process has locked the chain. A missing lock is not locked.
pub(crate) fn is_live(chain: &Path) -> io::Result<bool> {
    let file = match File::open(chain.join(LOCK)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(fs::TryLockError::WouldBlock) => Ok(true),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

pub(crate) fn remove_lock(chain: &Path) -> io::Result<()> {
    fs::remove_file(chain.join(LOCK))
}

/// Makes changes of the folder outlive the machine.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Returns the first record of a segment, if it is what a trail writes there.
pub(crate) fn read_first(
    path: &Path,
    chain: &ChainName,
    segment: u32,
) -> io::Result<Option<FirstRecord>> {
    first_of(&File::open(path)?, chain, segment)
}

fn first_of(file: &File, chain: &ChainName, segment: u32) -> io::Result<Option<FirstRecord>> {
    // Most first lines are short, and a survey reads one of each file.
    let mut lines = LineReader::with_buffer(file.take(LINE_MAX_BYTES as u64 + 1), 2 << 10);
    let Some(LinePiece::Line(line)) = lines.next()? else {
        return Ok(None);
    };
    let here =
        |first: &FirstRecord| first.opening.chain == *chain && first.opening.segment == segment;
    Ok(FirstRecord::parse(line).filter(here))
}

/// Returns the last complete line of a segment, without its newline.
fn last_line(segment: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = File::open(segment)?;
    let bytes = file.metadata()?.len();
    // The last line may be torn, and the one before as long as any; mostly it is short.
    for reach in [4 << 10, 2 * LINE_MAX_BYTES as u64 + 2] {
        let from = bytes.saturating_sub(reach);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        file.by_ref().take(reach).read_to_end(&mut tail)?;
        let Some(end) = tail.iter().rposition(|byte| *byte == b'\n') else {
            continue;
        };
        let start = tail[..end]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map(|at| at + 1);
        match start.or((from == 0).then_some(0)) {
            Some(start) => return Ok(Some(tail[start..end].to_vec())),
            None => continue,
        }
    }
    Ok(None)
}
