//! `weir approvals`: writes of agents that wait for a person.

use std::process::ExitCode;

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Done,
    admin::{AdminArgs, AdminTarget, cell, each, path, time},
};

pub(super) type Approvals = AdminArgs<ApprovalsCommand>;

#[derive(Subcommand)]
pub(super) enum ApprovalsCommand {
    /// List the writes that wait, and those of the last day
    List,
    /// Show what a write would change, and the fingerprint to agree with
    Show {
        /// The plan's id, as listed
        id: String,
    },
    /// Let the agent make the write, once: it repeats its call
    Approve {
        /// The plan's id, as listed
        id: String,
        /// The fingerprint that `weir approvals show` prints
        #[arg(long)]
        fingerprint: String,
    },
    /// Reject the write
    Reject {
        /// The plan's id, as listed
        id: String,
        /// Why, in a sentence that the agent reads
        #[arg(long)]
        reason: Option<String>,
    },
}

const HEAD: [&str; 6] = ["ID", "STATUS", "AGENT", "TOOL", "CREATED", "EXPIRES"];

impl Approvals {
    pub(super) fn run(self) -> Done {
        let Self { command, target } = self;
        let plan = |id: &str| path(&["v1", "approvals", id]);
        match command {
            ApprovalsCommand::List => {
                let plans = target.ask(Method::GET, "/v1/approvals", None)?;
                target.print_list(&plans, &HEAD, row);
            }
            ApprovalsCommand::Show { id } => {
                print(&target, &target.ask(Method::GET, &plan(&id), None)?);
            }
            ApprovalsCommand::Approve { id, fingerprint } => {
                let body = json!({ "fingerprint": fingerprint });
                let path = format!("{}/approve", plan(&id));
                let approved = target.ask(Method::POST, &path, Some(&body))?;
                match target.json {
                    true => println!("{approved}"),
                    false => println!(
                        "{id} is approved: `{}` can make the write until {}, with the same call",
                        cell(&approved["agent"]),
                        time(&approved["expires_ms"])
                    ),
                }
            }
            ApprovalsCommand::Reject { id, reason } => {
                let body = json!({ "reason": reason });
                let path = format!("{}/reject", plan(&id));
                let rejected = target.ask(Method::POST, &path, Some(&body))?;
                match target.json {
                    true => println!("{rejected}"),
                    false => println!("{id} is rejected"),
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn status(plan: &Value) -> String {
    match plan["is_expired"] == true {
        true => "expired".to_owned(),
        false => cell(&plan["status"]),
    }
}

fn row(plan: &Value) -> Vec<String> {
    vec![
        cell(&plan["id"]),
        status(plan),
        cell(&plan["agent"]),
        cell(&plan["tool"]),
        time(&plan["created_ms"]),
        time(&plan["expires_ms"]),
    ]
}

fn print(target: &AdminTarget, plan: &Value) {
    if target.json {
        println!("{plan}");
        return;
    }
    println!("plan         {}, {}", cell(&plan["id"]), status(plan));
    println!(
        "agent        {} of {}",
        cell(&plan["agent"]),
        cell(&plan["tenant"])
    );
    println!(
        "tool         {} of {}",
        cell(&plan["tool"]),
        cell(&plan["contract"])
    );
    println!("expires      {}", time(&plan["expires_ms"]));
    if !plan["decided_by"].is_null() {
        println!(
            "decided      {} by {}",
            time(&plan["decided_ms"]),
            cell(&plan["decided_by"])
        );
    }
    let write = &plan["write"];
    if write.is_null() {
        return;
    }
    let key = match write["key"].is_null() {
        true => String::new(),
        false => format!(" {}", write["key"]),
    };
    println!("would        {}{key}", cell(&write["verb"]));
    for column in each(&write["changed"]) {
        let column = cell(column);
        let side = |side: &str| match write[side].get(&column) {
            Some(value) => value.to_string(),
            None => "nothing".to_owned(),
        };
        println!("  {column}: {} → {}", side("before"), side("after"));
    }
    if !write["options"].is_null() {
        println!("options      {}", write["options"]);
    }
    if write["guards"].as_array().is_some_and(Vec::is_empty) {
        println!(
            "note         the source cannot check that the record is still the same when the write runs"
        );
    }
    println!("fingerprint  {}", cell(&plan["fingerprint"]));
}
