//! `weir identity`: why callers were refused.

use std::process::ExitCode;

use clap::Subcommand;
use reqwest::Method;
use serde_json::Value;

use super::{
    Done,
    admin::{AdminArgs, cell, time},
};

pub(super) type Identity = AdminArgs<IdentityCommand>;

#[derive(Subcommand)]
pub(super) enum IdentityCommand {
    /// List the recent requests without a valid key or token, with the reason of each
    ///
    /// The list is that of the process that answers, since its start. A holder in brackets is the one that an invalid credential
    /// claims.
    Failures,
}

const HEAD: [&str; 5] = ["LAST", "TIMES", "ENDPOINT", "REASON", "HOLDER"];

impl Identity {
    pub(super) fn run(self) -> Done {
        let Self { command, target } = self;
        match command {
            IdentityCommand::Failures => {
                let failures = target.ask(Method::GET, "/v1/identity/failures", None)?;
                target.print_list(&failures, &HEAD, row);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(failure: &Value) -> Vec<String> {
    vec![
        time(&failure["last_ms"]),
        cell(&failure["count"]),
        cell(&failure["endpoint"]),
        cell(&failure["reason"]),
        holder(failure),
    ]
}

/// Writes the known details of the caller in one cell.
fn holder(failure: &Value) -> String {
    let part = |name: &str, label: &str| {
        let value = failure[name].as_str()?;
        Some(format!("{label} {value}"))
    };
    let parts = [
        part("key_id", "key"),
        part("subject", "subject"),
        part("client", "client"),
        part("issuer", "issuer"),
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    match failure["genuine"] == true || text.is_empty() {
        true => text,
        false => format!("({text})"),
    }
}
