//! Builds the programs for releases and benchmarks: the profile `dist`, laid out for their work under load.
//!
//! The programs are built twice. The first build counts how often each branch is taken, and a short run of the benchmark
//! makes it count; the second is optimized by those counts. They are kept in the cache for as long as the compiler,
//! `Cargo.lock` and the workspace's `Cargo.toml` stay the same: code that has changed since is merely optimized without them.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    clients,
    debian::{self, succeeds},
    plugins,
    step::{StepFailure, capture_output},
    workshop::XtaskContext,
};

/// The benchmark rows that train the programs: those of our own servers. A row that is left out would leave its code without
/// counts.
const TRAINING: [&str; 4] = ["--quick", "--strict", "--only", TRAINING_ROWS];
const TRAINING_ROWS: &str = "floor,weir-noop,weir-wasm,weir-sqlite,weir-postgresql,weir-mariadb,weir-sheet,weir-function,weir-upstream,weir-traced,rmcp";

/// Differences of the counting build from the profile. Branches are counted before crates are optimized together, which for
/// programs that count takes the greater part of an hour and changes no count. The profile itself has to stay the same, since
/// it is part of the names of functions.
const APART: [&str; 2] = ["-Clinker-plugin-lto=no", "-Clto=off"];

/// The wanted programs of the workspace, as cargo's options. Each is linked for minutes.
pub(crate) const ALL: &[&str] = &["--bins"];
pub(crate) const GATEWAY: &[&str] = &["--bin", "weir"];

/// Builds the wanted programs and says where they are. Adapters have to be built.
pub(crate) fn build(workshop: &XtaskContext, wanted: &[&str]) -> Result<PathBuf, StepFailure> {
    let machine = BuildMachine::look()?;
    let counts = counts(workshop, &machine)?;
    let flag = format!("-Cprofile-use={}", counts.display());
    optimized(
        workshop,
        ("optimized build", wanted),
        &machine,
        &workshop.target,
        &[&flag],
    )
}

/// The machine that is built on and for.
pub(crate) struct BuildMachine {
    /// `rustc -vV`.
    compiler: String,
    pub(crate) target: String,
    sysroot: PathBuf,
}

impl BuildMachine {
    pub(crate) fn look() -> Result<Self, StepFailure> {
        let compiler = capture_output(Command::new("rustc").arg("-vV"))?;
        let host = compiler
            .lines()
            .find_map(|line| line.strip_prefix("host: "));
        let target = host.ok_or("`rustc -vV` names no host")?.to_owned();
        let sysroot = capture_output(Command::new("rustc").args(["--print", "sysroot"]))?
            .trim()
            .into();
        Ok(Self {
            compiler,
            target,
            sysroot,
        })
    }
}

/// Returns the counts of an earlier build, or makes them now. Whatever changes how functions are named or split makes
/// them useless.
fn counts(workshop: &XtaskContext, machine: &BuildMachine) -> Result<PathBuf, StepFailure> {
    let mut made_for = DefaultHasher::new();
    TRAINING_ROWS.hash(&mut made_for);
    machine.compiler.hash(&mut made_for);
    for name in ["Cargo.lock", "Cargo.toml"] {
        let text = fs::read(workshop.repository.join(name))
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        text.hash(&mut made_for);
    }
    let folder = workshop.cache.join("counts");
    let kept = folder.join(format!("{:016x}.profdata", made_for.finish()));
    if !kept.is_file() {
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        count(workshop, machine, &kept)?;
    }
    Ok(kept)
}

fn count(workshop: &XtaskContext, machine: &BuildMachine, to: &Path) -> Result<(), StepFailure> {
    debian::ensure(workshop, &["llvm-19"], || merger(machine).is_some())?;
    debian::ensure(workshop, &["util-linux"], || {
        succeeds(Command::new("setpriv").arg("--version"))
    })?;
    debian::ensure(workshop, &["postgresql"], clients::postgresql_present)?;
    clients::ensure_mariadb(workshop)?;
    plugins::rust_guests(workshop)?;
    let target = workshop.cache.join("counting");
    let raw = target.join("raw");
    let counted = format!("-Cprofile-generate={}", raw.display());
    let flags = [counted.as_str(), APART[0], APART[1]];
    let programs = optimized(workshop, ("counting build", ALL), machine, &target, &flags)?;
    let _ = fs::remove_dir_all(&raw);
    let mut training = workshop.command(programs.join("weir-bench"));
    // There is one file for each program, to which every process of it adds.
    workshop.steps.command(
        "counting",
        training
            .args(TRAINING)
            .env("LLVM_PROFILE_FILE", raw.join("%m.profraw")),
    )?;
    let merger = merger(machine).ok_or("llvm-profdata has gone")?;
    // The file appears whole, or not at all.
    let part = to.with_extension("part");
    let mut merge = workshop.command(merger);
    workshop.steps.command(
        "counts",
        merge
            .args(["merge", "--sparse", "--output"])
            .arg(&part)
            .arg(&raw),
    )?;
    fs::rename(&part, to).map_err(|error| format!("cannot write {}: {error}", to.display()))?;
    let _ = fs::remove_dir_all(&target);
    Ok(())
}

/// Builds programs of the whole workspace: a narrower selection of packages has other features, and counts of one would not
/// fit the other. A target of its own keeps the flag from build scripts.
fn optimized(
    workshop: &XtaskContext,
    (step, wanted): (&str, &[&str]),
    machine: &BuildMachine,
    folder: &Path,
    flags: &[&str],
) -> Result<PathBuf, StepFailure> {
    let build = [
        "build",
        "--profile",
        "dist",
        "--workspace",
        "--locked",
        "--target",
        &machine.target,
    ];
    let mut cargo = workshop.cargo(&build);
    cargo.args(wanted);
    cargo
        .env("CARGO_TARGET_DIR", folder)
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    workshop.steps.command(step, &mut cargo)?;
    Ok(folder.join(&machine.target).join("dist"))
}

/// Returns LLVM's tool: the toolchain's own, if that part of it is installed, or Debian's. Older ones cannot read what
/// this compiler's programs write.
fn merger(machine: &BuildMachine) -> Option<PathBuf> {
    let own = machine
        .sysroot
        .join("lib/rustlib")
        .join(&machine.target)
        .join("bin/llvm-profdata");
    let debian = (19..=22)
        .rev()
        .map(|version| PathBuf::from(format!("/usr/lib/llvm-{version}/bin/llvm-profdata")));
    [own].into_iter().chain(debian).find(|tool| tool.is_file())
}
