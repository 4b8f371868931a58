//! Reads or changes a collection through its adapter.

use std::sync::Arc;

use weir_plugin_host::{AdapterChange, CallContext, CollectionRef, PluginHost, WriteFailure};

use super::{CollectionAnswer, CollectionRequest, listing, related};
use crate::{
    call::{
        CallError, error::WriteOutcome, limits::CallPermit, record::CallRecord, target::ToolCall,
    },
    catalogue::CollectionTool,
};

/// Asks the adapter. A write continues when its caller leaves.
pub(in crate::call::target) async fn run<'r>(
    call: &ToolCall<'_>,
    target: &CollectionTool,
    request: &'r CollectionRequest,
    slot: CallPermit,
    record: &mut CallRecord,
) -> Result<CollectionAnswer<'r>, CallError> {
    let context = call.context(record);
    let host = call.gateway.host();
    match request {
        CollectionRequest::Read(request) => {
            let page = host.read(&context, &target.source, &request.query).await;
            let total = match (&page, &request.count) {
                (Ok(page), Some(count)) => {
                    listing::count_all(host, &context, &target.source, request, page, count)
                        .await
                        .map(Some)
                }
                _ => Ok(None),
            };
            let include = &request.include;
            let related = match &page {
                Ok(page) => related::read_related(host, &context, target, include, page).await,
                Err(_) => Ok(Vec::new()),
            };
            drop(slot);
            record.answered();
            Ok(CollectionAnswer::Page {
                request,
                page: page?,
                total: total?,
                related: related?,
            })
        }
        CollectionRequest::Summarize(query) => {
            let page = host.summarize(&context, &target.source, query).await;
            drop(slot);
            record.answered();
            Ok(CollectionAnswer::Summary(query, page?))
        }
        CollectionRequest::Write(change) => {
            let (host, source) = (host.clone(), target.source.clone());
            let write = write(host, slot, context, source, change.clone());
            record
                .wait_for_write(write)
                .await
                .map(CollectionAnswer::Record)
        }
    }
}

async fn write(
    host: Arc<PluginHost>,
    slot: CallPermit,
    context: CallContext,
    collection: CollectionRef,
    change: Arc<AdapterChange>,
) -> Result<String, CallError> {
    let written = host.write(&context, &collection, &change).await;
    drop(slot);
    written.map_err(write_failed)
}

/// Returns the error of a failed write. An adapter may write more than once: an error about the last write does not mean that the
/// source refused earlier ones.
fn write_failed(failure: WriteFailure) -> CallError {
    let error = CallError::from(failure.failure);
    match error.code {
        _ if failure.handed_over => error.outcome(WriteOutcome::Unknown),
        // A source that refused has written nothing.
        code if code.nothing_changed() => error,
        _ => error.outcome(WriteOutcome::None),
    }
}

#[cfg(test)]
mod tests {
    use weir_plugin_host::{AdapterFailure, GuestError};

    use super::*;

    #[test]
    fn a_write_that_a_source_has_taken_is_told_whatever_the_adapter_says() {
        for (code, handed_over, outcome) in [
            ("conflict", true, Some(WriteOutcome::Unknown)),
            ("conflict", false, None),
            ("unavailable", true, Some(WriteOutcome::Unknown)),
            ("unavailable", false, Some(WriteOutcome::None)),
        ] {
            let error = GuestError {
                code: code.to_owned(),
                message: "No.".to_owned(),
                field: None,
                retry_after_ms: Some(7),
                details: None,
            };
            let error = write_failed(WriteFailure {
                failure: AdapterFailure::Guest(error),
                handed_over,
            });
            assert_eq!(error.outcome, outcome, "{code} {handed_over}");
            assert_eq!(
                error.retry_after_ms.is_none(),
                handed_over,
                "{code}: an agent looks before it repeats"
            );
        }
    }
}
