//! The Python wheel `weir-gateway`, for `uvx weir-gateway` and `pip install weir-gateway`. It is packed by Python's own
//! `wheel`; maturin would build the program once more, with other features.

use std::{fs, path::PathBuf, process::Command};

use super::{ReleaseParts, folder, install};
use crate::{
    clients,
    step::{StepFailure, capture_output},
    workshop::XtaskContext,
};

/// The name that `uvx` looks for starts the program next to it.
const LAUNCHER: &str = "#!/bin/sh\nexec \"$(dirname \"$(readlink -f \"$0\")\")/weir\" \"$@\"\n";

/// Packs `weir_gateway-VERSION-py3-none-PLATFORM.whl` into the release's folder.
pub(super) fn pack(
    workshop: &XtaskContext,
    release: &ReleaseParts,
) -> Result<PathBuf, StepFailure> {
    let python = clients::python_from(
        workshop,
        &workshop.repository.join("packaging/wheel.txt"),
        "wheel",
    )?;
    let version = &release.version;
    let tag = format!(
        "py3-none-manylinux_{}_{}",
        release.glibc()?.replace('.', "_"),
        release.architecture()?.wheel
    );
    let source = folder(&release.folder.join("wheel"))?;
    let scripts = source.join(format!("weir_gateway-{version}.data/scripts"));
    install(&release.binary, &scripts.join("weir"), "755")?;
    let launcher = release.folder.join("launcher");
    let write = |place: &PathBuf, text: &str| -> Result<(), StepFailure> {
        fs::write(place, text)
            .map_err(|error| format!("cannot write {}: {error}", place.display()).into())
    };
    write(&launcher, LAUNCHER)?;
    install(&launcher, &scripts.join("weir-gateway"), "755")?;
    let _ = fs::remove_file(&launcher);
    let about = folder(&source.join(format!("weir_gateway-{version}.dist-info")))?;
    let metadata = format!(
        "Metadata-Version: 2.1\nName: weir-gateway\nVersion: {version}\nSummary: An MCP gateway that turns forms into tools.\n\
         License: Apache-2.0\nRequires-Python: >=3.8\n"
    );
    write(&about.join("METADATA"), &metadata)?;
    let kind = format!("Wheel-Version: 1.0\nGenerator: weir\nRoot-Is-Purelib: false\nTag: {tag}\n");
    write(&about.join("WHEEL"), &kind)?;
    let mut pack = Command::new(python.join("bin/python"));
    // The same files always make the same wheel.
    pack.env("SOURCE_DATE_EPOCH", "315532800")
        .args(["-m", "wheel", "pack"])
        .arg(&source);
    capture_output(pack.arg("--dest-dir").arg(&release.folder))?;
    let _ = fs::remove_dir_all(&source);
    Ok(release
        .folder
        .join(format!("weir_gateway-{version}-{tag}.whl")))
}
