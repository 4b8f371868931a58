//! Versions that are still served after a breaking change replaced them, and the agents that are pinned to them.

use std::{collections::VecDeque, slice, sync::Arc};

use weir_audit::AdminAct;
use weir_contracts::{
    CompiledContract,
    shim::{VersionShim, derive},
};
use weir_state::{AgentPin, KeptRow, LiveChange, StateError};

use super::{
    Gate, GateError, LiveContract, artifact,
    carried::{NextShim, going_on, next_shims, stored_shim_that_fits},
};
use crate::{
    catalogue::{AgentPins, KeptContract},
    control::policies::apart,
    identity::now_ms,
};

/// Versions of one contract that are served in addition to the live one.
const KEPT_MAX: usize = 4;
/// Drafts whose shims are cached, newest last.
const PREVIEWS_MAX: usize = 16;

/// Previews of keeping a live version, by the id of the draft that would replace it.
pub(super) type KeepPreviews = VecDeque<(String, Arc<KeepPreview>)>;

/// The treatment of the version that a breaking change replaces.
#[derive(Clone, Debug, Default)]
pub struct KeepVersion {
    /// When it ends; `None`: never.
    pub sunset_ms: Option<i64>,
    /// An operator's own shim; `None`: the one that the difference of the versions suggests.
    pub shim: Option<VersionShim>,
}

/// A preview of keeping the version that a draft replaces.
pub struct KeepPreview {
    pub version: String,
    /// The shim that the difference suggests, or the calls that it does not convert.
    pub shim: Result<VersionShim, String>,
    /// Whether keeping it requires a shim.
    pub needs_shim: bool,
    /// What happens to already kept versions with a shim if this one gets the suggested shim.
    pub beside: Vec<NextShim>,
    /// The revision of the contract that it applies to.
    revision: i64,
}

impl Gate {
    /// Returns a preview of keeping the live version, if the draft `id` of `new` breaks its callers. The shim is derived once.
    pub fn keep_preview(
        &self,
        id: &str,
        base: Option<&str>,
        new: &CompiledContract,
    ) -> Option<Arc<KeepPreview>> {
        let current = self.live().get(&new.name)?.clone();
        let live = &current.contract;
        let version = live.version.to_string();
        let is_breaking = live.version.major != new.version.major;
        if !is_breaking || base != Some(&*version) {
            return None;
        }
        let is_same = |(draft, preview): &(String, Arc<KeepPreview>)| {
            let is_same = preview.version == version && preview.revision == current.revision;
            (draft == id && is_same).then(|| preview.clone())
        };
        let known = self.keep_previews.lock().iter().find_map(is_same);
        if known.is_some() {
            return known;
        }
        // Other requests can read the previews meanwhile.
        let (shim, beside) = apart(|| {
            let shim = derived_shim(live, new);
            let beside = next_shims(
                &current,
                new,
                shim.as_ref().map_or(&[][..], slice::from_ref),
            );
            (shim, going_on(beside, live))
        });
        let preview = Arc::new(KeepPreview {
            version,
            shim,
            needs_shim: live.plugin().is_some(),
            beside,
            revision: current.revision,
        });
        let mut previews = self.keep_previews.lock();
        previews.retain(|(draft, _)| draft != id);
        if previews.len() >= PREVIEWS_MAX {
            previews.pop_front();
        }
        previews.push_back((id.to_owned(), preview.clone()));
        Some(preview)
    }

    /// Returns the row of a version that is kept next to `new`.
    pub(super) fn row_to_keep(
        &self,
        keep: &KeepVersion,
        base: Option<&str>,
        new: &CompiledContract,
        by: &str,
    ) -> Result<KeptRow, GateError> {
        let live = self.live();
        let old = live.get(&new.name).map(|live| &*live.contract);
        let old = old.filter(|old| Some(old.version.to_string().as_str()) == base);
        let Some(old) = old else {
            let why = "there is no live version that could be kept";
            return Err(GateError::NotKept(why.to_owned()));
        };
        if old.version.major == new.version.major {
            let why =
                "the change breaks nothing: callers of the live version continue with the new one";
            return Err(GateError::NotKept(why.to_owned()));
        }
        let now = now_ms();
        check_sunset(keep.sunset_ms, now)?;
        let shim = apart(|| match &keep.shim {
            Some(shim) => match shim.fits(old, new) {
                Ok(_) => Ok(Some(shim.clone())),
                Err(why) => Err(GateError::NotKept(format!(
                    "the shim does not convert every call: {why}"
                ))),
            },
            None => suggested_shim(old, new),
        })?;
        Ok(KeptRow {
            contract: old.name.clone(),
            major: old.version.major.into(),
            version: old.version.to_string(),
            shim: shim.map(|shim| serde_json::to_string(&shim).expect("plain data")),
            sunset_ms: keep.sunset_ms,
            kept_ms: now,
            kept_by: by.to_owned(),
        })
    }

    /// Moves the end of a kept version.
    pub async fn set_sunset(
        &self,
        name: &str,
        major: u32,
        sunset_ms: Option<i64>,
        by: &str,
    ) -> Result<(), GateError> {
        let mut change = self.state.change_live().await?;
        let rows = change.kept_of(name).await?;
        let row = rows.into_iter().find(|row| row.major == i64::from(major));
        let row = row.ok_or(StateError::Unknown("kept version"))?;
        let has_ended = |sunset: Option<i64>| sunset.is_some_and(|sunset| sunset <= now_ms());
        if has_ended(row.sunset_ms) && !has_ended(sunset_ms) {
            // Other contracts may have taken its names since it ended.
            let version = self.state.version(name, &row.version).await?;
            let version = version.ok_or(StateError::Unknown("kept version"))?;
            let contract = artifact(name, &version.artifact)?;
            let problems = self.names_taken(&mut change, &contract).await?;
            if !problems.is_empty() {
                return Err(GateError::Refused(problems));
            }
        }
        let subject = format!("{name}@{}", row.version);
        change.keep(&KeptRow { sunset_ms, ..row }).await?;
        let done = change.end_kept(name);
        self.recorded(AdminAct::VersionKeep, &subject, "", by, done)
            .await?;
        self.refresh().await
    }

    /// Pins an agent to a major version of a contract; `None` gives it the live one.
    pub async fn pin(
        &self,
        agent: &str,
        contract: &str,
        major: Option<u32>,
        by: &str,
    ) -> Result<(), GateError> {
        match major {
            Some(major) => {
                let subject = format!("{agent} {contract}@{major}");
                let pin = AgentPin {
                    agent: agent.to_owned(),
                    contract: contract.to_owned(),
                    major: major.into(),
                    created_ms: now_ms(),
                    created_by: by.to_owned(),
                };
                let pinned = self.state.pin(&pin);
                self.recorded(AdminAct::AgentPin, &subject, "", by, pinned)
                    .await?;
            }
            None => {
                let subject = format!("{agent} {contract}");
                let unpinned = self.state.unpin(agent, contract);
                self.recorded(AdminAct::AgentUnpin, &subject, "", by, unpinned)
                    .await?;
            }
        }
        self.refresh().await
    }

    /// Returns which agents are pinned to which versions.
    pub fn pins(&self) -> Arc<AgentPins> {
        self.pins.lock().clone()
    }

    /// Replaces the table of pinned agents.
    pub(super) async fn read_pins(&self) -> Result<(), GateError> {
        let rows = self.state.pins().await?;
        let rows = rows.iter().filter_map(|pin| {
            let major = u32::try_from(pin.major).ok()?;
            Some((pin.agent.as_str(), pin.contract.as_str(), major))
        });
        let now = AgentPins::new(rows);
        let mut pins = self.pins.lock();
        if **pins != now {
            *pins = Arc::new(now);
        }
        Ok(())
    }

    /// Reads the versions that are served in addition to a live one.
    pub(super) async fn read_kept(
        &self,
        rows: &[KeptRow],
        live: &LiveContract,
    ) -> Result<Vec<Arc<KeptContract>>, GateError> {
        let mut kept = Vec::new();
        for row in rows.iter().filter(|row| row.contract == live.contract.name) {
            let Some(version) = self.state.version(&row.contract, &row.version).await? else {
                continue;
            };
            match artifact(&row.contract, &version.artifact) {
                Ok(contract) => {
                    let shim = apart(|| fitting_shim(row, &contract, &live.contract));
                    kept.push(Arc::new(KeptContract {
                        contract: Arc::new(contract),
                        shim,
                        sunset_ms: row.sunset_ms,
                    }));
                }
                Err(error) => {
                    tracing::error!(contract = row.contract, version = row.version, %error, "a kept version is not served");
                }
            }
        }
        Ok(kept)
    }
}

/// Records that a version is kept, in the change that replaces it.
pub(super) async fn keep(change: &mut LiveChange, row: &KeptRow) -> Result<(), GateError> {
    let now = now_ms();
    let mut others = change.kept_of(&row.contract).await?;
    others.retain(|other| other.major != row.major);
    let has_ended = |other: &&KeptRow| other.sunset_ms.is_some_and(|sunset| sunset <= now);
    if others.len() >= KEPT_MAX {
        let Some(ended) = others.iter().find(has_ended) else {
            let why = format!(
                "{KEPT_MAX} versions of it are kept already: end one of them first (`weir contracts sunset`)"
            );
            return Err(GateError::NotKept(why));
        };
        change.forget_kept(&row.contract, ended.major).await?;
    }
    Ok(change.keep(row).await?)
}

fn check_sunset(sunset_ms: Option<i64>, now_ms: i64) -> Result<(), GateError> {
    match sunset_ms {
        Some(sunset) if sunset <= now_ms => Err(GateError::NotKept(
            "its last day has passed already".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Returns the shim that the difference suggests, if it converts every call. Without a shim, a version keeps its own binding.
/// Versions of a plugin have no binding to keep, since the build of the live version answers.
fn suggested_shim(
    old: &CompiledContract,
    new: &CompiledContract,
) -> Result<Option<VersionShim>, GateError> {
    match derived_shim(old, new) {
        Ok(shim) => Ok(Some(shim)),
        Err(why) if old.plugin().is_some() => Err(GateError::NotKept(format!(
            "its calls go to a plugin, of which the build of the live version answers: a shim is needed, and what the \
             change suggests does not convert every call: {why}"
        ))),
        Err(_) => Ok(None),
    }
}

/// Returns the shim that the difference suggests, or the calls that it does not convert.
pub(super) fn derived_shim(
    old: &CompiledContract,
    new: &CompiledContract,
) -> Result<VersionShim, String> {
    let shim = derive(old, new)?;
    shim.fits(old, new)?;
    Ok(shim)
}

/// Returns the shim that converts calls of a kept version to those of the live one: the operator's, carried over from version to
/// version as long as it fits, and afterwards the suggested one.
fn fitting_shim(
    row: &KeptRow,
    old: &CompiledContract,
    live: &CompiledContract,
) -> Option<VersionShim> {
    let shim = stored_shim_that_fits(row.shim.as_deref()?, old, live);
    let shim = shim.or_else(|| suggested_shim(old, live).ok().flatten());
    if shim.is_none() && old.version.major != live.version.major {
        let (contract, version) = (&row.contract, &row.version);
        tracing::warn!(
            contract,
            version,
            live = %live.version,
            "no shim converts the calls of a kept version any more: it continues with its own binding"
        );
    }
    shim
}
