//! Arguments that HTTP requests repeat in a header (`x-mcp-header` in the schema of a property), so that a proxy in front of
//! a server can route by them.

use serde_json::Value;
use weir_schema::json;

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
        let value = self.find(arguments)?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            _ => None,
        }
    }

    /// Returns `true` if a header repeats the argument. Numbers are compared by their value, since clients in Python send the
    /// header `42.0` with a float that is whole.
    pub fn is_repeated_by(&self, header: &[u8], arguments: &Value) -> bool {
        let Some(value) = self.value(arguments) else {
            return false;
        };
        let is_same_number = || {
            let number = self
                .find(arguments)
                .filter(|argument| argument.is_number())?;
            let text = std::str::from_utf8(header).ok()?;
            Some(json::read_wide(text).ok()? == *number)
        };
        value.as_bytes() == header || is_same_number().unwrap_or(false)
    }

    fn find<'v>(&self, arguments: &'v Value) -> Option<&'v Value> {
        self.path
            .iter()
            .try_fold(arguments, |value, name| value.get(name))
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

    /// The specification requires an integer to be compared by its value.
    #[test]
    fn a_number_is_repeated_however_it_is_written() {
        let argument = MirroredArgument {
            path: vec!["n".to_owned()],
            header: "N".to_owned(),
        };
        let cases = [
            (json!(42), "42", true),
            (json!(42), "42.0", true),
            (json!(42), "4.2e1", true),
            (json!(42), "43", false),
            (json!(42), "042", false),
            (json!(42), "\"42\"", false),
            (json!(42), "", false),
            (json!(9_007_199_254_740_993_u64), "9007199254740993", true),
            (json!(9_007_199_254_740_993_u64), "9007199254740992", false),
            (json!("42"), "42", true),
            (json!("42"), "42.0", false),
            (json!(true), "true", true),
            (json!(true), "True", false),
            (json!(null), "null", false),
        ];
        for (value, header, is_repeated) in cases {
            let arguments = json!({ "n": value });
            let found = argument.is_repeated_by(header.as_bytes(), &arguments);
            assert_eq!(found, is_repeated, "{value} {header}");
        }
    }
}
