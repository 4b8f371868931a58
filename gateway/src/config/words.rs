//! Turns deserialisation errors into messages for the author of `weir.toml`. A value may be a secret and is never repeated.

use weir_contracts::name;

/// The fault in one key's value, and what to do.
pub(super) struct KeyFault {
    pub(super) message: String,
    pub(super) hint: String,
    /// The key that is unknown or missing.
    pub(super) unknown: Option<String>,
    pub(super) missing: Option<String>,
}

/// Reads a message about the value of `key`. `least` is the smallest whole number that it accepts.
pub(super) fn parse_fault(error: &str, key: &str, least: u64) -> KeyFault {
    let plain = |message: String, hint: String| KeyFault {
        message,
        hint,
        unknown: None,
        missing: None,
    };
    let quoted: Vec<&str> = error.split('`').skip(1).step_by(2).collect();
    if error.starts_with("unknown field ")
        && let [unknown, known @ ..] = &quoted[..]
    {
        let unknown = (*unknown).to_owned();
        let fault = plain(
            format!("unknown key `{unknown}`"),
            known_keys(&unknown, known),
        );
        return KeyFault {
            unknown: Some(unknown),
            ..fault
        };
    }
    if let (true, [missing, ..]) = (error.starts_with("missing field "), &quoted[..]) {
        let missing = (*missing).to_owned();
        let hint = match &*missing {
            "kind" => "write kind = \"sqlite\", \"postgresql\", \"mariadb\", \"mysql\", \"http\" or \"files\""
                .to_owned(),
            key => format!("write {key} = …"),
        };
        return KeyFault {
            missing: Some(missing.clone()),
            ..plain(format!("`{missing}` is missing"), hint)
        };
    }
    if error.starts_with("unknown variant ") {
        let known = quoted.get(1..).unwrap_or_default();
        let near = quoted
            .first()
            .and_then(|found| name::nearest(found, known.iter().copied()));
        let hint = near.map_or_else(String::new, |near| format!("did you mean \"{near}\"?"));
        return plain(format!("must be {}", either(known)), hint);
    }
    if error.contains("socket address") {
        return plain(
            "must be an address with its port".to_owned(),
            "write it as \"127.0.0.1:8484\"".to_owned(),
        );
    }
    if error == super::RATE {
        return plain(
            error.to_owned(),
            "write it as \"1000/s\", \"600/min\" or \"off\"".to_owned(),
        );
    }
    let Some((found, expected)) = error
        .split_once(", expected ")
        .filter(|(found, _)| found.starts_with("invalid "))
    else {
        return plain(error.to_owned(), String::new());
    };
    let is_text = found.contains("string");
    if let Some(most) = most(expected) {
        return plain(
            format!("must be a whole number from {least} to {most}"),
            number(key, is_text),
        );
    }
    if (found, expected) == ("invalid type: map", "a sequence") {
        let hint = match key {
            "issuers" => "write its header with two brackets on each side, as [[identity.issuers]]",
            _ => "write it in brackets, as [\"one\", \"another\"] or [{ name = \"value\" }]",
        };
        return plain("must be a list".to_owned(), hint.to_owned());
    }
    let (must, hint) = expectation(expected);
    let hint = match (is_text, hint) {
        (true, "") => "write it without quotes",
        (false, "") => "leave it out for the default",
        (_, hint) => hint,
    };
    plain(format!("must be {must}"), hint.to_owned())
}

/// Returns the largest number of a type.
fn most(expected: &str) -> Option<u64> {
    match expected {
        "u8" => Some(u64::from(u8::MAX)),
        "u16" => Some(u64::from(u16::MAX)),
        "u32" => Some(u64::from(u32::MAX)),
        // The largest number that TOML has.
        "usize" | "u64" | "i64" => Some(i64::MAX.unsigned_abs()),
        _ => None,
    }
}

/// Returns how the number of a key is written: its name ends in the unit.
fn number(key: &str, is_text: bool) -> String {
    let units = [
        ("_ms", " of milliseconds", "5000"),
        ("_s", " of seconds", "60"),
        ("_days", " of days", "30"),
        ("_mb", " of MB", "64"),
        ("_bytes", " of bytes", "1048576"),
    ];
    let unit = units.into_iter().find(|(ending, ..)| key.ends_with(ending));
    let (_, unit, example) = unit.unwrap_or(("", "", "100"));
    match is_text {
        true => format!("write a number{unit} without quotes, such as {example}"),
        false => format!("write a number{unit} such as {example}, or leave it out for the default"),
    }
}

fn expectation(expected: &str) -> (String, &'static str) {
    match expected {
        "a boolean" => ("true or false".to_owned(), ""),
        "a string" | "path string" => ("a text".to_owned(), "write it in quotes"),
        "a sequence" => (
            "a list of texts".to_owned(),
            "write it as [\"one\", \"another\"]",
        ),
        "a map" => ("a table".to_owned(), "write it as { name = \"value\" }"),
        other if other.starts_with("struct ") => (
            "a table".to_owned(),
            "give it a header of its own, in brackets",
        ),
        other => (other.to_owned(), "see docs/configuration.md"),
    }
}

fn known_keys(unknown: &str, known: &[&str]) -> String {
    match name::nearest(unknown, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

fn either(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match &words[..] {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
