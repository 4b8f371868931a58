//! Names and sentences of a stranger, as a contract may have them.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use crate::name;

const NAME_MAX: usize = 64;

/// Writes `GitHub v3 REST API` as `github-v3-rest-api`.
pub(super) fn contract_name(title: &str) -> String {
    let words = snake(title).replace('_', "-");
    let name: String = words
        .trim_start_matches(|first: char| !first.is_ascii_lowercase())
        .chars()
        .take(32)
        .collect();
    let name = name.trim_end_matches('-');
    if name.is_empty() {
        "api".to_owned()
    } else {
        name.to_owned()
    }
}

/// Writes `issues/listForRepo` as `issues_list_for_repo`.
pub(super) fn snake(name: &str) -> String {
    let plain = deunicode::deunicode(name);
    let letters: Vec<char> = plain.chars().collect();
    let mut snake = String::new();
    for (index, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            if !snake.ends_with('_') && !snake.is_empty() {
                snake.push('_');
            }
            continue;
        }
        let before = index.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(index + 1);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if begins && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake.trim_end_matches('_').to_owned()
}

/// Makes a tool's name that no other tool has. A name that is too long is cut and marked by a digest of `whole`, so
/// that it is the same each time.
pub(super) fn tool_name(wanted: &str, whole: &str, taken: &BTreeSet<String>) -> String {
    let marked = |length: usize| {
        let digest: String = Sha256::digest(whole)
            .iter()
            .take(3)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let cut: String = wanted.chars().take(length).collect();
        format!("{}_{digest}", cut.trim_end_matches('_'))
    };
    match wanted.len() > NAME_MAX || taken.contains(wanted) || wanted.is_empty() {
        true => marked(NAME_MAX - 7),
        false => wanted.to_owned(),
    }
}

/// Makes a field's name that no other field has, and that clients which make a function of each tool take.
pub(super) fn field_name(wanted: &str, taken: &BTreeSet<String>) -> String {
    let plain = argument_name(wanted);
    let free = |candidate: &String| !taken.contains(candidate);
    let cut: String = plain.chars().take(NAME_MAX - 4).collect();
    let others = (2..).map(|number| format!("{cut}_{number}"));
    std::iter::once(plain)
        .chain(others)
        .find(free)
        .expect("numbers do not end")
}

/// Returns the name that an argument of a function may have instead: `X_Trace` for `X-Trace`, `from_value` for `from`.
fn argument_name(wanted: &str) -> String {
    let plain = match name::is_field(wanted) {
        true => wanted.to_owned(),
        false => name::plain_field(wanted),
    };
    let plain = plain.replace(['-', '.'], "_");
    if name::is_python_name(&plain) {
        return plain;
    }
    match plain.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("field_{plain}").chars().take(NAME_MAX).collect(),
        false => format!("{plain}_value"), // a word of Python, which is short
    }
}

/// Returns what a reader sees of a text: no control or invisible characters, no comments, at most `most` characters,
/// and whole sentences if possible.
pub(super) fn sentence(text: &str, most: usize) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        shown.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    let shown: String = shown
        .chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || name::is_invisible(*c)))
        .collect();
    let shown = shown.trim();
    if shown.chars().count() <= most {
        return shown.to_owned();
    }
    let cut: String = shown.chars().take(most).collect();
    let ends = [". ", ".\n", "\n\n"]
        .iter()
        .filter_map(|end| Some(cut.rfind(end)? + 1))
        .max();
    match ends.filter(|end| *end > most / 3) {
        Some(end) => cut[..end].trim_end().to_owned(),
        None => {
            let cut: String = cut.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", cut.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made() {
        for (name, expected) in [
            ("issues/list-for-repo", "issues_list_for_repo"),
            ("getFileMeta", "get_file_meta"),
            ("GET /v1/HTTPServers/{id}", "get_v1_http_servers_id"),
            ("Ünïcode op", "unicode_op"),
        ] {
            assert_eq!(snake(name), expected);
        }
        assert_eq!(contract_name("GitHub v3 REST API"), "git-hub-v3-rest-api");
        assert_eq!(contract_name("42"), "api");
        let taken = BTreeSet::from(["a".to_owned()]);
        assert_eq!(field_name("a", &taken), "a_2");
        for (wanted, name) in [
            ("filter[a b]", "filter_a_b"),
            ("X-Trace", "X_Trace"),
            ("user.name", "user_name"),
            ("from", "from_value"),
            ("2fa", "field_2fa"),
            ("_id", "_id"),
        ] {
            assert_eq!(field_name(wanted, &taken), name);
        }
        let long = "x".repeat(80);
        let name = tool_name(&long, "GET /x", &taken);
        assert!(
            name.len() == 64
                && name == tool_name(&long, "GET /x", &taken)
                && name != tool_name(&long, "GET /y", &taken)
        );
        assert_ne!(tool_name("a", "GET /a", &taken), "a");
    }

    #[test]
    fn sentences_are_cut_at_their_end() {
        assert_eq!(sentence("a<!-- ignore --> b\u{200b}\u{7}", 10), "a b");
        assert_eq!(
            sentence("One sentence. Another one that is long.", 20),
            "One sentence."
        );
        assert_eq!(sentence(&"y".repeat(30), 10), format!("{}…", "y".repeat(9)));
    }
}
