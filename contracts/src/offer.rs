//! Reads the lists of another MCP server: raw list results are read strictly and composed into one document.
//!
//! The document is meant for programs that make something of a server: command lines, endpoints, forms. Its shape is
//! the same for every kind of item. What the server wrote is kept as it was written, digit for digit and in its order;
//! only the white space around it is ours.

mod item;
mod members;

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use weir_schema::json;

pub use self::item::{EntryDetail, EntryMetadata, OfferEntry, OfferKind, OfferSchema, UiMetadata};
use self::members::RawMembers;
use crate::FileProblem;
pub(crate) use weir_schema::foreign::check_pattern;
pub use weir_schema::foreign::{SchemaLimits, check as check_schema};

/// Characters of a title and of a description that a tool is published with.
pub(crate) const TITLE_MAX: usize = 200;
pub(crate) const DESCRIPTION_MAX: usize = 16 << 10;
/// Items of one document, of all kinds together.
pub const ITEMS_MAX: usize = 10_000;
/// Levels of anything that is kept as it was written. Readers elsewhere end at 64, and one item that is deeper would
/// make the whole document unreadable for them.
const DEPTH_MAX: usize = 48;

/// The raw items of a server's lists, in the server's order, with its own description of itself.
#[derive(Default)]
pub struct ServerLists {
    pub info: Option<Box<RawValue>>,
    /// The capabilities object, as the server stated it. `None` if it is unknown; the lists then show the capabilities.
    pub capabilities: Option<Box<RawValue>>,
    pub instructions: Option<String>,
    pub tools: Option<Vec<Box<RawValue>>>,
    pub resources: Option<Vec<Box<RawValue>>>,
    pub templates: Option<Vec<Box<RawValue>>>,
    pub prompts: Option<Vec<Box<RawValue>>>,
}

/// One server in one document.
#[derive(Debug, Serialize)]
pub struct OfferDocument {
    pub server: OfferServer,
    pub items: Vec<OfferEntry>,
    /// The capabilities implied by the lists that are present.
    #[serde(skip)]
    listed: Box<RawValue>,
}

/// A server's description of itself, as it was written.
#[derive(Clone, Debug, Serialize)]
pub struct OfferServer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

#[derive(Serialize)]
struct PinnedDocument<'d> {
    server: OfferServer,
    items: Vec<PinnedEntry<'d>>,
}

#[derive(Serialize)]
struct PinnedEntry<'d> {
    #[serde(flatten)]
    item: &'d OfferEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<&'d RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unnamed: bool,
}

/// The document, and the parts that were left out of it. A refused schema is not among the problems: its item carries the
/// error.
#[derive(Debug)]
pub struct ComposedOffer {
    pub document: OfferDocument,
    pub problems: Vec<FileProblem>,
}

impl ServerLists {
    /// Reads `{tools?, resources?, resourceTemplates?, prompts?, server?}`, or one answer of JSON-RPC with such a result. A member
    /// of the wrong type counts as absent and is a problem, and so is a page that others follow; the error is for a text that
    /// cannot be read at all.
    pub fn read(file: &str, text: &str) -> Result<(Self, Vec<FileProblem>), FileProblem> {
        let whole = RawMembers::read(text).map_err(|message| {
            FileProblem::new(file, "", message)
                .hint("give an object such as {\"tools\": […], \"server\": {\"info\": {…}}}")
        })?;
        let result = whole
            .raw("jsonrpc")
            .and_then(|_| RawMembers::read(whole.object("result")?.get()).ok());
        let members = result.unwrap_or(whole);
        let followed = |place: String| {
            FileProblem::new(file, place, "this is one page of a list, and others follow")
                .hint("add the items of the others, or extract from the server itself")
        };
        let mut problems = Vec::new();
        if members.text("nextCursor").is_some() {
            problems.push(followed("/nextCursor".to_owned()));
        }
        let mut lists = Self::default();
        let mut list = |name: &str| {
            let list = members.raw(name)?;
            let page = RawMembers::read(list.get()).ok();
            let read = array(list).or_else(|| page.as_ref()?.raw(name).and_then(array));
            if page.is_some_and(|page| page.text("nextCursor").is_some()) {
                problems.push(followed(format!("/{name}/nextCursor")));
            }
            if read.is_none() {
                problems.push(FileProblem::new(
                    file,
                    format!("/{name}"),
                    format!("`{name}` is not a list"),
                ));
            }
            read
        };
        lists.tools = list("tools");
        lists.resources = list("resources");
        lists.templates = list("resourceTemplates").or_else(|| list("templates"));
        lists.prompts = list("prompts");
        if let Some(server) = members.raw("server") {
            match RawMembers::read(server.get()) {
                Ok(server) => lists.server(&server),
                Err(message) => problems.push(FileProblem::new(file, "/server", message)),
            }
        }
        Ok((lists, problems))
    }

    /// Reads `{info, capabilities, instructions}`, or the unchanged result of `initialize` or `server/discover`.
    fn server(&mut self, server: &RawMembers<'_>) {
        let described = server
            .object("_meta")
            .and_then(|meta| RawMembers::read(meta.get()).ok());
        let described = described
            .as_ref()
            .and_then(|meta| meta.object("io.modelcontextprotocol/serverInfo"));
        let info = server
            .object("info")
            .or_else(|| server.object("serverInfo"))
            .or(described);
        self.info = info.map(ToOwned::to_owned);
        self.capabilities = server.object("capabilities").map(ToOwned::to_owned);
        self.instructions = server.text("instructions");
    }

    /// Reads the result of `initialize` or `server/discover`; false if it is not an object.
    pub fn server_result(&mut self, result: &RawValue) -> bool {
        RawMembers::read(result.get())
            .map(|members| self.server(&members))
            .is_ok()
    }

    /// Returns `true` if the server declares that it can list these items.
    pub fn advertises(&self, capability: &str) -> bool {
        let Some(stated) = &self.capabilities else {
            return true;
        };
        let Ok(members) = RawMembers::read(stated.get()) else {
            return false;
        };
        members
            .raw(capability)
            .is_some_and(|value| !matches!(value.get(), "null" | "false"))
    }
}

/// Makes one document of a server's lists: tools, resources, resource templates, prompts. Pure: equal lists give equal
/// documents. `file` names the lists in problems.
pub fn compose(file: &str, lists: &ServerLists) -> ComposedOffer {
    let mut problems = Vec::new();
    let mut items = Vec::new();
    let kinds = [
        (OfferKind::Tool, "tools", "tools", &lists.tools),
        (
            OfferKind::Resource,
            "resources",
            "resources",
            &lists.resources,
        ),
        (
            OfferKind::ResourceTemplate,
            "resources",
            "resourceTemplates",
            &lists.templates,
        ),
        (OfferKind::Prompt, "prompts", "prompts", &lists.prompts),
    ];
    for (kind, capability, list, raws) in kinds {
        let raws = raws.as_deref().unwrap_or_default();
        if !raws.is_empty() && !lists.advertises(capability) {
            let message =
                format!("`{list}` is left out, since the server does not advertise `{capability}`");
            problems.push(FileProblem::new(file, format!("/{list}"), message));
            continue;
        }
        for (index, raw) in raws.iter().enumerate() {
            let place = format!("/{list}/{index}");
            if items.len() == ITEMS_MAX {
                let message = format!(
                    "the items from here on are left out: a document holds at most {ITEMS_MAX}"
                );
                problems.push(FileProblem::new(file, place, message));
                break;
            }
            match RawMembers::read(raw.get()) {
                Ok(members) => {
                    let repeated = members
                        .repeated()
                        .map(|name| format!("`{name}` is given twice; the last one counts"));
                    problems.extend(
                        repeated.map(|message| FileProblem::new(file, place.as_str(), message)),
                    );
                    let mut note = |message: String| {
                        problems.push(FileProblem::new(file, place.as_str(), message))
                    };
                    items.push(item::item(kind, &members, &mut note));
                }
                Err(message) => {
                    problems.push(FileProblem::new(
                        file,
                        place,
                        format!("the item is left out: {message}"),
                    ));
                }
            }
        }
    }
    let server = OfferServer {
        info: kept(lists.info.as_deref(), "info", &mut |message| {
            problems.push(FileProblem::new(file, "/server", message))
        }),
        capabilities: lists.capabilities.clone(),
        instructions: lists.instructions.clone(),
    };
    ComposedOffer {
        document: OfferDocument {
            server,
            items,
            listed: given(lists),
        },
        problems,
    }
}

impl OfferDocument {
    /// Returns the document indented by two spaces, with a newline at its end.
    pub fn pretty(&self) -> String {
        lay_out(&self.text(), true) + "\n"
    }

    /// Returns the document on one line, without white space.
    pub fn compact(&self) -> String {
        lay_out(&self.text(), false)
    }

    /// Returns the stored form of an upstream server: the same as [`OfferDocument::compact`], with the `execution` of each tool
    /// in addition to its `meta`, a mark on items without a name, and the capabilities that the lists imply if none are stated.
    /// Clients see these, but a generator has no use for them.
    pub fn pinned(&self) -> String {
        let items = self.items.iter().map(|item| PinnedEntry {
            item,
            execution: item.execution.as_deref(),
            unnamed: item.is_unnamed,
        });
        let stated = self.server.capabilities.as_ref();
        let pinned = PinnedDocument {
            server: OfferServer {
                capabilities: Some(stated.unwrap_or(&self.listed).clone()),
                ..self.server.clone()
            },
            items: items.collect(),
        };
        lay_out(
            &serde_json::to_string(&pinned).expect("a document has a JSON form"),
            false,
        )
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("a document has a JSON form")
    }
}

/// Returns the SHA-256, in hexadecimal, of a maker's definitions.
pub(crate) fn digest(definitions: &str) -> String {
    Sha256::digest(definitions)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Derives the capabilities from the lists that are there.
fn given(lists: &ServerLists) -> Box<RawValue> {
    let capabilities = [
        ("tools", lists.tools.is_some()),
        (
            "resources",
            lists.resources.is_some() || lists.templates.is_some(),
        ),
        ("prompts", lists.prompts.is_some()),
    ];
    let members: Vec<String> = capabilities
        .iter()
        .filter(|(_, is_there)| *is_there)
        .map(|(name, _)| format!("\"{name}\":{{}}"))
        .collect();
    RawValue::from_string(format!("{{{}}}", members.join(","))).expect("an object")
}

fn array(raw: &RawValue) -> Option<Vec<Box<RawValue>>> {
    serde_json::from_str(raw.get()).ok()
}

/// Returns the value as it was written, unless it nests too deeply for its readers.
fn kept(raw: Option<&RawValue>, name: &str, note: &mut dyn FnMut(String)) -> Option<Box<RawValue>> {
    let raw = raw?;
    if json::depth(raw.get()) > DEPTH_MAX {
        note(format!(
            "`{name}` is left out: it nests deeper than {DEPTH_MAX} levels"
        ));
        return None;
    }
    Some(raw.to_owned())
}

/// Writes the same tokens with other white space.
fn lay_out(json: &str, indented: bool) -> String {
    let mut laid = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut tokens = JsonTokens(json).peekable();
    let line = |laid: &mut String, depth: usize| {
        if indented {
            laid.push('\n');
            laid.extend(std::iter::repeat_n("  ", depth));
        }
    };
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                laid.push_str(token);
                depth += 1;
                if !matches!(tokens.peek(), Some(&("}" | "]"))) {
                    line(&mut laid, depth);
                }
            }
            "}" | "]" => {
                depth -= 1;
                if !laid.ends_with(['{', '[']) {
                    line(&mut laid, depth);
                }
                laid.push_str(token);
            }
            "," => {
                laid.push(',');
                line(&mut laid, depth);
            }
            ":" => laid.push_str(if indented { ": " } else { ":" }),
            token => laid.push_str(token),
        }
    }
    laid
}

/// The tokens of a valid JSON text.
struct JsonTokens<'t>(&'t str);

impl<'t> Iterator for JsonTokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let rest = self.0.trim_start_matches([' ', '\t', '\r', '\n']);
        let bytes = rest.as_bytes();
        let length = match bytes.first()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => {
                let mut at = 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                (at + 1).min(bytes.len())
            }
            _ => rest
                .find(['{', '}', '[', ']', ',', ':', ' ', '\t', '\r', '\n', '"'])
                .unwrap_or(rest.len()),
        };
        let (token, rest) = rest.split_at(length);
        self.0 = rest;
        Some(token)
    }
}
