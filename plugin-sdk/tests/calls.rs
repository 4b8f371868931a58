//! Tests calls: arguments, defaults, contexts, refusals, questions; natively, as an author tests a plugin.

use std::collections::HashMap;

use weir_plugin_sdk::plugin::Plugin;
use weir_plugin_sdk::schema::{
    Fields, Kind, Mismatch, Parameter, ToolSchema, Writer, fits, print_member, schema_of,
};
use weir_plugin_sdk::serde_json::{self, Value, json};
use weir_plugin_sdk::tools::{self, Invocation, Reply};
use weir_plugin_sdk::{
    Answer, Bytes, Content, Context, Elicited, Error, Question, ToolError, data, testing, tool,
};

#[data]
#[serde(rename_all = "lowercase")]
#[derive(Debug, PartialEq)]
enum Region {
    North,
    South,
}

#[data]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Step {
    Wait { seconds: u32 },
    Deploy(Target),
    Stop,
}

#[data]
enum Outside {
    Empty,
    One(u32),
    Two(u32, String),
    Named { a: Option<u32> },
}

#[data]
#[serde(tag = "t", content = "c")]
enum Beside {
    Empty,
    One(u32),
}

#[data]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
    Nothing,
}

#[data]
#[repr(u8)]
enum Level {
    Low = 1,
    High = 10,
}

#[data]
struct Target {
    service: String,
    #[arg(default = 2)]
    replicas: u8,
    note: Option<String>,
    #[serde(skip)]
    #[expect(dead_code, reason = "serde fills it in, and no test reads it")]
    seen: u32,
}

#[data]
struct Page<T> {
    items: Vec<T>,
    next: Option<T>,
}

#[data]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Held<T> {
    Item(T),
    Counts(HashMap<String, u32>),
}

#[data]
enum Change {
    Add { n: i64 },
    Remove { n: i64 },
    Place(Placed),
}

#[data]
#[serde(untagged)]
enum Placed {
    At {
        row: u32,
    },
    #[serde(deny_unknown_fields)]
    Between {
        after: u32,
        before: u32,
    },
    Counts(HashMap<String, u32>),
    Changed(Box<Change>),
}

/// An object whose schema is written by hand.
struct Anchor(String);

impl ToolSchema for Anchor {
    const KIND: Kind = Kind::Object;

    fn write(schema: &mut Writer) {
        schema.set("type", r#""object""#);
        schema.set("properties", r#"{"anchor":{"type":"string"}}"#);
        schema.set("required", r#"["anchor"]"#);
        schema.set("additionalProperties", "false");
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        let mut fields = Fields::of(value)?;
        let anchor = fields.take("anchor", &Parameter::OF)?;
        fields.end()?;
        Ok(Self(anchor))
    }

    fn print(&self, out: &mut String) {
        out.push('{');
        print_member("anchor", &self.0, out);
        out.push('}');
    }
}

#[data]
#[serde(untagged)]
enum Either<A, B> {
    One(A),
    Other(B),
}

#[data]
#[serde(tag = "by")]
enum Moved {
    Place(Placed),
}

#[data]
#[serde(tag = "kind")]
enum Command {
    Change(Change),
    Placed(Placed),
    Anchor(Anchor),
    Moved(Moved),
    Either(Either<Anchor, Moved>),
    Stop {},
}

#[data]
struct Trimmed {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[arg(required)]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
}

#[data]
struct Sure {
    sure: bool,
}

#[tool]
fn steps(steps: Vec<Step>) -> Vec<Step> {
    steps
}
#[tool]
fn outside(values: Vec<Outside>) -> Vec<Outside> {
    values
}
#[tool]
fn beside(values: Vec<Beside>) -> Vec<Beside> {
    values
}
#[tool]
fn untagged(values: Vec<Untagged>) -> Vec<Untagged> {
    values
}
#[tool]
fn levels(values: Vec<Level>) -> Vec<Level> {
    values
}
#[tool]
fn pages(page: Page<Region>) -> Page<Region> {
    page
}
#[tool]
fn held(values: Vec<Held<Target>>) -> Vec<Held<Target>> {
    values
}
#[tool]
fn commands(values: Vec<Command>) -> Vec<Command> {
    values
}
#[tool]
fn trimmed(full: bool) -> Trimmed {
    let some = || full.then(|| "a".to_owned());
    Trimmed {
        tags: some().into_iter().collect(),
        note: some(),
        since: some(),
    }
}
#[tool]
fn numbers(a: f32, b: f64, c: u64, d: i8) -> (f32, f64, u64, i8) {
    (a, b, c, d)
}
#[tool]
fn map(values: HashMap<String, Option<bool>>) -> HashMap<String, Option<bool>> {
    values
}
#[tool]
fn clock(value: weir_plugin_sdk::jiff::civil::Time) -> weir_plugin_sdk::jiff::civil::Time {
    value
}
#[tool]
fn bytes(value: Bytes) -> Bytes {
    value
}
#[tool]
fn defaults(
    #[arg(default = "latest")] version: &str,
    #[arg(default = Region::South)] region: Region,
    note: Option<String>,
    #[arg(default = 3)] count: Option<u32>,
) -> String {
    format!("{version} {region:?} {note:?} {count:?}")
}
#[tool]
fn who(ctx: &Context) -> Option<String> {
    ctx.agent().map(str::to_owned)
}
#[tool]
fn greeting(ctx: &Context) -> Result<String, ToolError> {
    #[data]
    struct Settings {
        greeting: String,
    }
    Ok(ctx.settings::<Settings>()?.greeting)
}
#[tool]
fn leak() -> Result<(), ToolError> {
    Err(std::io::Error::other("password=secret"))?
}
#[derive(Debug)]
struct Outer(std::io::Error);
impl std::fmt::Display for Outer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the order is not written")
    }
}
impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
#[tool]
fn wrapped() -> Result<(), ToolError> {
    Err(Outer(std::io::Error::other("the disk is full")))?
}
#[tool]
fn conflict() -> Result<(), ToolError> {
    Err(Error::conflict("It is taken.").field("name"))?
}
#[tool]
fn refuse() -> Result<(), ToolError> {
    Err(ToolError::refuse("asleep", "The service sleeps.").retry_after_ms(5))
}
#[tool]
async fn waits() -> u32 {
    std::future::pending().await
}
#[tool]
fn show() -> Answer {
    Answer::text("Done.").with(Content::image("image/png", vec![1, 2, 3]))
}
#[tool]
fn seek(number: u32) -> Answer<Option<u32>> {
    Answer::of((number < 3).then_some(number)).with(Content::text("Sought."))
}
#[tool]
fn remove(environment: String, ctx: &Context) -> Result<Answer<bool>, ToolError> {
    if !ctx.is_resumed() {
        return Ok(Answer::ask(
            Question::form::<Sure>("sure", "Really?").state(environment),
        ));
    }
    let sure = matches!(
        ctx.elicited("sure")?,
        Some(Elicited::Accepted(Sure { sure: true }))
    );
    Ok(Answer::of(sure && ctx.state() == Some(&environment)))
}

weir_plugin_sdk::export!(
    tools: steps, outside, beside, untagged, levels, pages, held, commands, trimmed, numbers, map, clock, bytes, defaults, who, greeting,
    leak, wrapped, conflict, refuse, waits, show, seek, remove,
);

fn call(tool: &str, arguments: Value) -> Result<Reply, Error> {
    resume(tool, arguments, None)
}

fn resume(tool: &str, arguments: Value, resumed: Option<Value>) -> Result<Reply, Error> {
    let context = r#"{"agent":"ada","call_id":"1"}"#.to_owned();
    let resumed = resumed.map(|resumed| resumed.to_string());
    let arguments = arguments.to_string();
    tools::call::<WeirPlugin>(Invocation {
        tool: tool.to_owned(),
        arguments,
        context,
        resumed,
        options: None,
    })
}

fn value(tool: &str, arguments: Value) -> String {
    call(tool, arguments).unwrap().value.unwrap()
}

#[test]
fn what_is_read_is_printed_again() {
    let cases = [
        (
            "steps",
            "steps",
            r#"[{"kind":"wait","seconds":3},{"kind":"deploy","service":"a","replicas":2},{"kind":"stop"}]"#,
        ),
        (
            "outside",
            "values",
            r#"["Empty",{"One":1},{"Two":[1,"a"]},{"Named":{}},{"Named":{"a":1}}]"#,
        ),
        ("beside", "values", r#"[{"t":"Empty"},{"t":"One","c":1}]"#),
        ("untagged", "values", r#"[-1,"a",null]"#),
        ("levels", "values", "[1,10]"),
        (
            "pages",
            "page",
            r#"{"items":["north","south"],"next":"north"}"#,
        ),
        (
            "held",
            "values",
            r#"[{"kind":"item","service":"a","replicas":2},{"kind":"counts","a":1}]"#,
        ),
        ("map", "values", r#"{"a":null,"b":true,"c":false}"#),
        ("clock", "value", r#""07:08:09Z""#),
        ("bytes", "value", r#""AQID""#),
    ];
    for (tool, parameter, json) in cases {
        let argument: Value = serde_json::from_str(json).unwrap();
        assert_eq!(value(tool, json!({ parameter: argument })), json, "{tool}");
    }
    let numbers = json!({ "a": 0.1, "b": 1e21, "c": u64::MAX, "d": -3.0 });
    assert_eq!(
        value("numbers", numbers),
        "[0.1,1e+21,18446744073709551615,-3]"
    );
}

/// A tag is among the members of any object: of an enum's, and of one whose schema is written by hand.
#[test]
fn a_tag_stands_among_the_members_of_what_its_variant_holds() {
    let definitions: Value =
        serde_json::from_str(&tools::definitions::<WeirPlugin>().unwrap()).unwrap();
    let mut tools = definitions.as_array().unwrap().iter();
    let schema = &tools.find(|tool| tool["name"] == "commands").unwrap()["inputSchema"];
    let meets = |arguments: &Value| fits(arguments, schema, schema).is_ok();
    let values = [
        r#"{"kind":"Change","Add":{"n":1}}"#,
        r#"{"kind":"Change","Place":{"row":1}}"#,
        r#"{"kind":"Placed","row":1}"#,
        r#"{"kind":"Placed","after":1,"before":2}"#,
        r#"{"kind":"Placed","first":1}"#,
        r#"{"kind":"Anchor","anchor":"a"}"#,
        r#"{"kind":"Moved","by":"Place","after":1,"before":2}"#,
        r#"{"kind":"Moved","by":"Place","first":1}"#,
        r#"{"kind":"Either","anchor":"a"}"#,
        r#"{"kind":"Either","by":"Place","row":1}"#,
        r#"{"kind":"Stop"}"#,
    ];
    for expected in values {
        let arguments = json!({ "values": [serde_json::from_str::<Value>(expected).unwrap()] });
        assert!(meets(&arguments), "{expected} meets {schema}");
        assert_eq!(value("commands", arguments), format!("[{expected}]"));
    }
    for wrong in [
        json!({ "kind": "Change", "Add": { "n": 1, "m": "b" }, "other": 1 }),
        json!({ "kind": "Other", "row": 1 }),
        json!({ "kind": "Anchor", "anchor": "a", "other": 1 }),
        json!({ "kind": "Moved", "by": "Place", "first": "a" }),
        json!({ "Add": { "n": 1 } }),
    ] {
        assert!(
            !meets(&json!({ "values": [wrong] })),
            "{wrong} does not meet {schema}"
        );
    }
}

/// A member that an answer leaves out is not required there, and a caller still sends it.
#[test]
fn an_answer_that_leaves_members_out_meets_its_schema() {
    let definitions: Value =
        serde_json::from_str(&tools::definitions::<WeirPlugin>().unwrap()).unwrap();
    let mut tools = definitions.as_array().unwrap().iter();
    let schema = &tools.find(|tool| tool["name"] == "trimmed").unwrap()["outputSchema"];
    for (full, expected) in [
        (false, "{}"),
        (true, r#"{"tags":["a"],"note":"a","since":"a"}"#),
    ] {
        let answer = value("trimmed", json!({ "full": full }));
        assert_eq!(answer, expected);
        fits(&serde_json::from_str(&answer).unwrap(), schema, schema).unwrap();
    }
    let sent: Value = serde_json::from_str(&schema_of::<Trimmed>()).unwrap();
    assert_eq!(sent["required"], json!(["tags", "note"]));
}

#[test]
fn what_is_left_out_has_its_default() {
    assert_eq!(
        value("defaults", json!({})),
        r#""latest South None Some(3)""#
    );
    let all = json!({ "version": "2", "region": "north", "note": "a", "count": 4 });
    assert_eq!(value("defaults", all), r#""2 North Some(\"a\") Some(4)""#);
}

#[test]
fn wrong_arguments_are_refused_by_name() {
    let cases = [
        ("steps", json!({}), "steps"),
        (
            "steps",
            json!({ "steps": [{ "kind": "wait" }] }),
            "steps.0.seconds",
        ),
        ("steps", json!({ "steps": [{ "kind": "jump" }] }), "steps.0"),
        ("levels", json!({ "values": [2] }), "values.0"),
        ("numbers", json!({ "a": 1, "b": 1, "c": -1, "d": 0 }), "c"),
        ("numbers", json!({ "a": 1, "b": 1, "c": 1, "d": 128 }), "d"),
        ("bytes", json!({ "value": "?" }), "value"),
        ("defaults", json!({ "region": "west" }), "region"),
    ];
    for (tool, arguments, field) in cases {
        let error = call(tool, arguments).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.field.as_deref()),
            ("invalid", Some(field)),
            "{error}"
        );
    }
    assert!(call("other", json!({})).unwrap_err().is("unsupported"));
}

#[test]
fn the_context_is_read() {
    testing::reset();
    assert_eq!(value("who", json!({})), r#""ada""#);
    let unknown = Invocation {
        tool: "who".into(),
        arguments: "{}".into(),
        context: "{}".into(),
        ..Invocation::default()
    };
    assert!(
        tools::call::<WeirPlugin>(unknown)
            .unwrap_err()
            .is("not_found")
    );
    assert!(
        call("greeting", json!({}))
            .unwrap_err()
            .message
            .contains("`greeting` is required")
    );
    tools::configure(r#"{"greeting":"hello"}"#).unwrap();
    assert_eq!(value("greeting", json!({})), r#""hello""#);
    assert!(tools::configure("{").unwrap_err().is("invalid"));
}

#[test]
fn the_log_names_the_sources_of_an_error() {
    testing::reset();
    assert_eq!(call("wrapped", json!({})).unwrap_err().code, "internal");
    let lines = testing::log::lines();
    assert_eq!(
        lines[0].message,
        "The tool failed: the order is not written; caused by the disk is full"
    );
}

#[test]
fn errors_of_others_are_logged_and_not_told() {
    testing::reset();
    let error = call("leak", json!({})).unwrap_err();
    assert_eq!(error.code, "internal");
    assert!(!format!("{error:?}").contains("secret"));
    let lines = testing::log::lines();
    let line = lines
        .iter()
        .find(|line| line.level == "error" && line.message.contains("secret"))
        .unwrap();
    assert_eq!(
        line.fields.as_deref(),
        Some(r#"{"weir.log_only":true}"#),
        "a caller who listens must not hear it"
    );
    let error = call("conflict", json!({})).unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.field.as_deref()),
        ("conflict", Some("name"))
    );
    let error = call("refuse", json!({})).unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.retry_after_ms),
        ("asleep", Some(5))
    );
    assert!(call("waits", json!({})).unwrap_err().is("internal"));
}

#[test]
fn blocks_and_questions_are_those_of_mcp() {
    let reply = call("show", json!({})).unwrap();
    let blocks =
        r#"[{"type":"text","text":"Done."},{"type":"image","data":"AQID","mimeType":"image/png"}]"#;
    assert_eq!(
        (reply.kind.as_str(), reply.value, reply.content.as_deref()),
        ("complete", None, Some(blocks))
    );

    let question = call("remove", json!({ "environment": "prod" })).unwrap();
    assert_eq!(
        (question.kind.as_str(), question.state.as_deref()),
        ("input-required", Some("prod"))
    );
    let requests: Value = serde_json::from_str(&question.requests.unwrap()).unwrap();
    let schema = json!({ "type": "object", "properties": { "sure": { "type": "boolean" } }, "required": ["sure"] });
    let params = json!({ "mode": "form", "message": "Really?", "requestedSchema": schema });
    assert_eq!(
        requests,
        json!({ "sure": { "method": "elicitation/create", "params": params } })
    );

    let answered = |response: Value| {
        let resumed = json!({ "state": "prod", "responses": { "sure": response } });
        resume("remove", json!({ "environment": "prod" }), Some(resumed))
            .map(|reply| reply.value.unwrap())
    };
    assert_eq!(
        answered(json!({ "action": "accept", "content": { "sure": true } })).unwrap(),
        "true"
    );
    assert_eq!(answered(json!({ "action": "decline" })).unwrap(), "false");
    assert_eq!(
        answered(json!({ "action": "accept", "content": {} }))
            .unwrap_err()
            .field
            .unwrap(),
        "sure.sure"
    );
}

#[test]
fn an_answer_without_a_value_is_not_found() {
    assert_eq!(value("seek", json!({ "number": 2 })), "2");
    let error = call("seek", json!({ "number": 3 })).unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("not_found", "There is nothing of that kind.")
    );
}

/// Defaults that only a running program knows are checked by their schema when the plugin is loaded.
mod wrong_defaults {
    use super::*;

    fn too_long() -> String {
        "x".repeat(5)
    }

    #[tool]
    fn deploy(#[arg(max_len = 3, default = too_long())] version: String) -> String {
        version
    }

    weir_plugin_sdk::export!(tools: deploy);

    #[test]
    fn a_default_that_does_not_meet_its_schema_is_told_at_load() {
        let error = tools::definitions::<WeirPlugin>().unwrap_err();
        assert_eq!(error.field.as_deref(), Some("version"));
        assert_eq!(
            error.message,
            "The parameter `version` of the tool `deploy`: the default \"xxxxx\" does not meet its schema: must have at most 3 characters."
        );
    }
}

mod two_of_one_name {
    use super::*;

    #[tool(name = "deploy")]
    fn one() {}
    #[tool(name = "deploy")]
    fn two() {}

    weir_plugin_sdk::export!(tools: one, two);

    #[test]
    fn two_tools_of_one_name_are_told_at_load() {
        assert!(
            tools::definitions::<WeirPlugin>()
                .unwrap_err()
                .message
                .contains("`deploy`")
        );
    }
}

#[test]
fn a_plugin_of_tools_is_named_like_its_crate() {
    let about: Value =
        serde_json::from_str(&weir_plugin_sdk::plugin::about::<WeirPlugin>()).unwrap();
    assert_eq!(
        (&about["name"], &about["adapters"]),
        (&json!("weir-plugin-sdk"), &json!([]))
    );
    assert_eq!(WeirPlugin::tools().len(), 24);
}
