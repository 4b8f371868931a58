//! `cargo xtask fuzz`: libFuzzer over what reads bytes from outside. The targets are in `fuzz/`.
//!
//! cargo-fuzz asks for a nightly compiler for the flags that count which code an input reaches. The stable compiler has them
//! too, behind `RUSTC_BOOTSTRAP`: nothing else from nightly is used, so that a finding is one in the code that ships.

use std::{fs, path::Path, process::Command};

use crate::{
    debian::{self, succeeds},
    step::StepFailure,
    workshop::XtaskContext,
};

/// Name, and whether the gateway has to be built for it.
const TARGETS: [(&str, bool); 10] = [
    ("contract", false),
    ("validate", false),
    ("diff", false),
    ("values", false),
    ("audit", false),
    ("lock", false),
    ("envelope", true),
    ("meta", true),
    ("headers", true),
    ("cursor", true),
];
const CARGO_FUZZ: &str = "0.13.2";
/// Bytes of an input: faults that longer ones find are found by shorter ones too.
const LENGTH_MAX: usize = 8192;

pub(crate) fn run(workshop: &XtaskContext, words: &[&str]) -> Result<(), StepFailure> {
    let (name, minutes) = match words {
        [] => (None, 1),
        ["--minutes", minutes] => (None, number(minutes)?),
        [name] => (Some(*name), 1),
        [name, "--minutes", minutes] => (Some(*name), number(minutes)?),
        _ => return Err("usage: cargo xtask fuzz [TARGET] [--minutes N]".into()),
    };
    let wanted: Vec<_> = TARGETS
        .iter()
        .filter(|(target, _)| name.is_none_or(|name| name == *target))
        .collect();
    if wanted.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
        return Err(format!("there is no such target; there are {}", names.join(", ")).into());
    }
    let program = installed(workshop)?;
    for (target, needs_gateway) in wanted {
        let found = workshop.cache.join("fuzz/found").join(target);
        fs::create_dir_all(&found)
            .map_err(|error| format!("cannot create {}: {error}", found.display()))?;
        let mut fuzz = workshop.command(&program);
        // No sanitizer is used: the fuzzed code is safe Rust, where it would find nothing and cost half of the inputs.
        fuzz.args(["fuzz", "run", "--fuzz-dir", "fuzz", "--sanitizer", "none"]);
        fuzz.arg("--target-dir")
            .arg(workshop.cache.join("fuzz/target"));
        if *needs_gateway {
            fuzz.args(["--features", "gateway"]);
        }
        // New inputs are kept in the cache; the small corpus of the repository is only read.
        fuzz.arg(target)
            .arg(&found)
            .arg(Path::new("fuzz/corpus").join(target))
            .arg("--");
        fuzz.args([
            &format!("-max_total_time={}", minutes * 60),
            &format!("-max_len={LENGTH_MAX}"),
        ]);
        fuzz.args(["-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1"]);
        workshop
            .steps
            .streamed(&format!("fuzz {target}"), fuzz.env("RUSTC_BOOTSTRAP", "1"))?;
    }
    workshop.steps.summary();
    Ok(())
}

fn number(minutes: &str) -> Result<u64, StepFailure> {
    minutes
        .parse()
        .map_err(|_| "--minutes requires a whole number".into())
}

/// Installs cargo-fuzz in the cache.
fn installed(workshop: &XtaskContext) -> Result<std::path::PathBuf, StepFailure> {
    debian::ensure(workshop, &["g++"], || {
        succeeds(Command::new("c++").arg("--version"))
    })?;
    let root = workshop.cache.join("fuzz/tools");
    let program = root.join("bin/cargo-fuzz");
    let version = Command::new(&program).args(["fuzz", "--version"]).output();
    if !version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(CARGO_FUZZ)) {
        let mut install = workshop.cargo(&[
            "install",
            "cargo-fuzz",
            "--locked",
            "--version",
            CARGO_FUZZ,
            "--root",
        ]);
        workshop
            .steps
            .command("install cargo-fuzz", install.arg(&root))?;
    }
    Ok(program)
}
