//! Builds one index. Entries that come in their order, as those of a key mostly do, are written where they belong at
//! once; others are stored as they come, and sorted at the end.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::{Connection, params};

use super::{IndexEntry, store};
use crate::{ConnectionError, FailureCode};

/// The time after which an unfinished index is dropped.
const ABANDONED_AFTER: Duration = Duration::from_secs(120);
/// The memory that sorting may take, and once more for its pages; the rest goes through files next to the index. Twice as
/// much does not sort faster.
const SORT_KB: i64 = 4 << 10;
/// The memory for pages of the sorted index, which is written from its beginning to its end.
const SORTED_KB: i64 = 1 << 10;
/// The approximate room that an entry takes on disk in addition to its key.
const ENTRY_BYTES: u64 = 16;

pub(super) struct IndexBuild {
    connection: Connection,
    part: PathBuf,
    /// The greatest entry so far while all came in their order: its key and place.
    last: Option<(Vec<u8>, u64)>,
    is_sorted: bool,
    /// Locked while the part is being built, so that a sweep leaves it alone.
    _lock: File,
    pub(super) covers: u64,
    bytes: u64,
    /// The bytes of all that is being built for the plugin, these among them.
    bytes_of_all: Arc<AtomicU64>,
    bytes_max: u64,
    pub(super) touched: Instant,
}

impl IndexBuild {
    pub(super) fn begin(
        path: &Path,
        bytes_max: u64,
        bytes_of_all: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = path.parent().expect("an index lies in a folder");
        store::make_folder(folder)?;
        let part = folder.join(format!(
            "{}.{}-{}.{}",
            path.file_name()
                .expect("an index has a name")
                .to_string_lossy(),
            process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed),
            store::PART
        ));
        let lock = File::create(&part)?;
        lock.try_lock().map_err(io::Error::from)?;
        let connection = open(&part).map_err(io::Error::other)?;
        Ok(Self {
            connection,
            part,
            last: None,
            is_sorted: true,
            _lock: lock,
            covers: 0,
            bytes: 0,
            bytes_of_all,
            bytes_max,
            touched: Instant::now(),
        })
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.touched.elapsed() > ABANDONED_AFTER
    }

    pub(super) fn add(
        &mut self,
        entries: &[IndexEntry],
        covers: u64,
    ) -> Result<(), ConnectionError> {
        let bytes = entries
            .iter()
            .map(|entry| entry.key.len() as u64 + ENTRY_BYTES)
            .sum::<u64>();
        self.bytes += bytes;
        let all = self.bytes_of_all.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // The sorted index exists next to it for a while.
        if all.saturating_mul(2) > self.bytes_max {
            return Err(ConnectionError::new(
                FailureCode::TooLarge,
                "the indexes being built take more than the plugin may have",
            ));
        }
        self.insert(entries).map_err(super::failed)?;
        self.covers = covers;
        self.touched = Instant::now();
        Ok(())
    }

    fn insert(&mut self, entries: &[IndexEntry]) -> rusqlite::Result<()> {
        self.is_sorted = self.is_sorted && self.goes_on(entries);
        let table = if self.is_sorted {
            "sorted.entries"
        } else {
            "unsorted"
        };
        let mut statement = self
            .connection
            .prepare_cached(&format!("INSERT INTO {table} VALUES (?1, ?2, ?3)"))?;
        for entry in entries {
            statement.execute(params![entry.key, entry.at as i64, entry.length])?;
        }
        if let Some(entry) = entries.last() {
            self.last = Some((entry.key.clone(), entry.at));
        }
        Ok(())
    }

    /// Returns `true` if these entries are in order, and after all others.
    fn goes_on(&self, entries: &[IndexEntry]) -> bool {
        fn place(entry: &IndexEntry) -> (&[u8], u64) {
            (&entry.key, entry.at)
        }
        let last = self.last.as_ref().map(|(key, at)| (key.as_slice(), *at));
        let is_behind = entries
            .first()
            .is_none_or(|first| last.is_none_or(|last| last < place(first)));
        is_behind && entries.is_sorted_by(|left, right| place(left) < place(right))
    }

    /// Writes the rest of the index, and moves it into its place.
    pub(super) fn finish(&mut self, path: &Path) -> io::Result<()> {
        self.sort().map_err(io::Error::other)?;
        let sorted = sorted(&self.part);
        File::open(&sorted)?.sync_all()?;
        fs::rename(&sorted, path)
    }

    fn sort(&self) -> rusqlite::Result<()> {
        if !self.is_sorted {
            let sql =
                "INSERT INTO sorted.entries SELECT key, at, length FROM unsorted ORDER BY key, at";
            self.connection.execute(sql, [])?;
        }
        self.connection
            .execute("INSERT INTO sorted.meta VALUES (?1)", [self.covers as i64])?;
        self.connection.execute_batch("COMMIT; DETACH sorted;")
    }
}

impl Drop for IndexBuild {
    fn drop(&mut self) {
        self.bytes_of_all.fetch_sub(self.bytes, Ordering::Relaxed);
        let _ = fs::remove_file(&self.part);
        let _ = fs::remove_file(sorted(&self.part));
    }
}

/// Returns where the sorted index is written until it is whole.
fn sorted(part: &Path) -> PathBuf {
    part.with_extension(format!("sorted.{}", store::PART))
}

/// Opens a part without a journal and without waiting for the disk: what a crash leaves is swept away.
fn open(part: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(part)?;
    connection.execute("ATTACH ?1 AS sorted", [sorted(part).to_string_lossy()])?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = FILE;
         PRAGMA cache_size = -{SORT_KB}; PRAGMA sorted.cache_size = -{SORTED_KB};
         PRAGMA sorted.journal_mode = OFF; PRAGMA sorted.synchronous = OFF;
         CREATE TABLE unsorted (key BLOB, at INTEGER, length INTEGER);
         CREATE TABLE sorted.meta (covers INTEGER NOT NULL);
         CREATE TABLE sorted.entries (key BLOB, at INTEGER, length INTEGER, PRIMARY KEY (key, at)) WITHOUT ROWID;
         BEGIN;"
    ))?;
    Ok(connection)
}
