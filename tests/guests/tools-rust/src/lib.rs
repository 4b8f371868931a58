//! The small toolbox that is the same in every language, in Rust: one of each kind of answer that a tool may give.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;

use weir_plugin_sdk::schema::{Mismatch, ToolSchema, Writer};
use weir_plugin_sdk::serde_json::{self, Map, Value, json};
use weir_plugin_sdk::sql::{self, Statement};
use weir_plugin_sdk::{
    Answer, Content, Context, Elicited, Question, ToolError, clock, data, files, http, log, tool,
};

/// Deploy a service
///
/// Deploy a service.
#[tool(idempotent)]
fn deploy(
    /// Target environment
    #[arg(min_len = 1, positional)]
    environment: String,
    /// Service name.
    #[arg(min_len = 1)]
    service: String,
    /// Version or image tag.
    #[arg(default = "latest")]
    version: String,
) -> BTreeMap<String, String> {
    log::info(&format!("deploying {service}"));
    let members = [
        ("environment", environment),
        ("service", service),
        ("version", version),
    ];
    members.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Some milliseconds of work.
const ROUNDS: u32 = 2_000_000;

/// Takes three steps and says how far it is after each.
#[tool(read_only)]
fn steps(
    #[arg(ge = 0, le = 1000, default = 25)] pause_ms: u32,
    ctx: &Context,
) -> Result<i64, ToolError> {
    for done in 1..=3 {
        ctx.progress(f64::from(done), Some(3.0), &format!("step {done}"));
        if done < 3 {
            wait(pause_ms, ctx)?;
        }
    }
    Ok(3)
}

fn wait(milliseconds: u32, ctx: &Context) -> Result<(), ToolError> {
    let until = clock::now_ms() + u64::from(milliseconds);
    // Calls of the host are bounded: between two looks at the clock there is work of some milliseconds.
    while clock::now_ms() < until {
        ctx.check_cancelled()?;
        for round in 0..ROUNDS {
            black_box(round);
        }
    }
    Ok(())
}

/// Panics.
#[tool]
fn crash() {
    panic!("as asked");
}

/// Refuses for a reason of its own.
#[tool]
fn refuse(#[arg(default = "too_early")] code: &str) -> Result<(), ToolError> {
    Err(
        ToolError::refuse(code, "It is too early for that; ask again after noon.")
            .retry_after_ms(7),
    )
}

/// Says that it only reads, and tries to write.
#[tool(read_only, requests("sql"))]
fn look() -> Result<(), ToolError> {
    sql::execute(&statement("UPDATE things SET name = 'changed'", Vec::new()))?;
    Ok(())
}

/// Says that it only reads, and posts.
#[tool(read_only, requests("http"))]
fn post() -> Result<(), ToolError> {
    let (connection, method, path) = ("web".to_owned(), "POST".to_owned(), "/items".to_owned());
    let body = Some(br#"{"id":"posted"}"#.to_vec());
    http::send(&http::Request {
        connection,
        method,
        path,
        body,
        ..http::Request::default()
    })?;
    Ok(())
}

/// Says that it only reads, and replaces a file.
#[tool(read_only, requests("files"))]
fn overwrite() -> Result<(), ToolError> {
    files::replace("data", "kept.txt", None, b"changed")?;
    Ok(())
}

#[data]
struct Changed {
    changed: u64,
}

/// Gives the first thing another name.
#[tool(requests("sql"))]
fn rename(#[arg(min_len = 1, max_len = 100)] name: String) -> Result<Changed, ToolError> {
    let changed = sql::execute(&statement(
        "UPDATE things SET name = ? WHERE id = 1",
        vec![name.into()],
    ))?;
    Ok(Changed { changed })
}

#[data]
struct Thing {
    name: String,
}

/// The names of all things.
#[tool(read_only, requests("sql"))]
async fn names() -> Result<Vec<String>, ToolError> {
    let rows = sql::query(&statement(
        "SELECT name FROM things ORDER BY id",
        Vec::new(),
    ))?;
    let things: Vec<Thing> = read(&rows.records)?;
    Ok(things.into_iter().map(|thing| thing.name).collect())
}

/// The thing of a number, if there is one.
#[tool(read_only, requests("sql"))]
fn find(#[arg(ge = 1)] id: i64) -> Result<Option<Thing>, ToolError> {
    let rows = sql::query(&statement(
        "SELECT name FROM things WHERE id = ?",
        vec![id.into()],
    ))?;
    Ok(read::<Vec<Thing>>(&rows.records)?.pop())
}

#[data]
struct Sure {
    sure: bool,
}

#[data]
struct Removed {
    removed: bool,
}

/// Removes an environment, once its caller has confirmed it.
#[tool(destructive)]
fn remove(
    #[arg(min_len = 1)] environment: String,
    ctx: &Context,
) -> Result<Answer<Removed>, ToolError> {
    if !ctx.is_resumed() {
        let question =
            Question::form::<Sure>("sure", &format!("Remove {environment}?")).state(environment);
        return Ok(Answer::ask(question));
    }
    if ctx.state() != Some(&environment) {
        let refusal =
            ToolError::refuse("invalid_arguments", "Another environment was asked about.");
        return Err(refusal.field("environment"));
    }
    let removed = matches!(
        ctx.elicited("sure")?,
        Some(Elicited::Accepted(Sure { sure: true }))
    );
    Ok(Answer::of(Removed { removed }))
}

/// Answers a picture, a link and an embedded text.
#[tool(read_only)]
fn draw() -> Answer {
    Answer::blocks([
        Content::text("A dot."),
        Content::image("image/png", b"\x89PNG\r\n\x1a\n".as_slice()),
        Content::link("https://example.org/dot", "dot"),
        Content::resource_text("dot:///1", "text/plain", "."),
    ])
}

/// A count that is not a number: what an author writes by hand may be wrong.
struct Count;

impl ToolSchema for Count {
    fn write(schema: &mut Writer) {
        schema.set("type", r#""object""#);
        schema.set("properties", r#"{"count":{"type":"integer"}}"#);
        schema.set("required", r#"["count"]"#);
    }

    fn read(_: Value) -> Result<Self, Mismatch> {
        Ok(Self)
    }

    fn print(&self, out: &mut String) {
        out.push_str(r#"{"count":"many"}"#);
    }
}

/// Answers something else than it declares.
#[tool(read_only)]
fn wrong() -> Count {
    Count
}

#[data]
struct Settings {
    greeting: Option<String>,
}

/// Answers who asked, and how often this instance was asked.
#[tool(read_only)]
fn whoami(ctx: &Context) -> Result<Map<String, Value>, ToolError> {
    thread_local! { static CALLS: Cell<u32> = const { Cell::new(0) }; }
    CALLS.set(CALLS.get() + 1);
    let mut answer = ctx.members().clone();
    answer.insert(
        "greeting".to_owned(),
        json!(ctx.settings::<Settings>()?.greeting),
    );
    answer.insert("calls".to_owned(), json!(CALLS.get()));
    Ok(answer)
}

/// Never answers.
#[tool(read_only)]
fn spin() {
    loop {
        black_box(());
    }
}

/// Takes memory until there is none.
#[tool(read_only)]
fn allocate() {
    let mut taken = Vec::new();
    loop {
        taken.push(vec![1_u8; 1 << 20]);
        black_box(&taken);
    }
}

fn statement(text: &str, parameters: Vec<Value>) -> Statement {
    Statement {
        connection: "db".to_owned(),
        text: text.to_owned(),
        parameters,
        limit: 100,
        ..Statement::default()
    }
}

fn read<T: ToolSchema>(json: &str) -> Result<T, ToolError> {
    let value = serde_json::from_str(json)?;
    T::read(value).map_err(|mismatch| weir_plugin_sdk::Error::from(mismatch).into())
}

weir_plugin_sdk::export!(
    tools: deploy, steps, crash, refuse, look, post, overwrite, rename, names, find, remove, draw, wrong, whoami, spin,
    allocate,
);
