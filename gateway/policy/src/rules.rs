//! Policies that were read.

use std::{collections::HashMap, str::FromStr, sync::Arc};

use cedar_policy::{Effect, Policy, PolicyId, PolicySet};
use miette::Diagnostic;
use weir_contracts::FileProblem;

use crate::{folder::PolicyFile, reads::PolicyReads};

const POLICIES_MAX: usize = 1000;
const ID_MAX_CHARS: usize = 128;
/// The names of policies that are ours.
const OWN: &str = "weir:";

/// The decision if no policy applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultDecision {
    #[default]
    Permit,
    Deny,
}

/// A policy with its place.
#[derive(Clone, Debug)]
pub struct PolicyRule {
    /// Its `@id`, or its file and its number there.
    pub id: Arc<str>,
    pub file: Arc<str>,
    /// The line where it begins, from 1.
    pub line: usize,
    /// The text of its `@message`.
    pub message: Option<Arc<str>>,
    pub(crate) policy: Policy,
    pub(crate) reads: PolicyReads,
}

/// All policies in force, in the order of their files.
#[derive(Clone, Debug, Default)]
pub struct PolicyRules {
    pub default: DefaultDecision,
    rules: Vec<PolicyRule>,
    texts: HashMap<Arc<str>, Arc<str>>,
}

impl PolicyRule {
    /// Returns `true` for a `forbid`, and `false` for a `permit`.
    pub fn is_forbid(&self) -> bool {
        self.policy.effect() == Effect::Forbid
    }

    /// Returns `true` if it reads arguments, so that each call is decided separately.
    pub fn reads_arguments(&self) -> bool {
        self.reads.context
    }

    /// Makes a problem of the policy.
    pub(crate) fn problem(&self, message: impl Into<String>) -> FileProblem {
        FileProblem::new(&self.file, &*self.id, message).line(Some(self.line))
    }
}

impl PolicyRules {
    /// Reads policies. Every problem is found; if there is any, nothing is in force.
    pub fn read(files: &[PolicyFile], default: DefaultDecision) -> Result<Self, Vec<FileProblem>> {
        let mut problems = Vec::new();
        let mut rules: Vec<PolicyRule> = Vec::new();
        let mut texts = HashMap::new();
        for file in files {
            match read_file(file) {
                Ok(read) => rules.extend(read),
                Err(faults) => problems.extend(faults),
            }
            texts.insert(file.name.as_str().into(), file.text.as_str().into());
        }
        let mut known: HashMap<&str, &PolicyRule> = HashMap::new();
        for rule in &rules {
            if let Some(first) = known.insert(&rule.id, rule) {
                for (own, other) in [(rule, first), (first, rule)] {
                    let message = format!(
                        "another policy has the id `{}`, in {} line {}",
                        own.id, other.file, other.line
                    );
                    problems.push(own.problem(message).hint("give one of them another `@id`"));
                }
            }
            if default == DefaultDecision::Permit && !rule.is_forbid() {
                problems.push(
                    rule.problem("permits what is permitted anyway, since keys decide where no policy forbids")
                        .hint("set `default = \"deny\"` under [policy], so that only what a policy permits is available"),
                );
            }
        }
        if rules.len() > POLICIES_MAX {
            let file = files.last().map_or("", |file| &file.name);
            let message = format!("there are more than {POLICIES_MAX} policies");
            problems.push(FileProblem::new(file, "", message));
        }
        match problems.is_empty() {
            true => Ok(Self {
                default,
                rules,
                texts,
            }),
            false => Err(problems),
        }
    }

    /// Returns the policies, in the order of their files.
    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// Returns `true` if they decide nothing.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.default == DefaultDecision::Permit
    }

    pub(crate) fn rule(&self, id: &PolicyId) -> Option<&PolicyRule> {
        let id: &str = id.as_ref();
        self.rules.iter().find(|rule| *rule.id == *id)
    }

    /// Makes a problem of Cedar's message about a policy, at the place that it names.
    pub(crate) fn diagnosed(&self, id: &PolicyId, fault: &dyn Diagnostic) -> Option<FileProblem> {
        let rule = self.rule(id)?;
        let text = self.texts.get(&rule.file)?;
        let line = line_of(fault, text).unwrap_or(rule.line);
        // It begins with the policy, which the place names already.
        let message = fault.to_string();
        let message = message
            .strip_prefix(&format!("for policy `{}`, ", rule.id))
            .unwrap_or(&message);
        let problem = FileProblem::new(&rule.file, &*rule.id, message).line(Some(line));
        Some(match fault.help() {
            Some(help) => problem.hint(help.to_string()),
            None => problem,
        })
    }
}

fn read_file(file: &PolicyFile) -> Result<Vec<PolicyRule>, Vec<FileProblem>> {
    let set = PolicySet::from_str(&file.text).map_err(|errors| {
        let fault = |error: &cedar_policy::ParseError| {
            let problem = FileProblem::new(&file.name, "", error.to_string())
                .line(line_of(error, &file.text));
            match error.help() {
                Some(help) => problem.hint(help.to_string()),
                None => problem,
            }
        };
        errors.iter().map(fault).collect::<Vec<_>>()
    })?;
    let mut problems = Vec::new();
    if let Some(template) = set.templates().next() {
        let message = format!("{} has a slot, and nothing fills it here", template.id());
        let hint = "write who and what it is for instead of `?principal` and `?resource`";
        problems.push(FileProblem::new(&file.name, "", message).hint(hint));
    }
    // Cedar numbers them in the order of the text.
    let number = |policy: &Policy| {
        let id: &str = policy.id().as_ref();
        id.strip_prefix("policy")
            .and_then(|number| number.parse::<usize>().ok())
            .unwrap_or(usize::MAX)
    };
    let mut policies: Vec<Policy> = set.policies().cloned().collect();
    policies.sort_by_key(number);
    let lines = lines_of_policies(&file.text, &policies);
    let name: Arc<str> = file.name.as_str().into();
    let mut rules = Vec::new();
    for (index, (policy, line)) in policies.into_iter().zip(lines).enumerate() {
        let id: Arc<str> = match policy.annotation("id") {
            Some(id) => id.into(),
            None => format!("{}#{}", short_name(&name), index + 1).into(),
        };
        let is_name = |char: char| !char.is_control();
        if id.is_empty()
            || id.starts_with(OWN)
            || id.chars().count() > ID_MAX_CHARS
            || !id.chars().all(is_name)
        {
            let message = format!(
                "the `@id` of a policy is 1 to {ID_MAX_CHARS} characters, and does not begin with `{OWN}`"
            );
            problems.push(FileProblem::new(&file.name, "", message).line(Some(line)));
            continue;
        }
        rules.push(PolicyRule {
            message: policy
                .annotation("message")
                .filter(|text| !text.is_empty())
                .map(Arc::from),
            reads: PolicyReads::new(&policy),
            policy: policy.new_id(PolicyId::new(&id)),
            id,
            file: name.clone(),
            line,
        });
    }
    match problems.is_empty() {
        true => Ok(rules),
        false => Err(problems),
    }
}

/// Returns the name of a file without its folder.
fn short_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

/// Returns the line where each policy begins. They are in the order of the text.
fn lines_of_policies(text: &str, policies: &[Policy]) -> Vec<usize> {
    let mut from = 0;
    let mut line_of_next = |policy: &Policy| {
        let own = policy.to_cedar().unwrap_or_default();
        let at = text[from..].find(&own).map_or(from, |at| from + at);
        from = (at + own.len()).min(text.len());
        while !text.is_char_boundary(from) {
            from -= 1;
        }
        line_at(text, at)
    };
    policies.iter().map(&mut line_of_next).collect()
}

fn line_of(fault: &dyn Diagnostic, text: &str) -> Option<usize> {
    let at = fault.labels()?.next()?.offset();
    Some(line_at(text, at))
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
