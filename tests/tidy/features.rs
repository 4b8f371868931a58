//! The features of shared dependencies: every native crate of ours builds its tests beside `weir-features`, so that a
//! dependency has the same features in each selection and is built once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    process::Command,
};

use serde_json::Value;

use super::{check, repository};

const MANIFEST: &str = "xtask/features/Cargo.toml";
const BLESS: &str = "`WEIR_BLESS=1` with this test writes xtask/features/Cargo.toml anew";
/// Where the generated part of the manifest begins.
const GENERATED: &str =
    "\n# Generated: `WEIR_BLESS=1` with the test `a_selection_builds_what_the_workspace_builds`.\n";
const ALL_EDGES: &str = "normal,build,dev";
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

/// Checks each selection, and writes the manifest anew when asked to.
pub(super) fn compare_selections() {
    let members = native_members();
    assert!(members.len() >= 12, "the native crates are found");
    if std::env::var_os("WEIR_BLESS").is_some() {
        write_manifest(&members);
    }
    let whole = features(&["--workspace"], ALL_EDGES);
    let demo = DEMO.map(|member| ["--package", member]);
    let demo = missing(demo.as_flattened(), "normal,build", &whole);
    let problem = |selection: &str, package: &Package| {
        let Package { name, version } = package;
        format!("{selection} builds {name} {version} with other features than --workspace; {BLESS}")
    };
    let mut problems: Vec<String> = demo
        .keys()
        .map(|package| problem("a demo", package))
        .collect();
    for member in &members {
        let other = missing(&["--package", member], ALL_EDGES, &whole);
        problems.extend(
            other
                .keys()
                .map(|package| problem(&format!("-p {member}"), package)),
        );
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

/// Returns the dependencies that a selection builds with features that the whole workspace does not give.
fn missing(selection: &[&str], edges: &str, whole: &Features) -> Features {
    features(selection, edges)
        .into_iter()
        .filter_map(|(package, built)| {
            let other: BTreeSet<_> = built.difference(whole.get(&package)?).cloned().collect();
            (!other.is_empty()).then_some((package, other))
        })
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
    let whole = features(&["--workspace"], ALL_EDGES);
    // What the crates of macros use is built for the compiler.
    let selection = ["--workspace", "--exclude", "weir-plugin-sdk-macros"];
    let target = features(&selection, "normal,dev,no-proc-macro");
    let mut chosen = BTreeSet::new();
    for _ in 0..8 {
        write(&format!(
            "{GENERATED}{}",
            dependencies(&chosen, &whole, &target)
        ));
        let differing: BTreeSet<Package> = members
            .iter()
            .flat_map(|member| missing(&["--package", member], ALL_EDGES, &whole).into_keys())
            .collect();
        if differing.is_subset(&chosen) {
            return;
        }
        chosen.extend(differing);
    }
}

/// Returns the tables of dependencies with the features of the whole workspace.
fn dependencies(chosen: &BTreeSet<Package>, whole: &Features, target: &Features) -> String {
    let none = BTreeSet::new();
    let mut lines = [String::new(), String::new()];
    for package in chosen {
        let run = target.get(package).unwrap_or(&none);
        for built in &whole[package] {
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
            let alone = whole[package].len() == 1;
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
