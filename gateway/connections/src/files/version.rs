//! The version of a file: a digest of its content.
//!
//! Times alone are not enough: two writes within one tick of the file system's clock (4 ms here, 2 s on some) leave
//! size and times unchanged. So the content is hashed, and the hash remembered by the file's metadata, but only once
//! the metadata is old enough that a later write must show in it. What Weir itself has written is remembered immediately:
//! it gives the file a time between two ticks of that clock, which no later write is given.

use std::{
    collections::HashMap,
    io::{self, Read},
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cap_std::fs::{Metadata, MetadataExt};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::{FileStat, failed, path::RootedPath, root::OpenRoot};
use crate::ConnectionError;

const REMEMBERED_MAX: usize = 4096;
const ENDS_MAX: usize = 64;
/// The time after its last change in which a file's times may miss another change.
const SETTLED_AFTER: Duration = Duration::from_millis(50);
/// The same time on file systems that count whole seconds (FAT: two).
const SETTLED_AFTER_COARSE: Duration = Duration::from_millis(2_100);

#[derive(Default)]
pub(super) struct VersionCache {
    by_path: Mutex<HashMap<PathBuf, (FileStamp, String)>>,
    /// The state of the digest at the end of a content, by version: appended bytes are digested from there. The newest
    /// is last.
    ends: Mutex<Vec<(String, Sha256)>>,
}

/// The last digits of the nanoseconds of a time that Weir gives a file: by these, another process of Weir recognizes that the
/// last writer was Weir. Times of the system have them once in a thousand.
const OWN_TIME: u32 = 619;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl VersionCache {
    pub(super) fn info(
        &self,
        root: &OpenRoot,
        path: &RootedPath,
    ) -> Result<FileStat, ConnectionError> {
        let stamp = FileStamp::from_metadata(&root.metadata(path)?);
        if let Some(version) = self.remembered(path, stamp) {
            return Ok(FileStat {
                version,
                size: stamp.size,
            });
        }
        self.hash(root, path)
    }

    pub(super) fn remembered(&self, path: &RootedPath, stamp: FileStamp) -> Option<String> {
        let by_path = self.by_path.lock();
        by_path
            .get(path.as_path())
            .filter(|(known, _)| *known == stamp)
            .map(|(_, version)| version.clone())
    }

    fn hash(&self, root: &OpenRoot, path: &RootedPath) -> Result<FileStat, ConnectionError> {
        let mut file = root.file(path)?;
        let before = FileStamp::from_metadata(&file.metadata().map_err(failed)?);
        let mut hasher = Sha256::new();
        let mut size = 0;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let count = file.read(&mut chunk).map_err(failed)?;
            if count == 0 {
                break;
            }
            hasher.update(&chunk[..count]);
            size += count as u64;
        }
        let version = self.keep_end(hasher, size);
        let after = FileStamp::from_metadata(&file.metadata().map_err(failed)?);
        if before == after && after.settled() {
            self.remember(path, after, &version);
        }
        Ok(FileStat { version, size })
    }

    /// Returns the version of a content, whose digest can be continued from here on.
    fn keep_end(&self, hasher: Sha256, size: u64) -> String {
        let version = text(hasher.clone(), size);
        let mut ends = self.ends.lock();
        ends.retain(|(known, _)| *known != version);
        if ends.len() == ENDS_MAX {
            ends.remove(0);
        }
        ends.push((version.clone(), hasher));
        version
    }

    /// Returns the version of a content with this version and size after more is appended; `None` if its digest is not kept.
    pub(super) fn appended(&self, version: &str, size: u64, more: &[&[u8]]) -> Option<String> {
        let ends = self.ends.lock();
        let (_, mut hasher) = ends.iter().find(|(known, _)| known == version)?.clone();
        drop(ends);
        more.iter().for_each(|more| hasher.update(more));
        let more: u64 = more.iter().map(|more| more.len() as u64).sum();
        Some(self.keep_end(hasher, size + more))
    }

    /// Remembers the version of a file that was just written and given this time.
    pub(super) fn written(
        &self,
        path: &RootedPath,
        file: std::fs::File,
        modified: SystemTime,
        version: &str,
    ) {
        let Ok(metadata) = cap_std::fs::File::from_std(file).metadata() else {
            return;
        };
        let stamp = FileStamp::from_metadata(&metadata);
        let given = modified
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos() as i128;
        // Another time means that another program wrote since, or that this file system counts in larger steps.
        if stamp.modified_ns == given {
            self.remember(path, stamp, version);
        }
    }

    fn remember(&self, path: &RootedPath, stamp: FileStamp, version: &str) {
        let mut by_path = self.by_path.lock();
        if by_path.len() >= REMEMBERED_MAX {
            by_path.clear();
        }
        by_path.insert(path.as_path().to_owned(), (stamp, version.to_owned()));
    }
}

/// Passes bytes on to a file and digests them on the way.
pub(super) struct DigestWriter<'f> {
    file: &'f mut std::fs::File,
    hasher: Sha256,
    size: u64,
}

impl<'f> DigestWriter<'f> {
    pub(super) fn new(file: &'f mut std::fs::File) -> Self {
        Self {
            file,
            hasher: Sha256::new(),
            size: 0,
        }
    }

    /// Returns the version of a file after a write.
    pub(super) fn version(self, versions: &VersionCache) -> String {
        versions.keep_end(self.hasher, self.size)
    }
}

impl io::Write for DigestWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the time that Weir gives a file which it writes at this time.
pub(super) fn own_time(now: SystemTime) -> SystemTime {
    let rest = now
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .subsec_nanos()
        % 1_000;
    now + Duration::from_nanos(u64::from(OWN_TIME)) - Duration::from_nanos(u64::from(rest))
}

/// Returns the version of a file with this content.
pub(super) fn digest_content(content: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(content);
    text(hasher, content.len() as u64)
}

fn text(hasher: Sha256, size: u64) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(48);
    for byte in &hasher.finalize()[..16] {
        let _ = write!(text, "{byte:02x}");
    }
    let _ = write!(text, "-{size}");
    text
}

impl FileStamp {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns `true` for a file that Weir wrote last, in any process.
    pub(super) fn is_own(&self) -> bool {
        self.modified_ns.rem_euclid(1_000) == i128::from(OWN_TIME)
    }

    /// Returns how long ago the content was changed; `None` for a time to come.
    pub(super) fn age(&self) -> Option<Duration> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos() as i128;
        let age = u64::try_from(now - self.modified_ns).ok()?;
        Some(Duration::from_nanos(age))
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Returns `true` for the same file with the same content. A file that is renamed has changed, and its content has not.
    pub(super) fn is_same_content(&self, other: &Self) -> bool {
        self.is_same_file(other) && (self.size, self.modified_ns) == (other.size, other.modified_ns)
    }

    /// Returns `true` once a further write would have to move the times.
    fn settled(&self) -> bool {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos() as i128;
        let coarse = self.modified_ns % 1_000_000_000 == 0;
        let wait = if coarse {
            SETTLED_AFTER_COARSE
        } else {
            SETTLED_AFTER
        };
        now - self.modified_ns.max(self.changed_ns) > wait.as_nanos() as i128
    }
}
