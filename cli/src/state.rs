//! `weir state`: what a gateway keeps: contract versions, keys, recorded shapes, the audit trail.

mod backup;

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
}

impl StateFolder {
    pub(super) fn run(self) -> Done {
        let Command::Backup(command) = self.command;
        command.run()
    }
}
