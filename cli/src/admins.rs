//! `weir admins`: manages the keys of people who operate a gateway.

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Done,
    admin::{AdminArgs, cell, path, time},
    block_on,
};

pub(super) type Admins = AdminArgs<AdminsCommand>;

#[derive(Subcommand)]
pub(super) enum AdminsCommand {
    /// Make a key for an admin and print it, once
    #[command(visible_alias = "add")]
    Create {
        /// The holder of the key: a name for logs and the audit trail
        #[arg(long)]
        name: String,
        /// The role; each role has the rights of those before it, but only approvers and operators decide about writes
        #[arg(long, value_enum)]
        role: RoleWord,
        /// Let them decide about writes that wait for a person, in addition to what the role allows
        #[arg(long)]
        approves: bool,
    },
    /// List all keys of admins with their roles, without their secrets
    List,
    /// Print an address that signs in at the console, once, within a minute
    Link,
    /// Revoke a key: the next request with it is refused
    Revoke {
        /// The key's id, as listed
        id: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RoleWord {
    /// Decide about writes that wait for a person, and nothing else
    Approver,
    /// Read the audit trail, and nothing else
    Auditor,
    /// Read
    Viewer,
    /// Submit contracts, publish what needs a second look, try calls
    Editor,
    /// Everything: breaking changes, keys, plugins
    Operator,
}

impl RoleWord {
    fn word(self) -> &'static str {
        match self {
            Self::Approver => "approver",
            Self::Auditor => "auditor",
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Operator => "operator",
        }
    }
}

impl Admins {
    pub(super) fn run(self) -> Done {
        let Self { command, target } = self;
        let api = target.api()?;
        match command {
            AdminsCommand::Create {
                name,
                role,
                approves,
            } => {
                let mut body = json!({ "name": name, "role": role.word() });
                if approves {
                    body["approves"] = true.into();
                }
                let made = block_on(api.ask(Method::POST, "/v1/admins", Some(&body)))??;
                if target.json {
                    println!("{made}");
                } else {
                    println!("{}", cell(&made["key"]));
                    eprintln!(
                        "Keep it: it is not shown again. Commands take it as WEIR_ADMIN_KEY, the API as `Authorization: \
                         Bearer …`."
                    );
                }
            }
            AdminsCommand::List => {
                let keys = block_on(api.ask(Method::GET, "/v1/admins", None))??;
                target.print_list(&keys, &HEAD, row);
            }
            AdminsCommand::Link => {
                let made = block_on(api.ask(Method::POST, "/v1/session/link", None))??;
                match target.json {
                    true => println!("{made}"),
                    false => println!("{}", api.address(&cell(&made["path"]))),
                }
            }
            AdminsCommand::Revoke { id } => {
                block_on(api.ask(Method::DELETE, &path(&["v1", "admins", &id]), None))??;
                if !target.json {
                    println!("{id} is revoked: the next request with it is refused");
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

const HEAD: [&str; 6] = ["ID", "NAME", "ROLE", "CREATED", "BY", "REVOKED"];

fn row(key: &Value) -> Vec<String> {
    let role = match (key["role"].as_str(), &key["approves"]) {
        (Some(role @ ("auditor" | "viewer" | "editor")), Value::Bool(true)) => {
            format!("{role}, approver")
        }
        _ => cell(&key["role"]),
    };
    vec![
        cell(&key["id"]),
        cell(&key["name"]),
        role,
        time(&key["created_ms"]),
        cell(&key["created_by"]),
        time(&key["revoked_ms"]),
    ]
}
