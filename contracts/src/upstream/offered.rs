//! The items of a document, read back.

use serde_json::{Map, Value};
use weir_schema::{
    foreign::{self, SchemaLimits},
    rewrite::{self, RewriteReport},
};

use crate::{FileProblem, json, metadata, offer::OfferKind};

/// The note about a schema without its faults.
const MENDED: &str =
    "keywords of its schemas that are null, or texts and lists of another type, are left out";

/// The note about a schema with bounds of OpenAPI 3.0.
const EXCLUSIVE: &str =
    "bounds that `true` or `false` next to them makes exclusive are written as numbers";

/// The parts of a document about its server and its items. Wrong types count as absent, as they do where the document
/// is composed.
pub(super) struct ParsedOffer {
    pub instructions: Option<String>,
    /// Whether the server declares that it has resources.
    pub has_resources: bool,
    pub items: Vec<ParsedEntry>,
}

pub(super) struct ParsedEntry {
    /// The place in the document.
    pub place: String,
    pub kind: OfferKind,
    pub name: String,
    /// The server gave it no name.
    pub is_unnamed: bool,
    pub title: Option<String>,
    pub description: Option<String>,
    pub annotations: Map<String, Value>,
    /// `icons`, `execution` and `_meta`, and for a resource its type, size and annotations.
    pub listed: Map<String, Value>,
    pub input: ParsedSchema,
    pub output: Option<ParsedSchema>,
    /// The URI of a resource or a template.
    pub uri: Option<String>,
}

/// `{json, error}`.
#[derive(Default)]
pub(super) struct ParsedSchema {
    pub json: Option<Value>,
    pub error: Option<String>,
    /// What is left out of a schema that could not be used as it was, in words for a report.
    pub left_out: Vec<&'static str>,
}

/// Reads a document. Bounds in schemas may be numbers that no reader holds; they are judged where the schema is.
pub(super) fn read(file: &str, text: &str) -> Result<ParsedOffer, FileProblem> {
    let hint = "give a document as `weir extract` prints it";
    let (value, faults) = json::read_all(text);
    let Some(value) = value else {
        let (place, message) = faults
            .into_iter()
            .next()
            .map(|fault| (fault.path, fault.message))
            .unwrap_or_default();
        return Err(FileProblem::new(file, place, format!("JSON: {message}")).hint(hint));
    };
    let Some(Value::Array(items)) = value.get("items") else {
        return Err(FileProblem::new(file, "", "the document has no list of items").hint(hint));
    };
    let items: Vec<ParsedEntry> = items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| offered(index, item))
        .collect();
    let instructions = value
        .pointer("/server/instructions")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let is_resource = |kind| matches!(kind, OfferKind::Resource | OfferKind::ResourceTemplate);
    let has_resources = match value.pointer("/server/capabilities") {
        Some(stated) => stated
            .get("resources")
            .is_some_and(|resources| !resources.is_null() && resources != &Value::Bool(false)),
        None => items.iter().any(|item| is_resource(item.kind)),
    };
    Ok(ParsedOffer {
        instructions,
        has_resources,
        items,
    })
}

fn offered(index: usize, item: &Value) -> Option<ParsedEntry> {
    let kind = match item.get("type")?.as_str()? {
        "tool" => OfferKind::Tool,
        "resource" => OfferKind::Resource,
        "resource-template" => OfferKind::ResourceTemplate,
        "prompt" => OfferKind::Prompt,
        _ => return None,
    };
    let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let meta = |name: &str| item.get("meta").and_then(|meta| meta.get(name));
    let detail = |name: &str| item.get("detail").and_then(|detail| detail.get(name));
    let is_resource = matches!(kind, OfferKind::Resource | OfferKind::ResourceTemplate);
    // Annotations of a resource name its audience.
    let annotations = meta("annotations").filter(|_| is_resource);
    let kept = [
        ("mimeType", detail("mimeType").cloned()),
        ("size", detail("size").filter(|size| size.is_u64()).cloned()),
        ("annotations", annotations.and_then(metadata::annotations)),
        ("icons", meta("icons").and_then(metadata::icons)),
        (
            "execution",
            item.get("execution").and_then(metadata::execution),
        ),
        ("_meta", meta("_meta").cloned()),
    ];
    let uri = detail("uri")
        .or(detail("uriTemplate"))
        .and_then(Value::as_str)
        .map(str::to_owned);
    Some(ParsedEntry {
        place: format!("/items/{index}"),
        kind,
        name: text("name")?,
        is_unnamed: item.get("unnamed").is_some(),
        title: text("title"),
        description: text("description"),
        annotations: meta("annotations")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default(),
        listed: kept
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect(),
        input: item
            .pointer("/detail/input")
            .map(schema)
            .unwrap_or_default(),
        output: item.pointer("/detail/output").map(schema),
        uri,
    })
}

fn schema(detail: &Value) -> ParsedSchema {
    let (json, error) = (detail.get("json"), detail.get("error"));
    let error = error.and_then(Value::as_str).map(str::to_owned);
    match json.filter(|_| error.is_some()).and_then(mended) {
        Some((schema, left_out)) => ParsedSchema {
            json: Some(schema),
            error: None,
            left_out,
        },
        None => ParsedSchema {
            json: json.cloned(),
            error,
            left_out: Vec::new(),
        },
    }
}

/// Returns a refused schema without its faults, and a description of these, if it can then be used.
fn mended(schema: &Value) -> Option<(Value, Vec<&'static str>)> {
    let mut schema = schema.clone();
    let mut report = RewriteReport::default();
    if rewrite::drop_faults(&mut schema) {
        report.tell(MENDED);
    }
    rewrite::plain_patterns(&mut schema, &mut report);
    let is_usable =
        |schema: &Value| foreign::check(&schema.to_string(), &SchemaLimits::default()).is_ok();
    // A schema that names draft 4 has such flags by right.
    if !is_usable(&schema) && rewrite::write_out_exclusive(&mut schema) {
        report.tell(EXCLUSIVE);
    }
    let is_mended = !report.changes.is_empty() && is_usable(&schema);
    is_mended.then_some((schema, report.changes))
}
