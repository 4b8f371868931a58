//! The npm package `weir-gateway`: the program of one platform, so that `npx weir-gateway serve prices.csv` is all that a
//! Node user types. npm links a program as it is, without a script before it.

use std::{fs, path::PathBuf, process::Command};

use super::{ReleaseParts, folder, install};
use crate::{
    clients,
    step::{StepFailure, capture_output},
    workshop::XtaskContext,
};

/// Packs `weir-gateway-VERSION.tgz` into the release's folder.
pub(super) fn pack(
    workshop: &XtaskContext,
    release: &ReleaseParts,
) -> Result<PathBuf, StepFailure> {
    let bin = clients::node(workshop)?;
    let source = folder(&release.folder.join("npm"))?;
    install(&release.binary, &source.join("bin/weir"), "755")?;
    install(
        &workshop.repository.join("packaging/npm/README.md"),
        &source.join("README.md"),
        "644",
    )?;
    install(
        &workshop.repository.join("LICENSE"),
        &source.join("LICENSE"),
        "644",
    )?;
    let manifest = format!(
        r#"{{
  "name": "weir-gateway",
  "version": "{version}",
  "description": "An MCP gateway that turns forms into tools.",
  "license": "Apache-2.0",
  "bin": {{ "weir-gateway": "bin/weir", "weir": "bin/weir" }},
  "files": ["bin/weir"],
  "os": ["linux"],
  "cpu": ["{cpu}"],
  "libc": ["glibc"]
}}
"#,
        version = release.version,
        cpu = release.architecture()?.npm,
    );
    let place = source.join("package.json");
    fs::write(&place, manifest)
        .map_err(|error| format!("cannot write {}: {error}", place.display()))?;
    let mut pack = Command::new(bin.join("npm"));
    pack.current_dir(&source)
        .env("PATH", clients::with_first(&bin));
    pack.args([
        "pack",
        "--ignore-scripts",
        "--no-update-notifier",
        "--loglevel=error",
        "--pack-destination",
    ]);
    capture_output(pack.arg(&release.folder))?;
    let _ = fs::remove_dir_all(&source);
    Ok(release
        .folder
        .join(format!("weir-gateway-{}.tgz", release.version)))
}
