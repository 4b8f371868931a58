//! Decides: once for each caller and tool what their names settle, and for each call what its arguments settle.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, LazyLock},
};

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityUid, Policy, PolicyId, PolicySet,
    Request, Response, RestrictedExpression,
};
use serde_json::{Map, Value};

use crate::{
    argument::{ToolArguments, UnreadableArgument},
    principal::PolicyPrincipal,
    rules::{DefaultDecision, PolicyRules},
    vocabulary::{CALL, LIST, PolicyTool, PolicyVocabulary, ToolHints, action_name, uid},
};

static AUTHORIZER: LazyLock<Authorizer> = LazyLock::new(Authorizer::new);

/// The policy that permits everything, for when none has to permit.
const BASE: &str = "weir:default";
/// The policies that a denial names.
const NAMED_MAX: usize = 16;

const NOT_THESE: &str = "A policy does not allow this call with these arguments.";
const NONE_ALLOWS: &str = "No policy allows this call with these arguments.";
const UNDECIDED: &str = "A policy cannot be decided for this call, so it is not allowed.";

/// The policies over the tools of one set of contracts.
pub struct PolicyJudge {
    rules: Arc<PolicyRules>,
    vocabulary: PolicyVocabulary,
    /// Decides without arguments: the policies that read none, and the scopes of those that permit by arguments.
    by_scope: PolicySet,
    /// The scopes of the policies that forbid by arguments.
    scope_of_forbids: PolicySet,
}

/// Callers of one class have the same verdicts: the same policies apply to them, and none of these looks at details.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrincipalClass {
    /// The policies that are about them, by number.
    policies: Vec<u32>,
    /// The caller itself, if one of the policies looks at details.
    alone: Option<PolicyPrincipal>,
}

/// Why something is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDenial {
    /// The ids of the policies that deny it; empty if no policy permits it.
    pub policies: Vec<Arc<str>>,
    /// What the caller reads: the `@message` of the first that has one.
    pub message: Arc<str>,
}

/// The decisions about one caller and one tool before any call.
#[derive(Clone, Debug)]
pub struct ToolVerdict {
    /// Why the tool is not there for the caller.
    pub denial: Option<PolicyDenial>,
    /// The policies that decide each call by its arguments, if any.
    pub arguments: Option<Arc<ArgumentPolicies>>,
}

/// The policies that decide the calls of one caller and one tool by their arguments.
#[derive(Debug)]
pub struct ArgumentPolicies {
    rules: Arc<PolicyRules>,
    policies: PolicySet,
    arguments: Arc<ToolArguments>,
    entities: Entities,
    who: [EntityUid; 3],
    /// The arguments that any of the policies reads.
    read: BTreeSet<String>,
    all: bool,
}

impl PolicyJudge {
    /// Creates a judge. `vocabulary` lists what exists, so that a policy can name it.
    pub fn new(rules: Arc<PolicyRules>, vocabulary: PolicyVocabulary) -> Self {
        let (mut by_scope, mut forbids) = (Vec::new(), Vec::new());
        for rule in rules.rules() {
            match (rule.reads_arguments(), rule.is_forbid()) {
                (false, _) => by_scope.push(rule.policy.clone()),
                (true, false) => by_scope.push(scope_alone(&rule.policy)),
                (true, true) => forbids.push(scope_alone(&rule.policy)),
            }
        }
        if rules.default == DefaultDecision::Permit {
            by_scope.push(base());
        }
        Self {
            rules,
            vocabulary,
            by_scope: set(by_scope),
            scope_of_forbids: set(forbids),
        }
    }

    /// Returns the policies that it decides by.
    pub fn rules(&self) -> &Arc<PolicyRules> {
        &self.rules
    }

    /// Returns the names that policies can use.
    pub fn vocabulary(&self) -> &PolicyVocabulary {
        &self.vocabulary
    }

    /// Returns the class of a caller.
    pub fn class(&self, principal: &PolicyPrincipal) -> PrincipalClass {
        let (mut policies, mut looks_closer) = (Vec::new(), false);
        for (number, rule) in (0..).zip(self.rules.rules()) {
            if principal.matches(&rule.policy.principal_constraint()) {
                policies.push(number);
                looks_closer |= rule.reads.principal;
            }
        }
        PrincipalClass {
            policies,
            alone: looks_closer.then(|| principal.clone()),
        }
    }

    /// Decides whether a tool is available to a caller, and by which policies its calls are decided.
    pub fn tool(&self, principal: &PolicyPrincipal, name: &str, contract: &str) -> ToolVerdict {
        let known = self.vocabulary.tools.get(name);
        let known = known.filter(|tool| *tool.contract == *contract).cloned();
        // Of two contracts with a tool of the same name, the second is served only under its own contract.
        let tool = known.unwrap_or_else(|| PolicyTool {
            contract: contract.into(),
            hints: ToolHints {
                read_only: false,
                destructive: true,
                idempotent: false,
                open_world: true,
            },
            arguments: Arc::default(),
        });
        let [who, call, what] = [
            principal.uid(),
            uid("Action", &action_name(name)),
            uid("Tool", name),
        ];
        let entities = entities(principal, name, &tool);
        let ask = |action: &EntityUid, set: &PolicySet| {
            decide([&who, action, &what], Context::empty(), set, &entities)
        };
        let called = ask(&call, &self.by_scope);
        let denial = self
            .denial(&called, true)
            .or_else(|| self.denial(&ask(&uid("Action", LIST), &self.by_scope), false));
        let asked = ask(&call, &self.scope_of_forbids);
        let forbids = asked.diagnostics().reason();
        let permits: Vec<&PolicyId> = called.diagnostics().reason().collect();
        // What is permitted by names alone needs no arguments.
        let reads = |id: &&PolicyId| {
            self.rules
                .rule(id)
                .is_some_and(|rule| rule.reads_arguments())
        };
        let conditional = match permits.iter().all(reads) && denial.is_none() {
            true => permits,
            false => Vec::new(),
        };
        let is_permitted = conditional.is_empty();
        let ids: BTreeSet<&PolicyId> = forbids.chain(conditional).collect();
        if ids.is_empty() {
            return ToolVerdict {
                denial,
                arguments: None,
            };
        }
        let rules = ids.iter().filter_map(|id| self.rules.rule(id));
        let (mut policies, mut read, mut all) = (Vec::new(), BTreeSet::new(), false);
        for rule in rules {
            policies.push(rule.policy.clone());
            all |= rule.reads.all_arguments;
            read.extend(
                rule.reads
                    .paths
                    .iter()
                    .filter_map(|path| path.first().cloned()),
            );
        }
        if is_permitted {
            policies.push(base());
        }
        ToolVerdict {
            denial,
            arguments: Some(Arc::new(ArgumentPolicies {
                rules: self.rules.clone(),
                policies: set(policies),
                arguments: tool.arguments,
                entities,
                who: [who, call, what],
                read,
                all,
            })),
        }
    }

    /// Decides whether the prompts and resources of a contract are available to a caller.
    pub fn contract(&self, principal: &PolicyPrincipal, contract: &str) -> Option<PolicyDenial> {
        let all = [
            principal.entity(),
            Entity::new_no_attrs(uid("Contract", contract), HashSet::new()),
            Entity::new_no_attrs(uid("Action", LIST), HashSet::new()),
        ];
        let entities = Entities::from_entities(all, None).expect("they are distinct");
        let who = [
            &principal.uid(),
            &uid("Action", LIST),
            &uid("Contract", contract),
        ];
        let response = decide(who, Context::empty(), &self.by_scope, &entities);
        self.denial(&response, true)
    }

    /// Reads a decision. Without `is_exclusive`, what no policy permits is not denied for that.
    fn denial(&self, response: &Response, is_exclusive: bool) -> Option<PolicyDenial> {
        let denial = denial(&self.rules, response)?;
        (is_exclusive || !denial.policies.is_empty()).then_some(denial)
    }
}

impl ArgumentPolicies {
    /// Decides one call. The arguments are valid ones of the tool.
    pub fn decide(&self, arguments: &Map<String, Value>) -> Result<(), PolicyDenial> {
        let wanted = |name: &str| self.all || self.read.contains(name);
        let refused = |message: String| PolicyDenial {
            policies: self
                .policies
                .policies()
                .filter_map(|policy| Some(self.rules.rule(policy.id())?.id.clone()))
                .take(NAMED_MAX)
                .collect(),
            message: message.into(),
        };
        let values = self.arguments.values(arguments, wanted);
        let values = values.map_err(|fault: UnreadableArgument| refused(sentence(&fault)))?;
        let context = Context::from_pairs([("args".to_owned(), values)])
            .map_err(|_| refused(UNDECIDED.to_owned()))?;
        let [who, action, what] = &self.who;
        let response = decide([who, action, what], context, &self.policies, &self.entities);
        match denial(&self.rules, &response) {
            None => Ok(()),
            Some(denial) if denial.policies.is_empty() => Err(self.unmet(denial)),
            Some(denial) => Err(denial),
        }
    }

    /// Names the policies that would permit the call with other arguments.
    fn unmet(&self, denial: PolicyDenial) -> PolicyDenial {
        let permits = self.policies.policies();
        let permits = permits.filter_map(|policy| self.rules.rule(policy.id()));
        let permits: Vec<_> = permits.filter(|rule| !rule.is_forbid()).collect();
        PolicyDenial {
            policies: permits
                .iter()
                .map(|rule| rule.id.clone())
                .take(NAMED_MAX)
                .collect(),
            message: permits
                .iter()
                .find_map(|rule| rule.message.clone())
                .unwrap_or(denial.message),
        }
    }
}

/// Reads a decision. A policy that cannot be decided denies, regardless of the others.
fn denial(rules: &PolicyRules, response: &Response) -> Option<PolicyDenial> {
    let faulty = |error: &cedar_policy::AuthorizationError| match error {
        cedar_policy::AuthorizationError::PolicyEvaluationError(error) => error.policy_id().clone(),
    };
    let errors: BTreeSet<PolicyId> = response.diagnostics().errors().map(faulty).collect();
    let is_allowed = response.decision() == Decision::Allow;
    if is_allowed && errors.is_empty() {
        return None;
    }
    let reasons: BTreeSet<PolicyId> = match is_allowed {
        true => errors.clone(),
        false => response
            .diagnostics()
            .reason()
            .cloned()
            .chain(errors.clone())
            .collect(),
    };
    let named: BTreeMap<&str, _> = reasons
        .iter()
        .filter_map(|id| rules.rule(id))
        .map(|rule| (&*rule.id, rule))
        .collect();
    let message = named.values().find_map(|rule| rule.message.clone());
    let message = message.unwrap_or_else(|| match (named.is_empty(), is_allowed) {
        (_, true) => UNDECIDED.into(),
        (true, false) => NONE_ALLOWS.into(),
        (false, false) => NOT_THESE.into(),
    });
    Some(PolicyDenial {
        policies: named
            .values()
            .map(|rule| rule.id.clone())
            .take(NAMED_MAX)
            .collect(),
        message,
    })
}

fn decide(
    [principal, action, resource]: [&EntityUid; 3],
    context: Context,
    set: &PolicySet,
    entities: &Entities,
) -> Response {
    let request = Request::new(
        principal.clone(),
        action.clone(),
        resource.clone(),
        context,
        None,
    );
    let request = request.expect("without a schema, every request is one");
    AUTHORIZER.is_authorized(&request, set, entities)
}

fn entities(principal: &PolicyPrincipal, name: &str, tool: &PolicyTool) -> Entities {
    let flag = RestrictedExpression::new_bool;
    let hints = [
        ("read_only", tool.hints.read_only),
        ("destructive", tool.hints.destructive),
        ("idempotent", tool.hints.idempotent),
        ("open_world", tool.hints.open_world),
    ];
    let hints = hints.map(|(name, value)| (name.to_owned(), flag(value)));
    let contract = uid("Contract", &tool.contract);
    let own = Entity::new(
        uid("Tool", name),
        hints.into_iter().collect(),
        HashSet::from([contract]),
    );
    let action = uid("Action", &action_name(name));
    let group = HashSet::from([uid("Action", CALL)]);
    let all = [
        principal.entity(),
        own.expect("plain values"),
        Entity::new_no_attrs(action, group),
    ];
    Entities::from_entities(all, None).expect("they are distinct")
}

/// Returns a policy without its conditions: only its principals and its tools.
fn scope_alone(policy: &Policy) -> Policy {
    let bare = policy.to_json().ok().and_then(|mut json| {
        json["conditions"] = Value::Array(Vec::new());
        Policy::from_json(Some(policy.id().clone()), json).ok()
    });
    bare.expect("a policy stays one without its conditions")
}

fn base() -> Policy {
    let text = "permit(principal, action, resource);";
    Policy::parse(Some(PolicyId::new(BASE)), text).expect("a policy")
}

fn set(policies: Vec<Policy>) -> PolicySet {
    PolicySet::from_policies(policies).expect("each policy has an id of its own")
}

/// Writes a fault as a sentence.
fn sentence(fault: &UnreadableArgument) -> String {
    let text = fault.to_string();
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    format!("{}{}.", first.collect::<String>(), chars.as_str())
}
