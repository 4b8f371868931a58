//! `weir call`: one tool from the terminal, against a configuration or a URL.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use weir_contracts::{
    Tool,
    contract::{Maker, Target},
};

use super::{Done, Failure, Settings, block_on, draft, extracted, flags, start};
use crate::{
    app::App,
    call::{Asking, CallOutcome, CallRequest, Content, Endpoint, ToolResult, call_tool},
    identity::{Caller, Credential, Refused},
};

#[derive(Args)]
#[command(
    arg_required_else_help = true,
    override_usage = "weir call [OPTIONS] TOOL [--argument value]…",
    subcommand_value_name = "TOOL"
)]
pub(super) struct Call {
    /// The MCP endpoint to call, such as http://127.0.0.1:8484/mcp, instead of a configuration
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A spreadsheet to call the drafted tools of
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    file: Option<PathBuf>,
    /// An extracted document to call the tools of; its server is named by --url, or by `-- COMMAND…` behind the arguments
    #[arg(long, value_name = "DOCUMENT", conflicts_with = "file")]
    from: Option<PathBuf>,
    /// Print the whole result, also of an error: every block of its content and its structured value, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    tool: Called,
}

#[derive(Subcommand)]
enum Called {
    /// The tool's name and its flags; `weir call TOOL --help` shows them
    #[command(external_subcommand)]
    Named(Vec<String>),
}

impl Call {
    pub(super) fn run(self) -> Done {
        let Called::Named(words) = &self.tool;
        let Some((name, line)) = words.split_first() else { unreachable!("a subcommand has a name") };
        let result = match (&self.from, &self.url) {
            (Some(from), url) => block_on(of_document(from, url.as_deref(), name, line))??,
            (None, Some(url)) => block_on(at_url(url, name, line))??,
            (None, None) => block_on(self.here(name, line))??,
        };
        let Some(result) = result else { return Ok(ExitCode::SUCCESS) };
        self.print(&result)?;
        Ok(if result.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
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

    async fn here(&self, name: &str, line: &[String]) -> Result<Option<ToolResult>, Failure> {
        let config = match &self.file {
            Some(file) => draft::file_config(file, true, &self.settings)?,
            None => self.settings.config_to_serve(
                "Name one (--config /path/to/weir.toml), a server that runs (--url http://127.0.0.1:8484/mcp) or a spreadsheet \
                 (--file prices.csv), before the tool",
            )?,
        };
        let started = start::briefly(config, Some("call")).await?;
        match &self.file {
            Some(file) => draft::serve_file(&started, file).await?,
            None => started.load(false).await?,
        }
        let caller = caller(&started)?;
        let snapshot = started.gateway.snapshot();
        let Some(tool) = snapshot.catalogue.tool(&Endpoint::All, name, caller.access()) else {
            let is_visible = |name: &&str| snapshot.catalogue.tool(&Endpoint::All, name, caller.access()).is_some();
            let mut names: Vec<&str> = snapshot.catalogue.tools().map(|tool| &*tool.name).filter(is_visible).collect();
            names.sort_unstable();
            return Err(unknown(name, &names).into());
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
        let request = CallRequest {
            snapshot: &snapshot,
            endpoint: &Endpoint::All,
            tool: name,
            arguments: Some(&arguments),
            events: None,
            param_headers: None,
            cancel: &CancellationToken::new(),
            trace: None,
            transport: "cli",
            protocol: "none",
            timeout: None,
            session: None,
            asking: Asking::default(),
        };
        let outcome = call_tool(&started.gateway, &caller, &request).await;
        started.gateway.upstreams().close().await;
        match outcome {
            CallOutcome::Complete(result) => Ok(Some(result)),
            CallOutcome::InputRequired(_) | CallOutcome::MissingCapability(_) => {
                Err(anyhow::anyhow!("`{name}` asks its caller before it goes on, which `weir call` cannot answer")
                    .into())
            }
            CallOutcome::UnknownTool(_) | CallOutcome::BadState | CallOutcome::HeaderMismatch(_) => {
                Err(unknown(name, &[]).into())
            }
        }
    }
}

/// Returns the agent of `WEIR_KEY`.
pub(super) fn caller(started: &App) -> anyhow::Result<Caller> {
    let key = key();
    let credential = key.as_deref().map_or(Credential::None, Credential::Key);
    let caller = started.gateway.identities().resolve(credential);
    caller.map_err(|refused| match refused {
        Refused::Missing => anyhow::anyhow!("a key is needed: set WEIR_KEY"),
        refused => anyhow::anyhow!("WEIR_KEY: {}", refused.message()),
    })
}

/// Parses the words; `None` if help was asked for and printed.
fn parse(
    name: &str,
    description: &str,
    schema: &Value,
    cli: &Value,
    line: &[String],
) -> anyhow::Result<Option<String>> {
    match flags::command(name, description, schema, cli).try_get_matches_from(line) {
        Ok(matches) => Ok(Some(Value::Object(flags::arguments(schema, &matches)?).to_string())),
        Err(error) if !error.use_stderr() => {
            error.print()?;
            Ok(None)
        }
        Err(error) => error.exit(),
    }
}

/// Returns the description with the title above it, unless it begins with it.
fn titled(title: Option<&str>, description: &str) -> String {
    match title.filter(|title| !description.starts_with(*title)) {
        Some(title) => format!("{title}\n\n{description}"),
        None => description.to_owned(),
    }
}

/// Returns what the author of a plugin says about the tool on the command line. Nothing of it is published.
fn cli(started: &App, tool: &Tool) -> Value {
    let Target::Offer(offered) = &tool.target else { return Value::Null };
    let Maker::Plugin(plugin) = &offered.maker else { return Value::Null };
    let defined = started.gateway.host().defined();
    let definitions = defined.iter().find(|(name, _)| name == plugin).map(|(_, definitions)| &definitions.text);
    let tools: Vec<Value> = definitions.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let tool = tools.into_iter().find(|tool| tool["name"] == offered.name);
    tool.map_or(Value::Null, |mut tool| tool["cli"].take())
}

pub(super) fn unknown(name: &str, names: &[&str]) -> anyhow::Error {
    match names {
        [] => anyhow::anyhow!(
            "there is no tool `{name}`, nor any other here; name a server with --url, a spreadsheet with --file, or a \
             configuration with --config, before the tool"
        ),
        names => anyhow::anyhow!("there is no tool `{name}`; there are {}", names.join(", ")),
    }
}

/// Calls a tool that an extracted document describes, at the server that is named beside it.
async fn of_document(
    from: &Path,
    url: Option<&str>,
    name: &str,
    line: &[String],
) -> anyhow::Result<Option<ToolResult>> {
    let (line, command) = extracted::split(line);
    let tool = extracted::tool(from, name)?;
    let Some(arguments) = parse(name, &tool.description, &tool.schema, &Value::Null, line)? else { return Ok(None) };
    let target = extracted::target(from, url, command)?;
    extracted::call(&target, &tool, name, &arguments).await.map(Some)
}

/// Calls a tool at a URL, by two requests of the modern era, which need no session.
async fn at_url(url: &str, name: &str, line: &[String]) -> anyhow::Result<Option<ToolResult>> {
    let remote = Remote::new(url)?;
    let tools = remote.tools().await?;
    let Some(tool) = tools.iter().find(|tool| tool["name"] == name) else {
        if tools.is_empty() {
            let whose = if key().is_some() { "the key in WEIR_KEY may use no tool" } else { "nobody may use a tool" };
            anyhow::bail!("{whose} at {url}");
        }
        return Err(unknown(name, &tools.iter().filter_map(|tool| tool["name"].as_str()).collect::<Vec<_>>()));
    };
    let description = titled(tool["title"].as_str(), tool["description"].as_str().unwrap_or_default());
    let Some(arguments) = parse(name, &description, &tool["inputSchema"], &Value::Null, line)? else { return Ok(None) };
    let arguments: Value = serde_json::from_str(&arguments)?;
    let result = remote.request("tools/call", Some(name), json!({ "name": name, "arguments": arguments })).await?;
    let structured = result.get("structuredContent").map(Value::to_string);
    let content = Content::Blocks(result["content"].to_string());
    let mut told = ToolResult::of(content, structured, result["isError"] == true);
    let meta = result["_meta"].as_object().into_iter().flatten();
    told.meta = meta.map(|(name, value)| (name.clone().into(), value.to_string())).collect();
    Ok(Some(told))
}

/// Returns the key of the caller, if keys are needed.
pub(super) fn key() -> Option<String> {
    std::env::var("WEIR_KEY").ok().filter(|key| !key.is_empty())
}

/// An MCP endpoint somewhere, in the modern era.
pub(super) struct Remote {
    client: reqwest::Client,
    url: String,
}

impl Remote {
    pub(super) fn new(url: &str) -> anyhow::Result<Self> {
        anyhow::ensure!(
            url.starts_with("http://") || url.starts_with("https://"),
            "`{url}` is no URL; write it whole, such as http://127.0.0.1:8484/mcp"
        );
        Ok(Self { client: super::http_client(url)?, url: url.to_owned() })
    }

    /// Returns every tool that the endpoint lists.
    pub(super) async fn tools(&self) -> anyhow::Result<Vec<Value>> {
        const TOOLS_MAX: usize = 100_000;
        let mut cursor = Value::Null;
        let mut tools = Vec::new();
        loop {
            let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
            let mut page = self.request("tools/list", None, params).await?;
            let Value::Array(listed) = page["tools"].take() else { anyhow::bail!("the endpoint lists no tools") };
            tools.extend(listed);
            cursor = page["nextCursor"].take();
            if cursor.is_null() || tools.len() > TOOLS_MAX {
                return Ok(tools);
            }
        }
    }

    pub(super) async fn request(&self, method: &str, name: Option<&str>, mut params: Value) -> anyhow::Result<Value> {
        const VERSION: &str = "2026-07-28";
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "weir", "version": env!("CARGO_PKG_VERSION") },
        });
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
        if let Some(key) = key() {
            request = request.bearer_auth(key);
        }
        let response =
            request.body(body.to_string()).send().await.with_context(|| format!("{} cannot be reached", self.url))?;
        let status = response.status();
        let text = response.text().await?;
        let mut answer: Value =
            serde_json::from_str(&text).with_context(|| format!("{} answered {status} and no MCP", self.url))?;
        if let Some(error) = answer.get("error") {
            anyhow::bail!("{}", error["message"].as_str().unwrap_or("the endpoint refused"));
        }
        Ok(answer["result"].take())
    }
}
