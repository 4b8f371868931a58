//! `weir state migrate`: moves the state from a file to a database, or back.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::Args;
use weir_connections::config::resolve_url;
use weir_state::{FILE, GatewayState, ServerAddress, StateError};

use crate::{CliSettings, Done, block_on};

/// Copy the state of the configuration into a PostgreSQL database, or back into a folder, while no gateway runs on it
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct MigrateArgs {
    /// `postgresql://…` of an empty database, where a password may be `${env:NAME}`; or a folder, which gets a `weir.db`
    #[arg(long)]
    to: String,
    #[command(flatten)]
    settings: CliSettings,
}

impl MigrateArgs {
    pub(super) fn run(self) -> Done {
        block_on(self.migrate())?
    }

    /// The original state is not changed, so that a gateway can go back to it.
    async fn migrate(&self) -> Done {
        let config = self.settings.config()?;
        let from = match config.state_address().map_err(anyhow::Error::from)? {
            Some(address) => GatewayState::connect(&address, &config.folders.state).await,
            None => GatewayState::open_alone(&config.folders.state).await,
        };
        let from = from.map_err(anyhow::Error::from)?;
        let to = self
            .open_target(&config.base, &config.folders.state)
            .await?;
        let copied = from.copy_to(&to).await.map_err(anyhow::Error::from)?;
        for table in &copied {
            let digest = &table.digest[..16];
            println!("{:16} {:>9} rows  sha256 {digest}…", table.name, table.rows);
        }
        let next = match self.is_database() {
            true => {
                "write it as `url` of [state] into the configuration of every gateway, and leave out `[folders] contracts`"
            }
            false => "make it `state` of [folders], and leave out `url` of [state]",
        };
        println!("copied and compared; {next}");
        Ok(ExitCode::SUCCESS)
    }

    fn is_database(&self) -> bool {
        ["postgresql://", "postgres://", "env:", "file:"]
            .iter()
            .any(|start| self.to.starts_with(start))
    }

    async fn open_target(
        &self,
        base: &std::path::Path,
        folder: &std::path::Path,
    ) -> anyhow::Result<GatewayState> {
        if self.is_database() {
            let url = resolve_url(&self.to, base).map_err(|why| anyhow::anyhow!("--to: {why}"))?;
            let address =
                ServerAddress::parse(&url).map_err(|why| anyhow::anyhow!("--to: {why}"))?;
            return Ok(GatewayState::connect(&address, folder).await?);
        }
        let to = PathBuf::from(&self.to);
        if to.join(FILE).exists() {
            anyhow::bail!(
                "there is a state in {} already: name another folder",
                to.display()
            );
        }
        let opened: Result<GatewayState, StateError> = GatewayState::open(&to).await;
        opened.with_context(|| format!("{} cannot be made", to.display()))
    }
}
