//! The adapter `noop`, part of the process: it answers the ticket at once, so that the call path itself is measured.
//!
//! It is not in the library: the floor and the generator would be linked with a gateway they never run.

use std::{future::ready, sync::Arc};

use weir_bench::ticket;
use weir_plugin_host::{
    AdapterChange, AdapterPage, AdapterQuery, CallContext, CollectionRef, GuestError,
    native::{Answered, NativeAdapter},
};

struct NoopAdapter {
    records: String,
}

impl NativeAdapter for NoopAdapter {
    fn name(&self) -> &str {
        "noop"
    }

    fn describe<'a>(&'a self, _settings: &'a str) -> Answered<'a, String> {
        Box::pin(ready(Ok(ticket::SHAPE.to_owned())))
    }

    fn read<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a CollectionRef,
        _: &'a AdapterQuery,
    ) -> Answered<'a, AdapterPage> {
        Box::pin(ready(Ok(AdapterPage {
            records: self.records.clone(),
            next: None,
        })))
    }

    fn write<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a CollectionRef,
        _: &'a AdapterChange,
    ) -> Answered<'a, String> {
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

/// Returns the adapter, which is to be installed before the gateway is made.
pub(crate) fn adapter() -> Arc<dyn NativeAdapter> {
    Arc::new(NoopAdapter {
        records: format!("[{}]", ticket::record(ticket::ID)),
    })
}
