//! Prepares versions that are served in addition to the live one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use ahash::RandomState;
use weir_contracts::{
    CompiledContract, ContractTool,
    compile::result_arm,
    contract::FieldDestination,
    output::ResultChecker,
    shim::{ShimConversion, VersionShim},
};

use super::{
    CatalogueListing, CatalogueTool, ServerInfo, target::HostCollections, tool::KeptChecks,
};
use crate::identity::now_ms;

/// A version that is served in addition to the live one.
#[derive(Debug)]
pub struct KeptContract {
    pub contract: Arc<CompiledContract>,
    /// The shim that converts its calls to those of the live version. `None`: it keeps its own binding.
    pub shim: Option<VersionShim>,
    pub sunset_ms: Option<i64>,
}

impl KeptContract {
    /// Returns `true` if its last day has passed. `now_ms` is in milliseconds since the Unix epoch.
    pub fn has_ended(&self, now_ms: i64) -> bool {
        self.sunset_ms.is_some_and(|sunset| sunset <= now_ms)
    }
}

/// The additional data of a tool of a kept version.
pub struct KeptTool {
    pub sunset_ms: Option<i64>,
    /// The tool of the live version to which its calls are converted, or which has the same name.
    pub(super) current: Option<Arc<CatalogueTool>>,
    /// The conversion of its calls; `None` if it has its own binding.
    pub shim: Option<CallShim>,
}

/// Converts the calls of one tool.
pub struct CallShim {
    pub up: ShimConversion,
    pub down: ShimConversion,
    /// The check of results of the kept version; `None`: it has no output schema.
    pub results: Option<ResultChecker>,
    /// The names in the kept version of columns and parameters of the live one, if they differ.
    pub columns: BTreeMap<String, String>,
}

impl KeptTool {
    /// Returns `true` if the last day of its version has passed.
    pub fn has_ended(&self) -> bool {
        self.sunset_ms.is_some_and(|sunset| sunset <= now_ms())
    }
}

/// A kept version in one catalogue.
pub(super) struct ServedVersion {
    pub(super) kept: Arc<KeptContract>,
    /// The place of its listing.
    pub(super) place: usize,
    /// Its tools, also after it has ended and is no longer listed.
    pub(super) tools: HashMap<Arc<str>, Arc<CatalogueTool>, RandomState>,
    pub(super) has_ended: bool,
}

impl ServedVersion {
    /// Prepares a version in addition to the live one, whose listing is `live`.
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
                (Some(Ok((up, down))), Some(current)) => Some(CallShim {
                    columns: old_columns(tool, &current.tool, (&up, &down)),
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

/// Returns the old tool's names for the columns and parameters of the new one, if they differ: by the arguments that both have,
/// and by the columns of results.
fn old_columns(
    old: &ContractTool,
    new: &ContractTool,
    (up, down): (&ShimConversion, &ShimConversion),
) -> BTreeMap<String, String> {
    let (Some(was), Some(is)) = (old.collection(), new.collection()) else {
        return BTreeMap::new();
    };
    let mut columns = down.old_columns();
    for input in &is.binding.inputs {
        let argument = up.old_name(&input.field).unwrap_or(&input.field);
        let mut inputs = was.binding.inputs.iter();
        let before = inputs.find(|before| before.field == argument);
        let before = before.and_then(|before| source_name(&before.to));
        if let (Some(now), Some(before)) = (source_name(&input.to), before) {
            columns.insert(now.to_owned(), before.to_owned());
        }
    }
    columns.retain(|now, before| *now != *before);
    columns
}

/// Returns the column or the parameter to which an argument is bound.
fn source_name(to: &FieldDestination) -> Option<&str> {
    match to {
        FieldDestination::Condition { column: name, .. }
        | FieldDestination::Guard { column: name, .. }
        | FieldDestination::Column(name)
        | FieldDestination::Param(name) => Some(name.as_str()),
        FieldDestination::Clear => None,
    }
}

fn result_checker(tool: &ContractTool) -> Option<ResultChecker> {
    let schema = tool.checked_output()?.value();
    match (tool.offer().is_some(), tool.is_foreign()) {
        (false, _) => ResultChecker::new(&result_arm(&schema)).ok(),
        (true, false) => ResultChecker::new(&schema).ok(),
        (true, true) => ResultChecker::foreign(&schema).ok(),
    }
}
