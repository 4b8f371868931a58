//! `weir plugin schema`: the definitions of a component's tools, as its code declares them.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde_json::Value;
use weir::config::GatewayConfig;

use super::{
    super::{AppError, CliSettings, Done, block_on},
    folder::PluginProject,
    run::{TrialGateway, refusal},
};

#[derive(Args)]
pub(in super::super) struct SchemaArgs {
    /// The component; by default what `weir plugin build` left in this folder
    file: Option<PathBuf>,
}

impl SchemaArgs {
    pub(in super::super) fn run(self, settings: &CliSettings) -> Done {
        let (component, config) = component(self.file.as_deref(), settings)?;
        let trial = TrialGateway::new(&component, config, false)?;
        let defined = block_on(async {
            let started = trial.load().await?;
            if let Some(reason) = refusal(&started) {
                return Err(AppError::from(anyhow::anyhow!(
                    "{}: {reason}",
                    component.display()
                )));
            }
            Ok(started.gateway.host().defined())
        })??;
        let Some((_, definitions)) = defined.first() else {
            return Err(anyhow::anyhow!(
                "{} has no tools: it is an adapter, whose tools are those of a contract (`weir compile`)",
                component.display()
            )
            .into());
        };
        let definitions: Value =
            serde_json::from_str(&definitions.text).map_err(anyhow::Error::from)?;
        println!(
            "{}",
            serde_json::to_string_pretty(&definitions).expect("plain JSON")
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the named file, or the one that was built here, and its configuration.
pub(super) fn component(
    file: Option<&Path>,
    settings: &CliSettings,
) -> Result<(PathBuf, GatewayConfig), AppError> {
    if let Some(file) = file {
        return Ok((file.to_owned(), settings.config()?));
    }
    let folder = PluginProject::open(Path::new("."), settings)?;
    let component = folder.component();
    if !component.exists() {
        return Err(anyhow::anyhow!(
            "{} does not exist; `weir plugin build` makes it",
            component.display()
        )
        .into());
    }
    Ok((component, folder.config))
}
