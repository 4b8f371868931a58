//! `weir contracts lock`: the published version next to its file, so that the gate holds where there is no state yet. What
//! plugins and other servers offer has no file: its lock lies in the contracts folder.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use weir::control::gate::{ChangeClass, Role};
use weir_contracts::{
    CompiledContract, form,
    lock::{ContractLock as Locked, LockApproval},
};
use weir_state::{ContractOrigin, LiveRow, VersionHead};

use crate::{AppError, CliSettings, Done, block_on, compile, start};

/// Write the published version of contract files next to them, for a gateway that starts without state
#[derive(Args)]
pub(crate) struct LockArgs {
    /// Contract files; by default all of the contracts folder, and what plugins and other servers offer
    files: Vec<PathBuf>,
}

impl LockArgs {
    pub(super) fn run(self, settings: &CliSettings) -> Done {
        block_on(self.lock(settings))?
    }

    async fn lock(&self, settings: &CliSettings) -> Done {
        let config = settings.config_to_serve(start::NAME_ONE)?;
        let state = config.open_state().await.map_err(anyhow::Error::from)?;
        let folders = config.folders;
        let live = state.live().await.map_err(anyhow::Error::from)?;
        let live: BTreeMap<&str, &LiveRow> =
            live.iter().map(|live| (live.name.as_str(), live)).collect();
        let files = match self.files.is_empty() {
            true => weir::control::contract_files(&folders.contracts)
                .map_err(|problem| vec![problem])?,
            false => self.files.clone(),
        };
        for file in &files {
            let text = compile::read(file)?;
            let source = form::read(&file.display().to_string(), &text)?;
            let name = source
                .contract
                .with_context(|| format!("{} defines no contract", file.display()))?;
            let Some(live) = live.get(name.as_str()) else {
                return Err(anyhow::anyhow!(
                    "the contract `{name}` was never published: serve it first"
                )
                .into());
            };
            let versions = state.versions(&name).await.map_err(anyhow::Error::from)?;
            let note = if live.source == text {
                ""
            } else {
                "; the file has changed since, and the lock has not"
            };
            write(
                file.parent().unwrap_or(Path::new(".")),
                live,
                &versions,
                note,
            )?;
        }
        let is_offer = |live: &&&LiveRow| {
            matches!(live.origin, ContractOrigin::Code | ContractOrigin::Upstream)
        };
        for live in live
            .values()
            .filter(is_offer)
            .filter(|_| self.files.is_empty())
        {
            let versions = state
                .versions(&live.name)
                .await
                .map_err(anyhow::Error::from)?;
            std::fs::create_dir_all(&folders.contracts)
                .with_context(|| format!("{} cannot be made", folders.contracts.display()))?;
            write(&folders.contracts, live, &versions, "")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write(
    folder: &Path,
    live: &LiveRow,
    versions: &[VersionHead],
    note: &str,
) -> Result<(), AppError> {
    let lock = lock(live, versions)?;
    let path = weir::control::sources::lock_path(folder, &live.name);
    weir_files::replace(
        &path,
        lock.to_text().as_bytes(),
        weir_files::FilePermission::Everyone,
    )
    .with_context(|| format!("{} cannot be written", path.display()))?;
    println!("{}: {} {}{note}", path.display(), live.name, live.version);
    Ok(())
}

fn lock(live: &LiveRow, versions: &[VersionHead]) -> Result<Locked, AppError> {
    let value: Value =
        serde_json::from_str(&live.artifact).context("the stored version cannot be read")?;
    let contract = CompiledContract::from_artifact(&value).map_err(anyhow::Error::msg)?;
    let approved = |pair: &[VersionHead]| {
        let [from, to] = pair else { return None };
        let held = to.class == ChangeClass::Review || Role::for_class(to.class) == Role::Operator;
        let at = jiff::Timestamp::from_millisecond(to.published_ms).ok()?;
        let approval = LockApproval {
            fingerprint: to.fingerprint.clone(),
            from: from.version.parse().ok()?,
            to: to.version.parse().ok()?,
            by: to.published_by.clone(),
            at: at.to_string(),
        };
        held.then_some(approval)
    };
    Ok(Locked {
        contract,
        approvals: versions.windows(2).filter_map(approved).collect(),
    })
}
