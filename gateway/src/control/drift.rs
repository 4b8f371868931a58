//! Drift: describes the sources of live contracts again, at intervals and on demand, and reports how they differ from what
//! was published, with the remedy.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use weir_contracts::{
    CollectionShape, CompiledContract, ContractVersion, compile,
    contract::ContractCollection,
    diff::ContractDiff,
    drift::{difference, edits, renamed},
    form,
};

use super::{
    ShapeFailure, SnapshotPublisher,
    compiler::FormCompiler,
    describe::describe_as,
    gate::{DraftStatus, Gate, GateError, LiveContract, Submission, Verdict},
    shapes::CollectionSettings,
};
use crate::serving::ServingGateway;

/// The time from the start to the first check.
const FIRST_LOOK: Duration = Duration::from_secs(10);
/// The author of drafts that repair drift.
const BY: &str = "drift";

/// A difference found between a source and its recorded shape.
#[derive(Debug)]
pub struct ContractDrift {
    /// The version of the contract to which the difference applies.
    version: ContractVersion,
    /// The differences, one sentence for each column.
    pub reasons: Vec<String>,
    /// The difference that agents would see in results if calls succeeded; they get `source_changed`.
    pub difference: ContractDiff,
    /// The draft that would publish the contract over the source as it is now, if its form fits the source unchanged.
    pub draft: Option<String>,
    /// Otherwise what to edit in the form, one sentence for each place.
    pub edits: Vec<String>,
}

/// Checks the sources of live contracts, and records which have drifted.
pub struct SourceDrift {
    gateway: Arc<ServingGateway>,
    publisher: Arc<SnapshotPublisher>,
    compiler: Arc<FormCompiler>,
    /// By contract and collection.
    found: Mutex<BTreeMap<(String, String), Arc<ContractDrift>>>,
}

impl SourceDrift {
    pub(super) fn new(
        gateway: Arc<ServingGateway>,
        publisher: Arc<SnapshotPublisher>,
        compiler: Arc<FormCompiler>,
    ) -> Self {
        Self {
            gateway,
            publisher,
            compiler,
            found: Mutex::default(),
        }
    }

    fn gate(&self) -> &Gate {
        self.publisher.gate()
    }

    /// Describes the sources of all live contracts at intervals, and those that a call asks about immediately, until the task
    /// ends. `background` wakes when the configuration changes.
    pub async fn watch(&self, mut background: watch::Receiver<u64>) {
        // A start touches no source; they are checked soon afterwards.
        let mut next = Instant::now() + FIRST_LOOK;
        let Some(mut checks) = self.gateway.source_checks().listen() else {
            return;
        };
        loop {
            let interval = Duration::from_secs(self.gateway.config().contracts.drift_interval_s);
            let due = async {
                match interval.is_zero() {
                    true => std::future::pending().await,
                    false => sleep_until(next).await,
                }
            };
            // These checks run in addition to those that calls ask for, however many there are.
            tokio::select! {
                Some(check) = checks.recv() => {
                    let drifted = self.is_drifted(&check.contract, &check.collection).await;
                    let _ = check.has_drifted.send(drifted);
                    continue;
                }
                () = due => {}
                // The interval may have become shorter.
                Ok(()) = background.changed() => {
                    let seconds = self.gateway.config().contracts.drift_interval_s;
                    if seconds > 0 {
                        next = next.min(Instant::now() + Duration::from_secs(seconds));
                    }
                    continue;
                }
            }
            next = Instant::now() + interval;
            for live in self.gate().live().values() {
                for collection in &live.contract.collections {
                    // An unavailable source does not count as changed.
                    let _ = self.look(live, collection).await;
                }
            }
        }
    }

    async fn is_drifted(&self, contract: &str, collection: &str) -> bool {
        let live = self.gate().live();
        let Some(live) = live.get(contract) else {
            return false;
        };
        let Some(collection) = live.contract.collection(collection) else {
            return false;
        };
        if self.known(live, &collection.name).is_some() {
            return true;
        }
        matches!(self.look(live, collection).await, Ok((_, Some(_))))
    }

    /// Returns the current shape of a collection at its source, and the drift, if it differs from the published one.
    pub async fn look(
        &self,
        live: &LiveContract,
        collection: &ContractCollection,
    ) -> Result<(CollectionShape, Option<Arc<ContractDrift>>), ShapeFailure> {
        let contract = &live.contract.name;
        let shape = describe_as(&self.gateway, contract, collection).await?;
        let before = self.known(live, &collection.name);
        let Err(reasons) = collection.accepts(&shape) else {
            if before.is_some() {
                // This comes first: if the check is dropped here, the drift is already known, and the next check records it.
                self.record(live, collection, &shape).await;
                tracing::info!(
                    contract,
                    collection = collection.name,
                    "the source serves the contract again"
                );
            }
            self.set_drift(contract, collection, None);
            return Ok((shape, None));
        };
        let difference = difference(&live.contract, &collection.name, &shape);
        let is_known = |known: &&Arc<ContractDrift>| {
            known.reasons == reasons && known.difference.fingerprint == difference.fingerprint
        };
        if let Some(known) = before.as_ref().filter(is_known) {
            return Ok((shape, Some(Arc::clone(known))));
        }
        let (draft, edits) = self.mend(live, collection, &shape).await;
        let drift = Arc::new(ContractDrift {
            version: live.contract.version,
            reasons,
            difference,
            draft,
            edits,
        });
        drift.log(contract, collection);
        self.set_drift(contract, collection, Some(Arc::clone(&drift)));
        Ok((shape, Some(drift)))
    }

    /// Returns how a source differed from a live contract at the last check.
    pub fn known(&self, live: &LiveContract, collection: &str) -> Option<Arc<ContractDrift>> {
        let known = self.found.lock();
        let drift = known.get(&(live.contract.name.clone(), collection.to_owned()))?;
        (drift.version == live.contract.version).then(|| Arc::clone(drift))
    }

    /// Returns the number of served collections that their sources no longer serve in full.
    pub fn count(&self) -> usize {
        let live = self.gate().live();
        let known = self.found.lock();
        let is_live = |((contract, _), drift): &(&(String, String), &Arc<ContractDrift>)| {
            live.get(contract)
                .is_some_and(|live| live.contract.version == drift.version)
        };
        known.iter().filter(is_live).count()
    }

    fn set_drift(
        &self,
        contract: &str,
        collection: &ContractCollection,
        drift: Option<Arc<ContractDrift>>,
    ) {
        let key = (contract.to_owned(), collection.name.clone());
        let mut known = self.found.lock();
        match drift {
            Some(drift) => known.insert(key, drift),
            None => known.remove(&key),
        };
    }

    /// Returns a draft of the same form over the source as it is now, or what to edit if no draft can be made.
    async fn mend(
        &self,
        live: &LiveContract,
        collection: &ContractCollection,
        shape: &CollectionShape,
    ) -> (Option<String>, Vec<String>) {
        let Ok(source) = form::read(&live.contract.name, &live.source) else {
            return (None, Vec::new());
        };
        let other = live
            .contract
            .collections
            .iter()
            .map(|other| (other.name.clone(), other.shape.clone()));
        let mut shapes: BTreeMap<String, CollectionShape> = other.collect();
        shapes.insert(collection.name.clone(), shape.clone());
        match compile::compile(&source, &shapes) {
            Ok(contract) => match self.propose(live, contract).await {
                Ok(Some(draft)) => {
                    // From now on, the current source is used for compiling.
                    self.record(live, collection, shape).await;
                    (Some(draft), Vec::new())
                }
                Ok(None) => (None, Vec::new()),
                Err(error) => {
                    tracing::warn!(contract = live.contract.name, %error, "no draft could be made of what drifted");
                    (None, Vec::new())
                }
            },
            Err(problems) => match renamed(collection, shape) {
                Some((old, new)) => (None, edits(&source, &collection.name, &old, &new)),
                None => (None, problems.iter().map(ToString::to_string).collect()),
            },
        }
    }

    async fn record(
        &self,
        live: &LiveContract,
        collection: &ContractCollection,
        shape: &CollectionShape,
    ) {
        let of = CollectionSettings {
            name: &collection.name,
            adapter: &collection.adapter,
            settings: &collection.settings,
        };
        let contract = &live.contract.name;
        self.compiler.record(contract, of, shape).await;
    }

    /// Makes a draft that waits like any change that needs a review. It does not replace a draft that is already waiting, and a
    /// decided one is not proposed again.
    async fn propose(
        &self,
        live: &LiveContract,
        contract: CompiledContract,
    ) -> Result<Option<String>, GateError> {
        let change = weir_contracts::diff::diff(&live.contract, &contract);
        let base = Some(live.contract.version.to_string());
        let state = self.gate().state();
        if let Some(same) = state
            .draft_of_change(&contract.name, base.as_deref(), &change.fingerprint)
            .await?
        {
            return Ok((same.status == DraftStatus::Pending).then_some(same.id));
        }
        if !state.pending(Some(&contract.name)).await?.is_empty() {
            return Ok(None);
        }
        let submission = Submission {
            contract,
            source: &live.source,
            origin: live.origin,
            owner: live.owner.as_deref(),
            by: BY,
            hold: true,
            on: None,
        };
        match self.publisher.submit(submission).await? {
            Verdict::Held(held) => Ok(Some(held.draft)),
            Verdict::Unchanged { .. } | Verdict::Published { .. } => Ok(None),
        }
    }
}

impl ContractDrift {
    fn log(&self, contract: &str, collection: &ContractCollection) {
        let mend = match (&self.draft, &self.edits[..]) {
            (Some(draft), _) => {
                format!(". To accept the change: `weir contracts publish {draft}`")
            }
            (None, []) => String::new(),
            (None, edits) => format!(". Edit the form: {}", edits.join("; ")),
        };
        tracing::warn!(
            contract,
            collection = collection.name,
            class = self.difference.class.word(),
            fingerprint = self.difference.fingerprint,
            draft = self.draft,
            "the source changed: {}{mend}",
            self.reasons.join("; ")
        );
    }
}
