//! Builds the program of an earlier commit, whose nodes run alongside those of this one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{plugins, step::StepFailure, workshop::XtaskContext};

/// The first commit that builds, and whose program starts again on the tables of a later one, so that an upgrade can be taken back.
const COMMIT: &str = "2c9c3b4b68b7df796d69b063c9897b3e5e7ba5e4";

/// Builds the earlier program. Returns `None` where the repository does not reach back so far.
pub(crate) fn build(workshop: &XtaskContext) -> Result<Option<PathBuf>, StepFailure> {
    let folder = workshop.cache.join("earlier");
    let program = folder.join(format!("weir-{}", &COMMIT[..8]));
    if program.exists() {
        return Ok(Some(program));
    }
    let has_commit = workshop
        .command("git")
        .args(["cat-file", "-e", COMMIT])
        .stderr(Stdio::null())
        .status();
    if !has_commit.is_ok_and(|status| status.success()) {
        println!(
            "         left out: this clone has no commit {}",
            &COMMIT[..8]
        );
        return Ok(None);
    }
    let source = folder.join("source");
    unpack(workshop, &source)?;
    // The adapters are those of this commit: their interface is frozen.
    for (_, name) in plugins::ADAPTERS {
        let file = format!("plugins/{name}.wasm");
        plugins::place(&workshop.repository.join(&file), &source.join(&file))?;
    }
    // Cargo takes a crate of the one commit for that of the other where their builds share a folder.
    let target = folder.join("target");
    let mut cargo = workshop.cargo(plugins::PROGRAM);
    cargo.env("CARGO_TARGET_DIR", &target).current_dir(&source);
    workshop.steps.command("earlier program", &mut cargo)?;
    let built = target.join("debug/weir");
    fs::rename(&built, &program)
        .map_err(|error| format!("cannot move {}: {error}", built.display()))?;
    let _ = fs::remove_dir_all(&target);
    Ok(Some(program))
}

/// Writes the files of the commit into an empty folder.
fn unpack(workshop: &XtaskContext, source: &Path) -> Result<(), StepFailure> {
    let failed = |error| format!("cannot write {}: {error}", source.display());
    if source.exists() {
        fs::remove_dir_all(source).map_err(failed)?;
    }
    fs::create_dir_all(source).map_err(failed)?;
    let archive = source.with_extension("tar");
    let mut git = workshop.command("git");
    git.args(["archive", "--output"]).arg(&archive).arg(COMMIT);
    workshop.steps.command("earlier commit", &mut git)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(source);
    workshop.steps.command("earlier files", &mut tar)?;
    fs::remove_file(&archive).map_err(|error| failed(error).into())
}
