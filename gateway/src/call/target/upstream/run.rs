//! Asks the server. A request continues when its caller leaves, and the server is asked to cancel it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use weir_connections::http::TraceContext;
use weir_plugin_host::CallEvents;
use weir_schema::json;
use weir_upstream::{
    CallFailure, CallOwner, UpstreamCall, UpstreamFailureKind, UpstreamListener, UpstreamOperation,
    UpstreamServer,
};

use super::{
    ResumedCall, UpstreamAnswer, UpstreamRequest,
    account::AccountQuestions,
    bind::raw,
    call_owner,
    failure::{URLS, failed, url_question},
    listener::CallListener,
    outliving::SpawnOnDrop,
    parked::{self, ParkedQuestion, RunningUpstreamCall, unfinished},
};
use crate::{
    call::{
        CallError, CallRequest, asking::AllowedQuestions, limits::CallPermit, record::CallRecord,
        target::ToolCall,
    },
    codes::FailureCode,
    identity::CallerIdentity,
    serving::ServingGateway,
    telemetry::GatewayMetrics,
};

/// The pause before a request is repeated after its caller has opened URLs; it doubles each time.
const OPENED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A request in flight, with everything it needs even if its caller leaves.
struct OutgoingCall {
    upstream: Option<Arc<UpstreamServer>>,
    metrics: Arc<GatewayMetrics>,
    owner: CallOwner,
    accounts: AccountQuestions,
    request: Arc<UpstreamRequest>,
    events: Option<Arc<dyn CallEvents>>,
    cancel: CancellationToken,
    deadline: Instant,
    trace: Option<TraceContext>,
    /// The capabilities of the caller for answering questions; JSON.
    capabilities: Option<String>,
    /// Where questions of the server go while the call is open.
    questions: Option<mpsc::UnboundedSender<ParkedQuestion>>,
    _slot: CallPermit,
}

impl OutgoingCall {
    fn new(
        gateway: &ServingGateway,
        caller: &CallerIdentity,
        call: &CallRequest<'_>,
        request: &Arc<UpstreamRequest>,
        slot: CallPermit,
        asked_at: Instant,
        carried: Option<&TraceContext>,
    ) -> Self {
        let upstream = gateway.upstreams().get(&request.server);
        let of_server = upstream
            .as_ref()
            .map(|upstream| upstream.config().timeout_ms);
        let timeout = request
            .timeout_ms
            .or(of_server)
            .map_or(gateway.timeout(), Duration::from_millis);
        Self {
            upstream,
            metrics: gateway.metrics().clone(),
            owner: call_owner(caller, call.session),
            accounts: AccountQuestions::new(gateway, caller),
            request: request.clone(),
            events: call.events.clone(),
            cancel: call.cancel.clone(),
            deadline: asked_at + timeout,
            trace: carried.cloned().or_else(|| call.trace_context()),
            capabilities: call.asking.capabilities.map(str::to_owned),
            questions: None,
            _slot: slot,
        }
    }

    /// Returns whether the server may ask the caller something while the call is open.
    fn may_be_asked(&self) -> bool {
        let asks = self
            .upstream
            .as_ref()
            .is_some_and(|upstream| !upstream.config().ask.is_empty());
        asks && self.capabilities.is_some()
    }

    /// Returns whether the call may be kept open for an answer of its caller, or already was.
    fn may_be_parked(&self) -> bool {
        matches!(self.request.resumed, Some(ResumedCall::Parked { .. })) || self.may_be_asked()
    }

    /// Returns the kept call for which this one brings an answer, if any.
    fn goes_on(&self) -> Option<Result<RunningUpstreamCall, CallError>> {
        let Some(ResumedCall::Parked { handle, answer }) = &self.request.resumed else {
            return None;
        };
        Some(
            parked::go_on(handle, answer.clone(), &self.cancel).ok_or_else(|| {
                let message = "The call that asked has ended: call the tool again. If several nodes serve, it may run at another one: send the answer again, a few times at most.";
                unfinished(
                    CallError::new(FailureCode::Unavailable, message),
                    self.request.writes,
                )
            }),
        )
    }

    /// Runs to the end even if the caller leaves: then the server is asked to cancel, and its outcome is awaited.
    async fn run(self) -> Result<UpstreamAnswer, CallError> {
        let Some(upstream) = &self.upstream else {
            let error = CallError::new(
                FailureCode::Unavailable,
                "The server of this tool is not configured.",
            );
            return Err(error.log(format!("there is no [upstreams.{}]", self.request.server)));
        };
        let opened = self.opened()?;
        let resumed = match &self.request.resumed {
            None => None,
            // The answer to one of the gateway's own questions is not for the server.
            Some(ResumedCall::Again(resumed)) => (!opened).then_some(resumed),
            // A call is sent only once, and this one already was.
            Some(ResumedCall::Parked { .. }) => {
                let error = CallError::new(FailureCode::Internal, "The gateway failed.");
                return Err(unfinished(
                    error.log("a call that waits for an answer was to be sent again"),
                    self.request.writes,
                ));
            }
        };
        let listener = (self.events.is_some() || self.questions.is_some()).then(|| {
            let (events, capabilities) = (self.events.clone(), self.capabilities.clone());
            Arc::new(CallListener {
                server: self.request.server.clone(),
                events,
                capabilities,
                questions: self.questions.clone(),
            }) as Arc<dyn UpstreamListener>
        });
        let call = || UpstreamCall {
            asked: &self.request.asked,
            resumed,
            listener: listener.clone(),
            headers: &self.request.headers,
            cancel: &self.cancel,
            timeout: self.deadline.saturating_duration_since(Instant::now()),
            trace: self.trace.as_ref(),
        };
        let may_ask = AllowedQuestions {
            server: self.request.server.clone(),
            capabilities: upstream.config().ask.iter().map(|ask| ask.name()).collect(),
        };
        let mut pause = OPENED_AGAIN_AFTER;
        let result = loop {
            let began = Instant::now();
            let result = upstream.call(&self.owner, &call()).await;
            self.metrics.upstream(&self.request.server, began.elapsed());
            let asked = match &result {
                Err(CallFailure::Refused(refusal))
                    if may_ask.capabilities.contains(&"elicitation") =>
                {
                    url_question(refusal)
                }
                Err(CallFailure::Failed(failure))
                    if failure.kind == UpstreamFailureKind::NoAccount =>
                {
                    if !opened {
                        return self.ask_for_account(upstream, &failure.scopes).await;
                    }
                    Some(Value::Null)
                }
                _ => None,
            };
            let Some(asked) = asked else { break result };
            if !opened {
                break Ok(raw(&asked)?);
            }
            // What the caller has opened, such as a sign-in, takes a while.
            if Instant::now() + pause >= self.deadline {
                break result;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause *= 2,
                () = self.cancel.cancelled() => break result,
            }
        };
        let result =
            result.map_err(|failure| failed(failure, &self.request.asked, self.request.writes))?;
        Ok(UpstreamAnswer {
            result,
            may_ask: Some(may_ask),
        })
    }

    /// Asks the caller to connect an account, in the way that its client supports.
    async fn ask_for_account(
        &self,
        upstream: &UpstreamServer,
        scopes: &[String],
    ) -> Result<UpstreamAnswer, CallError> {
        let can_be_asked = !matches!(self.request.asked, UpstreamOperation::Completion { .. });
        let capabilities = self.capabilities.as_deref().filter(|_| can_be_asked);
        let question = self
            .accounts
            .ask(upstream, &self.owner, capabilities, scopes)
            .await?;
        Ok(UpstreamAnswer {
            result: raw(&question)?,
            may_ask: None,
        })
    }

    /// Returns `true` if the caller confirms that it has opened the URLs that the server requires. If it declines, this is an
    /// error, and nothing is sent.
    fn opened(&self) -> Result<bool, CallError> {
        let Some(ResumedCall::Again(resumed)) = &self.request.resumed else {
            return Ok(false);
        };
        let state = resumed
            .state
            .as_deref()
            .and_then(|state| serde_json::from_str::<String>(state.get()).ok());
        if state.as_deref() != Some(URLS) {
            return Ok(false);
        }
        let accepted = |responses: &Map<String, Value>| {
            !responses.is_empty()
                && responses
                    .values()
                    .all(|response| response["action"] == "accept")
        };
        match json::read(resumed.responses.get()) {
            Ok(Value::Object(responses)) if accepted(&responses) => Ok(true),
            _ => {
                let message =
                    "The server asked its caller to open a URL first, and the caller did not.";
                Err(CallError::new(FailureCode::ToolError, message))
            }
        }
    }
}

/// Calls the tool, once. A tool that writes continues when its caller leaves, like every write.
pub(in crate::call::target) async fn run(
    call: &ToolCall<'_>,
    request: &Arc<UpstreamRequest>,
    slot: CallPermit,
    record: &mut CallRecord,
) -> Result<UpstreamAnswer, CallError> {
    let asked_at = record.asked_at();
    let outgoing = OutgoingCall::new(
        call.gateway,
        call.caller,
        call.request,
        request,
        slot,
        asked_at,
        record.carried(),
    );
    if request.writes && !outgoing.may_be_parked() {
        return record.wait_for_write(outgoing.run()).await;
    }
    let answer = detached(outgoing).await;
    record.answered();
    answer
}

/// Sends a request that changes nothing: a prompt, a resource or a completion.
pub(super) async fn read(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    call: &CallRequest<'_>,
    request: &Arc<UpstreamRequest>,
    slot: CallPermit,
    asked_at: Instant,
    carried: Option<&TraceContext>,
) -> Result<UpstreamAnswer, CallError> {
    detached(OutgoingCall::new(
        gateway, caller, call, request, slot, asked_at, carried,
    ))
    .await
}

/// Continues when its caller goes away, and is then cancelled. A question of the server ends the wait: the call is kept open in a
/// separate task, and the request with the answer continues it.
async fn detached(outgoing: OutgoingCall) -> Result<UpstreamAnswer, CallError> {
    if let Some(running) = outgoing.goes_on() {
        return running?.follow().await;
    }
    let cancel = outgoing.cancel.child_token();
    if !outgoing.may_be_asked() {
        return SpawnOnDrop::new(
            OutgoingCall {
                cancel: cancel.clone(),
                ..outgoing
            }
            .run(),
            cancel,
        )
        .await;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the session bounds the questions that wait for one caller"
    )]
    let (questions, asked) = mpsc::unbounded_channel();
    let (writes, server) = (outgoing.request.writes, outgoing.request.server.clone());
    let call = OutgoingCall {
        cancel: cancel.clone(),
        questions: Some(questions),
        ..outgoing
    }
    .run();
    RunningUpstreamCall::new(call, server, asked, writes, cancel)
        .follow()
        .await
}
