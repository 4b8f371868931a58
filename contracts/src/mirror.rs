//! Arguments that HTTP requests repeat in a header (`x-mcp-header` in the schema of a property), so that a proxy in front of
//! a server can route by them.

use serde_json::Value;

use crate::RawSchema;

/// Deeper properties are looked at no further.
const DEPTH_MAX: usize = 8;

/// One argument, and the header that repeats it: `Mcp-Param-` and the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredArgument {
    /// The names of the properties on the way to it.
    pub path: Vec<String>,
    pub header: String,
}

impl MirroredArgument {
    /// Returns the value as a header has it, or `None` if the argument is absent or null and the header must be absent.
    pub fn value(&self, arguments: &Value) -> Option<String> {
        let value = self
            .path
            .iter()
            .try_fold(arguments, |value, name| value.get(name))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// The arguments of a tool that are repeated.
pub fn mirrored(input: &RawSchema) -> Vec<MirroredArgument> {
    // Nearly no tool has any, and its schema need not be read for that.
    if !input.as_json().contains("x-mcp-header") {
        return Vec::new();
    }
    let mut found = Vec::new();
    collect(&input.value(), &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<MirroredArgument>) {
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .filter(|_| path.len() < DEPTH_MAX);
    for (name, property) in properties.into_iter().flatten() {
        path.push(name.clone());
        if let Some(header) = property
            .get("x-mcp-header")
            .and_then(Value::as_str)
            .filter(|it| is_token(it))
        {
            found.push(MirroredArgument {
                path: path.clone(),
                header: header.to_owned(),
            });
        }
        collect(property, path, found);
        path.pop();
    }
}

/// Returns `true` for a header name of RFC 9110.
fn is_token(name: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn properties_that_name_a_header_are_found_wherever_they_are_nested() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "bad": { "type": "string", "x-mcp-header": "no token" },
            "place": { "type": "object", "properties": { "floor": { "type": "integer", "x-mcp-header": "Floor" } } },
            "q": { "type": "string" },
        } });
        let found = mirrored(&schema.into());
        let names: Vec<&str> = found.iter().map(|one| one.header.as_str()).collect();
        assert_eq!(names, ["Region", "Floor"]);
        let arguments = json!({ "region": null, "place": { "floor": 3 } });
        assert_eq!(found[0].value(&arguments), None);
        assert_eq!(found[1].value(&arguments), Some("3".to_owned()));
    }
}
