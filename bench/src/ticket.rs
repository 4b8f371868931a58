//! The one ticket that every server looks up: the same record everywhere, which makes a bare answer of 600 bytes.

use serde_json::{Value, json};

pub const ID: &str = "T-1001";
pub const TOOL: &str = "lookup_ticket";
pub const TITLE: &str = "Printer on floor 3 is out of toner";
pub const ASSIGNEE: &str = "dana@example.com";
pub const TAGS: &str = r#"["hardware","office"]"#;

pub fn description() -> String {
    "x".repeat(304)
}

/// The record as JSON.
pub fn record(id: &str) -> String {
    format!(
        r#"{{"ticket_id":"{id}","title":"{TITLE}","status":"open","priority":"high","assignee":"{ASSIGNEE}","tags":{TAGS},"description":"{}"}}"#,
        description()
    )
}

/// As many as any agent could ask; limits are set and counted, and none is reached.
pub const RATE: &str = "1000000/s";

/// A tool that looks one up.
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
