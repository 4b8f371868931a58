//! `cargo xtask plugins`: builds every adapter into `plugins/*.wasm`, and the guests that the tests load.

mod guests;
mod toolchain;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{step::StepFailure, workshop::XtaskContext};
use toolchain::GuestToolchain;

/// The build that the tests need: everything.
pub(crate) const WORKSPACE: &[&str] = &["build", "--workspace", "--all-targets", "--locked"];
/// The build that a demo needs. `weir-features` makes cargo build each dependency with the features that [`WORKSPACE`]
/// has.
pub(crate) const PROGRAM: &[&str] = &[
    "build",
    "--locked",
    "--package",
    "weir-binary",
    "--package",
    "weir-samples",
    "--package",
    "weir-features",
];

/// Adapter crates and the file each becomes.
pub(crate) const ADAPTERS: [(&str, &str); 3] = [
    ("weir-sheet", "sheet"),
    ("weir-sql", "sql"),
    ("weir-rest", "rest"),
];
/// The same for what the tests load.
const GUESTS: [(&str, &str); 7] = [
    ("weir-bench-function", "lookup"),
    ("weir-guest-conformance", "conformance"),
    ("weir-guest-misbehaving", "misbehaving"),
    ("weir-guest-tiny", "tiny-rust"),
    ("weir-guest-probe", "probe"),
    ("weir-guest-ticket", "ticket"),
    ("weir-guest-tools", "tools-rust"),
];

/// The guests that the tests run as native libraries too.
const NATIVE: [(&str, &str); 6] = [
    ("weir-bench-function", "lookup"),
    ("weir-sheet", "sheet"),
    ("weir-sql", "sql"),
    ("weir-rest", "rest"),
    ("weir-guest-misbehaving", "misbehaving"),
    ("weir-guest-tools", "tools-rust"),
];

/// Builds the adapters and the bindings for C, and with `guests` what the tests load in addition.
pub(crate) fn run(workshop: &XtaskContext, with_guests: bool) -> Result<(), StepFailure> {
    build(workshop)?;
    c_bindings(workshop)?;
    if with_guests {
        guests(workshop)
    } else {
        Ok(())
    }
}

/// Builds the adapters into `plugins/*.wasm`.
pub(crate) fn build(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let toolchain = GuestToolchain::find_or_install(workshop)?;
    compile(workshop, &toolchain)?;
    place_all(
        workshop,
        &toolchain,
        &ADAPTERS,
        &workshop.repository.join("plugins"),
    )
}

/// Writes the interface in C, which the program carries for `weir plugin new --lang c`. A demo goes without it.
pub(crate) fn c_bindings(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let manifest = "plugin-sdk/c-bindings/Cargo.toml";
    let mut cargo = workshop.cargo(&["run", "--locked", "--manifest-path", manifest]);
    cargo
        .args(["--", "plugin-sdk"])
        .env("CARGO_TARGET_DIR", workshop.cache.join("c-bindings"));
    workshop.steps.command("C bindings", &mut cargo)
}

/// Links the program again if adapters were rebuilt since: a few seconds. `build` runs in parallel with its plugins,
/// and may finish first.
pub(crate) fn link(workshop: &XtaskContext, build: &[&str]) -> Result<(), StepFailure> {
    workshop
        .steps
        .command("adapters into the program", &mut workshop.cargo(build))
}

/// Builds what the tests load, in every language, into [`guest_folder`].
pub(crate) fn guests(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let toolchain = GuestToolchain::find_or_install(workshop)?;
    guests::build(workshop, &toolchain)?;
    native(workshop)
}

/// Builds the same sources as native libraries, by one feature of each. They have a separate folder, since a library
/// of this machine needs neither a target nor its flags.
fn native(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let target = workshop.cache.join("native-guests");
    let mut cargo = workshop.cargo(&["build", "--profile", "native-guest", "--locked"]);
    cargo.env("CARGO_TARGET_DIR", &target);
    for (package, _) in NATIVE {
        cargo.args([
            "--package",
            package,
            "--features",
            &format!("{package}/native"),
        ]);
    }
    workshop.steps.command("plugins (native)", &mut cargo)?;
    for (package, name) in NATIVE {
        let (begin, end) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let file = format!("{begin}{}{end}", package.replace('-', "_"));
        place(
            &target.join("native-guest").join(file),
            &guest_folder(workshop).join(format!("{name}{end}")),
        )?;
    }
    Ok(())
}

/// Builds the guests that are written in Rust.
pub(crate) fn rust_guests(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let toolchain = GuestToolchain::find_or_install(workshop)?;
    compile(workshop, &toolchain)?;
    place_all(workshop, &toolchain, &GUESTS, &guest_folder(workshop))
}

/// Returns the folder of the built test guests; the harness of the tests looks there.
pub(crate) fn guest_folder(workshop: &XtaskContext) -> PathBuf {
    workshop.cache.join("test-guests")
}

/// Always compiles all plugins with one cargo command: another selection of packages has other features, and would
/// build serde again.
fn compile(workshop: &XtaskContext, toolchain: &GuestToolchain) -> Result<(), StepFailure> {
    let mut cargo = toolchain.cargo(workshop);
    cargo.args(["build", "--profile", "guest", "--locked"]);
    for (package, _) in ADAPTERS.iter().chain(&GUESTS) {
        cargo.args(["--package", package]);
    }
    workshop
        .steps
        .command(&format!("plugins ({})", toolchain.name()), &mut cargo)
}

fn place_all(
    workshop: &XtaskContext,
    toolchain: &GuestToolchain,
    crates: &[(&str, &str)],
    folder: &Path,
) -> Result<(), StepFailure> {
    for (package, name) in crates {
        place(
            &toolchain.built(workshop, package),
            &folder.join(format!("{name}.wasm")),
        )?;
    }
    Ok(())
}

/// Copies a built component into place at once: a gateway that watches the folder never sees half a file. An identical
/// one is not replaced, so that it is not loaded again.
pub(crate) fn place(built: &Path, target: &Path) -> Result<(), StepFailure> {
    let bytes =
        fs::read(built).map_err(|error| format!("cannot read {}: {error}", built.display()))?;
    if fs::read(target).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    let folder = target.parent().expect("a target lies in a folder");
    let temporary = target.with_extension("wasm.tmp");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&temporary, &bytes))
        .and_then(|()| fs::rename(&temporary, target))
        .map_err(|error| format!("cannot write {}: {error}", target.display()))?;
    println!("         {} ({} KB)", target.display(), bytes.len() / 1024);
    Ok(())
}
