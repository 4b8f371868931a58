//! Turns an answer into columns: the members of an object, or the answer as a whole.

use serde_json::{Map, Value, json};
use weir_schema::walk;

use super::{
    body::{has_subtypes, is_json, plain_media},
    document::ImportDocument,
    schema::{SCHEMAS_MAX, spend},
};

/// Members of an answer that become columns. Of more it is one.
const COLUMNS_MAX: usize = 200;
/// Bytes of a media type that an answer is asked for as.
const MEDIA_MAX: usize = 200;

#[derive(Default)]
pub(super) struct ImportedResponse<'d> {
    /// The columns, as the adapter's settings write them.
    pub(super) returns: Map<String, Value>,
    /// The media type, if it is not `application/json`.
    pub(super) accept: Option<&'d str>,
    /// A description of the answer, if no tool can show it though the operation succeeds.
    pub(super) untold: Option<String>,
    /// Whether the operation may answer something that the document does not describe.
    pub(super) is_undescribed: bool,
    /// Whether the answer states that something new was made.
    pub(super) creates: bool,
    /// The response itself, for its headers and links in addition to the content.
    pub(super) response: Option<&'d Value>,
    /// The answer is a list.
    pub(super) is_list: bool,
}

pub(super) fn read_response<'d>(
    document: &'d ImportDocument,
    responses: &'d Value,
) -> Result<ImportedResponse<'d>, String> {
    let mut answer = ImportedResponse::default();
    let all = responses.as_object().into_iter().flatten();
    let mut successes: Vec<(&str, &Value)> = Vec::new();
    for (status, response) in all.filter(|(status, _)| status.starts_with('2')) {
        successes.push((status, document.resolved(response)?));
    }
    if successes.is_empty()
        && let Some(response) = responses.get("default")
    {
        successes.push(("default", document.resolved(response)?));
    }
    successes.sort_by_key(|(status, _)| *status);
    answer.creates = successes.iter().any(|(status, _)| *status == "201");
    let contents = |response: &'d Value| walk::members(response.get("content"));
    let mut found = successes.iter().filter_map(|(_, response)| {
        let exact = contents(response).find(|(media, _)| plain_media(media) == "application/json");
        let close = || {
            contents(response).find(|(media, _)| {
                let media = plain_media(media);
                is_json(&media) || matches!(media.as_str(), "*/*" | "application/*")
            })
        };
        exact
            .or_else(close)
            .map(|(media, content)| (*response, media, content))
    });
    let Some((response, media, content)) = found.next() else {
        answer.response = successes.first().map(|(_, response)| *response);
        let media: Vec<&String> = successes
            .iter()
            .flat_map(|(_, response)| contents(response))
            .map(|(media, _)| media)
            .collect();
        answer.untold = media.first().map(|media| (*media).clone());
        // Servers that respect `Accept` strictly refuse a client that asks for JSON if there is none.
        answer.accept = media
            .first()
            .copied()
            .map(String::as_str)
            .filter(|media| is_sendable(media));
        let has_no_body = |(status, _): &(&str, &Value)| matches!(*status, "204" | "205");
        answer.is_undescribed =
            media.is_empty() && (successes.is_empty() || !successes.iter().all(has_no_body));
        return Ok(answer);
    };
    let others: Vec<&Value> = found
        .filter_map(|(_, _, content)| content.get("schema"))
        .collect();
    answer.response = Some(response);
    answer.accept = Some(media.as_str())
        .filter(|media| !media.starts_with("application/json") && !media.contains('*'));
    let schema = content.get("schema").unwrap_or(&Value::Null);
    let resolved = document.resolved(schema)?;
    answer.is_list = resolved.get("type").is_some_and(|kind| kind == "array");
    let (mut members, mut left) = (Vec::new(), SCHEMAS_MAX);
    let mut is_plain =
        members_of(document, schema, 0, &mut left, &mut members) && !members.is_empty();
    // A service that answers 201 here and 202 there has the columns of both.
    for schema in others {
        let mut others = Vec::new();
        is_plain &= members_of(document, schema, 0, &mut left, &mut others);
        add_members(others, &mut members);
    }
    if is_plain && members.len() <= COLUMNS_MAX {
        // Each may be null, whatever the document declares: the answer of a service that has done something must reach
        // the caller, or it is done again.
        let columns = members.into_iter();
        answer
            .returns
            .extend(columns.map(|(name, kind)| (name.to_owned(), kind.into())));
    } else {
        answer.return_whole();
    }
    Ok(answer)
}

impl ImportedResponse<'_> {
    /// Makes all of the answer one column.
    pub(super) fn return_whole(&mut self) {
        let name = if self.is_list { "items" } else { "result" };
        let column = json!({ "type": "json", "nullable": true, "at": "" });
        self.returns.insert(name.to_owned(), column);
    }
}

/// Returns `true` if a header can hold the media type.
fn is_sendable(media: &str) -> bool {
    media.len() <= MEDIA_MAX && media.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Adds the members of another answer. One that both have, of different types, may be anything.
fn add_members<'d>(
    others: Vec<(&'d str, &'static str)>,
    members: &mut Vec<(&'d str, &'static str)>,
) {
    for (name, kind) in others {
        match members.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) if *known != kind => *known = "json",
            Some(_) => {}
            None => members.push((name, kind)),
        }
    }
}

/// Collects name and type. Returns `false` if the members do not describe everything, or if there
/// are more members and parts of `allOf` than are `left` to be examined.
fn members_of<'d>(
    document: &'d ImportDocument,
    schema: &'d Value,
    depth: usize,
    left: &mut usize,
    found: &mut Vec<(&'d str, &'static str)>,
) -> bool {
    let Ok(resolved) = document.resolved(schema) else {
        return false;
    };
    let Some(members) = resolved.as_object().filter(|_| depth < 8) else {
        return false;
    };
    // Such an answer has members that are named elsewhere.
    if document.has_more_members(schema) || (depth == 0 && has_subtypes(document, schema, resolved))
    {
        return false;
    }
    let is_object = members.get("type").is_none_or(|kind| kind == "object");
    let is_map = members
        .get("additionalProperties")
        .is_some_and(|rule| rule.is_object() || rule == &Value::Bool(true));
    let varies = ["oneOf", "anyOf", "if", "patternProperties", "not"]
        .iter()
        .any(|keyword| members.contains_key(*keyword));
    if !is_object
        || is_map
        || varies
        || members.get("nullable") == Some(&Value::Bool(true))
        || !spend(left, members)
    {
        return false;
    }
    for (name, property) in walk::members(members.get("properties")) {
        let Ok(property) = document.resolved(property) else {
            return false;
        };
        if name.is_empty() || property.get("writeOnly") == Some(&Value::Bool(true)) {
            continue;
        }
        if !found.iter().any(|(other, ..)| other == name) {
            found.push((name, kind(property)));
        }
    }
    for part in walk::elements(members.get("allOf")) {
        if !members_of(document, part, depth + 1, left, found) {
            return false;
        }
    }
    true
}

/// Returns a column's type; nested values are JSON.
fn kind(schema: &Value) -> &'static str {
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .filter(|kind| *kind != "null")
            .collect(),
        Some(Value::String(kind)) => vec![kind],
        _ => Vec::new(),
    };
    match kinds.as_slice() {
        ["string"] => "string",
        // With all their digits, as texts.
        ["integer"]
            if schema
                .get("format")
                .is_some_and(|format| format == "int64" || format == "uint64") =>
        {
            "decimal"
        }
        ["integer"] => "integer",
        ["number"] => "number",
        ["boolean"] => "boolean",
        _ => "json",
    }
}

#[cfg(test)]
mod tests {
    use crate::import::{ImportOptions, openapi};

    /// A member that a subtype or a rule next to a reference names would be missing in columns of the rest.
    #[test]
    fn an_answer_with_members_that_are_named_elsewhere_is_one_column() {
        let imported = |version: &str, schema: &str, discriminator: &str| {
            let document = format!(
                r##"{{"openapi": "{version}", "info": {{"title": "t"}}, "servers": [{{"url": "https://a.example"}}],
                    "paths": {{"/x": {{"get": {{"responses": {{"200": {{"content": {{"application/json": {{"schema": {schema}}}}}}}}}}}}}}},
                    "components": {{"schemas": {{
                        "Pet": {{"type": "object", "properties": {{"kind": {{"type": "string"}}}} {discriminator}}},
                        "Cat": {{"allOf": [{{"$ref": "#/components/schemas/Pet"}},
                            {{"type": "object", "properties": {{"lives": {{"type": "integer"}}}}}}]}}}}}}}}"##
            );
            let imported = openapi("document", &document, &ImportOptions::default());
            imported.expect("a contract").contract
        };
        let pet = r##"{"$ref": "#/components/schemas/Pet"}"##;
        let cat = r##"{"$ref": "#/components/schemas/Cat"}"##;
        let beside =
            r##"{"$ref": "#/components/schemas/Pet", "properties": {"age": {"type": "integer"}}}"##;
        let chooses = r#", "discriminator": {"propertyName": "kind"}"#;
        let maps = r##", "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat"}}"##;
        let whole = r#"result: { type: json, nullable: true, at: "" }"#;
        for (version, schema, discriminator, returns) in [
            ("3.0.3", pet, "", "returns: { kind: string }"),
            ("3.0.3", pet, chooses, whole),
            ("3.1.0", pet, maps, whole),
            (
                "3.0.3",
                cat,
                chooses,
                "returns: { kind: string, lives: integer }",
            ),
            ("3.0.3", beside, "", "returns: { kind: string }"),
            ("3.1.0", beside, "", whole),
        ] {
            let contract = imported(version, schema, discriminator);
            assert!(
                contract.contains(returns),
                "{schema} of {version}: {contract}"
            );
        }
    }
}
