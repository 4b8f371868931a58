//! The pages of the documentation: each has its line in an index, and each decision its date and status.

use std::{fs, path::Path};

use super::{check, read, repository};

#[test]
fn every_page_has_its_line_in_an_index() {
    let mut problems = missing("docs", "docs/README.md", "");
    problems.extend(missing("docs/adapters", "docs/README.md", "adapters/"));
    problems.extend(missing("docs/decisions", "docs/decisions/README.md", ""));
    check(problems);
}

#[test]
fn every_decision_has_a_date_and_a_status() {
    let mut problems = Vec::new();
    for name in pages("docs/decisions") {
        let text = read(&Path::new("docs/decisions").join(&name));
        let status = text.lines().nth(2).unwrap_or_default();
        let (word, date) = status.trim_matches('*').split_once(' ').unwrap_or_default();
        if !status.starts_with('*') || word.is_empty() || !date.starts_with("20") {
            problems.push(format!(
                "docs/decisions/{name}: its third line is `{status}`, not `*Accepted 2026-11-28*`"
            ));
        }
    }
    check(problems);
}

/// Returns the pages of a folder that its index does not link to.
fn missing(folder: &str, index: &str, prefix: &str) -> Vec<String> {
    let text = read(Path::new(index));
    let is_missing = |name: &String| !text.contains(&format!("]({prefix}{name})"));
    let names = pages(folder).into_iter().filter(is_missing);
    names
        .map(|name| format!("{folder}/{name}: {index} has no line for it"))
        .collect()
}

/// Returns the names of the pages in a folder, without its README.
fn pages(folder: &str) -> Vec<String> {
    let files = fs::read_dir(repository().join(folder)).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name());
    names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.ends_with(".md") && name != "README.md")
        .collect()
}
