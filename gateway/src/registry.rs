//! Contract files become the snapshot that is served: read, described once, compiled, published.
//!
//! A file that does not compile keeps its last good contract. A contract whose source cannot be described yet waits
//! and is tried again; one that was described before starts from its recorded shapes, without touching the source.

mod files;
mod shapes;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::sync::Mutex;
use weir_contracts::{Contract, Problem, Shape, compile, form};
use weir_plugin_host::{AdapterFailure, CollectionRef};

use self::{files::Stamp, shapes::Recorded};
use crate::{catalogue::Catalogue, gateway::Gateway, snapshot::Snapshot};

const WATCH_INTERVAL: Duration = Duration::from_millis(500);

pub struct Registry {
    gateway: Arc<Gateway>,
    recorded: Recorded,
    loaded: Mutex<BTreeMap<PathBuf, Loaded>>,
}

/// One contract file as it was last seen.
struct Loaded {
    stamp: Stamp,
    /// The last good one: served until a better one compiles.
    contract: Option<Arc<Contract>>,
    /// True while the source could not be described: tried again.
    waiting: bool,
}

/// What became of the files.
#[derive(Debug, Default)]
pub struct Report {
    pub problems: Vec<Problem>,
    /// Contract files whose source could not be described yet, and why.
    pub waiting: Vec<(PathBuf, String)>,
}

enum Outcome {
    Compiled(Contract),
    Waiting(String),
    Refused(Vec<Problem>),
}

impl Registry {
    pub fn new(gateway: Arc<Gateway>) -> Self {
        let recorded = Recorded::new(gateway.config().folders.state.join("shapes"));
        Self { gateway, recorded, loaded: Mutex::default() }
    }

    /// Reads what is new or changed in the contracts folder, and publishes. Used at start and by `watch`.
    pub async fn load(&self) -> Report {
        let mut loaded = self.loaded.lock().await;
        let mut report = Report::default();
        let mut moved = false;
        let found = match files::list(&self.gateway.config().folders.contracts) {
            Ok(found) => found,
            Err(problem) => {
                report.problems.push(problem);
                return report;
            }
        };
        let before = loaded.len();
        loaded.retain(|path, _| found.contains_key(path));
        moved |= loaded.len() != before;
        for (path, stamp) in found {
            let previous = loaded.get(&path);
            if previous.is_some_and(|previous| previous.stamp == stamp && !previous.waiting) {
                continue;
            }
            let kept = previous.and_then(|previous| previous.contract.clone());
            let next = match self.compile(&path).await {
                Outcome::Compiled(contract) => {
                    moved = true;
                    Loaded { stamp, contract: Some(Arc::new(contract)), waiting: false }
                }
                Outcome::Waiting(why) => {
                    report.waiting.push((path.clone(), why));
                    Loaded { stamp, contract: kept, waiting: true }
                }
                Outcome::Refused(problems) => {
                    report.problems.extend(problems);
                    Loaded { stamp, contract: kept, waiting: false }
                }
            };
            loaded.insert(path, next);
        }
        if moved {
            let contracts = unique(&loaded, &mut report.problems);
            self.publish(contracts);
        }
        report
    }

    /// Serves one contract that stands in no file (`weir serve FILE.csv`).
    pub fn serve(&self, contract: Contract) {
        self.publish(vec![Arc::new(contract)]);
    }

    /// Follows the folder until the task ends.
    pub async fn watch(&self) {
        let mut said = BTreeSet::new();
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            let report = self.load().await;
            report.log(&mut said);
        }
    }

    fn publish(&self, contracts: Vec<Arc<Contract>>) {
        let old = self.gateway.snapshot();
        let catalogue = Catalogue::new(&contracts, Some(&old.catalogue));
        let changed = catalogue.digest() != old.catalogue.digest();
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
    }

    async fn compile(&self, path: &std::path::Path) -> Outcome {
        let file = path.display().to_string();
        let text = match files::read(path) {
            Ok(text) => text,
            Err(problem) => return Outcome::Refused(vec![problem]),
        };
        let source = match form::read(&file, &text) {
            Ok(source) => source,
            Err(problems) => return Outcome::Refused(problems),
        };
        if source.contract.is_none() {
            let problem =
                Problem::new(&file, "", "is a form without a contract: it compiles, but there is nothing to serve");
            return Outcome::Refused(vec![
                problem.hint("put it under `tools:` of a contract with `contract:` and `collections:`"),
            ]);
        }
        self.compile_source(&source).await
    }

    /// With the recorded shapes where they do; anew where they are missing or no longer carry the file.
    async fn compile_source(&self, source: &form::Source) -> Outcome {
        let contract = source.contract.as_deref().unwrap_or_default();
        let mut shapes = BTreeMap::new();
        let mut missing = Vec::new();
        for collection in &source.collections {
            match self.recorded.get(contract, collection) {
                Some(shape) => {
                    shapes.insert(collection.name.clone(), shape);
                }
                None => missing.push(collection),
            }
        }
        if missing.is_empty()
            && let Ok(compiled) = compile::compile(source, &shapes)
        {
            return Outcome::Compiled(compiled);
        }
        // The file is new or asks for more than was recorded: describe everything, and record it only if it compiles.
        let mut described = BTreeMap::new();
        for collection in &source.collections {
            match describe(&self.gateway, source, collection).await {
                Ok(shape) => {
                    described.insert(collection.name.clone(), shape);
                }
                Err(Describe::Later(why)) => return Outcome::Waiting(why),
                Err(Describe::Refused(problem)) => return Outcome::Refused(vec![problem]),
            }
        }
        match compile::compile(source, &described) {
            Ok(compiled) => {
                for collection in &source.collections {
                    if let Err(error) = self.recorded.put(contract, collection, &described[&collection.name]) {
                        tracing::warn!(contract, collection = collection.name, %error, "the shape could not be recorded");
                    }
                }
                Outcome::Compiled(compiled)
            }
            Err(problems) => Outcome::Refused(problems),
        }
    }
}

pub enum Describe {
    /// The source or the adapter is not there now.
    Later(String),
    Refused(Problem),
}

/// Asks the adapter for the shape of a collection as it is now.
pub async fn describe(
    gateway: &Gateway,
    source: &form::Source,
    collection: &form::Collection,
) -> Result<Shape, Describe> {
    let place = format!("/collections/{}", collection.name);
    let text =
        match gateway.host().describe(&collection.adapter, &collection.settings.to_string()).await {
            Ok(text) => text,
            Err(AdapterFailure::Guest(error)) => {
                let why = format!("the collection `{}` cannot be described: {}", collection.name, error.message);
                return Err(match error.code.as_str() {
                    "unavailable" | "timeout" | "overloaded" | "rate_limited" => Describe::Later(why),
                    "denied" => Describe::Refused(Problem::new(&source.file, place, why).hint(format!(
                        "grant the connection under [plugins.{}.grants] in weir.toml",
                        collection.adapter
                    ))),
                    _ => Describe::Refused(Problem::new(&source.file, place, why)),
                });
            }
            Err(failure) => return Err(Describe::Later(format!("the collection `{}`: {failure}", collection.name))),
        };
    let refused = |why: String| Describe::Refused(Problem::new(&source.file, place.clone(), why));
    Shape::read(&text)
        .map_err(|error| refused(format!("the adapter `{}` answered no shape: {error}", collection.adapter)))
}

/// Contracts in name order; a name that is taken, of a contract or of a tool, is refused and the first stays.
fn unique(loaded: &BTreeMap<PathBuf, Loaded>, problems: &mut Vec<Problem>) -> Vec<Arc<Contract>> {
    let mut contracts: BTreeMap<&str, Arc<Contract>> = BTreeMap::new();
    let mut tools: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, entry) in loaded {
        let Some(contract) = &entry.contract else { continue };
        let file = path.display().to_string();
        if contracts.contains_key(contract.name.as_str()) {
            let message = format!("the contract `{}` is defined in another file already", contract.name);
            problems.push(Problem::new(&file, "/contract", message).hint("give it another name"));
            continue;
        }
        let taken: Vec<_> =
            contract.tools.iter().filter_map(|tool| Some((&tool.name, tools.get(tool.name.as_str())?))).collect();
        if !taken.is_empty() {
            for (tool, owner) in taken {
                let message = format!("the tool `{tool}` is defined by the contract `{owner}` already");
                problems.push(Problem::new(&file, "/tools", message).hint("give one of the contracts a `prefix:`"));
            }
            continue;
        }
        tools.extend(contract.tools.iter().map(|tool| (tool.name.as_str(), contract.name.as_str())));
        contracts.insert(&contract.name, contract.clone());
    }
    contracts.into_values().collect()
}

impl Report {
    /// Each thing once, until it changes: a waiting contract is tried twice a second.
    fn log(&self, said: &mut BTreeSet<String>) {
        let waiting: BTreeSet<String> =
            self.waiting.iter().map(|(path, why)| format!("{}: {why}", path.display())).collect();
        for line in waiting.difference(said) {
            tracing::warn!("waiting: {line}");
        }
        *said = waiting;
        for problem in &self.problems {
            tracing::error!("refused: {problem}");
        }
    }
}

/// The collections that live contracts use of one adapter; a new build of its plugin must still serve them.
pub fn in_use(gateway: &Gateway, adapter: &str) -> Vec<CollectionRef> {
    let snapshot = gateway.snapshot();
    let mut seen = BTreeSet::new();
    let used = snapshot.catalogue.tools().filter_map(|tool| tool.collection.as_ref());
    used.filter(|collection| *collection.adapter == *adapter && seen.insert(collection.key.clone())).cloned().collect()
}
