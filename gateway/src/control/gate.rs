//! The gate: keeps changes from going live without a decision.
//!
//! Every submission is compared with the live version, or with the last one if the name was retired. A change that no agent
//! relies on goes live; any other waits as a draft, whose approval is bound to the fingerprint of exactly that change. The live
//! version remains as it was published, byte for byte, whatever its file contains now.

mod carried;
mod drafts;
mod history;
mod kept;
mod live;
mod names;
mod nodes;
mod owner;
mod preview;
mod rollback;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64},
    },
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use weir_audit::AdminAct;
use weir_contracts::{
    CompiledContract, ContractTool, ContractVersion, FileProblem,
    diff::{ChangeSeverity, ContractDiff},
    lint::lint_contract,
    listed,
    lock::ContractLock,
};
use weir_state::{GatewayState, KeptRow, LiveChange, StateError, VersionRow, VersionSource};

pub use self::{
    carried::NextShim,
    drafts::{DraftApproval, HeldDraft},
    kept::{KeepPreview, KeepVersion},
    live::LiveContract,
    preview::ForeseenVerdict,
};
use self::{kept::KeepPreviews, live::UnreadableVersion, names::taken_names};
pub use weir_state::{ChangeClass, ContractBasis, ContractOrigin, DraftStatus, Role};

use crate::{
    catalogue::AgentPins,
    control::policies::PolicySource,
    identity::now_ms,
    telemetry::{AuditRecorder, AuditUnavailable},
};

/// The number of times that a submission is judged again because another one was published meanwhile.
const ATTEMPTS: usize = 4;

/// Judges submissions, and makes those live that pass or are approved.
pub struct Gate {
    state: Arc<GatewayState>,
    audit: Arc<AuditRecorder>,
    policies: Arc<PolicySource>,
    live: Mutex<BTreeMap<String, Arc<LiveContract>>>,
    pins: Mutex<Arc<AgentPins>>,
    keep_previews: Mutex<KeepPreviews>,
    /// Live versions that this program cannot read, by contract.
    unreadable: Mutex<BTreeMap<String, UnreadableVersion>>,
    /// The number of waiting drafts of each class.
    waiting: Mutex<Vec<(ChangeClass, u32)>>,
    /// The state's generation at which `live` was read; -1 before the first read.
    seen: AtomicI64,
    /// The number of database fail-overs before `live` was read.
    fail_overs: AtomicU64,
    /// The lock for reading the state: of two concurrent reads, the older one could end last and replace the newer one.
    reading: tokio::sync::Mutex<()>,
}

/// A contract that is to become live.
pub struct Submission<'a> {
    pub contract: CompiledContract,
    pub source: &'a str,
    pub origin: ContractOrigin,
    /// The contracts folder, if the contract comes from a file.
    pub owner: Option<&'a str>,
    /// `file:PATH`, or the name of an admin.
    pub by: &'a str,
    /// Whether it waits even if it could go live.
    pub hold: bool,
    /// The basis that it was made on: it is refused on any other, and `None` accepts any.
    pub on: Option<ContractBasis>,
}

/// The outcome of a submission.
#[derive(Debug)]
pub enum Verdict {
    Unchanged {
        version: ContractVersion,
    },
    Published {
        version: ContractVersion,
        diff: Option<ContractDiff>,
    },
    Held(HeldDraft),
}

#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error("the contract is refused")]
    Refused(Vec<FileProblem>),
    #[error("a change of class `{class}` needs the role {needs}")]
    Role { class: ChangeClass, needs: Role },
    #[error("the approval is for another change: the fingerprint is {0}")]
    Fingerprint(String),
    #[error("the draft is {0}, not pending")]
    Decided(DraftStatus),
    #[error("the draft is based on {base}, but {live} is live now: submit it again")]
    Outdated { base: String, live: String },
    #[error("the contract `{0}` has changed since it was read: read it again")]
    Changed(String),
    #[error("the version is not kept: {0}")]
    NotKept(String),
    /// A running node could not read the version.
    #[error("{0}")]
    OlderNode(String),
    #[error("a stored version cannot be read: {0}")]
    Artifact(String),
    #[error(
        "one file is served without the gate: serve a folder of contracts to change what is live"
    )]
    Alone,
    #[error("{}", owned(contract, owner))]
    Owned { contract: String, owner: String },
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Unrecorded(#[from] AuditUnavailable),
}

impl Gate {
    pub fn new(
        state: Arc<GatewayState>,
        audit: Arc<AuditRecorder>,
        policies: Arc<PolicySource>,
    ) -> Self {
        Self {
            state,
            audit,
            policies,
            live: Mutex::default(),
            pins: Mutex::default(),
            keep_previews: Mutex::default(),
            unreadable: Mutex::default(),
            waiting: Mutex::default(),
            seen: AtomicI64::new(-1),
            fail_overs: AtomicU64::new(0),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the policies by which new live versions are judged.
    pub fn policies(&self) -> &PolicySource {
        &self.policies
    }

    /// Returns the number of waiting drafts of each class.
    pub fn waiting_by_class(&self) -> Vec<(&'static str, u32)> {
        let waiting = self.waiting.lock();
        waiting
            .iter()
            .map(|(class, count)| (class.as_str(), *count))
            .collect()
    }

    pub fn state(&self) -> &Arc<GatewayState> {
        &self.state
    }

    /// Returns `true` if any version of the contract was ever published.
    pub async fn was_published(&self, name: &str) -> Result<bool, GateError> {
        Ok(self.state.head(name).await?.is_some())
    }

    /// Judges a compiled contract, and publishes or holds it.
    pub async fn submit(&self, submission: Submission<'_>) -> Result<Verdict, GateError> {
        let mut last = StateError::Moved("the contract");
        for _ in 0..ATTEMPTS {
            self.refresh().await?;
            match self.judge(&submission).await {
                Err(GateError::State(StateError::Moved(what))) => last = StateError::Moved(what),
                Ok(verdict) => {
                    self.refresh().await?;
                    return Ok(verdict);
                }
                refused => return refused,
            }
        }
        Err(last.into())
    }

    async fn judge(&self, submission: &Submission<'_>) -> Result<Verdict, GateError> {
        let name = &submission.contract.name;
        let live = self.live();
        if let Some(skipped) = self.unreadable().remove(name) {
            return Err(GateError::Artifact(skipped.why));
        }
        self.check(submission, &live)?;
        let current = live.get(name);
        still_on(submission.on.as_ref(), name, current)?;
        let Some(before) = self.before(name, current).await? else {
            return self.first(submission).await;
        };
        let change = self.compare(&before, &submission.contract).await?;
        if let (ChangeSeverity::Identical, Some(current)) = (change.class, current) {
            if current.source != submission.source {
                self.state
                    .keep(name, &before.version.to_string(), submission.source)
                    .await?;
            }
            // A file or a server has one text. Another build of a plugin may wait while one serves, and a submission over the
            // admin API concerns only that one.
            if matches!(
                submission.origin,
                ContractOrigin::File | ContractOrigin::Upstream
            ) {
                self.state
                    .drop_held(name, submission.origin, now_ms(), submission.by)
                    .await?;
            }
            return Ok(Verdict::Unchanged {
                version: before.version,
            });
        }
        if (change.class, submission.hold) == (ChangeSeverity::Identical, false) {
            // The contract was retired, and has now returned unchanged.
            let version = before.version.to_string();
            let subject = format!("{name}@{version}");
            let switch = self
                .begin(Some(&submission.contract), submission.on.as_ref())
                .await?;
            let switch = switch.switch(name, None, Some(&version), None, now_ms(), submission.by);
            self.recorded(AdminAct::Publish, &subject, "", submission.by, switch)
                .await?;
            return Ok(Verdict::Published {
                version: before.version,
                diff: Some(change),
            });
        }
        let version = self.next_version(name, &before, &change).await?;
        let contract = CompiledContract {
            version,
            ..submission.contract.clone()
        };
        let base = current.map(|current| current.contract.version.to_string());
        if submission.hold || waits(change.class) {
            return self
                .hold(submission, &contract, base.as_deref(), change)
                .await
                .map(Verdict::Held);
        }
        let row = row(
            &contract,
            submission,
            change_class(change.class),
            &change.fingerprint,
        );
        self.make_live(
            &contract,
            submission.on.as_ref(),
            base.as_deref(),
            submission.place(),
            &row,
            (None, None),
        )
        .await?;
        Ok(Verdict::Published {
            version,
            diff: Some(change),
        })
    }

    /// Returns the version that a change becomes.
    async fn next_version(
        &self,
        name: &str,
        before: &CompiledContract,
        change: &ContractDiff,
    ) -> Result<ContractVersion, GateError> {
        let taken = self.state.version_numbers(name).await?;
        Ok(free(
            change.next_version(before.version),
            change.class,
            &taken,
        ))
    }

    async fn first(&self, submission: &Submission<'_>) -> Result<Verdict, GateError> {
        let contract = &submission.contract;
        if submission.hold {
            let fingerprint = first_fingerprint(contract);
            let report = first_report(contract, &fingerprint).to_string();
            let held = self
                .store_held(
                    submission,
                    contract,
                    None,
                    ChangeClass::First,
                    &fingerprint,
                    &report,
                )
                .await?;
            return Ok(Verdict::Held(HeldDraft { diff: None, ..held }));
        }
        let row = row(
            contract,
            submission,
            ChangeClass::First,
            &first_fingerprint(contract),
        );
        self.make_live(
            contract,
            submission.on.as_ref(),
            None,
            submission.place(),
            &row,
            (None, None),
        )
        .await?;
        Ok(Verdict::Published {
            version: contract.version,
            diff: None,
        })
    }

    /// Makes the contract of a lock file the first version here. Its form is not recorded, so that the contract file is judged.
    pub async fn restore(
        &self,
        lock: &ContractLock,
        name: &str,
        source: VersionSource<'_>,
    ) -> Result<(), GateError> {
        let contract = &lock.contract;
        if contract.name != name {
            let message = format!("is the lock of `{}`, not of `{name}`", contract.name);
            return Err(GateError::Refused(vec![FileProblem::new(
                "",
                "/contract/name",
                message,
            )]));
        }
        let row = VersionRow {
            contract: name.to_owned(),
            version: contract.version.to_string(),
            artifact: contract.to_artifact().to_string(),
            source: String::new(),
            class: ChangeClass::First,
            fingerprint: first_fingerprint(contract),
            published_ms: now_ms(),
            published_by: "lock".to_owned(),
        };
        self.make_live(contract, None, None, source, &row, (None, None))
            .await?;
        self.refresh().await?;
        Ok(())
    }

    /// Checks that a contract is changed at its origin, and that no other contract has its tools.
    fn check(
        &self,
        submission: &Submission<'_>,
        live: &BTreeMap<String, Arc<LiveContract>>,
    ) -> Result<(), GateError> {
        let contract = &submission.contract;
        let mut problems = Vec::new();
        let owner = live
            .get(&contract.name)
            .and_then(|current| current.owner.as_deref());
        if let Some(owner) =
            owner.filter(|owner| submission.owner.is_some_and(|folder| folder != *owner))
        {
            return Err(GateError::Owned {
                contract: contract.name.clone(),
                owner: owner.to_owned(),
            });
        }
        if let Some(current) = live
            .get(&contract.name)
            .filter(|current| current.origin != submission.origin)
            .filter(|current| !self.may_take_over(current, submission))
        {
            let (from, hint) = match current.origin {
                ContractOrigin::File => (
                    "a contract file",
                    "change the file, or retire the contract first",
                ),
                ContractOrigin::Api => (
                    "the admin API",
                    "change it there, or retire the contract first",
                ),
                ContractOrigin::Code => (
                    "the functions of a plugin",
                    "change the plugin, or retire the contract first",
                ),
                ContractOrigin::Upstream => (
                    "another server",
                    "give this contract another name, or retire that one first",
                ),
            };
            let message = format!("the contract `{}` comes from {from} already", contract.name);
            problems.push(FileProblem::new("", "/contract", message).hint(hint));
        }
        problems.extend(taken_names(
            contract,
            live.values()
                .flat_map(|live| live.every_version())
                .map(Arc::as_ref),
        ));
        problems.extend(self.broken_policies(contract, live));
        if problems.is_empty() {
            Ok(())
        } else {
            Err(GateError::Refused(problems))
        }
    }

    /// Returns `true` if the admin API may change what a file published: where machines share the state, none reads files, and
    /// contracts from files came with a state that was moved there.
    fn may_take_over(&self, current: &LiveContract, submission: &Submission<'_>) -> bool {
        let (file, api) = (ContractOrigin::File, ContractOrigin::Api);
        self.state.is_shared() && (current.origin, submission.origin) == (file, api)
    }

    /// Returns the policies that a contract breaks.
    fn broken_policies(
        &self,
        contract: &CompiledContract,
        live: &BTreeMap<String, Arc<LiveContract>>,
    ) -> Vec<FileProblem> {
        let live: Vec<Arc<CompiledContract>> =
            live.values().map(|live| live.contract.clone()).collect();
        self.policies.broken_by(&live, contract)
    }

    /// Begins a change after which `contract` is live, or no contract of its name. Everything that becomes live passes through
    /// here: its names are compared with those of all other live contracts, which no process changes until the change ends. A
    /// change on a basis other than `on` is refused.
    async fn begin(
        &self,
        contract: Option<&CompiledContract>,
        on: Option<&ContractBasis>,
    ) -> Result<LiveChange, GateError> {
        let mut change = self.state.change_live().await?;
        let Some(contract) = contract else {
            return Ok(change);
        };
        if let Some(on) = on {
            let checked = change.check_basis(&contract.name, on).await;
            checked.map_err(|error| moved(error, &contract.name))?;
        }
        nodes::check_format(&change.nodes().await?, contract)?;
        let mut problems = self.names_taken(&mut change, contract).await?;
        problems.extend(self.broken_policies(contract, &self.live()));
        if problems.is_empty() {
            Ok(change)
        } else {
            Err(GateError::Refused(problems))
        }
    }

    /// Compares the names of a contract with those of all others that are served.
    async fn names_taken(
        &self,
        change: &mut LiveChange,
        contract: &CompiledContract,
    ) -> Result<Vec<FileProblem>, GateError> {
        let known = self.live();
        let mut others = Vec::new();
        for head in change
            .heads()
            .await?
            .into_iter()
            .filter(|head| head.live.is_some() && head.name != contract.name)
        {
            let known = known.get(&head.name);
            if let Some(known) = known.filter(|known| known.revision == head.revision) {
                others.extend(known.every_version().cloned());
            } else if let Some(row) = change.live_of(&head.name).await? {
                // If this program cannot read it, it keeps serving the version before it.
                let read = artifact(&row.name, &row.artifact).ok().map(Arc::new);
                others.extend(read.or_else(|| known.map(|known| known.contract.clone())));
                let kept = known
                    .into_iter()
                    .flat_map(|known| known.every_version().skip(1));
                others.extend(kept.cloned());
            }
        }
        Ok(taken_names(contract, others.iter().map(Arc::as_ref)))
    }

    /// Publishes a version: it is live when this returns.
    async fn make_live(
        &self,
        contract: &CompiledContract,
        on: Option<&ContractBasis>,
        base: Option<&str>,
        source: VersionSource<'_>,
        row: &VersionRow,
        (draft, kept): (Option<&str>, Option<&KeptRow>),
    ) -> Result<(), GateError> {
        let subject = format!("{}@{}", row.contract, row.version);
        let next = self.next_shims(contract, base, kept);
        let mut change = self.begin(Some(contract), on).await?;
        change
            .forget_kept(&row.contract, contract.version.major.into())
            .await?;
        carried::carry(&mut change, contract, &next).await?;
        if let Some(kept) = kept {
            kept::keep(&mut change, kept).await?;
            let subject = format!("{}@{}", kept.contract, kept.version);
            self.audit.admin(
                AdminAct::VersionKeep,
                &subject,
                Some(&row.fingerprint),
                &row.published_by,
                None,
            )?;
        }
        let change = change.publish(base, source, row, draft);
        self.recorded(
            AdminAct::Publish,
            &subject,
            &row.fingerprint,
            &row.published_by,
            change,
        )
        .await
    }

    /// Records a change before it is made: a change that cannot be recorded is not made, and one that then fails is recorded too.
    async fn recorded(
        &self,
        act: AdminAct,
        subject: &str,
        fingerprint: &str,
        by: &str,
        change: impl Future<Output = Result<(), StateError>>,
    ) -> Result<(), GateError> {
        let fingerprint = (!fingerprint.is_empty()).then_some(fingerprint);
        self.audit.admin(act, subject, fingerprint, by, None)?;
        let done = change.await;
        if let Err(error) = &done {
            let detail = serde_json::Map::from_iter([(
                "failed".to_owned(),
                Value::String(error.to_string()),
            )]);
            self.audit
                .admin(act, subject, fingerprint, by, Some(&detail))?;
        }
        Ok(done?)
    }
}

impl Submission<'_> {
    fn place(&self) -> VersionSource<'_> {
        VersionSource {
            origin: self.origin,
            owner: self.owner,
        }
    }
}

/// Returns the revision on which a decision about a contract is based: 0 if no version is live.
pub fn revision(live: Option<&Arc<LiveContract>>) -> i64 {
    live.map_or(0, |live| live.revision)
}

/// Checks that a contract is still at the basis of a decision about it.
fn still_on(
    on: Option<&ContractBasis>,
    name: &str,
    live: Option<&Arc<LiveContract>>,
) -> Result<(), GateError> {
    match on {
        Some(on) if on.revision != revision(live) => Err(GateError::Changed(name.to_owned())),
        _ => Ok(()),
    }
}

/// Returns the error for a change whose basis is outdated.
fn moved(error: StateError, name: &str) -> GateError {
    match error {
        StateError::Moved(_) => GateError::Changed(name.to_owned()),
        other => other.into(),
    }
}

fn owned(contract: &str, owner: &str) -> String {
    format!(
        "the contract `{contract}` is owned by the contracts folder {owner}, and what is published from there is served \
         here too: change it there, or retire it first"
    )
}

fn row(
    contract: &CompiledContract,
    submission: &Submission<'_>,
    class: ChangeClass,
    fingerprint: &str,
) -> VersionRow {
    VersionRow {
        contract: contract.name.clone(),
        version: contract.version.to_string(),
        artifact: contract.to_artifact().to_string(),
        source: submission.source.to_owned(),
        class,
        fingerprint: fingerprint.to_owned(),
        published_ms: now_ms(),
        published_by: submission.by.to_owned(),
    }
}

fn change_class(class: ChangeSeverity) -> ChangeClass {
    match class {
        ChangeSeverity::Identical => ChangeClass::Identical,
        ChangeSeverity::Cosmetic => ChangeClass::Cosmetic,
        ChangeSeverity::Compatible => ChangeClass::Compatible,
        ChangeSeverity::Review => ChangeClass::Review,
        ChangeSeverity::Undecided => ChangeClass::Undecided,
        ChangeSeverity::Breaking => ChangeClass::Breaking,
    }
}

/// Returns whether a change of this class always waits.
fn waits(class: ChangeSeverity) -> bool {
    matches!(
        class,
        ChangeSeverity::Review | ChangeSeverity::Undecided | ChangeSeverity::Breaking
    )
}

/// After a rollback the next number may be taken: the first free one of the same step.
fn free(mut version: ContractVersion, class: ChangeSeverity, taken: &[String]) -> ContractVersion {
    while taken.contains(&version.to_string()) {
        match class {
            ChangeSeverity::Breaking | ChangeSeverity::Undecided => version.major += 1,
            ChangeSeverity::Compatible | ChangeSeverity::Review => version.minor += 1,
            ChangeSeverity::Cosmetic | ChangeSeverity::Identical => version.patch += 1,
        }
    }
    version
}

fn artifact(name: &str, text: &str) -> Result<CompiledContract, GateError> {
    CompiledContract::from_own_artifact(text)
        .map_err(|error| GateError::Artifact(format!("{name}: {error}")))
}

/// Returns the fingerprint that an approval binds to, for a contract that was never published.
pub fn first_fingerprint(contract: &CompiledContract) -> String {
    digest(&[&contract.to_artifact().to_string()])
}

/// Writes a report for the approval of a contract that was never published: every tool, as agents would see it, and the
/// findings of lint. It has the same form as the report of a difference.
fn first_report(contract: &CompiledContract, fingerprint: &str) -> Value {
    let item = |tool: &Arc<ContractTool>| {
        json!({
            "rule": "first", "path": format!("/tools/{}", tool.name), "tool": tool.name, "class": ChangeClass::First, "old": null,
            "new": listed::tool(tool), "reason": format!("{}: {}", tool.annotations.effect(), tool.description),
        })
    };
    json!({
        "class": ChangeClass::First, "breaking": false, "fingerprint": fingerprint,
        "items": contract.tools.iter().map(item).collect::<Vec<_>>(),
        "findings": lint_contract(contract),
    })
}

fn digest(parts: &[&str]) -> String {
    use sha2::{Digest as _, Sha256};
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    hex::encode(digest.finalize())
}
