//! Keeps compiled plugins on disk, for this user only. Loading a `.cwasm` runs native code, so only files that this user
//! wrote, in a folder that no other user can write to, are ever read back.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use wasmtime::{Engine, component::Component};

use crate::engine::{EnginePair, EngineSize};

/// The bound on compiled files; the oldest go.
const FILES_MAX: usize = 64;
/// The extension of compiled files. Other files in the folder are left alone.
const ENDING: &str = "cwasm";
/// The extension of the file next to it, with the plugin's `about`.
const ABOUT: &str = "about";

pub(in crate::load) struct ComponentCache {
    /// The folder; `None` if it cannot be trusted or written to, and then everything is compiled again.
    folder: Option<PathBuf>,
    /// Version and settings of the compiler.
    engine: String,
}

impl ComponentCache {
    pub(in crate::load) fn open(folder: &Path, engine: &Engine) -> Self {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let usable = prepare_folder(folder).inspect_err(
            |reason| tracing::warn!(folder = %folder.display(), "plugins are not cached: {reason}"),
        );
        Self {
            folder: usable.is_ok().then(|| folder.to_owned()),
            engine: format!("{:016x}", hasher.finish()),
        }
    }

    pub(super) fn get(
        &self,
        digest: &str,
        sizes: &[EngineSize],
        engines: &EnginePair,
    ) -> Option<(Component, EngineSize)> {
        let path = self.path(digest)?;
        let metadata = fs::symlink_metadata(&path).ok()?;
        let folder = fs::symlink_metadata(path.parent()?).ok()?;
        if !metadata.is_file() || !is_private(&metadata, &folder) {
            let _ = fs::remove_file(&path);
            return None;
        }
        let found = sizes
            .iter()
            .find_map(|size| Some((load_file(engines.get(*size), &path)?, *size)));
        if found.is_none() {
            tracing::warn!(path = %path.display(), "a cached plugin cannot be loaded; it is compiled again");
            let _ = fs::remove_file(&path);
        }
        found
    }

    /// Returns the `about` of a built-in plugin, and the engine that its compiled code is for.
    pub(in crate::load) fn kept_about(&self, digest: &str) -> Option<(String, EngineSize)> {
        let code = self.path(digest)?;
        let path = code.with_extension(ABOUT);
        let folder = fs::symlink_metadata(path.parent()?).ok()?;
        for file in [&path, &code] {
            let metadata = fs::symlink_metadata(file).ok()?;
            if !metadata.is_file() || !is_private(&metadata, &folder) {
                return None;
            }
        }
        let text = fs::read_to_string(&path).ok()?;
        let (size, about) = text.split_once('\n')?;
        let size = [EngineSize::Small, EngineSize::Large]
            .into_iter()
            .find(|known| known.word() == size)?;
        Some((about.to_owned(), size))
    }

    /// Keeps the `about` of a plugin next to its compiled code.
    pub(in crate::load) fn keep_about(&self, digest: &str, about: &str, size: EngineSize) {
        let Some(path) = self.path(digest).map(|code| code.with_extension(ABOUT)) else {
            return;
        };
        let text = format!("{}\n{about}", size.word());
        if let Err(error) =
            weir_files::replace(&path, text.as_bytes(), weir_files::FilePermission::Owner)
        {
            tracing::warn!(path = %path.display(), %error, "the `about` text of a plugin is not cached");
        }
    }

    /// Caches freshly compiled code if possible, and loads it.
    pub(super) fn put(
        &self,
        digest: &str,
        code: &[u8],
        sizes: &[EngineSize],
        engines: &EnginePair,
    ) -> Result<(Component, EngineSize), String> {
        if let Some(path) = self.path(digest) {
            if let Err(error) = weir_files::replace(&path, code, weir_files::FilePermission::Owner)
            {
                tracing::warn!(path = %path.display(), %error, "a compiled plugin is not cached");
            }
            self.prune(&path);
        }
        // The code comes from memory, not from the file just written, so that the compiled code is what runs.
        let mut reason = String::new();
        for size in sizes {
            match load(engines.get(*size), code) {
                Ok(component) => return Ok((component, *size)),
                Err(error) => reason = format!("{error:#}"),
            }
        }
        Err(format!("it needs more than a plugin may have: {reason}"))
    }

    fn path(&self, digest: &str) -> Option<PathBuf> {
        Some(
            self.folder
                .as_ref()?
                .join(format!("{digest}-{}.{ENDING}", self.engine)),
        )
    }

    fn prune(&self, newest: &Path) {
        let Some(folder) = &self.folder else { return };
        weir_files::remove_left_over(folder);
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        let mut files: Vec<_> = entries
            .flatten()
            .filter(|entry| {
                entry.path() != newest && entry.path().extension().is_some_and(|end| end == ENDING)
            })
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        let surplus = (files.len() + 1).saturating_sub(FILES_MAX);
        for (_, path) in files.into_iter().take(surplus) {
            let _ = fs::remove_file(path.with_extension(ABOUT));
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(unix)]
fn prepare_folder(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let failed = |error: std::io::Error| error.to_string();
    weir_files::create_folder(folder, 0o700).map_err(failed)?;
    let metadata = fs::symlink_metadata(folder).map_err(failed)?;
    if !metadata.is_dir() {
        return Err("it is not a separate folder".into());
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(format!(
            "its mode is {:o}; it must be 700",
            metadata.mode() & 0o777
        ));
    }
    // The owner of what we create is this user.
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    fs::write(&probe, b"").map_err(failed)?;
    let ours = fs::metadata(&probe).map(|probe| probe.uid() == metadata.uid());
    let _ = fs::remove_file(&probe);
    if ours.map_err(failed)? {
        Ok(())
    } else {
        Err("it belongs to another user".into())
    }
}

#[cfg(not(unix))]
fn prepare_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())
}

#[cfg(unix)]
fn is_private(file: &fs::Metadata, folder: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    file.uid() == folder.uid() && file.mode() & 0o022 == 0 && folder.mode() & 0o077 == 0
}

#[cfg(not(unix))]
fn is_private(_file: &fs::Metadata, _folder: &fs::Metadata) -> bool {
    true
}

#[expect(unsafe_code, reason = "loading compiled code is running it")]
fn load_file(engine: &Engine, path: &Path) -> Option<Component> {
    // SAFETY: the file was written by this user, by `put`, into a folder only this user can enter; both are checked
    // by the caller. wasmtime itself refuses files of another version, of other settings, and torn ones.
    unsafe { Component::deserialize_file(engine, path) }.ok()
}

#[expect(unsafe_code, reason = "loading compiled code is running it")]
fn load(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes come from `precompile_component` in this process.
    unsafe { Component::deserialize(engine, code) }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn the_oldest_compiled_files_go_and_no_other_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = ComponentCache {
            folder: Some(folder.path().to_owned()),
            engine: "engine".to_owned(),
        };
        let begin = SystemTime::now() - Duration::from_secs(1_000);
        let made = |name: &str, second: u64| {
            let file = fs::File::create(folder.path().join(name)).expect("a file");
            file.set_modified(begin + Duration::from_secs(second))
                .expect("its time");
        };
        made("notes.txt", 0);
        let half = fs::File::create(folder.path().join(".new-a")).expect("a file");
        half.set_modified(SystemTime::now() - Duration::from_secs(2 * 3600))
            .expect("its time");
        let compiled = |at: usize| cache.path(&format!("{at:02}")).expect("a path");
        for at in 0..=FILES_MAX {
            made(
                compiled(at)
                    .file_name()
                    .and_then(|name| name.to_str())
                    .expect("a name"),
                1 + at as u64,
            );
        }
        cache.prune(&compiled(FILES_MAX));
        assert!(
            folder.path().join("notes.txt").exists(),
            "it is not a compiled file"
        );
        assert!(
            !folder.path().join(".new-a").exists(),
            "a process was killed over it"
        );
        let left: Vec<_> = (0..=FILES_MAX)
            .filter(|at| compiled(*at).exists())
            .collect();
        assert_eq!(left, (1..=FILES_MAX).collect::<Vec<_>>());
    }
}
