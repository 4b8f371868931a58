//! The call into the adapter. A write handed to a source is never dropped: it runs in its own task.

use std::{sync::Arc, time::Instant};

use weir_plugin_host::{CallContext, Change, CollectionRef, Host, Page};

use super::{
    CallError, CallRequest, Code,
    arguments::{Ask, Input},
    error::WriteOutcome,
    limits::Slot,
    record::CallRecord,
};
use crate::{catalogue::CatalogueTool, gateway::Gateway, identity::Caller};

/// What the guest answered: not checked yet.
pub(super) enum Answer {
    Page(Page),
    Record(String),
}

pub(super) async fn run(
    gateway: &Gateway,
    slot: Slot,
    caller: &Caller,
    tool: &CatalogueTool,
    input: &Input,
    request: &CallRequest<'_>,
    record: &mut CallRecord,
) -> Result<Answer, CallError> {
    let Some(collection) = &tool.collection else {
        return Err(CallError::new(Code::Internal, "This tool is not bound to a collection."));
    };
    let timeout = tool.tool.limits.timeout_ms.map_or(gateway.timeout(), std::time::Duration::from_millis);
    let asked = record.asked().unwrap_or_else(Instant::now);
    let context = CallContext {
        tenant: caller.tenant.clone(),
        call_id: record.call_id().clone(),
        deadline: asked + request.timeout.map_or(timeout, |shorter| shorter.min(timeout)),
        cancel: request.cancel.clone(),
        progress: request.progress.clone(),
        ran_on: record.ran_on().clone(),
    };
    match &input.ask {
        Ask::Read(query) => {
            let page = gateway.host().read(&context, collection, query).await;
            drop(slot);
            record.answered();
            Ok(Answer::Page(page.map_err(CallError::from)?))
        }
        Ask::Write(change) => {
            let task = write(gateway.host().clone(), slot, context, collection.clone(), change.clone());
            record.wait_for_write(task).await.map(Answer::Record)
        }
    }
}

async fn write(
    host: Arc<Host>,
    slot: Slot,
    context: CallContext,
    collection: CollectionRef,
    change: Arc<Change>,
) -> Result<String, CallError> {
    let written = host.write(&context, &collection, &change).await;
    drop(slot);
    written.map_err(|failure| {
        let outcome = if failure.handed_over { WriteOutcome::Unknown } else { WriteOutcome::None };
        let error = CallError::from(failure.failure);
        // A source that answered "no" has said so: nothing was written.
        match error.code {
            Code::NotFound | Code::Conflict | Code::InvalidArguments | Code::WriteDisabled | Code::Forbidden => error,
            _ => error.outcome(outcome),
        }
    })
}
