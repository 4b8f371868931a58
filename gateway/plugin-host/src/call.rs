//! Makes one call into a guest, from taking an instance to the end of the call, within the caller's deadline.

use std::{
    future::{Future, pending, poll_fn},
    mem,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Instant,
};

use wasmtime::{PoolConcurrencyLimitError, Trap};
use weir_admission::OverloadError;
use weir_text::shorten;

use crate::{
    AdapterChange, AdapterCondition, AdapterFailure, AdapterPage, AdapterQuery, AdapterSummaryPage,
    AdapterSummaryQuery, BoundReached, CollectionRef, GuestError, ToolAnswer, ToolInvocation,
    ToolRef, background,
    bindings::v0_1::weir::plugin::{answers, types},
    config::DESCRIBE_TIMES,
    engine::EngineSize,
    guest::{GuestCall, GuestMeter, GuestProfile, GuestStop},
    instance::{Answer, PluginInstance},
    plugin::{PluginCode, PluginGeneration},
};

/// Error texts of a guest are shown to callers and logged: not without end.
const ERROR_MAX_CHARS: usize = 1_000;

/// The request to the guest. It owns its data, since a call may continue in another thread.
pub(crate) enum GuestRequest {
    Describe {
        adapter: Arc<str>,
        settings: Arc<str>,
    },
    Read {
        collection: CollectionRef,
        query: Arc<AdapterQuery>,
    },
    Summarize {
        collection: CollectionRef,
        query: Arc<AdapterSummaryQuery>,
    },
    Write {
        collection: CollectionRef,
        change: Arc<AdapterChange>,
    },
    /// A call of a tool. `context` is the tool's information about the call, as JSON.
    Call {
        tool: ToolRef,
        invocation: Arc<ToolInvocation>,
        context: String,
    },
}

/// The guest's answer.
pub(crate) enum GuestReply {
    Text(String),
    Page(AdapterPage),
    Summary(AdapterSummaryPage),
    Answer(ToolAnswer),
}

/// Runs the call in `instance`, created here if there is none. Afterwards it is to be kept only if the guest answered.
pub(crate) async fn run(
    generation: &PluginGeneration,
    instance: &mut Option<PluginInstance>,
    mut call: GuestCall,
    ask: GuestRequest,
) -> Result<GuestReply, AdapterFailure> {
    if ask.is_describe() {
        call.cpu_max *= DESCRIBE_TIMES;
    }
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
    let meter = Arc::clone(&call.meter);
    let (code, profile) = (
        Arc::clone(&generation.code),
        Arc::clone(&generation.profile),
    );
    let asked = Box::pin(ask_guest(
        code,
        generation.size,
        profile,
        instance.take(),
        call,
        ask,
    ));
    // Leaving this `select` stops the guest at once: at a host call or at its last tick.
    let (kept, answer) = tokio::select! {
        biased;
        answered = here_or_in_background(asked, &meter) => answered,
        () = cancelled => return Err(AdapterFailure::Cancelled),
        () = tokio::time::sleep_until(deadline.into()) => return Err(AdapterFailure::Timeout),
    };
    *instance = kept;
    let memory_refused = instance
        .as_ref()
        .is_some_and(PluginInstance::memory_refused);
    match answer {
        Ok(Ok(reply)) => result_fits(reply, generation.profile.limits.result_max_bytes)
            .map(|reply| masked(reply, &generation.profile)),
        Ok(Err(error)) => Err(AdapterFailure::Guest(guest_error(
            error,
            &generation.profile,
        ))),
        Err(error) => Err(failure(&error, memory_refused, generation)),
    }
}

/// The instance, unless there is none or it is lost, and what the guest answered.
type Answered = (Option<PluginInstance>, Answer<GuestReply>);

/// Moves a call that turns out to be busy away from the thread that serves.
async fn here_or_in_background(
    mut asked: Pin<Box<impl Future<Output = Answered> + Send + 'static>>,
    meter: &GuestMeter,
) -> Answered {
    let here = poll_fn(|context| match asked.as_mut().poll(context) {
        Poll::Ready(answered) => Poll::Ready(Some(answered)),
        Poll::Pending if meter.is_busy() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    match here.await {
        Some(answered) => answered,
        None => match background::run(asked).await {
            Some(answered) => answered,
            None => (None, Err(wasmtime::Error::msg("the host panicked"))),
        },
    }
}

async fn ask_guest(
    code: Arc<PluginCode>,
    size: EngineSize,
    profile: Arc<GuestProfile>,
    instance: Option<PluginInstance>,
    call: GuestCall,
    ask: GuestRequest,
) -> Answered {
    let meter = Arc::clone(&call.meter);
    let mut instance =
        match instance.and_then(|mut instance| instance.is_alive().then_some(instance)) {
            Some(mut instance) => {
                instance.begin(call);
                instance
            }
            None => match PluginInstance::new(&code, size, &profile, call).await {
                Ok(instance) => instance,
                Err(error) => return (None, Err(error)),
            },
        };
    let running = async {
        match &ask {
            GuestRequest::Describe { adapter, settings } => {
                instance.describe(adapter, settings).await.map(text)
            }
            GuestRequest::Read { collection, query } => instance
                .read(collection, query)
                .await
                .map(|result| result.map(GuestReply::Page)),
            GuestRequest::Summarize { collection, query } => instance
                .summarize(collection, query)
                .await
                .map(|result| result.map(GuestReply::Summary)),
            GuestRequest::Write { collection, change } => {
                instance.write(collection, change).await.map(text)
            }
            GuestRequest::Call {
                tool,
                invocation,
                context,
            } => instance
                .call(tool, invocation, context)
                .await
                .and_then(tool_answer),
        }
    };
    let answer = metered(&meter, running).await;
    if answer.is_ok() {
        instance.end();
    }
    (Some(instance), answer)
}

/// Pauses the meter while the guest waits in functions of WASI, which our own functions do not see.
async fn metered<T>(meter: &GuestMeter, running: impl Future<Output = T>) -> T {
    let mut running = pin!(running);
    let mut waits = false;
    poll_fn(move |context| {
        if mem::take(&mut waits) {
            meter.resume();
        }
        let polled = running.as_mut().poll(context);
        waits = polled.is_pending() && meter.is_running();
        if waits {
            meter.pause();
        }
        polled
    })
    .await
}

fn text(result: Result<String, types::Error>) -> Result<GuestReply, types::Error> {
    result.map(GuestReply::Text)
}

/// Reads a tool's answer. An answer of an unknown kind is a failure of the plugin.
fn tool_answer(result: Result<answers::Answer, types::Error>) -> Answer<GuestReply> {
    match result {
        Ok(answer) => ToolAnswer::read(answer)
            .map(|answer| Ok(GuestReply::Answer(answer)))
            .map_err(wasmtime::Error::msg),
        Err(error) => Ok(Err(error)),
    }
}

pub(crate) fn result_fits(reply: GuestReply, max: usize) -> Result<GuestReply, AdapterFailure> {
    let size = match &reply {
        GuestReply::Text(text) => text.len(),
        GuestReply::Page(page) => page.records.len() + page.next.as_ref().map_or(0, String::len),
        GuestReply::Summary(page) => page.records.len(),
        GuestReply::Answer(answer) => answer.size(),
    };
    if size > max {
        return Err(AdapterFailure::OverLimit(BoundReached {
            reason: format!("it answered {size} bytes (at most {max})"),
            setting: Some("result_max_bytes"),
        }));
    }
    Ok(reply)
}

/// Masks the credentials of web services that the guest may have read in their answers.
fn masked(reply: GuestReply, profile: &GuestProfile) -> GuestReply {
    let mask = |text: String| profile.masked(text);
    match reply {
        GuestReply::Text(text) => GuestReply::Text(mask(text)),
        GuestReply::Page(page) => GuestReply::Page(AdapterPage {
            records: mask(page.records),
            ..page
        }),
        GuestReply::Summary(page) => GuestReply::Summary(AdapterSummaryPage {
            records: mask(page.records),
            ..page
        }),
        GuestReply::Answer(ToolAnswer::Complete { value, content }) => {
            GuestReply::Answer(ToolAnswer::Complete {
                value: value.map(mask),
                content: content.map(mask),
            })
        }
        GuestReply::Answer(ToolAnswer::InputRequired { requests, state }) => {
            GuestReply::Answer(ToolAnswer::InputRequired {
                requests: mask(requests),
                state,
            })
        }
    }
}

fn guest_error(error: types::Error, profile: &GuestProfile) -> GuestError {
    let short = |text: String| shorten(&profile.masked(text), ERROR_MAX_CHARS).into_owned();
    GuestError {
        code: short(error.code),
        message: short(error.message),
        field: error.field.map(short),
        retry_after_ms: error.retry_after_ms,
        details: error.details.map(short),
    }
}

/// Returns one line for the log about what ended the guest.
pub(crate) fn failure(
    error: &wasmtime::Error,
    memory_refused: bool,
    generation: &PluginGeneration,
) -> AdapterFailure {
    if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
        return OverloadError::NOW.into();
    }
    let reason = reason(error, memory_refused, generation.profile.limits.memory_max);
    let setting = match error.downcast_ref::<GuestStop>() {
        _ if memory_refused => Some("memory_max_mb"),
        Some(stop) => stop.setting(),
        None => return AdapterFailure::Failed(reason),
    };
    AdapterFailure::OverLimit(BoundReached { reason, setting })
}

pub(crate) fn reason(error: &wasmtime::Error, memory_refused: bool, memory_max: usize) -> String {
    if memory_refused {
        return format!("it ran out of memory (at most {} MB)", memory_max >> 20);
    }
    if let Some(stop) = error.downcast_ref::<GuestStop>() {
        return stop.to_string();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => "it panicked (wasm trap: unreachable)".into(),
        Some(trap) => format!("wasm trap: {trap}"),
        None => shorten(&format!("{error:#}"), ERROR_MAX_CHARS).into_owned(),
    }
}

impl GuestRequest {
    /// Returns the collection or tool by which failures in a row are counted; `None` for a describe.
    pub(crate) fn key(&self) -> Option<&Arc<str>> {
        match self {
            Self::Describe { .. } => None,
            Self::Read { collection, .. }
            | Self::Summarize { collection, .. }
            | Self::Write { collection, .. } => Some(&collection.key),
            Self::Call { tool, .. } => Some(&tool.tool),
        }
    }

    pub(crate) fn is_describe(&self) -> bool {
        matches!(self, Self::Describe { .. })
    }

    /// Returns the bytes handed to the guest.
    pub(crate) fn size(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Describe { adapter, settings } => adapter.len() + settings.len(),
            Self::Read { query, .. } => {
                let conditions = query.conditions.iter().map(AdapterCondition::size);
                let names = query
                    .order
                    .iter()
                    .chain(query.columns.iter())
                    .map(String::len);
                conditions.chain(names).sum::<usize>()
                    + optional(&query.cursor)
                    + optional(&query.options)
            }
            Self::Summarize { query, .. } => query.size(),
            Self::Write { change, .. } => {
                change.verb.len()
                    + optional(&change.key)
                    + optional(&change.record)
                    + optional(&change.options)
            }
            Self::Call {
                invocation,
                context,
                ..
            } => invocation.arguments.len() + context.len() + optional(&invocation.resumed),
        }
    }
}
