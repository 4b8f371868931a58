//! The adapter `noop`, part of the process: it answers the ticket at once, so that the call path itself is measured.

use std::{future::ready, sync::Arc};

use weir_plugin_host::{
    CallContext, Change, CollectionRef, GuestError, Page, Query,
    native::{Answered, NativeAdapter},
};

use crate::ticket;

/// What it says of its one collection.
pub const SHAPE: &str = r#"{"name":"tickets","fields":[{"key":"ticket_id","type":"string"},{"key":"title","type":"string"},{"key":"status","type":"string"},{"key":"priority","type":"string"},{"key":"assignee","type":"string"},{"key":"tags","type":"list","items":{"key":"tag","type":"string"}},{"key":"description","type":"string"}],"key":["ticket_id"],"capabilities":{"read":true,"matches":{"*":["equals"]}}}"#;

struct Noop {
    records: String,
}

impl NativeAdapter for Noop {
    fn name(&self) -> &str {
        "noop"
    }

    fn describe<'a>(&'a self, _settings: &'a str) -> Answered<'a, String> {
        Box::pin(ready(Ok(SHAPE.to_owned())))
    }

    fn read<'a>(&'a self, _: &'a CallContext, _: &'a CollectionRef, _: &'a Query) -> Answered<'a, Page> {
        Box::pin(ready(Ok(Page { records: self.records.clone(), next: None })))
    }

    fn write<'a>(&'a self, _: &'a CallContext, _: &'a CollectionRef, _: &'a Change) -> Answered<'a, String> {
        let error = GuestError {
            code: "denied".into(),
            message: "Nothing is kept here.".into(),
            field: None,
            retry_after_ms: None,
            details: None,
        };
        Box::pin(ready(Err(error)))
    }
}

/// To be installed before the gateway is made.
pub fn adapter() -> Arc<dyn NativeAdapter> {
    Arc::new(Noop { records: format!("[{}]", ticket::record(ticket::ID)) })
}
