//! Checks the shape of the workspace: dependency directions, first lines, names, and what must never be written down.
//!
//! Reads source text and `cargo metadata` only, so it reports in seconds what a review would have to notice.

#[path = "tidy/commits.rs"]
mod commits;
#[path = "tidy/deny.rs"]
mod deny;
#[path = "tidy/features.rs"]
mod features;
#[path = "tidy/figures.rs"]
mod figures;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/pages.rs"]
mod pages;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Our crates, and which of our crates each may use.
const CRATES: &[(&str, &[&str])] = &[
    ("weir-text", &[]),
    ("weir-schema", &["weir-text"]),
    (
        "weir-contracts",
        &["weir-schema", "weir-statements", "weir-text"],
    ),
    ("weir-statements", &[]),
    ("weir-connections", &["weir-admission"]),
    ("weir-admission", &[]),
    ("weir-ledger", &[]),
    ("weir-files", &[]),
    ("weir-watch", &[]),
    ("weir-policy", &["weir-contracts"]),
    ("weir-audit", &["weir-files", "weir-text"]),
    ("weir-copies", &["weir-audit"]),
    (
        "weir-plugin-host",
        &[
            "weir-admission",
            "weir-connections",
            "weir-contracts",
            "weir-files",
            "weir-state",
            "weir-text",
            "weir-watch",
        ],
    ),
    ("weir-state", &["weir-files", "weir-watch"]),
    ("weir-protocol", &["weir-text"]),
    ("weir-oauth", &["weir-connections", "weir-text"]),
    (
        "weir-upstream",
        &[
            "weir-admission",
            "weir-connections",
            "weir-oauth",
            "weir-protocol",
            "weir-text",
        ],
    ),
    (
        "weir",
        &[
            "weir-admission",
            "weir-audit",
            "weir-connections",
            "weir-contracts",
            "weir-copies",
            "weir-files",
            "weir-ledger",
            "weir-oauth",
            "weir-plugin-host",
            "weir-policy",
            "weir-protocol",
            "weir-schema",
            "weir-state",
            "weir-text",
            "weir-upstream",
            "weir-watch",
        ],
    ),
    (
        "weir-cli",
        &[
            "weir",
            "weir-admission",
            "weir-audit",
            "weir-connections",
            "weir-contracts",
            "weir-copies",
            "weir-files",
            "weir-oauth",
            "weir-plugin-host",
            "weir-state",
            "weir-upstream",
        ],
    ),
    ("weir-binary", &["weir", "weir-cli", "weir-files"]),
    ("weir-plugin-sdk", &["weir-plugin-sdk-macros"]),
    ("weir-plugin-sdk-macros", &[]),
    ("weir-sheet", &["weir-plugin-sdk"]),
    ("weir-sql", &["weir-plugin-sdk", "weir-statements"]),
    ("weir-rest", &["weir-plugin-sdk"]),
    ("weir-guest-misbehaving", &["weir-plugin-sdk"]),
    ("weir-guest-probe", &[]),
    ("weir-guest-tiny", &["weir-plugin-sdk"]),
    ("weir-guest-ticket", &["weir-plugin-sdk"]),
    ("weir-bench-function", &["weir-plugin-sdk"]),
    ("weir-guest-conformance", &["weir-plugin-sdk"]),
    ("weir-guest-tools", &["weir-plugin-sdk"]),
    ("weir-tests", &[]),
    (
        "weir-bench",
        &[
            "weir",
            "weir-cli",
            "weir-connections",
            "weir-contracts",
            "weir-plugin-host",
            "weir-schema",
            "weir-state",
        ],
    ),
    ("weir-samples", &[]),
    ("weir-features", &[]),
    ("xtask", &[]),
];

/// Crates from outside that only the named crates of ours may depend on. Dev-dependencies do not count.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("wasmtime", &["weir-plugin-host"]),
    ("wasmtime-wasi", &["weir-plugin-host"]),
    ("libloading", &["weir-plugin-host"]),
    ("axum", &["weir", "weir-tests", "weir-bench"]),
    (
        "rusqlite",
        &[
            "weir-connections",
            "weir-tests",
            "weir-samples",
            "weir-bench",
        ],
    ),
    ("sqlx", &["weir-connections", "weir-ledger", "weir-state"]),
    ("redis", &["weir-ledger"]),
    ("postgres-protocol", &["weir-connections"]),
    (
        "reqwest",
        &["weir-connections", "weir-copies", "weir-cli", "weir-tests"],
    ),
    ("clap", &["weir-cli", "weir-bench"]),
    ("toml_edit", &["weir-cli"]),
    ("cedar-policy", &["weir-policy"]),
    ("jsonc-parser", &["weir-cli"]),
    ("hyper-rustls", &["weir-upstream"]),
    (
        "tokio",
        &[
            "weir-admission",
            "weir-connections",
            "weir-copies",
            "weir-ledger",
            "weir-plugin-host",
            "weir-state",
            "weir-upstream",
            "weir-watch",
            "weir",
            "weir-cli",
            "weir-tests",
            "weir-bench",
        ],
    ),
    ("wit-bindgen", &["weir-plugin-sdk", "weir-guest-probe"]),
    ("jsonschema", &["weir-schema", "weir-tests"]),
];

/// External paths that a place may not name: the place, then the paths. `layers.txt` lists which modules use which.
const FORBIDDEN: &[(&str, &[&str])] = &[
    // The call path does not depend on HTTP, JSON-RPC or WebAssembly.
    (
        "gateway/src/call",
        &["axum", "http", "hyper", "tower", "wasmtime"],
    ),
    ("gateway/src/catalogue", &["axum", "hyper", "wasmtime"]),
    // Transports move bytes: what a message means is for `methods`.
    (
        "gateway/src/transport",
        &["weir_plugin_host", "weir_connections"],
    ),
    (
        "gateway/src/methods",
        &["axum", "hyper", "weir_connections"],
    ),
    (
        "protocol/src",
        &["axum", "hyper", "tokio", "weir_connections"],
    ),
    ("gateway/src/snapshot", &["axum"]),
    (
        "gateway/plugin-host/src",
        &["axum", "rusqlite", "sqlx", "reqwest"],
    ),
    (
        "gateway/audit/src",
        &[
            "axum",
            "tokio",
            "weir_contracts",
            "weir_connections",
            "weir_plugin_host",
        ],
    ),
    (
        "gateway/upstream/src",
        &["axum", "wasmtime", "weir_plugin_host", "weir_contracts"],
    ),
    (
        "gateway/connections/src",
        &["axum", "wasmtime", "weir_plugin_host", "weir_contracts"],
    ),
    ("contracts/src", OUTSIDE_WORLD),
    ("contracts/schema/src", OUTSIDE_WORLD),
];

/// Paths that pure functions do not need.
const OUTSIDE_WORLD: &[&str] = &[
    "tokio",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::env",
];

/// The stages of a call: only `call.rs` calls them.
const STAGES: &[&str] = &["arguments", "limits", "lookup", "target"];

/// The places that may move a file: `weir-files` does it for all others. The others move files of users, with their owner, a
/// whole folder, or a scratch index that is lost in a crash.
const MOVING_PLACES: &[&str] = &[
    "gateway/files/src",
    "gateway/connections/src/files",
    "gateway/connections/src/index",
    "gateway/audit/src/trail.rs",
];

/// The places in which `unsafe` may be allowed: generated bindings, the loader of compiled plugins, calls of the system and the
/// allocator that no safe crate has.
const UNSAFE_PLACES: &[&str] = &[
    "plugin-sdk/",
    "gateway/admission/src/apart.rs",
    "gateway/plugin-host/src/",
    "gateway/connections/src/files/lease.rs",
    "gateway/src/memory.rs",
    "tests/guests/",
];

/// A name that says nothing about what is inside.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "helper", "helpers", "manager", "common", "misc", "service", "services",
];

#[test]
fn crates_depend_in_one_direction() {
    let allowed: BTreeMap<&str, &[&str]> = CRATES.iter().copied().collect();
    let mut problems = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().expect("a package has a name");
        let Some(ours) = allowed.get(name) else {
            problems.push(format!(
                "{name} is not in the table of tidy.rs: say what it may depend on"
            ));
            continue;
        };
        // Its dependencies are those of others, with their features and without a line of code.
        if name == "weir-features" {
            continue;
        }
        for dependency in normal_dependencies(&package) {
            if allowed.contains_key(dependency.as_str()) && !ours.contains(&dependency.as_str()) {
                problems.push(format!(
                    "{name} depends on {dependency}, against the direction of the house"
                ));
            }
            let reserved = OUTSIDE.iter().find(|(outside, _)| *outside == dependency);
            if let Some((_, users)) = reserved
                && !users.contains(&name)
            {
                problems.push(format!(
                    "{name} depends on {dependency}, which only {users:?} may"
                ));
            }
        }
    }
    check(problems);
}

/// Plugin authors build these: each further dependency becomes theirs too. `jiff` converts every time to UTC in the
/// one value table. `xtask` starts on a bare machine. The program only links the gateway with its adapters.
#[test]
fn the_sdk_xtask_and_the_program_stay_small() {
    let few: BTreeMap<&str, &[&str]> = BTreeMap::from([
        (
            "weir-plugin-sdk",
            &[
                "serde",
                "serde_json",
                "wit-bindgen",
                "dlmalloc",
                "jiff",
                "weir-plugin-sdk-macros",
            ] as &[&str],
        ),
        (
            "weir-plugin-sdk-macros",
            &["proc-macro2", "quote", "regex-syntax", "syn"],
        ),
        ("xtask", &[]),
        ("weir-binary", &["weir", "weir-cli", "weir-files"]),
    ]);
    let mut problems = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().expect("a package has a name");
        let Some(allowed) = few.get(name) else {
            continue;
        };
        for dependency in normal_dependencies(&package) {
            if !allowed.contains(&dependency.as_str()) {
                problems.push(format!(
                    "{name} depends on {dependency}; it may only use {allowed:?}"
                ));
            }
        }
    }
    check(problems);
}

/// `layers.txt` has a section for each crate; in each the modules stand from the lowest to the highest.
#[test]
fn modules_use_only_what_stands_below_them() {
    let mut problems = Vec::new();
    let mut sections = sections(include_str!("tidy/layers.txt"));
    for (place, uses) in uses_by_crate() {
        match sections.remove(&place) {
            Some((rows, in_circles)) => {
                problems.extend(layers::Layers::read(&rows).problems(&place, in_circles, &uses));
            }
            None => problems.push(format!("{place} has no section in tests/tidy/layers.txt")),
        }
    }
    problems.extend(
        sections
            .into_keys()
            .map(|place| format!("tests/tidy/layers.txt: there is no {place}")),
    );
    check(problems);
}

/// In every crate a module that uses one it may not use is found.
#[test]
fn a_planted_violation_is_found_in_every_crate() {
    let sections = sections(include_str!("tidy/layers.txt"));
    for (place, mut uses) in uses_by_crate() {
        let (rows, in_circles) = &sections[&place];
        let layers = layers::Layers::read(rows);
        let pair = uses.iter().find_map(|(module, used)| {
            let other = uses
                .keys()
                .find(|other| *other != module && !used.contains_key(*other))?;
            Some((module.clone(), other.clone()))
        });
        let Some((module, other)) = pair else {
            continue;
        };
        let text = format!("use crate::{{{other}::Planted}};");
        layers::add(
            &mut uses,
            Path::new(&format!("{module}/planted.rs")),
            "planted.rs",
            &text,
        );
        let found = layers.problems(&place, *in_circles, &uses);
        assert_eq!(
            found,
            [format!("planted.rs: `{module}` may not use `{other}`")],
            "{place}"
        );
    }
}

/// Returns the source folder of each crate that has modules, and which module uses which.
fn uses_by_crate() -> Vec<(String, layers::Uses)> {
    let mut crates = Vec::new();
    for package in packages() {
        let manifest = Path::new(
            package["manifest_path"]
                .as_str()
                .expect("a package has a manifest"),
        );
        let folder = manifest
            .parent()
            .and_then(|folder| folder.strip_prefix(repository()).ok());
        let source = folder
            .expect("a package of the workspace lies in it")
            .join("src");
        let mut uses = layers::Uses::new();
        for file in rust_files()
            .into_iter()
            .filter(|file| file.starts_with(&source))
        {
            let inside = file.strip_prefix(&source).expect("it starts with it");
            layers::add(&mut uses, inside, &file.to_string_lossy(), &read(&file));
        }
        if !uses.is_empty() {
            crates.push((source.to_string_lossy().into_owned(), uses));
        }
    }
    crates
}

/// Returns the rows below each `[place]`, and whether it is marked `in circles`.
fn sections(text: &str) -> BTreeMap<String, (String, bool)> {
    let mut sections = BTreeMap::new();
    for section in text.split("\n[").skip(1) {
        let (head, rows) = section.split_once('\n').unwrap_or((section, ""));
        let (place, mark) = head.split_once(']').unwrap_or((head, ""));
        sections.insert(
            place.to_owned(),
            (rows.to_owned(), mark.trim() == "in circles"),
        );
    }
    sections
}

#[test]
fn a_place_names_no_path_that_is_forbidden_there() {
    let mut problems = Vec::new();
    for file in rust_files() {
        for (place, forbidden) in FORBIDDEN {
            if !lies_in(&file, place) {
                continue;
            }
            for (number, line) in code_lines(&file) {
                for path in *forbidden {
                    if names_path(&line, path) {
                        problems.push(format!(
                            "{}:{number}: {place} may not name `{path}`",
                            file.display()
                        ));
                    }
                }
            }
        }
    }
    check(problems);
}

#[test]
fn stages_are_called_by_the_call_path_alone() {
    let mut problems = Vec::new();
    for stage in STAGES {
        let file = PathBuf::from(format!("gateway/src/call/{stage}.rs"));
        for (number, line) in code_lines(&file) {
            for other in STAGES.iter().filter(|other| *other != stage) {
                // `other::function(`; types of another stage are passed between stages, which is fine.
                let calls = line
                    .match_indices(&format!("{other}::"))
                    .any(|(at, found)| {
                        let called = &line[at + found.len()..];
                        let name: String = called
                            .chars()
                            .take_while(|c| c.is_alphanumeric() || *c == '_')
                            .collect();
                        name.starts_with(|c: char| c.is_lowercase())
                            && called[name.len()..].starts_with('(')
                    });
                if calls {
                    problems.push(format!(
                        "{}:{number}: the stage {stage} calls the stage {other}",
                        file.display()
                    ));
                }
            }
        }
    }
    check(problems);
}

/// Testing a single crate does not rebuild a dependency that a build of the whole workspace made, or the other way round.
#[test]
fn a_selection_builds_what_the_workspace_builds() {
    features::compare_selections();
}

#[test]
fn every_dependency_is_what_deny_toml_allows() {
    let policy = deny::Policy::read(&read(Path::new("deny.toml")));
    // The packages are those of this platform: crates of others need not have been fetched.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let packages = metadata(&["--filter-platform", &platform]);
    assert!(
        packages.len() > 100,
        "every crate of the lock file is looked at"
    );
    check(
        packages
            .iter()
            .flat_map(|package| policy.problems(package))
            .collect(),
    );
}

/// The last column of the table in SECURITY.md names a case of `tests/suites` for each promise.
#[test]
fn every_promise_of_security_md_has_its_case() {
    let text = read(Path::new("SECURITY.md"));
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains("| case |"))
        .collect();
    assert!(rows.len() >= 20, "the table of promises is there");
    let problems = rows.into_iter().filter_map(|row| {
        let case = row
            .rsplit('|')
            .nth(1)
            .unwrap_or_default()
            .trim()
            .trim_matches('`');
        let (suite, name) = case.split_once("::").unwrap_or_default();
        let file = repository().join(format!("tests/suites/{suite}.rs"));
        let source = fs::read_to_string(file).unwrap_or_default();
        (!source.contains(&format!("fn {name}()")))
            .then(|| format!("SECURITY.md: there is no case {case}"))
    });
    check(problems.collect());
}

#[test]
fn wasmtime_is_named_in_one_crate() {
    let mut files = rust_files();
    files.retain(|file| {
        !file.starts_with("gateway/plugin-host") && file != Path::new("tests/tidy.rs")
    });
    check_lines(files, "only gateway/plugin-host may use wasmtime", |line| {
        line.contains("wasmtime::") || line.contains("use wasmtime")
    });
}

#[test]
fn files_are_moved_into_their_place_by_one_crate() {
    let mut files = rust_files();
    files.retain(|file| file.starts_with("gateway") || file.starts_with("cli"));
    files.retain(|file| {
        let place = file.to_string_lossy();
        let is_allowed = |allowed: &&str| place.starts_with(*allowed);
        !MOVING_PLACES.iter().any(is_allowed) && !place.contains("/tests")
    });
    let advice = "weir_files::replace and create_once move files";
    let moves = ["fs::rename(", "hard_link(", ".persist("];
    check_lines(files, advice, |line| {
        moves.iter().any(|moves| line.contains(moves))
    });
}

#[test]
fn unsafe_code_stays_in_its_places() {
    let mut files = rust_files();
    files.retain(|file| {
        let place = file.to_string_lossy();
        let is_allowed = |allowed: &&str| place.starts_with(*allowed);
        !UNSAFE_PLACES.iter().any(is_allowed) && place != "tests/tidy.rs"
    });
    let advice = format!("unsafe code is allowed only in {UNSAFE_PLACES:?}");
    // rustfmt writes an attribute with a reason in several lines.
    check_lines(files, &advice, |line| {
        line.contains("unsafe_code") && !line.contains("fn ")
    });
}

#[test]
fn every_module_says_what_it_is_for() {
    let mut problems = Vec::new();
    // A mistake is a case for the compiler, whose messages name its lines.
    for file in rust_files()
        .into_iter()
        .filter(|file| !file.starts_with("plugin-sdk/tests/mistakes"))
    {
        let text = read(&file);
        let first = text.lines().next().unwrap_or_default();
        if !first.starts_with("//! ") || first.len() < 8 {
            problems.push(format!(
                "{}: the first line must say what the module is for (`//! …`)",
                file.display()
            ));
        }
    }
    check(problems);
}

#[test]
fn names_say_what_is_inside() {
    let mut problems = Vec::new();
    for file in tracked_files() {
        let parts = file
            .components()
            .map(|part| part.as_os_str().to_string_lossy().to_lowercase());
        for part in parts {
            let stem = part.split('.').next().unwrap_or_default().to_owned();
            if EMPTY_NAMES
                .iter()
                .any(|name| stem == *name || stem.ends_with(&format!("_{name}")))
            {
                problems.push(format!(
                    "{}: `{stem}` says nothing about what is inside",
                    file.display()
                ));
            }
        }
    }
    check(problems);
}

/// Lock files and documents name no registry, since each machine uses its own.
#[test]
fn no_registry_host_is_written_down() {
    // The names are put together here, so that this file does not hold them either.
    let hosts = [
        ["registry.npm", "js.org"],
        ["registry.yarn", "pkg.com"],
        ["files.python", "hosted.org"],
        ["pypi.", "org"],
        ["static.crates", ".io"],
        ["index.crates", ".io"],
        ["deb.deb", "ian.org"],
    ]
    .map(|parts| parts.concat());
    let mut problems = Vec::new();
    for file in tracked_files() {
        let Ok(text) = fs::read_to_string(repository().join(&file)) else {
            continue;
        };
        for host in hosts.iter().filter(|host| text.contains(*host)) {
            problems.push(format!(
                "{}: names the registry host {host}",
                file.display()
            ));
        }
    }
    check(problems);
}

/// A file that no other file names is not compiled, so its tests do not run.
#[test]
fn every_file_beside_a_module_is_part_of_it() {
    let files: BTreeSet<PathBuf> = rust_files().into_iter().collect();
    let mut problems = Vec::new();
    for file in &files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let is_root = matches!(&*name, "main" | "lib" | "mod" | "build");
        // Cases that must not compile are compiled one by one.
        if is_root || lies_in(file, "plugin-sdk/tests/mistakes") {
            continue;
        }
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut owners = ["main.rs", "lib.rs", "mod.rs"]
            .map(|root| folder.join(root))
            .to_vec();
        owners.push(folder.with_extension("rs"));
        owners.retain(|owner| files.contains(owner));
        let is_named = owners.iter().any(|owner| {
            let text = read(owner);
            [format!("mod {name};"), format!("mod r#{name};")]
                .iter()
                .any(|module| text.contains(module))
        });
        if !owners.is_empty() && !is_named {
            problems.push(format!("{}: no file names it as a module", file.display()));
        }
    }
    check(problems);
}

/// The conformance suite's tools are a fixture's: answering them in the gateway would prove nothing.
#[test]
fn the_gateway_answers_no_name_of_the_conformance_suite() {
    let names = [
        "test_simple_text",
        "test_image_content",
        "test_tool_with_progress",
        "test_error_handling",
    ];
    let mut problems = Vec::new();
    for file in rust_files()
        .into_iter()
        .filter(|file| file.starts_with("gateway"))
    {
        let text = read(&file);
        for name in names.iter().filter(|name| text.contains(*name)) {
            problems.push(format!(
                "{}: names the conformance suite's tool {name}",
                file.display()
            ));
        }
    }
    check(problems);
}

/// Sizes, names and words of the code may only fall. `cargo xtask figures` prints them.
#[test]
fn figures_only_fall() {
    let mut figures = figures::Figures::default();
    for file in rust_files() {
        figures.add(&file, &read(&file));
    }
    let rows = figures.rows();
    let text = figures::write(&rows);
    eprintln!("{text}");
    let place = repository().join("tests/tidy/figures.txt");
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(&place, text).expect("figures.txt can be written");
        return;
    }
    let kept = fs::read_to_string(&place).unwrap_or_default();
    check(figures::problems(&rows, &kept));
}

#[test]
fn subjects_of_new_commits_are_short_clauses() {
    let output = Command::new("git")
        .args([
            "-c",
            "safe.directory=*",
            "log",
            "--no-merges",
            "--format=%s",
        ])
        .arg(format!("--since={}", commits::SINCE))
        .current_dir(repository())
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git lists the commits");
    let subjects = String::from_utf8_lossy(&output.stdout);
    let problem = |subject: &str| Some(format!("{subject}: {}", commits::problem(subject)?));
    check(subjects.lines().filter_map(problem).collect());
}

/// Checks that no line of code of these files is one that may not be there.
fn check_lines(files: Vec<PathBuf>, advice: &str, is_wrong: impl Fn(&str) -> bool) {
    let mut problems = Vec::new();
    for file in files {
        for (number, line) in code_lines(&file) {
            if is_wrong(&line) {
                problems.push(format!("{}:{number}: {advice}", file.display()));
            }
        }
    }
    check(problems);
}

fn check(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// Returns the workspace's own packages, as cargo sees them.
fn packages() -> Vec<Value> {
    metadata(&["--no-deps"])
}

/// Returns the packages that `cargo metadata` lists.
fn metadata(words: &[&str]) -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--offline", "--locked", "--format-version", "1"])
        .args(words)
        .current_dir(repository())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    metadata["packages"]
        .as_array()
        .expect("metadata lists packages")
        .clone()
}

/// Returns the names of what a package needs to run; what only its build or its tests need does not count.
fn normal_dependencies(package: &Value) -> BTreeSet<String> {
    let all = package["dependencies"]
        .as_array()
        .expect("a package lists dependencies")
        .iter();
    all.filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| {
            dependency["name"]
                .as_str()
                .expect("a dependency has a name")
                .to_owned()
        })
        .collect()
}

/// Returns `true` if the file lies in the place: `gateway/src/call` holds `gateway/src/call.rs` and everything in
/// `gateway/src/call/`.
fn lies_in(file: &Path, place: &str) -> bool {
    file.starts_with(place) || file == Path::new(&format!("{place}.rs"))
}

/// Returns `true` if the line of code names `path` as a whole: `http::` but not `weir_http::`.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + path.len()..];
        let starts = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':');
        starts
            && (after.starts_with("::")
                || (line.trim_start().starts_with("use ") && after.starts_with([';', ','])))
    })
}

/// Returns the code with its line numbers, without comments and test modules.
fn code_lines(file: &Path) -> Vec<(usize, String)> {
    let text = read(file);
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        if !code.trim().is_empty() {
            lines.push((index + 1, code.to_owned()));
        }
    }
    lines
}

fn rust_files() -> Vec<PathBuf> {
    tracked_files()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Returns the files that are tracked, and those that are new and will be.
fn tracked_files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args([
            "-c",
            "safe.directory=*",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(repository())
        .output()
        .expect("git runs");
    assert!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    let files = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from);
    files
        .filter(|file| repository().join(file).is_file())
        .collect()
}

fn read(file: &Path) -> String {
    fs::read_to_string(repository().join(file))
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository")
}
