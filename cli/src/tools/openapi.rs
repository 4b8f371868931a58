//! `weir tools openapi`: the tools of one contract as an OpenAPI document.

use std::process::ExitCode;

use clap::Args;
use weir::transport::http::openapi_document;

use crate::{AppError, CliSettings, Done, block_on, start};

/// Print the tools of a contract as OpenAPI 3.1, as they are served by plain HTTP
///
/// The gateway serves the same document at /rest/CONTRACT/openapi.json. It holds the tools that the caller sees: set WEIR_KEY where keys are needed.
#[derive(Args)]
pub(super) struct ToolsOpenapiArgs {
    /// The contract's name
    contract: String,
    #[command(flatten)]
    settings: CliSettings,
}

impl ToolsOpenapiArgs {
    pub(super) fn run(self) -> Done {
        let document = block_on(self.document())??;
        println!("{document}");
        Ok(ExitCode::SUCCESS)
    }

    async fn document(&self) -> Result<String, AppError> {
        let (started, caller) = start::here(&self.settings, "openapi").await?;
        let document = openapi_document(&started.gateway, &caller, &self.contract);
        Ok(document.ok_or_else(|| {
            let names = started
                .gateway
                .snapshot()
                .contracts
                .iter()
                .map(|contract| contract.name.clone())
                .collect::<Vec<_>>();
            anyhow::anyhow!(
                "no contract `{}` is served; there are {}",
                self.contract,
                names.join(", ")
            )
        })?)
    }
}
