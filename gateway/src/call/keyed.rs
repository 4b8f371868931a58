//! Writes with an idempotency key: of all calls of one caller with the same key, only one runs. The others get its result, or its
//! last known state.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use weir_state::{BegunCall, CallKey, CallReplyStatus, GatewayState, StateError};

use super::{
    CallContent, CallError, CallOutcome, ToolResult,
    approval::sorted,
    arguments::CheckedInput,
    error::{ErrorForm, WriteOutcome},
    target::{TargetRequest, ToolCall, collection::CollectionRequest},
};
use crate::{
    catalogue::CatalogueTool,
    codes::FailureCode,
    cursor::{CursorCipher, CursorScope},
    identity::now_ms,
    plans::{caller_name, digest},
};

/// The member of `_meta` that marks a kept result.
const REPLAYED: &str = "dev.weir/replayed";
/// The margin beyond the tool's timeout in which a call ends, in milliseconds.
const LEASE_MARGIN_MS: i64 = 60_000;
const BUSY_RETRY_MS: u32 = 1_000;
/// The time between two attempts to store the outcome of a write.
const KEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The start of a write with an idempotency key.
pub(super) enum KeyedStart {
    Runs(KeyedCall),
    /// The write was already made: its result.
    Answered(Box<ToolResult>),
}

/// The first write with its key.
#[derive(Clone)]
pub(super) struct KeyedCall {
    state: Arc<GatewayState>,
    key: Arc<CallKey>,
    /// The digest of the output schema by which the caller reads the result.
    output: Arc<str>,
    bound: Arc<CursorScope>,
    /// The end of its lease: as stored in the state, and by the clock of this process.
    lease_ms: i64,
    lapses: Instant,
}

/// The outcome of a write with a key.
enum CallEnd {
    /// It was made, or this is unknown. A result is sealed.
    Ended(CallReplyStatus, Option<String>),
    /// It changed nothing: the next call with the key runs.
    Forgotten,
}

/// A result in the form in which it is sealed and kept.
#[derive(Serialize, Deserialize)]
struct KeptResult {
    text: Option<String>,
    blocks: Option<String>,
    structured: Option<String>,
    is_error: bool,
    meta: Vec<(String, String)>,
    /// The digest of the output schema that its caller had; older results have none.
    #[serde(default)]
    output: Option<String>,
}

/// Begins a write. If a write with the same key has begun, it is not run again, whatever its outcome. `tool` is the called tool,
/// in its version.
pub(super) async fn begin(
    call: &ToolCall<'_>,
    tool: &CatalogueTool,
    input: &CheckedInput<'_>,
    key: &str,
) -> Result<KeyedStart, CallError> {
    let plans = call.gateway.plans().ok_or_else(|| {
        let message = "This process keeps no results: call without an idempotency key, or at a gateway that serves.";
        CallError::new(FailureCode::Unavailable, message).outcome(WriteOutcome::None)
    })?;
    let key = CallKey {
        caller: caller_name(call.caller),
        // Another contract may have a tool of the same name.
        tool: format!("{} {}", call.tool.contract, call.tool.name),
        key: key.to_owned(),
    };
    let now_ms = now_ms();
    let time = call.tool.timeout(call.gateway.timeout());
    let time_ms = i64::try_from(time.as_millis()).unwrap_or(LEASE_MARGIN_MS);
    let left_ms = time_ms.saturating_add(LEASE_MARGIN_MS);
    let lease_ms = now_ms.saturating_add(left_ms);
    let keyed = KeyedCall {
        state: plans.state().clone(),
        lease_ms,
        lapses: Instant::now() + Duration::from_millis(left_ms.unsigned_abs()),
        bound: CursorScope::new(
            "a kept result",
            1,
            &key.caller,
            &format!("{} {}", key.tool, key.key),
        )
        .into(),
        output: output_digest(tool).into(),
        key: key.into(),
    };
    let request = request(call, input);
    let begun = keyed
        .state
        .begin_call(&keyed.key, &request, now_ms, lease_ms);
    let conflict = |reason: &str, message: &'static str| CallError {
        reason: Some(reason.to_owned()),
        ..CallError::new(FailureCode::Conflict, message)
    };
    match begun.await.map_err(unreachable)? {
        BegunCall::First => Ok(KeyedStart::Runs(keyed)),
        BegunCall::Done(sealed) => {
            let kept = sealed.and_then(|sealed| keyed.open(call.gateway.cursors(), &sealed));
            let message = match kept {
                Some(kept) if kept.output.as_deref().is_none_or(|it| it == &*keyed.output) => {
                    return Ok(KeyedStart::Answered(kept.into_result().into()));
                }
                Some(_) => {
                    "The first call with this idempotency key made the write; its result is one of another version of the tool. \
                     Read the record."
                }
                None => {
                    "The first call with this idempotency key made the write; its result was not kept. Read the record."
                }
            };
            Err(conflict("done_before", message))
        }
        BegunCall::Running => Err(CallError {
            reason: Some("in_progress".to_owned()),
            ..CallError::new(
                FailureCode::Unavailable,
                "The first call with this idempotency key has not ended.",
            )
            .retry_after_ms(BUSY_RETRY_MS)
        }),
        BegunCall::Unknown => {
            let message = "Whether the first call with this idempotency key made its write is not known, and it is not made again. \
                           Look, then use another key.";
            Err(conflict("outcome_unknown", message).outcome(WriteOutcome::Unknown))
        }
        BegunCall::Other => Err(CallError {
            reason: Some("idempotency_key_reused".to_owned()),
            ..CallError::new(
                FailureCode::InvalidArguments,
                "The idempotency key was used with other arguments: use another one.",
            )
        }),
        BegunCall::Full => {
            let message = "Too many calls with idempotency keys of this caller have not ended, or are unknown.";
            Err(CallError::new(FailureCode::RateLimited, message).retry_after_ms(60_000))
        }
    }
}

fn output_digest(tool: &CatalogueTool) -> String {
    let schema = tool.tool.output_schema.as_ref();
    digest(&[schema.map_or("", |schema| schema.as_json())])
}

/// Returns the digest of the request, which is the same for the same arguments in any order.
fn request(call: &ToolCall<'_>, input: &CheckedInput<'_>) -> String {
    match &input.target {
        TargetRequest::Collection(_, CollectionRequest::Write(change)) => {
            let part = |text: &Option<String>| text.clone().unwrap_or_default();
            digest(&[
                &change.verb,
                &part(&change.key),
                &part(&change.record),
                &part(&change.options),
            ])
        }
        TargetRequest::Plugin(_, invocation) => digest(&[&sorted(&invocation.arguments)]),
        TargetRequest::Upstream(_, request) => digest(&[&sorted(request.arguments())]),
        TargetRequest::Collection(..) => digest(&[call.request.arguments.unwrap_or("{}")]),
    }
}

impl KeyedCall {
    /// Stores the outcome of the write. A write that changed nothing is forgotten, so that the next call with the key runs.
    pub(super) async fn end(
        &self,
        cursors: &CursorCipher,
        outcome: &Result<CallOutcome, CallError>,
    ) {
        let end = match outcome {
            Ok(CallOutcome::Complete(result)) => self.seal(cursors, result),
            Err(error) => match &error.form {
                ErrorForm::Upstream(result) => self.seal(cursors, result),
                _ => judge(error),
            },
            Ok(_) => CallEnd::Forgotten,
        };
        self.keep(end).await;
    }

    /// Stores the end of a write whose caller has gone, without its result.
    pub(super) async fn end_alone(&self, failure: Option<&CallError>) {
        let end = failure.map_or(CallEnd::Ended(CallReplyStatus::Done, None), judge);
        self.keep(end).await;
    }

    /// Stores the end of the write. If the state cannot be changed now, this is retried until the lease expires.
    async fn keep(&self, end: CallEnd) {
        if let Err(error) = self.write(&end).await {
            tracing::warn!(%error, tool = self.key.tool, "the result of a call with an idempotency key could not be kept yet");
            let keyed = self.clone();
            tokio::spawn(async move { keyed.keep_later(&end).await });
        }
    }

    async fn keep_later(&self, end: &CallEnd) {
        while Instant::now() + KEEP_INTERVAL < self.lapses {
            tokio::time::sleep(KEEP_INTERVAL).await;
            if self.write(end).await.is_ok() {
                return;
            }
        }
        tracing::warn!(
            tool = self.key.tool,
            "the result of a call with an idempotency key could not be kept: it counts as unknown"
        );
    }

    async fn write(&self, end: &CallEnd) -> Result<(), StateError> {
        match end {
            CallEnd::Ended(status, sealed) => {
                let ended = self.state.end_call(&self.key, *status, sealed.as_deref());
                ended.await
            }
            CallEnd::Forgotten => self.state.forget_call(&self.key, self.lease_ms).await,
        }
    }

    fn seal(&self, cursors: &CursorCipher, result: &ToolResult) -> CallEnd {
        let (text, blocks) = match &result.content {
            CallContent::Text(text) => (Some(text.clone()), None),
            CallContent::Blocks(blocks) => (None, Some(blocks.clone())),
        };
        let meta = result.meta.iter();
        let kept = KeptResult {
            text,
            blocks,
            structured: result.structured.clone(),
            is_error: result.is_error,
            meta: meta
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect(),
            output: Some(self.output.to_string()),
        };
        let kept = serde_json::to_string(&kept).expect("plain data");
        // A result that is too long is not kept, but the fact that the write was made is.
        let sealed = cursors.seal(&self.bound, &kept).ok();
        CallEnd::Ended(CallReplyStatus::Done, sealed)
    }

    fn open(&self, cursors: &CursorCipher, sealed: &str) -> Option<KeptResult> {
        let kept = cursors.open_sealed(&self.bound, sealed)?;
        serde_json::from_str(&kept).ok()
    }
}

impl KeptResult {
    fn into_result(self) -> ToolResult {
        let content = match (self.text, self.blocks) {
            (_, Some(blocks)) => CallContent::Blocks(blocks),
            (text, None) => CallContent::Text(text.unwrap_or_default()),
        };
        let mut result = ToolResult::from_content(content, self.structured, self.is_error);
        let meta = self.meta.into_iter();
        result.meta = meta.map(|(name, value)| (name.into(), value)).collect();
        result.meta.push((REPLAYED.into(), "true".to_owned()));
        result
    }
}

/// Returns the outcome of a failed write.
fn judge(error: &CallError) -> CallEnd {
    match error.outcome {
        Some(WriteOutcome::Unknown) => CallEnd::Ended(CallReplyStatus::Unknown, None),
        Some(WriteOutcome::None) | None => CallEnd::Forgotten,
    }
}

fn unreachable(error: StateError) -> CallError {
    let message = "Results that are kept cannot be looked up now, so nothing was done.";
    CallError::new(FailureCode::Unavailable, message)
        .retry_after_ms(BUSY_RETRY_MS)
        .outcome(WriteOutcome::None)
        .log(error.to_string())
}
