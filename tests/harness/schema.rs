//! Checks whether an answer keeps what the listing promises.

use jsonschema::Validator;
use serde_json::Value;

/// Checks `result` of a call against the tool's advertised output schema, as a strict client would.
pub fn check(tool: &Value, result: &Value) {
    let schema = &tool["outputSchema"];
    assert!(
        schema.is_object(),
        "{} advertises no output schema",
        tool["name"]
    );
    let structured = &result["structuredContent"];
    assert!(structured.is_object(), "no structured content: {result}");
    let problems: Vec<String> = validator(schema)
        .iter_errors(structured)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(
        problems.is_empty(),
        "{} breaks its output schema:\n{}\n{structured}",
        tool["name"],
        problems.join("\n")
    );
}

/// Returns the tool of that name in a listing.
pub fn tool<'a>(tools: &'a [Value], name: &str) -> &'a Value {
    tools
        .iter()
        .find(|tool| tool["name"] == name)
        .unwrap_or_else(|| panic!("no tool `{name}` is listed"))
}

fn validator(schema: &Value) -> Validator {
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .expect("an advertised schema compiles")
}
