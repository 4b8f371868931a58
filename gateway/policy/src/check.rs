//! Finds problems of policies, and what a change of a contract breaks.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{
    ActionConstraint, EntityUid, PolicyId, PolicySet, ResourceConstraint, Schema, ValidationMode,
    ValidationWarning, Validator,
};
use weir_contracts::{CompiledContract, FileProblem, name};

use crate::{
    rules::{PolicyRule, PolicyRules},
    vocabulary::{CALL, LIST, PolicyTool, PolicyVocabulary, action_name, named},
};

/// Returns the problems of policies for these tools. Each problem is in the file of its policy, and its place is the policy's
/// id.
pub fn check_rules(rules: &PolicyRules, vocabulary: &PolicyVocabulary) -> Vec<FileProblem> {
    if rules.rules().is_empty() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut explained: BTreeSet<&str> = BTreeSet::new();
    for rule in rules.rules() {
        let own: Vec<FileProblem> = unknown_names(rule, vocabulary)
            .chain(unknown_arguments(rule, vocabulary))
            .collect();
        if !own.is_empty() {
            explained.insert(&rule.id);
        }
        problems.extend(own);
    }
    let schema = match vocabulary.schema() {
        Ok(schema) => schema,
        Err(error) => {
            problems.push(FileProblem::new(
                "",
                "",
                format!("no Cedar schema can be made from the contracts: {error}"),
            ));
            return problems;
        }
    };
    problems.extend(mistyped(rules, vocabulary, &schema, &explained));
    let mut seen = Vec::new();
    problems.retain(|problem| {
        let is_new = !seen.contains(problem);
        if is_new {
            seen.push(problem.clone());
        }
        is_new
    });
    problems
}

/// Returns what Cedar finds wrong with policies, the errors first, each in the order of the policies. `explained` are those with
/// names that are not there, which was reported in our words.
fn mistyped(
    rules: &PolicyRules,
    vocabulary: &PolicyVocabulary,
    schema: &Schema,
    explained: &BTreeSet<&str>,
) -> Vec<FileProblem> {
    // Cedar checks each policy with each action of the schema. Policies about the same few actions get a schema with only these.
    let mut groups: BTreeMap<Option<BTreeSet<&str>>, Vec<&PolicyRule>> = BTreeMap::new();
    for rule in rules.rules() {
        let tools = checked_tools(rule, vocabulary);
        groups.entry(tools).or_default().push(rule);
    }
    let text = |id: &PolicyId| -> String { AsRef::<str>::as_ref(id).to_owned() };
    let place = |id: &PolicyId| {
        let id = text(id);
        rules.rules().iter().position(|rule| *rule.id == *id)
    };
    let is_explained = |id: &PolicyId| explained.contains(&*text(id));
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for (tools, group) in groups {
        let schema = match tools.map(|tools| vocabulary.only(&tools).schema()) {
            None => schema.clone(),
            Some(Ok(few)) => few,
            Some(Err(_)) => schema.clone(),
        };
        let policies = group.into_iter().map(|rule| rule.policy.clone());
        let set = PolicySet::from_policies(policies).expect("each policy has an id of its own");
        let result = Validator::new(schema).validate(&set, ValidationMode::Strict);
        for error in result.validation_errors() {
            let id = error.policy_id();
            let is_name = matches!(
                error,
                cedar_policy::ValidationError::UnrecognizedActionId(_)
            );
            if !(is_name && is_explained(id)) {
                errors.push((place(id), rules.diagnosed(id, error)));
            }
        }
        for warning in result.validation_warnings() {
            let id = warning.policy_id();
            let is_serious = match warning {
                ValidationWarning::ImpossiblePolicy(_)
                | ValidationWarning::InvalidActionApplication(_) => !is_explained(id),
                ValidationWarning::BidiCharsInString(_)
                | ValidationWarning::BidiCharsInIdentifier(_) => true,
                _ => false,
            };
            if is_serious {
                warnings.push((place(id), rules.diagnosed(id, warning)));
            }
        }
    }
    errors.sort_by_key(|(place, _)| *place);
    warnings.sort_by_key(|(place, _)| *place);
    let all = errors.into_iter().chain(warnings);
    all.filter_map(|(_, problem)| problem).collect()
}

/// Returns the tools that a policy has to be checked with; `None` if those are all tools. To a policy, tools differ by
/// their names and their arguments: a policy that reads no arguments treats all tools that it does not name the same.
fn checked_tools<'v>(
    rule: &PolicyRule,
    vocabulary: &'v PolicyVocabulary,
) -> Option<BTreeSet<&'v str>> {
    let find = |action: &str| {
        let name = match action.strip_prefix("tool:") {
            Some(name @ (CALL | LIST)) => name,
            _ => action,
        };
        let found = vocabulary.tools.get_key_value(name);
        found.map(|(name, _)| &**name)
    };
    let scope = match rule.policy.action_constraint() {
        ActionConstraint::Any => None,
        ActionConstraint::Eq(one) => Some(vec![one]),
        ActionConstraint::In(several) => Some(several),
    };
    let is_call = |uid: &EntityUid| named(uid, "Action") == Some(CALL);
    let scope = scope.filter(|actions| !actions.iter().any(is_call));
    if scope.is_none() && rule.reads.context {
        return None;
    }
    let literals = rule.policy.entity_literals();
    let actions = literals.iter().chain(scope.iter().flatten());
    let mut tools: BTreeSet<&str> = actions
        .filter_map(|uid| find(named(uid, "Action")?))
        .collect();
    if scope.is_none() {
        // One that the policy does not name is like all the others.
        let mut all = vocabulary.tools.keys().map(|name| &**name);
        let other = all.find(|name| !tools.contains(name));
        tools.extend(other);
    }
    Some(tools)
}

/// Returns the new problems of policies once `contract` replaces the one of its name.
pub fn broken_by(
    rules: &PolicyRules,
    before: &PolicyVocabulary,
    contract: &CompiledContract,
) -> Vec<FileProblem> {
    if rules.rules().is_empty() {
        return Vec::new();
    }
    let after = before.with(contract);
    let known = check_rules(rules, before);
    let mut problems: Vec<FileProblem> = Vec::new();
    for rule in rules.rules() {
        problems.extend(arguments_taken_away(rule, before, &after, &contract.name));
    }
    let of_rule = |problem: &FileProblem| {
        problems
            .iter()
            .any(|own| own.place == problem.place && own.file == problem.file)
    };
    let new: Vec<FileProblem> = check_rules(rules, &after)
        .into_iter()
        .filter(|problem| !known.contains(problem) && !of_rule(problem))
        .collect();
    problems.extend(new);
    problems
}

/// Returns the tools that the scope of a policy may be about.
fn tools_in_scope<'v>(
    rule: &PolicyRule,
    vocabulary: &'v PolicyVocabulary,
) -> Vec<(&'v str, &'v PolicyTool)> {
    let actions = match rule.policy.action_constraint() {
        ActionConstraint::Any => None,
        ActionConstraint::Eq(one) => Some(vec![one]),
        ActionConstraint::In(several) => Some(several),
    };
    let is_called = |tool: &str| match &actions {
        None => true,
        Some(actions) => actions
            .iter()
            .filter_map(|action| named(action, "Action"))
            .any(|action| action == CALL || action == action_name(tool)),
    };
    let resource = rule.policy.resource_constraint();
    let is_meant = |tool: &str, contract: &str| match &resource {
        ResourceConstraint::Any | ResourceConstraint::Is(_) => true,
        ResourceConstraint::Eq(one) => named(one, "Tool") == Some(tool),
        ResourceConstraint::In(all) | ResourceConstraint::IsIn(_, all) => {
            named(all, "Contract") == Some(contract) || named(all, "Tool") == Some(tool)
        }
    };
    let tools = vocabulary.tools.iter().map(|(name, tool)| (&**name, tool));
    tools
        .filter(|(name, tool)| is_called(name) && is_meant(name, &tool.contract))
        .collect()
}

/// Returns the names of tools and contracts that are not there: a policy about them does nothing.
fn unknown_names<'r>(
    rule: &'r PolicyRule,
    vocabulary: &'r PolicyVocabulary,
) -> impl Iterator<Item = FileProblem> + 'r {
    let literals: BTreeSet<_> = rule.policy.entity_literals().into_iter().collect();
    let actions = match rule.policy.action_constraint() {
        ActionConstraint::Any => Vec::new(),
        ActionConstraint::Eq(one) => vec![one],
        ActionConstraint::In(several) => several,
    };
    let literals: BTreeSet<_> = literals.into_iter().chain(actions).collect();
    literals.into_iter().filter_map(move |uid| {
        let tools = || vocabulary.tools.keys().map(|name| &**name);
        let is_action = |action: &str| {
            matches!(action, CALL | LIST) || tools().any(|tool| action_name(tool) == action)
        };
        let (what, wanted, near) = if let Some(tool) = named(&uid, "Tool") {
            let is_there = vocabulary.tools.contains_key(tool);
            (!is_there).then(|| ("tool", tool, name::nearest(tool, tools())))?
        } else if let Some(action) = named(&uid, "Action") {
            (!is_action(action)).then(|| ("tool", action, name::nearest(action, tools())))?
        } else if let Some(contract) = named(&uid, "Contract") {
            let contracts = vocabulary.contracts.keys().map(|name| &**name);
            let is_there = vocabulary.contracts.contains_key(contract);
            (!is_there).then(|| ("contract", contract, name::nearest(contract, contracts)))?
        } else {
            return None;
        };
        let problem = rule.problem(format!("names the {what} `{wanted}`, which is not served"));
        Some(match near {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem,
        })
    })
}

/// Returns the arguments that none of the tools has that a policy is about.
fn unknown_arguments<'r>(
    rule: &'r PolicyRule,
    vocabulary: &'r PolicyVocabulary,
) -> impl Iterator<Item = FileProblem> + 'r {
    let tools = tools_in_scope(rule, vocabulary);
    let is_there = {
        let tools = tools.clone();
        move |path: &[String]| {
            tools.is_empty()
                || tools
                    .iter()
                    .any(|(_, tool)| tool.arguments.at(path).is_some())
        }
    };
    // An argument of one tool that policies cannot read is absent to them, whatever the others have.
    let is_unreadable = {
        let tools = tools.clone();
        move |path: &[String]| {
            let shown = path.join(".");
            tools.iter().any(|(_, tool)| {
                let mut notes = tool.arguments.notes.iter();
                tool.arguments.at(path).is_none() && notes.any(|note| note.path == shown)
            })
        }
    };
    let paths = rule.reads.paths.iter();
    let missing = paths.filter(move |path| !is_there(path) || is_unreadable(path));
    missing.map(move |path| {
        let shown = path.join(".");
        let notes = tools.iter().flat_map(|(_, tool)| &tool.arguments.notes);
        let mut notes = notes.filter(|note| note.path == shown);
        if let Some(note) = notes.next() {
            return rule.problem(format!(
                "reads `context.args.{shown}`, which policies cannot read: {}",
                note.why
            ));
        }
        let problem = rule.problem(format!(
            "reads `context.args.{shown}`, and no tool that it is about has such an argument"
        ));
        let names: BTreeSet<&str> = tools
            .iter()
            .flat_map(|(_, tool)| tool.arguments.members.keys().map(String::as_str))
            .collect();
        match name::nearest(&path[0], names) {
            Some(near) if near != path[0] => problem.hint(format!("did you mean `{near}`?")),
            _ => problem,
        }
    })
}

/// Returns the arguments of the contract's tools that a policy reads, and that are gone after the change. A policy that first
/// tests whether they are there would continue, and decide nothing.
fn arguments_taken_away(
    rule: &PolicyRule,
    before: &PolicyVocabulary,
    after: &PolicyVocabulary,
    contract: &str,
) -> Vec<FileProblem> {
    let mut problems = Vec::new();
    for (name, tool) in tools_in_scope(rule, before) {
        if *tool.contract != *contract {
            continue;
        }
        let Some(new) = after.tools.get(name) else {
            continue;
        };
        for path in &rule.reads.paths {
            let shown = path.join(".");
            let (Some(old), new) = (tool.arguments.at(path), new.arguments.at(path)) else {
                continue;
            };
            let change = match new {
                None => "the change takes away",
                Some(new) if new != old => "the change gives another type",
                Some(_) => continue,
            };
            problems.push(
                rule.problem(format!(
                    "reads `context.args.{shown}` of the tool `{name}`, which {change}"
                ))
                .hint("write the policies for the changed contract too: files that fit it come into force together with it"),
            );
        }
    }
    problems
}
