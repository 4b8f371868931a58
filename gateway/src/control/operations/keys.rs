//! Keys of agents: made once, shown once, revoked for good.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use serde::Serialize;
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_state::{KeyRow, KeyUsage};
use weir_text::shorten;

use super::{OperationError, OperationResult};
use crate::{
    control::ControlPlane,
    identity::{AccessList, KeyLimits, MintedSecret, SecretKind, now_ms},
    telemetry::note_written,
};

const NAME_MAX_CHARS: usize = 64;

/// The advice for an unknown id.
const IDS: &str = "an id is needed, as GET /v1/keys and `weir keys list` show it";

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
pub struct KeyView {
    pub id: String,
    pub agent: String,
    pub tenant: String,
    /// The tools and contracts that it may see and call; null: everything.
    pub access: Option<AccessList>,
    /// The view that it is shown at `/mcp`; null: everything.
    pub view: Option<String>,
    pub limits: KeyLimits,
    /// Milliseconds since 1970, as all times.
    pub created_ms: i64,
    pub created_by: String,
    pub expires_ms: Option<i64>,
    pub revoked_ms: Option<i64>,
    /// When it was last used for a call at any process; null if no use is recorded. Uses at other processes appear after 5
    /// seconds.
    pub last_used_ms: Option<i64>,
    /// Calls with it in the last 24 hours, counted by whole hours.
    pub calls_24h: i64,
}

/// The settings of a new key.
pub struct KeyRequest {
    /// The holder.
    pub agent: String,
    /// The tenant of the agent; by default the agent itself.
    pub tenant: Option<String>,
    /// `None`: every contract.
    pub access: Option<AccessList>,
    /// The view that it is shown at `/mcp`; `None`: everything that it may use.
    pub view: Option<String>,
    pub limits: KeyLimits,
    /// `None`: never.
    pub expires_in_s: Option<i64>,
}

/// An agent's key that was made, with its secret, which is shown once.
#[derive(Serialize, ToSchema)]
pub struct MadeKey {
    #[serde(flatten)]
    pub view: KeyView,
    /// The key. It is shown only once.
    pub key: String,
    /// The contracts and tools that it names but that do not exist now, one sentence each: they may be added later.
    pub warnings: Vec<String>,
}

impl From<KeyRow> for KeyView {
    fn from(row: KeyRow) -> Self {
        Self {
            access: row
                .access
                .as_deref()
                .map(|text| serde_json::from_str(text).unwrap_or_default()),
            limits: row
                .limits
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default(),
            view: row.view,
            id: row.id,
            agent: row.agent,
            tenant: row.tenant,
            created_ms: row.created_ms,
            created_by: row.created_by,
            expires_ms: row.expires_ms,
            revoked_ms: row.revoked_ms,
            last_used_ms: None,
            calls_24h: 0,
        }
    }
}

/// Returns all keys, revoked ones too.
pub async fn list(control: &ControlPlane) -> OperationResult<Vec<KeyView>> {
    let state = control.state();
    // The counts are removed before they are written: a client that disconnects must not stop this in between.
    let (gateway, writing) = (Arc::clone(control.gateway()), state.clone());
    let written = tokio::spawn(async move { gateway.identities().write_uses(&writing).await });
    match written.await {
        Ok(written) => note_written(&mut false, &written, "uses of keys"),
        Err(error) => tracing::error!(%error, "uses of keys cannot be written to the state"),
    }
    let usage = state.key_usage(now_ms()).await?.into_iter();
    let usage: HashMap<String, KeyUsage> = usage.map(|usage| (usage.key.clone(), usage)).collect();
    let view = |row: KeyRow| {
        let used = usage.get(&row.id);
        KeyView {
            last_used_ms: used.map(|used| used.last_used_ms),
            calls_24h: used.map_or(0, |used| used.calls_24h),
            ..row.into()
        }
    };
    Ok(state.keys().await?.into_iter().map(view).collect())
}

/// Makes a key for an agent, even if it names contracts or tools that do not exist yet.
pub async fn create(control: &ControlPlane, new: KeyRequest, by: &str) -> OperationResult<MadeKey> {
    if control.publisher().is_alone() {
        let detail = "one file is served, to everyone on this machine: serve a folder of contracts to give out keys";
        return Err(OperationError::new(super::FailureKind::Conflict, detail));
    }
    new.check()?;
    let warnings = new.warnings(control).await?;
    let minted = MintedSecret::new(SecretKind::Agent)
        .map_err(|_| OperationError::unavailable("no random number could be generated"))?;
    let now = now_ms();
    let row = KeyRow {
        id: minted.id,
        secret_hash: minted.hash.to_vec(),
        tenant: new.tenant.unwrap_or_else(|| new.agent.clone()),
        agent: new.agent,
        access: new
            .access
            .map(|access| serde_json::to_string(&access).expect("plain data")),
        view: new.view,
        limits: Some(serde_json::to_string(&new.limits).expect("plain data")),
        created_ms: now,
        created_by: by.to_owned(),
        expires_ms: new
            .expires_in_s
            .map(|seconds| now.saturating_add(seconds.saturating_mul(1000))),
        revoked_ms: None,
        change: 0,
    };
    let detail = serde_json::Map::from_iter([("agent".to_owned(), row.agent.clone().into())]);
    let audit = control.gateway().audit();
    audit.admin(AdminAct::KeyCreate, &row.id, None, by, Some(&detail))?;
    let added = control.state().add_key(&row).await;
    audit.note_failure(AdminAct::KeyCreate, &row.id, None, by, added)?;
    control
        .gateway()
        .identities()
        .take_over(control.state())
        .await?;
    Ok(MadeKey {
        view: row.into(),
        key: minted.text,
        warnings,
    })
}

/// Revokes one key: the next call with it is refused, and its open streams and sessions end.
pub async fn revoke(control: &ControlPlane, id: &str, by: &str) -> OperationResult<()> {
    let key = control
        .state()
        .key(id)
        .await?
        .ok_or_else(|| OperationError::not_found("key", id).see(IDS))?;
    if key.revoked_ms.is_some() {
        return Ok(());
    }
    let audit = control.gateway().audit();
    audit.admin(AdminAct::KeyRevoke, id, None, by, None)?;
    let revoked = control.state().revoke_key(id, now_ms()).await;
    audit.note_failure(AdminAct::KeyRevoke, id, None, by, revoked)?;
    control
        .gateway()
        .identities()
        .take_over(control.state())
        .await?;
    Ok(())
}

impl KeyRequest {
    fn check(&self) -> OperationResult<()> {
        check_name("agent", &self.agent)?;
        self.tenant
            .as_deref()
            .map_or(Ok(()), |tenant| check_name("tenant", tenant))?;
        if self
            .view
            .as_deref()
            .is_some_and(|view| weir_contracts::name::check_contract(view).is_err())
        {
            return Err(OperationError::invalid(
                "`view` must be a lowercase letter and then up to 31 of a-z, 0-9 and `-`",
            ));
        }
        if self
            .expires_in_s
            .is_some_and(|seconds| !(1..=315_360_000).contains(&seconds))
        {
            return Err(OperationError::invalid(
                "`expires_in_s` must be 1 to 315360000 seconds",
            ));
        }
        for (name, quota) in [
            ("quota_day", self.limits.quota_day),
            ("quota_month", self.limits.quota_month),
        ] {
            if quota == Some(0) {
                return Err(OperationError::invalid(format!(
                    "`limits.{name}`: a quota of 0 calls allows none: leave it out, or revoke the key"
                )));
            }
        }
        if let Some(rate) = &self.limits.rate {
            check_rate("`limits.rate`", rate)?;
        }
        for (tool, rate) in &self.limits.tools {
            let tool = shorten(tool, NAME_MAX_CHARS);
            check_rate(&format!("`limits.tools`, tool `{tool}`"), rate)?;
        }
        Ok(())
    }

    /// Returns the names in the access that no live contract or tool has.
    async fn warnings(&self, control: &ControlPlane) -> OperationResult<Vec<String>> {
        let gate = control.gate();
        gate.refresh().await?;
        let live = gate.live();
        let contracts: Vec<&str> = live.keys().map(String::as_str).collect();
        let tools = live.values().flat_map(|live| &live.contract.tools);
        let tools: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
        let access = self.access.as_ref();
        let named = access.into_iter().flat_map(|list| &list.contracts);
        let mut warnings = absent("contract", named, &contracts);
        let named: BTreeSet<&String> = access
            .into_iter()
            .flat_map(|list| &list.tools)
            .chain(self.limits.tools.keys())
            .collect();
        warnings.extend(absent("tool", named, &tools));
        let config = control.gateway().config();
        let views: Vec<&str> = config.views.keys().map(String::as_str).collect();
        warnings.extend(absent("view", &self.view, &views));
        Ok(warnings)
    }
}

fn check_rate(place: &str, rate: &str) -> OperationResult<()> {
    if weir_contracts::form::rate(rate).is_some() {
        return Ok(());
    }
    let shown = shorten(rate, 32);
    let detail = format!("{place}: `{shown}` is not a rate such as 60/min");
    Err(OperationError::invalid(detail))
}

fn absent<'a>(
    what: &str,
    named: impl IntoIterator<Item = &'a String>,
    there: &[&str],
) -> Vec<String> {
    let named = named
        .into_iter()
        .filter(|name| !there.contains(&name.as_str()));
    let sentence = |name: &String| {
        let near = weir_contracts::name::nearest(name, there.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let shown = shorten(name, NAME_MAX_CHARS);
        format!("there is no {what} `{shown}` yet{near}")
    };
    named.map(sentence).collect()
}

/// Names are written to logs, metrics and the trail.
pub(super) fn check_name(field: &str, name: &str) -> OperationResult<()> {
    let fits = |char: char| char.is_ascii_alphanumeric() || "-_.@:".contains(char);
    if (1..=NAME_MAX_CHARS).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(OperationError::invalid(format!(
        "`{field}` must be 1 to 64 letters, digits, `-`, `_`, `.`, `@` or `:`"
    )))
}
