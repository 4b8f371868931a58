//! `weir plugin test`: the author's own cases, as data: arguments, and the result or the error that is expected.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use weir::app::GatewayApp;

use super::{
    super::{AppError, CliSettings, Done, block_on},
    folder::PluginProject,
    run::{TrialGateway, TrialOutcome, call, refusal},
};

#[derive(Args)]
pub(in super::super) struct TestArgs {
    /// Files of cases; by default all of `tests/*.json`
    files: Vec<PathBuf>,
}

/// A case of a file, which is a JSON array of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestCase {
    /// A sentence about what the case shows.
    case: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// The structured content of the answer.
    result: Option<Value>,
    /// The content blocks of the answer.
    content: Option<Value>,
    /// The code of the error, or the tool's own reason.
    error: Option<String>,
}

impl TestArgs {
    /// Runs the cases. Each connection may do what `weir.toml` grants, since these are the author's own calls.
    pub(in super::super) fn run(self, settings: &CliSettings, json: bool) -> Done {
        let folder = PluginProject::open(Path::new("."), settings)?;
        let component = folder.component();
        if !component.exists() {
            super::build::build(&folder)?;
        }
        let files = if self.files.is_empty() {
            found(&folder.path)?
        } else {
            self.files
        };
        let cases = read(&files)?;
        let trial = TrialGateway::new(&component, folder.config, true)?;
        let outcomes: Vec<(TestCase, Result<(), String>)> = block_on(async {
            let started = trial.serve().await?;
            if let Some(reason) = refusal(&started) {
                return Err(AppError::from(anyhow::anyhow!(
                    "{}: {reason}",
                    component.display()
                )));
            }
            let mut outcomes = Vec::new();
            for case in cases {
                let outcome = judge(&started, &case).await;
                outcomes.push((case, outcome));
            }
            Ok(outcomes)
        })??;
        let failed = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.is_err())
            .count();
        if json {
            let rows = outcomes.iter().map(|(case, outcome)| {
                json!({ "case": case.case, "tool": case.tool, "ok": outcome.is_ok(), "message": outcome.as_ref().err() })
            });
            println!("{}", Value::from_iter(rows));
        } else {
            for (case, outcome) in &outcomes {
                match outcome {
                    Ok(()) => println!("ok    {}: {}", case.tool, case.case),
                    Err(why) => println!(
                        "fail  {}: {}\n      {}",
                        case.tool,
                        case.case,
                        why.replace('\n', "\n      ")
                    ),
                }
            }
            println!("{} cases, {failed} failed", outcomes.len());
        }
        Ok(if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

async fn judge(started: &GatewayApp, case: &TestCase) -> Result<(), String> {
    let outcome = call(started, &case.tool, &Value::Object(case.arguments.clone())).await;
    match (&case.error, outcome) {
        (_, TrialOutcome::Unknown(names)) => Err(format!(
            "there is no tool `{}`; there are {}",
            case.tool,
            names.join(", ")
        )),
        (_, TrialOutcome::Asked) if case.error.as_deref() == Some("input_required") => Ok(()),
        (_, TrialOutcome::Asked) => Err(
            "the tool asks its caller, which is expected as `\"error\": \"input_required\"`".into(),
        ),
        (Some(expected), TrialOutcome::Failed { code, reason, .. })
            if *expected == code || Some(expected) == reason.as_ref() =>
        {
            Ok(())
        }
        (Some(expected), TrialOutcome::Failed { code, text, .. }) => Err(format!(
            "expected the error {expected}, and got {code}: {text}"
        )),
        (Some(expected), TrialOutcome::Answered { structured, .. }) => Err(format!(
            "expected the error {expected}, and got {}",
            structured.unwrap_or_default()
        )),
        (None, TrialOutcome::Failed { text, .. }) => Err(format!("the call failed: {text}")),
        (
            None,
            TrialOutcome::Answered {
                structured,
                content,
            },
        ) => {
            differs("result", case.result.as_ref(), structured.as_ref())?;
            differs("content", case.content.as_ref(), Some(&content))
        }
    }
}

fn differs(what: &str, expected: Option<&Value>, got: Option<&Value>) -> Result<(), String> {
    match expected {
        Some(expected) if Some(expected) != got => {
            let got = got.map_or_else(|| "none".to_owned(), Value::to_string);
            Err(format!(
                "the {what} differs\nexpected {expected}\ngot      {got}"
            ))
        }
        _ => Ok(()),
    }
}

fn found(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = folder.join("tests");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    if files.is_empty() {
        bail!("{} has no cases (*.json)", folder.display());
    }
    Ok(files)
}

fn read(files: &[PathBuf]) -> anyhow::Result<Vec<TestCase>> {
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(file)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let read: Vec<TestCase> = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a list of cases", file.display()))?;
        for case in read {
            if case.error.is_some() == (case.result.is_some() || case.content.is_some()) {
                bail!(
                    "{}: the case {:?} expects either an `error`, or a `result` or `content`",
                    file.display(),
                    case.case
                );
            }
            cases.push(case);
        }
    }
    Ok(cases)
}
