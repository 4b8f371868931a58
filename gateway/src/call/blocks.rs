//! Content blocks of plugins and servers: only kinds that the protocol defines are passed on.

use serde_json::{Value, json};

/// Content blocks of one answer.
const BLOCKS_MAX: usize = 1_000;
const BLOCKS: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];

/// Returns the text block of a text.
pub(super) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Returns `true` if one of the blocks is this text, or the same JSON written otherwise.
pub(super) fn say(blocks: &[Value], text: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let is_same = |block: &str| {
        block.trim() == text.trim() || value.is_some() && serde_json::from_str(block).ok() == value
    };
    blocks
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .any(is_same)
}

/// Returns the blocks if all are of known kinds; otherwise the problem.
pub(super) fn checked(content: Value) -> Result<Vec<Value>, String> {
    let Value::Array(blocks) = content else {
        return Err("content is no list of blocks".to_owned());
    };
    if blocks.len() > BLOCKS_MAX {
        return Err(format!(
            "{} content blocks; at most {BLOCKS_MAX}",
            blocks.len()
        ));
    }
    for (index, block) in blocks.iter().enumerate() {
        check(block).map_err(|what| format!("content block {index}: {what}"))?;
    }
    Ok(blocks)
}

pub(super) fn check(block: &Value) -> Result<(), String> {
    let text = |name: &str| match block.get(name) {
        Some(Value::String(_)) => Ok(()),
        _ => Err(format!("it has no `{name}`")),
    };
    match block.get("type").and_then(Value::as_str) {
        Some("text") => text("text"),
        Some("image" | "audio") => text("data").and(text("mimeType")),
        Some("resource_link") => text("uri").and(text("name")),
        Some("resource") => match block
            .get("resource")
            .map(|resource| (resource, resource.get("uri")))
        {
            Some((resource, Some(Value::String(_))))
                if resource.get("text").or(resource.get("blob")).is_some() =>
            {
                Ok(())
            }
            _ => Err("its `resource` has no `uri`, or neither `text` nor `blob`".to_owned()),
        },
        _ => Err(format!("its `type` is none of {}", BLOCKS.join(", "))),
    }
}
