//! `weir contracts`: shows what is served and what waits, and publishes or rejects it.

mod apply;
mod kept;
mod list;
mod lock;

use std::{path::PathBuf, process::ExitCode};

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};
use weir::control::gate::{ChangeClass, DraftStatus};

use self::{
    kept::{KeepOptions, print_kept, print_lost},
    list::list,
};
use super::{
    Done,
    admin::{AdminArgs, AdminTarget, cell, each, path, print_table, time},
    offered,
};

pub(super) type Contracts = AdminArgs<ContractsCommand>;

#[derive(Subcommand)]
pub(super) enum ContractsCommand {
    /// List all contracts, the live version of each and what waits; then what is refused
    List,
    /// Show one contract with its versions and drafts, and how its sources have changed; or one draft, by its id. The exit
    /// code is 3 if a draft waits
    Show {
        /// The contract's name, or a draft's id
        name: String,
    },
    /// Submit a contract file: it goes live if it breaks nothing, and is held if it may
    Submit {
        /// The contract file; `-` for stdin
        file: PathBuf,
        /// Hold it even if it could go live at once
        #[arg(long)]
        hold: bool,
    },
    Apply(apply::ApplyArgs),
    /// Publish a draft that waits, exactly as it was reported
    Publish {
        /// The draft's id
        draft: String,
        /// The fingerprint of the difference you looked at; without it the report is printed and nothing happens
        #[arg(long)]
        fingerprint: Option<String>,
        #[command(flatten)]
        keep: KeepOptions,
    },
    /// Discard a draft that waits
    Discard {
        /// The draft's id
        draft: String,
    },
    /// Make an earlier version live again
    Rollback {
        /// The contract's name
        name: String,
        /// The version to go back to
        #[arg(long)]
        to: String,
        /// The fingerprint of the difference; without it the difference is printed and nothing happens
        #[arg(long)]
        fingerprint: Option<String>,
    },
    /// Retire a contract: its tools go away, its history stays
    Retire {
        /// The contract's name
        name: String,
        /// The fingerprint of the retirement you reviewed; without it the retirement is held as a draft
        #[arg(long)]
        fingerprint: Option<String>,
    },
    /// Move the last day of a version that is served alongside the live one
    Sunset {
        /// The contract and the major version, such as support@1
        #[arg(value_name = "CONTRACT@MAJOR", value_parser = super::keys::version)]
        version: (String, u32),
        /// The last day, in UTC, a time in RFC 3339, or `now`
        #[arg(long, value_name = "DATE", required_unless_present = "never")]
        at: Option<String>,
        /// Serve it until another date is set
        #[arg(long, conflicts_with = "at")]
        never: bool,
    },
    Lock(lock::LockArgs),
}

/// The exit code if a draft waits.
const HELD: u8 = 3;

impl Contracts {
    pub(super) fn run(self) -> Done {
        let Self { command, target } = self;
        match command {
            ContractsCommand::List => list(&target),
            ContractsCommand::Lock(command) => {
                if target.is_elsewhere() {
                    eprintln!("note: locks are of the state folder here; --admin is not asked");
                }
                command.run(target.settings())
            }
            // No contract's name has an underscore.
            ContractsCommand::Show { name } if name.starts_with("d_") => show_draft(&target, &name),
            ContractsCommand::Show { name } => show(&target, &name),
            ContractsCommand::Submit { file, hold } => {
                let source = super::compile::read(&file)?;
                let body = json!({ "source": source, "hold": hold });
                let answer = target.ask(Method::POST, "/v1/contracts", Some(&body))?;
                submitted(&target, &answer)
            }
            ContractsCommand::Apply(command) => command.run(&target),
            ContractsCommand::Publish {
                draft,
                fingerprint: None,
                ..
            } => show_draft(&target, &draft),
            ContractsCommand::Publish {
                draft,
                fingerprint: Some(fingerprint),
                keep,
            } => publish(&target, &draft, &fingerprint, Some(&keep)),
            ContractsCommand::Sunset {
                version: (contract, major),
                at,
                ..
            } => {
                let path = path(&["v1", "versions", &contract, &major.to_string()]);
                let body = json!({ "sunset": at });
                target.ask(Method::PUT, &path, Some(&body))?;
                Ok(ExitCode::SUCCESS)
            }
            ContractsCommand::Discard { draft } => {
                let path = path(&["v1", "drafts", &draft, "discard"]);
                target.ask(Method::POST, &path, None)?;
                Ok(ExitCode::SUCCESS)
            }
            ContractsCommand::Rollback {
                name,
                to,
                fingerprint: None,
            } => {
                let report = target.ask(Method::GET, &difference(&name, &to), None)?;
                let command = format!("weir contracts rollback {name} --to {to}");
                looked_at(&target, &report, &command)
            }
            ContractsCommand::Rollback {
                name,
                to,
                fingerprint: Some(fingerprint),
            } => {
                let body = json!({ "to": to, "fingerprint": fingerprint });
                let path = path(&["v1", "contracts", &name, "rollback"]);
                let answer = target.ask(Method::POST, &path, Some(&body))?;
                live(&target, &answer)
            }
            ContractsCommand::Retire { name, fingerprint } => {
                let path = path(&["v1", "contracts", &name, "retire"]);
                let held = target.ask(Method::POST, &path, None)?;
                match fingerprint {
                    None => submitted(&target, &held),
                    Some(fingerprint) => {
                        publish(&target, &cell(&held["draft"]), &fingerprint, None)
                    }
                }
            }
        }
    }
}

/// Returns the path of the difference between the live version and another.
fn difference(name: &str, to: &str) -> String {
    let mut url = reqwest::Url::parse("http://weir").expect("it is a URL");
    url.query_pairs_mut().append_pair("to", to);
    format!(
        "{}?{}",
        path(&["v1", "contracts", name, "diff"]),
        url.query().unwrap_or_default()
    )
}

fn publish(
    target: &AdminTarget,
    draft: &str,
    fingerprint: &str,
    keep: Option<&KeepOptions>,
) -> Done {
    let mut body = json!({ "fingerprint": fingerprint });
    if let Some(keep) = keep {
        keep.add_to(&mut body)?;
    }
    let path = path(&["v1", "drafts", draft, "publish"]);
    let answer = target.ask(Method::POST, &path, Some(&body))?;
    live(target, &answer)
}

fn show(target: &AdminTarget, name: &str) -> Done {
    let contract = target.ask(Method::GET, &path(&["v1", "contracts", name]), None)?;
    if target.json {
        println!("{contract}");
        return Ok(ExitCode::SUCCESS);
    }
    let was_published = contract["versions"]
        .as_array()
        .is_some_and(|versions| !versions.is_empty());
    let without = if was_published {
        "retired"
    } else {
        "not published yet"
    };
    println!(
        "{name}: {}\n",
        contract["version"].as_str().unwrap_or(without)
    );
    let version = |row: &Value| {
        vec![
            cell(&row["version"]),
            cell(&row["class"]),
            time(&row["published_ms"]),
            cell(&row["published_by"]),
        ]
    };
    let head = ["VERSION", "CHANGE", "PUBLISHED", "BY"];
    print_table(&head, &contract["versions"], version);
    print_kept(&contract["kept"]);
    let draft = |row: &Value| {
        vec![
            cell(&row["id"]),
            cell(&row["status"]),
            cell(&row["class"]),
            time(&row["created_ms"]),
            cell(&row["created_by"]),
        ]
    };
    if each(&contract["drafts"]).next().is_some() {
        println!();
        let head = ["DRAFT", "STATUS", "CHANGE", "CREATED", "BY"];
        print_table(&head, &contract["drafts"], draft);
    }
    let collections = target.ask(Method::GET, "/v1/collections", None)?;
    let drifted = each(&collections).filter(|one| !one["difference"].is_null());
    for collection in drifted.filter(|one| one["contract"] == name) {
        print!(
            "\nthe source of {} has changed\n{}",
            cell(&collection["collection"]),
            super::collections::drift(collection)
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what a draft would change and, if it waits, how to agree.
fn show_draft(target: &AdminTarget, id: &str) -> Done {
    let draft = target.ask(Method::GET, &path(&["v1", "drafts", id]), None)?;
    let report = with_impact(&draft["report"], &draft);
    if draft["status"] == DraftStatus::Pending.as_str() {
        return looked_at(
            target,
            &report,
            &format!("weir contracts publish {}", cell(&draft["id"])),
        );
    }
    match target.json {
        true => println!("{report}"),
        false => {
            print!("{}{}", what_comes(&report), super::diff::text(&report));
            println!(
                "{}: {} by {}",
                cell(&draft["id"]),
                cell(&draft["status"]),
                cell(&draft["decided_by"])
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn submitted(target: &AdminTarget, answer: &Value) -> Done {
    let held = answer["verdict"] == "held";
    if target.json {
        println!("{answer}");
    } else {
        match answer["verdict"].as_str() {
            Some("held") => {
                print!(
                    "{}",
                    super::diff::text(&with_impact(&answer["report"], answer))
                );
                println!(
                    "held as {} for the role {}; publish it with\n  weir contracts publish {} --fingerprint {}",
                    cell(&answer["draft"]),
                    cell(&answer["needs"]),
                    cell(&answer["draft"]),
                    cell(&answer["fingerprint"]),
                );
            }
            verdict => {
                print!("{}", super::diff::text(&answer["report"]));
                println!(
                    "{}: {} {}",
                    cell(&answer["contract"]),
                    verdict.unwrap_or_default(),
                    cell(&answer["version"])
                );
            }
        }
    }
    Ok(if held {
        ExitCode::from(HELD)
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the report of a draft with its effect on past calls, the document that it would become, the findings of lint, and
/// the effect of keeping the live version.
fn with_impact(report: &Value, draft: &Value) -> Value {
    let mut report = report.clone();
    for member in ["impact", "document", "findings", "keeping"] {
        if let Some(report) = report.as_object_mut().filter(|_| !draft[member].is_null()) {
            report.insert(member.to_owned(), draft[member].clone());
        }
    }
    report
}

/// Describes, as agents will read it, each tool and item that a report lists as new; all of them for the first version.
fn what_comes(report: &Value) -> String {
    let rules = ["tool-added", "tool-renamed", "item-added"];
    let came: Vec<&str> = each(&report["items"])
        .filter(|item| rules.iter().any(|rule| item["rule"] == *rule))
        .filter_map(|item| item["new"].as_str())
        .collect();
    let is_first = report["class"] == ChangeClass::First.as_str();
    // For a resource the report has the server's own URI, which is the end of the published one.
    let has_come = |called: &str| {
        came.iter()
            .any(|key| called == *key || key.contains("://") && called.ends_with(key))
    };
    offered::described(&report["document"], |called| is_first || has_come(called))
}

/// Shows a difference and how to agree to it.
fn looked_at(target: &AdminTarget, report: &Value, command: &str) -> Done {
    if target.json {
        println!("{report}");
    } else {
        print!("{}{}", what_comes(report), super::diff::text(report));
        print_lost(&report["keeping"]);
        println!(
            "nothing is published yet; to agree, run:\n  {command} --fingerprint {}",
            cell(&report["fingerprint"])
        );
    }
    Ok(ExitCode::from(HELD))
}

fn live(target: &AdminTarget, answer: &Value) -> Done {
    match target.json {
        true => println!("{answer}"),
        false => println!(
            "{}: {}",
            cell(&answer["contract"]),
            answer["version"].as_str().unwrap_or("retired")
        ),
    }
    if !target.json {
        print_kept(&answer["kept"]);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_from_outside_is_one_parameter() {
        assert_eq!(
            difference("desk", "1.0.0"),
            "/v1/contracts/desk/diff?to=1.0.0"
        );
        assert_eq!(
            difference("a/b", "1.0.0&from=2#x"),
            "/v1/contracts/a%2Fb/diff?to=1.0.0%26from%3D2%23x"
        );
    }
}
