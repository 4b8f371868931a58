//! Turns one operation of the document into a tool's form and the adapter's settings for it.

mod parameter;

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use weir_schema::walk;

pub(super) use self::parameter::{ImportedParameter, ParameterLocation, QUERY_STYLES};
use super::{
    ImportOptions, ImportRemark, OPERATIONS_MAX, answer,
    document::ImportDocument,
    field, pages,
    security::{SecurityAccess, server_address},
    text::{sentence, snake, tool_name},
};
use crate::{
    json::push_pointer,
    name,
    shape::{self, OperationEffect, OperationParam, ValueType},
};

const DESCRIPTION_MAX: usize = 1_500;
const TITLE_MAX: usize = 200;
pub(super) struct ImportedOperation {
    pub(super) tool: String,
    pub(super) collection: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) fields: Vec<Value>,
    /// The operation, as the adapter's settings write it.
    pub(super) settings: Value,
    pub(super) effect: OperationEffect,
    /// `GET /pets`.
    line: String,
    place: String,
}

/// Why there is no tool: the kind of reason, the place, and a sentence.
type Refusal = (&'static str, String, String);

/// Returns every requested operation that can be imported, in the document's order.
pub(super) fn all(
    document: &ImportDocument,
    wanted: &ImportOptions<'_>,
    contract: &str,
    access: &SecurityAccess,
    remarks: &mut Vec<ImportRemark>,
) -> Vec<ImportedOperation> {
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
            let source = OperationSource {
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

fn is_wanted(wanted: &ImportOptions<'_>, operation: &Value, names: &[&str]) -> bool {
    let tags = walk::elements(operation.get("tags"))
        .iter()
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
) -> ImportRemark {
    ImportRemark {
        left_out,
        place: place.to_owned(),
        operation: operation.to_owned(),
        reason,
        message,
    }
}

impl ImportedOperation {
    pub(super) fn writes(&self) -> bool {
        self.effect != OperationEffect::Read || self.settings["method"] != "GET"
    }

    pub(super) fn left_out(&self, reason: &'static str, message: String) -> ImportRemark {
        remark(true, &self.place, &self.line, reason, message)
    }

    /// Returns the operation as the adapter describes it.
    pub(super) fn shape(&self) -> shape::ShapeOperation {
        let kind = |value: &Value| {
            let word = value
                .as_str()
                .map_or_else(|| value["type"].clone(), Value::from);
            serde_json::from_value::<ValueType>(word).unwrap_or(ValueType::Json)
        };
        let params = self.settings["params"].as_object().into_iter().flatten();
        let params = params.map(|(name, param)| OperationParam {
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
        let returns = returns.iter().map(|(key, value)| shape::ShapeField {
            nullable: value.is_string() || value["nullable"] == true,
            ..shape::ShapeField::new(key, kind(value))
        });
        shape::ShapeOperation {
            name: self.tool.clone(),
            effect: self.effect,
            params: params.collect(),
            returns: returns.collect(),
        }
    }
}

/// An operation and its place in the document.
struct OperationSource<'d> {
    document: &'d ImportDocument,
    contract: &'d str,
    access: &'d SecurityAccess,
    path: &'d str,
    method: &'d str,
    item: &'d Value,
    operation: &'d Value,
    place: &'d str,
    line: &'d str,
}

impl<'d> OperationSource<'d> {
    fn read(
        &self,
        tool: String,
        remarks: &mut Vec<ImportRemark>,
    ) -> Result<ImportedOperation, Refusal> {
        let at = |member: &str| format!("{}{member}", self.place);
        self.check_request()?;
        self.check_server()?;
        let mut noted = Vec::new();
        let mut taken = BTreeSet::new();
        let mut parameters = self.parameters(&mut taken, &mut noted)?;
        let (content_type, body_required) = self.body(&mut parameters, &mut taken, &mut noted)?;
        let responses = self.operation.get("responses").unwrap_or(&Value::Null);
        let mut answer = answer::read_response(self.document, responses)
            .map_err(|why| ("reference", at("/responses"), why))?;
        if let Some(media) = &answer.untold {
            let why = format!("the answer is {media}, and only JSON is read");
            if self.method == "get" {
                return Err(("answer", at("/responses"), why));
            }
            noted.push(("answer", at("/responses"), why));
        }
        // What was asked for is not thrown away because a document does not describe it.
        if answer.is_undescribed && self.method == "get" {
            answer.return_whole();
        }
        let effect = match self.method {
            "get" => OperationEffect::Read,
            "post" if answer.creates => OperationEffect::Create,
            "put" => OperationEffect::Update,
            _ => OperationEffect::Destructive,
        };
        let pages = match answer.returns.contains_key("next_arguments") {
            true => None,
            false => pages::find_pagination(
                self.document,
                self.operation,
                answer.response,
                answer.is_list,
                &parameters,
            ),
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
                let (field, kind) = field::build_field(parameter);
                (field, (parameter.field.clone(), parameter.settings(kind)))
            })
            .unzip();
        let sent = (content_type, body_required);
        let settings = self.settings(effect, params, sent, answer, pages);
        let (title, description) = self.words();
        Ok(ImportedOperation {
            tool,
            collection: self.collection(),
            title,
            description,
            fields,
            settings,
            effect,
            line: self.line.to_owned(),
            place: self.place.to_owned(),
        })
    }

    /// Returns the operation as the adapter's settings write it. `sent` is the media type of the body, if it is named, and
    /// whether there always is one.
    fn settings(
        &self,
        effect: OperationEffect,
        params: Map<String, Value>,
        (content_type, body_required): (Option<&str>, bool),
        answer: answer::ImportedResponse<'_>,
        pages: Option<pages::ImportedPagination>,
    ) -> Value {
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
        Value::Object(settings)
    }

    /// Refuses a method and a path that no adapter sends.
    fn check_request(&self) -> Result<(), Refusal> {
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
                "the path is not a plain path".to_owned(),
            ));
        }
        Ok(())
    }

    /// Refuses an operation on another server, which would need a separate connection.
    fn check_server(&self) -> Result<(), Refusal> {
        let address = |servers: &Value| {
            let address = server_address(servers)?;
            Some(address.trim_end_matches('/').to_owned())
        };
        let own = [self.operation, self.item]
            .iter()
            .find_map(|of| address(of.get("servers")?));
        match own {
            Some(own) if Some(&own) != address(self.document.get("servers")).as_ref() => {
                let shown = sentence(&own, 100);
                let why = format!(
                    "it is at a different server, {shown}, and a contract has one connection here"
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
}
