//! The parameters of an operation and the parts of its body, as values that a call sends.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use weir_schema::{keyword::REF, walk};

use super::{OperationSource, Refusal};
use crate::{
    import::{
        body, pages, schema,
        text::{field_name, sentence},
    },
    name, validate,
};

/// Parameters that are ignored according to OpenAPI, since other parts of a document define them.
const IGNORED_HEADERS: &[&str] = &["accept", "content-type", "authorization"];
/// Headers that no caller may set at a connection, which refuses a call that does.
const RESERVED_HEADERS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "cookie",
    "cookie2",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
];
const RESERVED_PREFIXES: &[&str] = &["proxy-", "sec-", "x-forwarded-"];

/// Bytes of the schemas of one body's members, and of one operation's parameters. Each has all that it refers to, which the tool's own schema then has once.
const MEMBERS_BYTES_MAX: usize = 4 << 20;

/// The styles that the adapter supports in a query and in a form.
pub(in crate::import) const QUERY_STYLES: &[&str] =
    &["form", "spaceDelimited", "pipeDelimited", "deepObject"];

/// A value that a call sends.
pub(in crate::import) struct ImportedParameter {
    pub(in crate::import) field: String,
    /// The name in the document.
    pub(in crate::import) original: String,
    pub(in crate::import) place: ParameterLocation,
    pub(in crate::import) required: bool,
    pub(in crate::import) may_be_null: bool,
    pub(in crate::import) schema: Value,
    pub(in crate::import) description: Option<String>,
    pub(in crate::import) example: Option<Value>,
    style: Option<String>,
    explode: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum ParameterLocation {
    Path,
    Query,
    Header,
    Body,
    WholeBody,
}

impl<'d> OperationSource<'d> {
    /// Adds the parts of the body to the parameters. Returns the media type if it is not `application/json`, and whether a
    /// DELETE without any of these parts still has a body.
    pub(super) fn body(
        &self,
        parameters: &mut Vec<ImportedParameter>,
        taken: &mut BTreeSet<String>,
        noted: &mut Vec<Refusal>,
    ) -> Result<(Option<&'d str>, bool), Refusal> {
        let Some(given) = self.operation.get("requestBody") else {
            return Ok((None, false));
        };
        let place = format!("{}/requestBody", self.place);
        let resolved = self
            .document
            .resolved(given)
            .map_err(|why| ("reference", place.clone(), why))?;
        let may_be_left_out = matches!(self.method, "get" | "delete")
            && resolved.get("required") != Some(&Value::Bool(true));
        let body = match body::read_body(self.document, resolved) {
            Ok(body) if body.parts.is_empty() => return Ok((None, false)),
            Ok(_) if self.method == "get" => Err("a GET with a body is not sent".to_owned()),
            body => body,
        };
        let body = match body {
            Ok(body) => body,
            Err(why) if may_be_left_out => {
                noted.push((
                    "body",
                    place,
                    format!("the optional body is dropped: {why}"),
                ));
                return Ok((None, false));
            }
            Err(why) => return Err(("body", place, why)),
        };
        // Other methods always send a body that has members. A whole one is an argument that is required itself.
        let is_whole = body
            .parts
            .iter()
            .any(|part| part.place == ParameterLocation::WholeBody);
        let body_required = body.required && self.method == "delete" && !is_whole;
        noted.extend(
            body.gaps
                .into_iter()
                .map(|(at, why)| ("schema", format!("{place}{at}"), why)),
        );
        let mut bytes = 0;
        for part in body.parts {
            let place = format!("{place}{}", part.at);
            let parameter = self.part(&part, &place, taken, noted);
            let parameter = parameter.map_err(|why| ("schema", place.clone(), why))?;
            bytes += parameter.schema.to_string().len();
            if bytes > MEMBERS_BYTES_MAX {
                let why = "the members of the body with all that they refer to are too large";
                return Err(("schema", place, why.to_owned()));
            }
            parameters.push(parameter);
        }
        Ok((
            Some(body.content_type).filter(|media| *media != "application/json"),
            body_required,
        ))
    }

    pub(super) fn parameters(
        &self,
        taken: &mut BTreeSet<String>,
        noted: &mut Vec<Refusal>,
    ) -> Result<Vec<ImportedParameter>, Refusal> {
        let mut found: Vec<(String, &Value)> = Vec::new();
        let mut item_place = self.place.to_owned();
        item_place.truncate(item_place.rfind('/').unwrap_or(0));
        for (of, place) in [
            (self.item, item_place.as_str()),
            (self.operation, self.place),
        ] {
            for (index, given) in walk::elements(of.get("parameters")).iter().enumerate() {
                let place = format!("{place}/parameters/{index}");
                let given = self
                    .document
                    .resolved(given)
                    .map_err(|why| ("reference", place.clone(), why))?;
                // A parameter of the operation replaces the path's parameter of the same name.
                found.retain(|(_, other)| !is_same(other, given));
                found.push((place, given));
            }
        }
        let (mut parameters, mut bytes) = (Vec::new(), 0);
        for (place, given) in found {
            let required = given.get("required") == Some(&Value::Bool(true));
            match self.parameter(given, &place, taken, noted) {
                Ok(None) => {}
                Ok(Some(parameter)) => {
                    bytes += parameter.schema.to_string().len();
                    if bytes > MEMBERS_BYTES_MAX {
                        let why = "the parameters with all that they refer to are too large";
                        return Err(("schema", place, why.to_owned()));
                    }
                    parameters.push(parameter);
                }
                Err((reason, why)) if required => return Err((reason, place, why)),
                Err((reason, why)) => {
                    noted.push((reason, place, format!("the parameter is dropped: {why}")))
                }
            }
        }
        let mut rest = self.path;
        while let Some((_, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            if !parameters.iter().any(|parameter| {
                parameter.place == ParameterLocation::Path && parameter.original == name
            }) {
                let why = format!(
                    "the path has {{{}}}, and no parameter says what it is",
                    sentence(name, 60)
                );
                return Err(("path", self.place.to_owned(), why));
            }
            rest = after;
        }
        Ok(parameters)
    }

    /// Reads one parameter; `None` if it goes without saying.
    fn parameter(
        &self,
        given: &Value,
        place: &str,
        taken: &mut BTreeSet<String>,
        noted: &mut Vec<Refusal>,
    ) -> Result<Option<ImportedParameter>, (&'static str, String)> {
        let original = given
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let Some(position) = self.position(given, &original)? else {
            return Ok(None);
        };
        if original.is_empty() {
            return Err(("parameter", "it has no name".to_owned()));
        }
        if position == ParameterLocation::Query && self.access.sends_query(&original) {
            return Ok(None);
        }
        let content = given
            .get("content")
            .and_then(Value::as_object)
            .and_then(|content| content.iter().next());
        let (schema, is_json) = match content {
            Some((media, content)) if body::plain_media(media).ends_with("json") => {
                (content.get("schema"), true)
            }
            Some((media, _)) => return Err(("parameter", format!("it is written as {media}"))),
            None => (given.get("schema"), false),
        };
        let style = read_style(given, position, is_json)?;
        let mut schema = self.parameter_schema(schema, place, noted)?;
        let is_single = is_single(&schema);
        // A plain text looks different as JSON: it has quotes.
        let style = match is_json {
            true => may_be_text(&schema).then_some("json"),
            false => (!is_single).then_some(style),
        };
        // A number of a page or a size needs no 64 bits.
        if position != ParameterLocation::Query || !pages::is_position(&original) {
            validate::with_text_form(&mut schema);
        }
        let field = field_name(&original, taken);
        taken.insert(field.clone());
        Ok(Some(ImportedParameter {
            field,
            place: position,
            required: position == ParameterLocation::Path
                || given.get("required") == Some(&Value::Bool(true)),
            may_be_null: false,
            description: given
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned),
            example: given
                .get("example")
                .filter(|example| schema::can_be_shown(example))
                .cloned(),
            style: style.map(str::to_owned),
            explode: given
                .get("explode")
                .and_then(Value::as_bool)
                .filter(|_| !is_json && !is_single),
            original,
            schema,
        }))
    }

    /// Returns the place that the parameter is sent in; `None` if it goes without saying.
    fn position(
        &self,
        given: &Value,
        original: &str,
    ) -> Result<Option<ParameterLocation>, (&'static str, String)> {
        Ok(Some(match given.get("in").and_then(Value::as_str) {
            Some("path") if !self.path.contains(&format!("{{{original}}}")) => return Ok(None),
            Some("path") => ParameterLocation::Path,
            Some("query") => ParameterLocation::Query,
            Some("header") => {
                let name = original.to_ascii_lowercase();
                if IGNORED_HEADERS.contains(&name.as_str()) || self.access.sends_header(&name) {
                    return Ok(None);
                }
                if is_reserved(&name) {
                    return Err(("parameter", format!("no caller sets the header {name}")));
                }
                if !is_header_name(&name) {
                    let shown = name::quoted(original);
                    return Err(("parameter", format!("no header has the name {shown}")));
                }
                ParameterLocation::Header
            }
            Some("cookie") => {
                return Err(("parameter", "cookies are the connection's own".to_owned()));
            }
            other => {
                return Err((
                    "parameter",
                    format!("nothing is sent in {}", other.unwrap_or("no place")),
                ));
            }
        }))
    }

    /// Returns the schema of a parameter outside a body.
    fn parameter_schema(
        &self,
        schema: Option<&Value>,
        place: &str,
        noted: &mut Vec<Refusal>,
    ) -> Result<Value, (&'static str, String)> {
        const TEXT: &str = "string";
        let lifted = schema::lift(self.document, schema.unwrap_or(&json!({ "type": TEXT })))
            .map_err(|why| ("schema", why))?;
        noted.extend(
            lifted
                .dropped
                .into_iter()
                .map(|(reason, why)| (reason, place.to_owned(), why)),
        );
        let mut schema = match lifted.schema {
            Value::Bool(false) => return Err(("schema", "no value is taken".to_owned())),
            Value::Bool(true) => json!({}),
            schema => schema,
        };
        // A parameter without a type takes anything; it is sent as text.
        if schema.get("type").is_none()
            && [REF, "anyOf", "oneOf", "allOf", "enum", "const"]
                .iter()
                .all(|key| schema.get(*key).is_none())
        {
            schema["type"] = TEXT.into();
        }
        // No value outside a body is null.
        if let Some(inner) = crate::schema::beside_null(&schema).cloned() {
            let mut inner = inner.as_object().cloned().unwrap_or_default();
            inner.extend(
                schema
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(key, _)| *key != "anyOf")
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
            schema = Value::Object(inner);
        }
        Ok(schema)
    }

    fn part(
        &self,
        part: &body::BodyPart<'d>,
        place: &str,
        taken: &mut BTreeSet<String>,
        noted: &mut Vec<Refusal>,
    ) -> Result<ImportedParameter, String> {
        let mut lifted = schema::lift(self.document, part.schema)?;
        let style = part.style.filter(|_| !is_single(&lifted.schema));
        validate::with_text_form(&mut lifted.schema);
        noted.extend(
            lifted
                .dropped
                .into_iter()
                .map(|(reason, why)| (reason, place.to_owned(), why)),
        );
        let field = match taken.contains(part.name) {
            true => field_name(&format!("body_{}", part.name), taken),
            false => field_name(part.name, taken),
        };
        taken.insert(field.clone());
        Ok(ImportedParameter {
            field,
            original: part.name.to_owned(),
            place: part.place,
            required: part.required,
            may_be_null: true,
            schema: lifted.schema,
            description: part.description.map(str::to_owned),
            example: None,
            style: style.map(str::to_owned),
            explode: part.explode.filter(|_| style.is_some()),
        })
    }
}

/// Returns the style that the parameter is written in.
fn read_style(
    given: &Value,
    position: ParameterLocation,
    is_json: bool,
) -> Result<&str, (&'static str, String)> {
    let style = given.get("style").and_then(Value::as_str);
    let default = if position == ParameterLocation::Query {
        "form"
    } else {
        "simple"
    };
    let known: &[&str] = match position {
        ParameterLocation::Query => QUERY_STYLES,
        _ => &["simple"],
    };
    let style = style.unwrap_or(default);
    if !is_json && !known.contains(&style) {
        return Err((
            "parameter",
            format!("the style {} is not known here", sentence(style, 40)),
        ));
    }
    Ok(style)
}

/// Returns `true` for a header that is the connection's own; its name is in lower case.
fn is_reserved(name: &str) -> bool {
    let begins = |prefix: &&str| name.starts_with(*prefix);
    RESERVED_HEADERS.contains(&name) || RESERVED_PREFIXES.iter().any(begins)
}

/// Returns `true` for a name of the characters that HTTP gives to one.
fn is_header_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_allowed)
}

/// Returns `true` if two parameters are one: names of headers have no case.
fn is_same(one: &Value, other: &Value) -> bool {
    let header = |parameter: &Value| {
        let name = parameter["name"].as_str()?;
        (parameter["in"] == "header").then(|| name.to_ascii_lowercase())
    };
    match (header(one), header(other)) {
        (Some(one), Some(other)) => one == other,
        _ => (&one["name"], &one["in"]) == (&other["name"], &other["in"]),
    }
}

/// Returns `true` if every value is one text or number, so that no style matters.
fn is_single(schema: &Value) -> bool {
    matches!(
        schema.get("type").and_then(Value::as_str),
        Some("string" | "integer" | "number" | "boolean")
    )
}

/// Returns `true` if a value may be a text, as far as the schema shows at once.
fn may_be_text(schema: &Value) -> bool {
    !matches!(
        schema.get("type").and_then(Value::as_str),
        Some("object" | "array" | "integer" | "number" | "boolean")
    )
}

impl ImportedParameter {
    pub(super) fn settings(&self, kind: &str) -> Value {
        let mut settings = Map::from_iter([("type".to_owned(), Value::from(kind))]);
        if self.required {
            settings.insert("required".to_owned(), true.into());
        }
        let place = match self.place {
            ParameterLocation::Path => Some("path"),
            ParameterLocation::Query => Some("query"),
            ParameterLocation::Header => Some("header"),
            ParameterLocation::Body => None,
            ParameterLocation::WholeBody => Some("whole-body"),
        };
        settings.extend(place.map(|place| ("in".to_owned(), place.into())));
        if self.original != self.field {
            settings.insert("as".to_owned(), self.original.clone().into());
        }
        settings.extend(
            self.style
                .as_ref()
                .map(|style| ("style".to_owned(), style.clone().into())),
        );
        settings.extend(
            self.explode
                .map(|explode| ("explode".to_owned(), explode.into())),
        );
        Value::Object(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parameter that is described by a content is JSON, even if it is a text.
    #[test]
    fn a_parameter_of_json_keeps_its_quotes() {
        let parameter = |name: &str, kind: &str| {
            format!(
                "{{ name: {name}, in: query, content: {{ application/json: {{ schema: {{ type: {kind} }} }} }} }}"
            )
        };
        let document = format!(
            "openapi: 3.1.0\ninfo: {{title: t}}\nservers: [{{url: 'https://a.example'}}]\npaths: {{ /x: {{ post: {{ \
             parameters: [{}, {}], responses: {{ '204': {{}} }} }} }} }}",
            parameter("word", "string"),
            parameter("filter", "object")
        );
        let options = crate::import::ImportOptions::default();
        let imported = crate::import::openapi("document", &document, &options).expect("a contract");
        for line in [
            "word: { type: string, in: query, style: json }",
            "filter: { type: json, in: query }",
        ] {
            assert!(imported.contract.contains(line), "{}", imported.contract);
        }
    }

    /// The gateway's connection judges the same list: a parameter that is taken here must not be refused there at each call.
    #[test]
    fn headers_are_judged_as_by_the_connection() {
        let text = include_str!("../../../../tests/fixtures/header-names.json");
        let names: Value = serde_json::from_str(text).expect("JSON");
        let judged = |kind: &str, judge: &dyn Fn(&str) -> bool| {
            let names = names[kind].as_array().expect("a list");
            assert!(!names.is_empty());
            for name in names {
                let name = name.as_str().expect("a text");
                assert!(judge(name), "{kind}: {name:?}");
            }
        };
        judged("reserved", &|name| {
            is_reserved(name) || IGNORED_HEADERS.contains(&name)
        });
        judged("free", &|name| !is_reserved(name) && is_header_name(name));
        judged("none", &|name| !is_header_name(name));
    }
}
