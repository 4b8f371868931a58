//! The ticket that every server looks up: the same record everywhere, which makes a bare answer of 600 bytes.

use std::collections::BTreeMap;

use anyhow::anyhow;
use serde_json::{Value, json};
use weir_contracts::{CompiledContract, compile, compiled_document, form};

/// The shape that an adapter gives to the collection of tickets.
pub const SHAPE: &str = r#"{"name":"tickets","fields":[{"key":"ticket_id","type":"string"},{"key":"title","type":"string"},{"key":"status","type":"string"},{"key":"priority","type":"string"},{"key":"assignee","type":"string"},{"key":"tags","type":"list","items":{"key":"tag","type":"string"}},{"key":"description","type":"string"}],"key":["ticket_id"],"capabilities":{"read":true,"matches":{"*":["equals"]}}}"#;

pub const ID: &str = "T-1001";
pub const TOOL: &str = "lookup_ticket";
pub const TITLE: &str = "Printer on floor 3 is out of toner";
pub const ASSIGNEE: &str = "dana@example.com";
pub const TAGS: &str = r#"["hardware","office"]"#;

/// Returns a text of 304 characters, which fills the answer up to 600 bytes.
pub fn description() -> String {
    "x".repeat(304)
}

/// Returns the record as JSON.
pub fn record(id: &str) -> String {
    format!(
        r#"{{"ticket_id":"{id}","title":"{TITLE}","status":"open","priority":"high","assignee":"{ASSIGNEE}","tags":{TAGS},"description":"{}"}}"#,
        description()
    )
}

/// The rate: as many calls as any agent could make. Limits are set and counted, and none is reached.
pub const RATE: &str = "1000000/s";

/// Returns a tool that looks up a ticket.
pub fn tool(name: &str) -> Value {
    json!({
        "tool": name,
        "title": "Look up a ticket",
        "description": "Look a ticket up by its id",
        "verb": "lookup",
        "collection": "tickets",
        "limits": { "rate": RATE, "timeout_ms": 2000 },
        "fields": [
            { "name": "ticket_id", "type": "text", "required": true, "pattern": "^T-[0-9]{1,9}$",
              "help": "Ticket id, for example T-1001" },
            { "name": "status", "type": "dropdown", "choices": ["open", "pending", "closed"] },
            { "name": "assignee", "type": "text", "max_length": 80 },
        ],
    })
}

/// Returns a contract of such tools over the adapter.
pub fn contract(name: &str, adapter: &str, settings: &Value, tools: &[String]) -> Value {
    json!({
        "contract": name,
        "title": "Support desk",
        "description": "Tickets of the support desk.",
        "collections": { "tickets": {
            "adapter": adapter, "settings": settings, "key": ["ticket_id"],
            "columns": ["ticket_id", "title", "status", "priority", "assignee", "tags", "description"],
        } },
        "tools": tools.iter().map(|name| tool(name)).collect::<Vec<_>>(),
    })
}

/// Returns the tool as Weir lists it, for servers whose list is measured against Weir's.
pub fn listed() -> anyhow::Result<Value> {
    Ok(compiled_document(&compiled(&[TOOL.to_owned()])?)["tools"][0].take())
}

/// Returns the contract over the adapter of the process itself.
pub fn compiled(tools: &[String]) -> anyhow::Result<CompiledContract> {
    let text = contract("support-0", "noop", &json!({}), tools).to_string();
    let shapes = BTreeMap::from([("tickets".to_owned(), serde_json::from_str(SHAPE)?)]);
    let refused = |problems| anyhow!("{problems:?}");
    compile::compile(
        &form::read("support-0.json", &text).map_err(refused)?,
        &shapes,
    )
    .map_err(refused)
}
