//! Carries the shims of kept versions over when another version replaces the live one.

use serde::{Deserialize, Serialize};
use weir_contracts::{CompiledContract, shim::VersionShim};
use weir_state::{KeptRow, LiveChange};

use super::{Gate, GateError, LiveContract, kept::derived_shim};
use crate::{catalogue::KeptContract, control::policies::apart, identity::now_ms};

/// The shims of one kept version in the state: those to the most recent live versions.
const SHIMS_MAX: usize = 8;

/// A shim of a kept version, and the version that was live when it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CarriedShim {
    /// `None`: it was written before shims were carried on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    shim: VersionShim,
}

/// What happens to a version with a shim when another version replaces the live one.
pub struct NextShim {
    pub version: String,
    /// The shim that converts its calls to those of the new version, or the calls that no shim converts.
    pub shim: Result<VersionShim, String>,
    /// Its present shim, to the live version.
    before: CarriedShim,
    has_ended: bool,
}

impl Gate {
    /// Returns what happens to the shims of kept versions when `new` replaces the version `base`. `kept` is the row of that
    /// version, if it is kept too.
    pub(super) fn next_shims(
        &self,
        new: &CompiledContract,
        base: Option<&str>,
        kept: Option<&KeptRow>,
    ) -> Vec<NextShim> {
        let Some(live) = self.live().get(&new.name).cloned() else {
            return Vec::new();
        };
        let old = &live.contract;
        let is_breaking = old.version.major != new.version.major;
        if !is_breaking || base != Some(&*old.version.to_string()) || live.kept.is_empty() {
            return Vec::new();
        }
        apart(|| {
            let given = kept.and_then(|kept| kept.shim.as_deref());
            let mut steps: Vec<VersionShim> = given
                .map_or_else(Vec::new, stored_shims)
                .into_iter()
                .map(|given| given.shim)
                .collect();
            // The shim in the draft's preview remains a candidate, whichever shim is given.
            steps.extend(derived_shim(old, new).ok());
            next_shims(&live, new, &steps)
        })
    }

    /// Logs which kept versions would lose their shim if a draft were published.
    pub(super) fn warn_of_lost_shims(
        &self,
        draft: &str,
        base: Option<&str>,
        new: &CompiledContract,
    ) {
        let has_kept = self
            .live()
            .get(&new.name)
            .is_some_and(|live| !live.kept.is_empty());
        let preview = has_kept
            .then(|| self.keep_preview(draft, base, new))
            .flatten();
        for next in preview.iter().flat_map(|preview| &preview.beside) {
            if let Err(why) = &next.shim {
                tracing::warn!(
                    contract = new.name,
                    draft,
                    version = next.version,
                    why,
                    "if this draft is published as it is, no shim converts the calls of a kept version any more: it continues \
                     with its own binding"
                );
            }
        }
    }
}

/// Returns what happens to each shim when `new` replaces a live version. Each of `steps` converts calls of that version to calls
/// of `new`; the first is preferred.
pub(super) fn next_shims(
    live: &LiveContract,
    new: &CompiledContract,
    steps: &[VersionShim],
) -> Vec<NextShim> {
    let now = now_ms();
    let next = |kept: &KeptContract| {
        let shim = kept.shim.as_ref()?;
        Some(NextShim {
            version: kept.contract.version.to_string(),
            shim: next_shim(&kept.contract, new, shim, steps),
            before: CarriedShim {
                to: Some(live.contract.version.to_string()),
                shim: shim.clone(),
            },
            has_ended: kept.has_ended(now),
        })
    };
    let others = live
        .kept
        .iter()
        .filter(|kept| kept.contract.version.major != new.version.major);
    others.filter_map(|kept| next(kept)).collect()
}

/// Returns the versions other than the live one that have not ended.
pub(super) fn going_on(next: Vec<NextShim>, live: &CompiledContract) -> Vec<NextShim> {
    let own = format!("{}.", live.version.major);
    let is_beside = |next: &NextShim| !next.has_ended && !next.version.starts_with(&own);
    next.into_iter().filter(is_beside).collect()
}

/// Returns what converts calls of `old` to those of `new`: its shim to the version in between with a step from there, its
/// unchanged shim, or the one that the difference suggests.
fn next_shim(
    old: &CompiledContract,
    new: &CompiledContract,
    shim: &VersionShim,
    steps: &[VersionShim],
) -> Result<VersionShim, String> {
    let fits = |shim: &VersionShim| shim.fits(old, new).is_ok();
    let mut composed = steps.iter().filter_map(|step| shim.compose(old, step).ok());
    if let Some(composed) = composed.find(fits) {
        return Ok(composed);
    }
    match fits(shim) {
        true => Ok(shim.clone()),
        false => derived_shim(old, new),
    }
}

/// Writes down the shims to a further version, in the change that makes it live. Those to earlier versions are kept for a
/// rollback.
pub(super) async fn carry(
    change: &mut LiveChange,
    new: &CompiledContract,
    next: &[NextShim],
) -> Result<(), GateError> {
    if next.is_empty() {
        return Ok(());
    }
    let to = Some(new.version.to_string());
    for row in change.kept_of(&new.name).await? {
        let Some(next) = next.iter().find(|next| next.version == row.version) else {
            continue;
        };
        let shim = match &next.shim {
            Ok(shim) if *shim != next.before.shim => shim.clone(),
            _ => continue,
        };
        let before = &next.before;
        let mut shims = row.shim.as_deref().map_or_else(Vec::new, stored_shims);
        let is_repeated = |known: &CarriedShim| {
            let is_before = known.to.is_none() && known.shim == before.shim;
            is_before || known.to == to || known.to == before.to
        };
        shims.retain(|known| !is_repeated(known));
        shims.insert(0, before.clone());
        shims.insert(
            0,
            CarriedShim {
                to: to.clone(),
                shim,
            },
        );
        shims.truncate(SHIMS_MAX);
        let shim = Some(serde_json::to_string(&shims).expect("plain data"));
        change.keep(&KeptRow { shim, ..row }).await?;
    }
    Ok(())
}

/// Returns the shim of a row that converts calls of `old` to those of the live version: the one that was made for that version,
/// or the newest one that fits.
pub(super) fn stored_shim_that_fits(
    text: &str,
    old: &CompiledContract,
    live: &CompiledContract,
) -> Option<VersionShim> {
    let version = Some(live.version.to_string());
    let (own, others): (Vec<_>, Vec<_>) = stored_shims(text)
        .into_iter()
        .partition(|known| known.to == version);
    let mut shims = own.into_iter().chain(others).map(|known| known.shim);
    shims.find(|shim| shim.fits(old, live).is_ok())
}

/// Reads the shims of a row: a single one, or those that were carried over, newest first.
fn stored_shims(text: &str) -> Vec<CarriedShim> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).unwrap_or_default();
    }
    let only = serde_json::from_str(text).ok();
    let only = only.map(|shim| CarriedShim { to: None, shim });
    only.into_iter().collect()
}
