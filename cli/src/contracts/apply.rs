//! `weir contracts apply`: submits a folder of contract files to a gateway that reads none itself.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use reqwest::Method;
use serde_json::json;

use super::{HELD, submitted};
use crate::{Done, admin::AdminTarget, compile};

/// Submit every contract file of a folder, as `submit` does with one: for gateways that share their state
#[derive(Args)]
pub(crate) struct ApplyArgs {
    /// The folder of `*.yaml`, `*.yml` and `*.json` files
    folder: PathBuf,
    /// Hold all changes, even if they could go live at once
    #[arg(long)]
    hold: bool,
}

impl ApplyArgs {
    /// Submits the files in the order of their names. It ends at the first that is refused; the exit code shows that one waits.
    pub(super) fn run(self, target: &AdminTarget) -> Done {
        let files = weir::control::contract_files(&self.folder).map_err(|problem| vec![problem])?;
        if files.is_empty() {
            let folder = self.folder.display();
            return Err(anyhow::anyhow!("there is no contract file in {folder}").into());
        }
        let mut done = ExitCode::SUCCESS;
        for file in files {
            let source = compile::read(&file)?;
            let body = json!({ "source": source, "hold": self.hold });
            let answer = target.ask(Method::POST, "/v1/contracts", Some(&body));
            let answer = answer.inspect_err(|_| eprintln!("{}:", file.display()))?;
            submitted(target, &answer)?;
            if answer["verdict"] == "held" {
                done = ExitCode::from(HELD);
            }
        }
        Ok(done)
    }
}
