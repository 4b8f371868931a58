//! Makes the contract of an upstream server, from the document of its offer and an optional overlay.
//!
//! A foreign server is published as far as clients accept it. Each item is judged on its own: one that cannot be published is
//! left out and reported with its place, its name, the reason and what to do; the others are published. The server's words
//! are kept; a change that some client needs is reported as well. The document is the pin: equal documents and overlays give
//! equal bytes.

mod items;
mod offered;
mod overlay;
mod schemas;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use weir_schema::{
    renaming,
    rewrite::{self, RewriteReport},
};
use weir_text::shorten;

pub(crate) use self::items::items;
use self::offered::{ParsedEntry, ParsedOffer};
pub use self::{
    items::{LiveResourceList, ResourceMode, resources},
    overlay::{ToolOverlay, UpstreamOverlay},
};
use crate::{
    CompiledContract, ContractTool, ContractVersion, FileProblem, RawSchema,
    contract::{
        ApprovalRule, ArtifactFormat, CallLimits, CallTarget, OfferTarget, ToolAnnotations,
        ToolProvider,
    },
    form::table::TEXT_MAX,
    lint::{self, LintLevel},
    listed, name,
    offer::{self, DESCRIPTION_MAX, OfferKind, TITLE_MAX},
    output::ResultChecker,
    secret, uri,
};

const HINTS: [&str; 4] = [
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];
/// The annotation that is a title of the tool.
const TITLE: &str = "title";
/// The maximum characters of a title that is made from a description.
const SENTENCE_MAX: usize = 120;

/// The upstream whose offer it is, and an operator's settings for all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpstreamOptions<'u> {
    pub name: &'u str,
    /// The name of its contract, unless the overlay sets another.
    pub contract: &'u str,
    /// The text in front of every published name, see [`name::prefixed`]. `None` means the upstream's name, and an empty text
    /// no prefix. The overlay's prefix wins.
    pub prefix: Option<&'u str>,
    pub overlay: Option<&'u UpstreamOverlay>,
    /// Limits of every tool, unless the overlay sets others.
    pub rate: Option<(u32, u32)>,
    pub timeout_ms: Option<u64>,
    /// Arguments that the audit may keep in clear.
    pub clear: &'u [String],
    /// Names that other contracts' tools have, and which: such an item is left out.
    pub taken: Option<&'u BTreeMap<String, String>>,
    pub resources: ResourceMode,
}

/// A contract, and what became of the offer.
#[derive(Debug)]
pub struct CompiledUpstream {
    pub contract: CompiledContract,
    /// Items that cannot be published, and the server's instructions if they cannot. Items that the overlay leaves out are
    /// not listed.
    pub left_out: Vec<FileProblem>,
    /// The items that are published differently from how the server wrote them, and the parts of the overlay without effect.
    pub notes: Vec<FileProblem>,
}

/// Compiles the text of a document ([`offer::OfferDocument`]). An error is one of the document as a whole or of the overlay; an
/// offer with nothing left makes a contract without tools.
pub fn compile(
    upstream: &UpstreamOptions<'_>,
    document: &str,
) -> Result<CompiledUpstream, Vec<FileProblem>> {
    let contract = upstream
        .overlay
        .map_or(upstream.contract, |overlay| overlay.contract.as_str());
    let mut problems = Vec::new();
    if let Err(message) = name::check_contract(contract) {
        problems.push(FileProblem::new(upstream.name, "", message));
    }
    if let Some(overlay) = upstream
        .overlay
        .filter(|overlay| overlay.upstream != upstream.name)
    {
        let (named, meant) = (name::quoted(&overlay.upstream), name::quoted(upstream.name));
        let problem = FileProblem::new(
            &overlay.file,
            "/upstream",
            format!("the overlay is for {named}, not for {meant}"),
        );
        problems.push(problem.hint(format!("write `upstream: {}`", upstream.name)));
    }
    let offer = match offered::read(upstream.name, document) {
        Ok(offer) if problems.is_empty() => offer,
        Ok(_) => return Err(problems),
        Err(problem) => {
            problems.push(problem);
            return Err(problems);
        }
    };
    let mut compiler = UpstreamCompiler::new(upstream);
    let tools = compiler.tools(&offer);
    let prompts = compiler.prompts(&offer);
    let resources = match upstream.resources {
        ResourceMode::Pinned => compiler.resources(&offer),
        ResourceMode::Live => Vec::new(),
    };
    let templates = compiler.templates(&offer);
    let instructions = compiler.instructions(&offer);
    compiler.unused_overlay(&offer);
    let overlay = upstream.overlay;
    Ok(CompiledUpstream {
        contract: CompiledContract {
            format: match tools.iter().any(|tool| tool.approval.is_some()) {
                true => ArtifactFormat::OFFER_APPROVALS,
                false => ArtifactFormat::UPSTREAMS,
            },
            name: contract.to_owned(),
            title: overlay.and_then(|overlay| overlay.title.clone()),
            description: overlay.and_then(|overlay| overlay.description.clone()),
            instructions,
            version: ContractVersion::FIRST,
            definitions: Some(offer::digest(document)),
            maker: Some(ToolProvider::Upstream(upstream.name.to_owned())),
            collections: Vec::new(),
            tools,
            prompts,
            resources,
            templates,
            live_resources: upstream.resources == ResourceMode::Live && offer.has_resources,
        },
        left_out: compiler.left_out,
        notes: compiler.notes,
    })
}

struct UpstreamCompiler<'c> {
    upstream: &'c UpstreamOptions<'c>,
    contract: &'c str,
    prefix: String,
    /// The server's own names of tools that were met.
    offered: BTreeSet<String>,
    /// The published names, each with the server's own.
    published: BTreeMap<String, String>,
    left_out: Vec<FileProblem>,
    notes: Vec<FileProblem>,
}

/// The reason why an item is left out: its place in the document, and the remedy.
struct RefusedEntry {
    /// Whether the place is in the overlay; else it is within the item.
    in_overlay: bool,
    place: String,
    why: String,
    hint: Option<String>,
}

impl RefusedEntry {
    fn new(place: &str, why: impl Into<String>) -> Self {
        Self {
            in_overlay: false,
            place: place.to_owned(),
            why: why.into(),
            hint: None,
        }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl<'c> UpstreamCompiler<'c> {
    fn new(upstream: &'c UpstreamOptions<'c>) -> Self {
        let overlay = upstream.overlay;
        let prefix = overlay
            .and_then(|overlay| overlay.prefix.as_deref())
            .or(upstream.prefix)
            .unwrap_or(upstream.name);
        Self {
            upstream,
            contract: overlay.map_or(upstream.contract, |overlay| &overlay.contract),
            prefix: plain_name(prefix),
            offered: BTreeSet::new(),
            published: BTreeMap::new(),
            left_out: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl UpstreamCompiler<'_> {
    fn tools(&mut self, offer: &ParsedOffer) -> Vec<Arc<ContractTool>> {
        let mut tools = Vec::new();
        for item in offer
            .items
            .iter()
            .filter(|item| item.kind == OfferKind::Tool)
        {
            let is_taken = self
                .upstream
                .overlay
                .is_none_or(|overlay| overlay.takes(&item.name));
            if !is_taken {
                continue;
            }
            match self.tool(item, offer.has_resources) {
                Ok(tool) => {
                    self.published.insert(tool.name.clone(), item.name.clone());
                    tools.push(Arc::new(tool));
                }
                Err(refused) => self.leave_out(item, refused),
            }
            if !item.is_unnamed {
                self.offered.insert(item.name.clone());
            }
        }
        tools
    }

    fn tool(
        &mut self,
        item: &ParsedEntry,
        has_resources: bool,
    ) -> Result<ContractTool, RefusedEntry> {
        let overlay = self
            .upstream
            .overlay
            .and_then(|overlay| overlay.tools.iter().find(|tool| tool.from == item.name));
        let name = self.name(item, overlay)?;
        let mut report = RewriteReport::default();
        let mut target = OfferTarget::new(
            ToolProvider::Upstream(self.upstream.name.to_owned()),
            &item.name,
        );
        let set = overlay.map(|overlay| &overlay.set);
        let input_schema = schemas::input(item, set, overlay, &mut target, &mut report)?;
        let output_schema = match overlay.is_some_and(|overlay| overlay.drops_output) {
            true => None,
            false => schemas::output(item, &mut target, &mut report)?,
        };
        let description = overlay
            .and_then(|overlay| overlay.description.clone())
            .or_else(|| item.description.clone());
        let description = description.unwrap_or_default();
        if description.chars().count() > DESCRIPTION_MAX {
            let why = format!("its description has more than {DESCRIPTION_MAX} characters");
            return Err(
                RefusedEntry::new("/description", why).hint(self.say(&item.name, "description: …"))
            );
        }
        let stated = overlay
            .and_then(|overlay| overlay.title.clone())
            .or_else(|| item.title.clone());
        let is_title =
            |title: &String| !title.trim().is_empty() && title.chars().count() <= TITLE_MAX;
        let title = match stated.filter(is_title) {
            Some(title) => title,
            None => title(self.contract, &description, &item.name),
        };
        let annotations = self.annotations(item);
        let approval = overlay.and_then(|overlay| overlay.approval);
        if let Some(overlay) =
            overlay.filter(|_| approval.is_some() && annotations.read_only_hint == Some(true))
        {
            return Err(RefusedEntry {
                in_overlay: true,
                ..RefusedEntry::new(
                    &format!("{}/approval", overlay.place),
                    "its server says that it only reads, and a person approves writes",
                )
                .hint("drop `approval`")
            });
        }
        target.listed = self.listed(item, has_resources, &mut report);
        let limits = overlay.map(|overlay| &overlay.limits);
        let audit_clear = self.audit_clear(overlay, &input_schema, &target);
        let tool = ContractTool {
            name,
            title: Some(title),
            description: ApprovalRule::describe(approval, description),
            audit_clear,
            approval,
            input_schema: input_schema.into(),
            output_schema: output_schema.map(RawSchema::from),
            annotations,
            target: CallTarget::Offer(Arc::new(target)),
            limits: CallLimits {
                rate: limits.and_then(|limits| limits.rate).or(self.upstream.rate),
                timeout_ms: limits
                    .and_then(|limits| limits.timeout_ms)
                    .or(self.upstream.timeout_ms),
            },
        };
        self.check(item, &tool)?;
        self.tell(item, &tool, &report);
        Ok(tool)
    }

    /// Returns the arguments that the audit keeps in clear, by their published names. Each one in the overlay of the tool that is
    /// not kept is noted.
    fn audit_clear(
        &mut self,
        overlay: Option<&ToolOverlay>,
        input_schema: &Value,
        target: &OfferTarget,
    ) -> Vec<String> {
        let is_argument = |field: &String| {
            input_schema["properties"].get(field.as_str()).is_some()
                && !secret::is_named_like_one(field)
        };
        let published = |own: &String| {
            target
                .keys
                .iter()
                .find(|(_, known)| *known == own)
                .map_or_else(|| own.clone(), |(safe, _)| safe.clone())
        };
        let of_tool = overlay.map_or(&[][..], |overlay| &overlay.clear);
        let all = self.upstream.clear.iter().chain(of_tool);
        let kept: BTreeSet<String> = all.map(published).filter(is_argument).collect();
        if let (Some(file), Some(tool)) = (self.upstream.overlay, overlay) {
            for own in &tool.clear {
                if kept.contains(&published(own)) {
                    continue;
                }
                let message = format!(
                    "the argument {} is not kept in clear: agents set none of that name, or it is named like a secret",
                    name::quoted(own)
                );
                let place = format!("{}/audit/clear", tool.place);
                self.notes
                    .push(FileProblem::new(&file.file, place, message));
            }
        }
        kept.into_iter().collect()
    }

    /// Returns the name that the tool is published under.
    fn name(
        &self,
        item: &ParsedEntry,
        overlay: Option<&ToolOverlay>,
    ) -> Result<String, RefusedEntry> {
        item.check_name()?;
        if self.offered.contains(&item.name) {
            return Err(RefusedEntry::new(
                "/name",
                "the server lists the name twice; the first one counts",
            ));
        }
        let own = overlay
            .and_then(|overlay| overlay.tool.as_deref())
            .unwrap_or(&item.name);
        let name = name::prefixed(&self.prefix, &plain_name(own));
        let hint = self.say(&item.name, "tool: another_name");
        if let Err(message) = name::check_tool(&name) {
            return Err(RefusedEntry::new("/name", message).hint(hint));
        }
        let shown = name::quoted(&name);
        if let Some(other) = self.published.get(&name) {
            let why = format!(
                "the name {shown} is that of the server's tool {}",
                name::quoted(other)
            );
            return Err(RefusedEntry::new("/name", why).hint(hint));
        }
        if let Some(contract) = self.upstream.taken.and_then(|taken| taken.get(&name)) {
            let why = format!(
                "the name {shown} is taken by the contract {}",
                name::quoted(contract)
            );
            return Err(RefusedEntry::new("/name", why)
                .hint(format!("{hint}, or give the upstream another prefix")));
        }
        Ok(name)
    }

    /// Returns the further members of the tool's entry, with its page named as clients see it.
    fn listed(
        &self,
        item: &ParsedEntry,
        has_resources: bool,
        report: &mut RewriteReport,
    ) -> Map<String, Value> {
        let mut listed = item.listed.clone();
        if let Some(Value::Object(meta)) = listed.get_mut("_meta") {
            if has_resources {
                uri::publish_page(self.contract, meta);
            } else if uri::remove_page(meta) {
                report.tell(
                    "it names its own page, but the server declares no resources: the link is removed",
                );
            }
            if meta.is_empty() {
                listed.shift_remove("_meta");
            }
        }
        listed
    }

    /// Returns the annotations as the server states them; a hint that is not a flag, and a title that is not a text, are
    /// left out.
    fn annotations(&mut self, item: &ParsedEntry) -> ToolAnnotations {
        let hint = |name: &str| item.annotations.get(name).and_then(Value::as_bool);
        let others = item.annotations.iter().filter(|(name, value)| {
            !HINTS.contains(&name.as_str()) && (*name != TITLE || value.is_string())
        });
        for hint in HINTS {
            if item
                .annotations
                .get(hint)
                .is_some_and(|value| !value.is_boolean())
            {
                let message = format!(
                    "{}: `{hint}` is neither true nor false, and counts as absent",
                    quoted(item)
                );
                self.notes.push(
                    self.problem(&format!("{}/meta/annotations/{hint}", item.place), message),
                );
            }
        }
        ToolAnnotations {
            read_only_hint: hint("readOnlyHint"),
            destructive_hint: hint("destructiveHint"),
            idempotent_hint: hint("idempotentHint"),
            open_world_hint: hint("openWorldHint"),
            others: others
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    /// Checks that the tool works, and that nothing in it is meant only for the model.
    fn check(&self, item: &ParsedEntry, tool: &ContractTool) -> Result<(), RefusedEntry> {
        tool.argument_validator()
            .map_err(|why| RefusedEntry::new("/detail/input", why))?;
        for schema in tool.checked_output().into_iter().chain(&tool.output_schema) {
            let drop = self.say(&item.name, "output: drop");
            ResultChecker::foreign(&schema.value())
                .map_err(|why| RefusedEntry::new("/detail/output", why).hint(drop))?;
        }
        let findings = lint::lint(&[listed::tool(tool)]);
        match findings
            .into_iter()
            .find(|finding| finding.level == LintLevel::Error)
        {
            None => Ok(()),
            Some(finding) => {
                let at = finding
                    .field
                    .map(|field| format!(" (at {field})"))
                    .unwrap_or_default();
                let why = format!("{}: {}{at}", finding.rule, finding.message);
                let hint = self.say(&item.name, "description: …");
                Err(RefusedEntry::new("", why).hint(format!(
                    "{hint}, where its description is meant; else ask its maker"
                )))
            }
        }
    }

    fn tell(&mut self, item: &ParsedEntry, tool: &ContractTool, lowered: &RewriteReport) {
        let Some(offer) = tool.offer() else { return };
        let mut changes: Vec<String> = lowered
            .changes
            .iter()
            .map(|what| (*what).to_owned())
            .collect();
        for (published, own) in &offer.keys {
            changes.push(format!(
                "the argument {} is published as {}",
                name::quoted(own),
                name::quoted(published)
            ));
        }
        for what in changes {
            let message = format!("{}: {what}", quoted(item));
            self.notes.push(self.problem(&item.place, message));
        }
    }

    fn instructions(&mut self, offer: &ParsedOffer) -> Option<String> {
        if let Some(own) = self
            .upstream
            .overlay
            .and_then(|overlay| overlay.instructions.clone())
        {
            return Some(own);
        }
        let instructions = offer
            .instructions
            .clone()
            .filter(|instructions| !instructions.trim().is_empty())?;
        let why = match instructions.chars().count() > TEXT_MAX {
            true => Some(format!("they have more than {TEXT_MAX} characters")),
            false => lint::lint_words(&instructions)
                .into_iter()
                .find(|finding| finding.level == LintLevel::Error)
                .map(|finding| format!("{}: {}", finding.rule, finding.message)),
        };
        let Some(why) = why else {
            return Some(instructions);
        };
        let problem = self.problem(
            "/server/instructions",
            format!("the server's instructions are left out: {why}"),
        );
        self.left_out
            .push(problem.hint("say `instructions: …` in the overlay"));
        None
    }

    /// Notes the entries of the overlay for tools that do not exist.
    fn unused_overlay(&mut self, offer: &ParsedOffer) {
        let Some(overlay) = self.upstream.overlay else {
            return;
        };
        let names: Vec<&str> = offer
            .items
            .iter()
            .filter(|item| item.kind == OfferKind::Tool)
            .map(|item| item.name.as_str())
            .collect();
        for tool in &overlay.tools {
            let place = format!("{}/from", tool.place);
            let shown = name::quoted(&tool.from);
            let problem =
                |message: String| FileProblem::new(&overlay.file, place.as_str(), message);
            if !names.contains(&tool.from.as_str()) {
                let problem = problem(format!("the server has no tool {shown}"));
                let near = name::nearest(&tool.from, names.iter().copied());
                self.notes.push(with_near(problem, near));
            } else if !overlay.takes(&tool.from) {
                let problem = problem(format!(
                    "the tool {shown} is not taken, by `take` and `leave`"
                ));
                self.notes
                    .push(problem.hint("take it, or remove the entry"));
            }
        }
        self.unused_names(overlay, offer);
    }

    /// Notes the names in `take` and `leave` that no item has. A pattern may be meant for later items.
    fn unused_names(&mut self, overlay: &UpstreamOverlay, offer: &ParsedOffer) {
        let names: BTreeSet<&str> = offer.items.iter().map(|item| item.name.as_str()).collect();
        for (key, patterns) in [("take", &overlay.take), ("leave", &overlay.leave)] {
            for (index, name) in patterns.iter().enumerate() {
                if name.contains(['*', '?']) || names.contains(name.as_str()) {
                    continue;
                }
                let message = format!("the server offers nothing named {}", name::quoted(name));
                let problem = FileProblem::new(&overlay.file, format!("/{key}/{index}"), message);
                let near = name::nearest(name, names.iter().copied());
                self.notes.push(with_near(problem, near));
            }
        }
    }

    fn leave_out(&mut self, item: &ParsedEntry, refused: RefusedEntry) {
        let message = format!("{} is left out: {}", quoted(item), refused.why);
        let problem = match self.upstream.overlay.filter(|_| refused.in_overlay) {
            Some(overlay) => FileProblem::new(&overlay.file, refused.place, message),
            None => self.problem(&format!("{}{}", item.place, refused.place), message),
        };
        self.left_out.push(match refused.hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
    }

    fn problem(&self, place: &str, message: String) -> FileProblem {
        FileProblem::new(self.upstream.name, place, message)
    }

    /// Returns the hint what to write in the overlay.
    fn say(&self, from: &str, what: &str) -> String {
        format!(
            "say `{{ from: {}, {what} }}` under `tools:` in the overlay",
            json!(from)
        )
    }
}

impl ParsedEntry {
    /// Checks that there is a name to ask the server for.
    fn check_name(&self) -> Result<(), RefusedEntry> {
        if self.is_unnamed || self.name.is_empty() {
            let why = "it has no name, or one that is not a text, so it cannot be called";
            return Err(RefusedEntry::new("/name", why).hint("ask its maker for a name"));
        }
        Ok(())
    }
}

fn quoted(item: &ParsedEntry) -> String {
    let kind = match item.kind {
        OfferKind::Tool => "tool",
        OfferKind::Resource => "resource",
        OfferKind::ResourceTemplate => "resource template",
        OfferKind::Prompt => "prompt",
    };
    format!("the {kind} {}", name::quoted(&item.name))
}

/// Adds the name that was likely meant.
fn with_near(problem: FileProblem, near: Option<&str>) -> FileProblem {
    match near {
        Some(near) => problem.hint(format!("it has {}", name::quoted(near))),
        None => problem,
    }
}

/// Replaces other characters by underscores.
fn plain_name(name: &str) -> String {
    let plain = |next: char| {
        if next.is_ascii_alphanumeric() || "_-".contains(next) {
            next
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

fn title(contract: &str, description: &str, name: &str) -> String {
    let line = description.trim().lines().next().unwrap_or_default().trim();
    let ends = line.match_indices(". ").map(|(at, _)| at).next();
    let sentence = line[..ends.unwrap_or(line.len())].trim_end_matches(['.', ':']);
    let sentence = if sentence.is_empty() { name } else { sentence };
    format!("{contract}: {}", shorten(sentence, SENTENCE_MAX))
}

impl ContractTool {
    /// Returns the arguments to send to an upstream: checked, under the server's names, with those that are set.
    /// Arguments of a tool that does not belong to an upstream are unchanged. `checked_input`, the tree of
    /// [`checked_input`](Self::checked_input), is asked for only if names were changed.
    pub fn arguments_for_upstream<'a>(
        &self,
        checked_input: impl FnOnce() -> &'a Value,
        arguments: Map<String, Value>,
    ) -> Map<String, Value> {
        let Some(offer) = self.offer() else {
            return arguments;
        };
        let mut arguments = match offer.keys.is_empty() {
            true => arguments,
            false => renaming::restore(checked_input(), &offer.keys, arguments),
        };
        // A set value has the last word, even if an open schema takes the same name.
        arguments.extend(
            offer
                .set
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        arguments
    }
}

/// Lists of types as alternatives, which every client reads.
pub(crate) fn plain_types(schema: &mut serde_json::Value) {
    rewrite::inside(schema, &mut rewrite::RewriteReport::default());
}
