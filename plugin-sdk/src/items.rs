//! Prompts, resources and their completion: what a plugin offers besides tools.
//!
//! Implement [`Items`] for a type of your own and name it in the export: `weir_plugin_sdk::export!(tools: deploy; items:
//! Handbook);`, or `export!(items: Handbook);` without tools. Clients see names and URIs as they are written here.

use serde_json::{Map, Value, json};

use crate::Bytes;
use crate::error::{Error, Result};
use crate::tools::{Answer, Content, Context, Reply};

/// The prompts and resources of a plugin.
///
/// The lists are asked for when the plugin is loaded, and must be the same each time. The gateway asks for nothing that is
/// not listed, and checks the arguments of a prompt before it asks.
pub trait Items {
    /// The prompts.
    fn prompts() -> Vec<Prompt> {
        Vec::new()
    }

    /// The resources.
    fn resources() -> Vec<Resource> {
        Vec::new()
    }

    /// The templates of resources.
    fn templates() -> Vec<Template> {
        Vec::new()
    }

    /// The messages of a prompt, or a question back to the caller.
    fn prompt(
        name: &str,
        _arguments: &Map<String, Value>,
        _context: &Context,
    ) -> Result<Answer<Vec<Message>>> {
        Err(Error::not_found(format!("There is no prompt `{name}`.")))
    }

    /// Returns the contents of a resource, or a question back to the caller.
    fn read(uri: &str, _context: &Context) -> Result<Answer<Vec<Contents>>> {
        Err(Error::not_found(format!("There is no resource `{uri}`.")))
    }

    /// Values that an argument may have, the likeliest first. `value` is what has been typed so far.
    fn complete(
        _of: Completed<'_>,
        _argument: &str,
        _value: &str,
        _context: &Context,
    ) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// The owner of an argument to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed<'a> {
    /// A prompt, by its name.
    Prompt(&'a str),
    /// A template of resources, as it was listed.
    Template(&'a str),
}

/// A prompt as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    members: Map<String, Value>,
    arguments: Vec<Value>,
}

/// A resource as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource(Map<String, Value>);

/// A template of resources as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Map<String, Value>);

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Message(Value);

/// The contents of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents(Value);

impl Prompt {
    /// A prompt without arguments.
    pub fn new(name: &str, description: &str) -> Self {
        Self {
            members: members([("name", name), ("description", description)]),
            arguments: Vec::new(),
        }
    }

    /// Adds an argument, which is a text.
    pub fn argument(mut self, name: &str, description: &str, required: bool) -> Self {
        self.arguments
            .push(json!({ "name": name, "description": description, "required": required }));
        self
    }

    /// Adds a member of the MCP object, such as `title`.
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    fn into_value(mut self) -> Value {
        if !self.arguments.is_empty() {
            self.members
                .insert("arguments".to_owned(), self.arguments.into());
        }
        self.members.into()
    }
}

impl Resource {
    /// A resource, by its URI.
    pub fn new(uri: &str, name: &str, description: &str) -> Self {
        Self(members([
            ("uri", uri),
            ("name", name),
            ("description", description),
        ]))
    }

    /// Adds a member of the MCP object, such as `mimeType` or `title`.
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }
}

impl Template {
    /// A template as RFC 6570 has it: `notes://{year}/{name}`.
    pub fn new(uri_template: &str, name: &str, description: &str) -> Self {
        Self(members([
            ("uriTemplate", uri_template),
            ("name", name),
            ("description", description),
        ]))
    }

    /// Adds a member of the MCP object, such as `mimeType` or `title`.
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }
}

impl Message {
    /// A message in the name of the user.
    pub fn user(content: Content) -> Self {
        Self(json!({ "role": "user", "content": content.into_value() }))
    }

    /// A message in the name of the model.
    pub fn assistant(content: Content) -> Self {
        Self(json!({ "role": "assistant", "content": content.into_value() }))
    }
}

impl Contents {
    /// A text.
    pub fn text(uri: &str, mime_type: &str, text: impl Into<String>) -> Self {
        Self(json!({ "uri": uri, "mimeType": mime_type, "text": text.into() }))
    }

    /// Bytes.
    pub fn bytes(uri: &str, mime_type: &str, bytes: impl Into<Bytes>) -> Self {
        Self(json!({ "uri": uri, "mimeType": mime_type, "blob": bytes.into().to_base64() }))
    }
}

fn members<const N: usize>(members: [(&str, &str); N]) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}

/// The items of a plugin, their type forgotten.
#[derive(Clone, Copy)]
pub struct Entry {
    definitions: fn() -> String,
    get: fn(Request) -> Result<Reply>,
}

/// A request as the gateway sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `prompts/get`, `resources/read` or `completion/complete`.
    pub method: String,
    /// A JSON object: the params of the method.
    pub params: String,
    /// A JSON object: agent, tenant, call_id, contract, deadline_ms.
    pub context: String,
    /// JSON `{state, responses}` where this request continues one that asked back.
    pub resumed: Option<String>,
}

/// The entry of a type.
pub fn entry<I: Items>() -> Entry {
    Entry {
        definitions: definitions::<I>,
        get: get::<I>,
    }
}

impl Entry {
    /// JSON: `{prompts, resources, resourceTemplates}`.
    pub fn definitions(&self) -> String {
        (self.definitions)()
    }

    /// Answers one request.
    pub fn get(&self, request: Request) -> Result<Reply> {
        (self.get)(request)
    }
}

fn definitions<I: Items>() -> String {
    let prompts: Vec<Value> = I::prompts().into_iter().map(Prompt::into_value).collect();
    let resources: Vec<Value> = I::resources()
        .into_iter()
        .map(|resource| resource.0.into())
        .collect();
    let templates: Vec<Value> = I::templates()
        .into_iter()
        .map(|template| template.0.into())
        .collect();
    json!({ "prompts": prompts, "resources": resources, "resourceTemplates": templates })
        .to_string()
}

fn get<I: Items>(request: Request) -> Result<Reply> {
    let Request {
        method,
        params,
        context,
        resumed,
    } = request;
    let params: Value =
        serde_json::from_str(&params).map_err(|_| Error::invalid("The params are not JSON."))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let context = Context::new(context, resumed);
    let printed = |value: Value| Some(value.to_string());
    match method.as_str() {
        "prompts/get" => {
            let empty = Map::new();
            let arguments = params["arguments"].as_object().unwrap_or(&empty);
            let messages = I::prompt(&text(&params["name"]), arguments, &context)?;
            let plain = |message: Message| message.0;
            Ok(messages.into_reply(|messages| {
                printed(json!({ "messages": messages.into_iter().map(plain).collect::<Vec<_>>() }))
            }))
        }
        "resources/read" => {
            let contents = I::read(&text(&params["uri"]), &context)?;
            let plain = |contents: Contents| contents.0;
            Ok(contents.into_reply(|contents| {
                printed(json!({ "contents": contents.into_iter().map(plain).collect::<Vec<_>>() }))
            }))
        }
        "completion/complete" => {
            let (reference, argument) = (&params["ref"], &params["argument"]);
            let (name, uri) = (text(&reference["name"]), text(&reference["uri"]));
            let of = match reference["type"].as_str() {
                Some("ref/prompt") => Completed::Prompt(&name),
                _ => Completed::Template(&uri),
            };
            let values = I::complete(
                of,
                &text(&argument["name"]),
                &text(&argument["value"]),
                &context,
            )?;
            Ok(Reply::complete(
                printed(json!({ "completion": { "values": values } })),
                None,
            ))
        }
        method => Err(Error::unsupported(format!(
            "This plugin does not know `{method}`."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Handbook;

    impl Items for Handbook {
        fn prompts() -> Vec<Prompt> {
            vec![Prompt::new("greet", "Greets a person.").argument("name", "Who it is.", true)]
        }

        fn templates() -> Vec<Template> {
            vec![
                Template::new("book://{chapter}", "chapter", "A chapter.")
                    .member("mimeType", "text/plain"),
            ]
        }

        fn prompt(
            _name: &str,
            arguments: &Map<String, Value>,
            _context: &Context,
        ) -> Result<Answer<Vec<Message>>> {
            let name = arguments["name"].as_str().unwrap_or_default();
            Ok(Answer::of(vec![Message::user(Content::text(format!(
                "Hello {name}"
            )))]))
        }

        fn complete(
            of: Completed<'_>,
            _argument: &str,
            value: &str,
            _context: &Context,
        ) -> Result<Vec<String>> {
            assert_eq!(of, Completed::Template("book://{chapter}"));
            Ok(vec![format!("{value}1")])
        }
    }

    fn asked(method: &str, params: &Value) -> Result<Value> {
        let request = Request {
            method: method.into(),
            params: params.to_string(),
            context: "{}".into(),
            resumed: None,
        };
        let reply = entry::<Handbook>().get(request)?;
        assert_eq!(reply.kind, "complete");
        Ok(serde_json::from_str(&reply.value.expect("a value")).expect("JSON"))
    }

    #[test]
    fn what_is_listed_is_answered() {
        let listed: Value = serde_json::from_str(&entry::<Handbook>().definitions()).expect("JSON");
        assert_eq!(listed["prompts"][0]["arguments"][0]["name"], "name");
        assert_eq!(
            listed["resourceTemplates"][0]["uriTemplate"],
            "book://{chapter}"
        );
        let greeting = asked(
            "prompts/get",
            &json!({ "name": "greet", "arguments": { "name": "Ada" } }),
        );
        let message = json!({ "role": "user", "content": { "type": "text", "text": "Hello Ada" } });
        assert_eq!(
            greeting.expect("a prompt"),
            json!({ "messages": [message] })
        );
        let reference = json!({ "type": "ref/resource", "uri": "book://{chapter}" });
        let params = json!({ "ref": reference, "argument": { "name": "chapter", "value": "p" } });
        let completed = asked("completion/complete", &params).expect("a completion");
        assert_eq!(completed, json!({ "completion": { "values": ["p1"] } }));
        assert!(
            asked("resources/read", &json!({ "uri": "book://1" }))
                .expect_err("nothing")
                .is("not_found")
        );
        assert!(
            asked("tools/call", &json!({}))
                .expect_err("nothing")
                .is("unsupported")
        );
    }
}
