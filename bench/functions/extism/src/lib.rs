//! The measured function as a plugin of Extism, as its author would write it for hyper-mcp: it reads its argument, makes
//! the same ticket as `bench/functions/rust`, and writes it as structured content and as text.

use extism_pdk::{FnResult, Json, plugin_fn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const DESCRIPTION_CHARS: usize = 304;

#[derive(Deserialize)]
struct ExtismInput {
    request: ExtismRequest,
}

#[derive(Deserialize)]
struct ExtismRequest {
    arguments: ExtismArguments,
}

#[derive(Deserialize)]
struct ExtismArguments {
    ticket_id: String,
}

/// A ticket of the support desk, equal to the record of `bench/src/ticket.rs`.
#[derive(Serialize)]
struct ExtismTicket {
    ticket_id: String,
    title: String,
    status: String,
    priority: String,
    assignee: String,
    tags: Vec<String>,
    description: String,
}

#[derive(Serialize)]
struct ExtismOutput {
    content: [ExtismText; 1],
    #[serde(rename = "structuredContent")]
    structured: ExtismTicket,
}

#[derive(Serialize)]
struct ExtismText {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}

fn lookup_ticket(ticket_id: String) -> ExtismTicket {
    ExtismTicket {
        ticket_id,
        title: "Printer on floor 3 is out of toner".to_owned(),
        status: "open".to_owned(),
        priority: "high".to_owned(),
        assignee: "dana@example.com".to_owned(),
        tags: vec!["hardware".to_owned(), "office".to_owned()],
        description: "x".repeat(DESCRIPTION_CHARS),
    }
}

/// Lists the one tool.
#[plugin_fn]
pub fn list_tools(_: String) -> FnResult<Json<Value>> {
    let ticket_id =
        json!({ "type": "string", "pattern": "^T-[0-9]{1,9}$", "description": "Ticket id, for example T-1001" });
    Ok(Json(json!({ "tools": [{
        "name": "lookup_ticket",
        "description": "Look a ticket up by its id",
        "inputSchema": { "type": "object", "properties": { "ticket_id": ticket_id }, "required": ["ticket_id"] },
    }] })))
}

/// Calls it. No other tool is listed, so the name is not looked at.
#[plugin_fn]
pub fn call_tool(Json(asked): Json<ExtismInput>) -> FnResult<Json<ExtismOutput>> {
    let structured = lookup_ticket(asked.request.arguments.ticket_id);
    let text = serde_json::to_string(&structured)?;
    Ok(Json(ExtismOutput { content: [ExtismText { kind: "text", text }], structured }))
}
