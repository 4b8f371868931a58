//! Calls that a server answers with a task. They are awaited here, so that callers see no task of another server: one of
//! 2026-07-28 is polled until it ends, one of 2025-11-25 is asked for its result.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    CANCEL_GRACE, OutgoingMeta, OutgoingOperation, SessionRequest, UpstreamCall, UpstreamOperation,
    UpstreamSession, timed_out,
};
use crate::{
    error::{RequestError, UpstreamFailure, UpstreamFailureKind, one_line},
    listener::UpstreamQuestion,
    message::{self, UpstreamProgress},
};

/// The interval at which a task is polled: as its server wishes, within these bounds.
const LOOK_MIN: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(500);
/// Consecutive looks that may fail.
const MISSED_MAX: u32 = 3;
/// Questions of one task.
const ASKED_MAX: usize = 16;

/// A task that a server has begun.
pub(super) struct ServerTask {
    /// A JSON string.
    id: String,
    every: Duration,
    is_modern: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedTask<'a> {
    result_type: Option<&'a str>,
    #[serde(borrow)]
    task: Option<&'a RawValue>,
    task_id: Option<String>,
    poll_interval_ms: Option<u64>,
}

/// A task of 2026-07-28, as its server shows it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskState<'a> {
    #[serde(borrow)]
    status: std::borrow::Cow<'a, str>,
    status_message: Option<String>,
    #[serde(borrow, default)]
    input_requests: HashMap<String, InputRequest<'a>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<TaskError>,
}

#[derive(Deserialize)]
struct InputRequest<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct TaskError {
    code: i64,
    message: String,
}

impl ServerTask {
    /// Returns the task that a call was answered with, if it was.
    pub(super) fn read(
        call: &UpstreamCall<'_>,
        result: &RawValue,
        is_modern: bool,
    ) -> Option<Self> {
        let UpstreamOperation::Tool { as_task, .. } = call.asked else {
            return None;
        };
        let created: CreatedTask<'_> = match is_modern || *as_task {
            true => serde_json::from_str(result.get()).ok()?,
            false => return None,
        };
        let id = match is_modern {
            true if created.result_type == Some("task") => created.task_id?,
            true => return None,
            false => {
                serde_json::from_str::<CreatedTask<'_>>(created.task?.get())
                    .ok()?
                    .task_id?
            }
        };
        let every = created
            .poll_interval_ms
            .map_or(LOOK, Duration::from_millis)
            .clamp(LOOK_MIN, LOOK_MAX);
        Some(Self {
            id: message::text(&id),
            every,
            is_modern,
        })
    }
}

impl UpstreamSession {
    /// Waits for a task. Dropping this cancels it. The call has reached the server whatever fails now: it is not sent again.
    pub(super) async fn follow(
        &self,
        task: &ServerTask,
        call: &UpstreamCall<'_>,
        deadline: Instant,
    ) -> Result<Box<RawValue>, RequestError> {
        let ended = match task.is_modern {
            true => tokio::select! {
                biased;
                () = call.cancel.cancelled() => {
                    let cause = "its caller cancelled it";
                    Err(UpstreamFailure::new(UpstreamFailureKind::Cancelled, "the task to run to its end", cause).into())
                }
                ended = self.look(task, call, deadline) => ended,
            },
            false => {
                let listener = call.listener.clone();
                let call = UpstreamCall {
                    resumed: None,
                    headers: &[],
                    listener,
                    ..*call
                };
                self.call_once(
                    &call,
                    &OutgoingOperation::TaskResult(&task.id),
                    &self.agreed(),
                    deadline,
                )
                .await
            }
        };
        let failure = match ended {
            Ok(result) => return Ok(result),
            Err(RequestError::Failed(failure)) => UpstreamFailure {
                is_handed_over: true,
                ..failure
            },
            Err(RequestError::Refused(refusal)) => {
                let message = one_line(&refusal.message, 300);
                wrong(format!(
                    "it refused to report its task ({}): {message}",
                    refusal.code
                ))
            }
        };
        if !self.is_closed() {
            let cancelled = self.of_task("tasks/cancel", task, &[]);
            let _ = timeout(CANCEL_GRACE, cancelled).await; // it ends for us either way
        }
        Err(failure.into())
    }

    async fn look(
        &self,
        task: &ServerTask,
        call: &UpstreamCall<'_>,
        mut deadline: Instant,
    ) -> Result<Box<RawValue>, RequestError> {
        let (mut looks, mut missed) = (0.0, 0);
        let mut answered = HashSet::new();
        loop {
            sleep(task.every).await;
            let late = || timed_out("tools/call", call.timeout);
            let seen = match timeout_at(deadline, self.of_task("tasks/get", task, &[])).await {
                Err(_) => return Err(late().into()),
                Ok(Ok(seen)) => seen,
                Ok(Err(RequestError::Failed(UpstreamFailure {
                    kind: UpstreamFailureKind::Unreachable | UpstreamFailureKind::Timeout,
                    ..
                }))) if missed < MISSED_MAX => {
                    missed += 1;
                    continue;
                }
                Ok(Err(error)) => return Err(error),
            };
            let seen: TaskState<'_> = serde_json::from_str(seen.get())
                .map_err(|error| wrong(format!("its task cannot be read: {error}")))?;
            (looks, missed) = (looks + 1.0, 0);
            if let (Some(listener), Some(message)) = (&call.listener, seen.status_message)
                && listener.wants_progress()
            {
                listener.progress(UpstreamProgress {
                    progress: looks,
                    total: None,
                    message: Some(message),
                });
            }
            match &*seen.status {
                "working" => {}
                "input_required" => {
                    let open = seen
                        .input_requests
                        .into_iter()
                        .filter(|(key, _)| !answered.contains(key));
                    let open: Vec<_> = open.collect();
                    if open.len() + answered.len() > ASKED_MAX {
                        return Err(
                            wrong(format!("its task asks more than {ASKED_MAX} times")).into()
                        );
                    }
                    let began = Instant::now();
                    answered.extend(open.iter().map(|(key, _)| key.clone()));
                    if let Some(responses) = self.responses(call, open).await? {
                        self.of_task("tasks/update", task, &[("inputResponses", &responses)])
                            .await?;
                    }
                    deadline += began.elapsed();
                }
                "completed" => {
                    return seen
                        .result
                        .map(ToOwned::to_owned)
                        .ok_or_else(|| wrong("its task has no result").into());
                }
                "failed" => {
                    let TaskError { code, message } =
                        seen.error.ok_or_else(|| wrong("its task has no error"))?;
                    return refused(code, &message);
                }
                "cancelled" => {
                    return Err(UpstreamFailure::new(
                        UpstreamFailureKind::Closed,
                        "the task to run to its end",
                        "its server ended it",
                    )
                    .into());
                }
                other => {
                    return Err(wrong(format!(
                        "its task has the status `{}`",
                        one_line(other, 50)
                    ))
                    .into());
                }
            }
        }
    }

    /// Has the caller answer the server's questions. JSON: results by the keys of the requests; `None` if nothing is open.
    async fn responses(
        &self,
        call: &UpstreamCall<'_>,
        open: Vec<(String, InputRequest<'_>)>,
    ) -> Result<Option<String>, RequestError> {
        let mut responses = HashMap::new();
        for (key, InputRequest { method, params }) in open {
            let listener = call
                .listener
                .as_ref()
                .filter(|_| self.core.inbox.may_ask(&method));
            let is_form = method == "elicitation/create";
            let answer = match listener {
                Some(listener) => {
                    listener
                        .ask(UpstreamQuestion {
                            method,
                            params: params.map(ToOwned::to_owned),
                        })
                        .await
                }
                None => None,
            };
            let answer = match answer {
                None if is_form => RawValue::from_string(r#"{"action":"decline"}"#.to_owned()).ok(),
                answer => answer,
            };
            responses.insert(
                key,
                answer.ok_or_else(|| wrong("it asks a question that no caller here may answer"))?,
            );
        }
        if responses.is_empty() {
            return Ok(None);
        }
        serde_json::to_string(&responses)
            .map(Some)
            .map_err(|error| wrong(error.to_string()).into())
    }

    async fn of_task(
        &self,
        method: &'static str,
        task: &ServerTask,
        more: &[(&str, &str)],
    ) -> Result<Box<RawValue>, RequestError> {
        let agreed = self.agreed();
        let meta = self.core.meta(
            agreed.version,
            &OutgoingMeta {
                knows_tasks: true,
                ..OutgoingMeta::default()
            },
        );
        let mut params = vec![("taskId", task.id.as_str())];
        params.extend(more);
        params.extend(task.is_modern.then_some(("_meta", meta.as_str())));
        let mut request = SessionRequest::new(method, message::object(&params), agreed.version);
        request.name = serde_json::from_str(&task.id).ok();
        self.core.request(request).await
    }
}

/// Returns the result of a task that ended with an error of the protocol: a result with that error, since the call was begun
/// and may have had an effect.
fn refused(code: i64, message: &str) -> Result<Box<RawValue>, RequestError> {
    let text = message::text(&format!("{} ({code})", one_line(message, 500)));
    let result = format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#);
    RawValue::from_string(result).map_err(|error| wrong(error.to_string()).into())
}

fn wrong(cause: impl Into<String>) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Protocol,
        "the server to run the tool",
        cause,
    )
}
