//! One call into a guest, from taking up an instance to the end of it, within the caller's deadline.

use std::{future::pending, sync::Arc, time::Instant};

use wasmtime::{PoolConcurrencyLimitError, Trap};

use crate::{
    AdapterFailure, Change, CollectionRef, GuestError, Page, Query,
    admission::overloaded,
    bindings::v0_1::weir::plugin::types,
    guest::{Call, Stop},
    instance::Instance,
    plugin::Generation,
};

/// Error texts of a guest are shown to callers and logged: not without end.
const ERROR_MAX_CHARS: usize = 1_000;

/// What the guest is asked.
pub(crate) enum Ask<'a> {
    Describe { adapter: &'a str, settings: &'a str },
    Read { collection: &'a CollectionRef, query: &'a Query },
    Write { collection: &'a CollectionRef, change: &'a Change },
}

/// What it answered.
pub(crate) enum Told {
    Text(String),
    Page(Page),
}

/// Runs the call in `instance`, made here when there is none. Afterwards it is to be kept only if the guest answered.
pub(crate) async fn run(
    generation: &Generation,
    instance: &mut Option<Instance>,
    call: Call,
    ask: &Ask<'_>,
) -> Result<Told, AdapterFailure> {
    let cancel = call.cancel.clone();
    let writes = Arc::clone(&call.writes);
    let deadline = call.deadline;
    if deadline <= Instant::now() {
        return Err(AdapterFailure::Timeout);
    }
    let cancelled = async {
        match cancel {
            Some(cancel) => cancel.cancelled().await,
            None => pending().await,
        }
        if writes.handed_over() {
            pending::<()>().await;
        }
    };
    // Leaving this `select` drops the guest where it stands: at a host call or at its last tick.
    let answer = tokio::select! {
        biased;
        answer = ask_guest(generation, instance, call, ask) => answer,
        () = cancelled => return Err(AdapterFailure::Cancelled),
        () = tokio::time::sleep_until(deadline.into()) => return Err(AdapterFailure::Timeout),
    };
    let memory_refused = instance.as_ref().is_some_and(Instance::memory_refused);
    match answer {
        Ok(Ok(told)) => result_fits(told, generation.profile.limits.result_max_bytes),
        Ok(Err(error)) => Err(AdapterFailure::Guest(guest_error(error))),
        Err(error) => Err(failure(&error, memory_refused, generation)),
    }
}

async fn ask_guest(
    generation: &Generation,
    slot: &mut Option<Instance>,
    call: Call,
    ask: &Ask<'_>,
) -> wasmtime::Result<Result<Told, types::Error>> {
    let instance = match slot {
        Some(instance) => {
            instance.begin(call);
            instance
        }
        None => slot.insert(Instance::new(&generation.code, generation.size, &generation.profile, call).await?),
    };
    let told = match *ask {
        Ask::Describe { adapter, settings } => instance.describe(adapter, settings).await?.map(Told::Text),
        Ask::Read { collection, query } => instance.read(collection, query).await?.map(Told::Page),
        Ask::Write { collection, change } => instance.write(collection, change).await?.map(Told::Text),
    };
    instance.end();
    Ok(told)
}

pub(crate) fn result_fits(told: Told, max: usize) -> Result<Told, AdapterFailure> {
    let size = match &told {
        Told::Text(text) => text.len(),
        Told::Page(page) => page.records.len() + page.next.as_ref().map_or(0, String::len),
    };
    if size > max {
        return Err(AdapterFailure::Failed(format!("it answered {size} bytes; at most {max}")));
    }
    Ok(told)
}

fn guest_error(error: types::Error) -> GuestError {
    GuestError {
        code: short(error.code),
        message: short(error.message),
        field: error.field.map(short),
        retry_after_ms: error.retry_after_ms,
        details: error.details.map(short),
    }
}

fn short(text: String) -> String {
    if text.chars().nth(ERROR_MAX_CHARS).is_none() {
        return text;
    }
    text.chars().take(ERROR_MAX_CHARS).chain(['…']).collect()
}

/// One line for the log: what ended the guest.
pub(crate) fn failure(error: &wasmtime::Error, memory_refused: bool, generation: &Generation) -> AdapterFailure {
    if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
        return overloaded();
    }
    AdapterFailure::Failed(reason(error, memory_refused, generation.profile.limits.memory_max))
}

pub(crate) fn reason(error: &wasmtime::Error, memory_refused: bool, memory_max: usize) -> String {
    if memory_refused {
        return format!("it ran out of memory (at most {} MB)", memory_max >> 20);
    }
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return stop.to_string();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => "it panicked (wasm trap: unreachable)".into(),
        Some(trap) => format!("wasm trap: {trap}"),
        None => short(format!("{error:#}")),
    }
}

impl<'a> Ask<'a> {
    /// None for a describe.
    pub(crate) fn collection(&self) -> Option<&'a CollectionRef> {
        match self {
            Self::Describe { .. } => None,
            Self::Read { collection, .. } | Self::Write { collection, .. } => Some(collection),
        }
    }

    pub(crate) fn is_describe(&self) -> bool {
        matches!(self, Self::Describe { .. })
    }

    /// Bytes handed to the guest.
    pub(crate) fn size(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Describe { adapter, settings } => adapter.len() + settings.len(),
            Self::Read { query, .. } => {
                let conditions = query.conditions.iter().map(|c| c.column.len() + c.comparison.len() + c.value.len());
                let names = query.order.iter().chain(query.columns.iter()).map(String::len);
                conditions.chain(names).sum::<usize>() + optional(&query.cursor) + optional(&query.options)
            }
            Self::Write { change, .. } => {
                change.verb.len() + optional(&change.key) + optional(&change.record) + optional(&change.options)
            }
        }
    }
}
