//! The features of shared dependencies: every native crate of ours builds its tests together with `weir-features`, so
//! that a dependency has the same features in each selection and is built once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    process::Command,
};

use serde_json::Value;

use super::{check, repository};

const MANIFEST: &str = "xtask/features/Cargo.toml";
const BLESS: &str = "`WEIR_BLESS=features` with this test writes xtask/features/Cargo.toml anew";
/// The beginning of the generated part of the manifest.
const GENERATED: &str = "\n# Generated: `WEIR_BLESS=features` with the test `a_selection_builds_what_the_workspace_builds`.\n";
/// The edges that tests add.
const DEV: &str = ",dev";
/// What `cargo xtask demo` builds.
const DEMO: [&str; 3] = ["weir-binary", "weir-samples", "weir-features"];
/// Crates that are compiled for wasm or belong to no build of the program.
const APART: [&str; 5] = [
    "plugin-sdk",
    "plugins/",
    "tests/guests/",
    "bench/functions/",
    "xtask",
];

/// The features with which each dependency is built. One built twice, for the target and for the compiler, has two sets.
type Features = BTreeMap<Package, BTreeSet<BTreeSet<String>>>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
}

/// The crates and features that one selection builds.
struct Build {
    /// What runs.
    target: Features,
    /// The above, and what the compiler runs: macros, build scripts and their dependencies.
    all: Features,
}

impl Build {
    /// Reads a selection with its tests (`dev`) or without.
    fn read(selection: &[&str], dev: &str) -> Self {
        Self {
            target: features(selection, &format!("normal,no-proc-macro{dev}")),
            all: features(selection, &format!("normal,build{dev}")),
        }
    }

    fn workspace() -> Self {
        // What a crate of macros uses is built for the compiler.
        let macros = ["--workspace", "--exclude", "weir-plugin-sdk-macros"];
        Self {
            target: Self::read(&macros, DEV).target,
            all: Self::read(&["--workspace"], DEV).all,
        }
    }

    /// Returns the dependencies that are built with features that the whole workspace does not give them.
    fn differing(&self, whole: &Self) -> BTreeSet<Package> {
        [(&self.target, &whole.target), (&self.all, &whole.all)]
            .into_iter()
            .flat_map(|(here, whole)| {
                here.iter().filter(|(package, built)| {
                    whole
                        .get(package)
                        .is_some_and(|wanted| !built.is_subset(wanted))
                })
            })
            .map(|(package, _)| package.clone())
            .collect()
    }
}

/// Checks each selection, and writes the manifest anew when asked to.
pub(super) fn compare_selections() {
    let members = native_members();
    assert!(members.len() >= 12, "the native crates are found");
    if std::env::var_os("WEIR_BLESS").is_some_and(|what| what == "features") {
        write_manifest(&members);
    }
    let whole = Build::workspace();
    let demo = DEMO.map(|member| ["--package", member]);
    let demo = Build::read(demo.as_flattened(), "");
    let mut selections = vec![("a demo".to_owned(), demo)];
    for member in &members {
        let build = Build::read(&["--package", member], DEV);
        selections.push((format!("-p {member}"), build));
    }
    let mut problems = Vec::new();
    for (selection, build) in selections {
        for Package { name, version } in build.differing(&whole) {
            problems.push(format!(
                "{selection} builds {name} {version} with other features than --workspace; {BLESS}"
            ));
        }
    }
    check(problems);
}

/// Returns the crates of ours whose tests run natively; each must name `weir-features`.
fn native_members() -> Vec<String> {
    let output = run_cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output).expect("cargo writes JSON");
    let packages = metadata["packages"]
        .as_array()
        .expect("cargo lists packages");
    let root = format!("{}/", repository().display());
    packages
        .iter()
        .filter(|package| {
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            let place = manifest.strip_prefix(&root).unwrap_or(manifest);
            !APART.iter().any(|apart| place.starts_with(apart))
        })
        .map(|package| package["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Writes the dependencies whose features differ between selections. A feature that is turned on can turn on others, so
/// that this is repeated until no selection differs.
fn write_manifest(members: &[String]) {
    let path = repository().join(MANIFEST);
    let text = fs::read_to_string(&path).expect("the manifest is read");
    let head = text.split(GENERATED).next().unwrap_or_default();
    let write = |generated: &str| {
        fs::write(&path, format!("{head}{generated}")).expect("the manifest is written");
    };
    // A feature that only the manifest still turns on goes.
    write("");
    let whole = Build::workspace();
    let mut chosen = BTreeSet::new();
    for _ in 0..8 {
        write(&format!("{GENERATED}{}", dependencies(&chosen, &whole)));
        let differing: BTreeSet<Package> = members
            .iter()
            .flat_map(|member| Build::read(&["--package", member], DEV).differing(&whole))
            .collect();
        if differing.is_subset(&chosen) {
            return;
        }
        chosen.extend(differing);
    }
}

/// Returns the tables of dependencies with the features of the whole workspace.
fn dependencies(chosen: &BTreeSet<Package>, whole: &Build) -> String {
    let none = BTreeSet::new();
    let mut lines = [String::new(), String::new()];
    for package in chosen {
        let run = whole.target.get(package).unwrap_or(&none);
        for built in &whole.all[package] {
            let public = built.iter().filter(|name| !name.starts_with("__"));
            let features: Vec<String> = public.map(|name| format!("{name:?}")).collect();
            let version = compatible(&package.version);
            // Two versions of a crate need two names.
            let line = format!(
                "{}-{} = {{ package = \"{}\", version = \"{}\", default-features = false, features = [{}] }}",
                package.name,
                version.replace('.', "-"),
                package.name,
                version,
                features.join(", ")
            );
            // One set of features serves the target and the compiler alike. What has no build script builds nothing of
            // its second table.
            let alone = whole.all[package].len() == 1;
            if alone || run.contains(built) {
                writeln!(lines[0], "{line}").expect("a string takes everything");
            }
            if alone || !run.contains(built) {
                writeln!(lines[1], "{line}").expect("a string takes everything");
            }
        }
    }
    let [run, compile] = lines;
    format!("[dependencies]\n{run}\n[build-dependencies]\n{compile}")
}

/// Returns the numbers of a version that compatible ones share.
fn compatible(version: &str) -> String {
    let numbers: Vec<&str> = version.split('.').collect();
    let count = numbers
        .iter()
        .position(|number| *number != "0")
        .map_or(numbers.len(), |first| first + 1);
    numbers[..count].join(".")
}

/// Reads from `cargo tree` which dependencies a selection builds, and with which features.
fn features(selection: &[&str], edges: &str) -> Features {
    let mut arguments = vec![
        "tree",
        "--offline",
        "--edges",
        edges,
        "--prefix",
        "none",
        "--format",
        "{p}|{f}",
    ];
    arguments.extend(selection);
    let mut found = Features::new();
    for line in run_cargo(&arguments).lines() {
        let line = line.trim_end_matches(" (*)");
        let Some((package, features)) = line.split_once('|') else {
            continue;
        };
        let mut words = package.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            continue;
        };
        // A path in brackets: a crate of ours.
        if words.any(|word| word.starts_with("(/")) {
            continue;
        }
        let package = Package {
            name: name.to_owned(),
            version: version.trim_start_matches('v').to_owned(),
        };
        let features = features
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        found.entry(package).or_default().insert(features);
    }
    found
}

fn run_cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(repository())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}
