//! The publisher: turns the versions that the gate made live into the snapshot that is served.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use weir_contracts::{CompiledContract, ContractVersion, diff::ContractDiff, lint};
use weir_plugin_host::NeededCollection;
use weir_state::DraftHead;

use super::{
    gate::{ContractBasis, DraftApproval, Gate, GateError, KeepVersion, Submission, Verdict},
    policies::apart,
};
use crate::{
    catalogue::{AgentPins, KeptContract, ServedPolicies, ToolCatalogue},
    identity::now_ms,
    serving::ServingGateway,
    snapshot::CatalogueSnapshot,
};

/// Swaps snapshots: decisions that go through it are served when its functions return.
pub struct SnapshotPublisher {
    gateway: Arc<ServingGateway>,
    gate: Gate,
    /// Whether a single contract is served, without a gate.
    is_alone: AtomicBool,
    /// The lock for swapping: the watch, the admin API and a new build of a plugin all swap.
    swapping: Mutex<()>,
}

impl SnapshotPublisher {
    pub(super) fn new(gateway: Arc<ServingGateway>, gate: Gate) -> Self {
        Self {
            gateway,
            gate,
            is_alone: AtomicBool::new(false),
            swapping: Mutex::default(),
        }
    }

    /// Returns the gate whose decisions are served.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Submits a contract to the gate, and serves it if it goes live. The files of the folder are submitted to the gate
    /// one by one and served together.
    pub async fn submit(&self, submission: Submission<'_>) -> Result<Verdict, GateError> {
        self.refuse_alone()?;
        let verdict = self.gate.submit(submission).await?;
        self.serve_live();
        Ok(verdict)
    }

    /// Approves a draft, and serves it. A version of `None` means that the contract is retired.
    pub async fn approve(
        &self,
        id: &str,
        approval: &DraftApproval<'_>,
        keep: Option<&KeepVersion>,
    ) -> Result<(DraftHead, Option<ContractVersion>), GateError> {
        self.refuse_alone()?;
        let approved = self.gate.approve(id, approval, keep).await?;
        self.serve_live();
        Ok(approved)
    }

    /// Makes a version live again that was published before, and serves it.
    pub async fn roll_back(
        &self,
        name: &str,
        to: &str,
        approval: &DraftApproval<'_>,
        on: Option<&ContractBasis>,
    ) -> Result<ContractDiff, GateError> {
        self.refuse_alone()?;
        let diff = self.gate.roll_back(name, to, approval, on).await?;
        self.serve_live();
        Ok(diff)
    }

    /// Serves the current state of the gate: pins, and versions next to the live ones.
    pub fn serve(&self) {
        self.serve_live();
    }

    /// Serves one contract without a file (`weir draft`) and without a gate, and from then on no other.
    pub fn serve_alone(&self, contract: CompiledContract) {
        self.is_alone.store(true, Ordering::Relaxed);
        self.swap(vec![Arc::new(contract)], &[], Arc::default(), None);
    }

    /// Returns `true` if a single file is served.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::Relaxed)
    }

    /// Refuses to change the live version if a single contract is served.
    fn refuse_alone(&self) -> Result<(), GateError> {
        match self.is_alone.load(Ordering::Relaxed) {
            true => Err(GateError::Alone),
            false => Ok(()),
        }
    }

    /// Swaps in the live versions, unless they are already served.
    pub(super) fn serve_live(&self) {
        apart(|| self.serve_live_now());
    }

    fn serve_live_now(&self) {
        if self.is_alone.load(Ordering::Relaxed) {
            return;
        }
        let _swapping = self.swapping.lock();
        let contracts = self.servable_contracts();
        let (kept, pins) = (self.kept_contracts(), self.gate.pins());
        let policies = self.gate.policies().judge(&contracts);
        let mode = self.gateway.config().policy.mode;
        let served = &self.gateway.snapshot().contracts;
        let same = served.len() == contracts.len()
            && served
                .iter()
                .zip(&contracts)
                .all(|(a, b)| Arc::ptr_eq(a, b));
        let snapshot = self.gateway.snapshot();
        let same = same
            && snapshot.catalogue.is_beside(&kept, &pins)
            && snapshot.catalogue.has_policies(policies.as_ref(), mode);
        if !same
            || !self
                .gateway
                .snapshot()
                .catalogue
                .has_views(&self.gateway.config().views)
        {
            let policies = policies.map(|judge| ServedPolicies::new(judge, mode));
            self.swap(contracts, &kept, pins, policies);
        }
    }

    /// Returns the live contracts in the versions that can be served.
    pub(super) fn servable_contracts(&self) -> Vec<Arc<CompiledContract>> {
        let live = self.gate.live();
        let servable = live.values().map(|live| self.servable(&live.contract));
        servable.collect()
    }

    /// Returns the versions that are served in addition to the live ones.
    fn kept_contracts(&self) -> Vec<Arc<KeptContract>> {
        let live = self.gate.live();
        live.values()
            .flat_map(|live| live.kept.iter().cloned())
            .collect()
    }

    /// Waits until a version ends that is served next to the live one.
    pub(super) async fn next_sunset(&self) {
        let sunset = self.gateway.snapshot().catalogue.next_sunset_ms();
        let Some(sunset) = sunset else {
            return std::future::pending().await;
        };
        let left = u64::try_from(sunset - now_ms()).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(left)).await;
    }

    fn swap(
        &self,
        contracts: Vec<Arc<CompiledContract>>,
        kept: &[Arc<KeptContract>],
        pins: Arc<AgentPins>,
        policies: Option<ServedPolicies>,
    ) {
        let old = self.gateway.snapshot();
        for contract in contracts
            .iter()
            .filter(|new| !old.contracts.iter().any(|known| Arc::ptr_eq(known, new)))
        {
            warn_of_names(contract);
            // Only changes after the start are counted.
            if old.generation > 0 {
                log_version(contract, &old.contracts);
            }
        }
        let catalogue = ToolCatalogue::new(
            &contracts,
            &self.gateway.config().views,
            Some(&old.catalogue),
        )
        .beside(kept, pins)
        .under(policies);
        catalogue
            .empty_views()
            .for_each(|view| tracing::warn!(view, "no tool is in this view"));
        let changed =
            catalogue.digests() != old.catalogue.digests() || !catalogue.shows_as(&old.catalogue);
        let snapshot = CatalogueSnapshot {
            generation: old.generation + 1,
            listing_generation: old.listing_generation + u64::from(changed),
            catalogue,
            contracts,
        };
        tracing::info!(
            contracts = snapshot.contracts.len(),
            tools = snapshot.catalogue.len(),
            generation = snapshot.generation,
            "published"
        );
        self.gateway.swap_snapshot(snapshot);
        // A build that was refused because of a contract that was live until now may suit the present ones.
        let host = self.gateway.host().clone();
        tokio::spawn(async move { host.retry_refused().await });
    }

    /// Returns the version of a contract that can be served: one whose build has not been loaded yet waits, and the previous one
    /// is served.
    fn servable(&self, contract: &Arc<CompiledContract>) -> Arc<CompiledContract> {
        let (Some(plugin), Some(definitions)) = (contract.plugin(), &contract.definitions) else {
            return contract.clone();
        };
        if self.gateway.host().has_build(plugin, definitions) {
            return contract.clone();
        }
        let snapshot = self.gateway.snapshot();
        let served = snapshot
            .contracts
            .iter()
            .find(|served| served.name == contract.name);
        served.unwrap_or(contract).clone()
    }
}

/// Logs that a contract has a new version.
fn log_version(contract: &CompiledContract, old: &[Arc<CompiledContract>]) {
    let before = old.iter().find(|known| known.name == contract.name);
    if before.is_none_or(|before| before.version != contract.version) {
        tracing::info!(
            contract = contract.name,
            version = %contract.version,
            before = before.map(|before| before.version.to_string()),
            "a version is live"
        );
    }
}

/// Warns of names that new contracts may not have; versions that were published earlier are still served.
fn warn_of_names(contract: &CompiledContract) {
    let names = lint::unusable_names(contract);
    if let Some(first) = names.first() {
        let version = contract.version;
        tracing::warn!(
            contract = contract.name,
            %version,
            arguments = names.len(),
            "some models' interfaces refuse a whole request for the argument {first}: publish a version without such names"
        );
    }
}

/// Returns the collections of one adapter that served contracts use; a new build of its plugin must still serve them.
pub fn in_use(gateway: &ServingGateway, adapter: &str) -> Vec<NeededCollection> {
    let snapshot = gateway.snapshot();
    let mut seen = BTreeSet::new();
    let mut needed = Vec::new();
    let live = snapshot.catalogue.tools().filter_map(|tool| {
        let mut contracts = snapshot.contracts.iter();
        Some((
            tool,
            &**contracts.find(|contract| *contract.name == *tool.contract)?,
        ))
    });
    for (tool, contract) in live.chain(snapshot.catalogue.own_bindings()) {
        let Some(bound) = tool.target.collection() else {
            continue;
        };
        let binding = &bound.published.binding;
        let related = bound.related.iter().zip(&binding.include);
        let related = related.map(|(related, one)| (&related.source, &one.collection));
        for (source, name) in std::iter::once((&bound.source, &binding.collection)).chain(related) {
            if *source.adapter != *adapter || !seen.insert(source.key.clone()) {
                continue;
            }
            if let Some(published) = contract.collection(name) {
                needed.push(NeededCollection {
                    source: source.clone(),
                    published: published.clone(),
                });
            }
        }
    }
    needed
}
