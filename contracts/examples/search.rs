//! Measures how long a question takes among 10,000 tools, and how long the index that it reads: `cargo run --release -p
//! weir-contracts --example search`. The tools are those of ten real servers and the samples, each some ninety times with
//! another service in its name and its description; the questions are those of `tests/search/questions.txt`.
#![expect(clippy::print_stdout, reason = "a person reads the measurement")]

#[path = "../tests/search/tools.rs"]
mod tools;

use std::time::Instant;

use weir_contracts::search::ToolIndex;

const TOOLS: usize = 10_000;
const ROUNDS: usize = 5;

fn main() {
    let texts: Vec<String> = tools::of_many_services(TOOLS)
        .iter()
        .map(tools::Listed::text)
        .collect();
    let began = Instant::now();
    let index = ToolIndex::new(&texts);
    println!(
        "index of {} tools: {} ms",
        texts.len(),
        began.elapsed().as_millis()
    );
    let lines = include_str!("../tests/search/questions.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let questions: Vec<&str> = lines
        .filter_map(|line| Some(line.split_once(": ")?.1))
        .collect();
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
    println!(
        "{} questions, {found} tools found: p50 {} µs, p99 {} µs",
        times.len(),
        at(50),
        at(99)
    );
}
