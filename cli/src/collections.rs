//! `weir collections`: lists the sources of live contracts, and whether they still are as they were published.

use std::process::ExitCode;

use clap::Subcommand;
use reqwest::Method;
use serde_json::Value;

use super::{
    Done,
    admin::{AdminArgs, AdminTarget, cell, each, path, print_table},
};

pub(super) type Collections = AdminArgs<CollectionsCommand>;

#[derive(Subcommand)]
pub(super) enum CollectionsCommand {
    /// List the collections of all live contracts, and whether their sources had changed at the last look
    List,
    /// Look at a source now: what it no longer serves of the published contract, and which edits would repair that
    ///
    /// The exit code is 3 if the source has changed.
    Describe {
        /// The contract's name
        contract: String,
        /// The collection's name in the contract
        collection: String,
    },
}

/// The source has changed.
const DRIFTED: u8 = 3;

impl Collections {
    pub(super) fn run(self) -> Done {
        let Self { command, target } = self;
        match command {
            CollectionsCommand::List => {
                let all = target.ask(Method::GET, "/v1/collections", None)?;
                list(&target, &all);
                Ok(ExitCode::SUCCESS)
            }
            CollectionsCommand::Describe {
                contract,
                collection,
            } => {
                let path = path(&["v1", "collections", &contract, &collection, "describe"]);
                let described = target.ask(Method::POST, &path, None)?;
                match target.json {
                    true => println!("{described}"),
                    false => println!("{}", drift(&described).trim_end()),
                }
                let serves = described["drift"].as_array().is_none_or(Vec::is_empty);
                Ok(if serves {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::from(DRIFTED)
                })
            }
        }
    }
}

fn list(target: &AdminTarget, all: &Value) {
    if target.json {
        println!("{all}");
        return;
    }
    let row = |collection: &Value| {
        let class = collection["difference"]["class"]
            .as_str()
            .map(|class| format!("drifted, {class}"));
        vec![
            cell(&collection["contract"]),
            cell(&collection["collection"]),
            cell(&collection["adapter"]),
            if collection["write"] == true {
                "yes".to_owned()
            } else {
                String::new()
            },
            class.unwrap_or_else(|| "as published".to_owned()),
        ]
    };
    let head = ["CONTRACT", "COLLECTION", "ADAPTER", "WRITE", "SOURCE"];
    print_table(&head, all, row);
    for collection in each(all).filter(|collection| !collection["difference"].is_null()) {
        print!(
            "\n{} {}\n{}",
            cell(&collection["contract"]),
            cell(&collection["collection"]),
            drift(collection)
        );
    }
}

/// Writes how a source has changed, and how to continue.
pub(super) fn drift(of: &Value) -> String {
    let lines = |key: &str| each(&of[key]).map(cell).collect::<Vec<_>>();
    if of["difference"].is_null() {
        return "the source serves what was published\n".to_owned();
    }
    let mut text: String = lines("drift")
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    text.push_str(&super::diff::text(&of["difference"]));
    text.push_str("calls that meet this are refused meanwhile: `source_changed`\n");
    if let Some(draft) = of["draft"].as_str() {
        text.push_str(&format!(
            "to continue with the source as it is now:\n  weir contracts publish {draft}\n"
        ));
    }
    for (at, edit) in lines("edits").iter().enumerate() {
        text.push_str(&format!(
            "{}  {edit}\n",
            if at == 0 {
                "to repair it, edit the form:\n"
            } else {
                ""
            }
        ));
    }
    text
}
