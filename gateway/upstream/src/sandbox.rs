//! Keeps files of the gateway out of reach of a server's process and of all that it starts: by Landlock, where the kernel
//! has it.
//!
//! Landlock has no rule that forbids. It forbids everything, and a rule allows a folder with all that is in it. So each
//! folder that holds such a file, at whatever depth, is opened up: what else is in it at the start is allowed one by one.
//! What is added later is not.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The files and folders of the gateway that a server's process may not reach, or only read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptFiles {
    pub hidden: Vec<PathBuf>,
    pub read_only: Vec<PathBuf>,
}

impl KeptFiles {
    /// Returns the equivalent arguments for the guard.
    pub(crate) fn words(&self) -> impl Iterator<Item = OsString> {
        let named = |option: &'static str, paths: &[PathBuf]| {
            let words = paths
                .iter()
                .flat_map(move |path| [option.into(), path.clone().into_os_string()]);
            words.collect::<Vec<_>>()
        };
        let hidden = named("--hidden", &self.hidden);
        hidden
            .into_iter()
            .chain(named("--read-only", &self.read_only))
    }

    /// Returns each path without links, and whether it may be read.
    fn real(&self) -> BTreeMap<PathBuf, bool> {
        let real = |path: &PathBuf| path.canonicalize().ok();
        // A path that is both is hidden.
        let read_only = self.read_only.iter().filter_map(real);
        let hidden = self.hidden.iter().filter_map(real);
        read_only
            .map(|path| (path, true))
            .chain(hidden.map(|path| (path, false)))
            .collect()
    }
}

/// Returns whether there is such a path beneath this one.
fn is_above(path: &Path, kept: &BTreeMap<PathBuf, bool>) -> bool {
    kept.keys()
        .any(|kept| kept != path && kept.starts_with(path))
}

#[cfg(target_os = "linux")]
pub use self::landlocked::is_supported;
#[cfg(target_os = "linux")]
pub(crate) use self::landlocked::restrict;

#[cfg(not(target_os = "linux"))]
/// Returns whether the kernel can keep files from processes.
pub fn is_supported() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
/// Keeps nothing here: only Linux has Landlock.
pub(crate) fn restrict(_: &KeptFiles) -> Result<Vec<(&'static str, PathBuf)>, String> {
    Ok(Vec::new())
}

#[cfg(target_os = "linux")]
mod landlocked {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs::{self, DirBuilder, File},
        os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
        path::{Path, PathBuf},
    };

    use landlock::{
        ABI, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, Ruleset,
        RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    };
    use rustix::fs::{Mode, OFlags, open};

    use super::{KeptFiles, is_above};

    /// Folders that programs create in the home folder if missing, such as those that download packages.
    const HOME_FOLDERS: [&str; 4] = [".cache", ".config", ".local", ".npm"];

    /// Returns whether the kernel can keep files from processes. Before the second version of Landlock (Linux 5.19) no
    /// file could be moved from folder to folder.
    pub fn is_supported() -> bool {
        let needed = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::Refer)
            .and_then(Ruleset::create);
        needed.is_ok()
    }

    /// Keeps the files from this process and all that it starts, for good. This applies to the calling thread, and to
    /// threads that it creates later. Returns the variables that the processes then need.
    pub(crate) fn restrict(kept: &KeptFiles) -> Result<Vec<(&'static str, PathBuf)>, String> {
        let kept = kept.real();
        if kept.is_empty() || !is_supported() {
            return Ok(Vec::new());
        }
        let variables = make_folders(&kept);
        let rights = AccessFs::from_write(ABI::V3) | AccessFs::ReadFile;
        let restrict = || -> Result<(), RulesetError> {
            let mut rules = Ruleset::default().handle_access(rights)?.create()?;
            allow(Path::new("/"), rights, &kept, &mut rules)?;
            rules.restrict_self()?;
            Ok(())
        };
        restrict().map_err(|error| error.to_string())?;
        Ok(variables)
    }

    /// Allows a path and everything in it, except the kept files.
    fn allow(
        path: &Path,
        rights: BitFlags<AccessFs>,
        kept: &BTreeMap<PathBuf, bool>,
        rules: &mut RulesetCreated,
    ) -> Result<(), RulesetError> {
        let rights = match kept.get(path) {
            None => rights,
            Some(true) => rights & AccessFs::ReadFile,
            Some(false) => BitFlags::EMPTY,
        };
        if rights.is_empty() {
            return Ok(());
        }
        if !is_above(path, kept) {
            return allow_all(path, rights, rules);
        }
        let listed = fs::read_dir(path).into_iter().flatten().flatten();
        let listed = listed.map(|entry| entry.path());
        // A folder that may not be listed can still be passed through.
        let on_the_way = kept.keys().filter_map(|kept| {
            let next = kept.strip_prefix(path).ok()?.components().next()?;
            Some(path.join(next))
        });
        let inner: BTreeSet<PathBuf> = listed.chain(on_the_way).collect();
        inner
            .iter()
            .try_for_each(|inner| allow(inner, rights, kept, rules))
    }

    /// Adds one rule. A link gets none: its target is allowed, or not, on its own.
    fn allow_all(
        path: &Path,
        rights: BitFlags<AccessFs>,
        rules: &mut RulesetCreated,
    ) -> Result<(), RulesetError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(opened) = open(path, flags, Mode::empty()) else {
            return Ok(()); // it is gone
        };
        let opened = File::from(opened);
        let Ok(about) = opened.metadata() else {
            return Ok(());
        };
        let rights = match about.is_dir() {
            true => rights,
            false => rights & AccessFs::from_file(ABI::V3),
        };
        if !about.is_symlink() && !rights.is_empty() {
            rules.add_rule(PathBeneath::new(opened, rights))?;
        }
        Ok(())
    }

    /// Makes folders that a process would make itself but no longer could.
    fn make_folders(kept: &BTreeMap<PathBuf, bool>) -> Vec<(&'static str, PathBuf)> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let home = home.and_then(|home| home.canonicalize().ok());
        if let Some(home) = home.filter(|home| is_above(home, kept)) {
            for name in HOME_FOLDERS {
                let _ = DirBuilder::new().mode(0o700).create(home.join(name)); // it may be there
            }
        }
        let Ok(temporary) = std::env::temp_dir().canonicalize() else {
            return Vec::new();
        };
        if !is_above(&temporary, kept) {
            return Vec::new();
        }
        let user = rustix::process::geteuid().as_raw();
        let own = temporary.join(format!("weir-servers-{user}"));
        let _ = DirBuilder::new().mode(0o700).create(&own); // it may be there
        let is_own = fs::symlink_metadata(&own)
            .is_ok_and(|about| about.is_dir() && about.uid() == user && about.mode() & 0o077 == 0);
        match is_own {
            true => vec![("TMPDIR", own)],
            false => Vec::new(),
        }
    }
}
