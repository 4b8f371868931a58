//! Policies: those in force, their problems, their Cedar schema, and their decisions about a table of cases.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use weir_contracts::FileProblem;
use weir_policy::{PolicyPrincipal, PolicyToken, PolicyVocabulary, PrincipalKind};

use super::{OperationError, OperationResult};
use crate::{
    config::{PolicyDefault, PolicyMode},
    control::ControlPlane,
};

const CASES_MAX: usize = 10_000;

/// The policies in force, and the problems of the files of their folder.
#[derive(Serialize, ToSchema)]
pub struct PolicyStatus {
    pub mode: PolicyMode,
    pub default: PolicyDefault,
    pub policies: Vec<PolicyView>,
    /// The problems: `{file, place, line?, message, hint?}`, where the place is the id of the policy. A file with a problem is
    /// not in force; its previous version is, if there was one.
    #[schema(value_type = Vec<Object>)]
    pub problems: Vec<FileProblem>,
    /// The arguments that policies cannot read, or not in full.
    pub notes: Vec<PolicyNote>,
}

/// One policy in force.
#[derive(Serialize, ToSchema)]
pub struct PolicyView {
    /// Its `@id`, or its file and its number in it.
    pub id: String,
    pub file: String,
    /// From 1.
    pub line: usize,
    /// `permit` or `forbid`.
    pub effect: &'static str,
    /// Whether it decides each call by its arguments.
    pub reads_arguments: bool,
    /// The message for callers that it denies.
    pub message: Option<String>,
}

/// An argument that policies cannot read, or not in full.
#[derive(Serialize, ToSchema)]
pub struct PolicyNote {
    pub tool: String,
    pub argument: String,
    pub why: &'static str,
}

/// A call, and the decision that is expected of the policies.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyCase {
    /// The name of the case in the outcome.
    #[serde(default)]
    pub name: Option<String>,
    /// The holder of a key. Either this or `user` is given.
    #[serde(default)]
    pub agent: Option<String>,
    /// The holder of an issuer's token.
    #[serde(default)]
    pub user: Option<String>,
    /// By default the caller itself.
    #[serde(default)]
    pub tenant: Option<String>,
    #[serde(default)]
    pub groups: Vec<String>,
    /// The issuer of a user's token.
    #[serde(default)]
    pub issuer: Option<String>,
    pub tool: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub args: Map<String, Value>,
    pub expect: PolicyExpectation,
    /// The id of the deciding policy.
    #[serde(default)]
    pub policy: Option<String>,
}

/// The expected decision of the policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyExpectation {
    /// The call runs.
    Allow,
    /// The call is refused: `forbidden`.
    Deny,
    /// The tool is hidden from the caller.
    Hidden,
    /// The call runs, and the trail records that it would be refused, with `mode = "audit"`.
    Audit,
}

/// The outcome of one case.
#[derive(Serialize, ToSchema)]
pub struct PolicyCaseResult {
    pub name: String,
    pub passed: bool,
    pub expected: PolicyExpectation,
    pub found: PolicyExpectation,
    /// The policies that decided.
    pub policies: Vec<String>,
    /// What the caller reads.
    pub message: Option<String>,
}

/// Returns the policies in force.
pub fn status(control: &ControlPlane) -> PolicyStatus {
    let config = control.gateway().config();
    let rules = control.policies().rules();
    let view = |rule: &weir_policy::PolicyRule| PolicyView {
        id: rule.id.to_string(),
        file: rule.file.to_string(),
        line: rule.line,
        effect: match rule.is_forbid() {
            true => "forbid",
            false => "permit",
        },
        reads_arguments: rule.reads_arguments(),
        message: rule.message.as_deref().map(str::to_owned),
    };
    let vocabulary = vocabulary(control);
    let notes = vocabulary.tools.iter().flat_map(|(tool, known)| {
        known.arguments.notes.iter().map(|note| PolicyNote {
            tool: tool.to_string(),
            argument: note.path.clone(),
            why: note.why,
        })
    });
    PolicyStatus {
        mode: config.policy.mode,
        default: config.policy.default,
        policies: rules.rules().iter().map(view).collect(),
        problems: control.policies().problems(),
        notes: notes.collect(),
    }
}

/// Returns the Cedar schema of the contracts that are served.
pub fn schema(control: &ControlPlane) -> String {
    vocabulary(control).schema_text()
}

/// Returns the decision of the policies in force on each case.
pub fn test(
    control: &ControlPlane,
    cases: &[PolicyCase],
) -> OperationResult<Vec<PolicyCaseResult>> {
    if cases.len() > CASES_MAX {
        return Err(OperationError::invalid(format!(
            "at most {CASES_MAX} cases are tried at once"
        )));
    }
    cases
        .iter()
        .enumerate()
        .map(|(number, case)| try_case(control, number, case))
        .collect()
}

fn try_case(
    control: &ControlPlane,
    number: usize,
    case: &PolicyCase,
) -> OperationResult<PolicyCaseResult> {
    let name = case
        .name
        .clone()
        .unwrap_or_else(|| format!("case {}", number + 1));
    let fault = |what: String| OperationError::invalid(format!("{name}: {what}"));
    let principal = principal(case).map_err(fault)?;
    let snapshot = control.gateway().snapshot();
    let tool = snapshot
        .catalogue
        .tools()
        .find(|tool| *tool.name == *case.tool)
        .ok_or_else(|| fault(format!("the tool `{}` is not served", case.tool)))?;
    let checks = tool.checks();
    let validator = checks
        .arguments()
        .ok_or_else(|| fault("the arguments of this tool cannot be checked".to_owned()))?;
    let text = Value::Object(case.args.clone()).to_string();
    let arguments = validator
        .validate(&text)
        .map_err(|invalid| fault(format!("the arguments are not valid: {}", invalid.text())))?;
    let (mut found, mut denial) = (PolicyExpectation::Allow, None);
    if let Some(served) = snapshot.catalogue.policies() {
        let verdict = served.judge().tool(&principal, &tool.name, &tool.contract);
        let by_arguments = || verdict.arguments.as_ref()?.decide(&arguments).err();
        (found, denial) = match verdict.denial.clone() {
            Some(denial) => (PolicyExpectation::Hidden, Some(denial)),
            None => match by_arguments() {
                Some(denial) => (PolicyExpectation::Deny, Some(denial)),
                None => (PolicyExpectation::Allow, None),
            },
        };
        if denial.is_some() && served.mode() == PolicyMode::Audit {
            found = PolicyExpectation::Audit;
        }
    }
    let policies: Vec<String> = denial
        .iter()
        .flat_map(|denial| &denial.policies)
        .map(|id| id.to_string())
        .collect();
    let is_named = |id: &String| policies.contains(id);
    Ok(PolicyCaseResult {
        passed: found == case.expect && case.policy.as_ref().is_none_or(is_named),
        name,
        expected: case.expect,
        found,
        message: denial.map(|denial| denial.message.to_string()),
        policies,
    })
}

fn principal(case: &PolicyCase) -> Result<PolicyPrincipal, String> {
    let (kind, name) = match (&case.agent, &case.user) {
        (Some(agent), None) => (PrincipalKind::Agent, agent),
        (None, Some(user)) => (PrincipalKind::User, user),
        _ => return Err("say `agent` or `user`".to_owned()),
    };
    let token = (kind == PrincipalKind::User).then(|| PolicyToken {
        issuer: case.issuer.as_deref().unwrap_or_default().into(),
        subject: name.as_str().into(),
        client: None,
    });
    Ok(PolicyPrincipal {
        kind,
        name: name.as_str().into(),
        tenant: case.tenant.as_deref().unwrap_or(name).into(),
        groups: case
            .groups
            .iter()
            .map(|group| group.as_str().into())
            .collect(),
        token,
    })
}

fn vocabulary(control: &ControlPlane) -> PolicyVocabulary {
    let snapshot = control.gateway().snapshot();
    PolicyVocabulary::new(snapshot.contracts.iter().map(Arc::as_ref))
}
