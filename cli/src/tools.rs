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
pub(super) struct ToolsArgs {
    #[command(subcommand)]
    command: ToolsCommand,
}

#[derive(Subcommand)]
enum ToolsCommand {
    Llms(llms::LlmsArgs),
    Openapi(openapi::ToolsOpenapiArgs),
    Clients(clients::ClientsArgs),
    Cost(cost::CostArgs),
    Validate(validate::ValidateArgs),
}

impl ToolsArgs {
    pub(super) fn run(self) -> Done {
        match self.command {
            ToolsCommand::Llms(command) => command.run(),
            ToolsCommand::Openapi(command) => command.run(),
            ToolsCommand::Clients(command) => command.run(),
            ToolsCommand::Cost(command) => command.run(),
            ToolsCommand::Validate(command) => command.run(),
        }
    }
}
