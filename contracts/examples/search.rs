//! Measures how long a question takes among 10,000 tools, and how long the index that it reads: `cargo run --release -p
//! weir-contracts --example search`. The tools are those of ten real servers, each a hundred times with another word in
//! its name and its description; the questions are those of `tests/search/questions.txt`.
#![expect(clippy::print_stdout, reason = "it is a measurement that somebody reads")]

use std::{fs, path::Path, time::Instant};

use serde_json::Value;
use weir_contracts::search::{Entry, Index};

const TOOLS: usize = 10_000;
const ROUNDS: usize = 5;

fn main() {
    let texts = texts();
    let began = Instant::now();
    let index = Index::new(&texts);
    println!("index of {} tools: {} ms", texts.len(), began.elapsed().as_millis());
    let lines = include_str!("../tests/search/questions.txt").lines().filter(|line| !line.starts_with('#'));
    let questions: Vec<&str> = lines.filter_map(|line| Some(line.split_once(": ")?.1)).collect();
    let (mut times, mut found) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        for question in &questions {
            let began = Instant::now();
            found += index.find(question, 5).len();
            times.push(began.elapsed());
        }
    }
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_micros();
    println!("{} questions, {found} tools found: p50 {} µs, p99 {} µs", times.len(), at(50), at(99));
}

fn texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/extracted");
    let mut files: Vec<_> = fs::read_dir(folder).expect("the documents").flatten().map(|file| file.path()).collect();
    files.sort();
    let mut tools = Vec::new();
    for file in files {
        let document: Value = serde_json::from_slice(&fs::read(file).expect("a document")).expect("JSON");
        let items = document["items"].as_array().cloned().unwrap_or_default();
        tools.extend(items.into_iter().filter(|item| item["type"] == "tool"));
    }
    let text = |number: usize| {
        let (tool, service) = (&tools[number % tools.len()], format!("service{}", number / tools.len()));
        let name = format!("{service}_{}", tool["name"].as_str().unwrap_or_default());
        let description = format!("{} Of {service}.", tool["description"].as_str().unwrap_or_default());
        let (title, input) = (tool["title"].as_str(), &tool["detail"]["input"]["json"]);
        Entry { name: &name, title, description: &description, input }.text()
    };
    (0..TOOLS).map(text).collect()
}
