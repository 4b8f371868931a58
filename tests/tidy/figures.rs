//! Figures of the code: sizes, names and words. They are kept in `figures.txt`; those that say how well it reads may only fall.
//!
//! What is counted is the product: the guests, the fuzz targets and the tests are left out, and a file ends where its tests
//! begin. Lines are read as text, since rustfmt has one way to write each item.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

/// Words that the field does not use in documentation.
const ODD_WORDS: [&str; 6] = ["told", "nobody", "somebody", "whoever", "fares", "gropes"];
/// Names that say nothing of what a function does.
const EMPTY_FUNCTIONS: [&str; 4] = ["of", "told", "said", "shown"];
/// Figures that grow with what the program does.
const GROWING: [&str; 3] = [
    "code lines",
    "lines of a file, median",
    "lines of a function, median",
];
const FUNCTION_LINES_MAX: usize = 100;
const FILE_LINES_MAX: usize = 700;

/// The counts over all files.
#[derive(Default)]
pub(super) struct Figures {
    code_lines: usize,
    files: Vec<usize>,
    functions: Vec<usize>,
    empty_functions: usize,
    /// The number of types of each name.
    types: BTreeMap<String, usize>,
    odd_words: usize,
    public_items: usize,
    undocumented_items: usize,
    /// The files of `contracts` that spell the keyword `$ref`.
    reference_files: usize,
}

impl Figures {
    pub(super) fn add(&mut self, file: &Path, text: &str) {
        if is_left_out(file) {
            return;
        }
        let text = text
            .split_once("#[cfg(test)]\nmod tests")
            .map_or(text, |(product, _)| product);
        let lines: Vec<&str> = text.lines().collect();
        self.files.push(lines.len());
        self.reference_files +=
            usize::from(file.starts_with("contracts") && text.contains("\"$ref\""));
        for (number, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            if code.starts_with("///") || code.starts_with("//!") {
                self.odd_words += odd_words(code);
            }
            if code.is_empty() || code.starts_with("//") {
                continue;
            }
            self.code_lines += 1;
            self.add_item(&lines, number, code);
        }
    }

    /// Counts what begins in a line of code.
    fn add_item(&mut self, lines: &[&str], number: usize, code: &str) {
        let item = code
            .strip_prefix("pub ")
            .or_else(|| {
                code.strip_prefix("pub(")
                    .and_then(|rest| Some(rest.split_once(") ")?.1))
            })
            .unwrap_or(code);
        let mut words = item
            .split_whitespace()
            .skip_while(|word| matches!(*word, "const" | "async" | "unsafe" | "extern" | "\"C\""));
        let (kind, name) = (words.next().unwrap_or_default(), words.next());
        let name = name.unwrap_or_default();
        let name: String = name
            .chars()
            .take_while(|char| char.is_alphanumeric() || *char == '_')
            .collect();
        let is_item = matches!(
            kind,
            "fn" | "struct" | "enum" | "trait" | "union" | "type" | "static"
        );
        if code.starts_with("pub ") && is_item {
            self.public_items += 1;
            self.undocumented_items += usize::from(!is_documented(lines, number));
        }
        match kind {
            "fn" => {
                self.empty_functions += usize::from(EMPTY_FUNCTIONS.contains(&&*name));
                self.functions.extend(function_length(lines, number));
            }
            "struct" | "enum" | "trait" | "union" if !name.is_empty() => {
                *self.types.entry(name).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Returns each figure with its name, in the order of `figures.txt`.
    pub(super) fn rows(&mut self) -> Vec<(&'static str, usize)> {
        let types: usize = self.types.values().sum();
        let shared: usize = self.types.values().filter(|count| **count > 1).sum();
        let one_word = self.types.iter().filter(|(name, _)| is_one_word(name));
        let one_word: usize = one_word.map(|(_, count)| count).sum();
        let over = |lengths: &[usize], most: usize| lengths.iter().filter(|it| **it > most).count();
        self.files.sort_unstable();
        self.functions.sort_unstable();
        vec![
            ("code lines", self.code_lines),
            ("lines of a file, median", part(&self.files, 50)),
            ("lines of a file, p95", part(&self.files, 95)),
            ("files over 700 lines", over(&self.files, FILE_LINES_MAX)),
            ("lines of a function, median", part(&self.functions, 50)),
            ("lines of a function, p95", part(&self.functions, 95)),
            (
                "functions over 100 lines",
                over(&self.functions, FUNCTION_LINES_MAX),
            ),
            (
                "functions called of, told, said or shown",
                self.empty_functions,
            ),
            (
                "types that share their name, per thousand",
                shared * 1000 / types.max(1),
            ),
            (
                "types of one word, per thousand",
                one_word * 1000 / types.max(1),
            ),
            (
                "public items without documentation, per thousand",
                self.undocumented_items * 1000 / self.public_items.max(1),
            ),
            ("odd words in documentation", self.odd_words),
            ("files of contracts that spell $ref", self.reference_files),
        ]
    }
}

/// Returns the rows as `figures.txt` has them.
pub(super) fn write(rows: &[(&str, usize)]) -> String {
    let mut text = String::new();
    for (name, figure) in rows {
        writeln!(text, "{figure:>7}  {name}").expect("a text can be written to");
    }
    text
}

/// Returns a problem for each figure that is higher than the one in `kept`.
pub(super) fn problems(rows: &[(&str, usize)], kept: &str) -> Vec<String> {
    let read = |line: &str| {
        let (figure, name) = line.trim_start().split_once("  ")?;
        Some((name.to_owned(), figure.parse().ok()?))
    };
    let kept: BTreeMap<String, usize> = kept.lines().filter_map(read).collect();
    let problem = |(name, figure): &(&str, usize)| match kept.get(*name) {
        Some(most) if figure <= most => None,
        Some(most) => Some(format!("{name}: {figure}, and there were {most}")),
        None => Some(format!("{name} is not in tests/tidy/figures.txt")),
    };
    let held = rows.iter().filter(|(name, _)| !GROWING.contains(name));
    held.filter_map(problem).collect()
}

fn is_left_out(file: &Path) -> bool {
    let is_outside = |part: std::path::Component<'_>| {
        ["tests", "guests", "fuzz", "tests.rs"]
            .iter()
            .any(|name| part.as_os_str() == *name)
    };
    file.components().any(is_outside)
}

/// Returns the figure that this part of all lies below, in percent.
fn part(sorted: &[usize], percent: usize) -> usize {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get(last * percent / 100)
        .copied()
        .unwrap_or_default()
}

fn odd_words(comment: &str) -> usize {
    let comment = comment.to_lowercase();
    let words = comment.split(|char: char| !char.is_alphanumeric());
    words.filter(|word| ODD_WORDS.contains(word)).count()
}

fn is_one_word(name: &str) -> bool {
    name.chars().filter(char::is_ascii_uppercase).count() == 1
}

/// Returns whether the lines above an item, its attributes aside, are documentation.
fn is_documented(lines: &[&str], number: usize) -> bool {
    let above = lines[..number].iter().rev().map(|line| line.trim());
    above
        .take_while(|line| !line.is_empty() && !line.ends_with([';', '}', '{']))
        .any(|line| line.starts_with("///"))
}

/// Returns the length of the function that begins in a line; `None` if it has no body.
fn function_length(lines: &[&str], number: usize) -> Option<usize> {
    let first = lines[number];
    if first.ends_with('}') {
        return Some(1);
    }
    let indent = first.len() - first.trim_start().len();
    let is_end = |line: &&str| line.len() - line.trim_start().len() == indent;
    let rest = lines[number..].iter();
    let (last, end) = rest.enumerate().skip(1).find(|(_, line)| {
        is_end(line) && (line.trim_start().starts_with('}') || line.ends_with(';'))
    })?;
    end.trim_start().starts_with('}').then_some(last + 1)
}
