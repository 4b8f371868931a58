//! Traces of calls, sent to a collector over OTLP. Off unless an endpoint is configured.
//!
//! A traced call gets its ids when it is opened, since they are passed to targets. Its spans are made when its record closes, by
//! a separate thread, from the marks that the metrics also use.

mod sampling;
mod sending;
mod settings;
mod spans;

use std::{
    hash::{BuildHasher as _, RandomState},
    path::Path,
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use weir_connections::http::TraceContext;

use self::{sampling::TraceSampler, sending::SpanQueue};
pub use self::{settings::TraceFault, spans::EndedTrace};
use crate::config;

/// The time for sending the last spans when the process ends.
const END_MAX: Duration = Duration::from_secs(1);

static STARTED: OnceLock<Arc<SpanQueue>> = OnceLock::new();

/// The sender of traces: which calls are traced, and where the spans go.
pub struct TraceSender {
    sampling: TraceSampler,
    queue: Arc<SpanQueue>,
}

/// The trace of a caller, from its `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RemoteSpan {
    trace: u128,
    span: u64,
    is_sampled: bool,
}

/// The trace of one call while it runs.
pub struct CallTrace {
    /// The trace for requests that the target sends to others.
    carried: Option<TraceContext>,
    /// Boxed, since most calls have none.
    sampled: Option<Box<SampledCall>>,
}

/// A call whose spans are to be sent.
struct SampledCall {
    ids: SpanIds,
    queue: Arc<SpanQueue>,
}

/// The ids of one call, which its spans will have.
#[derive(Clone, Copy, Debug)]
struct SpanIds {
    trace: u128,
    /// The span of the call.
    call: u64,
    /// The span of its target, which is the parent of the target's own requests.
    target: u64,
    parent: Option<RemoteSpan>,
    /// The trace of the HTTP request, if the message names a different one.
    link: Option<RemoteSpan>,
}

impl TraceSender {
    /// Starts the sender of spans. Returns `None` if no collector is configured.
    pub fn start(config: &config::TraceConfig, base: &Path) -> Result<Option<Self>, TraceFault> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let Some(settings) = settings::settle(config, base, &variable)? else {
            return Ok(None);
        };
        let queue = sending::start(settings.endpoint, settings.headers)?;
        let _ = STARTED.set(queue.clone());
        Ok(Some(Self {
            sampling: settings.sampling,
            queue,
        }))
    }

    /// Decides whether a call is traced. `parent` and `link` are well-formed as W3C writes a `traceparent`; `state` is the
    /// `tracestate` that came with the parent.
    pub fn open(&self, parent: Option<&str>, state: Option<&str>, link: Option<&str>) -> CallTrace {
        let state = state.map(Arc::from);
        let remote = parent.and_then(RemoteSpan::read);
        if !self
            .sampling
            .takes(remote.map(|remote| remote.is_sampled), random_bits)
        {
            return CallTrace {
                carried: parent.map(|parent| not_sampled(parent, state)),
                sampled: None,
            };
        }
        let ids = SpanIds {
            trace: remote.map_or_else(random_trace, |remote| remote.trace),
            call: random_bits(),
            target: random_bits(),
            parent: remote,
            link: link.and_then(RemoteSpan::read),
        };
        let carried = format!("00-{:032x}-{:016x}-01", ids.trace, ids.target);
        CallTrace {
            carried: Some(TraceContext {
                parent: carried.into(),
                state,
            }),
            sampled: Some(Box::new(SampledCall {
                ids,
                queue: self.queue.clone(),
            })),
        }
    }

    /// Returns how many calls were sent, dropped because too many waited, and dropped because the collector did not accept them.
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        self.queue.counts()
    }
}

impl CallTrace {
    /// Returns the trace for the requests of the target.
    pub fn carried(&self) -> Option<&TraceContext> {
        self.carried.as_ref()
    }

    /// Hands over the spans of a call, if it is traced.
    pub fn close(&self, ended: impl FnOnce() -> EndedTrace) {
        if let Some(sampled) = &self.sampled {
            sampled.queue.put(sampled.ids, ended);
        }
    }
}

impl RemoteSpan {
    fn read(text: &str) -> Option<Self> {
        let hex = |from: usize, to: usize| u128::from_str_radix(text.get(from..to)?, 16).ok();
        Some(Self {
            trace: hex(3, 35)?,
            span: u64::try_from(hex(36, 52)?).ok()?,
            is_sampled: hex(53, 55)? & 1 == 1,
        })
    }
}

/// Returns the trace of a call that is not traced here, without the sampled flag: other services follow this decision, so a
/// caller that exceeds its share of traces does not get them there either.
pub fn not_sampled(parent: &str, state: Option<Arc<str>>) -> TraceContext {
    let mut text = parent.to_owned();
    let flags = parent
        .get(53..55)
        .map(|flags| u8::from_str_radix(flags, 16));
    if let Some(Ok(flags)) = flags {
        text.replace_range(53..55, &format!("{:02x}", flags & !1));
    }
    TraceContext {
        parent: text.into(),
        state,
    }
}

/// Sends the remaining spans, within a second.
pub fn end() {
    if let Some(queue) = STARTED.get() {
        queue.end(END_MAX);
    }
}

/// Returns bits that callers cannot guess; never 0, which is not a valid id.
fn random_bits() -> u64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    KEY.hash_one(NEXT.fetch_add(1, Ordering::Relaxed)).max(1)
}

fn random_trace() -> u128 {
    u128::from(random_bits()) << 64 | u128::from(random_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03";
        assert_eq!(
            RemoteSpan::read(text),
            Some(RemoteSpan {
                trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
                span: 0xb7ad_6b71_6920_3331,
                is_sampled: true,
            })
        );
        let not = RemoteSpan::read(&text.replace("-03", "-02")).expect("well-formed");
        assert!(!not.is_sampled);
        assert_eq!(RemoteSpan::read("00-é"), None);
        let carried = not_sampled(text, None).parent;
        assert_eq!(*carried, *text.replace("-03", "-02"));
        assert_eq!(&*not_sampled("00-é", None).parent, "00-é");
    }
}
