//! Tests whether the tools that people ask for are found, beside what a plain search for their words finds.
#![expect(clippy::print_stdout, reason = "both rates are for whoever reads the run")]

use std::{fs, path::Path};

use serde_json::{Value, json};
use weir_contracts::search::{Entry, Index};

struct Listed {
    name: String,
    title: Option<String>,
    description: String,
    input: Value,
}

/// Returns the tools of ten real servers, and of the samples.
fn tools() -> Vec<Listed> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tools = Vec::new();
    let mut files: Vec<_> = fs::read_dir(here.join("../tests/fixtures/extracted")).expect("a folder").collect();
    files.sort_by_key(|file| file.as_ref().expect("a file").path());
    for file in files {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a text");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let items = document["items"].as_array().expect("items").iter().filter(|item| item["type"] == "tool");
        tools.extend(items.map(|item| Listed {
            name: item["name"].as_str().expect("a name").to_owned(),
            title: item["title"].as_str().map(str::to_owned),
            description: item["description"].as_str().unwrap_or_default().to_owned(),
            input: item["detail"]["input"]["json"].clone(),
        }));
    }
    for sample in ["airports", "desk", "weather"] {
        let file = format!("{sample}.yaml");
        let text = fs::read_to_string(here.join("samples").join(&file)).expect("a sample");
        let document: Value = serde_json::from_value(serde_saphyr::from_str(&text).expect("YAML")).expect("JSON");
        for tool in document["tools"].as_array().expect("tools") {
            let fields = tool["fields"].as_array().into_iter().flatten();
            let properties = fields.map(|field| {
                let name = field["name"].as_str().expect("a name").to_owned();
                (name, json!({ "description": field["help"] }))
            });
            tools.push(Listed {
                name: tool["tool"].as_str().expect("a name").to_owned(),
                title: tool["title"].as_str().map(str::to_owned),
                description: tool["description"].as_str().expect("a description").to_owned(),
                input: json!({ "properties": properties.collect::<serde_json::Map<_, _>>() }),
            });
        }
    }
    tools
}

fn questions() -> Vec<(Vec<&'static str>, &'static str)> {
    let lines = include_str!("search/questions.txt").lines().filter(|line| !line.starts_with('#'));
    let split = lines.map(|line| line.split_once(": ").expect("a tool and a question"));
    split.map(|(names, question)| (names.split('|').collect(), question)).collect()
}

/// Searches by plain text: returns the tools with the most words of the question, in the order of their list.
fn substrings(tools: &[Listed], question: &str) -> Vec<usize> {
    let words: Vec<String> = question.split_whitespace().map(str::to_lowercase).collect();
    let score = |tool: &Listed| {
        let text = format!("{} {} {}", tool.name, tool.title.as_deref().unwrap_or_default(), tool.description);
        let text = text.to_lowercase();
        words.iter().filter(|word| text.contains(*word)).count()
    };
    let mut found: Vec<(usize, usize)> = tools.iter().map(score).enumerate().filter(|(_, score)| *score > 0).collect();
    found.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    found.into_iter().map(|(number, _)| number).take(5).collect()
}

#[test]
fn what_is_asked_for_is_among_the_first_five() {
    let tools = tools();
    let text = |tool: &Listed| {
        let (name, title, description) = (&*tool.name, tool.title.as_deref(), &*tool.description);
        Entry { name, title, description, input: &tool.input }.text()
    };
    let index = Index::new(&tools.iter().map(text).collect::<Vec<_>>());
    let (mut asked, mut found, mut first, mut plain) = (0, 0, 0, 0);
    let mut missed = Vec::new();
    for (names, question) in questions() {
        let answer: Vec<&str> = index.find(question, 5).into_iter().map(|number| &*tools[number].name).collect();
        if names == ["-"] {
            assert!(answer.is_empty(), "{question}: nothing does that, but {answer:?} was found");
            continue;
        }
        for name in &names {
            assert!(tools.iter().any(|tool| tool.name == **name), "{name} is no tool");
        }
        let is_meant = |name: &&str| names.contains(name);
        asked += 1;
        first += usize::from(answer.first().is_some_and(is_meant));
        plain += usize::from(substrings(&tools, question).into_iter().any(|number| is_meant(&&*tools[number].name)));
        match answer.iter().any(is_meant) {
            true => found += 1,
            false => missed.push(format!("{names:?}: {question}: {answer:?}")),
        }
    }
    let part =
        |count: usize| f64::from(u32::try_from(count).expect("few")) / f64::from(u32::try_from(asked).expect("few"));
    println!(
        "{asked} questions over {} tools: first {:.3}, among five {:.3}; by plain text among five {:.3}\n{}",
        tools.len(),
        part(first),
        part(found),
        part(plain),
        missed.join("\n")
    );
    assert!(asked >= 200, "{asked} questions");
    assert!(part(found) >= 0.9, "{:.3} of the tools were found\n{}", part(found), missed.join("\n"));
    assert!(found > plain, "a plain search finds {plain} of {asked}, this one {found}");
}
