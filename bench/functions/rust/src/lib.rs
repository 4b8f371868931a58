//! Answers one ticket at once, as a typed function: measured for what a call of a function costs. The functions beside
//! it, in JavaScript and in Python, answer the same.

use weir_plugin_sdk::{data, tool};

const DESCRIPTION_CHARS: usize = 304;

/// A ticket of the support desk, equal to the record of `bench/src/ticket.rs`.
#[data]
struct Ticket {
    ticket_id: String,
    title: String,
    status: String,
    priority: String,
    assignee: String,
    tags: Vec<String>,
    description: String,
}

/// Look a ticket up by its id
#[tool(read_only)]
fn lookup_ticket(
    /// Ticket id, for example T-1001
    #[arg(pattern = "^T-[0-9]{1,9}$")]
    ticket_id: String,
) -> Ticket {
    Ticket {
        ticket_id,
        title: "Printer on floor 3 is out of toner".to_owned(),
        status: "open".to_owned(),
        priority: "high".to_owned(),
        assignee: "dana@example.com".to_owned(),
        tags: vec!["hardware".to_owned(), "office".to_owned()],
        description: "x".repeat(DESCRIPTION_CHARS),
    }
}

weir_plugin_sdk::export!(tools: lookup_ticket);
