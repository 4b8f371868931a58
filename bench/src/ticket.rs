//! The one ticket that every server looks up: the same record everywhere, which makes a bare answer of 600 bytes.

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
