//! Arguments: validated against the published schema, then bound to what the target is asked.

use std::sync::Arc;

use serde_json::{Map, Value};
use weir_contracts::impact::ValueProfile;

use super::{
    CallError,
    approval::TakenPlan,
    asking::CallerInteraction,
    policy::{CallPolicies, PolicyDecision},
    target::TargetRequest,
    versions,
};
use crate::{
    catalogue::CatalogueTool, codes::FailureCode, cursor::CursorCipher, identity::CallerIdentity,
};

/// A call whose arguments are valid. Only this stage makes one.
pub(super) struct CheckedInput<'t> {
    /// The tool that runs: of a kept version with a shim, that of the live version.
    pub tool: &'t CatalogueTool,
    pub target: TargetRequest<'t>,
    /// The arguments that the contract lists to be recorded in clear.
    pub clear: Map<String, Value>,
    /// The profile of the arguments, if those are kept.
    pub profile: Option<ValueProfile>,
    /// What policies would have denied.
    pub policy: Option<PolicyDecision>,
    /// The plan that a person approved, and that the call uses up.
    pub plan: Option<Arc<TakenPlan>>,
}

pub(super) fn bind<'t>(
    cursors: &CursorCipher,
    caller: &CallerIdentity,
    tool: &'t CatalogueTool,
    arguments: Option<&str>,
    asking: CallerInteraction<'_>,
    keep_profile: bool,
    policies: Option<&CallPolicies>,
) -> Result<CheckedInput<'t>, CallError> {
    let checks = tool.checks();
    let Some(validator) = checks.arguments() else {
        return Err(CallError::new(
            FailureCode::Internal,
            "The arguments of this tool cannot be checked.",
        ));
    };
    let arguments = validator
        .validate(arguments.unwrap_or("{}"))
        .map_err(CallError::invalid)?;
    // What calls of a kept version looked like says nothing about the live one.
    let keep_profile = keep_profile && tool.kept.is_none();
    let profile = keep_profile.then(|| checks.profiler().profile(&arguments));
    let in_clear = |field: &String| Some((field.clone(), arguments.get(field)?.clone()));
    let clear = tool.tool.audit_clear.iter().filter_map(in_clear).collect();
    let (tool, arguments) = versions::convert_arguments(tool, arguments)?;
    let policy = match policies {
        Some(policies) => policies.decide(&arguments)?,
        None => None,
    };
    Ok(CheckedInput {
        tool,
        target: TargetRequest::bind(cursors, caller, tool, arguments, asking)?,
        clear,
        profile,
        policy,
        plan: None,
    })
}
