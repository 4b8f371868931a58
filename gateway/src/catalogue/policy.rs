//! The part of a catalogue that policies leave to each caller.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use ahash::RandomState;
use dashmap::DashMap;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use weir_policy::{PolicyDenial, PolicyJudge, PolicyPrincipal, PrincipalClass, ToolVerdict};

use super::CatalogueTool;
use crate::{
    config::PolicyMode,
    identity::{CallerIdentity, CatalogueAccess},
};

/// The most callers whose class is kept.
const CALLERS_MAX: usize = 1_024;
/// The most classes whose verdicts are kept.
const CLASSES_MAX: usize = 256;

/// The viewer of the catalogue.
#[derive(Clone, Copy, Debug)]
pub enum CatalogueViewer<'v> {
    /// A caller, who sees what its grant and the policies allow.
    Caller(&'v CallerIdentity),
    /// An operator, who sees what an access allows.
    Operator(&'v CatalogueAccess),
}

/// The policies of one catalogue, with their decisions about its callers.
pub struct ServedPolicies {
    judge: Arc<PolicyJudge>,
    mode: PolicyMode,
    callers: Cache<PolicyPrincipal, Arc<ClassVerdicts>>,
    classes: Cache<PrincipalClass, Arc<ClassVerdicts>>,
}

/// The decisions about the callers of one class.
pub(super) struct ClassVerdicts {
    /// One of the callers, which represents the class.
    principal: PolicyPrincipal,
    /// By the address of the tool, which the catalogue holds.
    tools: DashMap<usize, Arc<ToolVerdict>, RandomState>,
    contracts: DashMap<Box<str>, bool, RandomState>,
    digest: OnceLock<Option<[u8; 32]>>,
}

impl<'v> CatalogueViewer<'v> {
    /// Sees everything.
    pub const EVERYTHING: CatalogueViewer<'static> =
        CatalogueViewer::Operator(&CatalogueAccess::EVERYTHING);

    pub(super) fn access(self) -> &'v CatalogueAccess {
        match self {
            Self::Caller(caller) => caller.access(),
            Self::Operator(access) => access,
        }
    }
}

impl ServedPolicies {
    /// Creates the policies of a catalogue. There is no decision about any caller yet.
    pub fn new(judge: Arc<PolicyJudge>, mode: PolicyMode) -> Self {
        Self {
            judge,
            mode,
            callers: Cache::new(CALLERS_MAX),
            classes: Cache::new(CLASSES_MAX),
        }
    }

    /// Returns `true` if these are the policies, in this mode.
    pub(super) fn are(&self, judge: &Arc<PolicyJudge>, mode: PolicyMode) -> bool {
        Arc::ptr_eq(&self.judge, judge) && self.mode == mode
    }

    /// Returns the judge of calls.
    pub fn judge(&self) -> &Arc<PolicyJudge> {
        &self.judge
    }

    /// Returns whether denied calls are refused, or only recorded.
    pub fn mode(&self) -> PolicyMode {
        self.mode
    }

    /// Returns the decisions about a caller and a tool.
    pub fn verdict(&self, caller: &CallerIdentity, tool: &Arc<CatalogueTool>) -> Arc<ToolVerdict> {
        self.verdict_of(&self.class(caller), tool)
    }

    fn verdict_of(&self, class: &ClassVerdicts, tool: &Arc<CatalogueTool>) -> Arc<ToolVerdict> {
        let place = Arc::as_ptr(tool) as usize;
        if let Some(known) = class.tools.get(&place) {
            return known.clone();
        }
        let verdict = self
            .judge
            .tool(&class.principal, &tool.name, &tool.contract);
        let verdict = Arc::new(verdict);
        class.tools.insert(place, verdict.clone());
        verdict
    }

    pub(super) fn class(&self, caller: &CallerIdentity) -> Arc<ClassVerdicts> {
        let principal = caller.policy_principal();
        if let Some(known) = self.callers.get(&principal) {
            return known;
        }
        let class = self.judge.class(&principal);
        let make = || {
            Ok::<_, Infallible>(Arc::new(ClassVerdicts {
                principal: principal.clone(),
                tools: DashMap::default(),
                contracts: DashMap::default(),
                digest: OnceLock::new(),
            }))
        };
        let Ok(verdicts) = self.classes.get_or_insert_with(&class, make);
        self.callers.insert(principal, verdicts.clone());
        verdicts
    }

    /// Returns `true` if a tool exists for the callers of a class. In audit mode, every tool does.
    pub(super) fn shows(&self, class: &ClassVerdicts, tool: &Arc<CatalogueTool>) -> bool {
        self.mode == PolicyMode::Audit || self.verdict_of(class, tool).denial.is_none()
    }

    /// Returns `true` if the prompts and resources of a contract exist for the callers of a class.
    pub(super) fn shows_contract(&self, class: &ClassVerdicts, contract: &str) -> bool {
        if self.mode == PolicyMode::Audit {
            return true;
        }
        if let Some(known) = class.contracts.get(contract) {
            return *known;
        }
        let denial: Option<PolicyDenial> = self.judge.contract(&class.principal, contract);
        class.contracts.insert(contract.into(), denial.is_none());
        denial.is_none()
    }

    /// Returns a digest of the part of the catalogue that exists for the callers of a class; `None` if all of it does.
    pub(super) fn digest<'t>(
        &self,
        class: &ClassVerdicts,
        tools: impl Iterator<Item = &'t Arc<CatalogueTool>>,
        contracts: impl Iterator<Item = &'t str>,
    ) -> Option<[u8; 32]> {
        let make = || {
            let mut names = Sha256::new();
            let mut any = false;
            let mut name = |parts: [&str; 2]| {
                any = true;
                for part in parts {
                    names.update(part);
                    names.update([0]);
                }
            };
            let hidden = tools.filter(|tool| !self.shows(class, tool));
            hidden.for_each(|tool| name([&tool.contract, &tool.name]));
            let hidden = contracts.filter(|contract| !self.shows_contract(class, contract));
            hidden.for_each(|contract| name([contract, ""]));
            any.then(|| names.finalize().into())
        };
        *class.digest.get_or_init(make)
    }
}
