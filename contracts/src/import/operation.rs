//! Turns one operation of the document into a tool's form and the adapter's settings for it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use weir_schema::keyword::REF;

use super::{
    OPERATIONS_MAX, Remark, Wanted, answer, body,
    document::Document,
    field, pages, schema,
    security::Access,
    text::{field_name, sentence, snake, tool_name},
};
use crate::{
    json::push_pointer,
    name,
    shape::{self, Effect, Param, Type},
    validate,
};

const DESCRIPTION_MAX: usize = 1_500;
const TITLE_MAX: usize = 200;
/// Parameters that OpenAPI says to ignore, since others say the same.
const IGNORED_HEADERS: &[&str] = &["accept", "content-type", "authorization"];
/// Headers that no caller may set at a connection.
const RESERVED_HEADERS: &[&str] = &[
    "cookie",
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
];

/// The styles that the adapter knows in a query and in a form.
pub(super) const QUERY_STYLES: &[&str] = &["form", "spaceDelimited", "pipeDelimited", "deepObject"];

pub(super) struct Operation {
    pub(super) tool: String,
    pub(super) collection: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) fields: Vec<Value>,
    /// The operation, as the adapter's settings write it.
    pub(super) settings: Value,
    pub(super) effect: Effect,
    /// `GET /pets`.
    line: String,
    place: String,
}

/// A value that a call sends.
pub(super) struct Parameter {
    pub(super) field: String,
    /// The name in the document.
    pub(super) original: String,
    pub(super) place: Place,
    pub(super) required: bool,
    pub(super) may_be_null: bool,
    pub(super) schema: Value,
    pub(super) description: Option<String>,
    pub(super) example: Option<Value>,
    style: Option<String>,
    explode: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Body,
    WholeBody,
}

/// Why there is no tool: the kind of it, where, and a sentence.
type Refusal = (&'static str, String, String);

/// Returns every operation that is wanted and can be taken, in the document's order.
pub(super) fn all(
    document: &Document,
    wanted: &Wanted<'_>,
    contract: &str,
    access: &Access,
    remarks: &mut Vec<Remark>,
) -> Vec<Operation> {
    const METHODS: &[&str] = &[
        "get", "put", "post", "delete", "options", "head", "patch", "trace",
    ];
    let mut found = Vec::new();
    let mut names = BTreeSet::new();
    let mut seen = 0;
    for (path, item) in document.paths() {
        let mut place = String::from("/paths");
        push_pointer(&mut place, path);
        let item = match document.resolved(item) {
            Ok(item) => item,
            Err(why) => {
                remarks.push(remark(true, &place, path, "reference", why));
                continue;
            }
        };
        for (method, operation) in item.as_object().into_iter().flatten() {
            if !METHODS.contains(&method.as_str()) {
                continue;
            }
            let place = format!("{place}/{method}");
            let line = format!("{} {path}", method.to_ascii_uppercase());
            let id = operation.get("operationId").and_then(Value::as_str);
            let tool = tool_name(&snake(id.unwrap_or(&line)), &line, &names);
            if !is_wanted(
                wanted,
                operation,
                &[&tool, id.unwrap_or(&tool), path, &line],
            ) {
                continue;
            }
            seen += 1;
            if seen > OPERATIONS_MAX {
                let why = format!(
                    "the document has more than {OPERATIONS_MAX} operations; name those that are wanted with --only"
                );
                remarks.push(remark(true, "/paths", "", "too-many", why));
                return found;
            }
            let source = Source {
                document,
                contract,
                access,
                path,
                method,
                item,
                operation,
                place: &place,
                line: &line,
            };
            match source.read(tool, remarks) {
                Ok(operation) => {
                    names.insert(operation.tool.clone());
                    found.push(operation);
                }
                Err((reason, at, why)) => remarks.push(remark(true, &at, &line, reason, why)),
            }
        }
    }
    found
}

fn is_wanted(wanted: &Wanted<'_>, operation: &Value, names: &[&str]) -> bool {
    let tags = operation
        .get("tags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let mut all = names.iter().copied().chain(tags);
    wanted.only.is_empty()
        || all.any(|name| {
            wanted
                .only
                .iter()
                .any(|pattern| name::matches(pattern, name))
        })
}

fn remark(
    left_out: bool,
    place: &str,
    operation: &str,
    reason: &'static str,
    message: String,
) -> Remark {
    Remark {
        left_out,
        place: place.to_owned(),
        operation: operation.to_owned(),
        reason,
        message,
    }
}

impl Operation {
    pub(super) fn writes(&self) -> bool {
        self.effect != Effect::Read || self.settings["method"] != "GET"
    }

    pub(super) fn left_out(&self, reason: &'static str, message: String) -> Remark {
        remark(true, &self.place, &self.line, reason, message)
    }

    /// Returns the operation as the adapter describes it.
    pub(super) fn shape(&self) -> shape::Operation {
        let kind = |value: &Value| {
            let word = value
                .as_str()
                .map_or_else(|| value["type"].clone(), Value::from);
            serde_json::from_value::<Type>(word).unwrap_or(Type::Json)
        };
        let params = self.settings["params"].as_object().into_iter().flatten();
        let params = params.map(|(name, param)| Param {
            name: name.clone(),
            kind: kind(param),
            required: param["required"] == true,
            description: None,
            items: None,
        });
        let mut returns = self.settings["returns"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        if self.settings.get("pagination").is_some() {
            returns.insert("next_arguments".to_owned(), "json".into());
        }
        let returns = returns.iter().map(|(key, value)| shape::Field {
            key: key.clone(),
            kind: kind(value),
            nullable: value.is_string() || value["nullable"] == true,
            description: None,
            native: None,
            generated: false,
            read_only: false,
            format: None,
            readings: Vec::new(),
            fields: Vec::new(),
            items: None,
        });
        shape::Operation {
            name: self.tool.clone(),
            effect: self.effect,
            params: params.collect(),
            returns: returns.collect(),
        }
    }
}

/// An operation and its place in the document.
struct Source<'d> {
    document: &'d Document,
    contract: &'d str,
    access: &'d Access,
    path: &'d str,
    method: &'d str,
    item: &'d Value,
    operation: &'d Value,
    place: &'d str,
    line: &'d str,
}

impl<'d> Source<'d> {
    fn read(&self, tool: String, remarks: &mut Vec<Remark>) -> Result<Operation, Refusal> {
        let at = |member: &str| format!("{}{member}", self.place);
        if matches!(self.method, "head" | "options" | "trace") {
            return Err((
                "method",
                self.place.to_owned(),
                format!(
                    "{} answers nothing to tell",
                    self.method.to_ascii_uppercase()
                ),
            ));
        }
        if self.path.contains(['?', '#']) || !self.path.starts_with('/') {
            return Err((
                "path",
                self.place.to_owned(),
                "the path is no plain path".to_owned(),
            ));
        }
        self.check_server()?;
        let mut noted = Vec::new();
        let mut taken = BTreeSet::new();
        let mut parameters = self.parameters(&mut taken, &mut noted)?;
        let (content_type, body_required) = self.body(&mut parameters, &mut taken, &mut noted)?;
        let responses = self.operation.get("responses").unwrap_or(&Value::Null);
        let answer = answer::of(self.document, responses)
            .map_err(|why| ("reference", at("/responses"), why))?;
        if let Some(media) = &answer.untold {
            let why = format!("the answer is {media}, and only JSON is told");
            if self.method == "get" {
                return Err(("answer", at("/responses"), why));
            }
            noted.push(("answer", at("/responses"), why));
        }
        let effect = match self.method {
            "get" => Effect::Read,
            "post" if answer.creates => Effect::Create,
            "put" => Effect::Update,
            _ => Effect::Destructive,
        };
        let pages = match answer.returns.contains_key("next_arguments") {
            true => None,
            false => pages::of(self.document, self.operation, answer.response, &parameters),
        };
        for (reason, place, why) in noted {
            remarks.push(remark(false, &place, self.line, reason, why));
        }
        if let Some(lacking) = self.access.lacks(self.document, self.operation) {
            let why = format!("it asks for {lacking}, which the connection does not send");
            remarks.push(remark(false, &at("/security"), self.line, "security", why));
        }
        let (fields, params): (Vec<Value>, Map<String, Value>) = parameters
            .iter()
            .map(|parameter| {
                let (field, kind) = field::of(parameter);
                (field, (parameter.field.clone(), parameter.settings(kind)))
            })
            .unzip();
        let mut settings = Map::new();
        let mut set = |key: &str, value: Value| settings.insert(key.to_owned(), value);
        set("method", self.method.to_ascii_uppercase().into());
        set("path", self.path.into());
        set("effect", serde_json::to_value(effect).unwrap_or_default());
        if !params.is_empty() {
            set("params", Value::Object(params));
        }
        if let Some(media) = content_type {
            set("content_type", media.into());
        }
        if body_required {
            set("body_required", true.into());
        }
        if let Some(media) = answer.accept {
            set("accept", media.into());
        }
        if !answer.returns.is_empty() {
            set("returns", Value::Object(answer.returns));
        }
        if let Some(pages) = pages {
            if let Some(records) = pages.records {
                set("records", records.into());
            }
            set("pagination", pages.pagination);
        }
        let (title, description) = self.words();
        Ok(Operation {
            tool,
            collection: self.collection(),
            title,
            description,
            fields,
            settings: Value::Object(settings),
            effect,
            line: self.line.to_owned(),
            place: self.place.to_owned(),
        })
    }

    /// Adds the parts of the body to the parameters. Returns the media type if it is not `application/json`, and whether a
    /// DELETE without any of them has a body all the same.
    fn body(
        &self,
        parameters: &mut Vec<Parameter>,
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
        let body = match body::of(self.document, resolved) {
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
        let is_whole = body.parts.iter().any(|part| part.place == Place::WholeBody);
        let body_required = body.required && self.method == "delete" && !is_whole;
        noted.extend(
            body.gaps
                .into_iter()
                .map(|(at, why)| ("schema", format!("{place}{at}"), why)),
        );
        for part in body.parts {
            let place = format!("{place}{}", part.at);
            let parameter = self.part(&part, &place, taken, noted);
            parameters.push(parameter.map_err(|why| ("schema", place, why))?);
        }
        Ok((
            Some(body.content_type).filter(|media| *media != "application/json"),
            body_required,
        ))
    }

    /// Refuses an operation on another server, which would need a connection of its own.
    fn check_server(&self) -> Result<(), Refusal> {
        let url = |servers: &Value| {
            servers
                .get(0)
                .and_then(|server| server.get("url")?.as_str().map(str::to_owned))
        };
        let own = [self.operation, self.item]
            .iter()
            .find_map(|of| url(of.get("servers")?));
        match own {
            Some(own) if Some(&own) != url(self.document.get("servers")).as_ref() => {
                let shown = sentence(&own, 100);
                let why = format!(
                    "it is at a server of its own, {shown}, and a contract has one connection here"
                );
                Err(("server", format!("{}/servers", self.place), why))
            }
            _ => Ok(()),
        }
    }

    fn words(&self) -> (String, String) {
        let text = |key: &str| {
            self.operation
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let title = sentence(&text("summary").replace(['\n', '\r'], " "), TITLE_MAX);
        let body = sentence(text("description"), DESCRIPTION_MAX);
        let stop = if title.is_empty() || title.ends_with(['.', '!', '?', '…']) {
            ""
        } else {
            "."
        };
        let mut description = match (title.is_empty(), body.is_empty()) {
            (_, false) if body.starts_with(&title) => body,
            (false, false) => format!("{title}{stop} {body}"),
            (false, true) => format!("{title}{stop}"),
            _ => format!("Sends {}.", self.line),
        };
        if self.operation.get("deprecated") == Some(&Value::Bool(true)) {
            description = format!("Deprecated. {description}");
        }
        (title, description)
    }

    /// Returns the collection of the operation. There is one for each first tag, so that each has a size that people
    /// can read.
    fn collection(&self) -> String {
        let tag = self
            .operation
            .get("tags")
            .and_then(|tags| tags.get(0)?.as_str())
            .unwrap_or(self.contract);
        let plain: String = snake(tag).chars().take(64).collect();
        if plain.is_empty() {
            "api".to_owned()
        } else {
            plain
        }
    }

    fn parameters(
        &self,
        taken: &mut BTreeSet<String>,
        noted: &mut Vec<Refusal>,
    ) -> Result<Vec<Parameter>, Refusal> {
        let mut found: Vec<(String, &Value)> = Vec::new();
        let mut item_place = self.place.to_owned();
        item_place.truncate(item_place.rfind('/').unwrap_or(0));
        for (of, place) in [
            (self.item, item_place.as_str()),
            (self.operation, self.place),
        ] {
            for (index, given) in of
                .get("parameters")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .enumerate()
            {
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
        let mut parameters = Vec::new();
        for (place, given) in found {
            let required = given.get("required") == Some(&Value::Bool(true));
            match self.parameter(given, &place, taken, noted) {
                Ok(parameter) => parameters.extend(parameter),
                Err((reason, why)) if required => return Err((reason, place, why)),
                Err((reason, why)) => {
                    noted.push((reason, place, format!("the parameter is dropped: {why}")))
                }
            }
        }
        let mut rest = self.path;
        while let Some((_, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            if !parameters
                .iter()
                .any(|parameter| parameter.place == Place::Path && parameter.original == name)
            {
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
    ) -> Result<Option<Parameter>, (&'static str, String)> {
        let original = given
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let position = match given.get("in").and_then(Value::as_str) {
            Some("path") if !self.path.contains(&format!("{{{original}}}")) => return Ok(None),
            Some("path") => Place::Path,
            Some("query") => Place::Query,
            Some("header") => {
                let name = original.to_ascii_lowercase();
                if IGNORED_HEADERS.contains(&name.as_str()) || self.access.sends_header(&name) {
                    return Ok(None);
                }
                if RESERVED_HEADERS.contains(&name.as_str()) {
                    return Err(("parameter", format!("no caller sets the header {name}")));
                }
                Place::Header
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
        };
        if original.is_empty() {
            return Err(("parameter", "it has no name".to_owned()));
        }
        if position == Place::Query && self.access.sends_query(&original) {
            return Ok(None);
        }
        let content = given
            .get("content")
            .and_then(Value::as_object)
            .and_then(|content| content.iter().next());
        let (schema, is_json) = match content {
            Some((media, content)) if media.ends_with("json") => (content.get("schema"), true),
            Some((media, _)) => return Err(("parameter", format!("it is written as {media}"))),
            None => (given.get("schema"), false),
        };
        let style = given.get("style").and_then(Value::as_str);
        let default = if position == Place::Query {
            "form"
        } else {
            "simple"
        };
        let known: &[&str] = match position {
            Place::Query => QUERY_STYLES,
            _ => &["simple"],
        };
        let style = style.unwrap_or(default);
        if !is_json && !known.contains(&style) {
            return Err((
                "parameter",
                format!("the style {} is not known here", sentence(style, 40)),
            ));
        }
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
        let is_single = is_single(&schema);
        // A number of a page or a size needs no 64 bits.
        if position != Place::Query || !pages::is_position(&original) {
            validate::with_text_form(&mut schema);
        }
        let field = field_name(&original, taken);
        taken.insert(field.clone());
        Ok(Some(Parameter {
            field,
            place: position,
            required: position == Place::Path || given.get("required") == Some(&Value::Bool(true)),
            may_be_null: false,
            description: given
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned),
            example: given
                .get("example")
                .filter(|example| schema::can_be_shown(example))
                .cloned(),
            style: (!is_json && !is_single).then(|| style.to_owned()),
            explode: given
                .get("explode")
                .and_then(Value::as_bool)
                .filter(|_| !is_json && !is_single),
            original,
            schema,
        }))
    }

    fn part(
        &self,
        part: &body::Part<'d>,
        place: &str,
        taken: &mut BTreeSet<String>,
        noted: &mut Vec<Refusal>,
    ) -> Result<Parameter, String> {
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
        Ok(Parameter {
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

impl Parameter {
    fn settings(&self, kind: &str) -> Value {
        let mut settings = Map::from_iter([("type".to_owned(), Value::from(kind))]);
        if self.required {
            settings.insert("required".to_owned(), true.into());
        }
        let place = match self.place {
            Place::Path => Some("path"),
            Place::Query => Some("query"),
            Place::Header => Some("header"),
            Place::Body => None,
            Place::WholeBody => Some("whole-body"),
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
