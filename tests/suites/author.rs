//! Tests what the author of a plugin sees, in each language: from an empty folder to a tool that is called, with
//! nothing but the program and the language's own tools.

mod check;
mod failures;
mod models;
mod parcels;
mod schemas;
mod world;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{Gateway, SERVE, gateway::read_output, place};

/// An empty folder, and the programs that its owner has.
struct Desk {
    folder: PathBuf,
}

/// A language, where its source lies in a new folder, and what its author writes there instead of the example.
const LANGUAGES: [(&str, &str, &str); 4] = [
    (
        "rust",
        "src/lib.rs",
        include_str!("../fixtures/author/lib.rs"),
    ),
    (
        "js",
        "plugin.js",
        include_str!("../fixtures/author/plugin.js"),
    ),
    (
        "python",
        "app.py",
        include_str!("../fixtures/author/app.py"),
    ),
    ("c", "plugin.c", include_str!("../fixtures/author/plugin.c")),
];

impl Desk {
    /// Makes the desk at the same place in each run, since cargo keeps what it built by the path of its source.
    fn new(name: &str) -> Self {
        let folder = place::cache().join("author/desks").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder in the cache");
        Self { folder }
    }

    fn path(&self) -> &Path {
        &self.folder
    }

    /// Returns `weir` in a folder of the desk. Builds share what they have in common, as on their author's machine.
    fn weir(&self, inside: &str, words: &[&str]) -> Command {
        let mut command = Command::new(place::binary("weir"));
        for (name, _) in std::env::vars()
            .filter(|(name, _)| name.starts_with("WEIR_") || name.starts_with("CARGO_"))
        {
            if name != "CARGO_HOME" && name != "CARGO_SLOT" {
                command.env_remove(name);
            }
        }
        let node = place::cache().join("clients/node-runtime/bin");
        let mut path = node.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command
            .args(words)
            .current_dir(self.path().join(inside))
            .env("PATH", path);
        command
            .env("CARGO_TARGET_DIR", place::cache().join("author/target"))
            .env_remove("RUSTFLAGS");
        command
    }

    /// Serves the plugin in a folder, at a free port.
    fn serve(&self, inside: &str) -> Gateway {
        Gateway::start(self.weir(inside, &SERVE))
    }

    fn run(&self, inside: &str, words: &[&str]) -> (i32, String, String) {
        read_output(self.weir(inside, words).output().expect("weir starts"))
    }

    fn succeed(&self, inside: &str, words: &[&str]) -> String {
        let (code, out, err) = self.run(inside, words);
        assert_eq!(code, 0, "{words:?} in {inside}\n{out}\n{err}");
        out
    }

    fn json(&self, inside: &str, words: &[&str]) -> Value {
        serde_json::from_str(&self.succeed(inside, words)).expect("it prints JSON")
    }

    /// Makes the folder of a new plugin. What its language installs is taken from where the tests have it already.
    fn begin(&self, name: &str, language: &str, kind: &str) -> PathBuf {
        self.succeed(
            "",
            &["plugin", "new", name, "--lang", language, "--kind", kind],
        );
        let folder = self.path().join(name);
        let (installed, here) = match language {
            "js" => ("clients/tiny-js/node_modules", "node_modules"),
            "python" => ("clients/tiny-python", ".venv"),
            _ => return folder,
        };
        let installed = place::present(
            place::cache().join(installed),
            "cargo xtask plugins --guests",
        );
        symlink(installed, folder.join(here)).expect("a link in a new folder");
        folder
    }
}

/// Returns the example of the page "Schema Contract" of Milo, from which a new folder begins.
fn seed() -> Value {
    json!({
        "type": "object",
        "properties": {
            "environment": { "type": "string", "minLength": 1, "description": "Target environment" },
            "service": { "type": "string", "minLength": 1, "description": "Service name." },
            "version": { "type": "string", "description": "Version or image tag.", "default": "latest" },
        },
        "required": ["environment", "service"],
    })
}

#[test]
fn a_new_plugin_is_built_checked_served_and_called_in_each_language() {
    let desk = Desk::new("tools");
    for (language, ..) in LANGUAGES {
        let name = &format!("new-{language}");
        let begun = Instant::now();
        desk.begin(name, language, "tools");
        let began = begun.elapsed();
        let (code, out, err) = desk.run(name, &["plugin", "build"]);
        assert_eq!(code, 0, "{language}: {out}\n{err}");
        assert!(err.contains("$ "), "each command is shown: {err}");
        assert!(out.contains(&format!("plugins/{name}.wasm")), "{out}");

        let definitions = desk.json(name, &["plugin", "schema"]);
        assert_eq!(definitions[0]["inputSchema"], seed(), "{language}");
        let output = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        assert_eq!(definitions[0]["outputSchema"], output, "{language}");

        let checked = desk.json(name, &["plugin", "check", "--json"]);
        assert_eq!(checked["ok"], true, "{language}: {checked}");
        let levels: BTreeMap<&str, &str> = checked["checks"]
            .as_array()
            .expect("checks")
            .iter()
            .map(|check| {
                (
                    check["check"].as_str().expect("a name"),
                    check["level"].as_str().expect("a level"),
                )
            })
            .collect();
        for check in [
            "loads",
            "schemas compile",
            "defaults fit",
            "documented",
            "lists",
            "lint",
            "answers over HTTP",
            "answers over stdio",
            "outputs conform",
        ] {
            assert_eq!(
                levels.get(check),
                Some(&"ok"),
                "{language}: {check}: {checked}"
            );
        }
        // The build tools of other languages may not be reproducible, which is a warning and not a failure.
        let repeats = ["rust", "c"].contains(&language);
        let second = levels.get("second build").copied();
        assert!(
            if repeats {
                second == Some("ok")
            } else {
                second.is_some()
            },
            "{language}: {checked}"
        );

        let begun = Instant::now();
        assert_eq!(
            desk.json(name, &["plugin", "check", "--json", "--once"])["ok"],
            true,
            "{language}"
        );
        assert!(
            desk.succeed(name, &["plugin", "test"])
                .ends_with("2 cases, 0 failed")
        );
        let call = [
            "call",
            "deploy",
            "--environment",
            "prod",
            "--service",
            "web",
        ];
        let answer = r#"{"environment":"prod","service":"web","version":"latest"}"#;
        assert_eq!(desk.succeed(name, &call), answer, "{language}");
        let gateway = desk.serve(name);
        let url = gateway.url();
        assert_eq!(
            desk.succeed(
                name,
                &[&["call", "--url", url.as_str()], &call[1..]].concat()
            ),
            answer,
            "{language}"
        );
        // What is installed and compiled is the language's own; `cargo xtask beginner` times that too.
        let besides = began + begun.elapsed();
        assert!(
            besides < Duration::from_secs(120),
            "{language}: {besides:?} besides compiling"
        );
    }
}

#[test]
fn a_new_adapter_is_built_checked_and_called() {
    let desk = Desk::new("adapters");
    for (language, ..) in LANGUAGES {
        let name = &format!("numbers-{language}");
        desk.begin(name, language, "collection");
        desk.succeed(name, &["plugin", "build"]);
        let checked = desk.json(name, &["plugin", "check", "--json", "--once"]);
        assert_eq!(checked["ok"], true, "{language}: {checked}");
        let mut levels = checked["checks"].as_array().into_iter().flatten();
        assert!(
            levels.all(|check| check["level"] == "ok"),
            "{language}: {checked}"
        );
        assert!(
            checked.to_string().contains("reads only"),
            "{language}: {checked}"
        );
        // In C there are two more, of a contract that counts.
        let cases = if language == "c" { 4 } else { 2 };
        let tested = desk.succeed(name, &["plugin", "test"]);
        assert!(
            tested.ends_with(&format!("{cases} cases, 0 failed")),
            "{tested}"
        );
        assert_eq!(
            desk.succeed(name, &["call", "get_number", "--number", "7"]),
            r#"{"number":7,"square":49}"#
        );
        let largest = [
            "call",
            "list_numbers",
            "--order-by",
            "-number",
            "--limit",
            "2",
        ];
        let listed = desk.succeed(name, &largest);
        let expected = r#"{"records":[{"number":100,"square":10000},{"number":99,"square":9801}],"#;
        assert!(listed.starts_with(expected), "{language}: {listed}");
        if language == "c" {
            for (square, counted) in [("49", r#"{"count":1}"#), ("50", r#"{"count":0}"#)] {
                let words = ["call", "count_numbers", "--square", square];
                assert_eq!(desk.succeed(name, &words), counted);
            }
        }
    }
}

/// Every file that a new folder cites is in it.
#[test]
fn pages_that_a_new_plugin_cites_come_with_it() {
    let desk = Desk::new("cited");
    let mut cited = 0;
    for (language, ..) in LANGUAGES {
        for kind in ["tools", "collection"] {
            let name = format!("{language}-{kind}");
            desk.succeed(
                "",
                &["plugin", "new", &name, "--lang", language, "--kind", kind],
            );
            let folder = desk.path().join(&name);
            for file in files_below(&folder) {
                let text = fs::read(&file).expect("a file");
                let text = String::from_utf8_lossy(&text);
                let words = text.split(|c: char| !c.is_alphanumeric() && !"-_./#".contains(c));
                for word in words {
                    let Some((page, _)) = word.split_once(".md") else {
                        continue;
                    };
                    let above = match page.starts_with("docs/") {
                        true => &folder,
                        false => file.parent().expect("a folder"),
                    };
                    let page = above.join(format!("{page}.md"));
                    assert!(page.is_file(), "{}: {word}", file.display());
                    cited += 1;
                }
            }
        }
    }
    assert!(cited > 5, "{cited} citations");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files_below(&path),
            false => vec![path],
        })
        .collect()
}

/// The same source is a library with one further feature.
#[test]
fn a_new_plugin_in_rust_is_a_native_library_too() {
    let desk = Desk::new("native");
    for (kind, call, expected) in [
        (
            "tools",
            &[
                "call",
                "deploy",
                "--environment",
                "prod",
                "--service",
                "web",
            ][..],
            r#"{"environment":"prod","service":"web","version":"latest"}"#,
        ),
        (
            "collection",
            &["call", "get_number", "--number", "7"],
            r#"{"number":7,"square":49}"#,
        ),
    ] {
        let name = &format!("native-{kind}");
        let folder = desk.begin(name, "rust", kind);
        let out = desk.succeed(name, &["plugin", "build", "--native"]);
        let lines: Vec<&str> = out.lines().filter(|line| line.contains(" = ")).collect();
        assert!(
            lines.len() == 2 && lines[0].contains(".so") && lines[1].starts_with("sha256"),
            "{out}"
        );
        let checked = desk.json(name, &["plugin", "check", "--native", "--json", "--once"]);
        assert_eq!(checked["ok"], true, "{kind}: {checked}");
        assert!(
            checked.to_string().contains("answers over stdio"),
            "{kind}: {checked}"
        );
        if kind == "tools" {
            let library = format!("{name}.so");
            assert_eq!(
                desk.json(name, &["plugin", "schema", &library])[0]["inputSchema"],
                seed()
            );
        }
        // Puts the lines that it printed where it asks for them.
        let config = fs::read_to_string(folder.join("weir.toml")).expect("the template's");
        let under = format!("[plugins.{name}]\n");
        assert!(config.contains(&under), "{config}");
        let config = config.replacen(&under, &format!("{under}{}\n{}\n", lines[0], lines[1]), 1);
        fs::write(folder.join("weir.toml"), config).expect("written");
        assert!(!folder.join("plugins").join(format!("{name}.wasm")).exists());
        assert_eq!(desk.succeed(name, call), expected, "{kind}");
    }
    let (code, _, err) = desk.run("", &["plugin", "new", "script", "--lang", "js"]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = desk.run("script", &["plugin", "build", "--native"]);
    assert!(
        code == 1 && err.contains("a native library is written in Rust"),
        "{err}"
    );
}

/// While a plugin is being written, its last build answers.
#[test]
fn a_changed_parameter_is_live_after_the_next_build() {
    let desk = Desk::new("changed");
    let folder = desk.begin("changed", "js", "tools");
    desk.succeed("changed", &["plugin", "build"]);
    desk.succeed(
        "changed",
        &[
            "call",
            "deploy",
            "--environment",
            "prod",
            "--service",
            "web",
        ],
    );
    let source = fs::read_to_string(folder.join("plugin.js")).expect("a source");
    fs::write(
        folder.join("plugin.js"),
        source.replace("service", "application"),
    )
    .expect("the source is written");
    desk.succeed("changed", &["plugin", "build"]);
    let answer = desk.succeed(
        "changed",
        &[
            "call",
            "deploy",
            "--environment",
            "prod",
            "--application",
            "web",
        ],
    );
    assert_eq!(
        answer,
        r#"{"environment":"prod","application":"web","version":"latest"}"#
    );
}

#[test]
fn what_is_no_name_and_what_is_no_folder_is_refused() {
    let desk = Desk::new("names");
    for name in ["Deploy", "1st", "a_b", "a/b", "..", "-x"] {
        let (code, _, err) = desk.run("", &["plugin", "new", "--", name]);
        assert_eq!(code, 2, "{name}: {err}");
        assert!(err.contains("a plugin is named by"), "{name}: {err}");
    }
    let (code, _, err) = desk.run("", &["plugin", "build"]);
    assert_eq!(code, 1);
    assert!(err.contains("`weir plugin new NAME` makes one"), "{err}");
    desk.succeed("", &["plugin", "new", "twice"]);
    let (code, _, err) = desk.run("", &["plugin", "new", "twice"]);
    assert_eq!(code, 1);
    assert!(err.contains("already exists"), "{err}");
}

/// The guide is checked: its commands are run, and its code is that of the templates, which are built here.
#[test]
fn the_guide_says_what_works() {
    let guide = fs::read_to_string(place::repository().join("docs/writing-a-plugin.md"))
        .expect("the guide");
    let templates = place::repository().join("plugin-sdk/templates");
    let template = |path: &str| {
        let text = fs::read_to_string(templates.join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        text.replace("{{name}}", "deploys")
    };
    let (mut ran, mut held) = (0, 0);
    for (language, block) in blocks(&guide) {
        let source = match language {
            "sh" => {
                run_all(&block);
                ran += 1;
                continue;
            }
            "rust" => template("rust/tools/src/lib.rs"),
            "js" => template("js/tools/plugin.js"),
            "python" => template("python/tools/app.py"),
            "c" => template("c/tools/plugin.c"),
            "json" => template("all/tools/tests/deploy.json"),
            "toml" => {
                let desk = Desk::new("guide-config");
                let folder = desk.begin("deploys", "js", "tools");
                rusqlite::Connection::open(folder.join("data.sqlite")).expect("a database");
                let config = fs::read_to_string(folder.join("weir.toml")).expect("a configuration");
                fs::write(folder.join("weir.toml"), format!("{config}\n{block}"))
                    .expect("the configuration is written");
                desk.succeed("deploys", &["plugin", "build"]);
                desk.succeed("deploys", &["plugin", "check", "--once"]);
                held += 1;
                continue;
            }
            other => panic!("no test holds blocks of {other} against what they show"),
        };
        assert!(
            source.contains(block.trim_end()),
            "the template has other words than the guide:\n{block}"
        );
        held += 1;
    }
    assert!(
        ran >= 2 && held >= 5,
        "{ran} blocks were run, {held} held against what they show"
    );
}

fn run_all(block: &str) {
    let desk = Desk::new("guide");
    let mut inside = String::new();
    for line in block.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["cd", folder] => inside = folder.to_owned(),
            ["weir", ref words @ ..] => drop(desk.succeed(&inside, words)),
            _ => panic!("the guide says `{line}`, which no test runs"),
        }
    }
}

/// Returns the fenced blocks of a page: their language and text.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((language, format!("{}\n", text.join("\n"))));
        }
    }
    blocks
}
