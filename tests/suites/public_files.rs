//! Drafts of messy public files, which packages of Python carry. The golden is read by a person.

use std::{fmt::Write as _, fs, path::PathBuf, process::Command};

use serde_json::{Value, json};
use weir_tests::{House, place};

/// The files, each with the licence of its package or of the data itself.
const FILES: [(&str, &str); 14] = [
    ("palmerpenguins/data/penguins-raw.csv", "CC0"),
    ("lifelines/datasets/canadian_senators.csv", "MIT"),
    ("lifelines/datasets/merrell1955.csv", "MIT"),
    ("lifelines/datasets/multicenter_aids_cohort.tsv", "MIT"),
    ("lifelines/datasets/stanford_heart.csv", "MIT"),
    ("vega_datasets/_data/iowa-electricity.csv", "MIT"),
    ("vega_datasets/_data/la-riots.csv", "MIT"),
    (
        "bokeh_sampledata/_data/SampleSuperstore.csv",
        "BSD-3-Clause",
    ),
    ("bokeh_sampledata/_data/antibiotics.csv", "BSD-3-Clause"),
    (
        "bokeh_sampledata/_data/browsers_nov_2013.csv",
        "BSD-3-Clause",
    ),
    ("bokeh_sampledata/_data/elements.csv", "BSD-3-Clause"),
    ("bokeh_sampledata/_data/lincoln_weather.csv", "BSD-3-Clause"),
    ("bokeh_sampledata/_data/sprint.csv", "BSD-3-Clause"),
    ("bokeh_sampledata/_data/titanic_all.csv", "BSD-3-Clause"),
];

fn fixtures() -> PathBuf {
    place::repository().join("tests/fixtures/public-files")
}

/// Returns the folder of the packages, fetched once by their versions and digests.
fn packages() -> PathBuf {
    let folder = place::cache().join("public-files");
    let marker = folder.join("requirements.txt");
    let pinned = fs::read_to_string(fixtures().join("requirements.txt")).expect("the packages");
    if fs::read_to_string(&marker).is_ok_and(|fetched| fetched == pinned) {
        return folder;
    }
    let fetch = "set -e; rm -rf \"$1\"; mkdir -p \"$1\"; cd \"$1\"; \
                 python3 -m pip download --no-deps --quiet --disable-pip-version-check --require-hashes -r \"$2\"; \
                 for wheel in *.whl; do python3 -m zipfile -e \"$wheel\" .; rm \"$wheel\"; done; cp \"$2\" requirements.txt";
    let fetched = Command::new("sh")
        .args(["-c", fetch, "sh"])
        .arg(&folder)
        .arg(fixtures().join("requirements.txt"))
        .status()
        .expect("sh runs");
    assert!(fetched.success(), "the packages cannot be fetched");
    folder
}

/// Returns the columns of a list's records with their types, `?` where one may be null.
fn columns(list: &Value) -> String {
    let record = &list["outputSchema"]["properties"]["records"]["items"];
    let columns = record["properties"].as_object().expect("columns");
    let typed = columns.iter().map(|(name, schema)| {
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.clone(),
            kind => vec![kind.clone()],
        };
        let kind = match schema["pattern"].is_string() {
            true => Some("decimal"),
            false => schema["format"].as_str().or_else(|| kinds[0].as_str()),
        };
        let mark = if kinds.contains(&json!("null")) {
            "?"
        } else {
            ""
        };
        format!("`{name}` {}{mark}", kind.unwrap_or("any"))
    });
    typed.collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn messy_files_of_the_public_are_drafted_and_served() {
    let packages = packages();
    let house = House::new().sheets();
    let plugins = house.plugins().display().to_string();
    let mut drafts = Vec::new();
    for (path, licence) in FILES {
        let name = path.rsplit('/').next().expect("a name");
        let bytes = fs::read(packages.join(path)).expect(path);
        house.write(&format!("data/{name}"), bytes);
        let file = format!("data/{name}");
        let words = ["draft", &file, "--plugins", &plugins, "--state", "state"];
        let (code, contract, notes) = house.run(&words);
        assert_eq!(code, 0, "{path}: {notes}");
        house.write(&format!("contracts/{name}.yaml"), &contract);
        drafts.push((path, licence, contract, notes));
    }
    let (_gateway, client) = house.serve_client();
    let (tools, _) = client.list().await;
    let mut golden = "What `weir draft` says of messy files of the public. Written by `suites::public_files`; `WEIR_BLESS=1` accepts what is there.\n"
        .to_owned();
    for (path, licence, contract, notes) in drafts {
        let _ = writeln!(golden, "\n## {path} ({licence})");
        let name = contract
            .lines()
            .find_map(|line| line.strip_prefix("  - tool: list_"))
            .expect("a list");
        let list = tools
            .iter()
            .find(|tool| tool["name"] == format!("list_{name}"));
        let _ = writeln!(golden, "{}\n", columns(list.expect("it is served")));
        let listed = client
            .call(&format!("list_{name}"), json!({ "limit": 3 }))
            .await;
        let records = listed["structuredContent"]["records"].as_array();
        assert_eq!(records.map(Vec::len), Some(3), "{path}: {listed}");
        let tool = |verb: &str| format!("{verb}_{name}");
        let summary = match contract.contains(&format!("  - tool: {}\n", tool("summarize"))) {
            true => {
                client
                    .call(&tool("summarize"), json!({ "measures": ["count"] }))
                    .await
            }
            false => client.call(&tool("count"), json!({})).await,
        };
        assert_eq!(summary["isError"], false, "{path}: {summary}");
        for line in contract.lines() {
            let says = ["    shape:", "    null_words:", "    # ", "    key:"]
                .iter()
                .any(|start| line.starts_with(start));
            let is_shape =
                line.starts_with("      ") && line.contains(": { type: ") && !line.contains("- {");
            if is_shape || (says && !line.starts_with("    # ")) {
                let _ = writeln!(golden, "    {line}");
            }
        }
        for note in notes.lines().filter_map(|line| line.strip_prefix("note: ")) {
            let _ = writeln!(golden, "- {note}");
        }
    }
    let file = fixtures().join("drafts.md");
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(&file, &golden).expect("the golden is written");
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == golden,
        "not as in tests/fixtures/public-files/drafts.md; WEIR_BLESS=1 accepts what is there:\n{golden}"
    );
}
