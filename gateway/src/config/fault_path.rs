//! Finds the value of a configuration to which an error of the TOML reader applies.

use serde::de::DeserializeOwned;
use toml::Value;

/// Returns the message without the quoted source, which may hold a secret.
pub(super) fn first_line(error: &toml::de::Error) -> &str {
    error.message().lines().next().unwrap_or_default()
}

/// Returns the path of the value that an error concerns: the one without which there would be a different error, or none.
pub(super) fn at_fault<T: DeserializeOwned>(value: &Value, error: &toml::de::Error) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    loop {
        let inner = path.iter().try_fold(value, |value, key| part(value, key));
        let keys: Vec<String> = match inner {
            Some(Value::Table(table)) => table.keys().cloned().collect(),
            Some(Value::Array(items)) => (0..items.len()).map(|it| it.to_string()).collect(),
            _ => Vec::new(),
        };
        let after = |key: &String| {
            let path = [&path[..], std::slice::from_ref(key)].concat();
            match without(value, &path)?.try_into::<T>() {
                Ok(_) => Some(0),
                Err(other) if first_line(&other) == first_line(error) => None,
                // A missing key is at fault only if no other is; the value that lists which keys exist comes last.
                Err(other) if first_line(&other).starts_with("missing field ") => {
                    Some(1 + u8::from(key == "kind"))
                }
                Err(_) => Some(0),
            }
        };
        let found = keys
            .iter()
            .filter_map(|key| Some((after(key)?, key.clone())))
            .min();
        let Some((_, key)) = found else { return path };
        path.push(key);
    }
}

/// Returns the value of a table under a key, or of a list at an index.
fn part<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    }
}

/// Returns the value without the part at `path`; `None` if there is nothing to remove.
pub(super) fn without(value: &Value, path: &[String]) -> Option<Value> {
    let (last, within) = path.split_last()?;
    let mut value = value.clone();
    let around = within
        .iter()
        .try_fold(&mut value, |value, key| match value {
            Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
            value => value.get_mut(key),
        })?;
    match around {
        Value::Array(items) => drop(items.remove(last.parse().ok()?)),
        around => drop(around.as_table_mut()?.remove(last)?),
    }
    Some(value)
}
