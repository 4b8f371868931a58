//! `weir keys`: one key per agent.

use std::process::ExitCode;

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Done,
    admin::{AdminArgs, cell, each, path, time},
};

pub(super) type Keys = AdminArgs<KeysCommand>;

#[derive(Subcommand)]
pub(super) enum KeysCommand {
    /// Make a key for an agent and print it, once
    ///
    /// Contracts and tools that do not exist yet may be named; a warning lists them.
    Create {
        /// The holder of the key: a name for logs and the audit trail
        #[arg(long)]
        agent: String,
        /// The tenant of the agent; by default the agent itself
        #[arg(long)]
        tenant: Option<String>,
        /// A contract the agent may use; may be repeated. Without --contract and --tool: everything
        #[arg(id = "allowed_contracts", long = "contract", value_name = "NAME")]
        contracts: Vec<String>,
        /// A single tool the agent may use; may be repeated
        #[arg(id = "allowed_tools", long = "tool", value_name = "NAME")]
        tools: Vec<String>,
        /// The view that the agent is shown at /mcp, instead of everything that it may use
        #[arg(long, value_name = "NAME")]
        view: Option<String>,
        /// The rate of all requests of the agent, such as 600/min: a list counts as well as a call
        #[arg(long, value_name = "RATE")]
        rate: Option<String>,
        /// The limit of one tool instead of its own, such as list_tickets=10/min; may be repeated
        #[arg(long = "tool-rate", value_name = "TOOL=RATE", value_parser = pair)]
        tool_rates: Vec<(String, String)>,
        /// Calls in a day, UTC
        #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u32).range(1..))]
        quota_day: Option<u32>,
        /// Calls in a month, UTC
        #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u32).range(1..))]
        quota_month: Option<u32>,
        /// Days until the key expires; without it, never
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
        expires_days: Option<u32>,
    },
    /// List all keys with their access and limits, without their secrets
    List,
    /// Revoke a key: the next call with it is refused
    Revoke {
        /// The key's id, as listed
        id: String,
    },
    /// Let an agent continue with one major version of a contract, whatever becomes live
    Pin {
        /// The agent, by the name that its keys and tokens have
        agent: String,
        /// The contract and the major version, such as support@1
        #[arg(value_name = "CONTRACT@MAJOR", value_parser = version)]
        version: (String, u32),
    },
    /// Let a pinned agent have the live version of a contract
    Unpin {
        /// The agent, by the name that its keys and tokens have
        agent: String,
        /// The contract's name
        contract: String,
    },
    /// List the agents that are pinned to a version
    Pins,
}

/// Reads a contract with a major version.
pub(super) fn version(text: &str) -> Result<(String, u32), String> {
    let read = text.split_once('@').and_then(|(contract, major)| {
        let major = major.parse().ok()?;
        (!contract.is_empty()).then(|| (contract.to_owned(), major))
    });
    read.ok_or_else(|| "write CONTRACT@MAJOR, such as support@1".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (tool, rate) = text.split_once('=').ok_or("write TOOL=RATE")?;
    Ok((tool.to_owned(), rate.to_owned()))
}

impl Keys {
    pub(super) fn run(self) -> Done {
        let Self { command, target } = self;
        match command {
            KeysCommand::Create {
                agent,
                tenant,
                contracts,
                tools,
                view,
                rate,
                tool_rates,
                quota_day,
                quota_month,
                expires_days,
            } => {
                let narrow = !contracts.is_empty() || !tools.is_empty();
                let mut limits = json!({ "tools": tool_rates.into_iter().collect::<std::collections::BTreeMap<_, _>>() });
                if let Some(rate) = rate {
                    limits["rate"] = rate.into();
                }
                for (name, quota) in [("quota_day", quota_day), ("quota_month", quota_month)] {
                    if let Some(calls) = quota {
                        limits[name] = calls.into();
                    }
                }
                let body = json!({
                    "agent": agent,
                    "tenant": tenant,
                    "access": narrow.then(|| json!({ "contracts": contracts, "tools": tools })),
                    "view": view,
                    "limits": limits,
                    "expires_in_s": expires_days.map(|days| i64::from(days) * 86_400),
                });
                let made = target.ask(Method::POST, "/v1/keys", Some(&body))?;
                if target.json {
                    println!("{made}");
                } else {
                    println!("{}", cell(&made["key"]));
                    for warning in each(&made["warnings"]) {
                        eprintln!("warning: {}", cell(warning));
                    }
                    eprintln!(
                        "Keep it: it is not shown again. It is sent as `Authorization: Bearer …`, on stdio as WEIR_KEY."
                    );
                }
            }
            KeysCommand::List => {
                let keys = target.ask(Method::GET, "/v1/keys", None)?;
                target.print_list(&keys, &HEAD, row);
            }
            KeysCommand::Pin {
                agent,
                version: (contract, major),
            } => {
                let path = path(&["v1", "pins", &agent, &contract]);
                target.ask(Method::PUT, &path, Some(&json!({ "major": major })))?;
                if !target.json {
                    println!("{agent} remains on version {major} of {contract}");
                }
            }
            KeysCommand::Unpin { agent, contract } => {
                let path = path(&["v1", "pins", &agent, &contract]);
                target.ask(Method::DELETE, &path, None)?;
                if !target.json {
                    println!("{agent} has the live version of {contract} from now on");
                }
            }
            KeysCommand::Pins => {
                let all = target.ask(Method::GET, "/v1/versions", None)?;
                target.print_list(&all["pins"], &["AGENT", "VERSION", "SINCE", "BY"], pin_row);
            }
            KeysCommand::Revoke { id } => {
                target.ask(Method::DELETE, &path(&["v1", "keys", &id]), None)?;
                if !target.json {
                    println!("{id} is revoked: the next call with it is refused");
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

const HEAD: [&str; 9] = [
    "ID", "AGENT", "TENANT", "ACCESS", "VIEW", "LIMITS", "CREATED", "EXPIRES", "REVOKED",
];

fn pin_row(pin: &Value) -> Vec<String> {
    vec![
        cell(&pin["agent"]),
        format!("{}@{}", cell(&pin["contract"]), cell(&pin["major"])),
        time(&pin["created_ms"]),
        cell(&pin["created_by"]),
    ]
}

fn row(key: &Value) -> Vec<String> {
    let access = match &key["access"] {
        Value::Null => "everything".to_owned(),
        list => {
            let names = ["contracts", "tools"]
                .into_iter()
                .flat_map(|kind| each(&list[kind]));
            names.map(cell).collect::<Vec<_>>().join(",")
        }
    };
    let rate = key["limits"]["rate"].as_str().map(str::to_owned);
    let tools = key["limits"]["tools"].as_object().into_iter().flatten();
    let quotas = [("quota_day", "day"), ("quota_month", "month")]
        .into_iter()
        .filter_map(|(name, period)| Some(format!("{}/{period}", key["limits"][name].as_u64()?)));
    let limits = rate
        .into_iter()
        .chain(quotas)
        .chain(tools.map(|(tool, rate)| format!("{tool}={}", cell(rate))));
    vec![
        cell(&key["id"]),
        cell(&key["agent"]),
        cell(&key["tenant"]),
        access,
        cell(&key["view"]),
        limits.collect::<Vec<_>>().join(","),
        time(&key["created_ms"]),
        time(&key["expires_ms"]),
        time(&key["revoked_ms"]),
    ]
}
