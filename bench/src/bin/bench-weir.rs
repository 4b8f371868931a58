//! `weir` with one more adapter, `noop`, that answers at once: the call path itself is what remains to be measured.

use std::{future::ready, process::ExitCode, sync::Arc};

use weir_bench::ticket;
use weir_plugin_host::{
    CallContext, Change, CollectionRef, GuestError, Page, Query,
    native::{self, Answered, NativeAdapter},
};

/// As in `weir`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SHAPE: &str = r#"{"name":"tickets","fields":[{"key":"ticket_id","type":"string"},{"key":"title","type":"string"},{"key":"status","type":"string"},{"key":"priority","type":"string"},{"key":"assignee","type":"string"},{"key":"tags","type":"list","items":{"key":"tag","type":"string"}},{"key":"description","type":"string"}],"key":["ticket_id"],"capabilities":{"read":true,"matches":{"*":["equals"]}}}"#;

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

fn main() -> ExitCode {
    native::install(Arc::new(Noop { records: format!("[{}]", ticket::record(ticket::ID)) }));
    weir::cli::main(&[])
}
