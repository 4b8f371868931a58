//! Searches with questions from a public benchmark: BFCL v4 `live_multiple`, 1,053 questions over 457 tools, every second of
//! which is asked here. Runs only by name, since it fetches the Python package `bfcl-eval`: `cargo test --workspace --test
//! public_questions -- --nocapture`.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use weir_tests::{House, Modern, place, strangers::hostile};

const PACKAGE: &str = "bfcl-eval==2026.3.23";
const QUESTIONS: &str = "bfcl_eval/data/BFCL_v4_live_multiple.json";
const ANSWERS: &str = "bfcl_eval/data/possible_answer/BFCL_v4_live_multiple.json";
/// The shares of questions whose tool is among the first five, and that find nothing.
const RECALL_MIN: f64 = 0.88;
const NOTHING_MAX: f64 = 0.02;

/// Reads a file of JSON lines out of the package.
fn records(folder: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join(name)).expect("a file of the package");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Returns the package's files, fetched once.
fn package() -> std::path::PathBuf {
    let folder = place::cache().join("bfcl");
    if !folder.join(QUESTIONS).exists() {
        let fetch = "set -e; mkdir -p \"$1\"; cd \"$1\"; python3 -m pip download --no-deps --quiet \"$2\"; \
                     python3 -m zipfile -e *.whl .";
        let fetched = Command::new("sh")
            .args(["-c", fetch, "sh"])
            .arg(&folder)
            .arg(PACKAGE)
            .status()
            .expect("sh runs");
        assert!(fetched.success(), "{PACKAGE} cannot be fetched");
    }
    folder
}

/// Returns what the people in a conversation say.
fn question(record: &Value) -> String {
    let turns = record["question"][0].as_array().expect("turns");
    let people = turns.iter().filter(|turn| turn["role"] == "user");
    let texts: Vec<&str> = people.filter_map(|turn| turn["content"].as_str()).collect();
    texts.join(" ")
}

/// Writes the types of JSON Schema for the names that the set has for them.
fn to_schema(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let name = match members.get("type").and_then(Value::as_str) {
                Some("dict") => Some("object"),
                Some("float") => Some("number"),
                Some("tuple") => Some("array"),
                Some("any") => None,
                Some(other) => Some(match other {
                    "array" => "array",
                    "boolean" => "boolean",
                    "integer" => "integer",
                    "object" => "object",
                    _ => "string",
                }),
                None => None,
            };
            match name {
                Some(name) => drop(members.insert("type".to_owned(), name.into())),
                None if members.get("type").is_some_and(Value::is_string) => {
                    members.remove("type");
                }
                None => {}
            }
            members.retain(|keyword, _| !matches!(keyword.as_str(), "default" | "optional"));
            members.values_mut().for_each(to_schema);
        }
        Value::Array(values) => values.iter_mut().for_each(to_schema),
        _ => {}
    }
}

/// Returns a name as it is compared: a gateway may write a character of it in another way.
fn plain(name: &str) -> String {
    let plain = |char: char| {
        if char.is_ascii_alphanumeric() {
            char
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

#[tokio::test]
async fn the_tool_is_among_the_first_five() {
    let folder = package();
    let (questions, answers) = (records(&folder, QUESTIONS), records(&folder, ANSWERS));
    let mut tools: Vec<Value> = Vec::new();
    for record in &questions {
        for function in record["function"].as_array().expect("functions") {
            if tools.iter().any(|tool| tool["name"] == function["name"]) {
                continue;
            }
            let mut input = function["parameters"].clone();
            to_schema(&mut input);
            tools.push(json!({
                "name": function["name"],
                "description": function["description"],
                "inputSchema": input,
            }));
        }
    }
    let house = House::new();
    let lists = house.path().join("lists.json");
    fs::write(&lists, json!({ "tools": tools }).to_string()).expect("a file");
    let words = hostile(&["lists", &lists.display().to_string()]);
    let entry = format!("[upstreams.set]\ncommand = {words:?}\nfirst = \"publish\"\n");
    let house = house.config(&entry).config("[views.find]\nsearch = true\n");
    let gateway = house.serve();
    let view = Modern::new(gateway.view_url("find"));
    let started = std::time::Instant::now();
    while view.call("find_tools", json!({"query": "weather"})).await["structuredContent"]["tools"]
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        assert!(started.elapsed().as_secs() < 60, "the tools are not served");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }

    let (mut asked, mut right, mut nothing) = (0_u32, 0_u32, 0_u32);
    for (record, answer) in questions.iter().zip(&answers).skip(1).step_by(2) {
        assert_eq!(record["id"], answer["id"]);
        let calls = answer["ground_truth"].as_array().expect("calls");
        let meant = calls
            .iter()
            .filter_map(|call| call.as_object()?.keys().next());
        let meant: Vec<String> = meant.map(|name| plain(name)).collect();
        let question = question(record);
        let result = view.call("find_tools", json!({"query": question})).await;
        let found = result["structuredContent"]["tools"].as_array();
        let found: Vec<String> = found
            .unwrap_or_else(|| panic!("{question}: {result}"))
            .iter()
            .map(|tool| plain(tool["name"].as_str().expect("a name")))
            .collect();
        asked += 1;
        nothing += u32::from(found.is_empty());
        right += u32::from(found.iter().any(|name| {
            meant
                .iter()
                .any(|meant| name == meant || name.ends_with(&format!("_{meant}")))
        }));
    }
    let share = |count: u32| f64::from(count) / f64::from(asked);
    let rates = format!(
        "{asked} questions over {} tools: among five {:.3}, nothing {:.3}",
        tools.len(),
        share(right),
        share(nothing)
    );
    eprintln!("{rates}");
    assert!(
        share(right) >= RECALL_MIN && share(nothing) <= NOTHING_MAX,
        "{rates}"
    );
}
