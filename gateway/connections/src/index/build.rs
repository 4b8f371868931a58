//! Builds one index: entries are stored in the order they come, and sorted at the end.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use rusqlite::{Connection, params};

use super::{Entry, store};
use crate::{Code, ConnectionError};

/// The time after which an index that nobody continued is dropped.
const ABANDONED_AFTER: Duration = Duration::from_secs(120);
/// The memory that sorting may take; the rest goes through files beside the index.
const SORT_KB: i64 = 8 << 10;
/// The room that an entry takes on disk beside its key, about.
const ENTRY_BYTES: u64 = 16;

pub(super) struct Build {
    connection: Connection,
    part: PathBuf,
    /// The lock that is held as long as the part is built: a sweep leaves the part alone.
    _lock: File,
    pub(super) covers: u64,
    bytes: u64,
    bytes_max: u64,
    touched: Instant,
}

impl Build {
    pub(super) fn begin(path: &Path, bytes_max: u64) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = path.parent().expect("an index lies in a folder");
        store::make_folder(folder)?;
        let part = folder.join(format!(
            "{}.{}-{}.{}",
            path.file_name().expect("an index has a name").to_string_lossy(),
            process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed),
            store::PART
        ));
        let lock = File::create(&part)?;
        lock.try_lock().map_err(io::Error::from)?;
        let connection = open(&part).map_err(io::Error::other)?;
        Ok(Self { connection, part, _lock: lock, covers: 0, bytes: 0, bytes_max, touched: Instant::now() })
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.touched.elapsed() > ABANDONED_AFTER
    }

    pub(super) fn add(&mut self, entries: &[Entry], covers: u64) -> Result<(), ConnectionError> {
        self.bytes += entries.iter().map(|entry| entry.key.len() as u64 + ENTRY_BYTES).sum::<u64>();
        // The sorted one stands beside it for a while.
        if self.bytes.saturating_mul(2) > self.bytes_max {
            return Err(ConnectionError::new(Code::TooLarge, "the index takes more than the plugin may have"));
        }
        self.insert(entries).map_err(super::failed)?;
        self.covers = covers;
        self.touched = Instant::now();
        Ok(())
    }

    fn insert(&self, entries: &[Entry]) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3)")?;
        for entry in entries {
            statement.execute(params![entry.key, entry.at as i64, entry.length])?;
        }
        Ok(())
    }

    /// Writes the index into a file of its own, and moves that into its place.
    pub(super) fn finish(&mut self, path: &Path) -> io::Result<()> {
        let sorted = self.part.with_extension(format!("sorted.{}", store::PART));
        let written = self.sort_into(&sorted).map_err(io::Error::other).and_then(|()| {
            File::open(&sorted)?.sync_all()?;
            fs::rename(&sorted, path)
        });
        if written.is_err() {
            let _ = fs::remove_file(&sorted);
        }
        written
    }

    fn sort_into(&self, sorted: &Path) -> rusqlite::Result<()> {
        self.connection.execute_batch("COMMIT")?;
        self.connection.execute("ATTACH ?1 AS sorted", [sorted.to_string_lossy()])?;
        self.connection.execute_batch(
            "PRAGMA sorted.journal_mode = OFF; PRAGMA sorted.synchronous = OFF;
             BEGIN;
             CREATE TABLE sorted.meta (covers INTEGER NOT NULL);
             CREATE TABLE sorted.entries (key BLOB, at INTEGER, length INTEGER, PRIMARY KEY (key, at)) WITHOUT ROWID;
             INSERT INTO sorted.entries SELECT key, at, length FROM main.entries ORDER BY key, at;",
        )?;
        self.connection.execute("INSERT INTO sorted.meta VALUES (?1)", [self.covers as i64])?;
        self.connection.execute_batch("COMMIT; DETACH sorted;")
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}

/// Opens a part without a journal and without waiting for the disk: what a crash leaves is swept away.
fn open(part: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(part)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = FILE;
         PRAGMA cache_size = -{SORT_KB};
         CREATE TABLE entries (key BLOB, at INTEGER, length INTEGER);
         BEGIN;"
    ))?;
    Ok(connection)
}
