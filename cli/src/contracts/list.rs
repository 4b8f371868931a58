//! `weir contracts list`: prints what is live and what waits, then what is refused.

use std::process::ExitCode;

use reqwest::Method;
use serde_json::Value;

use crate::{
    Done,
    admin::{AdminTarget, cell, each, format_problem, joined, print_table},
};

pub(super) fn list(target: &AdminTarget) -> Done {
    let all = target.ask(Method::GET, "/v1/contracts", None)?;
    if target.json {
        println!("{all}");
        return Ok(ExitCode::SUCCESS);
    }
    let row = |contract: &Value| {
        let count = contract["tools"].as_array().map_or(0, Vec::len).to_string();
        let without = if contract["revision"].is_null() {
            "none yet"
        } else {
            "retired"
        };
        let version = contract["version"].as_str().unwrap_or(without).to_owned();
        vec![
            cell(&contract["name"]),
            version,
            cell(&contract["origin"]),
            count,
            joined(&contract["pending"]),
        ]
    };
    let head = ["CONTRACT", "VERSION", "FROM", "TOOLS", "PENDING"];
    print_table(&head, &all["contracts"], row);
    for contract in each(&all["contracts"]) {
        let maker = match contract["origin"].as_str() {
            Some("file") => "file",
            Some("upstream") => "server",
            Some("code") => "plugin",
            _ => continue,
        };
        if let Some(from) = contract["rolled_back"].as_str() {
            let name = cell(&contract["name"]);
            println!(
                "\n{name} was rolled back from {from}; its {maker} is published again once it changes"
            );
        }
    }
    for refused in each(&all["refused"]) {
        let kind = refused["kind"].as_str().unwrap_or_default();
        let meanwhile = match kind {
            "contract" => "the version published before is still served",
            "version" => "only this contract is not published",
            _ => "what does not need it is served",
        };
        println!("\nrefused: {kind} {}; {meanwhile}", cell(&refused["file"]));
        for problem in each(&refused["problems"]) {
            println!("{}", format_problem(problem));
        }
    }
    for waiting in each(&all["waiting"]) {
        println!(
            "\nwaiting: {}: {}",
            cell(&waiting["file"]),
            cell(&waiting["reason"])
        );
    }
    Ok(ExitCode::SUCCESS)
}
