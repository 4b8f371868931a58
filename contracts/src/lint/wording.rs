//! Names and descriptions: what comes back for which input, in words that help to choose.

use super::{
    DESCRIPTION_LONG, DESCRIPTION_MISSING, DESCRIPTION_OPENING, DESCRIPTION_REPEATS,
    DESCRIPTION_RESULT, DESCRIPTION_SHORT, IMPLEMENTATION_WORD, LintFindings, LintedTool,
    NAME_INVALID, NAME_LONG, NAME_VAGUE, VERSION_WORD,
};
use crate::name;

/// Fewer add nothing to the name.
pub(super) const WORDS_MIN: usize = 4;
/// The length that some models' interfaces take.
const CHARACTERS_MAX: usize = 1_024;

/// Names that could be anyone's.
const VAGUE: &[&str] = &[
    "action",
    "call",
    "command",
    "data",
    "do",
    "execute",
    "fetch",
    "function",
    "get",
    "handle",
    "handler",
    "helper",
    "invoke",
    "main",
    "operation",
    "perform",
    "process",
    "query",
    "request",
    "run",
    "task",
    "test",
    "tool",
    "util",
];

/// Words about how a tool is built. A tool that is about such a thing has the word in its name.
const IMPLEMENTATION: &[&str] = &[
    "api",
    "apis",
    "backend",
    "endpoint",
    "endpoints",
    "graphql",
    "grpc",
    "microservice",
    "middleware",
    "mongodb",
    "mysql",
    "orm",
    "postgres",
    "postgresql",
    "redis",
    "sql",
    "sqlite",
    "webservice",
    "wrapper",
];

/// Empty first words of a description, with the words that must follow the shorter ones.
const OPENINGS: &[(&str, &[&str])] = &[
    (
        "this",
        &[
            "tool",
            "function",
            "method",
            "endpoint",
            "operation",
            "is",
            "will",
            "allows",
            "can",
        ],
    ),
    ("use", &["this", "it", "when", "to"]),
    ("used", &["to", "for"]),
    ("tool", &["to", "for", "that", "which"]),
    ("a", &["tool", "function", "helper", "method"]),
    ("the", &["tool", "function", "method"]),
    ("allows", &[]),
    ("helper", &[]),
];

/// The words that names of reading tools begin with.
const READING: &[&str] = &[
    "count", "find", "get", "list", "lookup", "read", "search", "show",
];

/// Beginnings of words that mean that something is returned.
const ANSWERS: &[&str] = &[
    "answer", "calculat", "check", "comput", "count", "describ", "display", "download", "estimat",
    "extract", "fetch", "find", "generat", "get", "give", "list", "look", "output", "produc",
    "provid", "quer", "read", "report", "resolv", "result", "retriev", "return", "search", "see",
    "show", "summar", "tell", "translat", "view", "yield",
];

/// Words without meaning on their own.
const SMALL: &[&str] = &[
    "a", "an", "and", "by", "for", "from", "in", "of", "on", "the", "to", "with",
];

pub(super) fn check(tool: &LintedTool<'_>, findings: &mut LintFindings) {
    check_name(tool, findings);
    check_description(tool, findings);
    check_words(tool, findings);
}

/// Returns the words in small letters, without punctuation; `don't` is one word.
pub(super) fn words(text: &str) -> Vec<String> {
    let joined = text.replace(['\'', '’'], "").to_lowercase();
    joined
        .split(|next: char| !next.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns `true` if the text only repeats the name.
pub(super) fn repeats(text: &str, name: &str) -> bool {
    let telling = |words: Vec<String>| {
        let stem = |word: String| word.strip_suffix('s').map_or(word.clone(), str::to_owned);
        let mut telling: Vec<String> = words
            .into_iter()
            .filter(|word| !SMALL.contains(&word.as_str()))
            .map(stem)
            .collect();
        telling.sort_unstable();
        telling.dedup();
        telling
    };
    let telling_words = telling(words(text));
    !telling_words.is_empty() && telling_words == telling(name::words(name))
}

fn check_name(tool: &LintedTool<'_>, findings: &mut LintFindings) {
    if let Err(message) = name::check_tool(tool.name) {
        findings.add(Some(tool.name), "", NAME_INVALID, message);
    } else if tool.name.len() > name::TOOL_LENGTH_GOOD {
        let message = format!("the name has {} characters", tool.name.len());
        findings.add(Some(tool.name), "", NAME_LONG, message);
    }
    let words = name::words(tool.name);
    let bare: Vec<&str> = words
        .iter()
        .map(|word| word.trim_end_matches(|next: char| next.is_ascii_digit()))
        .collect();
    if !bare.is_empty()
        && bare
            .iter()
            .all(|word| word.is_empty() || VAGUE.contains(word))
    {
        findings.add(
            Some(tool.name),
            "",
            NAME_VAGUE,
            "the name does not say what is done to what".to_owned(),
        );
    }
}

fn check_description(tool: &LintedTool<'_>, findings: &mut LintFindings) {
    let words = words(tool.description);
    let spaced = words.iter().all(|word| word.is_ascii());
    let (rule, message) = match words.len() {
        0 => (DESCRIPTION_MISSING, "there is no description".to_owned()),
        _ if repeats(tool.description, tool.name) => (
            DESCRIPTION_REPEATS,
            "the description only repeats the name".to_owned(),
        ),
        // Some scripts write no spaces.
        count if count < WORDS_MIN && spaced => (
            DESCRIPTION_SHORT,
            format!("the description has {count} words"),
        ),
        _ => return check_long(tool, &words, findings),
    };
    findings.add(Some(tool.name), "", rule, message);
}

fn check_long(tool: &LintedTool<'_>, words: &[String], findings: &mut LintFindings) {
    let characters = tool.description.chars().count();
    if characters > CHARACTERS_MAX {
        findings.add(
            Some(tool.name),
            "",
            DESCRIPTION_LONG,
            format!("the description has {characters} characters"),
        );
    }
    let second = words.get(1).map_or("", String::as_str);
    let opening = OPENINGS
        .iter()
        .any(|(first, next)| words[0] == *first && (next.is_empty() || next.contains(&second)));
    if opening {
        let message = format!(
            "the description begins with {}",
            name::quoted(&format!("{} {second}", words[0]))
        );
        findings.add(Some(tool.name), "", DESCRIPTION_OPENING, message);
    }
    let reads = tool.is_reading
        || name::words(tool.name)
            .iter()
            .any(|word| READING.contains(&word.as_str()));
    let answers = words
        .iter()
        .any(|word| ANSWERS.iter().any(|start| word.starts_with(start)));
    if reads && !answers && words.iter().all(|word| word.is_ascii()) {
        findings.add(
            Some(tool.name),
            "",
            DESCRIPTION_RESULT,
            "the description does not say what comes back".to_owned(),
        );
    }
}

fn check_words(tool: &LintedTool<'_>, findings: &mut LintFindings) {
    let mut about = name::words(tool.name);
    about.extend(tool.title.map(words).unwrap_or_default());
    let description = words(tool.description);
    let built = description.iter().enumerate().find(|(at, word)| {
        let is_key = description
            .get(at + 1)
            .is_some_and(|next| next.starts_with("key") || next.starts_with("token"));
        let stem = word.trim_end_matches('s');
        IMPLEMENTATION.contains(&word.as_str())
            && !is_key
            && !about
                .iter()
                .any(|known| known.trim_end_matches('s') == stem)
    });
    if let Some((_, word)) = built {
        let message = format!(
            "the description says {}, which is about how it is built",
            name::quoted(word)
        );
        findings.add(Some(tool.name), "", IMPLEMENTATION_WORD, message);
    }
    let number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty();
    let version = |word: &String| word.strip_prefix('v').is_some_and(number);
    let said_twice = |pair: &[String]| pair[0] == "version" && number(&pair[1]);
    if let Some(word) = name::words(tool.name)
        .iter()
        .chain(&description)
        .find(|word| version(word))
    {
        findings.add(
            Some(tool.name),
            "",
            VERSION_WORD,
            format!("it names the version {}", name::quoted(word)),
        );
    } else if let Some(pair) = description.windows(2).find(|pair| said_twice(pair)) {
        findings.add(
            Some(tool.name),
            "",
            VERSION_WORD,
            format!("it names the version {}", name::quoted(&pair[1])),
        );
    }
}
