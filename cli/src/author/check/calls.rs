//! Calls of every tool with arguments made from its schema, over both doors of a gateway.

use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    sync::Notify,
};
use weir::{app::GatewayApp, catalogue::CatalogueEndpoint, codes::FailureCode, transport};

use super::{
    super::{
        super::{AppError, call::RemoteEndpoint, http_client},
        run::TrialOutcome,
    },
    CheckReport,
};

/// Room for an answer that is on its way.
const PIPE_BYTES: usize = 64 << 10;
const VERSION: &str = "2026-07-28";
/// The error code for a client that lacks a capability.
const MISSING_CAPABILITY: i64 = -32021;

struct ProbeCall {
    name: String,
    read_only: bool,
    arguments: Value,
}

pub(super) async fn look(served: &GatewayApp, report: &mut CheckReport) -> Result<(), AppError> {
    let mut tools = Vec::new();
    for tool in served.gateway.snapshot().catalogue.tools() {
        match weir_contracts::validate::example(&tool.tool.input_schema.value()) {
            Some(arguments) => {
                let read_only = tool.tool.annotations.read_only_hint == Some(true);
                tools.push(ProbeCall {
                    name: tool.name.to_string(),
                    read_only,
                    arguments,
                });
            }
            None => report.warn(
                "answers",
                format!(
                    "{}: no arguments can be made from its schema, so it is not called",
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
            "no tool that is marked as read-only has tried to write",
        );
    }
    Ok(())
}

async fn over_http(
    served: &GatewayApp,
    tools: &[ProbeCall],
    report: &mut CheckReport,
) -> Result<(), AppError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let ended = Arc::new(Notify::new());
    let end = ended.clone();
    let server = tokio::spawn(transport::http::serve(
        served.gateway.clone(),
        listener,
        async move { end.notified().await },
    ));
    let remote = RemoteEndpoint::new(&url)?;
    let listed = remote.tools().await?;
    if listed.len() != served.gateway.snapshot().catalogue.len() {
        report.fail(
            "answers over HTTP",
            format!("the number of listed tools is {}", listed.len()),
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
            "each tool, with arguments made from its schema",
        );
    }
    Ok(())
}

async fn post(client: &reqwest::Client, url: &str, tool: &ProbeCall) -> anyhow::Result<Value> {
    let request = client
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", VERSION)
        .header("mcp-method", "tools/call")
        .header("mcp-name", &tool.name);
    let response = request.body(call(0, tool).to_string()).send().await?;
    let status = response.status();
    serde_json::from_str(&response.text().await?)
        .with_context(|| format!("{status}, but not with MCP"))
}

async fn over_stdio(
    served: &GatewayApp,
    tools: &[ProbeCall],
    report: &mut CheckReport,
) -> Result<(), AppError> {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let (stdin, stdout) = tokio::io::split(theirs);
    let gateway = served.gateway.clone();
    let server = tokio::spawn(async move {
        transport::stdio::serve(
            gateway,
            None,
            CatalogueEndpoint::All,
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
                serde_json::from_str(&line).context("a line on stdout is not a message")?;
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
        report.ok("answers over stdio", "each tool");
    }
    Ok(())
}

/// Returns the call of a client that can be asked whatever a tool may ask.
fn call(id: usize, tool: &ProbeCall) -> Value {
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

/// Judges an answer. An intended error of the tool is an answer; one that shows a flaw is not. It is not a flaw either if
/// a tool runs only as a task, which this client does not follow.
fn judge(door: &'static str, tool: &ProbeCall, message: &Value, report: &mut CheckReport) {
    match message.get("error") {
        Some(error) if error["code"] == MISSING_CAPABILITY => return,
        Some(error) => return report.fail(door, format!("{}: {error}", tool.name)),
        None => {}
    }
    let TrialOutcome::Failed { code, text, .. } = TrialOutcome::of_result(&message["result"])
    else {
        return;
    };
    let finding = format!("{} {}: {text}", tool.name, tool.arguments);
    match FailureCode::of_label(&code) {
        Some(FailureCode::OutputMismatch) => report.fail("outputs conform", finding),
        Some(FailureCode::Forbidden) if tool.read_only => report.fail("reads only", finding),
        Some(FailureCode::PluginFailed | FailureCode::InvalidArguments | FailureCode::Internal) => {
            report.fail(door, finding)
        }
        Some(
            FailureCode::Timeout
            | FailureCode::Unavailable
            | FailureCode::UpstreamError
            | FailureCode::Overloaded,
        ) => report.warn(door, finding),
        _ => {}
    }
}
