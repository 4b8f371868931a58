//! `weir plugin check`: looks at a component as agents and operators will, before they do. Nothing is changed by it: no
//! connection may be written while its tools are tried.

mod calls;
mod definitions;
mod report;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use sha2::{Digest as _, Sha256};
use weir::app::GatewayApp;

use self::report::CheckReport;
use super::{
    super::{AppError, CliSettings, Done, block_on},
    build,
    folder::PluginProject,
    run::{TrialGateway, refusal},
};

#[derive(Args)]
pub(in super::super) struct CheckArgs {
    /// A component, or a native library; by default what `weir plugin build` left in this folder, built now if it is missing
    file: Option<PathBuf>,
    /// Do not build a second time
    #[arg(long)]
    once: bool,
    /// Check the native library, as `weir plugin build --native` makes it
    #[arg(long, conflicts_with = "file")]
    native: bool,
}

impl CheckArgs {
    pub(in super::super) fn run(self, settings: &CliSettings, json: bool) -> Done {
        let (component, config, folder) = match self.file {
            Some(file) => (file, settings.config()?, None),
            None => {
                let folder = PluginProject::open(Path::new("."), settings)?;
                let component = if self.native {
                    folder.library()
                } else {
                    folder.component()
                };
                match component.exists() {
                    false if self.native => drop(build::build_library(&folder)?),
                    false => drop(build::build(&folder)?),
                    true => {}
                }
                (component, folder.config.clone(), Some(folder))
            }
        };
        let mut report = CheckReport::default();
        if folder.as_ref().is_some_and(build::has_failed) {
            report.fail(
                "build",
                "the last `weir plugin build` failed: what is checked here is the build before it",
            );
        }
        let trial = TrialGateway::new(&component, config, false)?;
        block_on(look(&trial, &mut report))??;
        drop(trial);
        if let Some(folder) = folder.filter(|_| !self.once) {
            second_build(&folder, &component, self.native, &mut report)?;
        }
        report.print(json);
        Ok(if report.has_failed() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

async fn look(trial: &TrialGateway, report: &mut CheckReport) -> Result<(), AppError> {
    let alone = trial.load().await?;
    if let Some(reason) = refusal(&alone) {
        report.fail("loads", reason);
        return Ok(());
    }
    for plugin in alone
        .gateway
        .host()
        .plugins()
        .iter()
        .filter(|plugin| !plugin.built_in)
    {
        let adapters = match plugin.adapters.len() {
            0 => String::new(),
            _ => format!(", adapters {}", plugin.adapters.join(", ")),
        };
        report.ok(
            "loads",
            format!("{} {}{adapters}", plugin.name, plugin.version),
        );
    }
    for (plugin, definitions) in alone.gateway.host().defined() {
        definitions::look(&plugin, &definitions.text, &trial.config, report);
    }
    drop(alone);
    if report.has_failed() {
        return Ok(());
    }
    let served = match trial.serve().await {
        Ok(served) => served,
        Err(AppError::Problems(problems)) => {
            problems
                .iter()
                .for_each(|problem| report.fail("is published", problem.to_string()));
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    if let Some(reason) = refusal(&served) {
        report.fail("is published", reason);
    }
    for problem in served
        .control
        .refused()
        .into_iter()
        .flat_map(|refused| refused.problems)
    {
        report.fail("is published", problem.to_string());
    }
    lists(&served, report);
    if !report.has_failed() {
        calls::look(&served, report).await?;
    }
    Ok(())
}

/// Checks what an agent is offered, and what a model may misread in it.
fn lists(served: &GatewayApp, report: &mut CheckReport) {
    let snapshot = served.gateway.snapshot();
    let mut names: Vec<&str> = snapshot.catalogue.tools().map(|tool| &*tool.name).collect();
    names.sort_unstable();
    match names.len() {
        0 => report.warn(
            "lists",
            "no tool is served: an adapter needs a contract in `contracts/` to be tried with",
        ),
        _ => report.ok("lists", names.join(", ")),
    }
    let mut found = false;
    for finding in snapshot
        .contracts
        .iter()
        .flat_map(|contract| weir_contracts::lint::lint_contract(contract))
    {
        let place: Vec<&str> = [&finding.tool, &finding.field]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let message = format!(
            "{}: {}; {} ({})",
            place.join("."),
            finding.message,
            finding.hint,
            finding.rule
        );
        match finding.level {
            weir_contracts::lint::LintLevel::Error => report.fail("lint", message),
            weir_contracts::lint::LintLevel::Warning => report.warn("lint", message),
            weir_contracts::lint::LintLevel::Info => continue,
        }
        found = true;
    }
    if !found && !names.is_empty() {
        report.ok("lint", "nothing that a model may misread");
    }
}

/// Builds a second time: equal sources should give equal bytes, since a digest then identifies the source of a component.
fn second_build(
    folder: &PluginProject,
    component: &Path,
    native: bool,
    report: &mut CheckReport,
) -> Result<(), AppError> {
    let first = fs::read(component)?;
    let second = match build::build_again(folder, native) {
        Ok(second) => second,
        Err(AppError::Other(error)) => {
            report.fail("second build", format!("{error:#}"));
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    match first == second {
        true => report.ok("second build", format!("the same bytes, sha256 {}", hex::encode(Sha256::digest(&first)))),
        false => report.warn(
            "second build",
            "the second build has other bytes; if the source has changed since the first, run `weir plugin build` again. Some tools \
             never make the same component twice, and then only the digest of the file itself says which build it is",
        ),
    }
    Ok(())
}
