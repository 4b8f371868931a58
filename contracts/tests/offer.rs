//! Lists of other servers become one document: the shape, what is kept, and what is refused.

use serde_json::{Value, json};
use weir_contracts::offer::{SchemaLimits, ServerLists, check_schema, compose};

fn composed(lists: &Value) -> (Value, Vec<String>) {
    composed_text(&lists.to_string())
}

fn composed_text(lists: &str) -> (Value, Vec<String>) {
    let (lists, mut problems) = ServerLists::read("lists.json", lists).expect("lists");
    let composed = compose("lists.json", &lists);
    problems.extend(composed.problems);
    let text = composed.document.pretty();
    let document: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(
        serde_json::from_str::<Value>(&composed.document.compact()).expect("compact JSON"),
        document
    );
    (
        document,
        problems
            .iter()
            .map(|problem| format!("{} {}", problem.place, problem.message))
            .collect(),
    )
}

fn tool(members: Value) -> Value {
    let (document, _) = composed(&json!({ "tools": [members] }));
    document["items"][0].clone()
}

#[test]
fn every_kind_of_item_has_the_same_shape() {
    let (document, problems) = composed(&json!({
        "prompts": [{ "name": "ask", "title": "Ask", "arguments": [
            { "name": "topic", "description": "What about.", "required": true }, { "name": "tone" },
        ] }, { "name": "plain" }],
        "resourceTemplates": [{ "name": "page", "uriTemplate": "doc://{id}", "mimeType": "text/plain" }],
        "resources": [{ "name": "readme", "uri": "doc://readme", "mimeType": "text/plain", "size": 12,
            "annotations": { "audience": ["user"] } }],
        "tools": [{ "name": "add", "description": "Adds.", "icons": [{ "src": "data:," }],
            "annotations": { "title": "Add numbers", "readOnlyHint": true }, "_meta": { "a": 1 },
            "inputSchema": { "type": "object" }, "outputSchema": { "type": "object" } }],
        "server": { "info": { "name": "s", "version": "1" }, "instructions": "Ask first." },
    }));
    assert_eq!(problems, [""; 0]);
    assert_eq!(
        document,
        json!({
            "server": {
                "info": { "name": "s", "version": "1" },
                "instructions": "Ask first.",
            },
            "items": [
                { "type": "tool", "name": "add", "title": "Add numbers", "description": "Adds.",
                  "meta": { "icons": [{ "src": "data:," }],
                            "annotations": { "title": "Add numbers", "readOnlyHint": true }, "_meta": { "a": 1 } },
                  "detail": { "input": { "json": { "type": "object" } }, "output": { "json": { "type": "object" } } } },
                { "type": "resource", "name": "readme", "meta": { "annotations": { "audience": ["user"] } },
                  "detail": { "uri": "doc://readme", "mimeType": "text/plain", "size": 12 } },
                { "type": "resource-template", "name": "page", "meta": {},
                  "detail": { "uriTemplate": "doc://{id}", "mimeType": "text/plain" } },
                { "type": "prompt", "name": "ask", "title": "Ask", "meta": {}, "detail": { "input": { "json": {
                    "type": "object",
                    "properties": { "topic": { "description": "What about." }, "tone": {} },
                    "required": ["topic"], "additionalProperties": true } } } },
                { "type": "prompt", "name": "plain", "meta": {}, "detail": { "input": {} } },
            ],
        })
    );
}

#[test]
fn what_a_server_wrote_is_kept_to_the_digit_and_in_its_order() {
    let text = r#"{"tools":[{"name":"t","inputSchema":{"type" : "object","z":1.0,"a":12345678901234567890123,
        "properties":{"b":{"const":"\u0041\/"},"a":{"maximum":1e2}}}}]}"#;
    let (lists, _) = ServerLists::read("-", text).expect("lists");
    let document = compose("-", &lists).document;
    let kept = r#"{"type":"object","z":1.0,"a":12345678901234567890123,"properties":{"b":{"const":"\u0041\/"},"a":{"maximum":1e2}}}"#;
    assert!(document.compact().contains(kept), "{}", document.compact());
    assert!(
        document.pretty().contains("\n            \"z\": 1.0,\n"),
        "{}",
        document.pretty()
    );
}

/// What a person copies of a server's traffic is one answer, and may be one page.
#[test]
fn an_answer_of_json_rpc_is_read_and_a_page_that_others_follow_is_reported() {
    let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [tool] } });
    let (document, problems) = composed_text(&answer.to_string());
    assert_eq!(document["items"][0]["name"], "t", "{document}");
    assert!(problems.is_empty(), "{problems:?}");
    let page = json!({ "tools": [tool], "nextCursor": "2" });
    let follows = "this is one page of a list, and others follow";
    for (lists, place) in [
        (page.clone(), "/nextCursor"),
        (json!({ "tools": page }), "/tools/nextCursor"),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "result": page }),
            "/nextCursor",
        ),
    ] {
        let (document, problems) = composed_text(&lists.to_string());
        assert_eq!(document["items"][0]["name"], "t", "{document}");
        assert_eq!(problems, [format!("{place} {follows}")]);
    }
    let last = json!({ "tools": [tool], "nextCursor": null });
    assert!(composed_text(&last.to_string()).1.is_empty());
}

#[test]
fn a_bad_schema_says_so_in_its_item_and_the_others_go_on() {
    let cases = [
        (json!("text"), "not an object"),
        (json!(null), "not an object"),
        (json!({ "type": "nonsense" }), "/type"),
        (json!({ "type": "object", "properties": [] }), "/properties"),
        (
            json!({ "properties": { "p": { "pattern": "(" } } }),
            "pattern",
        ),
        (
            json!({ "properties": { "p": { "pattern": "^(a+)+$" } } }),
            "repeats a repetition",
        ),
        (
            json!({ "properties": { "p": { "pattern": "(\\w*\\d*)*x" } } }),
            "repeats a repetition",
        ),
        (
            json!({ "properties": { "p": { "pattern": "(?=(a+)+b)c" } } }),
            "repeats a repetition",
        ),
        (
            json!({ "patternProperties": { "(.*)*": {} } }),
            "repeats a repetition",
        ),
        (
            json!({ "properties": { "p": { "pattern": "(a+)\\1" } } }),
            "back reference",
        ),
        (
            json!({ "properties": { "p": { "pattern": "a".repeat(1001) } } }),
            "longer than 1000 characters",
        ),
        (
            json!({ "properties": { "p": { "$ref": "https://evil.example/s.json" } } }),
            "another document",
        ),
        (
            json!({ "properties": { "p": { "$ref": "file:///etc/passwd" } } }),
            "another document",
        ),
        (
            json!({ "properties": { "p": { "$ref": "#/$defs/none" } } }),
            "none",
        ),
        (
            json!({ "$schema": "https://evil.example/dialect" }),
            "evil.example",
        ),
        (
            json!({ "description": "x".repeat(110_000) }),
            "at most 102400",
        ),
    ];
    let deep = [nested(40), nested(5000)].map(|schema| (schema, "deeper than 32"));
    for (schema, expected) in cases
        .map(|(schema, expected)| (schema.to_string(), expected))
        .into_iter()
        .chain(deep)
    {
        // Built as text: the JSON library's own reader ends at 128 levels.
        let text = format!(
            r#"{{"tools":[{{"name":"bad","inputSchema":{schema},"outputSchema":{schema}}},{{"name":"good","inputSchema":{{}}}}]}}"#
        );
        let (document, problems) = composed_text(&text);
        let detail = &document["items"][0]["detail"];
        // An output may be left out, and null says no more.
        for side in ["input", "output"]
            .into_iter()
            .filter(|side| *side == "input" || schema != "null")
        {
            let error = detail[side]["error"]
                .as_str()
                .unwrap_or_else(|| panic!("{side} of {text:.200} is accepted"));
            assert!(
                error.contains(expected),
                "{error:?} does not say {expected:?}"
            );
            assert!(error.len() < 600, "{error}");
        }
        assert_eq!(
            document["items"][1],
            json!({"type": "tool", "name": "good", "meta": {}, "detail": {"input": {"json": {}}}})
        );
        assert_eq!(problems, [""; 0]);
    }
    let kept = tool(json!({ "name": "bad", "inputSchema": { "type": "nonsense" } }));
    assert_eq!(
        kept["detail"]["input"]["json"],
        json!({ "type": "nonsense" }),
        "the original is kept"
    );
}

fn nested(levels: usize) -> String {
    format!("{}{{}}{}", "{\"items\":".repeat(levels), "}".repeat(levels))
}

#[test]
fn schemas_of_the_wild_are_accepted() {
    for schema in [
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "definitions": { "p": { "type": "string" } }, "properties": { "a": { "$ref": "#/definitions/p" } } }),
        json!({ "type": "object", "properties": { "mail": { "pattern":
            "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$" } } }),
        json!({ "properties": { "host": { "pattern": "^([a-z]+\\.)*[a-z]+$" }, "list": { "pattern": "^a(,\\s*\\w+)*$" } } }),
        json!({ "properties": { "n": { "type": "integer", "maximum": 18_446_744_073_709_551_615_u64 } } }),
        json!({ "properties": { "$ref": { "type": "string" }, "pattern": { "const": { "$ref": "https://x" } } } }),
        json!({ "$id": "https://a.example/s", "$ref": "https://a.example/s#/$defs/x", "$defs": { "x": { "type": "object" } } }),
        json!({ "$defs": { "tree": { "properties": { "kids": { "items": { "$ref": "#/$defs/tree" } } } } }, "$ref": "#/$defs/tree" }),
    ] {
        check_schema(&schema.to_string(), &SchemaLimits::default())
            .unwrap_or_else(|error| panic!("{schema}: {error}"));
    }
    let twice = check_schema(
        r#"{"type":"object","type":"string"}"#,
        &SchemaLimits::default(),
    );
    assert!(
        twice.is_err_and(|error| error.contains("type")),
        "parsers differ over a key that is given twice"
    );
}

#[test]
fn ui_metadata_is_found_in_all_its_shapes() {
    let cases = [
        (
            json!({ "ui": { "resourceUri": "ui://a" } }),
            json!({ "resourceUri": "ui://a" }),
        ),
        (
            json!({ "ui/resourceUri": "ui://a" }),
            json!({ "resourceUri": "ui://a" }),
        ),
        (
            json!({ "ui/resourceUri": "ui://old", "ui": { "resourceUri": "ui://new", "visibility": ["app"] } }),
            json!({ "resourceUri": "ui://new", "visibility": ["app"] }),
        ),
        (
            json!({ "ui": { "csp": "default-src 'self'", "permissions": ["camera"] } }),
            json!({ "csp": "default-src 'self'", "permissions": ["camera"] }),
        ),
        (
            json!({ "ui": { "permissions": { "camera": {} }, "csp": { "connectDomains": ["a.example"] },
                "domain": "d", "prefersBorder": true, "unknown": 1 } }),
            json!({ "csp": { "connectDomains": ["a.example"] }, "permissions": { "camera": {} }, "domain": "d",
                "prefersBorder": true }),
        ),
        (json!({ "ui": {} }), Value::Null),
        (json!({ "ui": "ui://a" }), Value::Null),
        (json!({ "ui": { "resourceUri": 7, "csp": 7 } }), Value::Null),
    ];
    for (meta, expected) in cases {
        let tool = tool(json!({ "name": "t", "inputSchema": {}, "_meta": meta }));
        assert_eq!(tool["detail"]["ui"], expected, "{meta}");
        let (document, _) =
            composed(&json!({ "resources": [{ "name": "r", "uri": "ui://a", "_meta": meta }] }));
        assert_eq!(document["items"][0]["detail"]["ui"], expected, "{meta}");
        assert_eq!(document["items"][0]["meta"]["_meta"], meta);
    }
}

#[test]
fn optional_members_that_are_null_count_as_absent() {
    assert_eq!(
        tool(
            json!({ "name": "t", "title": null, "inputSchema": {}, "outputSchema": null, "annotations": null })
        ),
        json!({ "type": "tool", "name": "t", "meta": {}, "detail": { "input": { "json": {} } } })
    );
}

#[test]
fn members_of_the_wrong_type_count_as_absent() {
    assert_eq!(
        tool(
            json!({ "title": 1, "description": [], "icons": {}, "annotations": [], "_meta": "m" })
        ),
        json!({ "type": "tool", "name": "tool", "meta": {}, "detail": { "input": {} } })
    );
    let (document, problems) = composed(&json!({
        "tools": [null, "t", 1, { "name": "t" }], "resources": {}, "prompts": [{ "arguments": [1, {}, { "name": "a" }] }],
    }));
    assert_eq!(document["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        document["items"][1]["detail"]["input"]["json"]["properties"],
        json!({ "a": {} })
    );
    let places: Vec<&str> = problems
        .iter()
        .filter_map(|problem| problem.split(' ').next())
        .collect();
    assert_eq!(
        places,
        [
            "/resources",
            "/tools/0",
            "/tools/1",
            "/tools/2",
            "/prompts/0",
            "/prompts/0",
            "/prompts/0"
        ]
    );
}

#[test]
fn a_surface_that_is_not_advertised_is_skipped_and_said() {
    let (document, problems) = composed(&json!({
        "server": { "capabilities": { "prompts": {} } },
        "tools": [{ "name": "t" }], "prompts": [{ "name": "p" }], "templates": [{ "name": "x" }],
    }));
    assert_eq!(document["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["items"][0]["type"], "prompt");
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn raw_results_are_read_as_they_came() {
    let (document, _) = composed(&json!({
        "tools": { "tools": [{ "name": "t", "inputSchema": {} }], "nextCursor": "x" },
        "server": { "protocolVersion": "2025-11-25", "serverInfo": { "name": "s" }, "capabilities": { "tools": {} } },
    }));
    assert_eq!(
        document["server"],
        json!({ "info": { "name": "s" }, "capabilities": { "tools": {} } })
    );
    assert_eq!(document["items"][0]["name"], "t");
    let (document, _) = composed(&json!({ "server": {
        "supportedVersions": [], "capabilities": {}, "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "m" } },
    } }));
    assert_eq!(document["server"]["info"]["name"], "m");
    assert_eq!(composed(&json!({})).0, json!({ "server": {}, "items": [] }));
}

#[test]
fn what_nests_without_end_takes_no_reader_down() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let text = format!(
        r#"{{"tools":[{{"name":"t","inputSchema":{{"enum":{deep}}},"_meta":{{"a":{deep}}}}}]}}"#
    );
    let (document, problems) = composed_text(&text);
    assert_eq!(document["items"][0]["meta"], json!({}));
    assert!(
        document["items"][0]["detail"]["input"]["error"]
            .as_str()
            .is_some_and(|error| error.contains("left out"))
    );
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(ServerLists::read("-", &deep).is_err());
}
