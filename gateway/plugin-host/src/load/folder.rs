//! Looking at the plugins folder: its top level only, and no links.

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    io::Read as _,
    path::Path,
    time::{Duration, SystemTime},
};

use super::LOOK_INTERVAL;

/// A larger file is refused unread.
const FILE_MAX_BYTES: u64 = 64 << 20;
/// Files that are looked at; a folder with more is not a plugins folder.
const FILES_MAX: usize = 1_000;

/// The endings of libraries on the several systems.
const NATIVE: [&str; 3] = [".so", ".dylib", ".dll"];

pub(super) enum FolderEntry {
    File(PluginStamp),
    Refused(PluginStamp, String),
}

/// Identifies one state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PluginStamp {
    size: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl PluginStamp {
    fn new(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self {
            size: metadata.len(),
            modified: metadata.modified().ok(),
            inode,
        }
    }

    /// Returns `true` if the file changed so lately that it may still be being written.
    pub(super) fn is_fresh(&self) -> bool {
        let age = self.modified.and_then(|modified| modified.elapsed().ok());
        age.unwrap_or(Duration::ZERO) < 2 * LOOK_INTERVAL
    }
}

/// Returns the files that could be plugins. A folder that does not exist holds none.
pub(super) fn look(folder: &Path) -> Result<BTreeMap<String, FolderEntry>, String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => {
            return Err(format!(
                "the plugins folder `{}` cannot be read: {error}",
                folder.display()
            ));
        }
    };
    let mut seen = BTreeMap::new();
    for entry in entries.take(FILES_MAX) {
        let entry = entry.map_err(|error| format!("the plugins folder cannot be read: {error}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let compiled = name.ends_with(".cwasm");
        let native = NATIVE.iter().any(|end| name.ends_with(end)) && !name.starts_with('.');
        if !compiled && !native && (!name.ends_with(".wasm") || name.starts_with('.')) {
            continue;
        }
        // The link is not followed: this is about the link itself.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let stamp = PluginStamp::new(&metadata);
        let refusal = if compiled {
            Some(
                "compiled code from elsewhere is never loaded; put the `.wasm` component here"
                    .to_owned(),
            )
        } else if native {
            Some(
                "native code is never loaded from this folder: name it in the configuration, under `[plugins.NAME]`, as \
                 `native`, with its `sha256`"
                    .to_owned(),
            )
        } else if metadata.is_symlink() {
            Some("it is a link; put the file itself here".to_owned())
        } else if !metadata.is_file() {
            Some("it is not a file".to_owned())
        } else if metadata.len() > FILE_MAX_BYTES {
            Some(format!(
                "it has {} bytes; at most {FILE_MAX_BYTES}",
                metadata.len()
            ))
        } else {
            None
        };
        seen.insert(
            name,
            refusal.map_or(FolderEntry::File(stamp), |reason| {
                FolderEntry::Refused(stamp, reason)
            }),
        );
    }
    Ok(seen)
}

/// Reads the whole file, if it is still the same one.
pub(super) fn read(path: &Path, stamp: PluginStamp) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    let mut file = fs::File::open(path).map_err(unreadable)?;
    // This is the file that was opened, whatever the name leads to by now: through a link it would be another inode.
    if PluginStamp::new(&file.metadata().map_err(unreadable)?) != stamp {
        return Err("it changed while it was being loaded".into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(0));
    file.by_ref()
        .take(FILE_MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 != stamp.size
        || PluginStamp::new(&file.metadata().map_err(unreadable)?) != stamp
    {
        return Err("it changed while it was being loaded".into());
    }
    Ok(bytes)
}
