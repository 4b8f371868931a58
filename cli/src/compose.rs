//! `weir compose`: the unified document of a server, from its raw lists, without a connection.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use weir_contracts::{
    Problem,
    offer::{self, Composed, Lists},
};

use super::{Done, compile::read};

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Compose {
    /// Raw list results, `{tools?, resources?, resourceTemplates?, prompts?, server?}`; `-` for stdin
    lists: PathBuf,
    /// On one line
    #[arg(long)]
    compact: bool,
}

impl Compose {
    pub(super) fn run(self) -> Done {
        let name = self.lists.display().to_string();
        let (lists, problems) =
            Lists::read(&name, &read(&self.lists)?).map_err(|problem| vec![problem])?;
        let mut composed = offer::compose(&name, &lists);
        composed.problems.splice(0..0, problems);
        print(&composed, self.compact);
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the document to stdout, and what was left out of it to stderr.
pub(super) fn print(composed: &Composed, compact: bool) {
    match compact {
        true => println!("{}", composed.document.compact()),
        false => print!("{}", composed.document.pretty()),
    }
    composed
        .problems
        .iter()
        .map(Problem::to_string)
        .for_each(|problem| eprintln!("{problem}"));
}
