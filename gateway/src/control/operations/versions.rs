//! Versions that are served in addition to the live ones, and the agents that are pinned to them.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use weir_contracts::shim::VersionShim;
use weir_state::AgentPin;

use super::{FailureKind, OperationError, OperationResult, keys::check_name};
use crate::{
    catalogue::KeptContract,
    control::{
        ControlPlane,
        gate::{KeepPreview, KeepVersion, LiveContract, NextShim},
    },
    identity::now_ms,
};

/// The last day of a version that ends immediately.
const NOW: &str = "now";
/// The difference that is allowed between the clocks of two nodes: a version that ends immediately has ended by both.
const CLOCKS_APART_MS: i64 = 4_000;
const VERSIONS: &str = "GET /v1/versions and `weir contracts show` name those that are served";

/// The versions that are served in addition to the live ones, and their agents.
#[derive(Serialize, ToSchema)]
pub struct VersionsView {
    pub kept: Vec<KeptView>,
    pub pins: Vec<PinView>,
}

/// A version that is served in addition to the live one.
#[derive(Serialize, ToSchema)]
pub struct KeptView {
    pub contract: String,
    pub version: String,
    /// The shim that converts its calls to those of the live version; null: it keeps its own binding.
    #[schema(value_type = Option<Object>)]
    pub shim: Option<Value>,
    /// When it ends; null if never.
    pub sunset_ms: Option<i64>,
    pub has_ended: bool,
}

/// A preview of keeping the version that a draft replaces.
#[derive(Serialize, ToSchema)]
pub struct KeepingView {
    pub version: String,
    /// The shim that would convert its calls, derived from the difference; null: the difference is not enough.
    #[schema(value_type = Option<Object>)]
    pub shim: Option<Value>,
    /// The first place that a shim derived from the difference does not convert.
    pub missing: Option<String>,
    /// Whether keeping it requires a shim.
    pub needs_shim: bool,
    /// What happens to already kept versions with a shim if this one gets the suggested shim.
    pub beside: Vec<NextShimView>,
}

/// A preview of an already kept version with a shim, after a draft is published.
#[derive(Serialize, ToSchema)]
pub struct NextShimView {
    pub version: String,
    /// The shim that would convert its calls; null if it would continue with its own binding.
    #[schema(value_type = Option<Object>)]
    pub shim: Option<Value>,
    /// The first place that no shim converts.
    pub missing: Option<String>,
}

/// The major version of a contract to which an agent is pinned.
#[derive(Serialize, ToSchema)]
pub struct PinView {
    pub agent: String,
    pub contract: String,
    pub major: i64,
    pub created_ms: i64,
    pub created_by: String,
}

/// The treatment of the version that a draft replaces, as an admin writes it.
#[derive(Default)]
pub struct KeepRequest {
    pub keep: bool,
    pub sunset: Option<String>,
    pub shim: Option<Value>,
}

/// Returns the versions that are served in addition to live ones, and all pins.
pub async fn list(control: &ControlPlane) -> OperationResult<VersionsView> {
    let gate = control.gate();
    gate.refresh().await?;
    let kept = gate.live().values().flat_map(|live| beside(live)).collect();
    let pins = control.state().pins().await?;
    Ok(VersionsView {
        kept,
        pins: pins.into_iter().map(PinView::from).collect(),
    })
}

/// Moves the last day of a kept version; with `None`, it is kept until an operator ends it. `now` ends it by the clock of this
/// process.
pub async fn set_sunset(
    control: &ControlPlane,
    contract: &str,
    major: u32,
    sunset: Option<&str>,
    by: &str,
) -> OperationResult<()> {
    let sunset_ms = match sunset {
        Some(NOW) => Some(now_ms() - CLOCKS_APART_MS),
        sunset => sunset.map(read_sunset).transpose()?,
    };
    let name = format!("{contract}@{major}");
    let moved = control
        .gate()
        .set_sunset(contract, major, sunset_ms, by)
        .await;
    moved.map_err(|error| OperationError::at_the_gate(error, &name, VERSIONS))?;
    control.publisher().serve();
    Ok(())
}

/// Pins an agent to a served major version of a contract.
pub async fn pin(
    control: &ControlPlane,
    agent: &str,
    contract: &str,
    major: u32,
    by: &str,
) -> OperationResult<()> {
    check_name("agent", agent)?;
    let gate = control.gate();
    gate.refresh().await?;
    let live = gate.live();
    let live = live
        .get(contract)
        .ok_or_else(|| OperationError::not_found("live contract", contract).see(VERSIONS))?;
    let is_served = |kept: &&KeptView| !kept.has_ended;
    let kept = beside(live);
    let kept = kept.iter().filter(is_served).map(|kept| &*kept.version);
    let own = live.contract.version.to_string();
    let served: Vec<&str> = std::iter::once(&*own).chain(kept).collect();
    let prefix = format!("{major}.");
    if !served.iter().any(|version| version.starts_with(&prefix)) {
        let detail = format!(
            "version {major} of `{contract}` is not served: there is {}",
            served.join(", ")
        );
        return Err(OperationError::new(FailureKind::Conflict, detail));
    }
    gate.pin(agent, contract, Some(major), by).await?;
    control.publisher().serve();
    Ok(())
}

/// Gives an agent the live version of a contract.
pub async fn unpin(
    control: &ControlPlane,
    agent: &str,
    contract: &str,
    by: &str,
) -> OperationResult<()> {
    let name = format!("{agent} {contract}");
    let unpinned = control.gate().pin(agent, contract, None, by).await;
    unpinned.map_err(|error| OperationError::at_the_gate(error, &name, VERSIONS))?;
    control.publisher().serve();
    Ok(())
}

/// Returns the versions that are kept next to a live one.
pub(super) fn beside(live: &LiveContract) -> Vec<KeptView> {
    let own = live.contract.version.major;
    let beside = live
        .kept
        .iter()
        .filter(|kept| kept.contract.version.major != own);
    beside.map(|kept| KeptView::from(&**kept)).collect()
}

impl KeepRequest {
    /// Reads the treatment of the replaced version; `None`: it is no longer served.
    pub(super) fn read(self) -> OperationResult<Option<KeepVersion>> {
        if !self.keep {
            return match (self.sunset, self.shim) {
                (None, None) => Ok(None),
                _ => Err(OperationError::invalid(
                    "`sunset` and `shim` are about a version that is kept: set `keep` too",
                )),
            };
        }
        let shim = self.shim.as_ref().map(VersionShim::read);
        Ok(Some(KeepVersion {
            sunset_ms: self.sunset.as_deref().map(read_sunset).transpose()?,
            shim: shim.transpose().map_err(OperationError::invalid)?,
        }))
    }
}

/// Reads a last day, which lasts until midnight UTC, or a time.
fn read_sunset(text: &str) -> OperationResult<i64> {
    let day = || {
        let day: jiff::civil::Date = text.parse().ok()?;
        let next = day.tomorrow().ok()?;
        let end = next.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(end.timestamp())
    };
    let time = match text.len() {
        10 => day(),
        _ => text.parse::<jiff::Timestamp>().ok(),
    };
    let time = time.ok_or_else(|| {
        OperationError::invalid(
            "`sunset` must be a day such as 2027-03-31, or a time such as 2027-03-31T12:00:00Z; `now` ends a version that is kept",
        )
    })?;
    Ok(time.as_millisecond())
}

impl From<&KeptContract> for KeptView {
    fn from(kept: &KeptContract) -> Self {
        let shim = kept.shim.as_ref();
        Self {
            contract: kept.contract.name.clone(),
            version: kept.contract.version.to_string(),
            shim: shim.map(|shim| serde_json::to_value(shim).expect("plain data")),
            sunset_ms: kept.sunset_ms,
            has_ended: kept.has_ended(now_ms()),
        }
    }
}

impl From<&KeepPreview> for KeepingView {
    fn from(preview: &KeepPreview) -> Self {
        let (shim, missing) = view_shim(&preview.shim);
        Self {
            version: preview.version.clone(),
            shim,
            missing,
            needs_shim: preview.needs_shim,
            beside: preview.beside.iter().map(NextShimView::from).collect(),
        }
    }
}

impl From<&NextShim> for NextShimView {
    fn from(next: &NextShim) -> Self {
        let (shim, missing) = view_shim(&next.shim);
        Self {
            version: next.version.clone(),
            shim,
            missing,
        }
    }
}

/// Returns a shim in the form for admins, or what it lacks.
fn view_shim(shim: &Result<VersionShim, String>) -> (Option<Value>, Option<String>) {
    match shim {
        Ok(shim) => (Some(serde_json::to_value(shim).expect("plain data")), None),
        Err(missing) => (None, Some(missing.clone())),
    }
}

impl From<AgentPin> for PinView {
    fn from(pin: AgentPin) -> Self {
        Self {
            agent: pin.agent,
            contract: pin.contract,
            major: pin.major,
            created_ms: pin.created_ms,
            created_by: pin.created_by,
        }
    }
}
