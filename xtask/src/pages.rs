//! Builds the console and the documentation in the cache, by scripts of their packages.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{clients, step::StepFailure, workshop::XtaskContext};

/// Runs a script of the packages in the folder of the build.
pub(crate) fn node(
    workshop: &XtaskContext,
    folder: &Path,
    step: &str,
    words: &[&str],
) -> Result<(), StepFailure> {
    let bin = clients::node(workshop)?;
    let script = folder.join("node_modules").join(words[0]);
    let mut command = workshop.command(bin.join("node"));
    command
        .current_dir(folder)
        .env("PATH", clients::with_first(&bin))
        .env("WEIR_REPOSITORY", &workshop.repository)
        .arg(script)
        .args(&words[1..]);
    workshop.steps.command(step, &mut command)
}

/// Copies a file, or a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), StepFailure> {
    for file in files(from)? {
        let below = file.strip_prefix(from).unwrap_or(&file);
        let target = if below.as_os_str().is_empty() || below == file {
            to.to_owned()
        } else {
            to.join(below)
        };
        let folder = target.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder)
            .and_then(|()| fs::copy(&file, &target).map(drop))
            .map_err(|error| format!("cannot write {}: {error}", target.display()))?;
    }
    Ok(())
}

/// Returns a file, or those in a folder and below, in the order of their paths.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, StepFailure> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |error| format!("cannot read {}: {error}", path.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        found.extend(files(&entry)?);
    }
    Ok(found)
}
