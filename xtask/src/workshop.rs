//! Knows where work happens on this machine: the repository, the cache outside it, the target folder, the logs.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::step::{StepFailure, StepRunner};

pub(crate) struct XtaskContext {
    pub(crate) repository: PathBuf,
    /// Builds, clients and logs; survives the clone.
    pub(crate) cache: PathBuf,
    /// `CARGO_TARGET_DIR` of the workspace; guests have their own.
    pub(crate) target: PathBuf,
    pub(crate) steps: StepRunner,
    /// The cache of `WEIR_COLD=1`, which is removed at the end.
    temporary: Option<PathBuf>,
}

impl XtaskContext {
    pub(crate) fn open() -> Result<Self, StepFailure> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("xtask/ lies in the repository")
            .into();
        let temporary = match env::var("WEIR_COLD") {
            Ok(value) if value == "1" => Some(temporary_folder()?),
            _ => None,
        };
        let cache = match &temporary {
            Some(folder) => folder.clone(),
            None => cache_folder()?,
        };
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) if temporary.is_none() => PathBuf::from(folder),
            _ => cache.join("target"),
        };
        let logs = cache.join("logs");
        fs::create_dir_all(&logs)
            .map_err(|error| format!("cannot create {}: {error}", logs.display()))?;
        let workshop = Self {
            repository,
            cache,
            target,
            steps: StepRunner::new(logs),
            temporary,
        };
        workshop.claim()?;
        Ok(workshop)
    }

    /// Removes what another clone has built of the workspace into the same cache. Tests contain the folder that they were
    /// built in, and cargo does not build them again for another one. The dependencies are kept.
    fn claim(&self) -> Result<(), StepFailure> {
        let mark = self.target.join("clone");
        let own = self.repository.display().to_string();
        if fs::read_to_string(&mark).is_ok_and(|of| of == own) {
            return Ok(());
        }
        if self.target.join("debug").exists() {
            self.steps.command(
                "what another clone built",
                &mut self.cargo(&["clean", "--workspace", "--locked"]),
            )?;
        }
        let write = || fs::create_dir_all(&self.target).and_then(|()| fs::write(&mark, own));
        Ok(write().map_err(|error| format!("cannot write {}: {error}", mark.display()))?)
    }

    /// Returns `true` with `WEIR_COLD=1`: then no download cache of any tool may be used either.
    pub(crate) fn cold(&self) -> bool {
        self.temporary.is_some()
    }

    /// Returns the cargo that runs this task, in the repository, building into the shared target folder.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
        command
            .args(arguments)
            .env("CARGO_TARGET_DIR", &self.target);
        // The outer cargo describes this task in these variables, which `ring` watches. All that depends on it would be
        // built again whenever cargo is run by hand and through here in turn.
        for (name, _) in env::vars_os() {
            if ["CARGO_PKG_", "CARGO_MANIFEST_"]
                .iter()
                .any(|own| name.to_string_lossy().starts_with(own))
            {
                command.env_remove(name);
            }
        }
        command
    }

    /// Returns any program, in the repository, with the place of the cache in its environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.repository)
            .env("WEIR_CACHE", &self.cache);
        command
    }

    /// Returns a program built by the dev profile.
    pub(crate) fn binary(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }
}

impl Drop for XtaskContext {
    fn drop(&mut self) {
        if let Some(folder) = &self.temporary {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn cache_folder() -> Result<PathBuf, StepFailure> {
    let folder = if let Some(cache) = env::var_os("WEIR_CACHE") {
        PathBuf::from(cache)
    } else if let Some(cache) = env::var_os("XDG_CACHE_HOME") {
        PathBuf::from(cache).join("weir")
    } else if let Some(home) = env::var_os("HOME") {
        PathBuf::from(home).join(".cache/weir")
    } else {
        return Err(
            "set WEIR_CACHE or HOME: there is no place for builds and clients"
                .to_owned()
                .into(),
        );
    };
    if folder.is_absolute() {
        Ok(folder)
    } else {
        Err("WEIR_CACHE must be an absolute path".to_owned().into())
    }
}

fn temporary_folder() -> Result<PathBuf, StepFailure> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map(|time| time.as_millis())
        .unwrap_or_default();
    let folder = env::temp_dir().join(format!("weir-cold-{}-{now}", std::process::id()));
    fs::create_dir(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    println!("cold run: {}", folder.display());
    Ok(folder)
}

/// Reads a text; an error names the file.
pub(crate) fn read(path: &Path) -> Result<String, StepFailure> {
    fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()).into())
}

/// Writes a text; an error names the file.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), StepFailure> {
    fs::write(path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
