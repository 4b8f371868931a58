//! The tools, prompts and resources that the protocol's conformance suite looks for, under its names.

use std::hint::black_box;

use weir_plugin_sdk::items::{Completed, Contents, Message, Prompt, Resource, Template};
use weir_plugin_sdk::schema::Fields;
use weir_plugin_sdk::serde_json::{Map, Value, json};
use weir_plugin_sdk::tools::{Definition, Reply, Tool};
use weir_plugin_sdk::{
    Answer, Bytes, Content, Context, Error, Items, Question, ToolError, clock, events, log, tool,
};

/// A picture of one red point.
const PICTURE: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0,
    1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, b'I', b'D', b'A', b'T', 8,
    0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, b'I', b'E',
    b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];
/// A sound without a sample.
const SOUND: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0";

fn picture() -> Bytes {
    PICTURE.to_vec().into()
}

/// Works for the given time, since a guest has no way to sleep.
fn work(milliseconds: u64) {
    let until = clock::now_ms() + milliseconds;
    while clock::now_ms() < until {
        (0..1_000_000_u32).for_each(|round| {
            black_box(round);
        });
    }
}

/// Answers a text.
#[tool(read_only)]
fn test_simple_text() -> Answer {
    Answer::text("This is a simple text response for testing.")
}

/// Answers a picture.
#[tool(read_only)]
fn test_image_content() -> Answer {
    Answer::blocks([Content::image("image/png", picture())])
}

/// Answers a sound.
#[tool(read_only)]
fn test_audio_content() -> Answer {
    Answer::blocks([Content::audio("audio/wav", SOUND.to_vec())])
}

/// Answers a resource.
#[tool(read_only)]
fn test_embedded_resource() -> Answer {
    let text = "This is an embedded resource content.";
    Answer::blocks([Content::resource_text(
        "test://embedded-resource",
        "text/plain",
        text,
    )])
}

/// Answers a text, a picture and a resource.
#[tool(read_only)]
fn test_multiple_content_types() -> Answer {
    let resource = r#"{"test":"data","value":123}"#;
    Answer::blocks([
        Content::text("Multiple content types test:"),
        Content::image("image/png", picture()),
        Content::resource_text(
            "test://mixed-content-resource",
            "application/json",
            resource,
        ),
    ])
}

/// Fails.
#[tool(read_only)]
fn test_error_handling() -> Result<(), ToolError> {
    Err(ToolError::refuse(
        "intended",
        "This tool intentionally returns an error for testing",
    ))
}

/// Says how far it is, three times.
#[tool(read_only)]
fn test_tool_with_progress(ctx: &Context) -> Answer {
    for done in [0, 50, 100] {
        ctx.progress(f64::from(done), Some(100.0), "");
        work(50);
    }
    Answer::text("done")
}

/// Logs three lines.
#[tool(read_only)]
fn test_tool_with_logging() -> Answer {
    for line in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        log::info(line);
        work(50);
    }
    Answer::text("logged")
}

/// Logs a line, which only callers hear that ask for it.
#[tool(read_only)]
fn test_logging_tool() -> Answer {
    log::info("a line");
    Answer::text("logged")
}

/// Takes a while, as a stream.
#[tool(read_only)]
fn test_streaming_elicitation(ctx: &Context) -> Answer {
    ctx.progress(1.0, Some(1.0), "");
    Answer::text("streamed")
}

/// Says that the list of tools is another.
#[tool(read_only)]
fn test_trigger_tool_change() -> Answer {
    events::tools_changed();
    Answer::text("told")
}

/// Says that the list of prompts is another.
#[tool(read_only)]
fn test_trigger_prompt_change() -> Answer {
    events::prompts_changed();
    Answer::text("told")
}

/// Says that a resource holds something else.
#[tool(read_only)]
fn test_trigger_resource_change() -> Answer {
    events::resource_changed("test://watched-resource");
    Answer::text("told")
}

fn sampling(text: &str, most: u32) -> Value {
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }], "maxTokens": most })
}

fn form(message: &str, schema: &Value) -> Value {
    json!({ "mode": "form", "message": message, "requestedSchema": schema })
}

fn texts(message: &str, names: &[&str]) -> Value {
    let properties: Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
        .collect();
    form(
        message,
        &json!({ "type": "object", "properties": properties, "required": names }),
    )
}

/// One question, and the text that its answer makes.
fn asked(
    ctx: &Context,
    key: &str,
    method: &str,
    params: Value,
    say: impl Fn(&Value) -> String,
) -> Answer {
    match ctx.response(key) {
        None => Answer::ask(Question::request(key, method, params)),
        Some(response) => Answer::text(say(response)),
    }
}

/// Asks the caller's model.
#[tool(read_only)]
fn test_sampling(
    /// What the model is asked.
    prompt: String,
    ctx: &Context,
) -> Answer {
    asked(
        ctx,
        "answer",
        "sampling/createMessage",
        sampling(&prompt, 100),
        |response| {
            format!(
                "LLM response: {}",
                response["content"]["text"].as_str().unwrap_or_default()
            )
        },
    )
}

fn elicited(response: &Value) -> String {
    let content = response
        .get("content")
        .cloned()
        .unwrap_or_else(|| json!({}));
    format!(
        "action={}, content={content}",
        response["action"].as_str().unwrap_or_default()
    )
}

/// Asks a person.
#[tool(read_only)]
fn test_elicitation(
    /// What the person is asked.
    message: String,
    ctx: &Context,
) -> Answer {
    let schema = json!({ "type": "object", "required": ["username", "email"], "properties": {
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" },
    } });
    asked(
        ctx,
        "form",
        "elicitation/create",
        form(&message, &schema),
        |it| format!("User response: {}", elicited(it)),
    )
}

/// Asks a person with defaults of each kind.
#[tool(read_only)]
fn test_elicitation_sep1034_defaults(ctx: &Context) -> Answer {
    let schema = json!({ "type": "object", "required": [], "properties": {
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    } });
    let params = form("Please fill in the form", &schema);
    asked(ctx, "form", "elicitation/create", params, |it| {
        format!("Elicitation completed: {}", elicited(it))
    })
}

/// Asks a person with choices of each kind.
#[tool(read_only)]
fn test_elicitation_sep1330_enums(ctx: &Context) -> Answer {
    let choices = |titles: [&str; 3]| {
        let choice = |(at, title): (usize, &&str)| json!({ "const": format!("value{}", at + 1), "title": title });
        titles.iter().enumerate().map(choice).collect::<Vec<_>>()
    };
    let options = ["option1", "option2", "option3"];
    let schema = json!({ "type": "object", "required": [], "properties": {
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": choices(["First Option", "Second Option", "Third Option"]) },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": {
            "type": "array",
            "items": { "anyOf": choices(["First Choice", "Second Choice", "Third Choice"]) },
        },
    } });
    let params = form("Please choose", &schema);
    asked(ctx, "form", "elicitation/create", params, |it| {
        format!("Elicitation completed: {}", elicited(it))
    })
}

/// Asks the caller's model, whatever the caller can answer.
#[tool(read_only)]
fn test_missing_capability(ctx: &Context) -> Answer {
    asked(
        ctx,
        "sample",
        "sampling/createMessage",
        sampling("Hello", 10),
        ToString::to_string,
    )
}

fn text<'r>(response: &'r Value, field: &str) -> Option<&'r str> {
    response.get("content")?.get(field)?.as_str()
}

/// Asks for a name, until one comes.
#[tool(read_only)]
fn test_input_required_result_elicitation(ctx: &Context) -> Answer {
    match ctx
        .response("user_name")
        .and_then(|response| text(response, "name"))
    {
        Some(name) => Answer::text(format!("Hello, {name}!")),
        None => {
            let params = texts("What is your name?", &["name"]);
            Answer::ask(Question::request("user_name", "elicitation/create", params))
        }
    }
}

/// Asks the caller's model for a capital.
#[tool(read_only)]
fn test_input_required_result_sampling(ctx: &Context) -> Answer {
    let params = sampling("What is the capital of France?", 100);
    let said = |response: &Value| {
        response["content"]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    asked(
        ctx,
        "capital_question",
        "sampling/createMessage",
        params,
        said,
    )
}

/// Asks for the roots of the caller.
#[tool(read_only)]
fn test_input_required_result_list_roots(ctx: &Context) -> Answer {
    asked(ctx, "client_roots", "roots/list", json!({}), |response| {
        format!("Roots: {}", response["roots"])
    })
}

fn confirm(key: &str) -> Question {
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    Question::request(key, "elicitation/create", form("Please confirm", &schema))
}

/// Asks, and looks whether its own state comes back.
#[tool(read_only)]
fn test_input_required_result_request_state(ctx: &Context) -> Answer {
    match (ctx.response("confirm"), ctx.state()) {
        (Some(_), Some("kept")) => Answer::text("state-ok"),
        _ => Answer::ask(confirm("confirm").state("kept")),
    }
}

/// The same, for a caller that changes the state.
#[tool(read_only)]
fn test_input_required_result_tampered_state(ctx: &Context) -> Answer {
    match (ctx.response("confirm"), ctx.state()) {
        (Some(_), Some("kept")) => Answer::text("state-ok"),
        _ => Answer::ask(confirm("confirm").state("kept")),
    }
}

/// Asks a person, the model and for roots at once.
#[tool(read_only)]
fn test_input_required_result_multiple_inputs(ctx: &Context) -> Answer {
    let keys = ["user_name", "greeting", "client_roots"];
    if keys.iter().all(|key| ctx.response(key).is_some()) {
        return Answer::text("All three were answered.");
    }
    let question = Question::request(
        keys[0],
        "elicitation/create",
        texts("What is your name?", &["name"]),
    );
    let question = question.and_request(
        keys[1],
        "sampling/createMessage",
        sampling("Generate a greeting", 50),
    );
    Answer::ask(
        question
            .and_request(keys[2], "roots/list", json!({}))
            .state("all"),
    )
}

/// Asks twice, one after the other.
#[tool(read_only)]
fn test_input_required_result_multi_round(ctx: &Context) -> Answer {
    let ask = |key: &str, message: &str, field: &str, state: &str| {
        Answer::ask(
            Question::request(key, "elicitation/create", texts(message, &[field])).state(state),
        )
    };
    match (ctx.state(), ctx.response("step1"), ctx.response("step2")) {
        (Some("round-1"), Some(_), _) => ask(
            "step2",
            "Step 2: What is your favorite color?",
            "color",
            "round-2",
        ),
        (Some("round-2"), _, Some(_)) => Answer::text("Both were answered."),
        _ => ask("step1", "Step 1: What is your name?", "name", "round-1"),
    }
}

/// Asks only what the caller can answer.
#[tool(read_only)]
fn test_input_required_result_capabilities(ctx: &Context) -> Answer {
    if ctx.is_resumed() {
        return Answer::text("answered");
    }
    let mut question = None;
    let questions = [
        (
            "elicitation",
            "elicitation/create",
            texts("What is your name?", &["name"]),
        ),
        ("sampling", "sampling/createMessage", sampling("Hello", 10)),
        ("roots", "roots/list", json!({})),
    ];
    for (capability, method, params) in questions {
        if ctx.can_ask(capability) {
            question = Some(match question {
                None => Question::request(capability, method, params),
                Some(question) => Question::and_request(question, capability, method, params),
            });
        }
    }
    question.map_or_else(
        || Answer::text("There is nothing that this caller can be asked."),
        Answer::ask,
    )
}

/// Greets.
#[tool(read_only)]
fn greet(name: String) -> Answer {
    Answer::text(format!("Hello, {name}!"))
}

/// Works for so many seconds. A guest has no way to sleep.
#[tool(read_only, task)]
fn slow_compute(seconds: u32, label: Option<String>) -> Answer {
    work(u64::from(seconds) * 1000);
    Answer::text(format!(
        "{}: {seconds} s",
        label.as_deref().unwrap_or("computed")
    ))
}

/// Fails after a while.
#[tool(read_only, task = "required")]
fn failing_job() -> Result<(), ToolError> {
    work(1000);
    Err(ToolError::refuse("intended", "This job always fails."))
}

/// Asks, after a while, what no caller of the suite can answer, which is an error of the protocol.
#[tool(read_only, task)]
fn protocol_error_job() -> Answer {
    work(1000);
    Answer::ask(Question::request("roots", "roots/list", json!({})))
}

/// Asks, after a while, whether a file may go.
#[tool(read_only, task)]
fn confirm_delete(filename: String, ctx: &Context) -> Answer {
    if let Some(response) = ctx.response("confirm") {
        return Answer::text(format!("{filename}: {}", elicited(response)));
    }
    work(600);
    Answer::ask(confirm("confirm"))
}

/// Asks, after a while, two things at once.
#[tool(read_only, task)]
fn multi_input(ctx: &Context) -> Answer {
    if ctx.response("first").is_some() && ctx.response("second").is_some() {
        return Answer::text("Both were answered.");
    }
    work(600);
    let second = texts("The second?", &["second"]);
    Answer::ask(confirm("first").and_request("second", "elicitation/create", second))
}

/// Asks for a name at once, and then works for a while.
#[tool(read_only, task = "required")]
fn test_tool_with_task(ctx: &Context) -> Answer {
    let Some(name) = ctx
        .response("user_name")
        .and_then(|response| text(response, "name"))
    else {
        let params = texts("What is your name?", &["name"]);
        return Answer::ask(Question::request("user_name", "elicitation/create", params));
    };
    work(600);
    Answer::text(format!("Hello, {name}!"))
}

/// Takes an argument that a header repeats. Its schema is written by hand, as is that of the tool below.
#[expect(non_camel_case_types, reason = "a tool is named by its type")]
enum test_custom_header {}

impl Tool for test_custom_header {
    const DEFINITION: Definition = Definition {
        name: "test_custom_header",
        title: None,
        description: Some("Takes a region, which a header repeats."),
        annotations: &[("readOnlyHint", true)],
        requests: &[],
        task: None,
        input: Some(
            r#"{"type":"object","properties":{"region":{"type":"string","description":"Where.","x-mcp-header":"Region"},"query":{"type":"string","description":"What."}},"required":["region"],"additionalProperties":false}"#,
        ),
        meta: None,
        parameters: &[],
        output: None,
    };

    fn call(_arguments: Fields, _context: &Context) -> Result<Reply, Error> {
        Ok(Answer::text("taken").into())
    }
}

/// Has every keyword of JSON Schema that servers should not lose.
#[expect(non_camel_case_types, reason = "a tool is named by its type")]
enum json_schema_2020_12_tool {}

impl Tool for json_schema_2020_12_tool {
    const DEFINITION: Definition = Definition {
        name: "json_schema_2020_12_tool",
        title: None,
        description: Some("Tool with JSON Schema 2020-12 features"),
        annotations: &[("readOnlyHint", true)],
        requests: &[],
        task: None,
        input: Some(concat!(
            r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"##,
            r##""$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"##,
            r##""properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","##,
            r##""enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":"##,
            r##"["phone"]},{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":"##,
            r##"["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}"##,
        )),
        meta: Some(r#"{"dev.weir/composedRoot":true}"#),
        parameters: &[],
        output: None,
    };

    fn call(_arguments: Fields, _context: &Context) -> Result<Reply, Error> {
        Ok(Answer::text("taken").into())
    }
}

struct Fixture;

impl Items for Fixture {
    fn prompts() -> Vec<Prompt> {
        vec![
            Prompt::new("test_simple_prompt", "A prompt without arguments."),
            Prompt::new("test_prompt_with_arguments", "A prompt with two arguments.")
                .argument("arg1", "First test argument", true)
                .argument("arg2", "Second test argument", true),
            Prompt::new(
                "test_prompt_with_embedded_resource",
                "A prompt with a resource inside.",
            )
            .argument("resourceUri", "URI of the resource to embed", true),
            Prompt::new("test_prompt_with_image", "A prompt with a picture inside."),
            Prompt::new(
                "test_input_required_result_prompt",
                "A prompt that asks before it answers.",
            ),
        ]
    }

    fn resources() -> Vec<Resource> {
        vec![
            Resource::new("test://static-text", "static-text", "A text.")
                .member("mimeType", "text/plain"),
            Resource::new("test://static-binary", "static-binary", "A picture.")
                .member("mimeType", "image/png"),
            Resource::new(
                "test://watched-resource",
                "watched-resource",
                "A text that changes.",
            ),
        ]
    }

    fn templates() -> Vec<Template> {
        let template = Template::new("test://template/{id}/data", "template", "Data by its id.");
        vec![template.member("mimeType", "application/json")]
    }

    fn prompt(
        name: &str,
        arguments: &Map<String, Value>,
        ctx: &Context,
    ) -> Result<Answer<Vec<Message>>, Error> {
        let argument = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let said = |text: &str| Message::user(Content::text(text));
        Ok(Answer::of(match name {
            "test_simple_prompt" => vec![said("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => {
                let (one, other) = (argument("arg1"), argument("arg2"));
                vec![said(&format!(
                    "Prompt with arguments: arg1='{one}', arg2='{other}'"
                ))]
            }
            "test_prompt_with_embedded_resource" => {
                let text = "Embedded resource content for testing.";
                let resource = Content::resource_text(argument("resourceUri"), "text/plain", text);
                vec![
                    Message::user(resource),
                    said("Please process the embedded resource above."),
                ]
            }
            "test_prompt_with_image" => {
                vec![
                    Message::user(Content::image("image/png", picture())),
                    said("Please analyze the image above."),
                ]
            }
            _ => match ctx
                .response("user_context")
                .and_then(|response| text(response, "context"))
            {
                Some(context) => vec![said(&format!("The context is {context}."))],
                None => {
                    let params = texts("What context should the prompt use?", &["context"]);
                    return Ok(Answer::ask(Question::request(
                        "user_context",
                        "elicitation/create",
                        params,
                    )));
                }
            },
        }))
    }

    fn read(uri: &str, _ctx: &Context) -> Result<Answer<Vec<Contents>>, Error> {
        let contents = match uri {
            "test://static-text" => Contents::text(
                uri,
                "text/plain",
                "This is the content of the static text resource.",
            ),
            "test://static-binary" => Contents::bytes(uri, "image/png", picture()),
            "test://watched-resource" => Contents::text(uri, "text/plain", "A text that changes."),
            uri => {
                let id = uri
                    .strip_prefix("test://template/")
                    .and_then(|rest| rest.strip_suffix("/data"));
                let id = id.ok_or_else(|| Error::not_found("There is no such resource."))?;
                let data =
                    json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                Contents::text(uri, "application/json", data.to_string())
            }
        };
        Ok(Answer::of(vec![contents]))
    }

    fn complete(
        _of: Completed<'_>,
        _argument: &str,
        value: &str,
        _ctx: &Context,
    ) -> Result<Vec<String>, Error> {
        let known = ["paris", "park", "party"];
        Ok(known
            .into_iter()
            .filter(|known| known.starts_with(value))
            .map(ToOwned::to_owned)
            .collect())
    }
}

weir_plugin_sdk::export!(
    tools: test_simple_text, test_image_content, test_audio_content, test_embedded_resource, test_multiple_content_types,
    test_error_handling, test_tool_with_progress, test_tool_with_logging, test_logging_tool, test_streaming_elicitation,
    test_trigger_tool_change, test_trigger_prompt_change, test_trigger_resource_change, test_sampling, test_elicitation,
    test_elicitation_sep1034_defaults, test_elicitation_sep1330_enums, test_missing_capability,
    test_input_required_result_elicitation, test_input_required_result_sampling, test_input_required_result_list_roots,
    test_input_required_result_request_state, test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs, test_input_required_result_multi_round,
    test_input_required_result_capabilities, test_custom_header, json_schema_2020_12_tool, greet,
    slow_compute, failing_job, protocol_error_job, confirm_delete, multi_input, test_tool_with_task;
    items: Fixture
);
