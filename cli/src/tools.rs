//! `weir tools`: the tools that are served, in words, for other protocols, for clients and for a model's budget.

mod clients;
mod cost;
mod llms;
mod openapi;
mod validate;

use clap::{Args, Subcommand};

use super::Done;

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Tools {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Llms(llms::Llms),
    Openapi(openapi::Openapi),
    Clients(clients::Clients),
    Cost(cost::Cost),
    Validate(validate::Validate),
}

impl Tools {
    pub(super) fn run(self) -> Done {
        match self.command {
            Command::Llms(command) => command.run(),
            Command::Openapi(command) => command.run(),
            Command::Clients(command) => command.run(),
            Command::Cost(command) => command.run(),
            Command::Validate(command) => command.run(),
        }
    }
}
