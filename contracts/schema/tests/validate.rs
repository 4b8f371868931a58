//! Tests what is refused at the gate, and in which words.

use serde_json::{Map, Value, json};
use weir_schema::validate::{ArgumentValidator, InvalidArguments};

fn ticket() -> Value {
    json!({
        "type": "object",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {
            "subject": { "type": "string", "minLength": 2 },
            "priority": { "type": "integer", "minimum": 1, "maximum": 5 },
            "status": { "type": "string", "enum": ["open", "pending", "closed"] },
            "due": { "type": "string", "format": "date" },
            "email": { "type": "string", "format": "email" },
            "tags": { "type": "array", "items": { "type": "string" }, "uniqueItems": true }
        },
        "required": ["subject", "priority"],
        "additionalProperties": false
    })
}

fn refused(schema: &Value, raw: &str) -> Value {
    let validator = ArgumentValidator::new(schema).expect("a schema");
    serde_json::from_str(
        &validator
            .validate(raw)
            .expect_err(raw)
            .structured_content()
            .to_json(),
    )
    .expect("JSON")
}

#[test]
fn errors_tell_everything_in_the_schemas_order() {
    let raw = r#"{"tags":["a","a"],"statsu":"opn","email":"nobody","due":"2024-02-30","status":"opne","priority":9}"#;
    let expected = json!({
        "code": "invalid_arguments",
        "message": "Invalid arguments: 'subject' is required (6 more).",
        "field": "subject",
        "reason": "missing_required",
        "errors": [
            { "field": "subject", "path": "/subject", "reason": "missing_required", "constraint": { "type": "string", "minLength": 2 }, "example": "text" },
            { "field": "priority", "path": "/priority", "reason": "out_of_range", "constraint": { "minimum": 1, "maximum": 5 }, "example": 1 },
            { "field": "status", "path": "/status", "reason": "not_in_enum", "constraint": { "enum": ["open", "pending", "closed"] }, "example": "open", "suggestion": "open" },
            { "field": "due", "path": "/due", "reason": "bad_format", "constraint": { "format": "date" }, "example": "2024-01-01" },
            { "field": "email", "path": "/email", "reason": "bad_format", "constraint": { "format": "email" }, "example": "user@example.com" },
            { "field": "tags", "path": "/tags", "reason": "not_unique", "constraint": { "uniqueItems": true }, "example": ["text"] },
            { "field": "statsu", "path": "/statsu", "reason": "unknown_argument" }
        ]
    });
    let found = refused(&ticket(), raw);
    assert_eq!(
        serde_json::to_string_pretty(&found).unwrap(),
        serde_json::to_string_pretty(&expected).unwrap()
    );
}

fn text(schema: &Value, raw: &str) -> String {
    ArgumentValidator::new(schema)
        .expect("a schema")
        .validate(raw)
        .expect_err(raw)
        .text()
}

/// Most models are shown nothing else.
#[test]
fn the_text_tells_every_error_in_a_line() {
    let raw = r#"{"tags":["a","a"],"statsu":"opn","email":"nobody","due":"2024-02-30","status":"opne","priority":9,"titel":1}"#;
    let expected = "Invalid arguments; nothing was done. Repair this and call again:\n\
        /subject: is required (string, at least 2 characters). Example: \"text\"\n\
        /priority: must be at least 1 and at most 5. Example: 1\n\
        /status: must be one of open, pending, closed. Did you mean \"open\"?\n\
        /due: must be a valid date. Example: \"2024-01-01\"\n\
        /email: must be a valid email. Example: \"user@example.com\"\n\
        /tags: has an item twice. Example: [\"text\"]\n\
        /statsu: is not an argument of this tool. Leave it out.\n\
        /titel: is not an argument of this tool. Leave it out.";
    assert_eq!(text(&ticket(), raw), expected);
    assert!(
        text(&ticket(), r#"{"subjet":"hello","priority":"1"}"#).ends_with(
            "/priority: must be of type integer (at least 1, at most 5). Example: 1\n\
             /subjet: is not an argument of this tool. Did you mean \"subject\"?"
        )
    );
    assert!(text(&ticket(), "{").ends_with(
        "\narguments: are not valid JSON. Example: {\"subject\":\"text\",\"priority\":1}"
    ));
    assert!(InvalidArguments::bad_cursor().text().ends_with(
        "\n/cursor: is not a cursor of this tool and these arguments, or is too old. Leave it out."
    ));
}

#[test]
fn the_text_says_what_a_list_of_no_values_allows() {
    let schema = json!({ "type": "object", "properties": {
        "none": { "enum": [] }, "blank": { "enum": ["", "a"] },
    }});
    let answer = text(&schema, r#"{"none":1,"blank":"b"}"#);
    assert!(
        answer.contains("/none: may have no value: the schema allows none."),
        "{answer}"
    );
    assert!(
        answer.contains("/blank: must be one of \"\", a."),
        "{answer}"
    );
}

#[test]
fn the_text_says_which_alternatives_there_are() {
    let order = json!({ "anyOf": [{ "const": 1 }, { "const": -1 }, { "enum": ["asc", "desc"] }] });
    let schema = json!({ "type": "object", "properties": { "order": order } });
    let answer = text(&schema, r#"{"order":"up"}"#);
    assert!(
        answer.ends_with("/order: fits none of the alternatives: 1, -1, asc, desc. Example: 1"),
        "{answer}"
    );
    let open =
        json!({ "anyOf": [{ "const": "asc" }, { "type": "string", "pattern": "^[0-9]+$" }] });
    let schema = json!({ "type": "object", "properties": { "order": open } });
    let answer = text(&schema, r#"{"order":"up"}"#);
    assert!(
        answer.contains("/order: fits none of the alternatives: asc, a value of type string."),
        "{answer}"
    );
}

/// Choices are texts of the source: a comma within one is no further choice, and `1` is no number.
#[test]
fn the_text_tells_one_allowed_value_from_the_next() {
    let choice = json!({ "type": "string", "enum": ["open", "", "a, b", " c", "1", "null", "5\"", "day(d)"] });
    let schema =
        json!({ "type": "object", "properties": { "state": choice }, "required": ["state"] });
    let values = r#"open, "", "a, b", " c", "1", "null", "5\"", day(d)"#;
    for (raw, before) in [
        (r#"{"state":"zzzzzz"}"#, "/state: must be one of "),
        (r#"{"state":1}"#, "/state: must be of type string (one of "),
        ("{}", "/state: is required (string, one of "),
    ] {
        let answer = text(&schema, raw);
        assert!(answer.contains(&format!("{before}{values}")), "{answer}");
    }
    let mixed = json!({ "type": "object", "properties": { "n": { "enum": [1, "1", true] } } });
    let answer = text(&mixed, r#"{"n":2}"#);
    assert!(
        answer.contains("/n: must be one of 1, \"1\", true."),
        "{answer}"
    );
}

#[test]
fn the_text_stays_one_line_an_error_and_bounded() {
    let names = [
        "a\nb: c",
        "\u{202e}x",
        "x y",
        &"ü".repeat(5_000),
        "\"q\"",
        "\u{1b}[31m",
    ];
    let sent: Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!(1)))
        .collect();
    let answer = text(
        &json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        &Value::Object(sent).to_string(),
    );
    assert_eq!(answer.lines().count(), 1 + names.len(), "{answer}");
    for line in [
        "\"/a\\u000ab: c\": ",
        "\"/\\u202ex\": ",
        "\"/x y\": ",
        "\"/\\\"q\\\"\": ",
        "\"/\\u001b[31m\": ",
    ] {
        assert!(
            answer.contains(&format!("\n{line}is not an argument")),
            "{line} in {answer}"
        );
    }
    let property = |index: usize| {
        (
            format!("{index}{}", "n".repeat(2_000)),
            json!({ "type": "string" }),
        )
    };
    let properties: Map<String, Value> = (0..40).map(property).collect();
    let required: Vec<&String> = properties.keys().collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let answer = text(&schema, "{}");
    assert!(
        answer.len() < 13_000
            && answer
                .lines()
                .last()
                .is_some_and(|last| last.ends_with(" more.")),
        "{}",
        answer.len()
    );
}

#[test]
fn the_seeds_words() {
    let schema = json!({ "type": "object", "properties": { "email": { "type": "string", "format": "email" } }, "required": ["email"] });
    let found = refused(&schema, "{}");
    assert_eq!(found["message"], "Invalid arguments: 'email' is required.");
    assert_eq!(found["field"], "email");
    assert_eq!(found["reason"], "missing_required");
}

#[test]
fn a_misspelt_name_is_renamed_only_where_that_repairs() {
    let near = refused(&ticket(), r#"{"subjet":"hello","priority":1}"#);
    assert_eq!(near["errors"][1]["suggestion"], "subject");
    let unfit = refused(&ticket(), r#"{"subjet":5,"priority":1}"#);
    assert_eq!(unfit["errors"][1].get("suggestion"), None);
    let taken = refused(
        &ticket(),
        r#"{"subject":"hello","subjet":"hello","priority":1}"#,
    );
    assert_eq!(taken["errors"][0].get("suggestion"), None);
}

#[test]
fn unreadable_arguments() {
    for (raw, reason, path) in [
        ("", "invalid_json", ""),
        ("{", "invalid_json", ""),
        ("[]", "wrong_type", ""),
        ("null", "wrong_type", ""),
        (
            r#"{"subject":"ab","subject":"ab","priority":1}"#,
            "duplicate_key",
            "/subject",
        ),
        (
            r#"{"subject":"ab","priority":9007199254740993}"#,
            "out_of_range",
            "/priority",
        ),
        (
            r#"{"subject":"ab","priority":1e300}"#,
            "out_of_range",
            "/priority",
        ),
        (
            r#"{"subject":"ab","priority":1e400}"#,
            "out_of_range",
            "/priority",
        ),
        (r#"{"subject":"\ud800b","priority":1}"#, "invalid_json", ""),
        (
            &format!(r#"{{"subject":{}1{}}}"#, "[".repeat(70), "]".repeat(70)),
            "too_deep",
            "",
        ),
        (
            r#"{"subject":"ab","priority":1.5}"#,
            "wrong_type",
            "/priority",
        ),
        (
            r#"{"subject":"ab","priority":"1"}"#,
            "wrong_type",
            "/priority",
        ),
        (
            r#"{"subject":"ab","priority":true}"#,
            "wrong_type",
            "/priority",
        ),
    ] {
        let found = refused(&ticket(), raw);
        assert_eq!(found["errors"][0]["reason"], reason, "{raw}: {found}");
        assert_eq!(found["errors"][0]["path"], path, "{raw}: {found}");
        assert!(
            found["errors"][0].get("example").is_some(),
            "{raw}: {found}"
        );
    }
}

/// What no reader holds is refused by the schema's own bound and type, so that the next call is not refused by these.
#[test]
fn a_number_that_no_reader_holds_is_told_the_bounds_of_the_schema() {
    let raw = r#"{"subject":9007199254740993,"priority":9007199254740993}"#;
    let found = refused(&ticket(), raw);
    assert_eq!(found["errors"][0]["reason"], "wrong_type", "{found}");
    assert_eq!(found["errors"][0]["path"], "/subject", "{found}");
    assert_eq!(found["errors"][1]["reason"], "out_of_range", "{found}");
    assert_eq!(
        found["errors"][1]["constraint"],
        json!({ "minimum": 1, "maximum": 5 }),
        "{found}"
    );
    let open =
        json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 1 } } });
    let found = refused(&open, r#"{"n":9007199254740993}"#);
    assert_eq!(
        found["errors"][0]["constraint"]["maximum"], 9_007_199_254_740_991_i64,
        "{found}"
    );
}

#[test]
fn an_update_without_a_change_keeps_its_key() {
    let schema = json!({
        "type": "object",
        "properties": { "id": { "type": "integer" }, "priority": { "type": "integer", "minimum": 3 }, "note": { "type": "string" } },
        "required": ["id"], "minProperties": 2, "additionalProperties": false
    });
    for raw in [r#"{"id":7}"#, r#"{"id":7,"bogus":1}"#] {
        let found = refused(&schema, raw);
        let last = found["errors"]
            .as_array()
            .and_then(|errors| errors.last())
            .expect("an error");
        let expected = json!({
            "field": "priority", "path": "/priority", "reason": "too_few_properties",
            "constraint": { "minProperties": 2 }, "example": 3
        });
        assert_eq!(last, &expected, "{found}");
    }
}

#[test]
fn integers_arrive_as_integers() {
    let validator = ArgumentValidator::new(&ticket()).expect("a schema");
    let read = validator
        .validate(r#"{"subject":"ab","priority":5.0}"#)
        .expect("valid");
    assert_eq!(
        Value::Object(read).to_string(),
        r#"{"subject":"ab","priority":5}"#
    );
}

#[test]
fn formats_are_asserted() {
    for (format, good, bad) in [
        ("date", "2024-02-29", "2023-02-29"),
        ("date", "2024-02-29", "2024-2-9"),
        (
            "date-time",
            "2024-02-29T10:00:00+02:00",
            "2024-02-29T10:00:00",
        ),
        (
            "date-time",
            "2024-02-29T10:00:00.5Z",
            "2024-02-29 10:00:00Z",
        ),
        ("email", "a@b.example", "a@"),
        ("email", "a@b.example", "a b@c.example"),
        ("uri", "https://example.com/a?b#c", "example.com/a"),
        ("uri", "urn:isbn:123", "https://exa mple.com"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("ipv4", "192.0.2.1", "192.0.2.256"),
    ] {
        let schema = json!({ "type": "object", "properties": { "v": { "type": "string", "format": format } } });
        let validator = ArgumentValidator::new(&schema).expect("a schema");
        assert!(
            validator
                .validate(&json!({ "v": good }).to_string())
                .is_ok(),
            "{format} {good}"
        );
        let error = validator
            .validate(&json!({ "v": bad }).to_string())
            .expect_err(bad);
        assert_eq!(error.errors[0].reason, "bad_format");
    }
}

#[test]
fn steps_of_a_tenth_are_exact() {
    let schema = json!({ "type": "object", "properties": { "v": { "type": "number", "multipleOf": 0.01 } } });
    let validator = ArgumentValidator::new(&schema).expect("a schema");
    for good in ["19.99", "0.07", "1.1", "4.35", "1234567.89", "0"] {
        assert!(
            validator.validate(&format!(r#"{{"v":{good}}}"#)).is_ok(),
            "{good}"
        );
    }
    assert!(validator.validate(r#"{"v":0.005}"#).is_err());
}

#[test]
fn hostile_schemas_are_refused_or_harmless() {
    for (schema, word) in [
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object" }),
            "dialect",
        ),
        (
            json!({ "not": { "$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/$defs/a", "maxLength": 2 }, "$defs": { "a": {} } }),
            "dialect",
        ),
        (json!({ "$ref": "https://example.com/schema" }), ""),
        (json!({ "$ref": "file:///etc/passwd" }), ""),
        (json!({ "$ref": "#" }), "itself"),
        (
            json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" }),
            "itself",
        ),
        (
            json!({ "$defs": { "a": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/a" }] } }, "$ref": "#/$defs/a" }),
            "itself",
        ),
        (
            json!({ "$dynamicAnchor": "a", "$dynamicRef": "#a" }),
            "itself",
        ),
        (
            json!({ "$id": "https://example.com/a", "$ref": "https://example.com/a" }),
            "itself",
        ),
        (
            json!({ "$id": "https://example.com/a", "properties": { "x": { "$id": "b", "$ref": "b" } } }),
            "itself",
        ),
        (json!({ "$ref": "#/nowhere" }), ""),
        (json!({ "properties": { "a": { "pattern": "(" } } }), ""),
        (
            json!({ "properties": { "a": { "pattern": "(?=a)b" } } }),
            "",
        ),
        (
            json!({ "properties": { "a": { "pattern": "(?:a{1000}){1000}" } } }),
            "",
        ),
        (json!({ "multipleOf": 0 }), ""),
        (json!({ "type": "objekt" }), ""),
        (json!([]), "boolean"),
        (json!(7), "boolean"),
    ] {
        let error = ArgumentValidator::new(&schema)
            .err()
            .unwrap_or_else(|| panic!("{schema} is taken"));
        assert!(error.contains(word), "{schema}: {error}");
    }
    // This pattern is catastrophic elsewhere, and linear here.
    let schema = json!({ "properties": { "a": { "type": "string", "pattern": "^(a+)+$" } } });
    let validator = ArgumentValidator::new(&schema).expect("a schema");
    assert!(
        validator
            .validate(&json!({ "a": "a".repeat(50_000) + "!" }).to_string())
            .is_err()
    );
    // A chain of a thousand references.
    let mut defs = serde_json::Map::new();
    for index in 0..1_000 {
        defs.insert(
            format!("d{index}"),
            json!({ "$ref": format!("#/$defs/d{}", index + 1) }),
        );
    }
    defs.insert("d1000".into(), json!({ "type": "object" }));
    let chain = json!({ "$defs": defs, "$ref": "#/$defs/d0" });
    assert!(ArgumentValidator::new(&chain).is_ok_and(|validator| validator.validate("{}").is_ok()));
}

#[test]
fn schemas_of_every_kind_are_taken() {
    for schema in [
        json!(true),
        json!({}),
        json!({ "$schema": "https://json-schema.org/draft/2020-12/schema#", "type": "object" }),
        json!({ "$defs": { "tree": { "type": "object", "properties": { "kids": { "type": "array", "items": { "$ref": "#/$defs/tree" } } } } }, "$ref": "#/$defs/tree" }),
        json!({ "$id": "https://example.com/a", "$defs": { "s": { "$anchor": "s", "type": "string" } }, "properties": { "a": { "$ref": "#s" } } }),
        json!({ "properties": { "__proto__": { "type": "string" }, "constructor": {}, "": {} } }),
        json!({ "if": { "required": ["a"] }, "then": { "required": ["b"] }, "else": {} }),
    ] {
        let validator =
            ArgumentValidator::new(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        assert!(validator.validate("{}").is_ok(), "{schema}");
    }
    let nothing = ArgumentValidator::new(&json!(false)).expect("a schema");
    assert!(nothing.validate("{}").is_err());
}

#[test]
fn a_bad_cursor_has_its_place() {
    let content = InvalidArguments::bad_cursor()
        .structured_content()
        .to_json();
    let content: Value = serde_json::from_str(&content).expect("JSON");
    assert_eq!(content["field"], "cursor");
    assert_eq!(content["reason"], "bad_cursor");
}

#[test]
fn a_million_wrong_items_are_bounded() {
    let raw = format!(
        r#"{{"subject":"ab","priority":1,"tags":[{}]}}"#,
        vec!["1"; 200_000].join(",")
    );
    let found = refused(&ticket(), &raw);
    assert!(
        found["errors"]
            .as_array()
            .is_some_and(|errors| errors.len() <= 32)
    );
    // There are too many failures to ask for each: the first is reported, and a misspelt name too.
    let numbers: Vec<_> = (0..200_000).map(|number| number.to_string()).collect();
    let found = refused(
        &ticket(),
        &format!(
            r#"{{"subject":"ab","priority":1,"tags":[{}]}}"#,
            numbers.join(",")
        ),
    );
    assert_eq!(found["errors"][0]["path"], "/tags/0");
    assert_eq!(found["errors"][0]["reason"], "wrong_type");
    let texts: Vec<_> = (0..20_000).map(|index| format!("\"t{index}\"")).collect();
    let raw = format!(
        r#"{{"subject":"ab","priority":1,"tagz":[{}]}}"#,
        texts.join(",")
    );
    let found = refused(&ticket(), &raw);
    assert_eq!(
        (
            &found["errors"][0]["reason"],
            &found["errors"][0]["suggestion"]
        ),
        (&json!("unknown_argument"), &json!("tags"))
    );
    let twice = r#""a":0,"#.repeat(50_000);
    let found = refused(
        &ticket(),
        &format!(
            r#"{{"subject":"ab","priority":1,"{}":{{{twice}"a":1}}}}"#,
            "x".repeat(1 << 20)
        ),
    );
    assert!(
        found["errors"]
            .as_array()
            .is_some_and(|errors| errors.len() <= 32)
    );
    let many: serde_json::Map<String, Value> = (0..20_000)
        .map(|index| (format!("k{index}"), json!(1)))
        .collect();
    let found = refused(&ticket(), &Value::Object(many).to_string());
    assert!(
        found["errors"]
            .as_array()
            .is_some_and(|errors| errors.len() <= 32)
    );
}

/// Members that alternatives name may be omitted as well: strict clients send null for them.
#[test]
fn null_counts_as_absent_in_alternatives_too() {
    let closed = |properties: Value, required: &str| json!({ "type": "object", "properties": properties, "required": [required], "additionalProperties": false });
    let by_field = closed(
        json!({ "field": { "type": "string" }, "op": { "type": "string" } }),
        "field",
    );
    let raw = closed(
        json!({ "raw": { "type": "string" }, "note": { "type": ["string", "null"] } }),
        "raw",
    );
    let filter = json!({ "anyOf": [by_field, { "$ref": "#/$defs/raw" }] });
    let schema =
        json!({ "type": "object", "$defs": { "raw": raw }, "properties": { "filter": filter } });
    let validator = ArgumentValidator::new(&schema).expect("a schema");
    for (sent, taken) in [
        (
            json!({ "filter": { "field": "a", "op": null } }),
            json!({ "filter": { "field": "a" } }),
        ),
        (
            json!({ "filter": { "raw": "a", "note": null } }),
            json!({ "filter": { "raw": "a", "note": null } }),
        ),
    ] {
        let read = validator
            .validate(&sent.to_string())
            .unwrap_or_else(|refused| panic!("{sent}: {refused:?}"));
        assert_eq!(Value::Object(read), taken, "{sent}");
    }
    assert!(
        validator.validate(r#"{"filter":{"field":null}}"#).is_err(),
        "what is required is not absent"
    );
    // The schema itself says what may be null, whatever its alternatives add.
    let schema = json!({
        "type": "object",
        "properties": { "id": { "type": "string" }, "name": { "type": "string" } },
        "anyOf": [{ "required": ["id"] }, { "properties": { "name": { "minLength": 1 } }, "required": ["name"] }],
    });
    let validator = ArgumentValidator::new(&schema).expect("a schema");
    let read = validator
        .validate(r#"{"id":"7","name":null}"#)
        .expect("the name is absent");
    assert_eq!(Value::Object(read), json!({ "id": "7" }));
}

/// Some clients send every argument of a tool, with null for those that have no value.
#[test]
fn null_counts_as_absent_where_an_optional_argument_may_not_be_null() {
    let schema = json!({
        "type": "object",
        "$defs": { "day": { "type": "string", "format": "date" } },
        "properties": {
            "id": { "type": "integer" },
            "text": { "type": "string" },
            "state": { "type": "string", "enum": ["open", "closed"] },
            "day": { "$ref": "#/$defs/day" },
            "one": { "oneOf": [{ "type": "string" }, { "type": "integer" }] },
            "note": { "type": ["string", "null"] },
            "due": { "anyOf": [{ "type": "string", "format": "date" }, { "type": "null" }] },
            "size": { "enum": ["s", null] },
            "any": {},
            "at": {
                "anyOf": [{
                    "type": "object",
                    "properties": { "city": { "type": "string" }, "zip": { "type": "string" } },
                    "required": ["city"], "additionalProperties": false
                }, { "type": "null" }]
            },
            "lines": {
                "type": "array",
                "items": { "type": "object", "properties": { "sku": { "type": "string" } }, "additionalProperties": false }
            }
        },
        "required": ["id"],
        "additionalProperties": false
    });
    let validator = ArgumentValidator::new(&schema).expect("a schema");
    for (sent, taken) in [
        (
            json!({ "id": 1, "text": null, "state": null, "day": null, "one": null, "lines": null }),
            json!({ "id": 1 }),
        ),
        (
            json!({ "id": 1, "note": null, "due": null, "size": null, "any": null, "at": null }),
            json!({ "id": 1, "note": null, "due": null, "size": null, "any": null, "at": null }),
        ),
        (
            json!({ "id": 1, "at": { "city": "Bonn", "zip": null }, "lines": [{ "sku": null }, {}] }),
            json!({ "id": 1, "at": { "city": "Bonn" }, "lines": [{}, {}] }),
        ),
    ] {
        let read = validator
            .validate(&sent.to_string())
            .unwrap_or_else(|refused| panic!("{sent}: {refused:?}"));
        assert_eq!(Value::Object(read).to_string(), taken.to_string(), "{sent}");
    }
    for (sent, path) in [
        (json!({ "id": null }), "/id"),
        (json!({ "id": 1, "at": { "city": null } }), "/at/city"),
        (json!({ "id": 1, "lines": [null] }), "/lines/0"),
        (json!({ "id": 1, "unknown": null }), "/unknown"),
        // The null is not what is wrong here.
        (json!({ "id": 1, "text": null, "state": "opne" }), "/state"),
    ] {
        let found = refused(&schema, &sent.to_string());
        assert_eq!(found["errors"][0]["path"], path, "{sent}: {found}");
        assert_eq!(
            found["errors"].as_array().map(Vec::len),
            Some(1),
            "{sent}: {found}"
        );
    }
    let update = json!({
        "type": "object", "properties": { "id": { "type": "integer" }, "note": { "type": "string" } },
        "required": ["id"], "minProperties": 2, "additionalProperties": false
    });
    assert_eq!(
        refused(&update, r#"{"id":7,"note":null}"#)["errors"][0]["reason"],
        "too_few_properties"
    );
}

#[test]
fn an_object_with_too_few_members_is_named_itself() {
    let labels = json!({ "type": "object", "minProperties": 1 });
    let schema = json!({ "type": "object", "properties": { "labels": labels } });
    let text = text(&schema, r#"{"labels":{}}"#);
    let line = "/labels: must have at least 1 member.";
    assert!(text.contains(line), "{text}");
}
