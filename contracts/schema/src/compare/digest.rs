//! One digest for a value, whatever the order of its keys.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of a value in hexadecimal, whatever the order of its keys.
pub fn digest(value: &Value) -> String {
    let digest = Sha256::digest(sorted(value).to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            Value::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| (key.clone(), sorted(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
