//! The Debian package `weir-gateway`: the program, its unit and its configuration, where docs/run.md has them.

use std::{fs, path::PathBuf, process::Command};

use super::{ReleaseParts, folder, install};
use crate::{
    step::{StepFailure, capture_output},
    workshop::XtaskContext,
};

/// The service runs as a separate user; removing the package keeps its state. An upgrade restarts a running service.
const AFTER_INSTALL: &str = "#!/bin/sh
set -e
if [ \"$1\" = configure ] && ! getent passwd weir >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/weir --shell /usr/sbin/nologin weir
fi
for folder in /var/lib/weir /var/lib/weir/data /var/lib/weir/plugins; do
    install --directory --owner=weir --group=weir --mode=0700 \"$folder\"
done
if [ -z \"$DPKG_ROOT\" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    if [ \"$1\" = configure ] && [ -n \"$2\" ]; then systemctl try-restart weir.service || true; fi
fi
";

/// A program that is removed must not serve on.
const BEFORE_REMOVAL: &str = "#!/bin/sh
set -e
if [ \"$1\" = remove ] && [ -z \"$DPKG_ROOT\" ] && [ -d /run/systemd/system ]; then
    systemctl stop weir.service || true
fi
";

/// Packs `weir-gateway_VERSION_ARCH.deb` into the release's folder.
pub(super) fn pack(
    workshop: &XtaskContext,
    release: &ReleaseParts,
) -> Result<PathBuf, StepFailure> {
    let architecture = release.architecture()?.debian;
    let source = folder(&release.folder.join("deb"))?;
    let from = |name: &str| workshop.repository.join(name);
    install(&release.binary, &source.join("usr/bin/weir"), "755")?;
    install(
        &from("packaging/weir.toml"),
        &source.join("etc/weir/weir.toml"),
        "644",
    )?;
    install(
        &from("LICENSE"),
        &source.join("usr/share/doc/weir-gateway/copyright"),
        "644",
    )?;
    install(
        &from("docs/run.md"),
        &source.join("usr/share/doc/weir-gateway/run.md"),
        "644",
    )?;
    folder(&source.join("etc/weir/contracts"))?;
    let write = |place: PathBuf, text: &str| -> Result<PathBuf, StepFailure> {
        if let Some(above) = place.parent() {
            fs::create_dir_all(above)
                .map_err(|error| format!("cannot create {}: {error}", above.display()))?;
        }
        fs::write(&place, text)
            .map_err(|error| format!("cannot write {}: {error}", place.display()))?;
        Ok(place)
    };
    let unit = fs::read_to_string(from("packaging/weir.service"))
        .map_err(|error| format!("weir.service: {error}"))?;
    let unit = unit
        .replace("/usr/local/bin/weir", "/usr/bin/weir")
        .replace("/doc/weir/", "/doc/weir-gateway/");
    write(source.join("usr/lib/systemd/system/weir.service"), &unit)?;
    let control = format!(
        "Package: weir-gateway\nVersion: {version}\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
         Maintainer: The developers of Weir <weir@localhost>\nDepends: libc6 (>= {glibc}), libgcc-s1, passwd\n\
         Description: MCP gateway that turns forms into tools\n",
        version = release.version,
        glibc = release.glibc()?,
    );
    write(source.join("DEBIAN/control"), &control)?;
    write(source.join("DEBIAN/conffiles"), "/etc/weir/weir.toml\n")?;
    for (name, script) in [("postinst", AFTER_INSTALL), ("prerm", BEFORE_REMOVAL)] {
        let script = write(source.join("DEBIAN").join(name), script)?;
        capture_output(Command::new("chmod").arg("755").arg(&script))?;
    }
    let package = release.folder.join(format!(
        "weir-gateway_{}_{architecture}.deb",
        release.version
    ));
    let mut build = Command::new("dpkg-deb");
    build
        .env("SOURCE_DATE_EPOCH", "315532800")
        .args(["--root-owner-group", "-Zzstd", "-z9", "--build"])
        .arg(&source)
        .arg(&package);
    capture_output(&mut build)?;
    let _ = fs::remove_dir_all(&source);
    Ok(package)
}
