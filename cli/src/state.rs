//! `weir state`: what a gateway keeps: contract versions, keys, recorded shapes, the audit trail.

mod backup;
mod migrate;

use clap::{Args, Subcommand};

use super::Done;

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct StateFolder {
    #[command(subcommand)]
    command: StateCommand,
}

#[derive(Subcommand)]
enum StateCommand {
    Backup(backup::BackupArgs),
    Migrate(migrate::MigrateArgs),
}

impl StateFolder {
    pub(super) fn run(self) -> Done {
        match self.command {
            StateCommand::Backup(command) => command.run(),
            StateCommand::Migrate(command) => command.run(),
        }
    }
}
