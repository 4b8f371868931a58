//! Versions that are served beside the live one, and the agents that are pinned to one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use ahash::RandomState;
use sha2::{Digest as _, Sha256};
use weir_contracts::{
    CompiledContract,
    compile::result_arm,
    output::ResultChecker,
    shim::{ShimConversion, VersionShim},
};

use super::{
    CatalogueListing, CatalogueTool, ServerInfo, target::HostCollections, tool::KeptChecks,
};
use crate::identity::{CallerIdentity, now_ms};

/// A version that is served beside the live one.
#[derive(Debug)]
pub struct KeptContract {
    pub contract: Arc<CompiledContract>,
    /// The shim that converts its calls to those of the live version. `None`: it keeps its own binding.
    pub shim: Option<VersionShim>,
    pub sunset_ms: Option<i64>,
}

impl KeptContract {
    /// Returns `true` if its last day is over. `now_ms` is in milliseconds since the Unix epoch.
    pub fn has_ended(&self, now_ms: i64) -> bool {
        self.sunset_ms.is_some_and(|sunset| sunset <= now_ms)
    }
}

/// The major versions that agents are pinned to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AgentPins {
    by_agent: HashMap<Box<str>, PinnedVersions, RandomState>,
}

/// The versions to which one agent is pinned.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PinnedVersions {
    majors: BTreeMap<Box<str>, u32>,
    pub(super) digest: [u8; 32],
}

impl AgentPins {
    /// Collects pins: agent, contract, major version.
    pub fn new<'p>(pins: impl Iterator<Item = (&'p str, &'p str, u32)>) -> Self {
        let mut majors: BTreeMap<&str, BTreeMap<Box<str>, u32>> = BTreeMap::new();
        for (agent, contract, major) in pins {
            majors
                .entry(agent)
                .or_default()
                .insert(contract.into(), major);
        }
        let of_agent = |(agent, majors): (&str, BTreeMap<Box<str>, u32>)| {
            let text = serde_json::to_vec(&majors).expect("plain data");
            let digest = Sha256::digest(text).into();
            (agent.into(), PinnedVersions { majors, digest })
        };
        Self {
            by_agent: majors.into_iter().map(of_agent).collect(),
        }
    }

    pub(super) fn find(&self, caller: &CallerIdentity) -> Option<&PinnedVersions> {
        match self.by_agent.is_empty() {
            true => None,
            false => self.by_agent.get(&*caller.agent),
        }
    }

    pub(super) fn add_to(&self, digest: &mut Sha256) {
        let mut each: Vec<_> = self.by_agent.iter().collect();
        each.sort_by_key(|(agent, _)| *agent);
        for (agent, pinned) in each {
            digest.update(agent.as_bytes());
            digest.update(pinned.digest);
        }
    }
}

impl PinnedVersions {
    pub(super) fn major(&self, contract: &str) -> Option<u32> {
        self.majors.get(contract).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, u32)> {
        self.majors.iter().map(|(name, major)| (&**name, *major))
    }
}

/// The additional data of a tool of a kept version.
pub struct KeptTool {
    pub sunset_ms: Option<i64>,
    /// The tool of the live version that its calls are converted to, or that has its name.
    pub(super) current: Option<Arc<CatalogueTool>>,
    /// What converts its calls; `None`: it has its own binding.
    pub shim: Option<CallShim>,
}

/// Converts the calls of one tool.
pub struct CallShim {
    pub up: ShimConversion,
    pub down: ShimConversion,
    /// The check of results of the kept version; `None`: it has no output schema.
    pub results: Option<ResultChecker>,
}

impl KeptTool {
    /// Returns `true` if the last day of its version is over.
    pub fn has_ended(&self) -> bool {
        self.sunset_ms.is_some_and(|sunset| sunset <= now_ms())
    }
}

/// The kept version of one catalogue.
pub(super) struct ServedVersion {
    pub(super) kept: Arc<KeptContract>,
    /// The place of its listing.
    pub(super) place: usize,
    /// Its tools, also after it has ended, when nothing of it is listed.
    pub(super) tools: HashMap<Arc<str>, Arc<CatalogueTool>, RandomState>,
    pub(super) has_ended: bool,
}

impl ServedVersion {
    /// Prepares a version beside the live one, whose listing is `live`.
    pub(super) fn new(
        kept: &Arc<KeptContract>,
        live: &CatalogueListing,
        place: usize,
        checks: &KeptChecks,
        now_ms: i64,
    ) -> Self {
        let contract = &kept.contract;
        let sources = HostCollections::new(contract);
        let mut tools = HashMap::default();
        for tool in &contract.tools {
            let shim = kept.shim.as_ref();
            let current_name = shim.map_or(&*tool.name, |shim| shim.new_name(&tool.name));
            let current = live.tools.find(current_name).cloned();
            let calls = shim.map(|shim| {
                let steps = shim.tools.get(&tool.name).cloned().unwrap_or_default();
                steps.conversions()
            });
            let shim = match (calls, &current) {
                (Some(Ok((up, down))), Some(_)) => Some(CallShim {
                    up,
                    down,
                    results: result_checker(tool),
                }),
                _ => None,
            };
            let beside = KeptTool {
                sunset_ms: kept.sunset_ms,
                current,
                shim,
            };
            let prepared = CatalogueTool::prepare(contract, tool, &sources, checks, None);
            let prepared = prepared.and_then(Arc::into_inner);
            if let Some(prepared) = prepared.map(|prepared| prepared.beside(beside)) {
                tools.insert(prepared.name.clone(), Arc::new(prepared));
            }
        }
        Self {
            kept: kept.clone(),
            place,
            tools,
            has_ended: kept.has_ended(now_ms),
        }
    }

    /// Returns its server information, and its lists.
    pub(super) fn listed(&self) -> (ServerInfo, Vec<Arc<CatalogueTool>>) {
        let named = self.kept.contract.tools.iter();
        let tools = named.filter_map(|tool| self.tools.get(tool.name.as_str()).cloned());
        let tools = match self.has_ended {
            true => Vec::new(),
            false => tools.collect(),
        };
        (ServerInfo::from_contract(&self.kept.contract), tools)
    }
}

fn result_checker(tool: &weir_contracts::ContractTool) -> Option<ResultChecker> {
    let schema = tool.checked_output()?.value();
    match (tool.offer().is_some(), tool.is_foreign()) {
        (false, _) => ResultChecker::new(&result_arm(&schema)).ok(),
        (true, false) => ResultChecker::new(&schema).ok(),
        (true, true) => ResultChecker::foreign(&schema).ok(),
    }
}
