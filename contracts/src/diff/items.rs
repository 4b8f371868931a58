//! Compares prompts, resources and resource templates: additions, removals, and changed members.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value, json};

use super::{DiffReport, rule::ToolRule};
use crate::{
    contract::{CompiledContract, ContractPrompt, PromptArgument},
    json::push_pointer,
    listed, name,
};

pub(super) fn compare(old: &CompiledContract, new: &CompiledContract, report: &mut DiffReport) {
    let prompt = |prompt: &Arc<ContractPrompt>| DiffEntry {
        key: prompt.name.clone(),
        texts: json!([prompt.title, prompt.description]),
        rest: json!([prompt.own_name, prompt.listed]),
        arguments: prompt.arguments.clone(),
    };
    kind(
        "prompts",
        old.prompts.iter().map(prompt),
        new.prompts.iter().map(prompt),
        report,
    );
    let item = |key: &str,
                name: &str,
                title: &Option<String>,
                description: &Option<String>,
                listed: &Map<String, Value>| {
        DiffEntry {
            key: key.to_owned(),
            texts: json!([name, title, description]),
            rest: json!(listed),
            arguments: Vec::new(),
        }
    };
    let resources = |contract: &CompiledContract| -> Vec<DiffEntry> {
        contract
            .resources
            .iter()
            .map(|it| item(&it.uri, &it.name, &it.title, &it.description, &it.listed))
            .collect()
    };
    kind("resources", resources(old), resources(new), report);
    let templates = |contract: &CompiledContract| -> Vec<DiffEntry> {
        let templates = contract.templates.iter();
        let pinned = templates.map(|it| {
            item(
                &it.uri_template,
                &it.name,
                &it.title,
                &it.description,
                &it.listed,
            )
        });
        // The texts of these templates are the tool's.
        let records = contract
            .tools
            .iter()
            .filter_map(|tool| listed::record_template("", tool));
        let records = records.map(|(argument, template)| DiffEntry {
            key: template["uriTemplate"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            texts: Value::Null,
            rest: json!([template["name"], argument]),
            arguments: Vec::new(),
        });
        pinned.chain(records).collect()
    };
    kind("templates", templates(old), templates(new), report);
    let live = |contract: &CompiledContract| contract.live_resources.then(live_resources);
    kind("resources", live(old), live(new), report);
}

/// The lists of a document other than its tools, each with the member by which clients identify its items.
pub(super) const DOCUMENT_LISTS: [(&str, &str); 3] = [
    ("prompts", "name"),
    ("resources", "uri"),
    ("resourceTemplates", "uriTemplate"),
];

/// Compares the lists that both documents have. An entry that cannot be read is left out.
pub(super) fn compare_documents(old: &Value, new: &Value, report: &mut DiffReport) {
    for (list, key) in DOCUMENT_LISTS {
        let states = |document: &Value| {
            document[list].is_array()
                || document.get("contract").is_some_and(|name| !name.is_null())
        };
        if states(old) && states(new) {
            let entries = |document: &Value| -> Vec<DiffEntry> {
                let items = document[list].as_array().into_iter().flatten();
                items.filter_map(|item| listed_entry(item, key)).collect()
            };
            kind(list, entries(old), entries(new), report);
        }
    }
}

/// Reads an item as a server lists it.
fn listed_entry(item: &Value, key: &str) -> Option<DiffEntry> {
    let mut rest = item.as_object()?.clone();
    let name = rest.remove(key)?.as_str()?.to_owned();
    let texts = ["name", "title", "description"].map(|text| rest.remove(text));
    // It is the current length of a resource.
    rest.remove("size");
    let arguments = rest.remove("arguments").unwrap_or_default();
    let arguments = arguments.as_array().into_iter().flatten();
    let arguments = arguments.filter_map(|argument| {
        let text = |member: &str| argument[member].as_str().map(str::to_owned);
        Some(PromptArgument {
            name: text("name")?,
            title: text("title"),
            description: text("description"),
            required: argument["required"] == true,
        })
    });
    let arguments = arguments.collect();
    Some(DiffEntry {
        key: name,
        texts: json!(texts),
        rest: rest.into(),
        arguments,
    })
}

/// Returns the resources that change on their own, as one item.
fn live_resources() -> DiffEntry {
    let key = "resources that come and go".to_owned();
    DiffEntry {
        key,
        texts: Value::Null,
        rest: Value::Null,
        arguments: Vec::new(),
    }
}

struct DiffEntry {
    /// The name or URI by which clients identify the item.
    key: String,
    texts: Value,
    rest: Value,
    arguments: Vec<PromptArgument>,
}

fn kind(
    place: &str,
    old: impl IntoIterator<Item = DiffEntry>,
    new: impl IntoIterator<Item = DiffEntry>,
    report: &mut DiffReport,
) {
    let new: Vec<DiffEntry> = new.into_iter().collect();
    let mut came: HashMap<&str, &DiffEntry> =
        new.iter().map(|item| (item.key.as_str(), item)).collect();
    let path = |key: &str| {
        let mut path = format!("/{place}");
        push_pointer(&mut path, key);
        path
    };
    for was in old {
        let Some(is) = came.remove(was.key.as_str()) else {
            let reason = format!("{} was removed", name::quoted(&was.key));
            report.note(
                ToolRule::ItemRemoved,
                None,
                path(&was.key),
                (json!(was.key), Value::Null),
                reason,
            );
            continue;
        };
        for (rule, before, after, what) in [
            (
                ToolRule::ItemTextChanged,
                &was.texts,
                &is.texts,
                "is described otherwise",
            ),
            (
                ToolRule::ItemChanged,
                &was.rest,
                &is.rest,
                "is another, or listed otherwise",
            ),
        ] {
            if before != after {
                let reason = format!("{} {what}", name::quoted(&was.key));
                report.note(
                    rule,
                    None,
                    path(&was.key),
                    (before.clone(), after.clone()),
                    reason,
                );
            }
        }
        arguments(&path(&was.key), &was.arguments, &is.arguments, report);
    }
    for is in new
        .iter()
        .filter(|item| came.contains_key(item.key.as_str()))
    {
        let reason = format!("{} was added", name::quoted(&is.key));
        report.note(
            ToolRule::ItemAdded,
            None,
            path(&is.key),
            (Value::Null, json!(is.key)),
            reason,
        );
    }
}

fn arguments(place: &str, old: &[PromptArgument], new: &[PromptArgument], report: &mut DiffReport) {
    let mut note = |rule: ToolRule, name: &str, change: (Value, Value), what: &str| {
        let mut path = format!("{place}/arguments");
        push_pointer(&mut path, name);
        report.note(
            rule,
            None,
            path,
            change,
            format!("the argument {} {what}", name::quoted(name)),
        );
    };
    let named = |arguments: &[PromptArgument], name: &str| {
        arguments
            .iter()
            .find(|argument| argument.name == name)
            .cloned()
    };
    for was in old {
        let Some(is) = named(new, &was.name) else {
            note(
                ToolRule::PromptArgumentRemoved,
                &was.name,
                (json!(was), Value::Null),
                "was removed",
            );
            continue;
        };
        match (was.required, is.required) {
            (false, true) => note(
                ToolRule::PromptArgumentRequired,
                &was.name,
                (json!(was), json!(is)),
                "has to be there",
            ),
            (true, false) => note(
                ToolRule::PromptArgumentAdded,
                &was.name,
                (json!(was), json!(is)),
                "may be absent",
            ),
            _ => {}
        }
        if (&was.title, &was.description) != (&is.title, &is.description) {
            note(
                ToolRule::ItemTextChanged,
                &was.name,
                (json!(was), json!(is)),
                "is described otherwise",
            );
        }
    }
    for is in new
        .iter()
        .filter(|argument| named(old, &argument.name).is_none())
    {
        let rule = if is.required {
            ToolRule::PromptArgumentRequired
        } else {
            ToolRule::PromptArgumentAdded
        };
        note(rule, &is.name, (Value::Null, json!(is)), "was added");
    }
}
