//! `cargo xtask bench`: builds as for a release, installs what Weir is compared with, measures, and writes the results.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use crate::{
    clients,
    debian::{self, succeeds},
    dist, plugins,
    step::StepFailure,
    workshop::XtaskContext,
};

/// The folder in which a whole run leaves its page and its figures.
const PAGES: &str = "docs/benchmarks";
/// The accepted counts of each request.
const BASELINE: &str = "bench/instructions.json";
const HYPER_MCP: &str = "0.8.3";
/// The row of the function behind hyper-mcp.
const EXTISM: &str = "hyper-mcp-function-stdio";

/// Runs the benchmark. `words` are options of `weir-bench`; its `--help` lists them.
pub(crate) fn run(workshop: &XtaskContext, words: &[&str]) -> Result<(), StepFailure> {
    if words.iter().any(|word| ["--help", "-h"].contains(word)) {
        return help(workshop);
    }
    let result = prepare(workshop, &BenchSelection::read(words))
        .and_then(|programs| measure(workshop, &programs, words));
    workshop.steps.summary();
    result
}

/// Holds the instructions of a request against their baseline, with what `build` has built.
pub(crate) fn instructions(workshop: &XtaskContext) -> Result<(), StepFailure> {
    debian::ensure(workshop, &["valgrind"], || {
        succeeds(Command::new("valgrind").arg("--version"))
    })?;
    debian::ensure(workshop, &["util-linux"], || {
        succeeds(Command::new("setpriv").arg("--version"))
    })?;
    let mut count = workshop.command(workshop.binary("weir-bench"));
    count
        .arg("--instructions")
        .arg(workshop.repository.join(BASELINE));
    workshop
        .steps
        .streamed("instructions of a request", &mut count)
}

/// Prints the options of the program that measures, built with the features that every build here has. The gateway in it holds
/// the adapters, so they are built first.
fn help(workshop: &XtaskContext) -> Result<(), StepFailure> {
    plugins::build(workshop)?;
    // `cargo run` selects one package, which changes the features of shared dependencies.
    let program = [
        "build",
        "--quiet",
        "--locked",
        "--package",
        "weir-bench",
        "--package",
        "weir-features",
        "--bin",
        "weir-bench",
    ];
    workshop
        .steps
        .command("program that measures", &mut workshop.cargo(&program))?;
    let mut bench = workshop.command(workshop.binary("weir-bench"));
    workshop
        .steps
        .streamed("options of the benchmark", bench.arg("--help"))
}

/// Returns where the programs are. Peers are fetched while cargo builds.
fn prepare(workshop: &XtaskContext, wanted: &BenchSelection) -> Result<PathBuf, StepFailure> {
    thread::scope(|scope| {
        let peers = scope.spawn(|| install(workshop, wanted));
        let built = build(workshop, wanted);
        peers
            .join()
            .unwrap_or_else(|_| Err("installing the peers panicked".into()))?;
        built
    })
}

fn build(workshop: &XtaskContext, wanted: &BenchSelection) -> Result<PathBuf, StepFailure> {
    plugins::build(workshop)?;
    plugins::rust_guests(workshop)?;
    let programs = dist::build(workshop, dist::ALL)?;
    if wanted.any(&[EXTISM]) {
        left_out(extism(workshop));
    }
    Ok(programs)
}

/// Installs what the wanted rows need. A peer that cannot be installed is left out by `weir-bench`, with the reason.
fn install(workshop: &XtaskContext, wanted: &BenchSelection) -> Result<(), StepFailure> {
    debian::ensure(workshop, &["util-linux"], || {
        succeeds(Command::new("setpriv").arg("--version"))
    })?;
    if wanted.any(&["weir-postgresql", "toolbox-postgresql", "cluster"]) {
        debian::ensure(workshop, &["postgresql"], clients::postgresql_present)?;
    }
    if wanted.any(&["weir-mariadb", "toolbox-mariadb"]) {
        clients::ensure_mariadb(workshop)?;
    }
    let servers = workshop.repository.join("bench/servers");
    let python = |name: &str| {
        let requirements = servers.join(format!("{name}.txt"));
        clients::python_from(workshop, &requirements, &format!("bench-{name}")).map(drop)
    };
    if wanted.any(&[
        "typescript-sdk",
        "toolbox-sqlite",
        "toolbox-postgresql",
        "toolbox-mariadb",
        "sheet",
    ]) {
        left_out(node(workshop, &servers.join("node")));
    }
    if wanted.any(&["python-sdk", "fastmcp", "isolation"]) {
        left_out(python("python"));
    }
    if wanted.any(&["mcp-proxy"]) {
        left_out(python("mcp-proxy"));
    }
    if wanted.any(&["sheet"]) {
        left_out(python("large"));
    }
    if wanted.any(&["console"]) {
        let source = workshop.repository.join("console");
        debian::ensure(workshop, &["chromium"], clients::chromium_present)?;
        clients::npm(workshop, &source, "console")?;
    }
    if wanted.any(&["contextforge"]) {
        left_out(python("contextforge"));
    }
    if wanted.any(&[EXTISM]) {
        left_out(hyper_mcp(workshop));
    }
    Ok(())
}

fn left_out(installed: Result<(), StepFailure>) {
    if let Err(failure) = installed {
        println!("         left out: {failure}");
    }
}

fn node(workshop: &XtaskContext, source: &Path) -> Result<(), StepFailure> {
    let folder = clients::npm(workshop, source, "bench-node")?;
    // Node looks for packages next to the script.
    let script = source.join("typescript.mjs");
    let copied = fs::copy(&script, folder.join("typescript.mjs")).map(drop);
    copied.map_err(|error| format!("cannot copy {}: {error}", script.display()).into())
}

/// Builds the function as a plugin of Extism, which is a bare module and no component: cargo's own linker makes it.
fn extism(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let (target, built) = (
        workshop.cache.join("extism"),
        "wasm32-unknown-unknown/release/weir_bench_extism.wasm",
    );
    let mut cargo = workshop.cargo(&[
        "build",
        "--release",
        "--locked",
        "--target",
        "wasm32-unknown-unknown",
    ]);
    cargo
        .current_dir(workshop.repository.join("bench/functions/extism"))
        .env_remove("RUSTFLAGS");
    workshop.steps.command(
        "function for Extism",
        cargo.env("CARGO_TARGET_DIR", &target),
    )?;
    plugins::place(
        &target.join(built),
        &plugins::guest_folder(workshop).join("lookup-extism.wasm"),
    )
}

fn hyper_mcp(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let root = workshop.cache.join("clients/hyper-mcp");
    let program = root.join("bin/hyper-mcp");
    let version = Command::new(&program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(HYPER_MCP)) {
        return Ok(());
    }
    let mut install = workshop.cargo(&[
        "install",
        "hyper-mcp",
        "--version",
        HYPER_MCP,
        "--locked",
        "--quiet",
    ]);
    install
        .arg("--root")
        .arg(&root)
        .env("CARGO_TARGET_DIR", workshop.cache.join("hyper-mcp"));
    workshop.steps.command("hyper-mcp", &mut install)
}

fn measure(workshop: &XtaskContext, programs: &Path, words: &[&str]) -> Result<(), StepFailure> {
    let mut bench = workshop.command(programs.join("weir-bench"));
    bench.args(words);
    if !words
        .iter()
        .any(|word| word.starts_with("--only") || *word == "--quick" || word.starts_with("--write"))
    {
        bench.args(["--write", PAGES]);
    }
    workshop.steps.streamed("measurements", &mut bench)
}

/// The requested rows: all rows without `--only`.
struct BenchSelection(Vec<String>);

impl BenchSelection {
    fn read(words: &[&str]) -> Self {
        let after = words
            .iter()
            .skip_while(|word| **word != "--only")
            .nth(1)
            .copied();
        let joined = words.iter().find_map(|word| word.strip_prefix("--only="));
        let list = after.or(joined).unwrap_or_default();
        Self(
            list.split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Returns `true` if one of the rows is wanted. A name means all rows that begin with it, as in `weir-bench`.
    fn any(&self, rows: &[&str]) -> bool {
        self.0.is_empty()
            || rows.iter().any(|row| {
                self.0
                    .iter()
                    .any(|name| row.starts_with(name.as_str()) || name.starts_with(row))
            })
    }
}
