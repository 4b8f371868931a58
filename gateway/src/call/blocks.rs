//! Content blocks, of whoever makes them: only kinds that the protocol has are passed on.

use serde_json::Value;

/// Content blocks of one answer.
const BLOCKS_MAX: usize = 1_000;
const BLOCKS: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];

/// Blocks of known kinds, on one line; else what is wrong.
pub(super) fn written(content: Value) -> Result<String, String> {
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
    Ok(Value::Array(blocks).to_string())
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
