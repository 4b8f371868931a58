//! The tools that are served: all of them, or those that one agent sees.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{OperationError, OperationResult, stats::milliseconds};
use crate::{
    catalogue::{
        CatalogueEndpoint, CatalogueTool, CatalogueViewer, ListShape, after, cursor_after,
    },
    control::ControlPlane,
    tokens::vocabulary,
};

/// The most tools in one answer.
const PAGE: usize = 200;
/// The bound on the words of a search.
const WORDS_MAX_CHARS: usize = 400;

/// A page of the tools that are served.
#[derive(Serialize, ToSchema)]
pub struct ToolsPage {
    /// By name.
    pub tools: Vec<ServedTool>,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// A tool as agents see it.
#[derive(Serialize, ToSchema)]
pub struct ServedTool {
    pub name: String,
    pub contract: String,
    pub version: String,
    /// The verb on its collection: `lookup`, `list`, `count`, `create`, `update`, `delete` or `call`. Null for a function of a
    /// plugin or of another server.
    pub verb: Option<&'static str>,
    /// Whether it may change something.
    pub writes: bool,
    /// The size of its entry in a list.
    pub bytes: usize,
    /// An estimate of the tokens that a model reads for it, as in `weir tools cost`.
    pub tokens: usize,
    /// Its calls at this process in the last 24 hours, over all its versions, counted by whole hours.
    pub calls_24h: u64,
    /// An estimate of the time within which 95 of 100 of its calls end, in milliseconds, since this process started; null
    /// without a call.
    pub p95_ms: Option<f64>,
    /// Its entry in a list of the newest protocol version.
    #[schema(value_type = Object)]
    pub tool: Value,
}

/// The filters and the page of a list of tools.
pub struct ToolsQuery<'a> {
    /// As this agent sees them at `/mcp`. `None`: everything.
    pub agent: Option<&'a str>,
    /// Words that must all occur in the name, the title or the description.
    pub words: &'a str,
    pub cursor: Option<&'a str>,
}

/// Returns one page of the matching tools.
pub async fn list(control: &ControlPlane, query: ToolsQuery<'_>) -> OperationResult<ToolsPage> {
    if query.words.chars().count() > WORDS_MAX_CHARS {
        let detail = format!("q: at most {WORDS_MAX_CHARS} characters are looked for");
        return Err(OperationError::invalid(detail));
    }
    let words: Vec<String> = query
        .words
        .split_whitespace()
        .map(str::to_lowercase)
        .collect();
    let last = query.cursor.map(after).transpose();
    let last = last.map_err(|error| OperationError::invalid(format!("cursor: {error}")))?;
    let caller = query.agent.map(|name| {
        let caller = control.gateway().identities().agent(name);
        caller.ok_or_else(|| OperationError::not_found("agent", name))
    });
    let caller = caller.transpose()?;
    let endpoint = match &caller {
        Some(caller) => CatalogueEndpoint::All.for_caller(caller),
        None => CatalogueEndpoint::All,
    };
    let viewer = caller
        .as_ref()
        .map_or(CatalogueViewer::EVERYTHING, CatalogueViewer::Caller);
    let snapshot = control.gateway().snapshot();
    let Some(listing) = snapshot.catalogue.listing(&endpoint, viewer) else {
        return Ok(ToolsPage {
            tools: Vec::new(),
            next_cursor: None,
        });
    };
    let page = tokio::task::spawn_blocking(move || {
        let entries = listing.tools.entries();
        let start = last.map_or(0, |last| {
            entries.partition_point(|tool| *tool.name <= *last)
        });
        let mut fitting = entries[start..].iter().filter(|tool| fits(tool, &words));
        let view = |tool: &CatalogueTool| {
            let written = |shape| listing.tools.write_entry(shape, tool);
            ServedTool::new(
                tool,
                &written(ListShape::Modern),
                &written(ListShape::Plain),
            )
        };
        let tools: Vec<ServedTool> = fitting.by_ref().take(PAGE).map(|tool| view(tool)).collect();
        let more = fitting.next().and(tools.last());
        ToolsPage {
            next_cursor: more.map(|last| cursor_after(&last.name)),
            tools,
        }
    });
    let mut page = page
        .await
        .map_err(|_| OperationError::unavailable("the list broke off"))?;
    add_usage(control, &mut page.tools);
    Ok(page)
}

/// Adds how often each tool is called, and how long its calls take.
fn add_usage(control: &ControlPlane, tools: &mut [ServedTool]) {
    let metrics = control.gateway().metrics();
    let day = control.live_figures().count_day(metrics);
    let names: HashSet<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let durations = metrics.read_durations(&names);
    for tool in tools {
        tool.calls_24h = day.get(&*tool.name).copied().unwrap_or(0);
        let taken = durations.get(&*tool.name);
        tool.p95_ms = taken.and_then(|taken| taken.quantile(0.95).map(milliseconds));
    }
}

fn fits(tool: &CatalogueTool, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let title = tool.tool.title.as_deref().unwrap_or_default();
    let text = format!("{}\n{title}\n{}", tool.name, tool.tool.description).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

impl ServedTool {
    /// `entry` is what a client lists, and `read` is the part that a model is shown.
    fn new(tool: &CatalogueTool, entry: &str, read: &str) -> Self {
        Self {
            name: tool.name.to_string(),
            contract: tool.contract.to_string(),
            version: tool.version.to_string(),
            verb: tool.tool.collection().map(|target| target.verb.word()),
            writes: tool.tool.writes(),
            bytes: entry.len(),
            tokens: vocabulary().count(read),
            calls_24h: 0,
            p95_ms: None,
            tool: serde_json::from_str(entry).unwrap_or_default(),
        }
    }
}
