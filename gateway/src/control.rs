//! Contracts become the snapshot that is served: read, described once, compiled, judged by the gate, published.
//!
//! The served contracts are those that the state holds as live. A file that does not compile, or whose change the gate
//! holds, leaves the live version as it is. A contract whose source cannot be described yet waits and is tried again;
//! one that was published before starts from the state, without touching the source.

mod describe;
mod drift;
pub mod gate;
pub mod impact;
pub mod refused;
mod shapes;
pub mod sources;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::sync::Mutex;
use weir_contracts::{
    Contract, Problem, Shape, Version, compile, diff::Diff, form, lint, lock::Lock,
};
use weir_plugin_host::NeededCollection;
use weir_state::{DraftHead, Source, State};
use weir_watch::{Place, Watcher};

pub(crate) use self::sources::files::lock_path;
pub use self::{
    describe::{Away, Describe, describe_all},
    drift::Drift,
};
use self::{
    gate::{Approval, Gate, GateError, Held, LiveContract, Origin, Submission, Verdict},
    shapes::Recorded,
    sources::files::{self, Stamp},
};
use crate::{
    catalogue::Catalogue, config::Config, gateway::Gateway, identity::now_ms, snapshot::Snapshot,
};

/// The time between two looks at the folder while something changes there.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);
/// The time between two looks at what changed.
const SETTLE_INTERVAL: Duration = Duration::from_millis(50);

pub struct Registry {
    gateway: Arc<Gateway>,
    recorded: Recorded,
    gate: Gate,
    files: Mutex<Files>,
    /// The lock for publishing: the watch, the admin API and a swap of a plugin's build all publish.
    publishing: std::sync::Mutex<()>,
    /// The files of the folder that are not served, as of the last look.
    unserved: std::sync::Mutex<Vec<UnservedFile>>,
    drifted: std::sync::Mutex<BTreeMap<(String, String), Arc<Drift>>>,
    /// The lines that were logged of the last look.
    said: std::sync::Mutex<BTreeSet<String>>,
}

#[derive(Default)]
struct Files {
    loaded: BTreeMap<PathBuf, Loaded>,
    /// Contracts whose file is gone, at the version for which that was held.
    gone: BTreeSet<(String, Version)>,
    /// The configuration that they were read under.
    config: Option<Arc<Config>>,
}

/// A contract file as it was last seen.
struct Loaded {
    stamp: Stamp,
    /// The contract it defines, once it could be read.
    name: Option<String>,
    /// Why the source could not be described: tried again.
    waiting: Option<String>,
    /// Why it was not taken over as it stands: tried again under another configuration.
    problems: Vec<Problem>,
    /// The stamp of the lock beside it.
    lock: Option<Stamp>,
}

impl Loaded {
    /// Returns `true` while reading it again could say nothing else.
    fn is_settled(&self, path: &Path, stamp: &Stamp) -> bool {
        let lock = || {
            self.name
                .as_deref()
                .and_then(|name| files::lock_stamp(path, name))
        };
        self.stamp == *stamp
            && self.waiting.is_none()
            && (self.problems.is_empty() || self.lock == lock())
    }
}

/// A contract file that is not served as it stands.
#[derive(Clone, Debug)]
pub struct UnservedFile {
    pub file: PathBuf,
    /// The faults of the file; empty if it only waits.
    pub problems: Vec<Problem>,
    /// Why its source cannot be described yet.
    pub waiting: Option<String>,
}

/// The outcome for the files.
#[derive(Debug, Default)]
pub struct Report {
    pub problems: Vec<Problem>,
    /// Contract files whose source could not be described yet, and why.
    pub waiting: Vec<(PathBuf, Away)>,
    /// Changes that the gate holds.
    pub held: Vec<Held>,
}

/// Why a contract text did not become a contract.
pub enum Uncompiled {
    /// The source or the adapter is not there now.
    Waiting(Away),
    Refused(Vec<Problem>),
}

impl Uncompiled {
    /// Says of a file what the gate says of its contract.
    fn at_the_gate(file: &str, error: GateError) -> Self {
        match error {
            GateError::Refused(problems) => Self::Refused(
                problems
                    .into_iter()
                    .map(|problem| problem.in_file(file))
                    .collect(),
            ),
            owned @ GateError::Owned { .. } => Self::Waiting(owned.to_string().into()),
            error => Self::Refused(vec![Problem::new(file, "", error.to_string())]),
        }
    }
}

impl Registry {
    pub fn new(gateway: Arc<Gateway>, state: Arc<State>) -> Self {
        let recorded = Recorded::new(gateway.config().folders.state.join("shapes"));
        let gate = Gate::new(state, gateway.audit().clone());
        Self {
            gateway,
            recorded,
            gate,
            files: Mutex::default(),
            publishing: Default::default(),
            unserved: Default::default(),
            drifted: Default::default(),
            said: Default::default(),
        }
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Returns the contract files that were refused or wait for their source, at the last look.
    pub fn unserved(&self) -> Vec<UnservedFile> {
        self.unserved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads what is new or changed in the contracts folder and in the state, and publishes. Used at start and by
    /// `watch`.
    pub async fn load(&self) -> Report {
        let mut state = self.files.lock().await;
        let Files {
            loaded: files,
            gone,
            config: read_under,
        } = &mut *state;
        let mut report = Report::default();
        let config = Arc::clone(&self.gateway.config());
        if read_under
            .replace(config.clone())
            .is_some_and(|before| !Arc::ptr_eq(&before, &config))
        {
            files.retain(|_, file| file.problems.is_empty());
            self.submit_all_code(&mut report).await;
        }
        let folder = &config.folders.contracts;
        let refused =
            |error: GateError| Problem::new(&folder.display().to_string(), "", error.to_string());
        if let Err(error) = self.gate.follow().await {
            report.problems.push(refused(error));
            return report;
        }
        report
            .problems
            .extend(self.read_locks_of_upstreams(&config).await);
        match files::list(folder) {
            Ok(found) => {
                files.retain(|path, _| found.contains_key(path));
                for (path, stamp) in found {
                    let known = files.get(&path);
                    if known.is_some_and(|known| known.is_settled(&path, &stamp)) {
                        continue;
                    }
                    let before = known.and_then(|known| known.name.clone());
                    let taken = |name: &str| {
                        let other = |(other, entry): (&PathBuf, &Loaded)| {
                            *other != path && entry.name.as_deref() == Some(name)
                        };
                        files.iter().any(other)
                    };
                    let (problems, waiting) = (report.problems.len(), report.waiting.len());
                    let name = self.file(&path, taken, &mut report).await.or(before);
                    let problems = report.problems[problems..].to_vec();
                    let waiting = report
                        .waiting
                        .get(waiting)
                        .map(|(_, away)| away.why.clone());
                    let lock = name
                        .as_deref()
                        .and_then(|name| files::lock_stamp(&path, name));
                    files.insert(
                        path,
                        Loaded {
                            stamp,
                            name,
                            waiting,
                            problems,
                            lock,
                        },
                    );
                }
                if let Err(error) = self.missing(folder, files, gone, &mut report).await {
                    report.problems.push(refused(error));
                }
            }
            Err(problem) => report.problems.push(problem),
        }
        let mut unserved = unserved(files);
        let of_folder = report
            .problems
            .iter()
            .filter(|problem| problem.file == folder.display().to_string());
        let of_folder: Vec<Problem> = of_folder.cloned().collect();
        if !of_folder.is_empty() {
            unserved.push(UnservedFile {
                file: folder.clone(),
                problems: of_folder,
                waiting: None,
            });
        }
        *self.unserved.lock().unwrap_or_else(PoisonError::into_inner) = unserved;
        self.publish();
        report
    }

    /// Reads one new or changed file, and returns the contract that it defines.
    async fn file(
        &self,
        path: &Path,
        taken: impl Fn(&str) -> bool,
        report: &mut Report,
    ) -> Option<String> {
        let file = path.display().to_string();
        let text = match files::read(path) {
            Ok(text) => text,
            Err(problem) => {
                report.problems.push(problem);
                return None;
            }
        };
        // A file whose text is live is not compiled again: the live version is what was published.
        let live = self.gate.live();
        let unchanged = live
            .values()
            .find(|live| live.origin == Origin::File && live.source == text);
        if let Some(unchanged) = unchanged.filter(|live| !taken(&live.contract.name)) {
            let name = unchanged.contract.name.clone();
            let (state, owner) = (
                self.gate.state(),
                files::owner(path.parent().unwrap_or(Path::new("."))),
            );
            let kept = async {
                if self.gate.own(&name, &owner).await?.is_none() {
                    state
                        .drop_held(&name, Origin::File, now_ms(), "file")
                        .await?;
                    state.forget_rollback(&name).await?;
                }
                Ok::<(), GateError>(())
            };
            if let Err(error) = kept.await {
                report
                    .problems
                    .push(Problem::new(&file, "", error.to_string()));
            }
            return Some(name);
        }
        let source = match form::read(&file, &text) {
            Ok(source) => source,
            Err(problems) => {
                report.problems.extend(problems);
                return None;
            }
        };
        let Some(name) = source.contract.clone() else {
            let problem = Problem::new(
                &file,
                "",
                "is a form without a contract: it compiles, but there is nothing to serve",
            );
            report.problems.push(
                problem.hint(
                    "put it under `tools:` of a contract with `contract:` and `collections:`",
                ),
            );
            return None;
        };
        if taken(&name) {
            let message = format!("the contract `{name}` is defined in another file already");
            report
                .problems
                .push(Problem::new(&file, "/contract", message).hint("give it another name"));
            return None;
        }
        match self.submit_file(path, &text, &source, &name).await {
            Ok(held) => report.held.extend(held),
            Err(Uncompiled::Waiting(away)) => report.waiting.push((path.to_owned(), away)),
            Err(Uncompiled::Refused(problems)) => report.problems.extend(problems),
        }
        Some(name)
    }

    /// Submits the contract that a file defines. Returns the draft that somebody has to agree to.
    async fn submit_file(
        &self,
        path: &Path,
        text: &str,
        source: &form::Source,
        name: &str,
    ) -> Result<Option<Held>, Uncompiled> {
        let file = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new("."));
        let owner = files::owner(folder);
        let refused = |error| Uncompiled::at_the_gate(&file, error);
        if let Some(owned) = self.gate.own(name, &owner).await.map_err(refused)? {
            return Err(Uncompiled::Waiting(owned.to_string().into()));
        }
        // Without its lock nobody knows what was published: the file would go live without being compared.
        let from_file = Source {
            origin: Origin::File,
            owner: Some(&owner),
        };
        self.read_lock(folder, name, from_file)
            .await
            .map_err(Uncompiled::Refused)?;
        // This holds until the file says something else.
        if self.is_rolled_back(name, text).await.map_err(refused)? {
            return Ok(None);
        }
        let contract = self.compile(source).await?;
        let by = format!(
            "file:{}",
            path.file_name().unwrap_or_default().to_string_lossy()
        );
        let submission = Submission {
            contract,
            source: text,
            origin: Origin::File,
            owner: Some(&owner),
            by: &by,
            hold: false,
            on: None,
        };
        match self.gate.submit(submission).await.map_err(refused)? {
            Verdict::Held(held) => Ok(Some(held)),
            Verdict::Published { .. } | Verdict::Unchanged { .. } => Ok(None),
        }
    }

    /// Returns `true` if someone went back from the version that this very text became: their decision holds until the
    /// file says something else.
    async fn is_rolled_back(&self, name: &str, text: &str) -> Result<bool, GateError> {
        let state = self.gate.state();
        let Some(from) = state.head(name).await?.and_then(|head| head.rolled_back) else {
            return Ok(false);
        };
        if state
            .version(name, &from)
            .await?
            .is_some_and(|version| version.source == text)
        {
            return Ok(true);
        }
        state.forget_rollback(name).await?;
        Ok(false)
    }

    /// Restores the published version from the lock of a contract, which lies in this folder, if the state knows nothing
    /// of the contract.
    async fn read_lock(
        &self,
        folder: &Path,
        name: &str,
        source: Source<'_>,
    ) -> Result<(), Vec<Problem>> {
        let Some((path, lock)) = files::lock_text(folder, name) else {
            return Ok(());
        };
        let file = path.display().to_string();
        let read = async {
            if self.gate.was_published(name).await? {
                return Ok(());
            }
            let lock = Lock::read(
                &file,
                &lock.map_err(|problem| GateError::Refused(vec![problem]))?,
            )
            .map_err(GateError::Refused)?;
            self.gate.restore(&lock, name, source).await
        };
        read.await.map_err(|error| match error {
            GateError::Refused(problems) => problems
                .into_iter()
                .map(|problem| problem.in_file(&file))
                .collect(),
            error => vec![Problem::new(&file, "", error.to_string())],
        })
    }

    /// Restores what other servers offer from its locks, where the state knows nothing of it: it is listed although its
    /// server may be down. Locks of everything else are read with their contract file, or with the plugin.
    async fn read_locks_of_upstreams(&self, config: &Config) -> Vec<Problem> {
        let mut problems = Vec::new();
        if config.upstreams.is_empty() {
            return problems;
        }
        let owner = files::owner(&config.base);
        let folder = &config.folders.contracts;
        let live = self.gate.live();
        for name in files::locked(folder)
            .into_iter()
            .filter(|name| !live.contains_key(name))
        {
            let Some((path, text)) = files::lock_text(folder, &name) else {
                continue;
            };
            let lock = text.map_err(|problem| vec![problem]);
            let restored =
                match lock.and_then(|text| Lock::read(&path.display().to_string(), &text)) {
                    Ok(lock)
                        if lock
                            .contract
                            .upstream()
                            .is_some_and(|it| config.upstreams.contains_key(it)) =>
                    {
                        self.read_lock(
                            folder,
                            &name,
                            Source {
                                origin: Origin::Upstream,
                                owner: Some(&owner),
                            },
                        )
                        .await
                    }
                    // An unreadable lock says no more what it is of than its name does.
                    Err(unreadable) if config.upstreams.contains_key(&name) => Err(unreadable),
                    Ok(_) | Err(_) => Ok(()),
                };
            problems.extend(restored.err().into_iter().flatten());
        }
        problems
    }

    /// Restores the version of an offer from its lock. An offer whose lock cannot be read is refused: it would go live
    /// without being compared.
    async fn read_lock_of_offer(&self, name: &str, source: Source<'_>) -> Result<(), GateError> {
        let config = Arc::clone(&self.gateway.config());
        self.read_lock(&config.folders.contracts, name, source)
            .await
            .map_err(GateError::Refused)
    }

    /// Finds the contracts that this folder owns and whose files are gone: they are served until someone agrees that
    /// they go. If a file cannot be read, nobody knows what it defines, and nothing counts as gone.
    async fn missing(
        &self,
        folder: &Path,
        files: &BTreeMap<PathBuf, Loaded>,
        gone: &mut BTreeSet<(String, Version)>,
        report: &mut Report,
    ) -> Result<(), GateError> {
        if files.values().any(|file| file.name.is_none()) {
            return Ok(());
        }
        let present: BTreeSet<&str> = files
            .values()
            .filter_map(|file| file.name.as_deref())
            .collect();
        let (live, owner) = (self.gate.live(), files::owner(folder));
        let is_own = |live: &&Arc<LiveContract>| {
            live.origin == Origin::File && live.owner.as_deref() == Some(&*owner)
        };
        let missing = live
            .values()
            .filter(is_own)
            .map(|live| &live.contract)
            .filter(|contract| !present.contains(contract.name.as_str()));
        let now: BTreeSet<_> = missing
            .map(|contract| (contract.name.clone(), contract.version))
            .collect();
        for (name, _) in now.difference(gone) {
            report
                .held
                .push(self.gate.ask_to_retire(name, "file", None).await?);
        }
        *gone = now;
        Ok(())
    }

    /// Serves one contract that stands in no file (`weir draft`), without a gate.
    pub fn serve(&self, contract: Contract) {
        self.swap(vec![Arc::new(contract)]);
    }

    /// Follows the folder, and what other processes publish, until the task ends.
    pub async fn watch(&self, watcher: &Watcher) {
        let folder = Place::folder(&self.gateway.config().folders.contracts);
        let mut pace = watcher.pace(WATCH_INTERVAL, vec![folder]);
        let mut published = self.gate.state().changes();
        let mut background = self.gateway.background_changes();
        loop {
            tokio::select! {
                () = pace.next_look() => {}
                Ok(()) = published.changed() => {}
                Ok(()) = background.changed() => {}
            }
            let report = self.load().await;
            self.log(&report);
            // Further changes are taken over together.
            tokio::time::sleep(SETTLE_INTERVAL).await;
        }
    }

    /// Logs each thing once, until it changes: a waiting contract is tried at each look, and what its source says may differ
    /// each time.
    pub fn log(&self, report: &Report) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = report.waiting.iter().map(|(path, away)| {
            let line = |why: &str| format!("waiting: {}: {why}", path.display());
            (line(&away.why), Some(line(&away.in_full())))
        });
        let held = report
            .held
            .iter()
            .map(|held| (format!("held: {}", held.line()), None));
        let mut now = BTreeSet::new();
        for (line, in_full) in waiting.chain(held) {
            if !said.contains(&line) {
                tracing::warn!("{}", in_full.as_ref().unwrap_or(&line));
            }
            now.insert(line);
        }
        for problem in &report.problems {
            let line = format!("refused: {problem}");
            if !said.contains(&line) {
                tracing::error!("{line}");
            }
            now.insert(line);
        }
        *said = now;
    }

    /// Submits a contract, which is the only way that one comes in: the gate judges it, and what became live is served
    /// when this returns. The files of the folder are submitted one by one and served together, by
    /// [`load`](Self::load).
    pub async fn submit(&self, submission: Submission<'_>) -> Result<Verdict, GateError> {
        let verdict = self.gate.submit(submission).await?;
        self.publish();
        Ok(verdict)
    }

    /// Publishes a draft, which is served when this returns. A version of `None` means that the contract is retired.
    pub async fn publish_draft(
        &self,
        id: &str,
        approval: &Approval<'_>,
    ) -> Result<(DraftHead, Option<Version>), GateError> {
        let published = self.gate.publish(id, approval).await?;
        self.publish();
        Ok(published)
    }

    /// Makes a version live again that was published before; it is served when this returns.
    pub async fn roll_back(
        &self,
        name: &str,
        to: &str,
        approval: &Approval<'_>,
        on: Option<i64>,
    ) -> Result<Diff, GateError> {
        let diff = self.gate.roll_back(name, to, approval, on).await?;
        self.publish();
        Ok(diff)
    }

    /// Swaps in what is live now, where that is not what is served already.
    fn publish(&self) {
        let _publishing = self
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let live = self.gate.live();
        let contracts: Vec<Arc<Contract>> = live
            .values()
            .map(|live| self.servable(&live.contract))
            .collect();
        let served = &self.gateway.snapshot().contracts;
        let same = served.len() == contracts.len()
            && served
                .iter()
                .zip(&contracts)
                .all(|(a, b)| Arc::ptr_eq(a, b));
        if !same
            || !self
                .gateway
                .snapshot()
                .catalogue
                .has_views(&self.gateway.config().views)
        {
            self.swap(contracts);
        }
    }

    fn swap(&self, contracts: Vec<Arc<Contract>>) {
        let old = self.gateway.snapshot();
        for contract in contracts
            .iter()
            .filter(|new| !old.contracts.iter().any(|known| Arc::ptr_eq(known, new)))
        {
            warn_of_names(contract);
        }
        let catalogue = Catalogue::new(
            &contracts,
            &self.gateway.config().views,
            Some(&old.catalogue),
        );
        catalogue
            .empty_views()
            .for_each(|view| tracing::warn!(view, "no tool is in this view"));
        let changed = catalogue.digests() != old.catalogue.digests();
        let snapshot = Snapshot {
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
        self.gateway.publish(snapshot);
        // A build that was refused because of a contract that was live until now may do for the present ones.
        let host = self.gateway.host().clone();
        tokio::spawn(async move { host.retry_refused().await });
    }

    /// Compiles a form with the recorded shapes if they suffice; with new ones if they are missing or no longer carry
    /// the file.
    pub async fn compile(&self, source: &form::Source) -> Result<Contract, Uncompiled> {
        let contract = source.contract.as_deref().unwrap_or_default();
        let mut shapes = BTreeMap::new();
        let mut missing = Vec::new();
        for collection in &source.collections {
            match self.recorded.get(contract, collection.into()) {
                Some(shape) => {
                    shapes.insert(collection.name.clone(), shape);
                }
                None => missing.push(collection),
            }
        }
        if missing.is_empty()
            && let Ok(compiled) = compile::compile(source, &shapes)
        {
            return Ok(compiled);
        }
        // The file is new or asks for more than was recorded: describe everything, and record it only if it compiles.
        let (described, away, mut problems) = describe_all(
            &self.gateway,
            source,
            &source.collections.iter().collect::<Vec<_>>(),
        )
        .await;
        if !away.is_empty() || !problems.is_empty() {
            // What is wrong with the file is told however its sources are.
            problems.extend(
                compile::compile_known(source, &described)
                    .err()
                    .unwrap_or_default(),
            );
            return Err(match problems.is_empty() {
                true => Uncompiled::Waiting(Away::all(away)),
                false => Uncompiled::Refused(problems),
            });
        }
        let compiled = compile::compile(source, &described).map_err(Uncompiled::Refused)?;
        for collection in &source.collections {
            if let Err(error) =
                self.recorded
                    .put(contract, collection.into(), &described[&collection.name])
            {
                tracing::warn!(contract, collection = collection.name, %error, "the shape could not be recorded");
            }
        }
        Ok(compiled)
    }
}

/// Warns of names that new contracts may not have; a version that was published before goes on.
fn warn_of_names(contract: &Contract) {
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

fn unserved(files: &BTreeMap<PathBuf, Loaded>) -> Vec<UnservedFile> {
    let unserved = files
        .iter()
        .filter(|(_, file)| file.waiting.is_some() || !file.problems.is_empty());
    let entry = |(path, file): (&PathBuf, &Loaded)| UnservedFile {
        file: path.clone(),
        problems: file.problems.clone(),
        waiting: file.waiting.clone(),
    };
    unserved.map(entry).collect()
}

/// Returns the contract files of a folder.
pub fn contract_files(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    Ok(files::list(folder)?.into_keys().collect())
}

/// Returns the shape that a gateway with this state recorded for a collection of a form; `None` if the collection is
/// new or its settings have changed.
pub fn recorded_shape(
    state: &Path,
    contract: &str,
    collection: &form::Collection,
) -> Option<Shape> {
    Recorded::new(state.join("shapes")).get(contract, collection.into())
}

/// Returns the collections that live contracts use of one adapter; a new build of its plugin must still serve them.
pub fn in_use(gateway: &Gateway, adapter: &str) -> Vec<NeededCollection> {
    let snapshot = gateway.snapshot();
    let mut seen = BTreeSet::new();
    let used = snapshot.catalogue.tools().filter_map(|tool| {
        let bound = tool.target.collection()?;
        let source = &bound.source;
        if *source.adapter != *adapter || !seen.insert(source.key.clone()) {
            return None;
        }
        let contract = snapshot
            .contracts
            .iter()
            .find(|contract| *contract.name == *tool.contract)?;
        let published = contract.collection(&bound.published.binding.collection)?;
        Some(NeededCollection {
            source: source.clone(),
            published: published.clone(),
        })
    });
    used.collect()
}
