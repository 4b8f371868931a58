//! `weir tools clients`: whether clients take the tools of this catalogue.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};
use weir::catalogue::CatalogueViewer;
use weir_contracts::{
    client::{ClientProfile, ClientVerdict, LoweredTool, lower},
    compiled_document,
};

use crate::{
    AppError, Done,
    admin::table,
    block_on, client_profile,
    compile::{ShapeArgs, read},
    diff::document,
    start,
};

/// Say for each tool and client whether it accepts the tool, what it does not see, or why it refuses it
///
/// The exit code is 1 if a client refuses a tool (for CI). docs/views.md has the rules and their sources.
#[derive(Args)]
pub(super) struct ClientsArgs {
    /// A contract, a compiled document, any server's tools/list answer or what `weir extract` prints, instead of what a
    /// configuration serves; `-` for stdin
    #[arg(conflicts_with = "view")]
    file: Option<PathBuf>,
    /// Only this client; may be repeated
    #[arg(long = "client", value_name = "CLIENT", value_parser = client_profile)]
    clients: Vec<ClientProfile>,
    /// The tools of one view, for the clients of its profile if it has one
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
    /// Exit with code 1 also if a client does not see everything
    #[arg(long)]
    no_loss: bool,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shapes: ShapeArgs,
}

/// A tool as each client takes it.
struct ClientSupport {
    tool: String,
    /// The contract that serves it; of a file nothing is served.
    contract: Option<String>,
    clients: Vec<(ClientProfile, LoweredTool)>,
}

impl ClientsArgs {
    pub(super) fn run(self) -> Done {
        let (profiles, checked) = match &self.file {
            Some(_) => self.of_file()?,
            None => block_on(self.served())??,
        };
        if self.json {
            let tools: Vec<Value> = checked.iter().map(ClientSupport::json).collect();
            println!(
                "{}",
                serde_json::to_string_pretty(&tools).expect("plain JSON")
            );
        } else {
            say(&profiles, &checked);
        }
        let mut verdicts = checked
            .iter()
            .flat_map(|checked| &checked.clients)
            .map(|(_, lowered)| lowered.verdict());
        let fails = |verdict| {
            verdict == ClientVerdict::Refuse || (self.no_loss && verdict == ClientVerdict::Loss)
        };
        Ok(if verdicts.any(fails) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    fn of_file(&self) -> Result<(Vec<ClientProfile>, Vec<ClientSupport>), AppError> {
        let file = self.file.as_deref().expect("a file is named");
        let text = read(file)?;
        let document = match serde_json::from_str(&text).ok().and_then(document) {
            Some(document) => document,
            None => compiled_document(
                &self
                    .shapes
                    .contract_as_known(&file.display().to_string(), &text)?
                    .0,
            ),
        };
        let profiles = if self.clients.is_empty() {
            ClientProfile::ALL.to_vec()
        } else {
            self.clients.clone()
        };
        let tools = document["tools"].as_array().into_iter().flatten();
        let checked = tools.map(|tool| {
            let name = tool["name"].as_str().unwrap_or_default();
            ClientSupport::new(name, None, &tool["inputSchema"], &profiles)
        });
        Ok((profiles.clone(), checked.collect()))
    }

    async fn served(&self) -> Result<(Vec<ClientProfile>, Vec<ClientSupport>), AppError> {
        let (started, caller) = start::here(&self.shapes.settings, "check").await?;
        let mut config = (**started.gateway.config()).clone();
        let endpoint = crate::view(&config, self.view.as_deref())?;
        let view = self
            .view
            .as_deref()
            .and_then(|view| config.views.get_mut(view));
        let of_view = view.and_then(|view| view.profile.take()); // what its clients refuse is reported too
        let mut profiles = self.clients.clone();
        if profiles.is_empty() {
            profiles = of_view.map_or_else(|| ClientProfile::ALL.to_vec(), |profile| vec![profile]);
        }
        let snapshot = started.gateway.snapshot();
        let catalogue = weir::catalogue::ToolCatalogue::new(
            &snapshot.contracts,
            &config.views,
            Some(&snapshot.catalogue),
        );
        let listing = catalogue.listing(&endpoint, CatalogueViewer::Caller(&caller));
        let listing = listing.with_context(|| format!("nothing is served at {endpoint}"))?;
        let tools = listing.tools.entries().iter();
        let checked = tools.map(|tool| {
            ClientSupport::new(
                &tool.name,
                Some(&tool.contract),
                &tool.tool.input_schema.value(),
                &profiles,
            )
        });
        Ok((profiles.clone(), checked.collect()))
    }
}

impl ClientSupport {
    fn new(tool: &str, contract: Option<&str>, input: &Value, profiles: &[ClientProfile]) -> Self {
        let clients = profiles
            .iter()
            .map(|profile| (*profile, lower(tool, input, *profile)));
        Self {
            tool: tool.to_owned(),
            contract: contract.map(str::to_owned),
            clients: clients.collect(),
        }
    }

    fn json(&self) -> Value {
        let clients = self.clients.iter().map(|(profile, lowered)| {
            let verdict = json!({ "verdict": lowered.verdict(), "remarks": lowered.remarks });
            (profile.word().to_owned(), verdict)
        });
        json!({ "tool": self.tool, "contract": self.contract, "clients": clients.collect::<Map<_, _>>() })
    }
}

fn say(profiles: &[ClientProfile], checked: &[ClientSupport]) {
    let head: Vec<&str> = std::iter::once("TOOL")
        .chain(profiles.iter().map(|profile| profile.word()))
        .collect();
    let rows = checked.iter().map(|checked| {
        let verdicts = checked
            .clients
            .iter()
            .map(|(_, lowered)| word(lowered.verdict()).to_owned());
        std::iter::once(checked.tool.clone())
            .chain(verdicts)
            .collect::<Vec<String>>()
    });
    print!("{}", table(&head, &rows.collect::<Vec<_>>()));
    for ClientSupport { tool, clients, .. } in checked {
        for (profile, lowered) in clients {
            for remark in &lowered.remarks {
                let place = if remark.at.is_empty() {
                    String::new()
                } else {
                    format!(" at {}", remark.at)
                };
                let verdict = if remark.refuses { "refuse" } else { "loss" };
                println!(
                    "{verdict:<6} {} for {}{place}: {} ({})",
                    tool,
                    profile.word(),
                    remark.message,
                    remark.rule
                );
            }
        }
    }
    for profile in profiles {
        if let Some(most) = profile.tools_max().filter(|most| checked.len() > *most) {
            println!(
                "note   {} takes {most} tools at once, and there are {}: give it a view",
                profile.word(),
                checked.len()
            );
        }
    }
}

fn word(verdict: ClientVerdict) -> &'static str {
    match verdict {
        ClientVerdict::Accept => "accept",
        ClientVerdict::Loss => "loss",
        ClientVerdict::Refuse => "refuse",
    }
}
