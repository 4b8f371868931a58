//! `weir call`: one tool from the terminal, against a configuration or a URL.

use std::{
    collections::HashSet,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use clap::{
    Args, Subcommand,
    error::{ContextKind, ContextValue},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use weir_contracts::{
    ContractTool,
    contract::{CallTarget, ToolProvider},
    validate::{ArgumentValidator, ValidationAuthority, ValidationRules},
};

use weir::{
    app::GatewayApp,
    call::{CallContent, CallRequest, CatalogueEndpoint, IncompleteCall, ToolResult, call_tool},
    catalogue::CatalogueViewer,
};
use weir_plugin_host::CallEvents;

use super::{
    AppError, CliSettings, Done,
    admin::table,
    block_on,
    draft::{self, ServedPart},
    extracted, flags, start,
    terminal::TerminalProgress,
};

#[derive(Args)]
#[command(
    override_usage = "weir call [OPTIONS] TOOL [--argument value]…\n       weir call [OPTIONS]  lists the tools",
    subcommand_value_name = "TOOL"
)]
pub(super) struct CallArgs {
    /// The MCP endpoint to call, such as http://127.0.0.1:8484/mcp, instead of a configuration
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A spreadsheet or a database to call the drafted tools of
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    file: Option<PathBuf>,
    /// An extracted document to call the tools of; its server is named by --url, or by `-- COMMAND…` after the arguments
    #[arg(long, value_name = "DOCUMENT", conflicts_with = "file")]
    from: Option<PathBuf>,
    /// Print the whole result, also of an error: every block of its content and its structured value, as JSON; without a
    /// tool, the list as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: CliSettings,
    #[command(subcommand)]
    tool: Option<CallCommand>,
}

#[derive(Subcommand)]
enum CallCommand {
    /// The tool's name and its flags; `weir call TOOL --help` shows them
    #[command(external_subcommand)]
    Named(Vec<String>),
}

impl CallArgs {
    pub(super) fn run(self) -> Done {
        let Some(CallCommand::Named(words)) = &self.tool else {
            return self.list();
        };
        let Some((name, line)) = words.split_first() else {
            unreachable!("a subcommand has a name")
        };
        let result = match (&self.from, &self.url) {
            (Some(from), url) => block_on(of_document(from, url.as_deref(), name, line))??,
            (None, Some(url)) => block_on(at_url(url, name, line))??,
            (None, None) => block_on(self.here(name, line))??,
        };
        let Some(result) = result else {
            return Ok(ExitCode::SUCCESS);
        };
        self.print(&result)?;
        Ok(if result.is_error {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Prints the value of a result, or its text where it has none. An error goes to stderr, once.
    fn print(&self, result: &ToolResult) -> anyhow::Result<()> {
        let shown = |json: &str| -> anyhow::Result<String> {
            if !std::io::stdout().is_terminal() {
                return Ok(json.to_owned());
            }
            let value: Value = serde_json::from_str(json).context("the result is not JSON")?;
            Ok(serde_json::to_string_pretty(&value).expect("plain JSON"))
        };
        if self.json {
            println!("{}", shown(&result.as_json())?);
            return Ok(());
        }
        if result.is_error {
            eprintln!("weir: {}", result.content.text());
            return Ok(());
        }
        match &result.structured {
            Some(structured) => println!("{}", shown(structured)?),
            None => println!("{}", result.content.text()),
        }
        for block in result.content.others() {
            eprintln!("weir: the result also holds {block}, which --json prints");
        }
        Ok(())
    }

    /// Lists the tools that could be called, and says how to continue.
    fn list(&self) -> Done {
        let mut tools = match (&self.from, &self.url) {
            (Some(from), _) => extracted::tools(from)?,
            (None, Some(url)) => block_on(async { RemoteEndpoint::new(url)?.tools().await })??,
            (None, None) => block_on(self.tools_here())??,
        };
        tools.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
        let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        if self.json {
            let tools: Vec<Value> = tools
                .iter()
                .map(|tool| json!({ "name": text(tool, "name"), "description": text(tool, "description") }))
                .collect();
            println!("{}", Value::Array(tools));
            return Ok(ExitCode::SUCCESS);
        }
        let line = |tool: &Value| {
            text(tool, "description")
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let rows: Vec<Vec<String>> = tools
            .iter()
            .map(|tool| vec![text(tool, "name"), line(tool)])
            .collect();
        print!("{}", table(&["TOOL", "DESCRIPTION"], &rows));
        eprintln!(
            "\nTo call a tool, write its name after the options; with `--help` after it, its arguments are shown."
        );
        Ok(ExitCode::SUCCESS)
    }

    async fn tools_here(&self) -> Result<Vec<Value>, AppError> {
        let started = self.open().await?;
        let tools = listed(&started);
        started.gateway.upstreams().close().await;
        Ok(tools?)
    }

    /// Opens the gateway that is called, of a spreadsheet or of the configuration.
    async fn open(&self) -> Result<GatewayApp, AppError> {
        let config = match &self.file {
            Some(file) => draft::served_config(file, &ServedPart::of_call(file)?, &self.settings)?,
            None => self.settings.config_to_serve(
                "Name one (--config /path/to/weir.toml), a server that runs (--url http://127.0.0.1:8484/mcp) or a spreadsheet \
                 (--file prices.csv), before the tool",
            )?,
        };
        let started = start::briefly(config, Some("call")).await?;
        match &self.file {
            Some(file) => {
                draft::serve_source(&started, file, &ServedPart::of_call(file)?).await?;
            }
            None => started.load(false).await?,
        }
        Ok(started)
    }

    async fn here(&self, name: &str, line: &[String]) -> Result<Option<ToolResult>, AppError> {
        let started = self.open().await?;
        let caller = start::caller(&started)?;
        let snapshot = started.gateway.snapshot();
        let Some(tool) = snapshot.catalogue.tool(
            &CatalogueEndpoint::All,
            name,
            CatalogueViewer::Caller(&caller),
        ) else {
            let tools = listed(&started)?;
            let mut names: Vec<&str> = tools
                .iter()
                .filter_map(|tool| tool["name"].as_str())
                .collect();
            names.sort_unstable();
            return Err(extracted::unknown_tool(name, &names).into());
        };
        let cli = cli(&started, &tool.tool);
        let Some(arguments) = parse(
            name,
            &titled(tool.tool.title.as_deref(), &tool.tool.description),
            tool.checks().schema(),
            &cli,
            line,
        )?
        else {
            return Ok(None);
        };
        let cancel = CancellationToken::new();
        let progress = TerminalProgress::open();
        let events = progress.clone();
        let request = CallRequest {
            arguments: Some(&arguments),
            events: events.map(|events| events as Arc<dyn CallEvents>),
            ..CallRequest::new(&snapshot, &CatalogueEndpoint::All, name, "cli", &cancel)
        };
        let outcome = call_tool(&started.gateway, &caller, &request).await;
        if let Some(progress) = &progress {
            progress.end();
        }
        started.write_counts().await;
        started.gateway.upstreams().close().await;
        match outcome.unasked() {
            Ok(result) => Ok(Some(result)),
            Err(IncompleteCall::Asks) => Err(anyhow::anyhow!(
                "`{name}` asks its caller a question, which `weir call` cannot answer"
            )
            .into()),
            Err(IncompleteCall::NotThere) => Err(extracted::unknown_tool(name, &[]).into()),
        }
    }
}

/// Returns the tools that the agent of `WEIR_KEY` may use, with their names and descriptions.
fn listed(started: &GatewayApp) -> anyhow::Result<Vec<Value>> {
    let caller = start::caller(started)?;
    let snapshot = started.gateway.snapshot();
    let catalogue = &snapshot.catalogue;
    let tools = catalogue.tools().filter_map(|tool| {
        catalogue.tool(
            &CatalogueEndpoint::All,
            &tool.name,
            CatalogueViewer::Caller(&caller),
        )
    });
    Ok(tools
        .map(|tool| json!({ "name": tool.tool.name, "description": tool.tool.description }))
        .collect())
}

/// Parses the words; `None` if help was asked for and printed.
fn parse(
    name: &str,
    description: &str,
    schema: &Value,
    cli: &Value,
    line: &[String],
) -> anyhow::Result<Option<String>> {
    let command = flags::command(name, description, schema, cli);
    let (words, members) = flags::split_members(schema, &command, line);
    match command.try_get_matches_from(words) {
        Ok(matches) => {
            let mut arguments = flags::arguments(schema, &matches)?;
            flags::put_members(&mut arguments, members)?;
            Ok(Some(Value::Object(arguments).to_string()))
        }
        Err(error) if !error.use_stderr() => {
            error.print()?;
            Ok(None)
        }
        Err(mut error) => {
            if let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
                && is_of_call(flag)
            {
                anyhow::bail!(
                    "`{flag}` is an option of `weir call`, not of `{name}`: put it before the tool"
                );
            }
            error.remove(ContextKind::Suggested); // it explains how to write a value that begins with dashes
            error.exit()
        }
    }
}

/// Returns `true` for an option of `weir call` itself.
fn is_of_call(flag: &str) -> bool {
    let command = CallArgs::augment_args(clap::Command::new("call"));
    command
        .get_arguments()
        .filter_map(clap::Arg::get_long)
        .any(|long| flag.strip_prefix("--") == Some(long))
}

/// Returns the description with the title above it, unless it begins with it.
fn titled(title: Option<&str>, description: &str) -> String {
    match title.filter(|title| !description.starts_with(*title)) {
        Some(title) => format!("{title}\n\n{description}"),
        None => description.to_owned(),
    }
}

/// Returns the settings of a plugin's author for the tool on the command line. None of them is published.
fn cli(started: &GatewayApp, tool: &ContractTool) -> Value {
    let CallTarget::Offer(offered) = &tool.target else {
        return Value::Null;
    };
    let ToolProvider::Plugin(plugin) = &offered.maker else {
        return Value::Null;
    };
    let defined = started.gateway.host().defined();
    let definitions = defined
        .iter()
        .find(|(name, _)| name == plugin)
        .map(|(_, definitions)| &definitions.text);
    let tools: Vec<Value> = definitions
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let tool = tools.into_iter().find(|tool| tool["name"] == offered.name);
    tool.map_or(Value::Null, |mut tool| tool["cli"].take())
}

/// Calls a tool that an extracted document describes, at the server that is named with it.
async fn of_document(
    from: &Path,
    url: Option<&str>,
    name: &str,
    line: &[String],
) -> anyhow::Result<Option<ToolResult>> {
    let (line, command) = extracted::split(line);
    let tool = extracted::tool(from, name)?;
    let Some(arguments) = parse(name, &tool.description, &tool.schema, &Value::Null, line)? else {
        return Ok(None);
    };
    let target = extracted::target(from, url, command)?;
    // As a gateway does in front of its servers. Where the schema cannot be used, the server judges.
    let rules = ValidationRules {
        judge: ValidationAuthority::Foreign,
        clear: None,
        is_wide: true,
        has_digits: false,
    };
    let validator = ArgumentValidator::with_rules(&tool.schema, rules).ok();
    if let Some(Err(invalid)) = validator.map(|validator| validator.validate(&arguments)) {
        let structured = invalid.structured_content().to_json();
        return Ok(Some(ToolResult::new(invalid.text(), structured, true)));
    }
    extracted::call(&target, &tool, name, &arguments)
        .await
        .map(Some)
}

/// Calls a tool at a URL, by two requests of the modern era, which need no session.
async fn at_url(url: &str, name: &str, line: &[String]) -> anyhow::Result<Option<ToolResult>> {
    let remote = RemoteEndpoint::new(url)?;
    let tools = remote.tools().await?;
    let Some(tool) = tools.iter().find(|tool| tool["name"] == name) else {
        if tools.is_empty() {
            let whose = if start::key().is_some() {
                "the key in WEIR_KEY may use no tool"
            } else {
                "no caller may use a tool"
            };
            anyhow::bail!("{whose} at {url}");
        }
        return Err(extracted::unknown_tool(
            name,
            &tools
                .iter()
                .filter_map(|tool| tool["name"].as_str())
                .collect::<Vec<_>>(),
        ));
    };
    let description = titled(
        tool["title"].as_str(),
        tool["description"].as_str().unwrap_or_default(),
    );
    let Some(arguments) = parse(name, &description, &tool["inputSchema"], &Value::Null, line)?
    else {
        return Ok(None);
    };
    let arguments: Value = serde_json::from_str(&arguments)?;
    let progress = TerminalProgress::open();
    let params = json!({ "name": name, "arguments": arguments });
    let result = remote
        .request_with(progress.as_deref(), "tools/call", Some(name), params)
        .await;
    if let Some(progress) = &progress {
        progress.end();
    }
    let result = result?;
    let structured = result.get("structuredContent").map(Value::to_string);
    let content = CallContent::Blocks(result["content"].to_string());
    let mut tool_result = ToolResult::from_content(content, structured, result["isError"] == true);
    let meta = result["_meta"].as_object().into_iter().flatten();
    tool_result.meta = meta
        .map(|(name, value)| (name.clone().into(), value.to_string()))
        .collect();
    Ok(Some(tool_result))
}

/// Refuses a text that is not the address of an MCP endpoint.
pub(super) fn check_url(url: &str) -> anyhow::Result<()> {
    let is_http = |url: reqwest::Url| matches!(url.scheme(), "http" | "https");
    anyhow::ensure!(
        reqwest::Url::parse(url).is_ok_and(is_http),
        "`{url}` is not the URL of an MCP endpoint; write it whole, such as http://127.0.0.1:8484/mcp"
    );
    Ok(())
}

/// An MCP endpoint somewhere, in the modern era.
pub(super) struct RemoteEndpoint {
    client: reqwest::Client,
    url: String,
}

impl RemoteEndpoint {
    pub(super) fn new(url: &str) -> anyhow::Result<Self> {
        check_url(url)?;
        Ok(Self {
            client: super::http_client(url)?,
            url: url.to_owned(),
        })
    }

    /// Returns every tool that the endpoint lists. Pages that begin anew are refused.
    pub(super) async fn tools(&self) -> anyhow::Result<Vec<Value>> {
        const TOOLS_MAX: usize = 100_000;
        const PAGES_MAX: usize = 10_000;
        let mut cursor = Value::Null;
        let (mut tools, mut cursors) = (Vec::new(), HashSet::new());
        loop {
            let params = if cursor.is_null() {
                json!({})
            } else {
                json!({ "cursor": cursor })
            };
            let mut page = self.request("tools/list", None, params).await?;
            let Value::Array(listed) = page["tools"].take() else {
                anyhow::bail!("the endpoint lists no tools")
            };
            tools.extend(listed);
            cursor = page["nextCursor"].take();
            // Some servers write these for the end.
            let is_end = matches!(&cursor, Value::Null | Value::Bool(false)) || cursor == "";
            if is_end || tools.len() > TOOLS_MAX {
                return Ok(tools);
            }
            if !cursors.insert(cursor.to_string()) || cursors.len() > PAGES_MAX {
                anyhow::bail!("the pages of the list at {} never end", self.url);
            }
        }
    }

    pub(super) async fn request(
        &self,
        method: &str,
        name: Option<&str>,
        params: Value,
    ) -> anyhow::Result<Value> {
        self.request_with(None, method, name, params).await
    }

    /// Asks, and shows the progress that comes before the answer.
    async fn request_with(
        &self,
        progress: Option<&TerminalProgress>,
        method: &str,
        name: Option<&str>,
        mut params: Value,
    ) -> anyhow::Result<Value> {
        const VERSION: &str = "2026-07-28";
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "weir", "version": env!("CARGO_PKG_VERSION") },
        });
        if progress.is_some() {
            params["_meta"]["progressToken"] = 1.into();
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", VERSION)
            .header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        if let Some(key) = start::key() {
            request = request.bearer_auth(key);
        }
        let unanswered = |error: reqwest::Error| {
            let what = match (error.is_connect(), method) {
                (true, _) => "cannot be reached",
                (false, "tools/call") => {
                    "did not answer: the tool may have run, so look at what it changes before it is called again"
                }
                (false, _) => "did not answer",
            };
            anyhow::Error::new(error).context(format!("{} {what}", self.url))
        };
        let response = request
            .body(body.to_string())
            .send()
            .await
            .map_err(unanswered)?;
        let status = response.status();
        let text = text_after_progress(response, progress)
            .await
            .map_err(unanswered)?;
        let mut answer = extracted::read_answer(&text)
            .with_context(|| format!("{} answered {status}, but not with MCP", self.url))?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            anyhow::bail!(
                "{}",
                error["message"].as_str().unwrap_or("the endpoint refused")
            );
        }
        match answer.get_mut("result") {
            Some(result) if result.is_object() => Ok(result.take()),
            _ => anyhow::bail!("{} answered {status} and no result of MCP", self.url),
        }
    }
}

/// Reads the answer of a response: its body, or the first event that is an answer. Events before that are progress.
async fn text_after_progress(
    mut response: reqwest::Response,
    progress: Option<&TerminalProgress>,
) -> reqwest::Result<String> {
    let kind = response.headers().get("content-type");
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return response.text().await;
    }
    let (mut line, mut data) = (Vec::new(), String::new());
    while let Some(chunk) = response.chunk().await? {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(part);
            if !line.ends_with(b"\n") {
                continue;
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\r', '\n']);
            if let Some(more) = text.strip_prefix("data:") {
                data.push_str(more);
            }
            if text.is_empty()
                && let Some(answer) = answer_of_event(std::mem::take(&mut data), progress)
            {
                return Ok(answer);
            }
            line.clear();
        }
    }
    Ok(String::new())
}

/// Returns the data of an event that is an answer. Progress is shown.
fn answer_of_event(data: String, progress: Option<&TerminalProgress>) -> Option<String> {
    let message: Value = serde_json::from_str(&data).unwrap_or_default();
    match (message["method"].as_str(), progress) {
        (None, _) => message.is_object().then_some(data),
        (Some("notifications/progress"), Some(progress)) => {
            let params = &message["params"];
            let text = params["message"].as_str().unwrap_or_default();
            let done = params["progress"].as_f64().unwrap_or_default();
            progress.show(done, params["total"].as_f64(), text);
            None
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
