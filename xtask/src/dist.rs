//! Builds the programs for releases and benchmarks, by the profile `dist`.

use std::{path::PathBuf, process::Command};

use crate::{
    step::{StepFailure, capture_output},
    workshop::XtaskContext,
};

/// The wanted programs of the workspace, as cargo's options. Each is linked for minutes.
pub(crate) const ALL: &[&str] = &["--bins"];
pub(crate) const GATEWAY: &[&str] = &["--bin", "weir"];

/// Has the linker keep one of several functions with the same code: 0.55 MB of the program. Only here is rustc's linker LLD.
const FOLDED: [&str; 2] = [
    "--config",
    "target.x86_64-unknown-linux-gnu.rustflags=['-Clink-arg=-Wl,--icf=all']",
];

/// Builds the wanted programs and returns where they are. Adapters have to be built.
pub(crate) fn build(workshop: &XtaskContext, wanted: &[&str]) -> Result<PathBuf, StepFailure> {
    let build = ["build", "--profile", "dist", "--workspace", "--locked"];
    let mut cargo = workshop.cargo(&build);
    workshop
        .steps
        .command("optimized build", cargo.args(FOLDED).args(wanted))?;
    Ok(workshop.target.join("dist"))
}

/// Returns the target that is built on and for, such as `x86_64-unknown-linux-gnu`.
pub(crate) fn host_target() -> Result<String, StepFailure> {
    let compiler = capture_output(Command::new("rustc").arg("-vV"))?;
    let host = compiler
        .lines()
        .find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("`rustc -vV` names no host")?.to_owned())
}
