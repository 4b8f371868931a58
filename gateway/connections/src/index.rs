//! Keeps ordered indexes on disk for plugins, so that a large source is not read whole for every call.
//!
//! Each is a separate SQLite file: written next to its place, sorted, synced, renamed into it, and never changed again.
//! A crash leaves a part that the next start sweeps away, and two processes that build the same one make the same file
//! twice. Its name is derived from the source, the source's version and the column, so an outdated one is never found.

mod build;
mod store;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, params};

use crate::{ConnectionError, FailureCode};
use build::IndexBuild;

/// The most open indexes; the least recently used is closed first. Each may cache [`CACHE_KB`].
const OPEN_MAX: usize = 16;
const CACHE_KB: i64 = 1_024;
/// The bound on indexes of one plugin that are being built; the one continued least recently makes room.
const BUILDS_MAX: usize = 8;
/// Longer keys are refused: an adapter cuts them, and looks at the records for the rest.
pub const KEY_MAX_BYTES: usize = 256;
pub const RANGE_MAX: u32 = 4_096;

/// The place of one record in its source, and its place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The key, ordered bytewise.
    pub key: Vec<u8>,
    pub at: u64,
    pub length: u32,
}

/// The name of an index. Only its digest becomes part of a path.
#[derive(Clone, Copy, Debug)]
pub struct IndexName<'a> {
    pub plugin: &'a str,
    pub source: &'a str,
    pub version: &'a str,
    pub column: &'a str,
}

/// Entries with `from` ≤ key, and key < `to` if there is one.
#[derive(Clone, Debug, Default)]
pub struct IndexRange {
    pub from: Vec<u8>,
    pub to: Option<Vec<u8>>,
    /// The greatest key first; entries of one key are in the order of `at` in both directions.
    pub descending: bool,
    /// The last entry of the page before: its key and `at`.
    pub after: Option<(Vec<u8>, u64)>,
    pub limit: u32,
}

/// The indexes of one state folder.
pub struct IndexStore {
    folder: PathBuf,
    open: Mutex<Vec<(PathBuf, Arc<OpenIndex>)>>,
    /// The builds in progress, by plugin.
    building: Mutex<HashMap<String, IndexBuilds>>,
}

/// The indexes of one plugin that are being built.
#[derive(Default)]
struct IndexBuilds {
    builds: HashMap<PathBuf, Arc<Mutex<IndexBuild>>>,
    /// The bytes of all indexes.
    bytes: Arc<AtomicU64>,
}

struct OpenIndex {
    connection: Mutex<Connection>,
    covers: u64,
}

impl IndexStore {
    /// Removes what a crash left half done. A folder that cannot be used fails at its first use.
    pub fn new(folder: PathBuf) -> Self {
        store::sweep(&folder);
        Self {
            folder,
            open: Mutex::default(),
            building: Mutex::default(),
        }
    }

    /// Returns how many bytes of the source the index covers; `None` while there is no index.
    pub fn find(&self, name: IndexName<'_>) -> Option<u64> {
        self.opened(name).map(|opened| opened.covers)
    }

    /// Returns the entries of an index in a range, or the error `not_found` if there is no such index.
    pub fn range(
        &self,
        name: IndexName<'_>,
        range: &IndexRange,
    ) -> Result<Vec<IndexEntry>, ConnectionError> {
        let opened = self
            .opened(name)
            .ok_or_else(|| ConnectionError::new(FailureCode::NotFound, "there is no such index"))?;
        opened.range(range).map_err(failed)
    }

    /// Turns the indexes of an old version into those of a new one, which begins with all that they cover.
    pub fn extend(
        &self,
        plugin: &str,
        source: &str,
        old: &str,
        new: &str,
    ) -> Result<(), ConnectionError> {
        let name = |version| IndexName {
            plugin,
            source,
            version,
            column: "",
        };
        let renamed = store::rename(&self.folder, name(old), name(new)).map_err(failed)?;
        self.open.lock().retain(|(path, _)| !renamed.contains(path));
        Ok(())
    }

    /// Begins an index, or continues one, and returns how many bytes of the source it covers so far. `bytes_max` bounds all
    /// indexes of the plugin together; the least recently used make room.
    pub fn begin(&self, name: IndexName<'_>, bytes_max: u64) -> Result<u64, ConnectionError> {
        let path = store::path(&self.folder, name);
        let mut building = self.building.lock();
        building.values_mut().for_each(IndexBuilds::drop_abandoned);
        let IndexBuilds { builds, bytes } = building.entry(name.plugin.to_owned()).or_default();
        if let Some(build) = builds.get(&path) {
            return Ok(build.lock().covers);
        }
        if builds.len() >= BUILDS_MAX {
            let idle = builds
                .iter()
                .filter_map(|(path, build)| Some((build.try_lock()?.touched, path)));
            let (_, oldest) = idle.min().ok_or_else(|| {
                ConnectionError::new(
                    FailureCode::Overloaded,
                    "too many indexes of the plugin are being built",
                )
            })?;
            let oldest = oldest.clone();
            builds.remove(&oldest);
        }
        store::make_room(&self.folder, name.plugin, bytes_max);
        let build = IndexBuild::begin(&path, bytes_max, bytes.clone()).map_err(failed)?;
        builds.insert(path, Arc::new(Mutex::new(build)));
        Ok(0)
    }

    /// Adds the entries of the next bytes of the source: from `from`, which is what the index covers so far, to `to`.
    pub fn add(
        &self,
        name: IndexName<'_>,
        entries: &[IndexEntry],
        from: u64,
        to: u64,
    ) -> Result<(), ConnectionError> {
        if entries.iter().any(|entry| entry.key.len() > KEY_MAX_BYTES) {
            return Err(ConnectionError::new(
                FailureCode::TooLarge,
                "a key takes at most 256 bytes",
            )
            .field("key"));
        }
        let path = store::path(&self.folder, name);
        let build = self
            .building
            .lock()
            .get(name.plugin)
            .and_then(|building| building.builds.get(&path).cloned());
        let build = build.ok_or_else(|| {
            ConnectionError::new(FailureCode::NotFound, "there is no such index under way")
        })?;
        let mut build = build.lock();
        if build.covers != from {
            return Err(ConnectionError::new(
                FailureCode::Conflict,
                "the index has been built further by another call",
            ));
        }
        let added = build.add(entries, to);
        drop(build);
        if added.is_err() {
            self.take_build(name.plugin, &path);
        }
        added
    }

    /// Sorts the added entries and puts the index in its place; those of other versions of the source are removed.
    pub fn finish(&self, name: IndexName<'_>, bytes_max: u64) -> Result<(), ConnectionError> {
        let path = store::path(&self.folder, name);
        let build = self.take_build(name.plugin, &path);
        let build = build.ok_or_else(|| {
            ConnectionError::new(FailureCode::NotFound, "there is no such index under way")
        })?;
        build.lock().finish(&path).map_err(failed)?;
        // One of the same version may be open that covers less.
        self.open.lock().retain(|(known, _)| *known != path);
        store::drop_others(&self.folder, name);
        store::make_room(&self.folder, name.plugin, bytes_max);
        Ok(())
    }

    fn take_build(&self, plugin: &str, path: &Path) -> Option<Arc<Mutex<IndexBuild>>> {
        self.building.lock().get_mut(plugin)?.builds.remove(path)
    }

    fn opened(&self, name: IndexName<'_>) -> Option<Arc<OpenIndex>> {
        let path = store::path(&self.folder, name);
        let mut open = self.open.lock();
        if let Some(at) = open.iter().position(|(known, _)| *known == path) {
            let entry = open.remove(at);
            let opened = entry.1.clone();
            open.push(entry);
            return Some(opened);
        }
        let opened = Arc::new(OpenIndex::open(&path).ok()?);
        store::touch(&path);
        if open.len() == OPEN_MAX {
            open.remove(0);
        }
        open.push((path, opened.clone()));
        Some(opened)
    }
}

impl IndexBuilds {
    fn drop_abandoned(&mut self) {
        self.builds
            .retain(|_, build| build.try_lock().is_none_or(|build| !build.is_abandoned()));
    }
}

impl OpenIndex {
    /// Opens a finished index. Nothing changes it, so SQLite need not look for locks or journals.
    fn open(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let address = format!("file:{}?immutable=1", address(path));
        let connection = Connection::open_with_flags(address, flags)?;
        connection.pragma_update(None, "cache_size", -CACHE_KB)?;
        let covers =
            connection.query_row("SELECT covers FROM meta", [], |row| row.get::<_, i64>(0))?;
        Ok(Self {
            connection: Mutex::new(connection),
            covers: covers as u64,
        })
    }

    fn range(&self, range: &IndexRange) -> rusqlite::Result<Vec<IndexEntry>> {
        let connection = self.connection.lock();
        let mut entries = Vec::new();
        let limit = range.limit.clamp(1, RANGE_MAX) as usize;
        let to = range.to.as_deref().unwrap_or(&END);
        let Some((key, at)) = &range.after else {
            let sql = if range.descending {
                DESCENDING
            } else {
                ASCENDING
            };
            collect(
                &connection,
                sql,
                params![range.from, to, limit as i64],
                &mut entries,
            )?;
            return Ok(entries);
        };
        // The rest of the key that the previous page ended in comes first, then the keys after it.
        collect(
            &connection,
            SAME,
            params![key, *at as i64, limit as i64],
            &mut entries,
        )?;
        let left = (limit - entries.len()) as i64;
        match range.descending {
            _ if left == 0 => {}
            true => collect(
                &connection,
                DESCENDING,
                params![range.from, key.as_slice().min(to), left],
                &mut entries,
            )?,
            false => collect(&connection, BEHIND, params![key, to, left], &mut entries)?,
        }
        Ok(entries)
    }
}

/// Greater than every key.
const END: [u8; KEY_MAX_BYTES + 1] = [0xff; KEY_MAX_BYTES + 1];

const SAME: &str =
    "SELECT key, at, length FROM entries WHERE key = ?1 AND at > ?2 ORDER BY at LIMIT ?3";
const BEHIND: &str =
    "SELECT key, at, length FROM entries WHERE key > ?1 AND key < ?2 ORDER BY key, at LIMIT ?3";
const ASCENDING: &str =
    "SELECT key, at, length FROM entries WHERE key >= ?1 AND key < ?2 ORDER BY key, at LIMIT ?3";
const DESCENDING: &str = "SELECT key, at, length FROM entries WHERE key >= ?1 AND key < ?2 ORDER BY key DESC, at LIMIT ?3";

fn collect(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    entries: &mut Vec<IndexEntry>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        let key = row.get_ref(0)?.as_blob()?.to_vec();
        entries.push(IndexEntry {
            key,
            at: row.get::<_, i64>(1)? as u64,
            length: row.get(2)?,
        });
    }
    Ok(())
}

/// Encodes a path as SQLite reads it in an address.
fn address(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    percent_encoding::percent_encode(
        path.as_os_str().as_bytes(),
        percent_encoding::NON_ALPHANUMERIC,
    )
    .to_string()
}

fn failed(error: impl std::fmt::Display) -> ConnectionError {
    ConnectionError::new(FailureCode::Unavailable, "the index cannot be used").details(error)
}
