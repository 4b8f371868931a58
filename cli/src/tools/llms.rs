//! `weir tools llms`: the tools of a configuration or of an endpoint, in words.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use weir::{call::CatalogueEndpoint, catalogue::CatalogueViewer};

use crate::{AppError, CliSettings, Done, block_on, start};

/// Print the tools in words, as `/llms.txt` serves them: for models and people who read a page
#[derive(Args)]
pub(super) struct LlmsArgs {
    /// The contract; by default all contracts
    contract: Option<String>,
    /// The tools of this view
    #[arg(long, value_name = "NAME", conflicts_with = "contract")]
    view: Option<String>,
    /// The MCP endpoint to ask, such as http://127.0.0.1:8484/mcp, instead of a configuration
    #[arg(long, value_name = "URL", conflicts_with_all = ["contract", "view"])]
    url: Option<String>,
    #[command(flatten)]
    settings: CliSettings,
}

impl LlmsArgs {
    pub(super) fn run(self) -> Done {
        let page = match &self.url {
            Some(url) => block_on(at_url(url))??,
            None => block_on(self.here())??,
        };
        print!("{page}");
        Ok(ExitCode::SUCCESS)
    }

    async fn here(&self) -> Result<String, AppError> {
        let (started, caller) = start::here(&self.settings, "llms").await?;
        let snapshot = started.gateway.snapshot();
        let endpoint = match &self.contract {
            Some(contract) => CatalogueEndpoint::Contract(contract.as_str().into()),
            None => {
                crate::view(&started.gateway.config(), self.view.as_deref())?.for_caller(&caller)
            }
        };
        let listing = snapshot
            .catalogue
            .listing(&endpoint, CatalogueViewer::Caller(&caller));
        let listing = listing.with_context(|| format!("nothing is served at {endpoint}"))?;
        Ok(listing.llms().to_owned())
    }
}

/// Returns the page next to the endpoint, as the holder of `WEIR_KEY` sees it.
async fn at_url(url: &str) -> anyhow::Result<String> {
    let endpoint = url.trim_end_matches('/');
    let page = match endpoint.strip_suffix("/mcp") {
        Some(server) => format!("{server}/llms.txt"),
        None => format!("{endpoint}/llms.txt"),
    };
    let mut request = crate::http_client(&page)?.get(&page);
    if let Some(key) = start::key() {
        request = request.bearer_auth(key);
    }
    let response = request
        .send()
        .await
        .with_context(|| format!("{page} cannot be reached"))?;
    let status = response.status();
    anyhow::ensure!(status.is_success(), "{page} answered {status}");
    Ok(response.text().await?)
}
