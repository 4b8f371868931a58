//! Versions that are still served alongside the live one: the options of publishing a draft, and their output.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::{
    AppError,
    admin::{cell, each, print_table, time},
    compile,
};

/// The treatment of the version that a draft replaces.
#[derive(Args)]
pub(crate) struct KeepOptions {
    /// Keep serving the version that it replaces, for pinned agents and at /mcp/CONTRACT@MAJOR
    #[arg(long, requires = "fingerprint")]
    keep: bool,
    /// The last day of the version that is kept, in UTC, or a time in RFC 3339
    #[arg(long, value_name = "DATE", requires = "keep")]
    sunset: Option<String>,
    /// A JSON file with the conversion of its calls; by default the one that the difference suggests
    #[arg(long, value_name = "FILE", requires = "keep")]
    shim: Option<PathBuf>,
}

impl KeepOptions {
    /// Adds the options to the body of a publication.
    pub(super) fn add_to(&self, body: &mut Value) -> Result<(), AppError> {
        if !self.keep {
            return Ok(());
        }
        body["keep"] = true.into();
        body["sunset"] = json!(self.sunset);
        if let Some(file) = &self.shim {
            let text = compile::read(file)?;
            let read = serde_json::from_str(&text);
            body["shim"] = read.map_err(|error| {
                AppError::from(anyhow::anyhow!("{} is not JSON: {error}", file.display()))
            })?;
        }
        Ok(())
    }
}

/// Prints the versions that are served alongside a live one.
pub(super) fn print_kept(kept: &Value) {
    let row = |kept: &Value| {
        let binding = match kept["shim"].is_null() {
            true => "its own binding",
            false => "a shim",
        };
        let until = match (kept["has_ended"] == true, kept["sunset_ms"].is_null()) {
            (true, _) => "ended".to_owned(),
            (false, true) => "-".to_owned(),
            (false, false) => time(&kept["sunset_ms"]),
        };
        vec![cell(&kept["version"]), binding.to_owned(), until]
    };
    if each(kept).next().is_some() {
        println!();
        print_table(&["KEPT", "BY", "UNTIL"], kept, row);
    }
}

/// Prints the versions that are kept already, and whose calls no shim would convert after a draft is published.
pub(super) fn print_lost(keeping: &Value) {
    for lost in each(&keeping["beside"]).filter(|next| next["shim"].is_null()) {
        println!(
            "version {}, which is kept, would lose its shim and continue with its own binding, unless --keep --shim FILE carries \
             it on: {}",
            cell(&lost["version"]),
            cell(&lost["missing"])
        );
    }
}
