//! `weir state`: what a gateway keeps: contract versions, keys, recorded shapes, the audit trail.

mod backup;
mod migrate;

use clap::{Args, Subcommand};

use super::Done;

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct StateFolder {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Backup(backup::Backup),
    Migrate(migrate::Migrate),
}

impl StateFolder {
    pub(super) fn run(self) -> Done {
        match self.command {
            Command::Backup(command) => command.run(),
            Command::Migrate(command) => command.run(),
        }
    }
}
