//! Builds and runs the container image in the tests: podman from Debian, and a base image that is made here.

use std::{fs, path::Path, process::Command};

use crate::{
    debian::{self, succeeds},
    step::{StepFailure, capture_output},
    workshop::XtaskContext,
};

/// The release of Debian that the image is built on: `debian:bookworm-slim` in the Dockerfile.
const RELEASE: &str = "bookworm";

/// Installs the engine, and makes `image/base.tar` in the cache from Debian's packages, since no registry of images is asked.
pub(crate) fn prepare(workshop: &XtaskContext) -> Result<(), StepFailure> {
    debian::ensure(workshop, &["podman", "runc", "mmdebstrap"], engine_present)?;
    let base = workshop.cache.join("image/base.tar");
    if base.exists() {
        return Ok(());
    }
    let made = workshop
        .steps
        .task("base of the image", || make_base(&base));
    // The test reports a machine that cannot have one.
    if let Err(failure) = made {
        eprintln!("the container image is not tested: {failure}");
    }
    Ok(())
}

fn engine_present() -> bool {
    ["podman", "runc", "mmdebstrap"]
        .iter()
        .all(|name| succeeds(Command::new(name).arg("--version")))
}

/// Makes the file system of the base. It appears under its name when it is whole.
fn make_base(base: &Path) -> Result<(), StepFailure> {
    let folder = base.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let part = base.with_extension("part.tar");
    let mut make = Command::new("mmdebstrap");
    make.args(["--variant=minbase", "--quiet"]);
    // The published base leaves these out as well.
    for left_out in ["man", "doc", "locale"] {
        make.arg(format!("--dpkgopt=path-exclude=/usr/share/{left_out}/*"));
    }
    capture_output(make.arg(RELEASE).arg(&part))?;
    fs::rename(&part, base)
        .map_err(|error| format!("cannot write {}: {error}", base.display()).into())
}
