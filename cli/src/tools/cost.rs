//! `weir tools cost`: computes the cost of this catalogue's lists for their readers.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use weir::{
    catalogue::{CatalogueEndpoint, CatalogueListing, CatalogueViewer, ListShape, ToolCatalogue},
    config::ViewConfig,
    tokens::vocabulary,
};
use weir_contracts::client::ClientProfile;

use crate::{AppError, CliSettings, Done, admin::table, block_on, client_profile, start};

/// Measure the lists of this catalogue, and report which way costs a model least
///
/// Bytes are exact. Tokens are an estimate: they are those of name, description and input schema of every tool, by the
/// vocabulary o200k of OpenAI; other vendors count differently. A task is one call: two requests with a list, three
/// with search.
#[derive(Args)]
pub(super) struct CostArgs {
    /// Measure with schemas written for this client
    #[arg(long, value_name = "CLIENT", value_parser = client_profile)]
    client: Option<ClientProfile>,
    /// Print the measurements as JSON
    #[arg(long)]
    json: bool,
    /// Count the tokens of a text instead, such as an answer that `weir call` printed: a file, or `-` for stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["client", "json"])]
    text: Option<PathBuf>,
    #[command(flatten)]
    settings: CliSettings,
}

/// Names that no view has.
const EVERYTHING: &str = "(everything)";
const SEARCH: &str = "(search)";
/// Questions that are asked to learn how long an answer is.
const QUESTIONS_MAX: usize = 200;
const FOUND: usize = 5;
/// The tokens that a model writes to ask: the name of the tool and a question.
const QUESTION_TOKENS: usize = 30;

/// The cost of one way to the tools.
struct CostRow {
    name: String,
    /// Tools that can be called through it.
    tools: usize,
    /// The size of `tools/list`.
    bytes: usize,
    /// The tokens of `tools/list`, as a model is shown it.
    tokens: usize,
    /// The tokens of one answer of `find_tools`, if search is on.
    found_tokens: Option<usize>,
}

impl CostRow {
    /// Returns the tokens of a task. A list is in each of its requests: one that ends in a call, one that ends in the answer.
    /// With search there is one more in front, and the results are in the two after it.
    fn task_tokens(&self) -> usize {
        match self.found_tokens {
            None => 2 * self.tokens,
            Some(found) => 3 * self.tokens + 2 * (found + QUESTION_TOKENS),
        }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "tools": self.tools,
            "bytes": self.bytes,
            "tokens": self.tokens,
            "found_tokens": self.found_tokens,
            "task_tokens": self.task_tokens(),
        })
    }
}

impl CostArgs {
    pub(super) fn run(self) -> Done {
        if let Some(file) = &self.text {
            let text = match file.as_os_str() == "-" {
                true => std::io::read_to_string(std::io::stdin()),
                false => std::fs::read_to_string(file),
            };
            let text = text.with_context(|| format!("{} cannot be read", file.display()))?;
            println!("{}", vocabulary().count(&text));
            return Ok(ExitCode::SUCCESS);
        }
        let rows = block_on(self.rows())??;
        let advice = advice(&rows);
        if self.json {
            let rows: Vec<Value> = rows.iter().map(CostRow::json).collect();
            let measured = json!({ "vocabulary": "o200k_base", "rows": rows, "advice": advice });
            println!(
                "{}",
                serde_json::to_string_pretty(&measured).expect("plain JSON")
            );
            return Ok(ExitCode::SUCCESS);
        }
        let cells = |row: &CostRow| {
            let found = row
                .found_tokens
                .map_or_else(|| "-".to_owned(), |found| found.to_string());
            let counts = [row.tools, row.bytes, row.tokens].map(|count| count.to_string());
            let [tools, bytes, tokens] = counts;
            vec![
                row.name.clone(),
                tools,
                bytes,
                tokens,
                found,
                row.task_tokens().to_string(),
            ]
        };
        let head = ["LIST", "TOOLS", "BYTES", "~TOKENS", "~FOUND", "~TASK"];
        print!(
            "{}",
            table(&head, &rows.iter().map(cells).collect::<Vec<_>>())
        );
        println!("\n{advice}");
        println!(
            "Tokens are an estimate (o200k). A task is one call; the conversation itself, which a search sends once more, and a \
             vendor's cache of prompts, which makes an unchanged list cheaper, are not counted."
        );
        Ok(ExitCode::SUCCESS)
    }

    async fn rows(&self) -> Result<Vec<CostRow>, AppError> {
        let (started, caller) = start::here(&self.settings, "views").await?;
        let snapshot = started.gateway.snapshot();
        let mut views = started.gateway.config().views.clone();
        if let Some(client) = self.client {
            views
                .values_mut()
                .for_each(|view| view.profile = Some(client));
        }
        views.insert(
            EVERYTHING.to_owned(),
            ViewConfig {
                profile: self.client,
                ..ViewConfig::default()
            },
        );
        views.insert(
            SEARCH.to_owned(),
            ViewConfig {
                profile: self.client,
                search: true,
                ..ViewConfig::default()
            },
        );
        let catalogue = ToolCatalogue::new(&snapshot.contracts, &views, Some(&snapshot.catalogue));
        let count = |text: &str| vocabulary().count(text);
        let rows = views.keys().filter_map(|name| {
            row(
                &catalogue,
                name,
                CatalogueViewer::Operator(caller.access()),
                count,
            )
        });
        Ok(rows.collect())
    }
}

fn row(
    catalogue: &ToolCatalogue,
    name: &str,
    viewer: CatalogueViewer<'_>,
    count: impl Fn(&str) -> usize,
) -> Option<CostRow> {
    let listing = catalogue.listing(&CatalogueEndpoint::View(name.into()), viewer)?;
    let written = |shape| {
        listing
            .tools_page(shape, None, usize::MAX)
            .map(|page| page.entries.into_owned())
            .unwrap_or_default()
    };
    Some(CostRow {
        name: name.to_owned(),
        tools: listing.tools.len(),
        bytes: written(ListShape::Modern).len() + "[]".len(),
        tokens: count(&written(ListShape::Plain)),
        found_tokens: listing.search().map(|_| found(&listing, count)),
    })
}

/// Returns the mean answer, if every tool is searched for with the words of its own description.
fn found(listing: &Arc<CatalogueListing>, count: impl Fn(&str) -> usize) -> usize {
    let step = listing.tools.len().div_ceil(QUESTIONS_MAX).max(1);
    let answers: Vec<usize> = listing
        .tools
        .entries()
        .iter()
        .step_by(step)
        .map(|tool| {
            let question: String = tool.tool.description.chars().take(200).collect();
            let found = listing.find(&question, FOUND);
            let listed: Vec<&str> = found.iter().map(|tool| tool.json).collect();
            count(&listed.join(","))
        })
        .collect();
    answers.iter().sum::<usize>() / answers.len().max(1)
}

fn advice(rows: &[CostRow]) -> String {
    let named = |name: &str| rows.iter().find(|row| row.name == name);
    let (Some(everything), Some(search)) = (named(EVERYTHING), named(SEARCH)) else {
        return "There are no tools to list.".to_owned();
    };
    let (list, searched) = (everything.task_tokens(), search.task_tokens());
    let all = match list <= searched {
        true => format!(
            "Listing all {} tools costs less than search: about {list} tokens a task, against {searched}.",
            everything.tools
        ),
        false => format!(
            "Search costs less than listing all {} tools: about {searched} tokens a task, against {list}.",
            everything.tools
        ),
    };
    let own = rows
        .iter()
        .filter(|row| ![EVERYTHING, SEARCH].contains(&row.name.as_str()) && row.tools > 0);
    match own
        .min_by_key(|row| row.task_tokens())
        .filter(|row| row.task_tokens() < list.min(searched))
    {
        Some(view) => format!(
            "{all} The view `{}` costs less than both, about {}, for tasks that need only its tools.",
            view.name,
            view.task_tokens()
        ),
        None => all,
    }
}
