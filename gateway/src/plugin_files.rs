//! Keeps the outcomes of the files in the plugins folder, and serialises changes of a file.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::MutexGuard;
use weir_files::FilePermission;
use weir_plugin_host::LoadReport;

/// The last outcome of each file.
#[derive(Default)]
pub struct PluginFiles {
    files: Mutex<BTreeMap<String, PluginFileNote>>,
    changing: tokio::sync::Mutex<()>,
}

struct PluginFileNote {
    refusal: Option<String>,
    held: Option<String>,
}

/// A file that does not serve.
pub struct RefusedPluginFile {
    pub file: String,
    pub reason: String,
    /// The digest, if the file waits only to be accepted.
    pub held: Option<String>,
}

impl PluginFiles {
    pub(crate) fn note(&self, report: &LoadReport) {
        let mut files = self.files.lock();
        if report.removed {
            files.remove(&report.file);
        } else {
            let refusal = report.result.as_ref().err().cloned();
            files.insert(
                report.file.clone(),
                PluginFileNote {
                    refusal,
                    held: report.held.clone(),
                },
            );
        }
    }

    /// Forgets the outcome of a file that is removed.
    pub fn forget(&self, file: &str) {
        self.files.lock().remove(file);
    }

    /// Returns the currently refused files, with the reasons.
    pub fn refused(&self) -> Vec<RefusedPluginFile> {
        let files = self.files.lock();
        let refused = files.iter().filter_map(|(file, noted)| {
            Some(RefusedPluginFile {
                file: file.clone(),
                reason: noted.refusal.clone()?,
                held: noted.held.clone(),
            })
        });
        refused.collect()
    }

    /// Waits until no other task of this process changes a file over the admin API.
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// Restores files after a process was killed in the middle of a change; used before plugins are loaded.
    pub fn recover(&self, folder: &Path) {
        let is_left = kept_files(folder).is_ok_and(|kept| !kept.is_empty());
        if let Some(error) = is_left
            .then(|| PluginFolderLock::begin(folder).err())
            .flatten()
        {
            tracing::warn!(folder = %folder.display(), %error, "a change of a plugin has not ended, and is left as it is");
        }
    }
}

/// The name of a replaced file is `.FILE.before-DIGEST`, with the digest of the replacement. It starts with a dot, so that no
/// folder of the gateway reads such files.
const KEPT: &str = ".before-";

/// A plugins folder that no other process changes over the admin API until this is dropped. Its functions block on the disk.
pub struct PluginFolderLock {
    folder: PathBuf,
    /// The folder, locked.
    lock: File,
}

impl PluginFolderLock {
    /// Locks the folder, and restores files after a process was killed in the middle of a change.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let lock = File::open(folder)?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => {
                io::Error::other("another process changes a plugin now: try again")
            }
            fs::TryLockError::Error(error) => error,
        })?;
        let changing = Self {
            folder: folder.to_owned(),
            lock,
        };
        for (file, digest) in kept_files(folder)? {
            tracing::warn!(
                file,
                digest,
                "this build of the plugin was neither loaded nor refused: the file before it is put back"
            );
            changing.put_back(&file, &digest)?;
        }
        Ok(changing)
    }

    /// Writes a file. The previous one is kept next to it until [`accept`](Self::accept) or
    /// [`put_back`](Self::put_back).
    pub fn replace(&self, file: &str, bytes: &[u8], digest: &str) -> io::Result<()> {
        let place = self.folder.join(file);
        if let Some(before) = read(&place)? {
            weir_files::replace(&self.kept(file, digest), &before, FilePermission::Everyone)?;
        }
        let replaced = weir_files::replace(&place, bytes, FilePermission::Everyone);
        if replaced.is_err() {
            self.accept(file, digest)?;
        }
        replaced
    }

    /// Removes the kept file durably: if it reappeared after a crash, it would be restored.
    pub fn accept(&self, file: &str, digest: &str) -> io::Result<()> {
        match fs::remove_file(self.kept(file, digest)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Err(_) => Ok(()),
            Ok(()) => self.lock.sync_all(),
        }
    }

    /// Removes the build of that digest: the kept file is restored, if there is one. A file that was put there by hand meanwhile
    /// is not touched.
    pub fn put_back(&self, file: &str, digest: &str) -> io::Result<()> {
        let place = self.folder.join(file);
        if read(&place)?.is_some_and(|bytes| hex::encode(Sha256::digest(bytes)) == digest) {
            match read(&self.kept(file, digest))? {
                Some(before) => weir_files::replace(&place, &before, FilePermission::Everyone)?,
                None => fs::remove_file(&place)?,
            }
        }
        self.accept(file, digest)
    }

    /// Removes a file from the plugins folder. `Err` also means that it does not exist.
    pub fn remove(&self, file: &str) -> io::Result<()> {
        fs::remove_file(self.folder.join(file))
    }

    fn kept(&self, file: &str, digest: &str) -> PathBuf {
        self.folder.join(format!(".{file}{KEPT}{digest}"))
    }
}

/// Returns the name of each kept file, and the digest of the build that replaced it.
fn kept_files(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let parts = name
            .to_str()
            .and_then(|name| name.strip_prefix('.')?.rsplit_once(KEPT));
        kept.extend(parts.map(|(file, digest)| (file.to_owned(), digest.to_owned())));
    }
    Ok(kept)
}

/// Reads a file; `None` if there is none.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
