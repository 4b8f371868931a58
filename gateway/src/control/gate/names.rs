//! The names that only one live contract may define.

use std::collections::{BTreeMap, BTreeSet};

use weir_contracts::{CompiledContract, FileProblem};

/// Returns a problem for each name of the contract that another one defines already.
pub(super) fn taken_names<'a>(
    contract: &'a CompiledContract,
    others: impl Iterator<Item = &'a CompiledContract>,
) -> Vec<FileProblem> {
    let own: BTreeSet<(&str, &str)> = names(contract).collect();
    let mut taken: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for other in others.filter(|other| other.name != contract.name) {
        taken.extend(
            names(other)
                .filter(|name| own.contains(name))
                .map(|name| (name, other.name.as_str())),
        );
    }
    let problem = |((kind, name), owner): ((&str, &str), &str)| {
        let message = format!("the {kind} `{name}` is defined by the contract `{owner}` already");
        let hint = match kind {
            "resource" => "give the resource of one plugin another URI",
            _ => "give one of the contracts a `prefix:`",
        };
        FileProblem::new("", format!("/{kind}s"), message).hint(hint)
    };
    taken.into_iter().map(problem).collect()
}

/// Returns the names that only one contract may define: the kind, and the name or URI for clients.
fn names(contract: &CompiledContract) -> impl Iterator<Item = (&str, &str)> {
    let uris = contract.uri_scope().is_none().then_some(contract);
    let resources = uris
        .into_iter()
        .flat_map(|contract| contract.resources.iter().map(|it| it.uri.as_str()));
    let templates = uris
        .into_iter()
        .flat_map(|contract| contract.templates.iter().map(|it| it.uri_template.as_str()));
    let tools = contract
        .tools
        .iter()
        .map(|tool| ("tool", tool.name.as_str()));
    let prompts = contract
        .prompts
        .iter()
        .map(|prompt| ("prompt", prompt.name.as_str()));
    tools
        .chain(prompts)
        .chain(resources.chain(templates).map(|uri| ("resource", uri)))
}
