//! Calls of every tool with arguments made of its schema, over both doors of a gateway.

use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    sync::Notify,
};
use weir::{app::App, catalogue::Endpoint, codes::Code, transport};

use super::{
    super::{
        super::{Failure, call::Remote, http_client},
        run::Outcome,
    },
    Report,
};

/// Room for an answer that is on its way.
const PIPE_BYTES: usize = 64 << 10;
const VERSION: &str = "2026-07-28";
/// The error code for a client that lacks a capability.
const MISSING_CAPABILITY: i64 = -32021;

struct Tool {
    name: String,
    read_only: bool,
    arguments: Value,
}

pub(super) async fn look(served: &App, report: &mut Report) -> Result<(), Failure> {
    let mut tools = Vec::new();
    for tool in served.gateway.snapshot().catalogue.tools() {
        match weir_contracts::validate::example(&tool.tool.input_schema.value()) {
            Some(arguments) => {
                let read_only = tool.tool.annotations.read_only_hint == Some(true);
                tools.push(Tool {
                    name: tool.name.to_string(),
                    read_only,
                    arguments,
                });
            }
            None => report.warn(
                "answers",
                format!(
                    "{}: no arguments can be made of its schema, so it is not called",
                    tool.name
                ),
            ),
        }
    }
    if tools.is_empty() {
        return Ok(());
    }
    over_http(served, &tools, report).await?;
    over_stdio(served, &tools, report).await?;
    if report.is_clean("outputs conform") {
        report.ok(
            "outputs conform",
            "every answer is what its schema promises",
        );
    }
    if tools.iter().any(|tool| tool.read_only) && report.is_clean("reads only") {
        report.ok(
            "reads only",
            "no tool that says it only reads has tried to write",
        );
    }
    Ok(())
}

async fn over_http(served: &App, tools: &[Tool], report: &mut Report) -> Result<(), Failure> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let ended = Arc::new(Notify::new());
    let end = ended.clone();
    let server = tokio::spawn(transport::http::serve(
        served.gateway.clone(),
        listener,
        async move { end.notified().await },
    ));
    let remote = Remote::new(&url)?;
    let listed = remote.tools().await?;
    if listed.len() != served.gateway.snapshot().catalogue.len() {
        report.fail(
            "answers over HTTP",
            format!("{} tools are listed there", listed.len()),
        );
    }
    let client = http_client(&url).context("the client of the check")?;
    for tool in tools {
        match post(&client, &url, tool).await {
            Ok(message) => judge("answers over HTTP", tool, &message, report),
            Err(error) => report.fail("answers over HTTP", format!("{}: {error:#}", tool.name)),
        }
    }
    ended.notify_one();
    server.await.context("the server of the check")??;
    if report.is_clean("answers over HTTP") {
        report.ok(
            "answers over HTTP",
            format!(
                "{} tools, with arguments made of their schemas",
                tools.len()
            ),
        );
    }
    Ok(())
}

async fn post(client: &reqwest::Client, url: &str, tool: &Tool) -> anyhow::Result<Value> {
    let request = client
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", VERSION)
        .header("mcp-method", "tools/call")
        .header("mcp-name", &tool.name);
    let response = request.body(call(0, tool).to_string()).send().await?;
    let status = response.status();
    serde_json::from_str(&response.text().await?).with_context(|| format!("{status}, and no MCP"))
}

async fn over_stdio(served: &App, tools: &[Tool], report: &mut Report) -> Result<(), Failure> {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let (stdin, stdout) = tokio::io::split(theirs);
    let gateway = served.gateway.clone();
    let server = tokio::spawn(async move {
        transport::stdio::serve(
            gateway,
            None,
            Endpoint::All,
            stdin,
            stdout,
            std::future::pending(),
        )
        .await
    });
    let (answers, mut questions) = tokio::io::split(ours);
    let mut answers = BufReader::new(answers).lines();
    for (id, tool) in tools.iter().enumerate() {
        questions
            .write_all(format!("{}\n", call(id, tool)).as_bytes())
            .await?;
        let answer = loop {
            let line = answers.next_line().await?.context("stdio has ended")?;
            let message: Value =
                serde_json::from_str(&line).context("a line on stdout is no message")?;
            if message["id"] == id {
                break message;
            }
        };
        judge("answers over stdio", tool, &answer, report);
    }
    questions.shutdown().await?;
    drop((questions, answers));
    server.await.context("the server of the check")??;
    if report.is_clean("answers over stdio") {
        report.ok("answers over stdio", format!("{} tools", tools.len()));
    }
    Ok(())
}

/// Returns the call of a client that can be asked whatever a tool may ask.
fn call(id: usize, tool: &Tool) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": { "form": {}, "url": {} },
            "sampling": {},
            "roots": {},
        },
    });
    let params = json!({ "name": tool.name, "arguments": tool.arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Judges an answer. An error that the tool means is an answer; one that shows a flaw is not. Nor is it a flaw that a tool
/// runs only as a task, which this client does not follow.
fn judge(door: &'static str, tool: &Tool, message: &Value, report: &mut Report) {
    match message.get("error") {
        Some(error) if error["code"] == MISSING_CAPABILITY => return,
        Some(error) => return report.fail(door, format!("{}: {error}", tool.name)),
        None => {}
    }
    let Outcome::Failed { code, text, .. } = Outcome::of_result(&message["result"]) else {
        return;
    };
    let told = format!("{} {}: {text}", tool.name, tool.arguments);
    match Code::of_label(&code) {
        Some(Code::OutputMismatch) => report.fail("outputs conform", told),
        Some(Code::Forbidden) if tool.read_only => report.fail("reads only", told),
        Some(Code::PluginFailed | Code::InvalidArguments | Code::Internal) => {
            report.fail(door, told)
        }
        Some(Code::Timeout | Code::Unavailable | Code::UpstreamError | Code::Overloaded) => {
            report.warn(door, told)
        }
        _ => {}
    }
}
