//! Names of commands before version 0.1.0. For one release each old name prints the new one and runs it; then this
//! file is removed.

use std::ffi::OsString;

/// The words of an old command, and those that it begins with now, the longest first.
const MOVED: [(&[&str], &str); 13] = [
    (&["llms"], "tools llms"),
    (&["openapi"], "tools openapi"),
    (&["check", "clients"], "tools clients"),
    (&["check"], "tools clients"),
    (&["views", "cost"], "tools cost"),
    (&["views"], "tools cost"),
    (&["validate"], "tools validate"),
    (&["import", "openapi"], "draft --openapi"),
    (&["import", "toolbox"], "draft --toolbox"),
    (&["import"], "draft --openapi"),
    (&["compose"], "extract --lists"),
    (&["lock"], "contracts lock"),
    (&["backup"], "state backup"),
];

/// A command line with an old name, and its present form.
pub(super) struct MovedLine {
    pub(super) words: Vec<OsString>,
    /// The sentence that names the new command.
    pub(super) note: String,
}

/// Returns the present form of a line that begins with an old name, or asks for its help.
pub(super) fn moved_line(line: &[OsString]) -> Option<MovedLine> {
    let (asks_for_help, line) = match line {
        [help, rest @ ..] if help == "help" => (true, rest),
        line => (false, line),
    };
    let (old, new) = MOVED
        .iter()
        .find(|(old, _)| line.len() >= old.len() && line.iter().zip(*old).all(|(a, b)| a == b))?;
    let mut rest = line[old.len()..].to_vec();
    rest.extend(asks_for_help.then(|| "--help".into()));
    let words = new_words(new, rest);
    let shown: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let shown: Vec<String> = without_headers(&shown)
        .iter()
        .map(|word| quoted(word))
        .collect();
    let note = format!(
        "`weir {}` is `weir {new}` now: weir {}",
        old.join(" "),
        shown.join(" ")
    );
    Some(MovedLine { words, note })
}

/// Returns the new command with the arguments of the old one.
fn new_words(new: &str, mut rest: Vec<OsString>) -> Vec<OsString> {
    let (command, flag) = match new.split_once(" --") {
        Some((command, flag)) => (command, Some(flag)),
        None => (new, None),
    };
    if let Some(flag) = flag {
        // The value of the flag comes first, or last after other flags.
        rest.retain(|word| word != "--");
        let is_flag = |word: &OsString| word != "-" && word.as_encoded_bytes().starts_with(b"-");
        let at = match rest.first() {
            Some(word) if is_flag(word) => rest.len() - 1,
            _ => 0,
        };
        if !rest.iter().any(|word| word == "-h" || word == "--help") {
            rest.insert(at, format!("--{flag}").into());
        }
    }
    let command = command.split(' ').map(OsString::from);
    command.chain(rest).collect()
}

/// Returns the words without the values of headers, which may be secrets that the shell has put in.
fn without_headers(words: &[String]) -> Vec<String> {
    const SHOWN: &str = "NAME: VALUE";
    let mut shown = words.to_vec();
    for at in 0..shown.len() {
        if at > 0 && words[at - 1] == "--header" {
            shown[at] = SHOWN.to_owned();
        } else if words[at].starts_with("--header=") {
            shown[at] = format!("--header={SHOWN}");
        }
    }
    shown
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "-_./:=,@%+".contains(char);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
        process::Command,
    };

    use clap::CommandFactory as _;

    use super::*;
    use crate::CliArgs;

    fn note_of(line: &[&str]) -> Option<String> {
        let line: Vec<OsString> = line.iter().map(OsString::from).collect();
        Some(moved_line(&line)?.note)
    }

    #[test]
    fn an_old_line_is_answered_with_the_new_one() {
        for (line, expected) in [
            (
                &["backup", "/var/b"][..],
                Some("`weir backup` is `weir state backup` now: weir state backup /var/b"),
            ),
            (
                &["import", "openapi", "a b.yaml", "--only", "*"],
                Some(
                    "`weir import openapi` is `weir draft --openapi` now: weir draft --openapi 'a b.yaml' --only '*'",
                ),
            ),
            (
                &["compose", "--compact", "l.json"],
                Some(
                    "`weir compose` is `weir extract --lists` now: weir extract --compact --lists l.json",
                ),
            ),
            (
                &["import", "--help"],
                Some("`weir import` is `weir draft --openapi` now: weir draft --help"),
            ),
            (
                &[
                    "import",
                    "openapi",
                    "a",
                    "--header",
                    "Authorization: secret",
                ],
                Some(
                    "`weir import openapi` is `weir draft --openapi` now: weir draft --openapi a --header 'NAME: VALUE'",
                ),
            ),
            (
                &["help", "lock"],
                Some("`weir lock` is `weir contracts lock` now: weir contracts lock --help"),
            ),
            (&["contracts", "lock"], None),
            (&[], None),
        ] {
            assert_eq!(note_of(line).as_deref(), expected, "{line:?}");
        }
        let line = ["import", "openapi", "a b", "--header", "A: secret"].map(OsString::from);
        let words = moved_line(&line).expect("an old name").words;
        assert_eq!(
            words,
            ["draft", "--openapi", "a b", "--header", "A: secret"]
        );
    }

    #[test]
    fn the_new_names_are_there_and_the_old_ones_are_not() {
        let program = CliArgs::command();
        for (old, new) in MOVED {
            assert!(program.find_subcommand(old[0]).is_none(), "{old:?}");
            let (first, second) = new.split_once(' ').expect("two words");
            let command = program.find_subcommand(first).expect(new);
            let is_there = match second.strip_prefix("--") {
                Some(flag) => command
                    .get_arguments()
                    .any(|it| it.get_long() == Some(flag)),
                None => command.find_subcommand(second).is_some(),
            };
            assert!(is_there, "{new}");
        }
    }

    /// Pages and messages name commands that exist. Only the page about the change and the changelog name both.
    #[test]
    fn no_page_and_no_message_names_an_old_command() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let listed = Command::new("git")
            .args(["ls-files", "-z"])
            .current_dir(&repository)
            .output()
            .expect("git runs");
        let listed = String::from_utf8(listed.stdout).expect("names in UTF-8");
        let left_out = [
            "docs/decisions/commands.md",
            "CHANGELOG.md",
            "cli/src/moved.rs",
        ];
        let mut found = Vec::new();
        for file in listed.split('\0').filter(|file| !left_out.contains(file)) {
            let path: PathBuf = repository.join(file);
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            for (number, line) in text.lines().enumerate() {
                let named = MOVED.iter().find(|(old, _)| {
                    let name = format!("weir {}", old.join(" "));
                    line.match_indices(&name).any(|(at, _)| {
                        let after = line[at + name.len()..].chars().next();
                        after.is_none_or(|it| !it.is_alphanumeric() && it != '_' && it != '-')
                    })
                });
                if let Some((old, new)) = named {
                    found.push(format!("{file}:{}: {old:?} is `weir {new}`", number + 1));
                }
            }
        }
        assert!(found.is_empty(), "\n{}", found.join("\n"));
    }
}
