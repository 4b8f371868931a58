//! Form and shape become a contract: the table of field types, verbs and refusals.
//!
//! A pure function of the file and the described shapes: same input, same bytes; all problems at once.

mod approval;
mod binding;
mod collection;
mod fixed;
mod inline;
mod listing;
mod order;
mod property;
mod relation;
mod result;
mod summary;
mod timezone;
mod tool;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use crate::{
    contract::{
        ArtifactFormat, CompiledContract, ContractCollection, ContractTool, ContractVersion,
    },
    form::{ContractSource, FileProblems},
    name,
    problem::FileProblem,
    shape::{CollectionShape, SummarySupport},
};

pub(crate) use binding::makes_sense;
pub(crate) use property::agrees;
pub(crate) use relation::add_outputs as add_related;
pub(crate) use result::schema as output_schema;
pub(crate) use result::{ERROR_MEMBERS, error_members};
pub use result::{count_field, error_arm, result_arm};

/// Compiles one file. `shapes` has the described shape of each collection by name. The same input gives the same
/// bytes, and all problems are reported together.
pub fn compile(
    source: &ContractSource,
    shapes: &BTreeMap<String, CollectionShape>,
) -> Result<CompiledContract, Vec<FileProblem>> {
    compile_what(source, shapes, &[])
}

/// Compiles what can be compiled if some shapes are not known, and returns the names of the collections without one. Their
/// tools have names, words and inputs, but no results and no bindings: this is for judging them, and is never served.
pub fn compile_known(
    source: &ContractSource,
    shapes: &BTreeMap<String, CollectionShape>,
) -> Result<(CompiledContract, Vec<String>), Vec<FileProblem>> {
    let collections = source.collections.iter().map(|entry| entry.name.clone());
    let unknown: Vec<String> = collections
        .filter(|name| !shapes.contains_key(name))
        .collect();
    compile_what(source, shapes, &unknown).map(|contract| (contract, unknown))
}

fn compile_what(
    source: &ContractSource,
    shapes: &BTreeMap<String, CollectionShape>,
    left_out: &[String],
) -> Result<CompiledContract, Vec<FileProblem>> {
    let mut problems = source.problems.clone();
    check_names(source, &mut problems);
    let mut collections = BTreeMap::new();
    for entry in &source.collections {
        let compiled = match left_out.contains(&entry.name) {
            true => None,
            false => collection::compile(entry, shapes.get(&entry.name), &mut problems),
        };
        collections.insert(entry.name.as_str(), compiled);
    }
    let relations = relation::compile(source, &collections, &mut problems);
    let mut names = HashSet::new();
    let mut published = HashSet::new();
    let mut tools = Vec::new();
    for form in &source.tools {
        if form.resource && !published.insert(form.collection.as_deref()) {
            let message = "the records of this collection are resources by another lookup already";
            let hint = "keep `resource` in one lookup of the collection";
            problems.add_hint(format!("{}/resource", form.place), message, hint);
        }
        let tool = tool::compile(source, form, &collections, &relations, &mut problems);
        if !form.tool.is_empty() && !names.insert(tool.name.clone()) {
            let message = format!("the tool name {} occurs twice", name::quoted(&tool.name));
            let hint = "give one of the two another name";
            problems.add_hint(format!("{}/tool", form.place), message, hint);
        }
        tools.push(Arc::new(tool));
    }
    // The collections stand in the author's order, which the map above has lost.
    let mut collections: Vec<ContractCollection> = source
        .collections
        .iter()
        .filter_map(|entry| collections.get(entry.name.as_str())?.clone())
        .collect();
    for collection in &mut collections {
        collection.shape.capabilities.summaries = needed_summaries(collection, &tools);
    }
    let contract = CompiledContract {
        format: format(&collections, &tools),
        name: source.contract.clone().unwrap_or_default(),
        title: source.title.clone(),
        description: source.description.clone(),
        instructions: source.instructions.clone(),
        version: ContractVersion::FIRST,
        definitions: None,
        maker: None,
        collections,
        tools,
        prompts: Vec::new(),
        resources: Vec::new(),
        templates: Vec::new(),
        live_resources: false,
    };
    problems.finish(contract)
}

/// Returns the oldest format whose programs can read such a contract.
fn format(collections: &[ContractCollection], tools: &[Arc<ContractTool>]) -> ArtifactFormat {
    let summarizes = tools.iter().any(|tool| {
        tool.collection()
            .is_some_and(|target| target.needed_summaries() != SummarySupport::None)
    });
    let has_cell_rules = || {
        collections
            .iter()
            .any(|collection| collection.shape.has_cell_rules())
    };
    let has_list_choices = || {
        tools.iter().any(|tool| {
            tool.collection()
                .is_some_and(|target| target.binding.list.is_some())
        })
    };
    let has_statements = || collections.iter().any(ContractCollection::has_statement);
    let includes = tools.iter().any(|tool| {
        tool.collection()
            .is_some_and(|target| !target.binding.include.is_empty())
    });
    let has_units = || {
        collections
            .iter()
            .any(|collection| collection.shape.has_units())
    };
    let has_spellings = || {
        let targets = tools.iter().filter_map(|tool| tool.collection());
        let mut inputs = targets.flat_map(|target| &target.binding.inputs);
        inputs.any(|input| !input.spellings.is_empty())
    };
    match summarizes {
        _ if has_spellings() => ArtifactFormat::SPELLINGS,
        _ if tools.iter().any(|tool| tool.approval.is_some()) => ArtifactFormat::APPROVALS,
        _ if has_units() => ArtifactFormat::UNITS,
        _ if includes => ArtifactFormat::RELATIONS,
        _ if has_statements() => ArtifactFormat::STATEMENTS,
        _ if has_list_choices() => ArtifactFormat::LIST_CHOICES,
        true => ArtifactFormat::SUMMARIES,
        false if has_cell_rules() => ArtifactFormat::CELLS,
        false => ArtifactFormat::FIRST,
    }
}

/// Returns the summaries that the tools of a collection need, which is all that is recorded of its source's abilities.
fn needed_summaries(
    collection: &ContractCollection,
    tools: &[Arc<ContractTool>],
) -> SummarySupport {
    let targets = tools.iter().filter_map(|tool| tool.collection());
    targets
        .filter(|target| target.binding.collection == collection.name)
        .map(|target| target.needed_summaries())
        .max()
        .unwrap_or_default()
}

fn check_names(source: &ContractSource, problems: &mut FileProblems) {
    // If there are problems, an empty name is one that could not be read.
    let name = source
        .contract
        .as_deref()
        .filter(|name| !name.is_empty() || source.problems.is_empty());
    if let Some(Err(message)) = name.map(name::check_contract) {
        problems.add_hint("/contract", message, "write one such as `support-desk`");
    }
    if let Some(prefix) = &source.prefix
        && !name::is_tool(prefix)
    {
        problems.add_hint(
            "/prefix",
            "the prefix is not made of A-Z, a-z, 0-9, '_' and '-'",
            "write one such as `sup`, or leave it out",
        );
    }
}
