//! Flags of members of an argument that is an object.

use clap::Command;
use serde_json::{Map, Value};
use weir_contracts::{schema::without_null, text};

use super::{by_flag, by_position, dashed, value};

/// A member of an argument that is an object: `--meta.tag blue`.
pub(crate) struct MemberFlag {
    /// The names from the argument to the member.
    path: Vec<String>,
    value: Value,
    /// The number of words in front of it that are not flags of members.
    words_before: usize,
    /// The whole argument follows this one, by its flag or by its position.
    is_before_whole: bool,
}

impl MemberFlag {
    fn flag(&self) -> String {
        format!("--{}", dashed(&self.path.join(".")))
    }

    /// Returns `true` if `later` gives an object that contains this member, and so replaces it.
    fn is_within(&self, later: &Self) -> bool {
        self.path.len() > later.path.len() && self.path.starts_with(&later.path)
    }
}

/// Splits flags of members from the other words, which the tool's own command reads.
pub(crate) fn split_members(
    schema: &Value,
    command: &Command,
    line: &[String],
) -> (Vec<String>, Vec<MemberFlag>) {
    let (mut words, mut members) = (Vec::new(), Vec::new());
    let mut line = line.iter().peekable();
    while let Some(word) = line.next() {
        if word == "--" {
            words.push(word.clone());
            words.extend(line.cloned());
            break;
        }
        let (flag, given) = match word.split_once('=') {
            Some((flag, given)) => (flag, Some(given.to_owned())),
            None => (&**word, None),
        };
        let Some((path, property)) = member(schema, flag) else {
            words.push(word.clone());
            continue;
        };
        let text = given
            .or_else(|| line.next_if(|next| !next.starts_with("--")).cloned())
            .unwrap_or_else(|| "true".to_owned());
        members.push(MemberFlag {
            path,
            value: value(&property, &[&text]),
            words_before: words.len(),
            is_before_whole: false,
        });
    }
    for member in &mut members {
        let argument = &member.path[0];
        member.is_before_whole = is_given(command, &words, argument)
            && !is_given(command, &words[..member.words_before], argument);
    }
    (words, members)
}

/// Returns `true` if the words give this argument as a whole, by its flag or by its position.
fn is_given(command: &Command, words: &[String], argument: &str) -> bool {
    let Ok(matches) = command.clone().try_get_matches_from(words) else {
        return false;
    };
    [by_flag(argument), by_position(argument)]
        .iter()
        .any(|id| matches.try_contains_id(id).unwrap_or(false))
}

/// Returns the path that the flag of a member names, and the schema of the member; null if it has none.
fn member(schema: &Value, flag: &str) -> Option<(Vec<String>, Value)> {
    let flag = flag.strip_prefix("--")?;
    let (first, rest) = flag.split_once('.')?;
    // An argument may have a dot in its name.
    if known(schema, flag).is_some() {
        return None;
    }
    let (name, property) = known(schema, first)?;
    let mut property = resolved(schema, property);
    if !matches!(text::kind(property), Some("object") | None) {
        return None;
    }
    let mut path = vec![name];
    for part in rest.split('.') {
        let found = known(property, part);
        path.push(
            found
                .as_ref()
                .map_or_else(|| part.to_owned(), |(name, _)| name.clone()),
        );
        property = found.map_or(&Value::Null, |(_, inner)| resolved(schema, inner));
    }
    path.iter()
        .all(|part| !part.is_empty())
        .then(|| (path, property.clone()))
}

/// Returns the property of this name, as the schema or as people write it.
fn known<'s>(schema: &'s Value, name: &str) -> Option<(String, &'s Value)> {
    let properties = schema["properties"].as_object()?;
    let exact = properties.get_key_value(name);
    let found = exact.or_else(|| properties.iter().find(|(field, _)| dashed(field) == name));
    found.map(|(field, property)| (field.clone(), property))
}

/// Follows a reference within the schema, once, and looks behind an alternative of null.
fn resolved<'s>(schema: &'s Value, property: &'s Value) -> &'s Value {
    let property = without_null(property);
    let target = property["$ref"]
        .as_str()
        .and_then(|reference| schema.pointer(reference.strip_prefix('#')?));
    target.map_or(property, without_null)
}

/// Puts members into their arguments. A member overrides an object that is given before it; a member that contradicts a
/// later object is refused.
pub(crate) fn put_members(
    arguments: &mut Map<String, Value>,
    members: Vec<MemberFlag>,
) -> anyhow::Result<()> {
    for (at, member) in members.iter().enumerate() {
        let whole = format!("--{}", dashed(&member.path[0]));
        let given = arguments
            .get(&member.path[0])
            .filter(|_| member.is_before_whole);
        let given = given.and_then(|given| {
            let mut names = member.path[1..].iter();
            names.try_fold(given, |object, name| object.get(name))
        });
        let later = members[at + 1..]
            .iter()
            .find(|later| member.is_within(later));
        let other = match given {
            Some(given) if *given != member.value => Some(whole),
            _ => later.map(MemberFlag::flag),
        };
        if let Some(other) = other {
            let flag = member.flag();
            anyhow::bail!(
                "{flag} and {other} both give `{}`: leave one out",
                member.path.join(".")
            );
        }
    }
    for MemberFlag { path, value, .. } in members {
        let Some((last, way)) = path.split_last() else {
            continue;
        };
        let mut place = &mut *arguments;
        for name in way {
            let inner = place
                .entry(name.clone())
                .or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = inner else {
                anyhow::bail!(
                    "--{}: `{name}` is given as something other than an object",
                    path.join(".")
                )
            };
            place = inner;
        }
        place.insert(last.clone(), value);
    }
    Ok(())
}
