//! Makes the spans of a call, by the semantic conventions of MCP. They contain no argument, result or address.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::{RemoteSpan, SpanIds, random_bits};
use crate::telemetry::metrics::{STAGES, Stages};

/// The stage in which the target is asked.
const TARGET: &str = "adapter";

/// A finished call, as described by its spans.
pub struct EndedTrace {
    /// The method of MCP; for plain HTTP, the equivalent one.
    pub method: &'static str,
    /// The name of the tool or prompt, if it exists for the caller.
    pub name: Option<String>,
    pub contract: Option<String>,
    pub agent: Arc<str>,
    pub call_id: Arc<str>,
    pub transport: &'static str,
    pub protocol: &'static str,
    /// The code of the error.
    pub code: Option<&'static str>,
    /// Another MCP server was asked.
    pub is_of_upstream: bool,
    pub stages: Stages,
    pub ended: SystemTime,
}

/// Appends the span of the call, and one for each of its stages.
pub(super) fn add(spans: &mut Vec<SpanData>, ids: &SpanIds, call: &EndedTrace) {
    let took: Duration = call.stages.iter().flatten().sum();
    let began = call.ended.checked_sub(took).unwrap_or(call.ended);
    let mut stage_began = began;
    for (stage, took) in STAGES.iter().zip(call.stages) {
        let Some(took) = took else { continue };
        let is_target = *stage == TARGET;
        let ended = stage_began + took;
        let mut span = span(ids.trace, *stage, stage_began, ended);
        let own = if is_target { ids.target } else { random_bits() };
        span.span_context = context(ids.trace, own, false);
        span.parent_span_id = SpanId::from(ids.call);
        if is_target && call.is_of_upstream {
            span.span_kind = SpanKind::Client;
        }
        spans.push(span);
        stage_began = ended;
    }
    let mut whole = span(ids.trace, name(call), began, call.ended);
    whole.span_context = context(ids.trace, ids.call, false);
    whole.span_kind = SpanKind::Server;
    if let Some(parent) = ids.parent {
        whole.parent_span_id = SpanId::from(parent.span);
        whole.parent_span_is_remote = true;
    }
    whole.attributes = attributes(call);
    if call.code.is_some() {
        whole.status = Status::error("");
    }
    if let Some(RemoteSpan { trace, span, .. }) = ids.link {
        let mut links = SpanLinks::default();
        links
            .links
            .push(Link::with_context(context(trace, span, true)));
        whole.links = links;
    }
    spans.push(whole);
}

fn name(call: &EndedTrace) -> Cow<'static, str> {
    match &call.name {
        Some(name) => Cow::Owned(format!("{} {name}", call.method)),
        None => Cow::Borrowed(call.method),
    }
}

fn attributes(call: &EndedTrace) -> Vec<KeyValue> {
    let text = |key: &'static str, value: &Arc<str>| KeyValue::new(key, value.clone());
    let mut attributes = vec![
        KeyValue::new("mcp.method.name", call.method),
        text("weir.agent", &call.agent),
        text("weir.call_id", &call.call_id),
        KeyValue::new("weir.transport", call.transport),
    ];
    let mut add = |key: &'static str, value: Option<String>| {
        attributes.extend(value.map(|value| KeyValue::new(key, value)));
    };
    match call.method {
        "tools/call" => {
            add("gen_ai.operation.name", Some("execute_tool".to_owned()));
            add("gen_ai.tool.name", call.name.clone());
        }
        "prompts/get" => add("gen_ai.prompt.name", call.name.clone()),
        _ => {}
    }
    let is_mcp = call.protocol != "none";
    add(
        "mcp.protocol.version",
        is_mcp.then(|| call.protocol.to_owned()),
    );
    add("weir.contract", call.contract.clone());
    add("error.type", call.code.map(str::to_owned));
    add("weir.code", call.code.map(str::to_owned));
    let network = match call.transport {
        "stdio" => Some("pipe"),
        "http" | "rest" => Some("tcp"),
        _ => None,
    };
    add("network.transport", network.map(str::to_owned));
    attributes
}

fn span(
    trace: u128,
    name: impl Into<Cow<'static, str>>,
    began: SystemTime,
    ended: SystemTime,
) -> SpanData {
    static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
        InstrumentationScope::builder("weir")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build()
    });
    SpanData {
        span_context: context(trace, 0, false),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: name.into(),
        start_time: began,
        end_time: ended,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: SCOPE.clone(),
    }
}

fn context(trace: u128, span: u64, is_remote: bool) -> SpanContext {
    SpanContext::new(
        TraceId::from(trace),
        SpanId::from(span),
        TraceFlags::SAMPLED,
        is_remote,
        TraceState::default(),
    )
}
