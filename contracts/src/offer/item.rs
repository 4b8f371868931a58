//! Writes one item of a list in the document's shape. A member of the wrong type counts as absent.

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{json, value::RawValue};

use weir_schema::foreign;

use super::{kept, members::RawMembers};

/// The kinds of items that a server lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfferKind {
    Tool,
    Resource,
    ResourceTemplate,
    Prompt,
}

/// One item of a list.
#[derive(Debug, Serialize)]
pub struct OfferEntry {
    #[serde(rename = "type")]
    pub kind: OfferKind,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub meta: EntryMetadata,
    pub detail: EntryDetail,
    /// Whether a tool may run as a task.
    #[serde(skip)]
    pub execution: Option<Box<RawValue>>,
    /// The server gave it no name by which it could be requested; `name` is only for readers.
    #[serde(skip)]
    pub is_unnamed: bool,
}

/// The members that describe an item without affecting its behaviour.
#[derive(Debug, Default, Serialize)]
pub struct EntryMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Box<RawValue>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// The parts that only one kind of item has.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum EntryDetail {
    Tool {
        input: OfferSchema,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<OfferSchema>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ui: Option<UiMetadata>,
    },
    #[serde(rename_all = "camelCase")]
    Resource {
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ui: Option<UiMetadata>,
    },
    #[serde(rename_all = "camelCase")]
    ResourceTemplate {
        #[serde(skip_serializing_if = "Option::is_none")]
        uri_template: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    Prompt {
        input: OfferSchema,
    },
}

/// A schema as it was written, and why it is refused where it is.
#[derive(Debug, Default, Serialize)]
pub struct OfferSchema {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// MCP Apps metadata: every member that is there in one of its known types, in a fixed order.
#[derive(Debug)]
pub struct UiMetadata(Vec<(&'static str, Box<RawValue>)>);

pub(super) fn item(
    kind: OfferKind,
    members: &RawMembers<'_>,
    note: &mut dyn FnMut(String),
) -> OfferEntry {
    let title = members.text("title");
    let (title, fallback, detail) = match kind {
        OfferKind::Tool => {
            let annotations = members
                .object("annotations")
                .and_then(|raw| RawMembers::read(raw.get()).ok());
            let title = title.or_else(|| annotations?.text("title"));
            let input = members
                .raw("inputSchema")
                .map(|raw| schema_of(raw, "inputSchema"))
                .unwrap_or_default();
            // Some servers write their optional members as null.
            let output = members
                .raw("outputSchema")
                .filter(|raw| raw.get() != "null")
                .map(|raw| schema_of(raw, "outputSchema"));
            (
                title,
                "tool",
                EntryDetail::Tool {
                    input,
                    output,
                    ui: ui(members),
                },
            )
        }
        OfferKind::Resource => {
            let (uri, mime_type) = (members.text("uri"), members.text("mimeType"));
            let size = members.number("size").map(ToOwned::to_owned);
            (
                title,
                "resource",
                EntryDetail::Resource {
                    uri,
                    mime_type,
                    size,
                    ui: ui(members),
                },
            )
        }
        OfferKind::ResourceTemplate => {
            let (uri_template, mime_type) = (members.text("uriTemplate"), members.text("mimeType"));
            (
                title,
                "resource-template",
                EntryDetail::ResourceTemplate {
                    uri_template,
                    mime_type,
                },
            )
        }
        OfferKind::Prompt => (
            title,
            "prompt",
            EntryDetail::Prompt {
                input: prompt_input(members, note),
            },
        ),
    };
    let meta = EntryMetadata {
        icons: kept(members.array("icons"), "icons", note),
        annotations: kept(members.object("annotations"), "annotations", note),
        meta: kept(members.object("_meta"), "_meta", note),
    };
    let execution = kept(
        members
            .object("execution")
            .filter(|_| kind == OfferKind::Tool),
        "execution",
        note,
    );
    let name = members.text("name").unwrap_or_else(|| {
        note(format!(
            "the item has no name that is a text; it is called `{fallback}`"
        ));
        fallback.to_owned()
    });
    OfferEntry {
        kind,
        name,
        title,
        description: members.text("description"),
        meta,
        detail,
        execution,
        is_unnamed: members.text("name").is_none_or(|name| name.is_empty()),
    }
}

fn schema_of(raw: &RawValue, name: &str) -> OfferSchema {
    if !raw.get().starts_with('{') {
        return OfferSchema {
            json: None,
            error: Some(format!("`{name}` is not an object")),
        };
    }
    let error = foreign::check(raw.get(), &foreign::SchemaLimits::default()).err();
    let mut is_kept = true;
    let json = kept(Some(raw), name, &mut |_| is_kept = false);
    let error = error.map(|error| {
        if is_kept {
            error
        } else {
            format!("{error}; it is left out")
        }
    });
    OfferSchema { json, error }
}

/// Returns the arguments of a prompt as an open object. Arguments are texts, but a server may leave that unsaid.
fn prompt_input(prompt: &RawMembers<'_>, note: &mut dyn FnMut(String)) -> OfferSchema {
    let Some(arguments) = prompt.array("arguments") else {
        return OfferSchema::default();
    };
    let arguments: Vec<&RawValue> = serde_json::from_str(arguments.get()).unwrap_or_default();
    let mut properties = serde_json::Map::new();
    let mut required: Vec<String> = Vec::new();
    for argument in arguments {
        let members = RawMembers::read(argument.get()).ok();
        let Some((argument, name)) = members.and_then(|members| {
            let name = members.text("name").filter(|name| !name.is_empty())?;
            Some((members, name))
        }) else {
            note("an argument without a name is left out".to_owned());
            continue;
        };
        let mut property = serde_json::Map::new();
        for text in ["title", "description"] {
            property.extend(
                argument
                    .text(text)
                    .map(|value| (text.to_owned(), value.into())),
            );
        }
        if argument.boolean("required") == Some(true) && !required.contains(&name) {
            required.push(name.clone());
        }
        properties.insert(name, property.into());
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema["additionalProperties"] = true.into();
    let raw = RawValue::from_string(schema.to_string()).expect("a schema has a JSON form");
    schema_of(&raw, "arguments")
}

/// Reads `_meta.ui` as MCP Apps hosts write it, as the first drafts did (`csp` a text, `permissions` a list), and the
/// flat `ui/resourceUri` that tools carry for older hosts.
fn ui(item: &RawMembers<'_>) -> Option<UiMetadata> {
    let meta = RawMembers::read(item.object("_meta")?.get()).ok()?;
    let nested = meta
        .object("ui")
        .and_then(|ui| RawMembers::read(ui.get()).ok());
    let is = |raw: &&RawValue, starts: &[char]| raw.get().starts_with(starts);
    let known: [(&'static str, &[char]); 6] = [
        ("resourceUri", &['"']),
        ("csp", &['"', '{']),
        ("permissions", &['[', '{']),
        ("visibility", &['[']),
        ("domain", &['"']),
        ("prefersBorder", &['t', 'f']),
    ];
    let mut members = Vec::new();
    for (name, starts) in known {
        let nested = nested
            .as_ref()
            .and_then(|ui| ui.raw(name))
            .filter(|raw| is(raw, starts));
        let flat = || {
            meta.raw("ui/resourceUri")
                .filter(|raw| name == "resourceUri" && is(raw, starts))
        };
        let found = kept(nested.or_else(flat), name, &mut |_| {});
        members.extend(found.map(|raw| (name, raw)));
    }
    (!members.is_empty()).then_some(UiMetadata(members))
}

impl UiMetadata {
    /// Returns a member as it was written; `None` if it is absent or has the wrong type.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, raw)| &**raw)
    }
}

impl Serialize for UiMetadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, raw) in &self.0 {
            map.serialize_entry(name, raw)?;
        }
        map.end()
    }
}
