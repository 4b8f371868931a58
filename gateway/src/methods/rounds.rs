//! Questions that a call asks its caller while it runs, after which it is made again with the answers, as a modern client would
//! do: a legacy client is asked over the stream of its call, and a client that follows a task finds the questions in the task.

use std::{borrow::Cow, time::Duration};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{RequestScope, channel::CallChannel, client::PendingQuestion};
use crate::{
    call::{CallError, CallOutcome, CallRequest, InputRequired, call_tool},
    catalogue::CatalogueViewer,
    codes::FailureCode,
    tasks::CallTask,
};

/// The time within which a client must answer, while its call is open.
const ANSWER_WITHIN: Duration = Duration::from_secs(5 * 60);
/// How often one call may ask before it must end.
const ROUNDS_MAX: u32 = 16;

/// The way to ask the caller of a running call.
#[derive(Clone, Copy)]
pub(super) enum QuestionChannel<'a> {
    /// On the stream of the call.
    Session(&'a CallChannel),
    /// In the task that the call has become.
    Task(&'a CallTask),
}

impl QuestionChannel<'_> {
    /// Returns `false` if the request is answered with the question: then its caller asks again, with the answers.
    pub(super) fn asks_now(self) -> bool {
        match self {
            Self::Session(_) => true,
            Self::Task(task) => !task.answers_at_once(),
        }
    }
}

/// The questions of one call.
#[derive(Default)]
pub(super) struct QuestionRounds {
    asked: u32,
    declined: bool,
}

impl QuestionRounds {
    /// Asks the client, and waits for all of its answers. JSON: results by the keys of the requests. If there are no answers, a
    /// server that keeps its call open for them is notified once, and decides how the call ends.
    pub(super) async fn ask(
        &mut self,
        asker: QuestionChannel<'_>,
        ask: &InputRequired,
        cancel: &CancellationToken,
    ) -> Result<String, CallError> {
        match self.answers(asker, ask, cancel).await {
            Err(_) if ask.is_waited_for() && !std::mem::replace(&mut self.declined, true) => {
                Ok("{}".to_owned())
            }
            Err(error) => Err(ask.give_up(error)),
            answers => answers,
        }
    }

    async fn answers(
        &mut self,
        asker: QuestionChannel<'_>,
        ask: &InputRequired,
        cancel: &CancellationToken,
    ) -> Result<String, CallError> {
        self.asked += 1;
        if self.asked > ROUNDS_MAX {
            return Err(ended(
                "too_many_questions",
                format!("The tool asked its caller more than {ROUNDS_MAX} times."),
            ));
        }
        let requests = ask.requests.as_deref().unwrap_or("{}");
        let requests: Map<String, Value> = serde_json::from_str(requests).unwrap_or_default();
        if requests.is_empty() {
            return Ok("{}".to_owned()); // the maker must be called again, with its state only
        }
        match asker {
            QuestionChannel::Session(channel) => ask_client(channel, ask, &requests, cancel).await,
            QuestionChannel::Task(task) => tokio::select! {
                answers = self.ask_in_task(task, requests) => answers,
                () = ask.wait_for_end() => {
                    task.take_back_questions();
                    Ok("{}".to_owned())
                }
            },
        }
    }

    /// The keys of a task's questions are unique over its life, so from the second round on they carry its number.
    async fn ask_in_task(
        &self,
        task: &CallTask,
        requests: Map<String, Value>,
    ) -> Result<String, CallError> {
        let mark = if self.asked == 1 {
            String::new()
        } else {
            format!("#{}", self.asked)
        };
        let marked = requests
            .into_iter()
            .map(|(key, request)| (format!("{key}{mark}"), request))
            .collect();
        let answers = task.ask(marked).await.ok_or_else(cancelled)?;
        let own = answers.into_iter().map(|(mut key, answer)| {
            key.truncate(key.len() - mark.len());
            (key, answer)
        });
        Ok(Value::Object(own.collect()).to_string())
    }
}

/// Asks on the stream of the call. If the server has answered without the client's answers, the questions are cancelled.
async fn ask_client(
    channel: &CallChannel,
    ask: &InputRequired,
    requests: &Map<String, Value>,
    cancel: &CancellationToken,
) -> Result<String, CallError> {
    let Some(client) = channel.client.as_deref() else {
        return Err(
            CallError::new(FailureCode::Internal, "The gateway failed.").log("no one can be asked")
        );
    };
    let mut questions: Vec<(String, &str, PendingQuestion<'_>)> = Vec::new();
    for (key, asked) in requests {
        let method = asked
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let params = asked
            .get("params")
            .map(|params| identified(method, params).to_string());
        let (request, question) = client.ask(method, params.as_deref());
        questions.push((key.clone(), method, question));
        channel.send(request);
    }
    let ids: Vec<u64> = questions
        .iter()
        .map(|(_, _, question)| question.id)
        .collect();
    let answers = async {
        let mut answers = String::from("{");
        for (key, method, question) in &mut questions {
            let answer = (&mut question.answer)
                .await
                .unwrap_or_else(|_| Err("the session ended".to_owned()));
            let answer = answer.map_err(|why| {
                ended(
                    "client_refused",
                    format!("The client refused to answer ({method}): {why}"),
                )
            })?;
            if answers.len() > 1 {
                answers.push(',');
            }
            answers.push_str(&Value::from(key.as_str()).to_string());
            answers.push(':');
            answers.push_str(answer.get());
        }
        answers.push('}');
        Ok(answers)
    };
    tokio::select! {
        () = ask.wait_for_end() => {
            for id in ids {
                channel.send(cancelled_question(id));
            }
            Ok("{}".to_owned())
        }
        answers = tokio::time::timeout(ANSWER_WITHIN, answers) => answers.unwrap_or_else(|_| {
            let message = format!("The client did not answer within {} s.", ANSWER_WITHIN.as_secs());
            Err(ended("client_did_not_answer", message))
        }),
        () = channel.left.cancelled() => Err(ended("client_left", "The client left before it answered.".to_owned())),
        () = cancel.cancelled() => Err(cancelled()),
    }
}

/// Gives a URL elicitation the id that legacy clients require. The modern era has none.
fn identified<'p>(method: &str, params: &'p Value) -> Cow<'p, Value> {
    let needs_id = method == "elicitation/create"
        && params["mode"] == "url"
        && params.get("elicitationId").is_none();
    let mut id = [0; 16];
    if !needs_id || getrandom::fill(&mut id).is_err() {
        return Cow::Borrowed(params);
    }
    let mut identified = params.clone();
    identified["elicitationId"] = hex::encode(id).into();
    Cow::Owned(identified)
}

fn cancelled_question(id: u64) -> Vec<u8> {
    let params = json!({ "requestId": id, "reason": "the server answered without it" });
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    cancelled.to_string().into_bytes()
}

fn cancelled() -> CallError {
    CallError::new(FailureCode::Cancelled, "The call was cancelled.")
}

fn ended(reason: &str, message: String) -> CallError {
    CallError {
        reason: Some(reason.to_owned()),
        ..CallError::new(FailureCode::ToolError, message)
    }
}

/// Makes the call again with the answers of its caller, until it has no more questions.
pub(super) async fn ask_and_resume(
    scope: &RequestScope,
    request: CallRequest<'_>,
    asker: QuestionChannel<'_>,
    first: &InputRequired,
) -> CallOutcome {
    let mut rounds = QuestionRounds::default();
    let mut asked = first.clone();
    let ended = |error: CallError| {
        let mut result = error.into_result("none");
        let tool = request.snapshot.catalogue.tool(
            request.endpoint,
            request.tool,
            CatalogueViewer::Caller(&scope.caller),
        );
        if tool.is_some_and(|tool| tool.target.keeps_errors_in_meta()) {
            result.move_error_to_meta();
        }
        CallOutcome::Complete(result)
    };
    loop {
        let responses = match rounds.ask(asker, &asked, request.cancel).await {
            Ok(responses) => responses,
            Err(error) => return ended(error),
        };
        let request = request.resumed(&responses, asked.state.as_deref());
        match call_tool(&scope.gateway, &scope.caller, &request).await {
            CallOutcome::InputRequired(next) => asked = next,
            CallOutcome::Complete(refused) if asked.is_left_waiting() => {
                let message = format!(
                    "The call was ended before it got the answer of its caller. {}",
                    refused.content.text()
                );
                return ended(asked.give_up(CallError::new(FailureCode::Unavailable, message)));
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legacy_client_knows_each_url_that_it_is_asked_to_open_by_an_id() {
        let url = json!({ "mode": "url", "message": "Sign in", "url": "https://example.com" });
        let asked = identified("elicitation/create", &url);
        assert_eq!(
            asked["elicitationId"].as_str().map(str::len),
            Some(32),
            "{asked}"
        );
        assert_ne!(
            asked["elicitationId"],
            identified("elicitation/create", &url)["elicitationId"]
        );
        for (method, params) in [
            (
                "elicitation/create",
                json!({ "mode": "url", "elicitationId": "theirs" }),
            ),
            ("elicitation/create", json!({ "message": "Who?" })),
            ("roots/list", json!({})),
        ] {
            assert_eq!(*identified(method, &params), params);
        }
    }
}
