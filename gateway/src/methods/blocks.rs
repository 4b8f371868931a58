//! Content blocks for older clients: a kind that their revision does not have becomes text, since clients refuse a whole result
//! because of one unknown block.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Value, json};

use crate::wire::ProtocolVersion;

/// Lowers blocks for a version. `blocks` is a JSON array on one line, and so is the result.
pub(super) fn lowered(blocks: &str, version: ProtocolVersion) -> Cow<'_, str> {
    if version >= ProtocolVersion::V2025_06_18 {
        return Cow::Borrowed(blocks);
    }
    let Ok(Value::Array(mut read)) = serde_json::from_str(blocks) else {
        return Cow::Borrowed(blocks);
    };
    read.iter_mut().for_each(|block| lower(block, version));
    Cow::Owned(Value::Array(read).to_string())
}

/// Puts a value in front of blocks as a text, unless their texts have it, as a whole or item by item. `value` is JSON.
pub(super) fn with_value<'b>(blocks: Cow<'b, str>, value: &str) -> Cow<'b, str> {
    let (Ok(Value::Array(mut read)), Ok(wanted)) = (
        serde_json::from_str(&blocks),
        serde_json::from_str::<Value>(value),
    ) else {
        return blocks;
    };
    let present = texts_and_values(&read);
    let is_present = |value: &Value| present.contains(&sorted(value.clone()));
    let items = wanted.as_array().filter(|items| !items.is_empty());
    if is_present(&wanted) || items.is_some_and(|items| items.iter().all(is_present)) {
        return blocks;
    }
    read.insert(0, json!({ "type": "text", "text": value }));
    Cow::Owned(Value::Array(read).to_string())
}

/// Collects the texts of blocks and the values that they are as JSON, each as sorted JSON. Each text is read once: a list may
/// have as many items as the answer has texts.
fn texts_and_values(blocks: &[Value]) -> HashSet<String> {
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts
        .flat_map(|text| [Ok(Value::from(text)), serde_json::from_str(text)])
        .flatten()
        .map(sorted)
        .collect()
}

/// Writes a value in one spelling, whatever the order of its members.
fn sorted(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

/// Lowers one block.
pub(super) fn lower(block: &mut Value, version: ProtocolVersion) {
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    let replacement = match block["type"].as_str() {
        _ if version >= ProtocolVersion::V2025_06_18 => return,
        Some("resource_link") => format!("{}: {}", text("name"), text("uri")),
        Some("audio") if version < ProtocolVersion::V2025_03_26 => {
            format!(
                "Audio ({}), which this client cannot play.",
                text("mimeType")
            )
        }
        _ => return,
    };
    *block = json!({ "type": "text", "text": replacement });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_a_revision_does_not_have_becomes_text() {
        let blocks = r#"[{"type":"text","text":"a"},{"type":"audio","mimeType":"audio/wav","data":""},{"type":"resource_link","name":"dot","uri":"dot:///1"}]"#;
        let kinds = |version| -> Vec<String> {
            let read: Vec<Value> =
                serde_json::from_str(&lowered(blocks, version)).expect("an array");
            read.iter()
                .map(|block| block["type"].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        assert_eq!(
            kinds(ProtocolVersion::V2025_11_25),
            ["text", "audio", "resource_link"]
        );
        assert_eq!(
            kinds(ProtocolVersion::V2025_03_26),
            ["text", "audio", "text"]
        );
        assert_eq!(
            kinds(ProtocolVersion::V2024_11_05),
            ["text", "text", "text"]
        );
        assert!(lowered(blocks, ProtocolVersion::V2024_11_05).contains("dot: dot:///1"));
    }

    /// Each text is read once: with one reading for each item and text, this takes hours.
    #[test]
    fn a_list_of_many_items_is_looked_for_in_as_many_texts() {
        const ITEMS: usize = 50_000;
        let items: Vec<Value> = (0..ITEMS)
            .map(|item| json!({ "b": item, "a": "x" }))
            .collect();
        let in_texts = |items: &[Value]| {
            let texts = items.iter().map(|item| {
                let text = format!(r#"{{ "a": "x", "b": {} }}"#, item["b"]);
                json!({ "type": "text", "text": text })
            });
            Value::from_iter(texts).to_string()
        };
        let value = Value::from(items.clone()).to_string();
        let all = in_texts(&items);
        assert_eq!(with_value(Cow::Borrowed(all.as_str()), &value), all);
        let some = in_texts(&items[1..]);
        assert!(with_value(Cow::Borrowed(some.as_str()), &value).len() > some.len());
    }
}
