//! Applies policies to one call: after its arguments are valid, before anything is announced or run.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use weir_policy::{PolicyDenial, ToolVerdict};

use super::{CallError, error::ErrorForm};
use crate::{
    catalogue::CatalogueTool, codes::FailureCode, config::PolicyMode, identity::CallerIdentity,
    snapshot::CatalogueSnapshot,
};

const OTHER_ARGUMENTS: &str =
    "Policies check the arguments of this tool, but cannot read those of this version.";

/// The policies of one tool for one caller.
pub(super) struct CallPolicies {
    verdict: Arc<ToolVerdict>,
    mode: PolicyMode,
    /// Whether policies can read the arguments.
    reads_arguments: bool,
}

/// A call that policies deny, or would deny.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PolicyDecision {
    pub decision: PolicyOutcome,
    /// The ids of the deciding policies; empty if no policy permits the call.
    #[schema(value_type = Vec<String>)]
    pub policies: Vec<Arc<str>>,
}

/// What happened to a call that policies deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyOutcome {
    /// It was refused.
    Denied,
    /// It would have been refused, but continued: `mode = "audit"`.
    Audited,
}

impl PolicyOutcome {
    /// Returns the word in records and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Audited => "audited",
        }
    }
}

impl CallPolicies {
    /// Returns the policies on a tool for a caller; `None` if none applies.
    pub(super) fn find(
        snapshot: &CatalogueSnapshot,
        caller: &CallerIdentity,
        tool: &Arc<CatalogueTool>,
    ) -> Option<Self> {
        let served = snapshot.catalogue.policies()?;
        let verdict = served.verdict(caller, tool.judged()?);
        let is_open = verdict.denial.is_none() && verdict.arguments.is_none();
        (!is_open).then(|| Self {
            verdict,
            mode: served.mode(),
            reads_arguments: tool.has_judged_arguments(),
        })
    }

    /// Decides a call whose arguments are valid. A denial that is only recorded is returned, and the call continues.
    pub(super) fn decide(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<Option<PolicyDecision>, CallError> {
        let by_arguments = || {
            let rules = self.verdict.arguments.as_ref()?;
            match self.reads_arguments {
                true => rules.decide(arguments).err(),
                false => Some(PolicyDenial {
                    policies: Vec::new(),
                    message: OTHER_ARGUMENTS.into(),
                }),
            }
        };
        let Some(denial) = self.verdict.denial.clone().or_else(by_arguments) else {
            return Ok(None);
        };
        let PolicyDenial { policies, message } = denial;
        match self.mode {
            PolicyMode::Audit => Ok(Some(PolicyDecision {
                decision: PolicyOutcome::Audited,
                policies,
            })),
            PolicyMode::Enforce => {
                let decision = PolicyDecision {
                    decision: PolicyOutcome::Denied,
                    policies,
                };
                Err(CallError {
                    reason: Some("denied_by_policy".to_owned()),
                    form: ErrorForm::Denied(Box::new(decision)),
                    ..CallError::new(FailureCode::Forbidden, message.to_string())
                })
            }
        }
    }
}
