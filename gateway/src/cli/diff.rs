//! `weir diff`: what a change breaks, by the rules of `docs/contract-changes.md`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use weir_contracts::{
    Contract, compiled_document,
    diff::{Class, Diff, Side, diff, diff_documents, diff_schemas},
    lock::Lock,
};

use super::{
    Done, Failure,
    admin::cell,
    block_on,
    call::Remote,
    compile::{Shapes, read},
};

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Compare {
    /// OLD and NEW: contract files, compiled documents, tools/list answers or locks; with --against, NEW alone
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compare with what a running endpoint lists, such as http://127.0.0.1:8484/mcp/support
    #[arg(long, value_name = "URL", conflicts_with = "side")]
    against: Option<String>,
    /// The files are bare JSON Schemas of this side
    #[arg(long, value_enum)]
    side: Option<Sides>,
    /// The difference as JSON: {class, breaking, fingerprint, items}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shapes: Shapes,
}

#[derive(Clone, Copy, ValueEnum)]
enum Sides {
    Input,
    Output,
}

/// What a file turned out to be.
enum Version {
    Contract(Box<Contract>),
    /// `{tools: […]}`.
    Document(Value),
}

const BREAKS: u8 = 2;
const REVIEW: u8 = 3;

impl Compare {
    /// Exit code 0: breaks nothing; 2: breaks; 3: someone should look; 1: could not be compared.
    pub(super) fn run(self) -> Done {
        let change = self.diff()?;
        let value = serde_json::to_value(&change).expect("plain data");
        match self.json {
            true => println!("{}", serde_json::to_string_pretty(&value).expect("plain JSON")),
            false => print!("{}", text(&value)),
        }
        Ok(match change.class {
            Class::Identical | Class::Cosmetic | Class::Compatible => ExitCode::SUCCESS,
            Class::Review => ExitCode::from(REVIEW),
            Class::Undecided | Class::Breaking => ExitCode::from(BREAKS),
        })
    }

    fn diff(&self) -> Result<Diff, Failure> {
        let (old, new) = match (self.files.as_slice(), &self.against) {
            ([new], Some(url)) => (listed(url)?, self.version(new)?),
            ([old, new], None) => match self.side {
                Some(side) => {
                    let side = if matches!(side, Sides::Input) { Side::Input } else { Side::Output };
                    return Ok(diff_schemas(&json(old)?, &json(new)?, side));
                }
                None => (self.version(old)?, self.version(new)?),
            },
            (_, Some(_)) => return Err(anyhow!("with --against there is one file: NEW").into()),
            (_, None) => return Err(anyhow!("two files are compared: OLD and NEW").into()),
        };
        match (old, new) {
            (Version::Contract(old), Version::Contract(new)) => Ok(diff(&old, &new)),
            (old, new) => Ok(diff_documents(&old.document(), &new.document()).map_err(anyhow::Error::msg)?),
        }
    }

    fn version(&self, path: &Path) -> Result<Version, Failure> {
        let text = read(path)?;
        let file = path.display().to_string();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        if value.get("lock").is_some() {
            return Ok(Version::Contract(Box::new(Lock::read(&file, &text)?.contract)));
        }
        match document(value) {
            Some(document) => Ok(Version::Document(document)),
            None => Ok(Version::Contract(Box::new(self.shapes.contract(&file, &text)?))),
        }
    }
}

/// A compiled document, or the answer of tools/list with or without its envelope. A contract's tools are called `tool`,
/// theirs `name`.
pub(super) fn document(mut value: Value) -> Option<Value> {
    let is_document = |value: &Value| {
        value["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"].is_string()))
    };
    if value.get("jsonrpc").is_some() {
        value = value["result"].take();
    }
    is_document(&value).then_some(value)
}

impl Version {
    fn document(&self) -> Value {
        match self {
            Self::Contract(contract) => compiled_document(contract),
            Self::Document(document) => document.clone(),
        }
    }
}

fn json(path: &Path) -> Result<Value, Failure> {
    let value = serde_json::from_str(&read(path)?);
    Ok(value.with_context(|| format!("{} is not JSON", path.display()))?)
}

fn listed(url: &str) -> Result<Version, Failure> {
    let tools = block_on(async { Remote::new(url)?.tools().await })??;
    Ok(Version::Document(json!({ "tools": tools })))
}

/// Whose calls of the past it would have refused; empty where none are kept.
fn impact(impact: &Value) -> String {
    let (Some(calls), Some(agents)) = (impact["calls"].as_i64(), impact["agents"].as_array()) else {
        return String::new();
    };
    let mut out = String::new();
    for agent in agents {
        let of = format!("of {} calls of {} by {}", agent["calls"], cell(&agent["tool"]), cell(&agent["agent"]));
        let reasons = agent["reasons"].as_array().into_iter().flatten().map(cell).collect::<Vec<_>>().join("; ");
        let unclear = agent["cannot_tell"].as_i64().filter(|calls| *calls > 0);
        let unclear = unclear.map_or_else(String::new, |calls| format!(", {calls} cannot be told"));
        out.push_str(&format!("impact     {of}: {} would have failed{unclear}: {reasons}\n", agent["fail"]));
    }
    if calls == 0 {
        out.push_str(&format!("impact     no calls were kept in the last {} days\n", impact["days"]));
    } else if agents.is_empty() {
        out.push_str(&format!("impact     all {calls} calls of the last {} days would have passed\n", impact["days"]));
    }
    out
}

/// A report as a person reads it: the worst first, a line for each difference and one for its witness.
pub(super) fn text(report: &Value) -> String {
    let mut items: Vec<&Value> = report["items"].as_array().into_iter().flatten().collect();
    let rank = |item: &Value| {
        ["breaking", "undecided", "review", "compatible", "cosmetic", "identical"]
            .iter()
            .position(|class| item["class"] == *class)
            .unwrap_or_default()
    };
    items.sort_by_key(|item| rank(item));
    let mut out = String::new();
    for item in items {
        let part = |key: &str| item[key].as_str().unwrap_or_default();
        let place = [part("tool"), part("side"), part("path")];
        let place: Vec<&str> = place.into_iter().filter(|part| !part.is_empty()).collect();
        out.push_str(&format!("{:<10} {}: {} ({})\n", part("class"), place.join(" "), part("reason"), part("rule")));
        if let Some(witness) = item.get("witness").filter(|witness| !witness.is_null()) {
            out.push_str(&format!("{:<10}   for example {witness}\n", ""));
        }
    }
    out.push_str(&impact(&report["impact"]));
    if let Some(class) = report["class"].as_str() {
        out.push_str(&format!("{class}, fingerprint {}\n", report["fingerprint"].as_str().unwrap_or_default()));
    }
    out
}
