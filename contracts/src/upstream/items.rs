//! Prompts, resources and resource templates of an upstream server, or of a plugin.

use std::{collections::BTreeSet, net::Ipv6Addr, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    RefusedEntry, UpstreamCompiler, UpstreamOptions, offered,
    offered::{ParsedEntry, ParsedOffer},
    plain_name,
};
use crate::{
    FileProblem,
    contract::{ContractPrompt, ContractResource, PromptArgument, ResourceTemplate},
    lint::{self, LintLevel},
    listed, name,
    offer::{DESCRIPTION_MAX, OfferKind, TITLE_MAX},
};

/// Characters of a URI.
const URI_MAX: usize = 8_192;

/// Whether the list of resources is part of the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceMode {
    /// The resources change on their own, as files do: the server is asked for the list each time.
    #[default]
    Live,
    /// The list is part of the approved version.
    Pinned,
}

/// The resources of a server whose list is not pinned.
pub struct LiveResourceList {
    pub resources: Vec<Arc<ContractResource>>,
    /// Why some resources that the server listed are missing.
    pub left_out: Vec<FileProblem>,
}

/// Compiles the resources of a document as they may be listed, for servers whose list is not pinned.
pub fn resources(
    upstream: &UpstreamOptions<'_>,
    document: &str,
) -> Result<LiveResourceList, Vec<FileProblem>> {
    let offer = offered::read(upstream.name, document).map_err(|problem| vec![problem])?;
    let mut compiler = UpstreamCompiler::new(upstream);
    let resources = compiler.resources(&offer);
    Ok(LiveResourceList {
        resources,
        left_out: compiler.left_out,
    })
}

/// Everything in an offer that is not a tool.
pub(crate) struct CompiledEntries {
    pub(crate) prompts: Vec<Arc<ContractPrompt>>,
    pub(crate) resources: Vec<Arc<ContractResource>>,
    pub(crate) templates: Vec<Arc<ResourceTemplate>>,
    pub(crate) left_out: Vec<FileProblem>,
}

/// Returns the items of a document. The caller judges the others.
pub(crate) fn items(
    upstream: &UpstreamOptions<'_>,
    document: &str,
) -> Result<CompiledEntries, FileProblem> {
    let offer = offered::read(upstream.name, document)?;
    let mut compiler = UpstreamCompiler::new(upstream);
    let (prompts, resources) = (compiler.prompts(&offer), compiler.resources(&offer));
    Ok(CompiledEntries {
        prompts,
        resources,
        templates: compiler.templates(&offer),
        left_out: compiler.left_out,
    })
}

impl UpstreamCompiler<'_> {
    pub(super) fn prompts(&mut self, offer: &ParsedOffer) -> Vec<Arc<ContractPrompt>> {
        let mut names = BTreeSet::new();
        self.each(offer, OfferKind::Prompt, |compiler, item| {
            item.check_name()?;
            let name = name::prefixed(&compiler.prefix, &plain_name(&item.name));
            name::check_tool(&name).map_err(|message| RefusedEntry::new("/name", message))?;
            if !names.insert(name.clone()) {
                return Err(RefusedEntry::new(
                    "/name",
                    format!("the name {} is taken", name::quoted(&name)),
                ));
            }
            if let Some(error) = &item.input.error {
                return Err(RefusedEntry::new("/detail/input", error.as_str()));
            }
            let prompt = ContractPrompt {
                name,
                own_name: item.name.clone(),
                title: item.title.clone(),
                description: item.description.clone(),
                arguments: arguments(item),
                listed: item.listed.clone(),
            };
            check(item, &listed::prompt(&prompt))?;
            Ok(prompt)
        })
    }

    pub(super) fn resources(&mut self, offer: &ParsedOffer) -> Vec<Arc<ContractResource>> {
        let mut known = BTreeSet::new();
        let contract = self.contract.to_owned();
        self.each(offer, OfferKind::Resource, |_, item| {
            let uri = own_uri(item, &mut known)?;
            check_scheme(&uri)?;
            check_host(&uri)?;
            let resource = ContractResource {
                uri,
                name: item.name.clone(),
                title: item.title.clone(),
                description: item.description.clone(),
                listed: item.listed.clone(),
            };
            check(item, &listed::resource(Some(&contract), &resource))?;
            Ok(resource)
        })
    }

    pub(super) fn templates(&mut self, offer: &ParsedOffer) -> Vec<Arc<ResourceTemplate>> {
        let mut known = BTreeSet::new();
        let contract = self.contract.to_owned();
        self.each(offer, OfferKind::ResourceTemplate, |_, item| {
            let template = ResourceTemplate {
                uri_template: own_uri(item, &mut known)?,
                name: item.name.clone(),
                title: item.title.clone(),
                description: item.description.clone(),
                listed: item.listed.clone(),
            };
            check(item, &listed::template(Some(&contract), &template))?;
            Ok(template)
        })
    }

    fn each<T>(
        &mut self,
        offer: &ParsedOffer,
        kind: OfferKind,
        mut compile: impl FnMut(&Self, &ParsedEntry) -> Result<T, RefusedEntry>,
    ) -> Vec<Arc<T>> {
        let mut compiled = Vec::new();
        for item in offer.items.iter().filter(|item| item.kind == kind) {
            if self
                .upstream
                .overlay
                .is_some_and(|overlay| !overlay.takes(&item.name))
            {
                continue;
            }
            match compile(self, item) {
                Ok(one) => compiled.push(Arc::new(one)),
                Err(refused) => self.leave_out(item, refused),
            }
        }
        compiled
    }
}

fn arguments(item: &ParsedEntry) -> Vec<PromptArgument> {
    let Some(schema) = &item.input.json else {
        return Vec::new();
    };
    let is_required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|required| required.iter().any(|required| required == name))
    };
    let arguments = schema["properties"].as_object().into_iter().flatten();
    let arguments = arguments.map(|(name, argument)| {
        let text = |key: &str| argument[key].as_str().map(str::to_owned);
        PromptArgument {
            name: name.clone(),
            title: text("title"),
            description: text("description"),
            required: is_required(name),
        }
    });
    arguments.collect()
}

fn own_uri(item: &ParsedEntry, known: &mut BTreeSet<String>) -> Result<String, RefusedEntry> {
    let Some(uri) = item.uri.clone().filter(|uri| !uri.is_empty()) else {
        return Err(RefusedEntry::new("/detail", "it has no URI"));
    };
    if uri.len() > URI_MAX || uri.chars().any(name::is_invisible) {
        let why = format!("its URI has more than {URI_MAX} bytes or invisible characters");
        return Err(RefusedEntry::new("/detail", why));
    }
    match known.insert(uri.clone()) {
        true => Ok(uri),
        false => Err(RefusedEntry::new(
            "/detail",
            "the server lists its URI twice; the first one counts",
        )),
    }
}

/// Checks that a URI begins with a scheme: some clients refuse the whole list for a relative one.
fn check_scheme(uri: &str) -> Result<(), RefusedEntry> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    match scheme.is_some_and(is_scheme) {
        true => Ok(()),
        false => Err(RefusedEntry::new(
            "/detail",
            "its URI has no scheme, such as `file:`, and clients refuse a list for it",
        )
        .hint("ask its maker for a whole URI")),
    }
}

/// Checks that clients can read the host and the port of a URI that has some: they refuse the whole list as well.
fn check_host(uri: &str) -> Result<(), RefusedEntry> {
    let behind_scheme = uri.split_once(':').map(|(_, behind)| behind);
    let Some(behind) = behind_scheme.and_then(|behind| behind.strip_prefix("//")) else {
        return Ok(());
    };
    let authority = behind.split(['/', '?', '#']).next().unwrap_or_default();
    match is_authority(authority) {
        true => Ok(()),
        false => Err(RefusedEntry::new(
            "/detail",
            "its URI has a host or a port that is not valid, and clients refuse a whole list for it",
        )
        .hint("ask its maker for a valid URI")),
    }
}

fn is_authority(authority: &str) -> bool {
    let (has_user, host) = match authority.rsplit_once('@') {
        Some((_, host)) => (true, host),
        None => (false, authority),
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.split_once(']'));
    let (is_host, port) = match bracketed {
        Some((address, port)) => (address.parse::<Ipv6Addr>().is_ok(), port),
        None => {
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            let is_empty = name.is_empty() && (has_user || !port.is_empty());
            let is_odd = |character: char| " <>[]^|\\".contains(character);
            (!is_empty && !name.contains(is_odd), port)
        }
    };
    let is_port = |port: &str| {
        port.is_empty()
            || port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
    };
    is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

/// Checks that the item is within the bounds and that nothing in it is meant only for the model. The rules for tools
/// look at every text of an entry.
fn check(item: &ParsedEntry, entry: &Value) -> Result<(), RefusedEntry> {
    for (text, max) in [
        (&item.title, TITLE_MAX),
        (&item.description, DESCRIPTION_MAX),
    ] {
        if text.as_ref().is_some_and(|text| text.chars().count() > max) {
            return Err(RefusedEntry::new(
                "",
                format!("its title or description has more than {max} characters"),
            ));
        }
    }
    let mut shown =
        json!({ "name": "item", "description": "", "inputSchema": { "type": "object" } });
    shown["entry"] = entry.clone();
    match lint::lint(&[shown])
        .into_iter()
        .find(|finding| finding.level == LintLevel::Error)
    {
        None => Ok(()),
        Some(finding) => Err(RefusedEntry::new(
            "",
            format!("{}: {}", finding.rule, finding.message),
        )),
    }
}
