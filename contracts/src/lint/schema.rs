//! Parameters and schemas: what every client takes, and what a model needs to fill them.

use serde_json::{Map, Value};
use weir_schema::{
    keyword::{DYNAMIC_REF, REF},
    reference::each_reached,
    rewrite::has_needless_escapes,
    schema::DIALECT,
    walk::{SubschemaKind, inside},
};

use super::{
    ENUM_IN_PROSE, FORMAT_EMAIL, LIST_ITEMS, LintFindings, LintedTool, OUTPUT_ROOT,
    PARAMETER_KEYWORD, PARAMETER_NAME, PARAMETER_REPEATS, PARAMETER_UNDESCRIBED, PATTERN_DIALECT,
    SCHEMA_DIALECT, SCHEMA_REFERENCE, SCHEMA_ROOT, wording,
};
use crate::{name, validate};

const ALTERNATIVES: [&str; 3] = ["oneOf", "anyOf", "allOf"];
/// Keywords that describe a parameter, by its values or by another place.
const TOLD: [&str; 5] = ["enum", "const", REF, "title", "description"];

pub(super) fn check(tool: &LintedTool<'_>, findings: &mut LintFindings) {
    let mut add = |field: &str, rule, message| findings.add(Some(tool.name), field, rule, message);
    check_root(tool, &mut add);
    for schema in [Some(tool.input), tool.output].into_iter().flatten() {
        check_dialect(schema, &mut add);
        check_references(schema, &mut add);
        check_patterns(schema, &mut add);
    }
    parameters(tool.input, "", &mut |field, own_name, schema| {
        check_parameter(field, own_name, schema, &mut add)
    });
}

pub(super) fn joined(field: &str, member: &str) -> String {
    if field.is_empty() {
        member.to_owned()
    } else {
        format!("{field}.{member}")
    }
}

type Add<'a> = dyn FnMut(&str, &'static super::LintRule, String) + 'a;

fn check_root(tool: &LintedTool<'_>, add: &mut Add<'_>) {
    if tool.input["type"] != "object" {
        add(
            "",
            SCHEMA_ROOT,
            "the input is not declared as an object".to_owned(),
        );
    }
    if let Some(key) = ALTERNATIVES
        .iter()
        .find(|key| tool.input.get(key).is_some())
    {
        add("", SCHEMA_ROOT, format!("the input has {key} at its root"));
    }
    if tool.output.is_some_and(|output| output["type"] != "object") {
        add(
            "",
            OUTPUT_ROOT,
            "the output is not declared as an object".to_owned(),
        );
    }
}

fn check_dialect(schema: &Value, add: &mut Add<'_>) {
    if let Some(dialect) = schema["$schema"].as_str()
        && dialect.trim_end_matches('#') != DIALECT
    {
        add(
            "",
            SCHEMA_DIALECT,
            format!("the schema is of the dialect {}", name::quoted(dialect)),
        );
    }
}

/// Finds references that lead elsewhere. A member of `properties` may be called `$ref` without being a reference.
fn check_references(schema: &Value, add: &mut Add<'_>) {
    each_reached(schema, &mut |schema| {
        let reference = [REF, DYNAMIC_REF]
            .iter()
            .find_map(|key| schema[*key].as_str());
        if let Some(reference) = reference.filter(|reference| !reference.starts_with('#')) {
            add(
                "",
                SCHEMA_REFERENCE,
                format!("the schema refers to {}", name::quoted(reference)),
            );
        }
    });
}

/// Finds patterns of another language's dialect, those for names included.
fn check_patterns(schema: &Value, add: &mut Add<'_>) {
    each_reached(schema, &mut |schema| {
        let of_names = schema["patternProperties"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str);
        for pattern in schema["pattern"].as_str().into_iter().chain(of_names) {
            if !validate::is_pattern(pattern) || has_needless_escapes(pattern) {
                add(
                    "",
                    PATTERN_DIALECT,
                    format!(
                        "the pattern {} is not of JSON Schema",
                        name::quoted(pattern)
                    ),
                );
            }
        }
    });
}

/// Visits every property of the input, those inside others and of definitions included, with its place, name and schema.
fn parameters(schema: &Value, field: &str, found: &mut dyn FnMut(&str, &str, &Value)) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match (keyword.as_str(), inside(keyword), value) {
            // These only test a value whose members are named elsewhere.
            ("not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies", ..) => {}
            ("properties", _, Value::Object(properties)) => {
                for (own_name, inner) in properties {
                    let field = joined(field, own_name);
                    found(&field, own_name, inner);
                    if !is_file(inner) {
                        parameters(inner, &field, found);
                    }
                }
            }
            ("$defs" | "definitions", _, Value::Object(definitions)) => {
                definitions
                    .iter()
                    .for_each(|(name, inner)| parameters(inner, &joined(field, name), found));
            }
            (_, SubschemaKind::Named, Value::Object(schemas)) => {
                schemas
                    .values()
                    .for_each(|inner| parameters(inner, field, found));
            }
            (_, SubschemaKind::Schemas, Value::Array(schemas)) => {
                schemas
                    .iter()
                    .for_each(|inner| parameters(inner, field, found));
            }
            (_, SubschemaKind::Schemas, inner) => parameters(inner, field, found),
            _ => {}
        }
    }
}

/// Finds the places of properties whose names new contracts may not have.
pub(super) fn unusable_names(input: &Value, found: &mut dyn FnMut(&str)) {
    parameters(input, "", &mut |field, own_name, _| {
        if !name::is_field(own_name) {
            found(field);
        }
    });
}

/// Returns `true` for a field of type file, whose members the compiler wrote.
fn is_file(schema: &Value) -> bool {
    schema["properties"]
        .as_object()
        .is_some_and(|members| members.keys().eq(["id", "mime_type"]))
}

fn check_parameter(field: &str, own_name: &str, schema: &Value, add: &mut Add<'_>) {
    if !name::is_field(own_name) {
        add(
            field,
            PARAMETER_NAME,
            format!(
                "the parameter {} has a name that not every client takes",
                name::quoted(own_name)
            ),
        );
    } else if !name::is_python_name(own_name) {
        add(
            field,
            PARAMETER_KEYWORD,
            format!(
                "the parameter {} has a name that no argument of Python can have",
                name::quoted(own_name)
            ),
        );
    }
    let beside_null = crate::schema::without_null(schema);
    if [schema, beside_null]
        .iter()
        .any(|schema| schema["format"] == "email")
    {
        add(
            field,
            FORMAT_EMAIL,
            "the parameter has the format email".to_owned(),
        );
    }
    let is_list = schema["type"] == "array"
        || schema["type"]
            .as_array()
            .is_some_and(|types| types.contains(&"array".into()));
    if is_list
        && ["items", "prefixItems"]
            .iter()
            .all(|key| schema.get(key).is_none())
    {
        add(
            field,
            LIST_ITEMS,
            "the list does not say what is in it".to_owned(),
        );
    }
    let description = schema["description"].as_str().unwrap_or_default().trim();
    if description.is_empty() {
        let is_told = |schema: &Value| {
            TOLD.iter().any(|key| {
                schema[*key]
                    .as_str()
                    .is_some_and(|text| !text.trim().is_empty())
                    || schema[*key].is_array()
            })
        };
        let inside = ALTERNATIVES
            .iter()
            .filter_map(|key| schema[*key].as_array())
            .flatten()
            .chain(schema.get("items"));
        if !is_told(schema) && schema.get("const").is_none() && !inside.into_iter().any(is_told) {
            add(
                field,
                PARAMETER_UNDESCRIBED,
                "nothing says what the parameter is".to_owned(),
            );
        }
    } else if wording::repeats(description, own_name) {
        add(
            field,
            PARAMETER_REPEATS,
            "the description only repeats the name".to_owned(),
        );
    }
    let is_open = ["enum", "const", "pattern", "format", "oneOf", "anyOf", REF]
        .iter()
        .all(|key| schema.get(key).is_none());
    if is_open
        && schema["type"] == "string"
        && let Some(values) = listed_values(description)
    {
        add(
            field,
            ENUM_IN_PROSE,
            format!("the description lists the values: {}", name::quoted(values)),
        );
    }
}

/// Returns the list of allowed values in a description: `one of: a, b`, `one of a, b or c`, `'a' or 'b'`, `a|b|c`.
fn listed_values(description: &str) -> Option<&str> {
    const SAYS_SO: &[&str] = &[
        "allowed values",
        "valid values",
        "possible values",
        "accepted values",
        "valid options",
        "allowed options",
    ];
    let small = description.to_ascii_lowercase();
    let from = |at: usize| description.get(at..);
    if let Some(at) = SAYS_SO.iter().find_map(|phrase| small.find(phrase)) {
        return from(at);
    }
    let begins_list = |rest: &str| {
        rest.trim_start()
            .starts_with([':', '\'', '"', '`', '(', '['])
    };
    let is_list = |rest: &str| begins_list(rest) || is_list_of_words(rest);
    // And not `none of`.
    let is_word = |at: usize| !small[..at].ends_with(char::is_alphanumeric);
    let mut matches = small.match_indices("one of").map(|(at, _)| at);
    if let Some(at) = matches.find(|at| is_word(*at) && is_list(&small[at + "one of".len()..])) {
        return from(at);
    }
    let is_alternatives = |word: &&str| {
        let parts: Vec<&str> = word
            .trim_matches(|next: char| !next.is_alphanumeric())
            .split('|')
            .collect();
        parts.len() >= 3
            && parts.iter().all(|part| {
                !part.is_empty()
                    && part
                        .chars()
                        .all(|next| next.is_alphanumeric() || matches!(next, '_' | '-'))
            })
    };
    description
        .split_whitespace()
        .find(is_alternatives)
        .or_else(|| quoted_choice(description))
}

/// Returns `true` for `open, pending or closed` up to the end of the sentence.
fn is_list_of_words(rest: &str) -> bool {
    let sentence = rest.split(['.', ';', '\n']).next().unwrap_or_default();
    let words = sentence
        .split(',')
        .flat_map(|part| part.split(" or "))
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let words: Vec<&str> = words.collect();
    words.len() >= 3 && !words.iter().any(|word| word.contains(char::is_whitespace))
}

/// Returns `'open' or 'closed'`, in quotes of one kind, unless they are given as examples.
fn quoted_choice(description: &str) -> Option<&str> {
    const EXAMPLES: &[&str] = &["e.g", "example", "such as", "like"];
    /// The number of characters before the first value within which a text introduces examples.
    const EXAMPLES_WITHIN: usize = 24;
    ['\'', '"', '`'].into_iter().find_map(|quote| {
        let (at, _) = description
            .match_indices(&format!("{quote} or {quote}"))
            .next()?;
        let start = description[..at].rfind(quote)?;
        let word = &description[start + 1..at];
        let before: String = description[..start]
            .chars()
            .rev()
            .take(EXAMPLES_WITHIN)
            .collect();
        let before = before
            .chars()
            .rev()
            .collect::<String>()
            .to_ascii_lowercase();
        let is_example = EXAMPLES.iter().any(|phrase| before.contains(phrase));
        (!word.is_empty() && !word.contains(char::is_whitespace) && !is_example)
            .then(|| &description[start..])
    })
}
