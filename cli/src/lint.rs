//! `weir lint`: whether a model can tell from the texts what a tool does.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use serde_json::Value;
use weir_contracts::lint::{LintFinding, LintLevel, lint_contract, lint_document, to_json};

use super::{
    AppError, Done,
    compile::{ShapeArgs, read},
    diff::document,
};

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct LintArgs {
    /// A contract, a compiled document, any server's tools/list answer or what `weir extract` prints; `-` for stdin
    file: PathBuf,
    /// The findings as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shapes: ShapeArgs,
}

/// Exit code 0 where nothing is an error, 1 where something is.
impl LintArgs {
    pub(super) fn run(self) -> Done {
        let findings = self.findings()?;
        if self.json {
            println!(
                "{}",
                serde_json::to_string_pretty(&to_json(&findings)).expect("plain JSON")
            );
        } else {
            for finding in &findings {
                println!("{}", line(finding));
            }
            if findings.is_empty() {
                println!("nothing found");
            }
        }
        let errors = findings
            .iter()
            .any(|finding| finding.level == LintLevel::Error);
        Ok(if errors {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    fn findings(&self) -> Result<Vec<LintFinding>, AppError> {
        let text = read(&self.file)?;
        match serde_json::from_str::<Value>(&text).ok().and_then(document) {
            Some(document) => Ok(lint_document(&document).map_err(anyhow::Error::msg)?),
            None => {
                let (contract, unknown) = self
                    .shapes
                    .contract_as_known(&self.file.display().to_string(), &text)?;
                for collection in unknown {
                    eprintln!(
                        "note: the shape of {collection} is not known, so what its tools answer was not looked at; \
                         pass --shape {collection}=SHAPE.json or the configuration of a gateway that serves it"
                    );
                }
                Ok(lint_contract(&contract))
            }
        }
    }
}

pub(super) fn line(finding: &LintFinding) -> String {
    let parts: Vec<&str> = [&finding.tool, &finding.field]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let place = if parts.is_empty() {
        "all".to_owned()
    } else {
        parts.join(".")
    };
    let LintFinding {
        rule,
        level,
        message,
        hint,
        ..
    } = finding;
    format!(
        "{:<7} {place}: {message} ({rule})\n        hint: {hint}",
        level.word()
    )
}
