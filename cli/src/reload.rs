//! `weir reload`: a running gateway reads its configuration again.

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde_json::Value;

use super::{
    Done,
    admin::{AdminTarget, cell, each},
    block_on,
};

/// Everything that may change while serving is applied, or nothing if there is a problem. SIGHUP does the same, and logs the
/// outcome.
#[derive(Args)]
pub(super) struct ReloadArgs {
    #[command(flatten)]
    target: AdminTarget,
}

impl ReloadArgs {
    pub(super) fn run(self) -> Done {
        let api = self.target.api_without_faults()?;
        let reloaded = block_on(api.ask(Method::POST, "/v1/config/reload", None))??;
        match self.target.json {
            true => println!("{reloaded}"),
            false => print!("{}", text(&reloaded)),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(reloaded: &Value) -> String {
    let part = |key: &str| each(&reloaded[key]).map(cell).collect::<Vec<_>>();
    let (changed, waiting) = (part("changed"), part("needs_restart"));
    let mut text = match changed.is_empty() {
        true => "no key that a reload applies has changed\n".to_owned(),
        false => format!("applied: {}\n", changed.join(", ")),
    };
    if !waiting.is_empty() {
        text.push_str(&format!(
            "applied at the next start: {}\n",
            waiting.join(", ")
        ));
    }
    text.extend(part("plugins").iter().map(|plugin| format!("{plugin}\n")));
    text
}
