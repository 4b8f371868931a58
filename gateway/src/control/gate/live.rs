//! The live versions known to this process: read from the state when they change.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use weir_contracts::CompiledContract;
use weir_state::{FeedPart, LiveRow};

use super::{ContractOrigin, Gate, GateError, artifact};
use crate::{catalogue::KeptContract, identity::now_ms};

/// A published version that is served.
#[derive(Clone, Debug)]
pub struct LiveContract {
    pub contract: Arc<CompiledContract>,
    pub origin: ContractOrigin,
    /// The contracts folder that owns it; `None` if it does not come from a file, or no folder has claimed it yet.
    pub owner: Option<String>,
    /// The text of its form.
    pub source: String,
    /// Changes with the live version or its text.
    pub revision: i64,
    /// The kept versions that are served too.
    pub kept: Vec<Arc<KeptContract>>,
}

impl LiveContract {
    /// Returns the live version and the kept ones that have not ended.
    pub(super) fn every_version(&self) -> impl Iterator<Item = &Arc<CompiledContract>> {
        let now = now_ms();
        let going_on = self.kept.iter().filter(move |kept| !kept.has_ended(now));
        std::iter::once(&self.contract).chain(going_on.map(|kept| &kept.contract))
    }
}

/// A live version that is skipped: a later version of Weir published it.
#[derive(Clone, Debug)]
pub struct UnreadableVersion {
    pub version: String,
    pub why: String,
    revision: i64,
}

impl Gate {
    /// Loads what any process published.
    pub async fn refresh(&self) -> Result<(), GateError> {
        let _reading = self.reading.lock().await;
        // The generation is read before the rest: whatever changes meanwhile is read again next time.
        let fail_overs = self.state.fail_overs();
        let generation = self.state.generation().await?;
        let is_other = self.fail_overs.load(Ordering::Relaxed) != fail_overs;
        if is_other || self.seen.load(Ordering::Relaxed) != generation {
            self.read(is_other).await?;
            self.seen.store(generation, Ordering::Relaxed);
            self.fail_overs.store(fail_overs, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Loads what any process published, according to the feed of changes. Nothing is read if the feed has not moved.
    pub async fn follow(&self) -> Result<(), GateError> {
        let now = *self.state.changes().borrow();
        let is_same = self.fail_overs.load(Ordering::Relaxed) == self.state.fail_overs();
        match is_same && self.seen.load(Ordering::Relaxed) == now {
            true => Ok(()),
            false => self.refresh().await,
        }
    }

    /// Notes that the versions read so far are served.
    pub fn note_taken(&self) {
        let seen = self.seen.load(Ordering::Relaxed);
        self.state.note_taken(FeedPart::Contracts, seen);
    }

    /// Reads what changed. After the state moved to another server, the same number may be another version, so everything is
    /// read.
    async fn read(&self, is_other: bool) -> Result<(), GateError> {
        *self.waiting.lock() = self.state.waiting().await?;
        let before = self.live();
        let known = match is_other {
            true => BTreeMap::new(),
            false => before.clone(),
        };
        let mut now = LiveVersions::default();
        if known.is_empty() {
            self.state
                .live()
                .await?
                .into_iter()
                .for_each(|row| now.take(row, None));
        } else {
            for head in self
                .state
                .heads()
                .await?
                .into_iter()
                .filter(|head| head.live.is_some())
            {
                let known = known.get(&head.name);
                match known.filter(|known| known.revision == head.revision) {
                    Some(known) => now.keep(known, head.owner),
                    None => self
                        .state
                        .live_of(&head.name)
                        .await?
                        .into_iter()
                        .for_each(|row| now.take(row, known)),
                }
            }
        }
        let rows = self.state.kept().await?;
        for (name, live) in &mut now.live {
            let is_known = |known: &Arc<LiveContract>| known.revision == live.revision;
            if known.get(name).is_some_and(is_known) {
                continue;
            }
            let kept = self.read_kept(&rows, live).await?;
            *live = Arc::new(LiveContract {
                kept,
                ..(**live).clone()
            });
        }
        for name in now.unreadable.keys() {
            if let (None, Some(served)) = (now.live.get(name), before.get(name)) {
                now.live.insert(name.clone(), served.clone());
            }
        }
        self.read_pins().await?;
        self.set(now.live);
        self.set_unreadable(now.unreadable);
        Ok(())
    }

    /// Logs the versions that are skipped from now on.
    fn set_unreadable(&self, now: BTreeMap<String, UnreadableVersion>) {
        let mut before = self.unreadable.lock();
        for (contract, skipped) in &now {
            if before
                .get(contract)
                .is_none_or(|before| before.revision != skipped.revision)
            {
                tracing::error!(
                    contract,
                    version = skipped.version,
                    "refused: {}",
                    skipped.why
                );
            }
        }
        *before = now;
    }

    /// Returns the live versions that this program cannot read, by contract. The others are served.
    pub fn unreadable(&self) -> BTreeMap<String, UnreadableVersion> {
        self.unreadable.lock().clone()
    }

    /// Returns the live contracts by name.
    pub fn live(&self) -> BTreeMap<String, Arc<LiveContract>> {
        self.live.lock().clone()
    }

    /// Returns the names of tools that other contracts publish, which a server's tools cannot have, with those contracts.
    pub async fn names_taken_from(
        &self,
        upstream: &str,
    ) -> Result<BTreeMap<String, String>, GateError> {
        self.refresh().await?;
        let live = self.live();
        let others = live
            .values()
            .filter(|live| live.contract.upstream() != Some(upstream));
        let names = others.flat_map(|live| {
            let every = live.every_version().flat_map(|version| &version.tools);
            every.map(|tool| (tool.name.clone(), live.contract.name.clone()))
        });
        Ok(names.collect())
    }

    fn set(&self, live: BTreeMap<String, Arc<LiveContract>>) {
        *self.live.lock() = live;
    }
}

/// The readable live versions of the state.
#[derive(Default)]
struct LiveVersions {
    live: BTreeMap<String, Arc<LiveContract>>,
    unreadable: BTreeMap<String, UnreadableVersion>,
}

impl LiveVersions {
    /// Adds a version that is new to this process, or its later text. If it cannot be read, the contract's previous version is
    /// still served.
    fn take(&mut self, row: LiveRow, known: Option<&Arc<LiveContract>>) {
        // A version is published once, so the same number is the same contract.
        let same = known
            .map(|known| &known.contract)
            .filter(|contract| contract.version.to_string() == row.version);
        match same.map_or_else(
            || artifact(&row.name, &row.artifact).map(Arc::new),
            |same| Ok(same.clone()),
        ) {
            Ok(contract) => {
                let LiveRow {
                    origin,
                    owner,
                    source,
                    revision,
                    ..
                } = row;
                let entry = LiveContract {
                    contract,
                    origin,
                    owner,
                    source,
                    revision,
                    kept: Vec::new(),
                };
                self.live.insert(row.name, Arc::new(entry));
            }
            Err(error) => {
                if let Some(known) = known {
                    self.live.insert(row.name.clone(), known.clone());
                }
                let skipped = UnreadableVersion {
                    version: row.version,
                    why: error.to_string(),
                    revision: row.revision,
                };
                self.unreadable.insert(row.name, skipped);
            }
        }
    }

    fn keep(&mut self, known: &Arc<LiveContract>, owner: Option<String>) {
        let entry = match known.owner == owner {
            true => known.clone(),
            false => Arc::new(LiveContract {
                owner,
                ..(**known).clone()
            }),
        };
        self.live.insert(known.contract.name.clone(), entry);
    }
}
