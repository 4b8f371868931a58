//! `weir nodes`: the gateways that share a state.

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde_json::Value;

use super::{
    Done,
    admin::{AdminTarget, cell, table, time},
};

/// List the gateways that share the state, with the last change that each has taken over
#[derive(Args)]
pub(super) struct NodesArgs {
    #[command(flatten)]
    target: AdminTarget,
}

impl NodesArgs {
    pub(super) fn run(self) -> Done {
        let list = self.target.ask(Method::GET, "/v1/nodes", None)?;
        match self.target.json {
            true => println!("{list}"),
            false => print!("{}", text(&list)),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(list: &Value) -> String {
    let nodes = list["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    if nodes.is_empty() {
        return "the state is a file of this machine: there are no other nodes\n".to_owned();
    }
    let row = |node: &Value| {
        let lease = match node["live"].as_bool() {
            Some(true) => "live".to_owned(),
            _ => format!("ended {}", time(&node["lease_ms"])),
        };
        vec![
            cell(&node["name"]),
            cell(&node["id"]),
            cell(&node["version"]),
            lease,
            format!("{} of {}", node["seen"], list["generation"]),
            cell(&node["configuration"]),
            time(&node["started_ms"]),
        ]
    };
    let rows: Vec<Vec<String>> = nodes.iter().map(row).collect();
    let head = [
        "NODE",
        "ID",
        "VERSION",
        "LEASE",
        "CHANGES",
        "CONFIGURATION",
        "STARTED",
    ];
    table(&head, &rows)
}
