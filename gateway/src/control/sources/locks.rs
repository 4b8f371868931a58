//! Locks: the published versions next to the contract files, from which a state without them is restored.

use std::path::Path;

use weir_contracts::{FileProblem, lock::ContractLock};
use weir_state::VersionSource;

use super::folder;
use crate::{
    config::GatewayConfig,
    control::gate::{ContractOrigin, Gate, GateError},
};

/// Restores the published version from the lock of a contract in this folder, if the state has no version of the contract.
pub(super) async fn restore(
    gate: &Gate,
    folder: &Path,
    name: &str,
    source: VersionSource<'_>,
) -> Result<(), Vec<FileProblem>> {
    let Some((path, lock)) = folder::lock_text(folder, name) else {
        return Ok(());
    };
    let file = path.display().to_string();
    let read = async {
        if gate.was_published(name).await? {
            return Ok(());
        }
        let lock = ContractLock::read(
            &file,
            &lock.map_err(|problem| GateError::Refused(vec![problem]))?,
        )
        .map_err(GateError::Refused)?;
        gate.restore(&lock, name, source).await
    };
    read.await.map_err(|error| match error {
        GateError::Refused(problems) => problems
            .into_iter()
            .map(|problem| problem.in_file(&file))
            .collect(),
        error => vec![FileProblem::new(&file, "", error.to_string())],
    })
}

/// Restores the version of an offer from its lock. An offer whose lock cannot be read is refused: it would go live
/// without being compared.
pub(super) async fn restore_offer(
    gate: &Gate,
    config: &GatewayConfig,
    name: &str,
    source: VersionSource<'_>,
) -> Result<(), GateError> {
    restore(gate, &config.folders.contracts, name, source)
        .await
        .map_err(GateError::Refused)
}

/// Restores the offers of other servers from their locks, if the state has none: they are listed although their server may be
/// down. Other locks are read with their contract file or their plugin.
pub(in crate::control) async fn restore_upstreams(
    gate: &Gate,
    config: &GatewayConfig,
) -> Vec<FileProblem> {
    let mut problems = Vec::new();
    if config.upstreams.is_empty() {
        return problems;
    }
    let owner = folder::owner(&config.base);
    let folder = &config.folders.contracts;
    let live = gate.live();
    for name in folder::locked(folder)
        .into_iter()
        .filter(|name| !live.contains_key(name))
    {
        let Some((path, text)) = folder::lock_text(folder, &name) else {
            continue;
        };
        let lock = text.map_err(|problem| vec![problem]);
        let restored =
            match lock.and_then(|text| ContractLock::read(&path.display().to_string(), &text)) {
                Ok(lock)
                    if lock
                        .contract
                        .upstream()
                        .is_some_and(|it| config.upstreams.contains_key(it)) =>
                {
                    let source = VersionSource {
                        origin: ContractOrigin::Upstream,
                        owner: Some(&owner),
                    };
                    restore(gate, folder, &name, source).await
                }
                // Only the name of an unreadable lock is known.
                Err(unreadable) if config.upstreams.contains_key(&name) => Err(unreadable),
                Ok(_) | Err(_) => Ok(()),
            };
        problems.extend(restored.err().into_iter().flatten());
    }
    problems
}
