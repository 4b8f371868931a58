//! Turns the lists of a server into a contract that can be published.

use std::{collections::BTreeMap, path::Path};

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use weir_contracts::{
    CompiledContract, FileProblem, name,
    offer::{self, ServerLists},
    upstream::{self as offered, CompiledUpstream, UpstreamOverlay},
};
use weir_upstream::{UpstreamConfig, UpstreamLists, UpstreamResources};

use crate::control::sources::folder;

/// A server's lists, as they can be published.
pub struct CompiledOffer {
    pub compiled: CompiledUpstream,
    /// The text that it was compiled from.
    pub source: String,
    /// The server's own name and version.
    pub server: String,
    pub notes: Vec<String>,
    pub overlay: Option<UpstreamOverlay>,
    /// The digest of its list of resources.
    pub resources: [u8; 32],
}

/// Makes a contract from the lists of a server. `base` is the folder to which the overlay's path is relative. `taken` maps the
/// names of other contracts' tools to these contracts.
pub fn compile(
    name: &str,
    config: &UpstreamConfig,
    base: &Path,
    listed: UpstreamLists,
    about: &RawValue,
    taken: &BTreeMap<String, String>,
) -> Result<CompiledOffer, Vec<FileProblem>> {
    let overlay = match &config.overlay {
        None => None,
        Some(file) => {
            let path = base.join(file);
            let text = folder::read(&path).map_err(|problem| vec![problem])?;
            Some(UpstreamOverlay::read(&path.display().to_string(), &text)?)
        }
    };
    compile_with(name, config, overlay, listed, about, taken)
}

/// Makes a contract from the lists of a server, with an overlay that was already read.
pub fn compile_with(
    name: &str,
    config: &UpstreamConfig,
    overlay: Option<UpstreamOverlay>,
    listed: UpstreamLists,
    about: &RawValue,
    taken: &BTreeMap<String, String>,
) -> Result<CompiledOffer, Vec<FileProblem>> {
    let (all, mut notes) = server_lists(listed, about);
    let server = all
        .info
        .as_ref()
        .map(|info| info.get().to_owned())
        .unwrap_or_default();
    // An unpublished item is not compared: a resource that comes and goes changes no contract.
    let has_resources = all.resources.is_some();
    let mut resources = Sha256::new();
    for resource in all.resources.iter().flatten() {
        resources.update(resource.get());
        resources.update([0]);
    }
    let pinned = ServerLists {
        tools: all.tools,
        prompts: all.prompts,
        templates: all.templates.or_else(|| has_resources.then(Vec::new)),
        resources: all
            .resources
            .filter(|_| config.resources == UpstreamResources::Pinned),
        instructions: all.instructions,
        ..ServerLists::default()
    };
    let composed = offer::compose(name, &pinned);
    let source = composed.document.pinned();
    let with = offered::UpstreamOptions {
        name,
        contract: config.contract(name),
        prefix: config.prefix.as_deref(),
        overlay: overlay.as_ref(),
        taken: Some(taken),
        resources: match config.resources {
            UpstreamResources::Live => offered::ResourceMode::Live,
            UpstreamResources::Pinned => offered::ResourceMode::Pinned,
        },
        ..offered::UpstreamOptions::default()
    };
    let compiled = offered::compile(&with, &source)?;
    notes.extend(composed.problems.iter().map(ToString::to_string));
    notes.extend(compiled.notes.iter().map(ToString::to_string));
    notes.extend(named_twice(
        config.prefix.as_deref().unwrap_or(name),
        &compiled.contract,
    ));
    Ok(CompiledOffer {
        compiled,
        source,
        server,
        notes,
        overlay,
        resources: resources.finalize().into(),
    })
}

/// Notes that tools have the prefix twice, since the server's own names already have it.
fn named_twice(prefix: &str, contract: &CompiledContract) -> Option<String> {
    let own = name::prefixed(prefix, "");
    let twice = name::prefixed(prefix, &own);
    let named = contract
        .tools
        .iter()
        .filter(|tool| tool.name.starts_with(&twice))
        .count();
    (named > 0 && !prefix.is_empty()).then(|| {
        format!("the server itself begins the names of {named} tools with `{own}`; with `prefix = \"\"` they keep them as they are")
    })
}

/// Returns a server's lists in the form from which documents are composed, and notes on how it lists.
pub fn server_lists(listed: UpstreamLists, about: &RawValue) -> (ServerLists, Vec<String>) {
    let mut lists = ServerLists {
        tools: listed.tools,
        resources: listed.resources,
        templates: listed.templates,
        prompts: listed.prompts,
        ..ServerLists::default()
    };
    lists.server_result(about);
    (lists, listed.notes)
}
