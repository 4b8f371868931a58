//! Finds or installs what compiles Rust to a WebAssembly component on this machine.
//!
//! The linker is `wasm-component-ld`, which every Rust toolchain carries: it makes a finished component of a cdylib.
//! What a machine may lack is the standard library for the target: rustup fetches it, and where rustup is not there or
//! has no network, Debian's `rustc-web` with its sources builds it (half a minute, once).

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    debian::{self, succeeds},
    step::StepFailure,
    workshop::XtaskContext,
};

const TARGET: &str = "wasm32-unknown-unknown";
/// The time that rustup has to download 20 MB: a network that lets nothing through must not hang the build.
const RUSTUP_PATIENCE: Duration = Duration::from_secs(120);
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/std/Cargo.toml";

#[derive(Clone, Debug)]
pub(crate) struct GuestToolchain {
    route: ToolchainRoute,
    linker: PathBuf,
    wasm_ld: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolchainRoute {
    /// The running toolchain has the target's standard library.
    Target,
    /// Debian's compiler builds the standard library from source.
    Debian,
}

impl GuestToolchain {
    /// Tries what costs least first. `WEIR_WASM=target` or `=debian` insists on one route.
    pub(crate) fn find_or_install(workshop: &XtaskContext) -> Result<Self, StepFailure> {
        let wanted = env::var("WEIR_WASM").unwrap_or_default();
        let route = match wanted.as_str() {
            "target" if target_installed() || add_target(workshop) => ToolchainRoute::Target,
            "target" => {
                return Err(format!(
                    "the target {TARGET} is neither installed nor can rustup add it"
                )
                .into());
            }
            "debian" => debian_route(workshop)?,
            "" if target_installed() => ToolchainRoute::Target,
            "" if debian_present() => ToolchainRoute::Debian,
            "" if add_target(workshop) => ToolchainRoute::Target,
            "" => debian_route(workshop)?,
            other => {
                return Err(
                    format!("WEIR_WASM is `{other}`; it may be `target` or `debian`").into(),
                );
            }
        };
        let tools = tools()?;
        let (linker, wasm_ld) = (
            tools.join("wasm-component-ld"),
            tools.join("gcc-ld/wasm-ld"),
        );
        for tool in [&linker, &wasm_ld] {
            if !tool.exists() {
                return Err(format!(
                    "{} is missing: plugins need the tools of a rustup toolchain",
                    tool.display()
                )
                .into());
            }
        }
        Ok(Self {
            route,
            linker,
            wasm_ld,
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.route {
            ToolchainRoute::Target => "Rust's own wasm target",
            ToolchainRoute::Debian => "Debian's Rust, standard library from source",
        }
    }

    /// Returns a cargo for the target. Its environment is set on this child only; a caller's own flags for the host would be
    /// wrong for the guest.
    pub(crate) fn cargo(&self, workshop: &XtaskContext) -> Command {
        let mut cargo = match self.route {
            ToolchainRoute::Target => {
                workshop.command(env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
            }
            ToolchainRoute::Debian => {
                let mut cargo = workshop.command(DEBIAN_CARGO);
                cargo
                    .env("RUSTC", DEBIAN_RUSTC)
                    .env("RUSTC_BOOTSTRAP", "1")
                    .arg("-Zbuild-std=std,panic_abort");
                cargo
                    .env_remove("RUSTUP_TOOLCHAIN")
                    .env_remove("CARGO")
                    .env_remove("RUSTC_WRAPPER");
                cargo
            }
        };
        for flags in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
        ] {
            cargo.env_remove(flags);
        }
        // These are the template's: a small stack, and memory for a usual call from the start.
        let memory = "-Clink-arg=-zstack-size=131072 -Clink-arg=--initial-memory=1048576";
        let flags = format!(
            "-Ctarget-feature=+simd128 -Clink-arg=--wasm-ld-path={} {memory}",
            self.wasm_ld.display()
        );
        cargo
            .env("CARGO_TARGET_DIR", target_folder(workshop))
            .env("CARGO_BUILD_TARGET", TARGET)
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &self.linker)
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags);
        cargo
    }

    /// Returns the component that [`Self::cargo`] built of a package.
    pub(crate) fn built(&self, workshop: &XtaskContext, package: &str) -> PathBuf {
        let file = format!("{}.wasm", package.replace('-', "_"));
        target_folder(workshop)
            .join(TARGET)
            .join("guest")
            .join(file)
    }

    /// Links C objects to a component.
    pub(crate) fn linker(&self, workshop: &XtaskContext) -> Command {
        let mut linker = workshop.command(&self.linker);
        linker.arg("--wasm-ld-path").arg(&self.wasm_ld);
        linker
    }
}

fn target_folder(workshop: &XtaskContext) -> PathBuf {
    workshop.cache.join("guests")
}

/// Returns `true` if the running compiler has the target's standard library, from whatever source.
fn target_installed() -> bool {
    sysroot().is_ok_and(|sysroot| {
        sysroot
            .join("lib/rustlib")
            .join(TARGET)
            .join("lib")
            .is_dir()
    })
}

/// Asks rustup, quietly: a machine without it, or without a network, has the other route.
fn add_target(workshop: &XtaskContext) -> bool {
    if !succeeds(Command::new("rustup").arg("--version")) {
        return false;
    }
    let added = workshop
        .steps
        .task(&format!("rustup target add {TARGET}"), || {
            let mut rustup = workshop.command("rustup");
            rustup
                .args(["target", "add", TARGET])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut child = rustup
                .spawn()
                .map_err(|error| format!("cannot run rustup: {error}"))?;
            let start = Instant::now();
            while start.elapsed() < RUSTUP_PATIENCE {
                match child.try_wait() {
                    Ok(Some(status)) => return Ok(status.success()),
                    Ok(None) => thread::sleep(Duration::from_millis(50)),
                    Err(_) => break,
                }
            }
            let _ = child.kill();
            let _ = child.wait();
            Ok(false)
        });
    added.unwrap_or(false) && target_installed()
}

fn debian_route(workshop: &XtaskContext) -> Result<ToolchainRoute, StepFailure> {
    println!("         the wasm target comes from Debian's rustc-web, cargo-web and rust-web-src");
    debian::ensure(
        workshop,
        &["rustc-web", "cargo-web", "rust-web-src"],
        debian_present,
    )?;
    Ok(ToolchainRoute::Debian)
}

fn debian_present() -> bool {
    [DEBIAN_RUSTC, DEBIAN_CARGO, DEBIAN_SOURCES]
        .iter()
        .all(|file| Path::new(file).exists())
}

/// Returns the folder of `wasm-component-ld` and `gcc-ld/wasm-ld`.
fn tools() -> Result<PathBuf, StepFailure> {
    let version = output(rustc().arg("-vV"))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("rustc does not name its host")?;
    Ok(sysroot()?.join("lib/rustlib").join(host).join("bin"))
}

fn sysroot() -> Result<PathBuf, StepFailure> {
    Ok(PathBuf::from(
        output(rustc().args(["--print", "sysroot"]))?.trim(),
    ))
}

fn rustc() -> Command {
    Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()))
}

fn output(command: &mut Command) -> Result<String, StepFailure> {
    let output = command
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    String::from_utf8(output.stdout).map_err(|_| "rustc answers no text".into())
}
