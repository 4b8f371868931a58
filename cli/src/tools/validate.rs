//! `weir tools validate`: what a caller would get for these arguments.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use weir_contracts::validate::ArgumentValidator;

use crate::Done;

/// Check arguments against a JSON Schema, and print what a caller would get
#[derive(Args)]
pub(super) struct ValidateArgs {
    /// Any JSON Schema 2020-12
    schema: PathBuf,
    /// The arguments, a JSON file; `-` for stdin
    arguments: PathBuf,
    /// Print a refusal as the text that a model reads, instead of JSON
    #[arg(long)]
    text: bool,
}

impl ValidateArgs {
    pub(super) fn run(self) -> Done {
        let schema = crate::compile::read(&self.schema)?;
        let schema = weir_contracts::json::read(&schema)
            .map_err(|error| anyhow::anyhow!("{error}"))
            .with_context(|| self.schema.display().to_string())?;
        let validator = ArgumentValidator::new(&schema)
            .map_err(|why| anyhow::anyhow!("{}: {why}", self.schema.display()))?;
        let arguments = crate::compile::read(&self.arguments)?;
        match validator.validate(&arguments) {
            Ok(_) if self.text => {
                println!("The arguments are valid.");
                Ok(ExitCode::SUCCESS)
            }
            Err(invalid) if self.text => {
                println!("{}", invalid.text());
                Ok(ExitCode::FAILURE)
            }
            Ok(_) => {
                println!("{{\"valid\": true}}");
                Ok(ExitCode::SUCCESS)
            }
            Err(invalid) => {
                let content: Value = serde_json::from_str(&invalid.structured_content().to_json())
                    .expect("an error is JSON");
                println!("{content:#}");
                Ok(ExitCode::FAILURE)
            }
        }
    }
}
