//! Answers one ticket at once, without a source: used to measure the cost of a call into a guest.

use std::borrow::Cow;

use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::{Adapter, Error, Page, Query, Shape, Value, serde_json};

/// Equal to the record that `bench/src/ticket.rs` serves without a guest.
const SHAPE: &str = r#"{"name":"tickets","fields":[{"key":"ticket_id","type":"string"},{"key":"title","type":"string"},{"key":"status","type":"string"},{"key":"priority","type":"string"},{"key":"assignee","type":"string"},{"key":"tags","type":"list","items":{"key":"tag","type":"string"}},{"key":"description","type":"string"}],"key":["ticket_id"],"capabilities":{"read":true,"matches":{"*":["equals"]}}}"#;
const DESCRIPTION_CHARS: usize = 304;

pub struct Ticket;

impl Adapter for Ticket {
    const NAME: &'static str = "ticket";

    fn settings_schema() -> serde_json::Value {
        serde_json::json!({ "type": "object" })
    }

    fn describe(_settings: &str) -> Result<Shape, Error> {
        Shape::parse(SHAPE)
    }

    fn open(_settings: &str, _shape: &Shape) -> Result<Self, Error> {
        Ok(Self)
    }

    fn read(&self, query: &Query) -> Result<Page, Error> {
        let id = query
            .conditions
            .iter()
            .find(|condition| condition.column == "ticket_id");
        let Some(id) = id.and_then(|condition| condition.value.as_str()) else {
            return Err(Error::invalid("A ticket is asked for by its id.").field("ticket_id"));
        };
        let text = |text| Value::Text(Cow::Borrowed(text));
        let description = "x".repeat(DESCRIPTION_CHARS);
        let mut records = Records::new();
        records.push([
            ("ticket_id", text(id)),
            ("title", text("Printer on floor 3 is out of toner")),
            ("status", text("open")),
            ("priority", text("high")),
            ("assignee", text("dana@example.com")),
            (
                "tags",
                Value::Json(Cow::Borrowed(r#"["hardware","office"]"#)),
            ),
            ("description", text(&description)),
        ]);
        Ok(Page {
            records: records.finish(),
            next: None,
        })
    }
}

weir_plugin_sdk::export!(Ticket);
