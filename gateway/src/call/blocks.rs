//! Content blocks of plugins and servers: only kinds that the protocol defines are passed on.

use serde_json::{Map, Value, json};
use url::Url;
use weir_contracts::metadata;

/// The most content blocks of one answer.
const BLOCKS_MAX: usize = 1_000;
const BLOCKS: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];

/// Returns the text block of a text.
pub(super) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Returns `true` if one of the blocks is this text, or the same JSON written differently.
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
        return Err("content is not a list of blocks".to_owned());
    };
    check_number(&blocks)?;
    for (index, block) in blocks.iter().enumerate() {
        check(block).map_err(|what| format!("content block {index}: {what}"))?;
    }
    Ok(blocks)
}

fn check_number(blocks: &[Value]) -> Result<(), String> {
    match blocks.len() {
        0..=BLOCKS_MAX => Ok(()),
        number => Err(format!("{number} content blocks; at most {BLOCKS_MAX}")),
    }
}

/// Returns the blocks of another server. A block that would make clients refuse the whole result is passed on as text, and listed
/// with the reason.
pub(super) fn passed_on(content: Value) -> Result<(Vec<Value>, Vec<String>), String> {
    let mut blocks = match content {
        Value::Null => Vec::new(),
        Value::Array(blocks) => blocks,
        block => vec![block],
    };
    check_number(&blocks)?;
    let mut odd = Vec::new();
    for (index, block) in blocks.iter_mut().enumerate() {
        if let Value::String(words) = block {
            *block = text(words);
            continue;
        }
        mend(block);
        if let Err(what) = check(block).and_then(|()| check_members(block)) {
            odd.push(format!("content block {index}: {what}"));
            *block = text(&block.to_string());
        }
    }
    Ok((blocks, odd))
}

/// Repairs the messages of a prompt and the contents of a resource of another server. A block that would make clients refuse the
/// whole prompt is passed on as text.
pub(super) fn mend_parts(members: &mut Map<String, Value>) {
    if let Some(Value::Array(messages)) = members.get_mut("messages") {
        for content in messages.iter_mut().filter_map(|it| it.get_mut("content")) {
            mend(content);
            if check(content)
                .and_then(|()| check_members(content))
                .is_err()
            {
                *content = match content.as_str() {
                    Some(words) => text(words),
                    None => text(&content.to_string()),
                };
            }
        }
    }
    if let Some(Value::Array(contents)) = members.get_mut("contents") {
        contents.iter_mut().for_each(mend);
    }
}

/// Removes optional members that would make clients refuse the block.
fn mend(block: &mut Value) {
    let Value::Object(members) = block else {
        return;
    };
    members.retain(|name, value| match name.as_str() {
        "text" | "blob" => !value.is_null(),
        "title" | "description" | "mimeType" => value.is_string(),
        "size" => value.is_u64(),
        "_meta" => value.is_object(),
        "annotations" => replace(value, metadata::annotations),
        "icons" => replace(value, metadata::icons),
        _ => true,
    });
    read_data_url(members);
    for name in ["data", "blob"] {
        mend_base64(members, name);
    }
    if let Some(resource) = members.get_mut("resource") {
        mend(resource);
    }
}

/// Replaces `data:image/png;base64,…` by its base64, which is all that the protocol accepts. Some servers write such URLs, as in
/// HTML pages.
fn read_data_url(members: &mut Map<String, Value>) {
    let data = members.get("data").and_then(Value::as_str);
    let parts = data.and_then(|data| data.strip_prefix("data:")?.split_once(";base64,"));
    let Some((kind, data)) = parts else { return };
    let (kind, data) = (Value::from(kind), Value::from(data));
    members.insert("data".to_owned(), data);
    members.entry("mimeType").or_insert(kind);
}

/// Rewrites URL-safe base64, which some services return, in the protocol's alphabet.
fn mend_base64(members: &mut Map<String, Value>, name: &str) {
    let Some(Value::String(data)) = members.get_mut(name) else {
        return;
    };
    if data.contains(['-', '_']) {
        let standard = data.replace('-', "+").replace('_', "/");
        if is_base64(&standard) {
            *data = standard;
        }
    }
}

/// Replaces a value by what `read` returns. Returns `false` if that is `None`.
fn replace(value: &mut Value, read: fn(&Value) -> Option<Value>) -> bool {
    let read = read(value);
    let is_there = read.is_some();
    *value = read.unwrap_or_default();
    is_there
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

/// Checks the members of a block of another server that clients read: those of the TypeScript SDK decode base64 as browsers do,
/// those of the Python SDK read addresses.
fn check_members(block: &Value) -> Result<(), String> {
    let base64 = |of: &Value, name: &str| match of.get(name).and_then(Value::as_str) {
        Some(data) if !is_base64(data) => Err(format!("its `{name}` is not base64")),
        _ => Ok(()),
    };
    let address = |of: &Value| match of.get("uri").and_then(Value::as_str) {
        Some(uri) if Url::parse(uri).is_err() => Err("its `uri` is not a whole URI".to_owned()),
        _ => Ok(()),
    };
    match block.get("type").and_then(Value::as_str) {
        Some("image" | "audio") => base64(block, "data"),
        Some("resource_link") => address(block),
        Some("resource") => {
            let resource = &block["resource"];
            address(resource)?;
            match resource.get("text") {
                Some(Value::String(_)) => Ok(()),
                Some(_) => Err("the `text` of its `resource` is not a text".to_owned()),
                None => base64(resource, "blob"),
            }
        }
        _ => Ok(()),
    }
}

/// Returns `true` for a text that `atob` of browsers decodes: spaces are allowed, and the padding may be missing as a whole.
fn is_base64(text: &str) -> bool {
    let bytes = || text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let length = bytes().count();
    let padding = match length % 4 {
        0 => bytes()
            .rev()
            .take(2)
            .take_while(|byte| *byte == b'=')
            .count(),
        _ => 0,
    };
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    (length - padding) % 4 != 1 && bytes().take(length - padding).all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_clients_refuse_is_passed_on_as_text() {
        let blocks = json!([
            { "type": "text", "text": "a", "annotations": { "audience": "user" }, "_meta": null },
            "b",
            { "type": "video", "url": "https://example.org/a.mp4" },
            null,
            { "type": "resource", "resource": { "uri": "a:b", "text": "c", "blob": null, "mimeType": 5 } },
            { "type": "resource_link", "uri": "a:b", "name": "d", "size": "12", "icons": [{ "src": "file:///e" }] },
            { "type": "image", "data": "data:image/png;base64,AA==" },
        ]);
        let (passed, odd) = passed_on(blocks).expect("few blocks");
        let expected = json!([
            { "type": "text", "text": "a", "annotations": {} },
            { "type": "text", "text": "b" },
            { "type": "text", "text": r#"{"type":"video","url":"https://example.org/a.mp4"}"# },
            { "type": "text", "text": "null" },
            { "type": "resource", "resource": { "uri": "a:b", "text": "c" } },
            { "type": "resource_link", "uri": "a:b", "name": "d" },
            { "type": "image", "data": "AA==", "mimeType": "image/png" },
        ]);
        assert_eq!(Value::Array(passed), expected);
        let kinds = "its `type` is none of text, image, audio, resource_link, resource";
        let reason = |index: usize| format!("content block {index}: {kinds}");
        assert_eq!(odd, [reason(2), reason(3)]);
    }

    /// Each of these made clients of the official SDKs refuse the whole answer.
    #[test]
    fn a_block_whose_members_clients_refuse_is_passed_on_as_text() {
        let link = |uri: &str| json!({ "type": "resource_link", "uri": uri, "name": "a" });
        let blob =
            |blob: &str| json!({ "type": "resource", "resource": { "uri": "a:b", "blob": blob } });
        for (block, what) in [
            (
                json!({ "type": "image", "data": "no base64!", "mimeType": "image/png" }),
                "its `data` is not base64",
            ),
            (
                json!({ "type": "audio", "data": "AA=", "mimeType": "audio/wav" }),
                "its `data` is not base64",
            ),
            (blob("!"), "its `blob` is not base64"),
            (link("m+docs/readme.md"), "its `uri` is not a whole URI"),
            (link("m+https://exa mple/"), "its `uri` is not a whole URI"),
        ] {
            let (passed, odd) = passed_on(json!([block])).expect("one block");
            assert_eq!(passed, [text(&block.to_string())]);
            assert_eq!(odd, [format!("content block 0: {what}")]);
        }
        let fine = json!([
            blob("AAA"),
            blob("AA==\n"),
            blob(""),
            link("m+a:b"),
            link("ui://weir/a/b")
        ]);
        let (passed, odd) = passed_on(fine.clone()).expect("few blocks");
        assert_eq!((Value::Array(passed), odd), (fine, Vec::new()));
    }

    #[test]
    fn base64_for_urls_is_written_as_the_protocol_has_it() {
        let (passed, odd) = passed_on(json!([
            { "type": "image", "data": "A_-A", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "a:b", "blob": "_w" } },
        ]))
        .expect("few blocks");
        let expected = json!([
            { "type": "image", "data": "A/+A", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "a:b", "blob": "/w" } },
        ]);
        assert_eq!((Value::Array(passed), odd), (expected, Vec::new()));
    }

    #[test]
    fn a_block_that_clients_refuse_leaves_the_other_messages() {
        let video = json!({ "type": "video", "url": "a:b" });
        let plain = json!({ "type": "text", "text": "a" });
        let message = |content: Value| json!({ "role": "user", "content": content });
        let mut members = Map::from_iter([(
            "messages".to_owned(),
            json!([
                message(plain.clone()),
                message(video.clone()),
                message("b".into())
            ]),
        )]);
        mend_parts(&mut members);
        let expected = [plain, text(&video.to_string()), text("b")].map(message);
        assert_eq!(members["messages"], json!(expected));
    }

    #[test]
    fn content_that_is_no_list_is_one_block() {
        for (content, expected) in [
            (Value::Null, json!([])),
            (json!("a"), json!([{ "type": "text", "text": "a" }])),
            (
                json!({ "type": "text", "text": "a" }),
                json!([{ "type": "text", "text": "a" }]),
            ),
        ] {
            let (passed, odd) = passed_on(content).expect("few blocks");
            assert_eq!((Value::Array(passed), odd), (expected, Vec::new()));
        }
        assert!(passed_on(Value::Array(vec![Value::Null; 1_001])).is_err());
    }
}
