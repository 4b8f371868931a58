//! The contract as YAML, to be read and edited by people.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use super::{document::ImportDocument, operation::ImportedOperation, text::sentence};
use crate::{
    draft::yaml::{flow, scalar},
    shape::OperationEffect,
};

pub(super) struct ImportHead<'d> {
    pub(super) name: &'d str,
    pub(super) document: &'d ImportDocument,
}

pub(super) fn contract(head: &ImportHead<'_>, operations: &[ImportedOperation]) -> String {
    let info = |key: &str| {
        head.document
            .get("info")
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let mut text = String::new();
    let _ = writeln!(text, "contract: {}", head.name);
    let title = sentence(&info("title").replace(['\n', '\r'], " "), 200);
    if !title.is_empty() {
        let _ = writeln!(text, "title: {}", scalar(&title));
    }
    let description = sentence(info("description"), 1_000);
    if !description.is_empty() {
        let _ = writeln!(text, "description: {}", scalar(&description));
    }
    let mut collections: BTreeMap<&str, Vec<&ImportedOperation>> = BTreeMap::new();
    for operation in operations {
        collections
            .entry(&operation.collection)
            .or_default()
            .push(operation);
    }
    text.push_str("collections:\n");
    for (name, operations) in collections {
        let _ = writeln!(text, "  {}:\n    adapter: rest", scalar(name));
        if operations
            .iter()
            .any(|operation| operation.effect != OperationEffect::Read)
        {
            text.push_str("    write: true\n");
        }
        let _ = writeln!(
            text,
            "    settings:\n      connection: {}\n      operations:",
            scalar(head.name)
        );
        for operation in operations {
            let _ = writeln!(
                text,
                "        {}: {}",
                scalar(&operation.tool),
                flow(&operation.settings)
            );
        }
    }
    text.push_str("tools:\n");
    for operation in operations {
        let _ = writeln!(text, "  - tool: {}", scalar(&operation.tool));
        if !operation.title.is_empty() {
            let _ = writeln!(text, "    title: {}", scalar(&operation.title));
        }
        let _ = writeln!(text, "    description: {}", scalar(&operation.description));
        let _ = writeln!(
            text,
            "    verb: call\n    collection: {}",
            scalar(&operation.collection)
        );
        let _ = writeln!(text, "    operation: {}", scalar(&operation.tool));
        match operation.fields.is_empty() {
            true => text.push_str("    fields: []\n"),
            false => {
                text.push_str("    fields:\n");
                for field in &operation.fields {
                    let _ = writeln!(text, "      - {}", flow(field));
                }
            }
        }
    }
    text
}
