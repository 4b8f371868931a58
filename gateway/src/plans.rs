//! Writes that a person approves first. A plan describes what a call would change; its caller repeats the call once the plan is
//! approved, which uses it up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use utoipa::ToSchema;
use weir_plugin_host::AdapterChange;
use weir_state::{AddedPlan, GatewayState, PlanRow, PlanStatus, StateError};

use crate::{
    cursor::{CursorCipher, CursorScope, CursorSealError},
    identity::{CallerIdentity, holder_name, now_ms},
};

/// The time within which a plan must be approved and carried out, in milliseconds.
pub const LIFETIME_MS: i64 = 15 * 60 * 1000;

/// The longest time between two searches for ended plans and results.
const LOOK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The shortest time, and the pause after the state could not be read.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
const LOOK_RETRY: Duration = Duration::from_secs(60);

/// The plans of all processes that share a state.
pub struct WritePlans {
    state: Arc<GatewayState>,
    /// The time of the next search for ended plans and results.
    next_look_ms: AtomicI64,
    /// Wakes that search if a plan may end earlier.
    added: Notify,
}

/// The change that a call would make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlannedWrite {
    /// `create`, `update`, `delete` or `call`.
    pub verb: String,
    /// The key of the record.
    #[schema(value_type = Option<Object>)]
    pub key: Option<Map<String, Value>>,
    /// The record as it is; null if it was not read.
    #[schema(value_type = Option<Object>)]
    pub before: Option<Map<String, Value>>,
    /// The record as it would be, as far as known; null if there would be none.
    #[schema(value_type = Option<Object>)]
    pub after: Option<Map<String, Value>>,
    /// Further parts of the request to the source: an operation and its parameters, and conditions.
    #[schema(value_type = Option<Object>)]
    pub options: Option<Map<String, Value>>,
    /// The columns whose values would change.
    pub changed: Vec<String>,
    /// Conditions that bind the write to the record as it was read.
    #[schema(value_type = Vec<Object>)]
    pub guards: Vec<Value>,
}

/// The caller and the change; a repeat of the same call has the same subject.
pub struct PlanSubject {
    /// A unique name of the caller.
    caller: String,
    change: String,
}

impl PlannedWrite {
    /// Makes the plan of a change before its record is read.
    pub fn new(change: &AdapterChange) -> Self {
        let object = |text: &Option<String>| serde_json::from_str(text.as_deref()?).ok();
        let record: Option<Map<String, Value>> = object(&change.record);
        Self {
            verb: change.verb.clone(),
            key: object(&change.key),
            before: None,
            changed: record
                .iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect(),
            after: record,
            options: object(&change.options),
            guards: Vec::new(),
        }
    }

    /// Adds the current record.
    pub fn set_before(&mut self, before: Map<String, Value>) {
        self.after = self.after.take().map(|record| {
            let mut after = before.clone();
            after.extend(record);
            after
        });
        let is_other = |name: &&String| {
            let after = self.after.as_ref().map(|after| after.get(*name));
            after != Some(before.get(*name))
        };
        let names = self.after.as_ref().unwrap_or(&before).keys();
        self.changed = names.filter(is_other).cloned().collect();
        self.before = Some(before);
    }

    /// Returns the change with the condition that the record is as it was read.
    pub fn guard(&self, change: &AdapterChange) -> AdapterChange {
        if self.guards.is_empty() {
            return change.clone();
        }
        let mut options: Map<String, Value> = change
            .options
            .as_deref()
            .and_then(|options| serde_json::from_str(options).ok())
            .unwrap_or_default();
        let conditions = options
            .entry("conditions")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(conditions) = conditions {
            conditions.extend(self.guards.iter().cloned());
        }
        AdapterChange {
            options: Some(Value::Object(options).to_string()),
            ..change.clone()
        }
    }
}

impl PlanSubject {
    /// `contract` is `name@version`.
    pub fn new(
        caller: &CallerIdentity,
        contract: &str,
        tool: &str,
        change: &AdapterChange,
    ) -> Self {
        let caller = caller_name(caller);
        let optional = |text: &Option<String>| text.clone().unwrap_or_default();
        let change = digest(&[
            &caller,
            contract,
            tool,
            &change.verb,
            &optional(&change.key),
            &optional(&change.record),
            &optional(&change.options),
        ]);
        Self { caller, change }
    }
}

impl WritePlans {
    /// Creates the plans that `state` keeps.
    pub fn new(state: Arc<GatewayState>) -> Self {
        Self {
            state,
            next_look_ms: AtomicI64::new(i64::MAX),
            added: Notify::new(),
        }
    }

    /// Returns the state that keeps them.
    pub fn state(&self) -> &Arc<GatewayState> {
        &self.state
    }

    /// Returns the current plan for the change, which has not expired.
    pub async fn find(&self, subject: &PlanSubject) -> Result<Option<PlanRow>, StateError> {
        self.state
            .find_plan(&subject.caller, &subject.change, now_ms())
            .await
    }

    /// Takes an approved plan as it was found, with its sealed part. `None`: another call has taken it, or it has expired.
    pub async fn take(&self, plan: &PlanRow) -> Result<Option<PlanRow>, StateError> {
        let reason = plan.reason.as_deref();
        self.state.take_plan(&plan.id, reason, now_ms()).await
    }

    /// Gives back a plan whose call did not make its write: it ended with a question, or nothing was sent.
    pub async fn give_back(
        &self,
        id: &str,
        sealed: &str,
        has_asked: bool,
    ) -> Result<(), StateError> {
        let given = self.state.give_plan_back(id, sealed, has_asked, now_ms());
        given.await?;
        self.added.notify_one(); // it has something sealed again
        Ok(())
    }

    /// Records that the record of a taken plan had changed.
    pub async fn set_stale(&self, id: &str) -> Result<(), StateError> {
        self.state.set_plan_stale(id).await
    }

    /// Adds a plan that waits for a person.
    pub async fn add(&self, plan: &PlanRow) -> Result<AddedPlan, StateError> {
        let added = self.state.add_plan(plan).await?;
        if plan.expires_ms < self.next_look_ms.load(Ordering::Relaxed) {
            self.added.notify_one();
        }
        Ok(added)
    }

    /// Forgets plans that have expired, and results that repeated calls no longer find, until the task ends. It searches when the
    /// next plan expires, and each hour.
    pub async fn forget_ended(&self) {
        loop {
            let now_ms = now_ms();
            self.next_look_ms.store(i64::MAX, Ordering::Relaxed); // what is added meanwhile wakes the next look
            let pause = match self.state.forget_ended(now_ms).await {
                Ok(next) => {
                    let left = next.and_then(|next| u64::try_from(next - now_ms).ok());
                    let left = left.map_or(LOOK_INTERVAL, Duration::from_millis);
                    left.clamp(LOOK_PAUSE, LOOK_INTERVAL)
                }
                Err(error) => {
                    tracing::warn!(%error, "plans that have expired are not forgotten yet");
                    LOOK_RETRY
                }
            };
            let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
            self.next_look_ms
                .store(now_ms + pause_ms, Ordering::Relaxed);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.added.notified() => {}
            }
        }
    }
}

/// Returns a unique name of a caller.
pub fn caller_name(caller: &CallerIdentity) -> String {
    let kind = match caller.holder() {
        Some(_) => "user",
        None => "agent",
    };
    format!("{kind} {} of {}", caller.principal(), caller.tenant)
}

/// Makes the row of a waiting plan. `contract` is `name@version`; `policies` are those that would have denied the call.
pub fn make_row(
    cursors: &CursorCipher,
    caller: &CallerIdentity,
    (contract, tool): (&str, &str),
    subject: &PlanSubject,
    write: &PlannedWrite,
    policies: &str,
) -> Result<PlanRow, CursorSealError> {
    let text = serde_json::to_string(write).expect("plain data");
    let created_ms = now_ms();
    let expires_ms = created_ms + LIFETIME_MS;
    let mut id = [0; 8];
    getrandom::fill(&mut id).map_err(|_| CursorSealError::NoRandomness)?;
    let fingerprint = digest(&[
        &subject.caller,
        contract,
        tool,
        &subject.change,
        &text,
        policies,
        &expires_ms.to_string(),
    ]);
    Ok(PlanRow {
        id: format!("p_{}", hex::encode(id)),
        caller: subject.caller.clone(),
        agent: caller.agent.to_string(),
        tenant: caller.tenant.to_string(),
        // The name of an admin who signed in as the same person.
        subject: caller
            .holder()
            .map(|holder| holder_name(&holder.issuer, &holder.subject).to_string()),
        contract: contract.to_owned(),
        tool: tool.to_owned(),
        change: subject.change.clone(),
        sealed: Some(cursors.seal(&bound(&subject.caller, &subject.change), &text)?),
        fingerprint,
        status: PlanStatus::Pending,
        created_ms,
        expires_ms,
        decided_ms: None,
        decided_by: None,
        reason: None,
    })
}

/// Opens the sealed part of a plan; `None` if it no longer exists, or another key sealed it.
pub fn open_write(cursors: &CursorCipher, plan: &PlanRow) -> Option<PlannedWrite> {
    let sealed = plan.sealed.as_deref()?;
    let text = cursors.open_sealed(&bound(&plan.caller, &plan.change), sealed)?;
    serde_json::from_str(&text).ok()
}

fn bound(caller: &str, change: &str) -> CursorScope {
    CursorScope::new("a planned write", 1, caller, change)
}

/// Returns the SHA-256 of parts, each preceded by its length, as hex.
pub fn digest(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex::encode(digest.finalize())
}
