//! Signatures by what they return.

// Some of these types are looked at, not made.
#![expect(clippy::unused_unit, reason = "a signature may say it")]

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use weir_plugin_sdk::jiff::civil::Date;
use weir_plugin_sdk::serde_json::{Map, Value, json};
use weir_plugin_sdk::{Answer, Bytes, Content, Question, ToolError, ToolSchema, data, tool};

#[data]
struct Status {
    service: String,
    since: Option<Date>,
}

#[derive(ToolSchema)]
struct Printed {
    name: String,
    note: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
}

#[data]
struct Trimmed {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[arg(required)]
    note: Option<String>,
}

#[data]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

#[data]
enum State {
    Up,
    Down { reason: String },
}

struct OwnError;

impl From<OwnError> for ToolError {
    fn from(_: OwnError) -> Self {
        ToolError::refuse("own", "An error of the author's own.")
    }
}

type Fallible<T> = Result<T, ToolError>;

#[tool]
fn nothing() {}
#[tool]
fn unit() -> () {}
#[tool]
fn unit_or_error() -> Result<(), ToolError> {
    Ok(())
}
#[tool]
fn text() -> String {
    "a".to_owned()
}
#[tool]
fn literal() -> &'static str {
    "a"
}
#[tool]
fn number() -> f64 {
    1.5
}
#[tool]
fn integer() -> u8 {
    1
}
#[tool]
fn boolean() -> bool {
    true
}
#[tool]
fn list() -> Vec<Status> {
    Vec::new()
}
#[tool]
fn set() -> HashSet<u32> {
    [3, 1, 2].into()
}
#[tool]
fn map() -> BTreeMap<String, String> {
    BTreeMap::new()
}
#[tool]
fn tuple() -> (String, u32) {
    ("a".to_owned(), 1)
}
#[tool]
fn object() -> Status {
    Status {
        service: "web".to_owned(),
        since: None,
    }
}
#[tool]
fn printed() -> Printed {
    Printed {
        name: "a".to_owned(),
        note: None,
        tags: Vec::new(),
    }
}
#[tool]
fn trimmed() -> Trimmed {
    Trimmed {
        tags: Vec::new(),
        note: None,
    }
}
#[tool]
fn object_or_nothing() -> Option<Status> {
    None
}
#[tool]
fn list_of_options() -> Vec<Option<u32>> {
    vec![Some(1), None]
}
#[tool]
fn object_or_error() -> Result<Status, ToolError> {
    Err(ToolError::refuse("asleep", "The service sleeps.")
        .field("service")
        .retry_after_ms(5))
}
#[tool]
fn by_another_name() -> Fallible<Option<u32>> {
    Ok(Some(1))
}
#[tool]
fn standard_error() -> Result<u32, std::num::ParseIntError> {
    "x".parse()
}
#[tool]
fn own_error() -> Result<u32, OwnError> {
    Err(OwnError)
}
#[tool]
fn sdk_error() -> Result<u32, weir_plugin_sdk::Error> {
    Err(weir_plugin_sdk::Error::conflict("It is taken."))
}
#[tool]
fn choice_of_objects() -> State {
    State::Down {
        reason: "maintenance".to_owned(),
    }
}
#[tool]
fn recursive() -> Tree {
    Tree {
        name: "a".to_owned(),
        children: vec![Tree {
            name: "b".to_owned(),
            children: Vec::new(),
        }],
    }
}
#[tool]
fn anything() -> Value {
    json!({ "a": [1, null] })
}
#[tool]
fn any_object() -> Map<String, Value> {
    Map::new()
}
#[tool]
fn bytes() -> Bytes {
    Bytes(vec![1, 2])
}
#[tool]
fn shared() -> Rc<Status> {
    Rc::new(object())
}
#[tool]
fn answer() -> Answer<Status> {
    Answer::of(object()).with(Content::text("It runs."))
}
#[tool]
fn blocks() -> Answer {
    Answer::blocks([
        Content::image("image/png", vec![1]).annotated(&["user"], 0.5),
        Content::link("https://example.org/log", "log").member("mimeType", "text/plain"),
    ])
}
#[tool]
fn blocks_or_error() -> Result<Answer, ToolError> {
    Ok(Answer::text("Done."))
}
#[tool]
fn question() -> Answer<u32> {
    Answer::ask(Question::form::<Status>("who", "Which service?").state("1"))
}
#[tool]
async fn asynchronous() -> Result<u32, ToolError> {
    std::future::ready(Ok(4)).await
}
#[tool]
async fn asynchronous_without_end() -> u32 {
    std::future::pending().await
}

weir_plugin_sdk::export!(
    tools: nothing, unit, unit_or_error, text, literal, number, integer, boolean, list, set, map, tuple, object, printed, trimmed,
    object_or_nothing, list_of_options, object_or_error, by_another_name, standard_error, own_error, sdk_error,
    choice_of_objects, recursive, anything, any_object, bytes, shared, answer, blocks, blocks_or_error, question,
    asynchronous, asynchronous_without_end,
);
