//! Arguments: compared with the headers that repeat them, validated against the published schema, then turned into a request to
//! the target.

use std::{borrow::Cow, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use weir_contracts::impact::ValueProfile;
use weir_schema::json;

use super::{
    CallError, CallRequest,
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
    /// The tool that runs: for a kept version with a shim, the tool of the live version.
    pub tool: &'t CatalogueTool,
    pub target: TargetRequest<'t>,
    /// The arguments that the contract lists for recording in clear.
    pub clear: Map<String, Value>,
    /// The profile of the arguments, if profiles are kept.
    pub profile: Option<ValueProfile>,
    /// What policies would have denied.
    pub policy: Option<PolicyDecision>,
    /// The approved plan that the call uses up.
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
    // The shape of calls of a kept version says nothing about the live version.
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

/// The headers `Mcp-Param-…` of a request: names without that prefix in lower case, and values.
pub type ParamHeaders = [(Box<str>, Box<[u8]>)];

/// Checks arguments that a request repeats in its headers (`x-mcp-header`). Both must agree, since a proxy may have routed or
/// allowed the request by the header. A client follows the listed schema, which in a view may have fewer headers than the tool's
/// own: there, a header may be missing, but one that is present must agree.
pub(super) fn check_headers(
    tool: &CatalogueTool,
    request: &CallRequest<'_>,
) -> Result<(), CallError> {
    let Some(headers) = request.param_headers.filter(|_| !tool.mirrored.is_empty()) else {
        return Ok(());
    };
    // Unreadable arguments are reported with all other problems of the arguments.
    let Ok(arguments) = json::read_wide(request.arguments.unwrap_or("{}")) else {
        return Ok(());
    };
    let listed = request.snapshot.catalogue.mirrored(request.endpoint, tool);
    for mirrored in &tool.mirrored {
        let header = format!("Mcp-Param-{}", mirrored.header);
        let mut given = headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(&mirrored.header));
        let (first, second) = (given.next(), given.next());
        if second.is_some() {
            return Err(CallError::header_mismatch(format!(
                "the {header} header is given more than once"
            )));
        }
        let wrong =
            || CallError::header_mismatch(format!("the {header} header is not valid base64"));
        let decoded_value = first
            .map(|(_, value)| decoded(value).ok_or_else(wrong))
            .transpose()?;
        let argument = format!("the argument `{}`", mirrored.path.join("."));
        match decoded_value {
            Some(decoded_value) if mirrored.is_repeated_by(&decoded_value, &arguments) => {}
            Some(_) => {
                return Err(CallError::header_mismatch(format!(
                    "the {header} header does not match {argument}"
                )));
            }
            None if mirrored.value(&arguments).is_none() => {}
            None if listed.iter().any(|listed| listed.header == mirrored.header) => {
                return Err(CallError::header_mismatch(format!(
                    "the {header} header is missing, and {argument} is given"
                )));
            }
            None => {}
        }
    }
    Ok(())
}

/// Reads the value of a header. `=?base64?…?=` encodes what a header cannot contain; a value without both halves of the mark is
/// literal.
pub fn decoded(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(encoded) = value
        .strip_prefix(b"=?base64?")
        .and_then(|rest| rest.strip_suffix(b"?="))
    else {
        return Some(Cow::Borrowed(value));
    };
    STANDARD.decode(encoded).ok().map(Cow::Owned)
}
