//! `weir policy`: policies against the contracts that are served, their Cedar schema, and tables of cases.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};
use weir::{app::GatewayApp, control::operations::policies};

use super::{
    AppError, Done,
    admin::{AdminArgs, AdminTarget, cell, format_problem},
    block_on, start,
};

pub(super) type Policy = AdminArgs<PolicyCommand>;

#[derive(Subcommand)]
pub(super) enum PolicyCommand {
    /// Check the policies against the contracts: each problem with its file, line and policy
    ///
    /// The exit code is 1 if a policy has a problem (for CI). With --admin, the policies of a running gateway are checked.
    Check,
    /// Try a table of cases: a caller, a call, and whether it is allowed
    ///
    /// The exit code is 1 if a case does not end as the table expects. docs/policy.md has an example.
    Test {
        /// The cases, as YAML or JSON
        file: PathBuf,
    },
    /// Print the Cedar schema made from the contracts
    Schema,
}

impl Policy {
    pub(super) fn run(self) -> Done {
        let Self { command, target } = self;
        match command {
            PolicyCommand::Check => check(&target),
            PolicyCommand::Test { file } => test(&target, &file),
            PolicyCommand::Schema => {
                print!("{}", block_on(schema(&target))??);
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn check(target: &AdminTarget) -> Done {
    let status = block_on(status(target))??;
    let list = |name: &str| status[name].as_array().cloned().unwrap_or_default();
    let (problems, notes) = (list("problems"), list("notes"));
    if target.json {
        println!("{status}");
    } else {
        for problem in &problems {
            println!("{}", format_problem(problem));
        }
        for note in &notes {
            let [tool, argument, why] = ["tool", "argument", "why"].map(|name| cell(&note[name]));
            println!("note: {tool}: {argument}: {why}");
        }
        let count = list("policies").len();
        let mode = cell(&status["mode"]);
        println!(
            "{count} policies in force, mode {mode}; {} problems",
            problems.len()
        );
    }
    Ok(exit_code(problems.is_empty()))
}

fn test(target: &AdminTarget, file: &PathBuf) -> Done {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("{shown} cannot be read"))?;
    let cases: Value = serde_saphyr::from_str(&text)
        .map_err(|error| anyhow::anyhow!("{shown} is not YAML: {error}"))?;
    let results = block_on(try_cases(target, cases))??;
    let results = results.as_array().cloned().unwrap_or_default();
    let failed = results.iter().filter(|result| result["passed"] != true);
    let failed = failed.count();
    if target.json {
        println!("{}", Value::from(results));
        return Ok(exit_code(failed == 0));
    }
    for result in &results {
        let mark = if result["passed"] == true {
            "ok"
        } else {
            "FAILED"
        };
        let [name, found, expected] = ["name", "found", "expected"].map(|name| cell(&result[name]));
        let ids = result["policies"].as_array().into_iter().flatten();
        let ids: Vec<String> = ids.map(cell).collect();
        let by = match ids.is_empty() {
            true => String::new(),
            false => format!(" by {}", ids.join(", ")),
        };
        match result["passed"] == true {
            true => println!("{mark:<6} {name}: {found}{by}"),
            false => {
                println!("{mark:<6} {name}: {found}{by}, but the table expects {expected}")
            }
        }
    }
    println!("{} cases, {failed} failed", results.len());
    Ok(exit_code(failed == 0))
}

fn exit_code(is_sound: bool) -> ExitCode {
    match is_sound {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Opens the gateway of a configuration, with everything that it would serve.
async fn opened(target: &AdminTarget) -> Result<GatewayApp, AppError> {
    let config = target.settings.config_to_serve(start::NAME_ONE)?;
    let started = start::briefly(config, Some("policy")).await?;
    started.load(false).await?;
    Ok(started)
}

async fn status(target: &AdminTarget) -> Result<Value, AppError> {
    if target.is_elsewhere() {
        return Ok(target.api()?.ask(Method::GET, "/v1/policy", None).await?);
    }
    let started = opened(target).await?;
    let status = policies::status(&started.control);
    Ok(serde_json::to_value(status).expect("plain data"))
}

async fn schema(target: &AdminTarget) -> Result<String, AppError> {
    if target.is_elsewhere() {
        let api = target.api()?;
        let answer = api.ask(Method::GET, "/v1/policy/schema", None).await?;
        return Ok(answer["schema"].as_str().unwrap_or_default().to_owned());
    }
    let started = opened(target).await?;
    Ok(policies::schema(&started.control))
}

async fn try_cases(target: &AdminTarget, cases: Value) -> Result<Value, AppError> {
    if target.is_elsewhere() {
        let body = json!({ "cases": cases });
        let api = target.api()?;
        return Ok(api
            .ask(Method::POST, "/v1/policy/test", Some(&body))
            .await?);
    }
    let cases: Vec<policies::PolicyCase> =
        serde_json::from_value(cases).context("the cases cannot be read")?;
    let started = opened(target).await?;
    let results = policies::test(&started.control, &cases);
    let results = results.map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(serde_json::to_value(results).expect("plain data"))
}
