//! `weir contracts list`: prints what is live and what waits, then what is refused.

use std::process::ExitCode;

use reqwest::Method;
use serde_json::Value;

use super::ask;
use crate::{
    Done,
    admin::{AdminTarget, cell, format_problem, map_list, table},
};

pub(super) fn list(target: &AdminTarget) -> Done {
    let all = ask(target, Method::GET, "/v1/contracts", None)?;
    if target.json {
        println!("{all}");
        return Ok(ExitCode::SUCCESS);
    }
    let row = |contract: &Value| {
        let count = contract["tools"].as_array().map_or(0, Vec::len).to_string();
        let pending = map_list(&contract["pending"], cell).join(",");
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
            pending,
        ]
    };
    let rows = map_list(&all["contracts"], row);
    print!(
        "{}",
        table(&["CONTRACT", "VERSION", "FROM", "TOOLS", "PENDING"], &rows)
    );
    for contract in all["contracts"].as_array().into_iter().flatten() {
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
    for refused in all["refused"].as_array().into_iter().flatten() {
        let kind = refused["kind"].as_str().unwrap_or_default();
        let meanwhile = match kind {
            "contract" => "the version published before is still served",
            "version" => "only this contract is not published",
            _ => "what does not need it is served",
        };
        println!("\nrefused: {kind} {}; {meanwhile}", cell(&refused["file"]));
        refused["problems"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|problem| println!("{}", format_problem(problem)));
    }
    for waiting in all["waiting"].as_array().into_iter().flatten() {
        println!(
            "\nwaiting: {}: {}",
            cell(&waiting["file"]),
            cell(&waiting["reason"])
        );
    }
    Ok(ExitCode::SUCCESS)
}
