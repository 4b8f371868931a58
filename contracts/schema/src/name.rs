//! Names of fields and of other parts of a schema: the rule for them, how messages write them, and the nearest one that is
//! meant.

use std::borrow::Cow;

use deunicode::deunicode;
use weir_text::shorten;

/// Longest name of a field that every reader takes.
pub const FIELD_LENGTH_MAX: usize = 64;

/// Returns `true` for `[A-Za-z0-9_.-]{1,64}`. Some models' interfaces refuse every tool of a request if one input has
/// another key.
pub fn is_field(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= FIELD_LENGTH_MAX
        && name.chars().all(|next| is_plain(next) || next == '.')
}

/// Checks like [`is_field`], with a sentence as the error.
pub fn check_field(name: &str) -> Result<(), String> {
    match is_field(name) {
        true => Ok(()),
        false => Err(format!(
            "the field name {} is not 1 to 64 of A-Z, a-z, 0-9, '_', '.' and '-'",
            quoted(name)
        )),
    }
}

/// Returns the name that a field may have instead: `Amount_EUR` for `Amount (EUR)`, `Grosse` for `Größe`.
pub fn plain_field(name: &str) -> String {
    let mut plain = String::new();
    for character in deunicode(name).chars() {
        match character {
            '-' | '.' => plain.push(character),
            letter if letter.is_ascii_alphanumeric() => plain.push(letter),
            _ if plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    let plain: String = plain
        .trim_matches('_')
        .chars()
        .take(FIELD_LENGTH_MAX)
        .collect();
    if plain.is_empty() {
        "field".to_owned()
    } else {
        plain
    }
}

/// Returns a name for a message: short, and harmless to a terminal.
pub fn quoted(name: &str) -> String {
    let shown: String = shorten(name, 80)
        .chars()
        .flat_map(char::escape_debug)
        .collect();
    format!("'{shown}'")
}

/// Returns the nearest of the known names, if one is near enough to be meant.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    const ALIKE: f64 = 0.55;
    let end = name
        .char_indices()
        .nth(FIELD_LENGTH_MAX)
        .map_or(name.len(), |(end, _)| end);
    let wanted = lowercase(&name[..end]);
    let wanted_length = wanted.chars().count();
    let mut best: Option<(f64, &str)> = None;
    for candidate in known {
        let lower = lowercase(candidate);
        let length = lower.chars().count();
        let longest = wanted_length.max(length).max(1) as f64;
        let part = wanted_length.min(length) >= 3
            && (is_part(&lower, &wanted) || is_part(&wanted, &lower));
        let likeness = |changes: usize| 1.0 - changes as f64 / longest;
        let enough =
            |likeness: f64| likeness >= ALIKE && best.is_none_or(|(found, _)| likeness > found);
        let likeness = match part {
            true => 0.9,
            // Each character more or less is a change.
            false if !enough(likeness(wanted_length.abs_diff(length))) => continue,
            false => likeness(changes(&wanted, &lower)),
        };
        if enough(likeness) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns the name in lowercase, which most names are in already.
fn lowercase(name: &str) -> Cow<'_, str> {
    match name
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
    {
        true => name.into(),
        false => name.to_lowercase().into(),
    }
}

/// Searches like `str::contains`, but without its preparation, which pays only in long texts.
fn is_part(part: &str, name: &str) -> bool {
    name.len() >= part.len()
        && name
            .as_bytes()
            .windows(part.len())
            .any(|window| window == part.as_bytes())
}

/// Counts changes by optimal string alignment. A common start and end need no change, and are most of two similar
/// names.
fn changes(one: &str, other: &str) -> usize {
    let alike = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other);
    let start: usize = alike.map(|(character, _)| character.len_utf8()).sum();
    let (one, other) = (&one[start..], &other[start..]);
    let alike = one
        .chars()
        .rev()
        .zip(other.chars().rev())
        .take_while(|(one, other)| one == other);
    let end: usize = alike.map(|(character, _)| character.len_utf8()).sum();
    match (&one[..one.len() - end], &other[..other.len() - end]) {
        ("", more) | (more, "") => more.chars().count(),
        (one, other) => strsim::osa_distance(one, other),
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// Returns `true` for a character that is not seen, or that changes how others are.
pub fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_plain_names() {
        for (bad, plain) in [
            ("Amount (EUR)", "Amount_EUR"),
            ("Paid?", "Paid"),
            ("Größe", "Grosse"),
            ("名前", "Ming_Qian"),
            ("a/b", "a_b"),
            ("$", "field"),
        ] {
            assert!(check_field(bad).is_err(), "{bad}");
            assert_eq!(plain_field(bad), plain);
            assert!(check_field(plain).is_ok(), "{plain}");
        }
        assert!(check_field("a.B-c_1").is_ok());
        assert!(is_field(&plain_field(&"ü?".repeat(80))));
    }

    #[test]
    fn nearest_means_near() {
        assert_eq!(nearest("subjet", ["subject", "status"]), Some("subject"));
        assert_eq!(nearest("email_address", ["name", "email"]), Some("email"));
        assert_eq!(nearest("zzz", ["subject", "status"]), None);
    }

    proptest::proptest! {
        #[test]
        fn what_is_alike_at_both_ends_takes_no_change(one in "[abé]{0,8}", other in "[abé]{0,8}") {
            proptest::prop_assert_eq!(changes(&one, &other), strsim::osa_distance(&one, &other));
        }
    }
}
