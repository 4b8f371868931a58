//! Publishes output schemas: every result of a tool meets its schema, errors included.
//!
//! The form is that of collections, `{type, properties, anyOf: [result arm, error arm]}`: one generation of clients
//! validates `structuredContent` even on errors, and all take only an object. A schema of anything else becomes the
//! member `result` of one, in both eras alike.

use serde_json::{Map, Value, json};
use weir_schema::{keyword::SHARED, reference::redirect};

use crate::compile::{ERROR_MEMBERS, error_members};

/// Keywords that look at adjacent properties, so that all of these must remain next to them.
const OF_PROPERTIES: [&str; 3] = [
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
];

/// Returns the published schema, and whether the tool's value is wrapped in it.
pub(super) fn published(schema: &Value) -> (Value, bool) {
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    let (mut root, shared) = parted(schema);
    if !is_object {
        let mut result = Value::Object(root);
        refer_from_below(&mut result, "#/properties/result");
        root = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), json!({ "result": result })),
            ("required".to_owned(), json!(["result"])),
        ]);
    }
    let mut shared = Value::Object(shared);
    if !is_object {
        refer_from_below(&mut shared, "#/properties/result");
    }
    (with_errors(root, shared), !is_object)
}

fn with_errors(mut arm: Map<String, Value>, shared: Value) -> Value {
    arm.shift_remove("type");
    let properties = match arm.get("properties") {
        Some(Value::Object(properties)) => properties.clone(),
        _ => Map::new(),
    };
    // An error's own members are not typed in the root.
    let is_of_errors = |name: &String| ERROR_MEMBERS.contains(&name.as_str());
    let in_root: Map<String, Value> = properties
        .iter()
        .filter(|(name, _)| !is_of_errors(name))
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect();
    if !OF_PROPERTIES
        .iter()
        .any(|keyword| arm.contains_key(*keyword))
    {
        let in_arm: Map<String, Value> = properties
            .into_iter()
            .filter(|(name, _)| is_of_errors(name))
            .collect();
        match in_arm.is_empty() {
            true => drop(arm.shift_remove("properties")),
            false => drop(arm.insert("properties".to_owned(), Value::Object(in_arm))),
        }
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), json!("object"));
    for keyword in ["title", "description"] {
        root.extend(
            arm.shift_remove(keyword)
                .map(|text| (keyword.to_owned(), text)),
        );
    }
    root.insert("properties".to_owned(), Value::Object(in_root));
    root.insert(
        "anyOf".to_owned(),
        Value::Array(vec![Value::Object(arm), error_members()]),
    );
    if let Value::Object(shared) = shared {
        root.extend(shared);
    }
    Value::Object(root)
}

/// Splits a schema into the root's own keywords and the schemas that it keeps for references.
fn parted(schema: &Value) -> (Map<String, Value>, Map<String, Value>) {
    let mut own = match schema {
        Value::Object(members) => members.clone(),
        // `true` takes anything, as `{}` does; `false` takes nothing.
        Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
        _ => Map::new(),
    };
    own.shift_remove("$schema");
    let mut shared = Map::new();
    for keyword in SHARED {
        shared.extend(
            own.shift_remove(keyword)
                .map(|schemas| (keyword.to_owned(), schemas)),
        );
    }
    (own, shared)
}

/// Rewrites references to the root, or into it, since that value is now one level below.
fn refer_from_below(schema: &mut Value, to: &str) {
    let moved = |target: &str| {
        let fragment = target.strip_prefix('#')?;
        let is_shared = SHARED
            .iter()
            .any(|shared| fragment.starts_with(&format!("/{shared}/")));
        let is_pointer = fragment.is_empty() || fragment.starts_with('/');
        (is_pointer && !is_shared).then(|| format!("{to}{fragment}"))
    };
    if let Value::Object(members) = schema {
        redirect(members, &moved);
    }
}
