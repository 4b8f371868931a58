//! Calls of the past under a new schema, from what was kept of them.

use serde_json::{Value, json};
use weir_contracts::impact::{ImpactVerdict, ValueProfile, judge, profile};

fn object(properties: Value, required: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn kept(schema: &Value, arguments: Value) -> ValueProfile {
    profile(schema, arguments.as_object().expect("arguments"))
}

fn old() -> Value {
    object(
        json!({
            "subject": { "type": "string", "pattern": "^[A-Z]" },
            "status": { "type": "string", "enum": ["open", "closed"] },
            "priority": { "type": "integer", "minimum": 1, "maximum": 5 },
            "amount": { "type": "number" },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
        }),
        json!(["subject"]),
    )
}

#[test]
fn nothing_an_agent_chose_freely_is_kept() {
    let arguments = json!({ "subject": "SECRET-TEXT", "status": "open", "priority": 4, "amount": 31337.25, "tags": ["a"] });
    let profile = serde_json::to_value(kept(&old(), arguments)).expect("plain data");
    assert_eq!(
        profile,
        json!({ "object": { "members": {
            "amount": { "number": { "whole": false } },
            "priority": { "value": 4 },
            "status": { "value": "open" },
            "subject": { "text": { "length": 11, "patterns": ["^[A-Z]"] } },
            "tags": { "list": { "length": 1, "unique": true, "items": [{ "value": "a" }] } },
        }, "further": 0 } })
    );
    let open = json!({ "type": "object" });
    let text = serde_json::to_string(&kept(&open, json!({ "SECRET-NAME": "SECRET" })))
        .expect("plain data");
    assert!(!text.contains("SECRET"), "{text}");
}

#[test]
fn calls_are_judged_or_said_not_to_be() {
    let passes = || ImpactVerdict::Passes;
    let fails = |why: &str| ImpactVerdict::Fails {
        why: why.to_owned(),
    };
    let open = |what: &str| ImpactVerdict::CannotTell {
        why: format!("{what} is not known from what was kept"),
    };
    let call = json!({ "subject": "Abc", "status": "open", "priority": 4, "amount": 2, "tags": ["a", "a"] });
    let profile = kept(&old(), call);
    for (place, value, expected) in [
        ("/title", json!("T"), passes()),
        ("/properties/status/enum", json!(["open"]), passes()),
        (
            "/properties/status/enum",
            json!(["closed"]),
            fails("the value is no longer allowed at /status"),
        ),
        ("/properties/priority/maximum", json!(4), passes()),
        (
            "/properties/priority/maximum",
            json!(3),
            fails("the value is no longer allowed at /priority"),
        ),
        ("/properties/amount/type", json!("integer"), passes()),
        (
            "/properties/amount/type",
            json!("string"),
            fails("type at /amount"),
        ),
        (
            "/properties/amount/minimum",
            json!(0),
            open("minimum at /amount"),
        ),
        ("/properties/subject/maxLength", json!(3), passes()),
        (
            "/properties/subject/maxLength",
            json!(2),
            fails("maxLength at /subject"),
        ),
        (
            "/properties/subject/pattern",
            json!("^[A-Z]+$"),
            open("pattern at /subject"),
        ),
        (
            "/properties/subject/format",
            json!("email"),
            open("format at /subject"),
        ),
        (
            "/properties/subject/enum",
            json!(["Abc", "D"]),
            open("enum at /subject"),
        ),
        (
            "/properties/subject/enum",
            json!(["D"]),
            fails("enum at /subject"),
        ),
        (
            "/properties/tags/maxItems",
            json!(1),
            fails("maxItems at /tags"),
        ),
        (
            "/properties/tags/uniqueItems",
            json!(true),
            fails("uniqueItems at /tags"),
        ),
        (
            "/properties/tags/items",
            json!({ "enum": ["b"] }),
            fails("the value is no longer allowed at /tags/0"),
        ),
        (
            "/required",
            json!(["subject", "due"]),
            fails("required at /due"),
        ),
        (
            "/properties",
            json!({ "subject": {} }),
            fails("not at /amount"),
        ),
        (
            "/minProperties",
            json!(6),
            fails("minProperties at the arguments"),
        ),
        (
            "/dependentRequired",
            json!({ "a": ["b"] }),
            open("dependentRequired at the arguments"),
        ),
    ] {
        let mut new = old();
        let (parent, key) = place.rsplit_once('/').expect("a pointer");
        new.pointer_mut(parent).expect("a place")[key.to_owned()] = value;
        assert_eq!(judge(&new, &profile), expected, "{place}");
    }
    assert!(matches!(
        judge(&json!(7), &profile),
        ImpactVerdict::CannotTell { .. }
    ));
    let elsewhere = json!({ "properties": { "subject": { "$ref": "https://example.com/a" } } });
    assert!(matches!(
        judge(&elsewhere, &profile),
        ImpactVerdict::CannotTell { .. }
    ));
}
