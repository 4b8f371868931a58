//! `weir diff`: what a change breaks, by the rules of `docs/contract-changes.md`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use reqwest::Method;
use serde_json::{Map, Value, json};
use weir::control::gate::ChangeClass;
use weir_contracts::{
    CompiledContract, compiled_document,
    diff::{ChangeSeverity, ContractDiff, SchemaSide, diff, diff_documents, diff_schemas},
    lock::ContractLock,
    schema::RawSchema,
};

use super::{
    AppError, Done,
    admin::{AdminClient, admin_url, cell, path},
    block_on,
    call::RemoteEndpoint,
    compile::{ShapeArgs, read},
    extracted, offered,
};

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct DiffArgs {
    /// OLD and NEW: contract files, compiled documents, tools/list answers, what `weir extract` prints, or locks; with
    /// --against, only NEW
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compare with what a running endpoint serves, such as http://127.0.0.1:8484/mcp/support: with the published version
    /// where its admin API can be asked, otherwise with its list. Where its gateway keeps the form of past calls
    /// (`[contracts] impact_days`), list whose would have failed
    #[arg(long, value_name = "URL", conflicts_with = "side")]
    against: Option<String>,
    /// The files are bare JSON Schemas of this side
    #[arg(long, value_enum)]
    side: Option<DiffSide>,
    /// The difference as JSON: {class, breaking, fingerprint, items}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shapes: ShapeArgs,
    /// With --against: the admin API that is asked for the published version and for past calls that would have failed; by
    /// default that of the gateway with this state folder, where it serves the same
    #[arg(long, env = "WEIR_ADMIN_URL", value_parser = admin_url, value_name = "URL")]
    admin: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum DiffSide {
    Input,
    Output,
}

/// The kind of a file that was read.
enum DiffFile {
    Contract(Box<CompiledContract>),
    /// `{tools: […]}`.
    Document(Value),
}

const BREAKS: u8 = 2;
const REVIEW: u8 = 3;

impl DiffArgs {
    /// Compares, with exit code 0 if nothing breaks, 2 if something does, 3 if a person should review it, and 1 if the files
    /// could not be compared.
    pub(super) fn run(self) -> Done {
        let (change, impact) = self.diff()?;
        let mut value = serde_json::to_value(&change).expect("plain data");
        if !impact.is_null() {
            value["impact"] = impact;
        }
        match self.json {
            true => println!(
                "{}",
                serde_json::to_string_pretty(&value).expect("plain JSON")
            ),
            false => print!("{}", text(&value)),
        }
        Ok(match change.class {
            ChangeSeverity::Identical | ChangeSeverity::Cosmetic | ChangeSeverity::Compatible => {
                ExitCode::SUCCESS
            }
            ChangeSeverity::Review => ExitCode::from(REVIEW),
            ChangeSeverity::Undecided | ChangeSeverity::Breaking => ExitCode::from(BREAKS),
        })
    }

    /// Returns the difference and, if a gateway recorded them, the past calls that it would have broken.
    fn diff(&self) -> Result<(ContractDiff, Value), AppError> {
        let mut impact = Value::Null;
        let (old, new) = match (self.files.as_slice(), &self.against) {
            ([new], Some(url)) => {
                let (listed, new) = (listed(url)?, self.version(new)?);
                match self.published(url, &listed, &new)? {
                    Some((published, of_the_past)) => {
                        impact = of_the_past;
                        (DiffFile::Contract(Box::new(published)), new)
                    }
                    None => {
                        eprintln!(
                            "weir: compared with what the endpoint lists; the fingerprint is not the one of a draft. \
                             Name the gateway's admin API with --admin to compare with what is published"
                        );
                        (listed, new)
                    }
                }
            }
            ([old, new], None) => match self.side {
                Some(side) => {
                    let side = if matches!(side, DiffSide::Input) {
                        SchemaSide::Input
                    } else {
                        SchemaSide::Output
                    };
                    return Ok((diff_schemas(&json(old)?, &json(new)?, side), impact));
                }
                None => (self.version(old)?, self.version(new)?),
            },
            (_, Some(_)) => return Err(anyhow!("with --against there is one file: NEW").into()),
            (_, None) => return Err(anyhow!("two files are compared: OLD and NEW").into()),
        };
        let change = match (old, new) {
            (DiffFile::Contract(old), DiffFile::Contract(new)) => diff(&old, &new),
            (old, new) => {
                diff_documents(&old.document(), &new.document()).map_err(anyhow::Error::msg)?
            }
        };
        Ok((change, impact))
    }

    /// Returns what is published there according to an admin API, and the past calls that NEW would have refused: null
    /// if none are kept. `None` means that no admin API can be asked, or that it serves another contract than the
    /// endpoint lists.
    fn published(
        &self,
        url: &str,
        listed: &DiffFile,
        new: &DiffFile,
    ) -> Result<Option<(CompiledContract, Value)>, AppError> {
        let Some(contract) = contract_at(url, new) else {
            return Ok(None);
        };
        let asked = self.ask_published(&contract, listed, new);
        match (asked, &self.admin) {
            (Err(_), None) => Ok(None),
            (asked, _) => asked.map(Some),
        }
    }

    fn ask_published(
        &self,
        contract: &str,
        listed: &DiffFile,
        new: &DiffFile,
    ) -> Result<(CompiledContract, Value), AppError> {
        let api = AdminClient::new(self.admin.as_deref(), &self.shapes.settings)?;
        let ask = |method: Method, parts: &[&str], body: Option<&Value>| {
            Ok::<_, AppError>(block_on(api.ask(method, &path(parts), body))??)
        };
        let mut served = ask(Method::GET, &["v1", "contracts", contract], None)?;
        let (tools, listed) = (inputs(&served["document"]), inputs(&listed.document()));
        // An endpoint lists schemas as clients read them.
        let read = |input: &Value| RawSchema::from(input.clone()).for_clients().value();
        let is_listed = |tool: &str, input: &Value| listed.get(tool).map(read) == Some(read(input));
        if tools.is_empty() || tools.iter().any(|(tool, input)| !is_listed(tool, input)) {
            return Err(anyhow!(
                "the admin API serves another `{contract}` than the endpoint lists"
            )
            .into());
        }
        let Value::String(version) = served["version"].take() else {
            return Err(anyhow!("the admin API says that `{contract}` is retired").into());
        };
        let version = ask(
            Method::GET,
            &["v1", "contracts", contract, "versions", &version],
            None,
        )?;
        let published = CompiledContract::from_artifact(&version["artifact"]).map_err(|error| {
            anyhow!("the admin API answers a version that cannot be read: {error}")
        })?;
        let planned = json!({ "tools": inputs(&new.document()) });
        let mut impact = ask(
            Method::POST,
            &["v1", "contracts", contract, "impact"],
            Some(&planned),
        )?;
        Ok((published, impact["impact"].take()))
    }

    fn version(&self, path: &Path) -> Result<DiffFile, AppError> {
        let text = read(path)?;
        let file = path.display().to_string();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        if value.get("lock").is_some() {
            return Ok(DiffFile::Contract(Box::new(
                ContractLock::read(&file, &text)?.contract,
            )));
        }
        match document(value) {
            Some(document) => Ok(DiffFile::Document(document)),
            None => Ok(DiffFile::Contract(Box::new(
                self.shapes.contract(&file, &text)?,
            ))),
        }
    }
}

/// Returns the contract that an endpoint of one contract serves, or the one that a file belongs to.
fn contract_at(url: &str, new: &DiffFile) -> Option<String> {
    let of_file = match new {
        DiffFile::Contract(contract) => Some(contract.name.clone()),
        DiffFile::Document(document) => document["contract"].as_str().map(str::to_owned),
    };
    let of_url = url
        .trim_end_matches('/')
        .rsplit_once("/mcp/")
        .map(|(_, contract)| contract.to_owned());
    of_url.or(of_file).filter(|contract| !contract.is_empty())
}

/// Returns the input schemas of a document's tools, by name.
fn inputs(document: &Value) -> Map<String, Value> {
    let tools = document["tools"].as_array().into_iter().flatten();
    tools
        .filter_map(|tool| {
            Some((
                tool["name"].as_str()?.to_owned(),
                tool["inputSchema"].clone(),
            ))
        })
        .collect()
}

/// Recognizes a compiled document, an extracted one, or the answer of tools/list with or without its envelope. A
/// contract's tools are named by `tool`, those of the others by `name`; a contract without tools is recognized by its
/// own name.
pub(super) fn document(mut value: Value) -> Option<Value> {
    let is_document = |value: &Value| {
        value["tools"].as_array().is_some_and(|tools| {
            tools.iter().any(|tool| tool["name"].is_string())
                || tools.is_empty() && !value["contract"].is_string()
        })
    };
    if value.get("jsonrpc").is_some() {
        value = value["result"].take();
    }
    if let Some(listed) = extracted::listed(&value) {
        return Some(listed);
    }
    is_document(&value).then_some(value)
}

impl DiffFile {
    fn document(&self) -> Value {
        match self {
            Self::Contract(contract) => compiled_document(contract),
            Self::Document(document) => document.clone(),
        }
    }
}

fn json(path: &Path) -> Result<Value, AppError> {
    let value = serde_json::from_str(&read(path)?);
    Ok(value.with_context(|| format!("{} is not JSON", path.display()))?)
}

fn listed(url: &str) -> Result<DiffFile, AppError> {
    let tools = block_on(async { RemoteEndpoint::new(url)?.tools().await })??;
    Ok(DiffFile::Document(json!({ "tools": tools })))
}

/// Writes whose past calls the change would have refused; nothing if none are kept.
fn impact(impact: &Value) -> String {
    let (Some(calls), Some(agents)) = (impact["calls"].as_i64(), impact["agents"].as_array())
    else {
        return String::new();
    };
    let mut out = String::new();
    for agent in agents {
        let of = format!(
            "of {} calls of {} by {}",
            agent["calls"],
            cell(&agent["tool"]),
            cell(&agent["agent"])
        );
        let reasons = agent["reasons"]
            .as_array()
            .into_iter()
            .flatten()
            .map(cell)
            .collect::<Vec<_>>()
            .join("; ");
        let unclear = agent["cannot_tell"].as_i64().filter(|calls| *calls > 0);
        let unclear =
            unclear.map_or_else(String::new, |calls| format!(", {calls} cannot be judged"));
        out.push_str(&format!(
            "impact     {of}: {} would have failed{unclear}: {reasons}\n",
            agent["fail"]
        ));
    }
    if calls == 0 {
        out.push_str(&format!(
            "impact     no calls were kept in the last {} days\n",
            impact["days"]
        ));
    } else if agents.is_empty() {
        out.push_str(&format!(
            "impact     all {calls} calls of the last {} days would have passed\n",
            impact["days"]
        ));
    }
    out
}

/// Returns the sentences in a value that are not in another one, and single words too if the value `is_text`. Names are in
/// the reason of a difference.
fn words_of<'v>(value: &'v Value, other: &Value, is_text: bool) -> Vec<&'v str> {
    fn collect<'v>(value: &'v Value, into: &mut Vec<&'v str>) {
        match value {
            Value::String(text) => into.push(text),
            Value::Array(values) => values.iter().for_each(|value| collect(value, into)),
            Value::Object(members) => members.values().for_each(|value| collect(value, into)),
            _ => {}
        }
    }
    let (mut words, mut known) = (Vec::new(), Vec::new());
    collect(value, &mut words);
    collect(other, &mut known);
    words.retain(|text| !known.contains(text) && (is_text || text.contains(char::is_whitespace)));
    words
}

/// Writes a report for a person: the worst first, with a line for each difference and a line for its witness.
pub(super) fn text(report: &Value) -> String {
    let mut items: Vec<&Value> = report["items"].as_array().into_iter().flatten().collect();
    let rank = |item: &Value| {
        let worst_first = ChangeClass::ALL.iter().rev();
        worst_first
            .map(|class| class.as_str())
            .position(|class| item["class"] == class)
            .unwrap_or_default()
    };
    items.sort_by_key(|item| rank(item));
    if report["document"].is_object() {
        items.retain(|item| item["rule"] != "first"); // the document has it in full
    }
    let mut out = String::new();
    for item in items {
        let part = |key: &str| item[key].as_str().unwrap_or_default();
        let place = [part("tool"), part("side"), part("path")];
        let place: Vec<&str> = place.into_iter().filter(|part| !part.is_empty()).collect();
        let reason = offered::safe(part("reason"));
        out.push_str(&format!(
            "{:<10} {}: {reason} ({})\n",
            part("class"),
            place.join(" "),
            part("rule")
        ));
        let is_text = part("rule").contains("text");
        for (what, value, other) in [
            ("was", &item["old"], &item["new"]),
            ("is", &item["new"], &item["old"]),
        ] {
            for text in words_of(value, other, is_text) {
                out.push_str(&format!(
                    "{:<10}   {what:<4} {}\n",
                    "",
                    offered::indented(text, &" ".repeat(18))
                ));
            }
        }
        if let Some(witness) = item.get("witness").filter(|witness| !witness.is_null()) {
            out.push_str(&format!("{:<10}   for example {witness}\n", ""));
        }
    }
    for finding in report["findings"].as_array().into_iter().flatten() {
        let part = |key: &str| finding[key].as_str().unwrap_or_default();
        let place: Vec<&str> = [part("tool"), part("field")]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        out.push_str(&format!(
            "{:<10} {}: {} ({})\n",
            part("level"),
            place.join(" "),
            part("message"),
            part("rule")
        ));
    }
    out.push_str(&impact(&report["impact"]));
    if let Some(class) = report["class"].as_str() {
        out.push_str(&format!(
            "{class}, fingerprint {}\n",
            report["fingerprint"].as_str().unwrap_or_default()
        ));
    }
    out
}
