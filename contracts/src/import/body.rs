//! Turns the body of a request into arguments: its members one by one, or the body as a whole.

use serde_json::{Map, Value};
use weir_schema::{reference::stated, walk};

use super::{
    discriminator::SchemaDiscriminator,
    document::ImportDocument,
    operation::{ParameterLocation, QUERY_STYLES},
    schema::{SCHEMAS_MAX, spend},
};
use crate::{json::push_pointer, name};

pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// A list of steps. Kubernetes describes it as the object that its other patches are.
const JSON_PATCH: &str = "application/json-patch+json";

pub(super) struct ImportedBody<'d> {
    pub(super) content_type: &'d str,
    pub(super) parts: Vec<BodyPart<'d>>,
    pub(super) required: bool,
    /// Places below the body where the document defines too little, or more than a form can express, each with a sentence.
    pub(super) gaps: Vec<(String, String)>,
}

/// Parts of schemas that are looked at for those that build on another.
const BUILT_ON_MAX: usize = 20_000;

const ANYTHING: &Value = &Value::Bool(true);

pub(super) struct BodyPart<'d> {
    pub(super) name: &'d str,
    pub(super) place: ParameterLocation,
    pub(super) required: bool,
    pub(super) schema: &'d Value,
    /// Below the body.
    pub(super) at: String,
    pub(super) description: Option<&'d str>,
    /// The encoding of lists and objects in a form body, as `encoding` defines it.
    pub(super) style: Option<&'d str>,
    pub(super) explode: Option<bool>,
}

/// Returns the first kind of content that can be sent. The error lists the kinds that there are.
pub(super) fn read_body<'d>(
    document: &'d ImportDocument,
    body: &'d Value,
) -> Result<ImportedBody<'d>, String> {
    let (media, content) = choose_content(body)?;
    let content_type = if media.contains('*') {
        "application/json"
    } else {
        media
    };
    let mut at = String::from("/content");
    push_pointer(&mut at, media);
    at.push_str("/schema");
    let mut gaps = Vec::new();
    let schema = match content.get("schema") {
        Some(Value::Null) => {
            gaps.push((
                at.clone(),
                "the schema of the body is null: any JSON is taken".to_owned(),
            ));
            ANYTHING
        }
        schema => schema.unwrap_or(ANYTHING),
    };
    let is_required = body.get("required") == Some(&Value::Bool(true));
    let resolved = document.resolved(schema)?;
    let is_form = plain_media(media) == FORM;
    let mut members = BodyMembers::new();
    let is_plain = members.collect(document, resolved, 0)
        && !document.has_more_members(schema)
        && (is_form || !is_built_on(document, schema, resolved));
    let is_flat = is_plain && !members.properties.is_empty();
    members
        .required
        .retain(|name| !members.read_only.contains(name));
    let needs_none = members.required.is_empty();
    // A service that requires an empty object of JSON is sent one.
    if is_plain && !is_flat && members.closed && needs_none && (is_form || !is_required) {
        return Ok(ImportedBody {
            content_type,
            parts: Vec::new(),
            required: is_required,
            gaps,
        });
    }
    if is_flat && (is_required || is_form || needs_none) {
        let mut parts = members.parts(document, is_required, &at, &mut gaps);
        if is_form {
            parts
                .iter_mut()
                .for_each(|part| encode(part, content, media, &mut gaps));
        }
        return Ok(ImportedBody {
            content_type,
            parts,
            required: is_required,
            gaps,
        });
    }
    if is_form {
        return Err("the body is a form whose fields are not a plain list".to_owned());
    }
    let description = body.get("description").and_then(Value::as_str);
    let part = BodyPart {
        name: "body",
        place: ParameterLocation::WholeBody,
        required: is_required,
        schema,
        at,
        description,
        style: None,
        explode: None,
    };
    Ok(ImportedBody {
        content_type,
        parts: vec![part],
        required: is_required,
        gaps,
    })
}

/// Returns `true` if the discriminator of a schema may choose another, which has its own members.
pub(super) fn has_subtypes(document: &ImportDocument, schema: &Value, resolved: &Value) -> bool {
    let own = resolved.as_object();
    own.and_then(|own| SchemaDiscriminator::read(document, own))
        .is_some_and(|discriminator| discriminator.has_subtypes())
        || is_built_on(document, schema, resolved)
}

/// Returns `true` if the discriminator of a schema may choose one that builds on it, and so has its own members.
fn is_built_on(document: &ImportDocument, schema: &Value, resolved: &Value) -> bool {
    let Some(own) = stated(schema).filter(|_| resolved.get("discriminator").is_some()) else {
        return false;
    };
    let schemas = document
        .get("components")
        .get("schemas")
        .and_then(Value::as_object);
    let parts = schemas
        .into_iter()
        .flat_map(Map::values)
        .filter_map(|schema| schema.get("allOf")?.as_array())
        .flatten();
    parts
        .take(BUILT_ON_MAX)
        .filter_map(stated)
        .any(|of| of == own)
}

/// Returns the media type of the content that is sent, and the content.
fn choose_content(body: &Value) -> Result<(&str, &Value), String> {
    let content = body
        .get("content")
        .and_then(Value::as_object)
        .ok_or("the body does not describe its content")?;
    let media = |wanted: &dyn Fn(&str) -> bool| content.iter().find(|(media, _)| wanted(media));
    let is_patch = |media: &str| plain_media(media) == JSON_PATCH;
    let found = media(&|media| plain_media(media) == "application/json")
        .or_else(|| media(&|media| is_json(&plain_media(media)) && !is_patch(media)))
        .or_else(|| media(&is_patch))
        .or_else(|| media(&|media| matches!(plain_media(media).as_str(), "*/*" | "application/*")))
        .or_else(|| media(&|media| plain_media(media) == FORM));
    if let Some((media, content)) = found {
        return Ok((media, content));
    }
    let names: Vec<&str> = content.keys().map(String::as_str).take(5).collect();
    Err(format!(
        "the body is sent as {}, and only JSON and forms are",
        names.join(" or ")
    ))
}

/// Returns `true` for a media type of JSON, as defined for browsers.
pub(super) fn is_json(plain: &str) -> bool {
    plain == "application/json" || plain == "text/json" || plain.ends_with("+json")
}

/// Returns a media type without its parameters, in lower case.
pub(super) fn plain_media(media: &str) -> String {
    media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// Applies the `encoding` of a form's member. Parts that no form here supports are gaps.
fn encode<'d>(
    part: &mut BodyPart<'d>,
    content: &'d Value,
    media: &str,
    gaps: &mut Vec<(String, String)>,
) {
    let Some(encoding) = content
        .get("encoding")
        .and_then(|encoding| encoding.get(part.name))
    else {
        return;
    };
    let text = |key: &str| encoding.get(key).and_then(Value::as_str);
    let explode = encoding.get("explode").and_then(Value::as_bool);
    let untold = match (text("style"), explode, text("contentType")) {
        (Some(style), ..) if !QUERY_STYLES.contains(&style) => {
            format!(
                "the style {} is not known here: lists repeat the name, and objects are JSON",
                name::quoted(style)
            )
        }
        (Some(style), ..) => {
            (part.style, part.explode) = (Some(style), explode);
            return;
        }
        (None, Some(_), _) => {
            (part.style, part.explode) = (Some("form"), explode);
            return;
        }
        (None, None, Some(media)) if !media.contains("json") && media != "text/plain" => {
            format!(
                "it is written as {} there, and here lists repeat the name, and objects are JSON",
                name::quoted(media)
            )
        }
        _ => return,
    };
    let mut at = String::from("/content");
    push_pointer(&mut at, media);
    at.push_str("/encoding");
    push_pointer(&mut at, part.name);
    gaps.push((at, untold));
}

/// The members of an object, those in `allOf` included.
struct BodyMembers<'d> {
    properties: Vec<(&'d str, &'d Value)>,
    required: Vec<&'d str>,
    /// Names that only answers have.
    read_only: Vec<&'d str>,
    /// The object takes no other members.
    closed: bool,
    /// The schemas and names that may still be looked at: parts that refer to each other are more than a document is long.
    left: usize,
}

impl<'d> BodyMembers<'d> {
    fn new() -> Self {
        Self {
            properties: Vec::new(),
            required: Vec::new(),
            read_only: Vec::new(),
            closed: false,
            left: SCHEMAS_MAX,
        }
    }

    /// Collects the members of an object without other rules; `false` if it has other rules, or too many members.
    fn collect(&mut self, document: &'d ImportDocument, schema: &'d Value, depth: usize) -> bool {
        const HARMLESS: &[&str] = &[
            "type",
            "properties",
            "required",
            "title",
            "description",
            "example",
            "examples",
            "allOf",
            "xml",
            "externalDocs",
            "deprecated",
            "default",
            "discriminator",
        ];
        let Some(members) = schema.as_object() else {
            return false;
        };
        let closes = members
            .get("additionalProperties")
            .is_none_or(|rule| rule == &Value::Bool(false));
        let known = |keyword: &String| {
            HARMLESS.contains(&keyword.as_str())
                || keyword == "additionalProperties"
                || keyword.starts_with("x-")
        };
        let is_object = members.get("type").is_none_or(|kind| kind == "object");
        // A body may be of a subtype, with members that this schema does not name.
        let has_subtypes = depth == 0
            && SchemaDiscriminator::read(document, members)
                .is_some_and(|discriminator| discriminator.has_subtypes());
        if has_subtypes {
            return false;
        }
        if !closes
            || !is_object
            || !members.keys().all(known)
            || depth > 8
            || !spend(&mut self.left, members)
        {
            return false;
        }
        self.closed |= members.contains_key("additionalProperties");
        for (name, schema) in walk::members(members.get("properties")) {
            match document.is_read_only(schema) {
                Ok(true) => {
                    self.read_only.push(name);
                    continue;
                }
                Ok(false) => {}
                Err(_) => return false,
            }
            if self.properties.iter().any(|(other, _)| other == name) {
                return false;
            }
            self.properties.push((name, schema));
        }
        let required = walk::elements(members.get("required")).iter();
        self.required.extend(required.filter_map(Value::as_str));
        let mut parts = walk::elements(members.get("allOf")).iter();
        parts.all(|part| {
            !document.has_more_members(part)
                && document
                    .resolved(part)
                    .is_ok_and(|part| self.collect(document, part, depth + 1))
        })
    }

    /// Returns the members as parts of a body, and adds a gap for each without a schema.
    fn parts(
        &self,
        document: &ImportDocument,
        is_required: bool,
        at: &str,
        gaps: &mut Vec<(String, String)>,
    ) -> Vec<BodyPart<'d>> {
        let part = |name, schema, at| {
            let required = is_required && self.required.contains(&name);
            let (style, explode) = (None, None);
            BodyPart {
                name,
                place: ParameterLocation::Body,
                required,
                schema,
                at,
                description: None,
                style,
                explode,
            }
        };
        let is_never_sent = |schema: &Value| document.resolved(schema) == Ok(&Value::Bool(false));
        let sent = self
            .properties
            .iter()
            .filter(|(_, schema)| !is_never_sent(schema));
        let described = sent.map(|(name, schema)| {
            let mut at = format!("{at}/properties");
            push_pointer(&mut at, name);
            part(*name, *schema, at)
        });
        let mut parts: Vec<BodyPart<'d>> = described.collect();
        for name in self.undescribed() {
            let at = format!("{at}/required");
            gaps.push((
                at.clone(),
                format!(
                    "{} is required and has no schema: any value is taken",
                    name::quoted(name)
                ),
            ));
            parts.push(part(name, ANYTHING, at));
        }
        parts
    }

    /// Returns the names that are required but not described.
    fn undescribed(&self) -> Vec<&'d str> {
        let is_described = |name: &&str| self.properties.iter().any(|(known, _)| known == name);
        let mut undescribed: Vec<&str> = self
            .required
            .iter()
            .copied()
            .filter(|name| !is_described(name))
            .collect();
        undescribed.sort_unstable();
        undescribed.dedup();
        undescribed
    }
}

#[cfg(test)]
mod tests {
    use crate::import::{ImportOptions, openapi};

    #[test]
    fn each_media_type_of_json_is_taken() {
        for media in ["text/json", "Application/JSON", "application/vnd.a+json"] {
            let content = format!("content: {{ '{media}': {{ schema: {{ type: object }} }} }}");
            let document = format!(
                "openapi: 3.1.0\ninfo: {{title: t}}\nservers: [{{url: 'https://a.example'}}]\npaths: {{ /x: {{ \
                 get: {{ responses: {{ '200': {{ {content} }} }} }}, \
                 put: {{ requestBody: {{ required: true, {content} }}, responses: {{ '204': {{}} }} }} }} }}"
            );
            let imported = openapi("document", &document, &ImportOptions::default());
            assert_eq!(imported.expect("a contract").tools, 2, "{media}");
        }
    }
}
