//! Sends spans in a separate thread: the queue is bounded, and a collector that does not answer delays nothing.

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{Resource, trace::SpanExporter as _};
use parking_lot::{Condvar, Mutex};
use weir_connections::http::{HttpConnection, HttpLimits};

use super::{
    SpanIds, TraceFault,
    spans::{self, EndedTrace},
};

/// The most calls that wait to be sent.
const QUEUE_MAX: usize = 2048;
/// The most calls in one request.
const BATCH_MAX: usize = 256;
/// The time after which fewer than that are sent.
const DELAY: Duration = Duration::from_secs(1);
const TIMEOUT_MS: u64 = 10_000;
const ANSWER_MAX_BYTES: u64 = 64 << 10;

/// Calls whose spans are not sent yet.
#[derive(Default)]
pub(super) struct SpanQueue {
    waiting: Mutex<WaitingSpans>,
    changed: Condvar,
    /// Set while no more calls can wait: the spans of a call are then not even made.
    is_full: AtomicBool,
    sent: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

#[derive(Default)]
struct WaitingSpans {
    calls: Vec<(SpanIds, EndedTrace)>,
    is_ending: bool,
    has_ended: bool,
}

/// Starts the thread.
pub(super) fn start(
    endpoint: String,
    headers: HashMap<String, String>,
) -> Result<Arc<SpanQueue>, TraceFault> {
    let fault = |message: String| TraceFault {
        place: "/traces",
        message,
    };
    let collector = CollectorClient {
        endpoint: endpoint.clone(),
        connection: OnceLock::new(),
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(collector)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint)
        .with_headers(headers)
        .build();
    let mut exporter = exporter.map_err(|error| fault(error.to_string()))?;
    exporter.set_resource(&resource());
    let queue = Arc::<SpanQueue>::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| fault(error.to_string()))?;
    let own = queue.clone();
    std::thread::Builder::new()
        .name("weir-traces".to_owned())
        .spawn(move || send(&own, &exporter, &runtime))
        .map_err(|error| fault(error.to_string()))?;
    Ok(queue)
}

/// Returns the resource of the spans. OpenTelemetry's environment variables are read here.
fn resource() -> Resource {
    let named = |resource: &Resource| {
        let name = resource.get(&"service.name".into());
        name.is_some_and(|name| !name.as_str().starts_with("unknown_service"))
    };
    let builder = || {
        Resource::builder().with_attribute(opentelemetry::KeyValue::new(
            "service.version",
            env!("CARGO_PKG_VERSION"),
        ))
    };
    let resource = builder().build();
    if named(&resource) {
        return resource;
    }
    builder().with_service_name("weir").build()
}

fn send(queue: &SpanQueue, exporter: &SpanExporter, runtime: &tokio::runtime::Runtime) {
    let mut is_failing = false;
    loop {
        let (calls, is_ending) = queue.take();
        for batch in calls.chunks(BATCH_MAX) {
            let mut spans = Vec::with_capacity(batch.len() * 7);
            for (ids, call) in batch {
                spans::add(&mut spans, ids, call);
            }
            let count = batch.len() as u64;
            match runtime.block_on(exporter.export(spans)) {
                Ok(()) => {
                    queue.sent.fetch_add(count, Ordering::Relaxed);
                    is_failing = false;
                }
                Err(error) => {
                    queue.failed.fetch_add(count, Ordering::Relaxed);
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(
                            "traces cannot be sent and are dropped until they can: {error}"
                        );
                    }
                }
            }
        }
        if is_ending {
            queue.waiting.lock().has_ended = true;
            queue.changed.notify_all();
            return;
        }
    }
}

impl SpanQueue {
    pub(super) fn put(&self, ids: SpanIds, ended: impl FnOnce() -> EndedTrace) {
        if self.is_full.load(Ordering::Relaxed) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let call = ended();
        let mut waiting = self.waiting.lock();
        if waiting.calls.len() >= QUEUE_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.calls.push((ids, call));
        let count = waiting.calls.len();
        if count == QUEUE_MAX {
            self.is_full.store(true, Ordering::Relaxed);
        }
        drop(waiting);
        // Between the two, the thread waits for the next time.
        if count == 1 || count == BATCH_MAX {
            self.changed.notify_all();
        }
    }

    /// Waits for calls, and then for more of them.
    fn take(&self) -> (Vec<(SpanIds, EndedTrace)>, bool) {
        let mut waiting = self.waiting.lock();
        self.changed.wait_while(&mut waiting, |waiting| {
            waiting.calls.is_empty() && !waiting.is_ending
        });
        let until = Instant::now() + DELAY;
        while waiting.calls.len() < BATCH_MAX && !waiting.is_ending {
            if self.changed.wait_until(&mut waiting, until).timed_out() {
                break;
            }
        }
        self.is_full.store(false, Ordering::Relaxed);
        (std::mem::take(&mut waiting.calls), waiting.is_ending)
    }

    pub(super) fn end(&self, within: Duration) {
        let mut waiting = self.waiting.lock();
        waiting.is_ending = true;
        self.changed.notify_all();
        let until = Instant::now() + within;
        while !waiting.has_ended {
            if self.changed.wait_until(&mut waiting, until).timed_out() {
                return;
            }
        }
    }

    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        [
            ("sent", &self.sent),
            ("dropped", &self.dropped),
            ("failed", &self.failed),
        ]
        .map(|(word, count)| (word, count.load(Ordering::Relaxed)))
    }
}

/// The collector, reached under the rules for web services: no redirects, no proxy from the environment, and a bounded answer.
struct CollectorClient {
    endpoint: String,
    /// Created from the first request, whose headers all requests share.
    connection: OnceLock<HttpConnection>,
}

impl CollectorClient {
    async fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let connection = match self.connection.get() {
            Some(connection) => connection,
            None => {
                let headers = request.headers().iter();
                let headers: Vec<_> = headers
                    .filter_map(|(name, value)| {
                        Some((name.to_string(), value.to_str().ok()?.to_owned()))
                    })
                    .collect();
                let limits = HttpLimits::new(Some(TIMEOUT_MS), Some(ANSWER_MAX_BYTES));
                let made = HttpConnection::new(&self.endpoint, &headers, None, true, limits)?;
                self.connection.get_or_init(|| made)
            }
        };
        let request = weir_connections::http::HttpRequest {
            method: "POST".to_owned(),
            path: String::new(),
            query: Vec::new(),
            query_encoded: None,
            headers: Vec::new(),
            trace: None,
            body: Some(request.into_body().into()),
        };
        let deadline = Instant::now() + Duration::from_millis(TIMEOUT_MS);
        let answer = connection.send(request, deadline).await;
        let answer = answer.map_err(|error| error.to_string())?;
        Ok(Response::builder()
            .status(answer.status)
            .body(answer.body.into())?)
    }
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CollectorClient")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// The trait is declared with `async_trait`; this is the expansion of that macro.
impl HttpClient for CollectorClient {
    fn send_bytes<'c, 'a>(
        &'c self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>
    where
        'c: 'a,
        Self: 'a,
    {
        Box::pin(self.post(request))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_waits_is_bounded_and_what_is_dropped_counted() {
        let queue = SpanQueue::default();
        let ids = SpanIds {
            trace: 1,
            call: 2,
            target: 3,
            parent: None,
            link: None,
        };
        let call = || EndedTrace {
            method: "tools/call",
            name: None,
            contract: None,
            agent: "ann".into(),
            call_id: "c_1".into(),
            transport: "http",
            protocol: "none",
            code: None,
            is_of_upstream: false,
            stages: [None; 6],
            ended: SystemTime::now(),
        };
        (0..QUEUE_MAX + 5).for_each(|_| queue.put(ids, call));
        assert_eq!(queue.counts(), [("sent", 0), ("dropped", 5), ("failed", 0)]);
        assert_eq!(queue.take().0.len(), QUEUE_MAX);
        queue.put(ids, call);
        let waiting = queue.waiting.lock().calls.len();
        assert_eq!(waiting, 1, "there is room again");
        queue.end(Duration::from_millis(1));
    }
}
