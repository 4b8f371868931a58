//! The variables that the program reads: those that are misspelt, and those whose value is refused.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
};

use clap::{
    Command,
    error::{ContextKind, ContextValue, Error},
};

/// The variables without a flag of their own.
const WITHOUT_FLAG: [&str; 3] = ["WEIR_LOG", "WEIR_KEY", "WEIR_ADMIN_KEY"];
const PREFIX: &str = "WEIR_";

/// Returns a sentence for each variable whose name is nearly that of one which the program reads, and which is not set itself.
/// Other names of this prefix may belong to a configuration, whose secrets are variables too. A process that another one of this
/// program starts reports nothing.
pub(super) fn misspelt_variables(command: &Command, line: &[OsString]) -> Vec<String> {
    let set: BTreeSet<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    let named = line.get(1).and_then(|word| command.find_subcommand(word));
    if set.is_empty() || named.is_some_and(Command::is_hide_set) {
        return Vec::new();
    }
    let mut known = BTreeSet::from(WITHOUT_FLAG.map(str::to_owned));
    add_variables(command, &mut known);
    let notes = set.difference(&known).filter_map(|name| {
        let near = known.difference(&set).find(|known| is_near(name, known))?;
        Some(format!(
            "the variable {name} is not read; did you mean {near}?"
        ))
    });
    notes.collect()
}

/// Returns the variable that an error is about, if its flag is not on the line.
pub(super) fn refused_variable(
    error: &Error,
    command: &Command,
    line: &[OsString],
) -> Option<String> {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let flag = shown.split(' ').next()?;
    let is_flag = |word: &OsString| word.as_encoded_bytes().starts_with(flag.as_bytes());
    if line.iter().any(is_flag) {
        return None;
    }
    variable_of(command, flag.strip_prefix("--")?)
}

/// Returns the variable of a flag, whichever command has it.
fn variable_of(command: &Command, flag: &str) -> Option<String> {
    let own = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(flag))
        .and_then(|argument| argument.get_env()?.to_str())
        .filter(|name| std::env::var_os(name).is_some());
    own.map(str::to_owned).or_else(|| {
        command
            .get_subcommands()
            .find_map(|command| variable_of(command, flag))
    })
}

fn add_variables(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(clap::Arg::get_env);
    known.extend(variables.filter_map(OsStr::to_str).map(str::to_owned));
    for command in command.get_subcommands() {
        add_variables(command, known);
    }
}

/// Returns `true` if the names differ in a part of at most two letters, or fewer for a short name.
fn is_near(name: &str, known: &str) -> bool {
    let [name, known] = [name, known].map(|name| &name.as_bytes()[PREFIX.len()..]);
    let alike = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let begin = name.iter().zip(known).take_while(alike).count();
    let end = name.iter().rev().zip(known.iter().rev());
    let same = begin + end.take_while(alike).count();
    let other = name.len().max(known.len()).saturating_sub(same);
    other <= (known.len() / 3).min(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_near_if_few_letters_differ() {
        for (name, known) in [
            ("WEIR_LISTN", "WEIR_LISTEN"),
            ("WEIR_LITSEN", "WEIR_LISTEN"),
            ("WEIR_LOGS", "WEIR_LOG"),
            ("WEIR_KEYS", "WEIR_KEY"),
            ("WEIR_LOGFORMAT", "WEIR_LOG_FORMAT"),
            ("WEIR_CONTRACT", "WEIR_CONTRACTS"),
        ] {
            assert!(is_near(name, known), "{name} {known}");
        }
        for (name, known) in [
            ("WEIR_STATE_URL", "WEIR_STATE"),
            ("WEIR_SCRAPE_TOKEN", "WEIR_STATE"),
            ("WEIR_COMMIT", "WEIR_CONFIG"),
            ("WEIR_URL", "WEIR_KEY"),
            ("WEIR_", "WEIR_KEY"),
        ] {
            assert!(!is_near(name, known), "{name} {known}");
        }
    }
}
