//! Names of contracts, collections and tools: each rule once, with the sentence that refuses. The rules for the fields
//! of a schema are in [`weir_schema::name`].

pub(crate) use weir_schema::name::FIELD_LENGTH_MAX;
pub use weir_schema::name::{check_field, is_field, is_invisible, nearest, plain_field, quoted};

/// Longest tool name that clients take with their own `mcp__server__` in front; above it is a warning.
pub const TOOL_LENGTH_GOOD: usize = 45;
const TOOL_LENGTH_MAX: usize = 64;

/// Checks that a contract's name is `[a-z][a-z0-9-]{0,31}`. It is also a segment of paths.
pub fn check_contract(name: &str) -> Result<(), String> {
    let mut characters = name.chars();
    let starts = characters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase());
    let continues =
        characters.all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || next == '-');
    match starts && continues && name.len() <= 32 {
        true => Ok(()),
        false => Err(format!(
            "the contract name {} is not a lowercase letter followed by up to 31 of a-z, 0-9 and '-'",
            quoted(name)
        )),
    }
}

/// Returns `true` for `[A-Za-z0-9_-]{1,64}`, which every known client accepts. With one bad name, some clients
/// refuse the whole list.
pub fn is_tool(name: &str) -> bool {
    check_tool(name).is_ok()
}

/// Checks like [`is_tool`], with a sentence as the error. The prefix is part of the name.
pub fn check_tool(name: &str) -> Result<(), String> {
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "the tool name {} is not made of A-Z, a-z, 0-9, '_' and '-'",
            quoted(name)
        ));
    }
    if name.len() > TOOL_LENGTH_MAX {
        return Err(format!(
            "the tool name {} is longer than {TOOL_LENGTH_MAX} characters",
            quoted(name)
        ));
    }
    Ok(())
}

/// Returns the published name of `name`: the prefix and the name, joined by `_` if the prefix does not end with `_` or `-`.
pub fn prefixed(prefix: &str, name: &str) -> String {
    let is_joined = prefix.is_empty() || prefix.ends_with(['_', '-']);
    format!("{prefix}{}{name}", if is_joined { "" } else { "_" })
}

/// Checks that a collection's name is `[A-Za-z0-9_-]{1,64}`.
pub fn check_collection(name: &str) -> Result<(), String> {
    match !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(format!(
            "the collection name {} is not 1 to 64 of A-Z, a-z, 0-9, '_' and '-'",
            quoted(name)
        )),
    }
}

/// The words that no argument of a function in Python may have as its name.
const PYTHON_WORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Returns `true` if clients that make a function of a tool can name an argument so: `from`, `class`, `a-b` and `a.b` they
/// cannot.
pub fn is_python_name(name: &str) -> bool {
    let starts = name
        .chars()
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    starts
        && name
            .chars()
            .all(|next| next.is_ascii_alphanumeric() || next == '_')
        && !PYTHON_WORDS.contains(&name)
}

/// Checks that a field's name is `[^\s]{1,64}` in any script, which is for fields that are in no schema. It may have no
/// invisible characters, since two names that look alike are a trap.
pub fn check_bound_field(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the field name is empty".to_owned());
    }
    if name.chars().count() > FIELD_LENGTH_MAX {
        return Err(format!(
            "the field name {} is longer than {FIELD_LENGTH_MAX} characters",
            quoted(name)
        ));
    }
    if name
        .chars()
        .any(|character| character.is_whitespace() || is_invisible(character))
    {
        return Err(format!(
            "the field name {} has white space or invisible characters",
            quoted(name)
        ));
    }
    Ok(())
}

/// Splits a name into words: `userApiKey`, `user_api-key` and `API key` are user, api, key.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for character in name.chars() {
        let starts = character.is_uppercase() && !last.is_uppercase();
        match character.is_alphanumeric() {
            true if starts || !last.is_alphanumeric() || words.is_empty() => {
                words.push(character.to_lowercase().collect());
            }
            true => {
                if let Some(word) = words.last_mut() {
                    word.extend(character.to_lowercase());
                }
            }
            false => {}
        }
        last = character;
    }
    words
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// Returns `true` if the name matches: `*` matches any characters, `?` one. Each star is tried once, because a later star can
/// match whatever an earlier one leaves.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut in_name) = (0, 0);
    let mut star = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(next) if *next == '?' || *next == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((of_star, taken)) => {
                    star = Some((of_star, taken + 1));
                    at = of_star + 1;
                    in_name = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_joined_once() {
        for (prefix, wanted) in [
            ("", "list"),
            ("ops", "ops_list"),
            ("ops_", "ops_list"),
            ("ops-", "ops-list"),
        ] {
            assert_eq!(prefixed(prefix, "list"), wanted);
        }
    }

    #[test]
    fn names() {
        for (name, good) in [
            ("support", true),
            ("a", true),
            ("a-1", true),
            ("", false),
            ("1a", false),
            ("A", false),
            ("a_b", false),
        ] {
            assert_eq!(check_contract(name).is_ok(), good, "{name}");
        }
        assert!(check_contract(&"a".repeat(32)).is_ok());
        assert!(check_contract(&"a".repeat(33)).is_err());
        assert!(check_tool(&"a".repeat(64)).is_ok());
        assert!(check_tool(&"a".repeat(65)).is_err());
        for bad in ["", "a b", "a.b", "a/b", "ü", "a\n", "а"] {
            assert!(check_tool(bad).is_err(), "{bad}");
        }
        for good in ["Größe", "名前", "a.b", "__proto__", &"ü".repeat(64)] {
            assert!(check_bound_field(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a b",
            "a\u{200b}b",
            "a\u{0}",
            "\u{3000}",
            &"ü".repeat(65),
        ] {
            assert!(check_bound_field(bad).is_err(), "{bad}");
            assert!(check_field(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_of_names() {
        for (pattern, name, is_meant) in [
            ("*", "", true),
            ("*", "anything", true),
            ("delete_*", "delete_all", true),
            ("delete_*", "undelete_all", false),
            ("*_all", "delete_all", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbX", false),
            ("get_?", "get_a", true),
            ("get_?", "get_", false),
            ("get", "get_a", false),
            ("*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("Größe*", "Größe_1", true),
        ] {
            assert_eq!(matches(pattern, name), is_meant, "{pattern} {name}");
        }
    }
}
