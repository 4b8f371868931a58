//! Writes the tools of a contract as an OpenAPI 3.1 document: each is called with `POST`, and a tool that only reads also
//! with `GET`.
//!
//! The document is JSON made here, since a type for OpenAPI would lose the keywords that it does not know. Schemas are
//! used as they are published: only their references are moved, because a document has one root and each schema was one.

use serde_json::{Map, Value, json};
use weir_schema::{
    keyword::{REF, SCHEMA},
    reference::schema_for,
    schema::without_null,
    text::is_single,
    walk::{SubschemaKind, inside},
};

use crate::{
    ContractTool, RawSchema,
    compile::{error_members, result_arm},
    validate,
};

/// The document's texts about the service, and where and how it is called.
#[derive(Clone, Copy, Debug)]
pub struct ApiDescription<'a> {
    pub title: &'a str,
    pub version: &'a str,
    pub description: Option<&'a str>,
    /// The URL below which the tools stand, such as `/rest/airports`.
    pub server: &'a str,
    /// Each call needs a key.
    pub needs_key: bool,
}

/// Keywords that a schema may have in addition to its properties while its arguments are still a plain list of properties.
const FLAT: [&str; 8] = [
    "$schema",
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "default",
];
const PROBLEM: &str = "#/components/schemas/Problem";

/// Writes the document; tools stand in the order in which they are given.
pub fn document<'t>(
    api: &ApiDescription<'_>,
    tools: impl IntoIterator<Item = &'t ContractTool>,
) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::from_iter([("Problem".to_owned(), problem())]);
    for tool in tools {
        let (input, output) = (
            format!("{}.input", tool.name),
            format!("{}.output", tool.name),
        );
        let (schema, result) = (tool.input_schema.value(), success_schema(tool));
        let answer = content(&output, example(&result));
        let arguments = example(&schema);
        let mut operations = Map::new();
        if takes_query(tool, &schema) {
            let mut get = operation(tool, &format!("get_{}", tool.name), &answer);
            get.insert(
                "parameters".into(),
                parameters(&schema, &input, arguments.as_ref()),
            );
            operations.insert("get".into(), Value::Object(get));
        }
        let mut post = operation(tool, &tool.name, &answer);
        let has_required = schema["required"]
            .as_array()
            .is_some_and(|required| !required.is_empty());
        let body = json!({ "required": has_required, "content": { "application/json": content(&input, arguments) } });
        post.insert("requestBody".into(), body);
        operations.insert("post".into(), Value::Object(post));
        paths.insert(format!("/{}", tool.name), Value::Object(operations));
        schemas.insert(input.clone(), moved(&schema, &input));
        schemas.insert(output.clone(), moved(&result, &output));
    }
    let mut info = Map::from_iter([
        ("title".to_owned(), api.title.into()),
        ("version".to_owned(), api.version.into()),
    ]);
    if let Some(description) = api.description {
        info.insert("description".into(), description.into());
    }
    let mut components = Map::from_iter([("schemas".to_owned(), Value::Object(schemas))]);
    let mut document = Map::from_iter([
        ("openapi".to_owned(), "3.1.0".into()),
        ("info".to_owned(), Value::Object(info)),
        ("servers".to_owned(), json!([{ "url": api.server }])),
    ]);
    if api.needs_key {
        components.insert(
            "securitySchemes".into(),
            json!({ "key": { "type": "http", "scheme": "bearer" } }),
        );
        document.insert("security".into(), json!([{ "key": [] }]));
    }
    document.insert("paths".into(), Value::Object(paths));
    document.insert("components".into(), Value::Object(components));
    Value::Object(document)
}

/// Returns `true` if a tool may be called with `GET`: it only reads, and each argument is one value or a list of such
/// values. `schema` is the tree of its input schema.
pub fn takes_query(tool: &ContractTool, schema: &Value) -> bool {
    let is_flat = schema
        .as_object()
        .is_some_and(|schema| schema.keys().all(|key| FLAT.contains(&key.as_str())));
    let properties = schema["properties"].as_object();
    tool.annotations.read_only_hint == Some(true)
        && is_flat
        && properties
            .into_iter()
            .flat_map(Map::values)
            .all(|property| {
                let rule = without_null(property);
                is_single(rule)
                    || (rule["type"] == "array" && is_single(without_null(&rule["items"])))
            })
}

/// Returns the schema of a result that is not an error.
pub fn success_schema(tool: &ContractTool) -> Value {
    match tool.output_schema.as_ref().map(RawSchema::value) {
        Some(schema) if schema["anyOf"].get(1) == Some(&error_members()) => result_arm(&schema),
        Some(schema) => schema,
        None => json!({
            "type": "object",
            "properties": { "content": { "type": "array", "items": { "type": "object" } } },
            "required": ["content"],
        }),
    }
}

/// Returns a body: the component that is its schema, and an example of it.
fn content(component: &str, example: Option<Value>) -> Value {
    let mut content = json!({ "schema": schema_for(format!("#/components/schemas/{component}")) });
    if let Some(example) = example {
        content["example"] = example;
    }
    content
}

/// Returns an example that the schema takes as a whole: the author's own examples and defaults if it has any, and
/// otherwise a value by its rules. `None` if none can be made.
fn example(schema: &Value) -> Option<Value> {
    let example = validate::example(schema)?;
    let validator = validate::validator(schema)
        .or_else(|_| validate::foreign_validator(schema))
        .ok()?;
    validator.is_valid(&example).then_some(example)
}

fn operation(tool: &ContractTool, id: &str, answer: &Value) -> Map<String, Value> {
    let mut operation = Map::from_iter([("operationId".to_owned(), Value::from(id))]);
    if let Some(title) = &tool.title {
        operation.insert("summary".into(), title.clone().into());
    }
    operation.insert("description".into(), tool.description.clone().into());
    let problem = json!({ "application/problem+json": { "schema": schema_for(PROBLEM) } });
    operation.insert(
        "responses".into(),
        json!({
            "200": { "description": "The result.", "content": { "application/json": answer } },
            "default": { "description": "Why there is no result.", "content": problem },
        }),
    );
    operation
}

/// `example`: of all arguments together; the parameters that are in it have their part of it.
fn parameters(schema: &Value, input: &str, example: Option<&Value>) -> Value {
    let required = schema["required"].as_array();
    let parameter = |(name, property): (&String, &Value)| {
        let is_required = required.is_some_and(|required| required.iter().any(|one| one == name));
        let mut parameter = Map::from_iter([
            ("name".to_owned(), Value::from(name.as_str())),
            ("in".to_owned(), "query".into()),
        ]);
        if let Some(description) = property.get("description") {
            parameter.insert("description".into(), description.clone());
        }
        parameter.insert("required".into(), is_required.into());
        parameter.insert("schema".into(), moved(property, input));
        if let Some(example) = example.and_then(|example| example.get(name)) {
            parameter.insert("example".into(), example.clone());
        }
        Value::Object(parameter)
    };
    schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(parameter)
        .collect()
}

/// Moves the schema below `#/components/schemas/NAME`, where its references to itself then lead. Its dialect is the
/// document's.
fn moved(schema: &Value, name: &str) -> Value {
    let mut moved = schema.clone();
    if let Value::Object(members) = &mut moved {
        members.shift_remove(SCHEMA);
    }
    move_references(&mut moved, name);
    moved
}

fn move_references(value: &mut Value, name: &str) {
    match value {
        Value::Array(list) => list
            .iter_mut()
            .for_each(|value| move_references(value, name)),
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), &*value) {
                    ("const" | "enum" | "default" | "examples", _) => {}
                    // The members here are names, whatever they are called.
                    (key, Value::Object(_)) if inside(key) == SubschemaKind::Named => {
                        let named = value.as_object_mut().into_iter().flatten();
                        named.for_each(|(_, schema)| move_references(schema, name));
                    }
                    (REF, Value::String(target)) if target.starts_with('#') => {
                        *value = format!("#/components/schemas/{name}{}", &target[1..]).into();
                    }
                    _ => move_references(value, name),
                }
            }
        }
        _ => {}
    }
}

fn problem() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "description": "RFC 9457, with the members that an error of the tool has.",
        "properties": {
            "type": text, "title": text, "status": { "type": "integer" }, "detail": text,
            "code": text, "call_id": text, "field": text, "reason": text, "outcome": text,
            "errors": { "type": "array", "items": { "type": "object" } },
            "retry_after_ms": { "type": "integer" }, "structuredContent": {},
        },
        "required": ["type", "title", "status", "detail"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_follow_their_schema() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": { "next": { "$ref": "#" }, "tag": { "$ref": "#/$defs/Tag" }, "$ref": { "const": { "$ref": "#" } },
                "default": { "$ref": "#" } },
            "$defs": { "Tag": { "type": "string" } },
            "definitions": { "default": { "$ref": "#" } }, "dependencies": { "const": { "$ref": "#" }, "tag": ["next"] },
            "x-shared": { "first": { "$ref": "#" } },
        });
        let moved = moved(&schema, "t.input");
        assert_eq!(
            moved["properties"]["next"]["$ref"],
            "#/components/schemas/t.input"
        );
        assert_eq!(
            moved["properties"]["tag"]["$ref"],
            "#/components/schemas/t.input/$defs/Tag"
        );
        assert_eq!(moved["properties"]["$ref"]["const"]["$ref"], "#");
        assert_eq!(
            moved["properties"]["default"]["$ref"],
            "#/components/schemas/t.input"
        );
        for moved in [
            &moved["definitions"]["default"],
            &moved["dependencies"]["const"],
            &moved["x-shared"]["first"],
        ] {
            assert_eq!(moved["$ref"], "#/components/schemas/t.input");
        }
        assert!(moved.get("$schema").is_none());
    }
}
