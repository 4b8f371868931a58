//! The command line as a client of the admin API of a running gateway.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::Value;
use weir::admin::{self, TOKEN_FILE};
use weir_contracts::FileProblem;

use super::{AppError, CliSettings, PLACE, block_on};

/// A command of several verbs, each for the gateway named on the same line.
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct AdminArgs<C: Subcommand> {
    #[command(subcommand)]
    pub(super) command: C,
    #[command(flatten)]
    pub(super) target: AdminTarget,
}

#[derive(Args, Clone)]
pub(super) struct AdminTarget {
    /// The admin API; by default that of the gateway with this state folder
    #[arg(long, env = "WEIR_ADMIN_URL", value_parser = admin_url, value_name = "URL", global = true, help_heading = PLACE)]
    admin: Option<String>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) settings: CliSettings,
}

impl AdminTarget {
    /// Returns `true` where an address of an admin API is given.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.admin.is_some()
    }
}

/// Reads the address of an admin API.
pub(super) fn admin_url(text: &str) -> Result<String, String> {
    let is_address = |url: &reqwest::Url| {
        ["http", "https"].contains(&url.scheme())
            && url.query().is_none()
            && url.fragment().is_none()
    };
    match reqwest::Url::parse(text).is_ok_and(|url| is_address(&url)) {
        true => Ok(text.trim().to_owned()),
        false => Err(
            "write the address of the admin API with its scheme, such as http://127.0.0.1:8485"
                .to_owned(),
        ),
    }
}

/// An admin API, and the key for it: `WEIR_ADMIN_KEY`, or the first key in the state folder.
pub(super) struct AdminClient {
    client: reqwest::Client,
    url: String,
    key: String,
}

impl AdminTarget {
    /// Prints a list as JSON, or as a table with a line for each entry.
    pub(super) fn print_list(
        &self,
        list: &Value,
        head: &[&str],
        row: impl Fn(&Value) -> Vec<String>,
    ) {
        match self.json {
            true => println!("{list}"),
            false => print_table(head, list, row),
        }
    }

    pub(super) fn settings(&self) -> &CliSettings {
        &self.settings
    }

    pub(super) fn api(&self) -> Result<AdminClient, AppError> {
        AdminClient::new(self.admin.as_deref(), &self.settings)
    }

    /// Returns the JSON of an answer of the API; null if it has none.
    pub(super) fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, AppError> {
        Ok(block_on(self.api()?.ask(method, path, body))??)
    }

    /// Returns the same API at another address.
    pub(super) fn api_at(&self, url: Option<&str>) -> Result<AdminClient, AppError> {
        AdminClient::new(url.or(self.admin.as_deref()), &self.settings)
    }

    /// Returns the same for a command whose answer lists the faults of the configuration.
    pub(super) fn api_without_faults(&self) -> Result<AdminClient, AppError> {
        let state = || self.settings.find_state_folder().0;
        AdminClient::in_state(self.admin.as_deref(), &self.settings, state)
    }
}

impl AdminClient {
    pub(super) fn new(url: Option<&str>, settings: &CliSettings) -> Result<Self, AppError> {
        Self::in_state(url, settings, || settings.state_folder())
    }

    fn in_state(
        url: Option<&str>,
        settings: &CliSettings,
        state: impl FnOnce() -> PathBuf,
    ) -> Result<Self, AppError> {
        let key = super::start::key_in("WEIR_ADMIN_KEY");
        // With both given, nothing of the configuration is needed.
        let (url, key) = match (url, key) {
            (Some(url), Some(key)) => (url.trim_end_matches('/').to_owned(), key),
            (url, key) => {
                let state = state();
                let url = match url {
                    Some(url) => url.trim_end_matches('/').to_owned(),
                    None => admin::found(&state).context(not_found(settings))?,
                };
                let key = match key {
                    Some(key) => key,
                    None => {
                        read(&state, TOKEN_FILE).context("set WEIR_ADMIN_KEY to an admin key")?
                    }
                };
                (url, key)
            }
        };
        let client = super::http_client(&url).context("no HTTP client")?;
        Ok(Self { client, url, key })
    }

    /// Returns the JSON of the answer; null if it has none.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let answer = self.answer(request).await?;
        warn_of_missing(&answer);
        Ok(answer)
    }

    /// Puts a body that is not JSON, and returns the JSON of the answer.
    pub(super) async fn put(
        &self,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> anyhow::Result<Value> {
        self.answer(
            self.request(Method::PUT, path)
                .header("content-type", content_type)
                .body(body),
        )
        .await
    }

    /// Returns an answer that is not JSON, to be read in parts; `None` if there is nothing at the path.
    pub(super) async fn open(&self, path: &str) -> anyhow::Result<Option<reqwest::Response>> {
        let response = self.request(Method::GET, path).send().await?;
        if response.status() == reqwest::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        match response.error_for_status() {
            Ok(response) => Ok(Some(response)),
            Err(error) => Err(error.without_url().into()),
        }
    }

    /// Returns the address of a path.
    pub(super) fn address(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(&self.key)
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Value> {
        let response = request.send().await.with_context(|| {
            format!(
                "is `weir serve` running? No admin API answers at {}",
                self.url
            )
        })?;
        let status = response.status();
        let text = response.text().await?;
        let answer: Value = match text.is_empty() {
            true => Value::Null,
            false => serde_json::from_str(&text)
                .with_context(|| format!("{} answered {status}, but not with JSON", self.url))?,
        };
        if status.is_success() {
            return Ok(answer);
        }
        let mut message = answer["detail"]
            .as_str()
            .unwrap_or("the request was refused")
            .to_owned();
        if status == reqwest::StatusCode::UNAUTHORIZED {
            message.push_str(" (it is WEIR_ADMIN_KEY, or else admin.token in the state folder)");
        }
        for problem in each(&answer["problems"]) {
            message.push_str(&format!("\n{}", format_problem(problem)));
        }
        bail!("the admin API refused: {message}")
    }
}

/// Returns what to do if no gateway is found: one may be running, but in another folder.
fn not_found(settings: &CliSettings) -> &'static str {
    match settings.present() || settings.state.is_some() {
        true => "is `weir serve` running? Or name its admin API with --admin",
        false => {
            "there is no weir.toml here: run this in the folder of the gateway's weir.toml, or name that with --config, or the \
             admin API with --admin"
        }
    }
}

/// Returns a path of the API with names from outside in it.
pub(super) fn path(parts: &[&str]) -> String {
    let mut url = reqwest::Url::parse("http://weir").expect("it is a URL");
    url.path_segments_mut()
        .expect("it has a path")
        .extend(parts);
    url.path().to_owned()
}

/// Writes one problem of a file, in the format of this command's own problems.
pub(super) fn format_problem(problem: &Value) -> String {
    let part = |key: &str| problem[key].as_str().unwrap_or_default();
    let mut file_problem = FileProblem::new(part("file"), part("place"), part("message"));
    file_problem.line = problem["line"]
        .as_u64()
        .and_then(|line| usize::try_from(line).ok());
    file_problem.hint = problem["hint"].as_str().map(str::to_owned);
    file_problem.to_string()
}

fn read(folder: &Path, name: &str) -> anyhow::Result<String> {
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(text.trim().to_owned())
}

/// Prints a table with a line for each entry of a list.
pub(super) fn print_table(head: &[&str], list: &Value, row: impl Fn(&Value) -> Vec<String>) {
    let rows: Vec<Vec<String>> = each(list).map(row).collect();
    print!("{}", table(head, &rows));
}

/// Writes columns as wide as their widest cell, or a sentence for an empty list.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return "none\n".to_owned();
    }
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}", width = *width))
            .collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    [&head]
        .into_iter()
        .chain(rows)
        .map(|row| line(row))
        .collect()
}

/// Returns the items of a list; nothing if it is not a list.
pub(super) fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Writes the cells of a list into one.
pub(super) fn joined(list: &Value) -> String {
    each(list).map(cell).collect::<Vec<_>>().join(",")
}

/// Writes a cell: text as it is, null as nothing, times as in logs.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Names the nodes that may still serve without a change, in an answer to one.
fn warn_of_missing(answer: &Value) {
    if answer["everywhere"] != Value::Bool(false) {
        return;
    }
    for node in each(&answer["missing"]) {
        let (name, id, stops) = (
            cell(&node["name"]),
            cell(&node["id"]),
            time(&node["stops_ms"]),
        );
        eprintln!(
            "note: the node {name} ({id}) has not applied this yet; it stops serving by {stops} at the latest"
        );
    }
}

pub(super) fn time(value: &Value) -> String {
    let time = value
        .as_i64()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |time| {
        time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    })
}
