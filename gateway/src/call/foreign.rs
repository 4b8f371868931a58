//! Another server: how its tools are called, what else is asked of it, and what becomes of the answers. It is sent once, and nothing of ours goes along
//! but the trace context.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json as object, value::RawValue};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use weir_contracts::{
    json::{self, JsonError},
    uri,
};
use weir_plugin_host::CallEvents;
use weir_upstream::{
    Answering, Asked, CallFailure, CallerRequest, Kind, Listener, Question, Refusal, Upstream,
};

use super::{
    CallError, CallOutcome, CallRequest, Content, InputRequired, ToolResult,
    arguments::{Ask, Input},
    asking::{self, AllowedQuestions, secret_field},
    blocks,
    error::WriteOutcome,
    limits::Slot,
    outliving::Outliving,
    parked::{self, QUESTION, Running, unfinished},
    record::CallRecord,
};
use crate::{
    catalogue::{CatalogueTool, ForeignTool},
    codes::Code,
    cursor::{Bound, Cursors},
    gateway::Gateway,
    identity::Caller,
    telemetry::Metrics,
};

const MESSAGE_MAX: usize = 500;
/// Characters of a server's own words about a refusal, the data of its error included.
const WORDS_MAX: usize = 1_000;
/// Members of `_meta` of one answer.
const META_MAX: usize = 64;
/// The names that answers may not use, since they are ours.
const OURS: [&str; 2] = ["dev.weir/", "io.modelcontextprotocol/serverInfo"];
const INVALID_PARAMS: i64 = -32602;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// The code for an unknown resource in revisions up to 2025-11-25.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// The code of 2025-11-25 for a request that is made again once its caller has opened URLs.
const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The state of a question that stands for such a refusal.
const URLS: &str = "weir-urls";
/// The pause before such a request is made again; each further one doubles it.
const OPENED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// One call, with everything it needs while its caller may go away.
pub(super) struct Outgoing {
    upstream: Option<Arc<Upstream>>,
    metrics: Arc<Metrics>,
    name: Arc<str>,
    tenant: Arc<str>,
    agent: Arc<str>,
    session: Option<u128>,
    sent: Arc<Sent>,
    events: Option<Arc<dyn CallEvents>>,
    cancel: CancellationToken,
    deadline: Instant,
    trace: Option<String>,
    /// What the caller says it can answer; JSON.
    capabilities: Option<String>,
    /// Where questions of the server go while the call is open.
    questions: Option<mpsc::UnboundedSender<parked::Asked>>,
    writes: bool,
    _slot: Slot,
}

/// The origin of a call: whose it is, of which server, and since when it is asked.
pub(super) struct Origin<'a> {
    pub gateway: &'a Gateway,
    pub caller: &'a Caller,
    pub upstream: &'a Arc<str>,
    /// The timeout of the tool, if it sets one.
    pub timeout_ms: Option<u64>,
    pub writes: bool,
    pub request: &'a CallRequest<'a>,
    pub asked: Instant,
}

/// The request that the server is sent.
pub(super) struct Sent {
    pub(super) asked: Asked,
    pub(super) resumed: Option<Resumed>,
    /// Arguments that a header repeats.
    pub(super) headers: Vec<(String, String)>,
}

/// The caller's answers to an earlier question.
pub(super) enum Resumed {
    /// The request is made again with them.
    Again(weir_upstream::Resumed),
    /// A call is kept open for the answer, so nothing is sent but that.
    Parked {
        handle: String,
        answer: Option<Box<RawValue>>,
    },
}

/// The server's answer, and what it may ask of callers.
pub(super) struct Answered {
    pub(super) result: Box<RawValue>,
    pub(super) may_ask: AllowedQuestions,
}

/// Returns the arguments as the server takes them, and the caller's answers to an earlier question.
pub(super) fn sent(
    cursors: &Cursors,
    caller: &Caller,
    tool: &CatalogueTool,
    foreign: &ForeignTool,
    arguments: Map<String, Value>,
    resumed: Option<asking::Resumed<'_>>,
) -> Result<Sent, CallError> {
    let arguments = Value::Object(arguments);
    let mirrored = tool.mirrored.iter();
    let mut headers: Vec<(String, String)> = mirrored
        .filter_map(|one| Some((one.header.clone(), one.value(&arguments)?)))
        .collect();
    let set = tool
        .tool
        .offer()
        .into_iter()
        .flat_map(|offer| &offer.set_headers);
    headers.extend(set.map(|(name, value)| (name.clone(), value.clone())));
    let Value::Object(arguments) = arguments else {
        unreachable!("it was made of an object")
    };
    let arguments = tool
        .tool
        .arguments_for_upstream(|| foreign.checked_input(), arguments);
    let arguments = raw(&Value::Object(arguments))?;
    let bound = || asking::bound(caller, tool, tool.contract_version(), arguments.get());
    let resumed = resumed
        .map(|resumed| opened(cursors, &bound(), resumed))
        .transpose()?;
    let asked = Asked::Tool {
        name: foreign.name.clone(),
        arguments: Some(arguments),
        as_task: foreign.as_task,
    };
    Ok(Sent {
        asked,
        resumed,
        headers,
    })
}

/// Returns the answers to an earlier question of the server, with its own state.
pub(super) fn opened(
    cursors: &Cursors,
    bound: &Bound,
    resumed: asking::Resumed<'_>,
) -> Result<Resumed, CallError> {
    let (state, responses) = asking::open(cursors, bound, resumed)?;
    if let Some(handle) = state.as_str().filter(|state| parked::is_handle(state)) {
        let answer = responses.get(QUESTION).map(raw).transpose()?;
        return Ok(Resumed::Parked {
            handle: handle.to_owned(),
            answer,
        });
    }
    let state = if state.is_null() {
        None
    } else {
        Some(raw(&state)?)
    };
    Ok(Resumed::Again(weir_upstream::Resumed {
        responses: raw(&responses)?,
        state,
    }))
}

pub(super) fn raw(value: &Value) -> Result<Box<RawValue>, CallError> {
    RawValue::from_string(value.to_string()).map_err(|error| {
        CallError::new(Code::Internal, "The arguments of this tool cannot be sent.")
            .log(error.to_string())
    })
}

impl Outgoing {
    pub(super) fn new(from: &Origin<'_>, slot: Slot, sent: &Arc<Sent>) -> Self {
        let Origin {
            gateway,
            caller,
            request,
            asked,
            ..
        } = from;
        let upstream = gateway.upstreams().get(from.upstream);
        let of_server = upstream
            .as_ref()
            .map(|upstream| upstream.config().timeout_ms);
        let timeout = from
            .timeout_ms
            .or(of_server)
            .map_or(gateway.timeout(), Duration::from_millis);
        Self {
            upstream,
            metrics: gateway.metrics().clone(),
            name: from.upstream.clone(),
            tenant: caller.tenant.clone(),
            agent: caller.agent.clone(),
            session: request.session,
            sent: sent.clone(),
            events: request.events.clone(),
            cancel: request.cancel.clone(),
            deadline: *asked + timeout,
            trace: request.trace.map(str::to_owned),
            capabilities: request.asking.capabilities.map(str::to_owned),
            questions: None,
            writes: from.writes,
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

    /// Returns whether the call may be kept open for an answer of its caller, or has been already.
    fn may_be_parked(&self) -> bool {
        matches!(self.sent.resumed, Some(Resumed::Parked { .. })) || self.may_be_asked()
    }

    /// Returns the call that this one brings an answer for, if it does.
    fn goes_on(&self) -> Option<Result<Running, CallError>> {
        let Some(Resumed::Parked { handle, answer }) = &self.sent.resumed else {
            return None;
        };
        Some(
            parked::go_on(handle, answer.clone(), &self.cancel).ok_or_else(|| {
                let message = "The call that asked has ended, or runs in another process.";
                unfinished(CallError::new(Code::Unavailable, message), self.writes)
            }),
        )
    }

    /// Runs to its end although its caller may have gone: then the server is told, and the true outcome is waited for.
    pub(super) async fn run(self) -> Result<Answered, CallError> {
        let Some(upstream) = &self.upstream else {
            let error = CallError::new(
                Code::Unavailable,
                "The server of this tool is not configured.",
            );
            return Err(error.log(format!("there is no [upstreams.{}]", self.name)));
        };
        let resumed = match &self.sent.resumed {
            None => None,
            Some(Resumed::Again(resumed)) => Some(resumed),
            // A call is sent once, and this one was.
            Some(Resumed::Parked { .. }) => {
                let error = CallError::new(Code::Internal, "The gateway failed.");
                return Err(unfinished(
                    error.log("a call that waits for an answer was to be sent again"),
                    self.writes,
                ));
            }
        };
        let listener = (self.events.is_some() || self.questions.is_some()).then(|| {
            let (events, capabilities) = (self.events.clone(), self.capabilities.clone());
            Arc::new(Hearing {
                server: self.name.clone(),
                events,
                capabilities,
                questions: self.questions.clone(),
            }) as Arc<dyn Listener>
        });
        let call = CallerRequest {
            tenant: &self.tenant,
            agent: &self.agent,
            session: self.session,
            asked: &self.sent.asked,
            resumed,
            listener,
            headers: &self.sent.headers,
            cancel: &self.cancel,
            deadline: self.deadline,
            traceparent: self.trace.as_deref(),
        };
        let opened = self.opened()?;
        let may_ask = AllowedQuestions {
            server: self.name.clone(),
            capabilities: upstream.config().ask.iter().map(|ask| ask.name()).collect(),
        };
        let mut pause = OPENED_AGAIN_AFTER;
        let result = loop {
            let began = Instant::now();
            let result = upstream.call(&call).await;
            self.metrics.upstream(&self.name, began.elapsed());
            let asked = match &result {
                Err(CallFailure::Refused(refusal))
                    if may_ask.capabilities.contains(&"elicitation") =>
                {
                    asked_by(refusal)
                }
                _ => None,
            };
            let Some(asked) = asked else { break result };
            if !opened {
                break Ok(raw(&asked)?);
            }
            // What its caller has opened takes a while, such as a sign-in.
            if Instant::now() + pause >= self.deadline {
                break result;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause *= 2,
                () = self.cancel.cancelled() => break result,
            }
        };
        let result = result.map_err(|failure| failed(failure, &self.sent.asked, self.writes))?;
        Ok(Answered { result, may_ask })
    }

    /// Returns `true` if the caller says that it has opened the URLs that the server refused for. It is an error if it says
    /// no: then nothing is sent.
    fn opened(&self) -> Result<bool, CallError> {
        let Some(Resumed::Again(resumed)) = &self.sent.resumed else {
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
                    "The server wants its caller to open a URL first, and the caller did not.";
                Err(CallError::new(Code::ToolError, message))
            }
        }
    }
}

/// Asks the server, once. A tool that writes goes on when its caller leaves, like every write.
pub(super) async fn answer(
    from: &Origin<'_>,
    slot: Slot,
    sent: &Arc<Sent>,
    record: &mut CallRecord,
) -> Result<Answered, CallError> {
    let outgoing = Outgoing::new(from, slot, sent);
    if from.writes && !outgoing.may_be_parked() {
        return record.wait_for_write(outgoing.run()).await;
    }
    let answer = detached(outgoing).await;
    record.answered();
    answer
}

/// Goes on when its caller goes away, and is told so. A question of the server ends the wait: the call stays open in a task of
/// its own, and whoever brings the answer goes on with it.
pub(super) async fn detached(outgoing: Outgoing) -> Result<Answered, CallError> {
    if let Some(running) = outgoing.goes_on() {
        return running?.follow().await;
    }
    let cancel = outgoing.cancel.child_token();
    if !outgoing.may_be_asked() {
        return Outliving::new(
            Outgoing {
                cancel: cancel.clone(),
                ..outgoing
            }
            .run(),
            cancel,
        )
        .await;
    }
    let (questions, asked) = mpsc::unbounded_channel();
    let (writes, server) = (outgoing.writes, outgoing.name.clone());
    let call = Outgoing {
        cancel: cancel.clone(),
        questions: Some(questions),
        ..outgoing
    }
    .run();
    Running::new(call, server, asked, writes, cancel)
        .follow()
        .await
}

/// What a call hears of its server.
struct Hearing {
    server: Arc<str>,
    events: Option<Arc<dyn CallEvents>>,
    capabilities: Option<String>,
    questions: Option<mpsc::UnboundedSender<parked::Asked>>,
}

impl Listener for Hearing {
    fn wants_progress(&self) -> bool {
        self.events
            .as_ref()
            .is_some_and(|events| events.wants_progress())
    }

    fn progress(&self, progress: weir_upstream::Progress) {
        if let Some(events) = &self.events {
            let message = progress.message.as_deref().unwrap_or_default();
            events.progress(progress.progress, progress.total, message);
        }
    }

    fn log_level(&self) -> Option<&'static str> {
        self.events.as_ref()?.log_level()
    }

    fn log(&self, level: &str, logger: &str, data: &RawValue) {
        if let Some(events) = &self.events
            && let Ok((data, _)) = json::read_answer(data.get())
        {
            let logger: String = logger
                .chars()
                .filter(|it| !it.is_control())
                .take(100)
                .collect();
            events.log(level, &logger, data);
        }
    }

    /// Declines what the caller cannot be asked, and what no caller may be asked.
    fn ask(&self, question: Question) -> Answering {
        let params = question
            .params
            .as_deref()
            .and_then(|params| json::read_wide(params.get()).ok());
        let can = asking::can_answer(
            self.capabilities.as_deref(),
            &question.method,
            params.as_ref(),
        );
        let secret = secret_field(params.as_ref());
        if let Some(field) = &secret {
            let upstream = &*self.server;
            tracing::warn!(
                upstream,
                field,
                "it asks for what looks like a secret; it is declined"
            );
        }
        let may = secret.is_none() && !asking::is_foreign_link(params.as_ref());
        let questions = self.questions.clone().filter(|_| can && may);
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            questions?.send(parked::Asked { question, answer }).ok()?;
            tokio::time::timeout(parked::ANSWER_WITHIN, answered)
                .await
                .ok()?
                .ok()
        })
    }
}

fn failed(failure: CallFailure, asked: &Asked, writes: bool) -> CallError {
    let unavailable = |message: &'static str| CallError::new(Code::Unavailable, message);
    match failure {
        CallFailure::Overloaded { retry_after_ms } => {
            let message = "Too many calls of this tool's server are running at once.";
            CallError::new(Code::Overloaded, message).retry_after_ms(retry_after_ms)
        }
        CallFailure::BackedOff { retry_after_ms } => {
            let message =
                "The server of this tool failed in all its last calls and is tried again later.";
            unavailable(message).retry_after_ms(retry_after_ms)
        }
        CallFailure::NotThere {
            why,
            retry_after_ms,
        } => unavailable("The server of this tool is not there now.")
            .retry_after_ms(retry_after_ms)
            .log(why.in_one_line()),
        CallFailure::Refused(refusal) => refused(&refusal, asked, writes),
        CallFailure::Failed(failure) => {
            let error = match failure.kind {
                Kind::Timeout => CallError::new(Code::Timeout, "The call took longer than it may."),
                Kind::Cancelled => CallError::new(Code::Cancelled, "The call was cancelled."),
                Kind::TooLarge => CallError::new(
                    Code::TooLarge,
                    "The tool answered more than may be passed on.",
                ),
                Kind::Access => unavailable(
                    "The server of this tool does not accept the gateway's credentials.",
                ),
                Kind::Protocol => CallError::new(
                    Code::UpstreamError,
                    "The server of this tool answered no result.",
                ),
                _ => unavailable("The server of this tool broke off.").retry_after_ms(1_000),
            };
            let outcome = if failure.is_handed_over {
                WriteOutcome::Unknown
            } else {
                WriteOutcome::None
            };
            let error = error.log(failure.in_one_line());
            if writes {
                error.outcome(outcome)
            } else {
                error
            }
        }
    }
}

/// Returns the URLs that a server of 2025-11-25 refuses for, as a question of the modern era: its caller calls again once they
/// were opened. `None`: it is a refusal of another kind.
fn asked_by(refusal: &Refusal) -> Option<Value> {
    let data = refusal
        .data
        .as_ref()
        .filter(|_| refusal.code == URL_ELICITATION_REQUIRED)?;
    let data = json::read(data.get()).ok()?;
    let elicitations = data.get("elicitations")?.as_array()?;
    let is_url = |asked: &Value| asked["mode"] == "url" && asked["url"].is_string();
    if elicitations.is_empty() || !elicitations.iter().all(is_url) {
        return None;
    }
    let request = |params: &Value| object!({ "method": "elicitation/create", "params": params });
    let requests = elicitations
        .iter()
        .enumerate()
        .map(|(number, params)| (format!("url-{number}"), request(params)));
    let requests: Map<_, _> = requests.collect();
    Some(
        object!({ "resultType": "input_required", "inputRequests": requests, "requestState": URLS }),
    )
}

/// Reads an error of the protocol, by which the server has refused.
fn refused(refusal: &Refusal, asked: &Asked, writes: bool) -> CallError {
    let message = said(&refusal.words());
    let said = refusal.message.to_lowercase();
    let is_named = |name: &str| said.contains(&name.to_lowercase());
    let is_unknown = match asked {
        Asked::Tool { name, .. } => {
            said.contains("unknown tool")
                || (is_named(name) && (said.contains("not found") || said.contains("unknown")))
        }
        Asked::Resource { .. } if refusal.code == RESOURCE_NOT_FOUND => {
            return CallError::unknown();
        }
        _ => false,
    };
    match refusal.code {
        METHOD_NOT_FOUND => changed(message),
        INVALID_PARAMS if is_unknown => changed(message),
        INVALID_PARAMS => {
            let error = CallError::new(Code::InvalidArguments, message);
            CallError {
                reason: Some("refused_by_source".to_owned()),
                ..error
            }
        }
        // It has done nothing yet.
        URL_ELICITATION_REQUIRED => CallError::new(Code::ToolError, message),
        code => {
            let error = CallError::new(Code::UpstreamError, message)
                .log(format!("the server's error {code}"));
            if writes {
                error.outcome(WriteOutcome::Unknown)
            } else {
                error
            }
        }
    }
}

fn changed(said: String) -> CallError {
    CallError::new(
        Code::SourceChanged,
        "The server of this tool no longer has it as it was published.",
    )
    .log(said)
}

/// Shapes the answer: it is read strictly, and its structured content is checked against the pinned schema.
pub(super) fn shape(
    cursors: &Cursors,
    caller: &Caller,
    tool: &CatalogueTool,
    foreign: &ForeignTool,
    input: &Input<'_>,
    request: &CallRequest<'_>,
    answer: &Answered,
) -> Result<CallOutcome, CallError> {
    // What was done cannot be undone, and the agent must know.
    let unknown = |error: CallError| {
        if foreign.writes {
            error.outcome(WriteOutcome::Unknown)
        } else {
            error
        }
    };
    let (members, odd) = read_members(answer.result.get()).map_err(unknown)?;
    match members.get("resultType").and_then(Value::as_str) {
        None | Some("complete") => {}
        Some("input_required") => {
            let Ask::Foreign(_, sent) = &input.ask else {
                return Err(CallError::new(Code::Internal, "The gateway failed."));
            };
            let Asked::Tool {
                arguments: Some(arguments),
                ..
            } = &sent.asked
            else {
                return Err(CallError::new(Code::Internal, "The gateway failed."));
            };
            let bound = asking::bound(caller, tool, tool.contract_version(), arguments.get());
            return input_required(cursors, &bound, request, &members, &answer.may_ask)
                .map(CallOutcome::InputRequired);
        }
        Some(_) => {
            return Err(unknown(mismatch(
                "the result is of a type that is not known here".to_owned(),
            )));
        }
    }
    let result = complete(tool, foreign, members, &odd, answer.result.get()).map_err(unknown)?;
    if result.is_error {
        return Err(CallError::foreign(result));
    }
    Ok(CallOutcome::Complete(result))
}

/// Passes on the server's questions to its caller, before it goes on.
pub(super) fn input_required(
    cursors: &Cursors,
    bound: &Bound,
    request: &CallRequest<'_>,
    members: &Map<String, Value>,
    may_ask: &AllowedQuestions,
) -> Result<InputRequired, CallError> {
    let requests = members
        .get("inputRequests")
        .map_or_else(|| "{}".to_owned(), Value::to_string);
    let state = members.get("requestState").and_then(Value::as_str);
    let waits = state
        .filter(|state| parked::is_handle(state))
        .map(str::to_owned);
    let asked = asking::ask(cursors, bound, request, &requests, state, Some(may_ask));
    match asked {
        Ok(asked) => Ok(InputRequired { waits, ..asked }),
        Err(error) => Err(parked::give_up(waits.as_deref(), error)),
    }
}

pub(super) fn members(answer: &str) -> Result<Map<String, Value>, CallError> {
    read_members(answer).map(|(members, _)| members)
}

/// Reads an answer, with the digits of its numbers, and what of it could not be read as it was.
fn read_members(answer: &str) -> Result<(Map<String, Value>, Vec<JsonError>), CallError> {
    match json::read_answer(answer) {
        Ok((Value::Object(members), odd)) => Ok((members, odd)),
        Ok(_) => Err(mismatch("the result is no object".to_owned())),
        Err(error) => Err(mismatch(format!("{} at {}", error.message, error.path))),
    }
}

fn complete(
    tool: &CatalogueTool,
    foreign: &ForeignTool,
    mut members: Map<String, Value>,
    odd: &[JsonError],
    text: &str,
) -> Result<ToolResult, CallError> {
    if foreign.publishes_uris {
        uri::publish_uris(&tool.contract, &mut members);
    }
    let is_error = members
        .get("isError")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let structured = members.shift_remove("structuredContent");
    let structured = self::structured(foreign, structured, is_error, text)?;
    let content = members
        .shift_remove("content")
        .unwrap_or_else(|| Value::Array(Vec::new()));
    let mut content = blocks::checked(content).map_err(mismatch)?;
    let has_text = content.iter().any(|block| block["type"] == "text");
    // Most models are shown the blocks alone.
    if let Some(structured) = structured.as_deref().filter(|_| !has_text) {
        content.insert(0, blocks::text(structured));
    }
    if !odd.is_empty() {
        content.push(blocks::text(&not_passed_on(odd)));
    }
    let content = Content::Blocks(Value::Array(content).to_string());
    let mut result = ToolResult::of(content, structured, is_error);
    if let Some(Value::Object(meta)) = members.shift_remove("_meta") {
        result
            .meta
            .extend(theirs(meta).map(|(name, value)| (name.into(), value.to_string())));
    }
    Ok(result)
}

/// Says which parts of an answer are others than the server wrote.
fn not_passed_on(odd: &[JsonError]) -> String {
    const SHOWN_MAX: usize = 5;
    let one = |odd: &JsonError| match odd.path.is_empty() {
        true => odd.message.clone(),
        false => format!("{} at {}", odd.message, odd.path),
    };
    let shown: Vec<String> = odd.iter().take(SHOWN_MAX).map(one).collect();
    format!(
        "Not passed on as the server answered it: {}.",
        shown.join("; ")
    )
}

/// Returns the members of `_meta` that are passed on.
pub(crate) fn theirs(meta: Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    meta.into_iter()
        .filter(|(name, _)| !OURS.iter().any(|ours| name.starts_with(ours)))
        .take(META_MAX)
}

/// Returns the structured content. That of an error need not meet the schema, but some clients check it all the same,
/// so what does not meet it is left out.
fn structured(
    foreign: &ForeignTool,
    structured: Option<Value>,
    is_error: bool,
    text: &str,
) -> Result<Option<String>, CallError> {
    let checker = foreign.output();
    if foreign.promises_output() && checker.is_none() {
        return Err(CallError::new(
            Code::Internal,
            "The answer of this tool cannot be checked.",
        ));
    }
    match (structured, checker) {
        (None, Some(_)) if !is_error => Err(mismatch(
            "it promises structured content and answered none".to_owned(),
        )),
        (None, _) => Ok(None),
        (Some(value), Some(checker)) => match checker.check(&value, text) {
            Ok(()) => Ok(Some(value.to_string())),
            Err(_) if is_error => Ok(None),
            Err(found) => Err(mismatch(found.to_string())),
        },
        (Some(value @ Value::Object(_)), None) => Ok(Some(value.to_string())),
        (Some(_), None) => Ok(None),
    }
}

/// Returns the error for an answer that breaks its own promise, which says what of it, and no value.
pub(super) fn mismatch(what: String) -> CallError {
    let told: String = what
        .chars()
        .filter(|c| !c.is_control())
        .take(MESSAGE_MAX)
        .collect();
    CallError::new(
        Code::OutputMismatch,
        format!("The tool answered something else than it declares: {told}."),
    )
    .log(what)
}

/// Returns a server's words without what moves a terminal's cursor. Of long ones the beginning and the end are kept, where
/// the cause mostly stands.
fn said(message: &str) -> String {
    let plain: Vec<char> = message
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    if plain.len() <= WORDS_MAX {
        return plain.into_iter().collect();
    }
    let (start, end) = (
        &plain[..WORDS_MAX / 2],
        &plain[plain.len() - WORDS_MAX / 2..],
    );
    format!(
        "{} … {}",
        start.iter().collect::<String>(),
        end.iter().collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use weir_upstream::Failure;

    use super::*;

    fn refusal(code: i64, message: &str) -> CallError {
        let refusal = Refusal {
            code,
            message: message.to_owned(),
            data: None,
        };
        let asked = Asked::Tool {
            name: "create_issue".into(),
            arguments: None,
            as_task: false,
        };
        failed(CallFailure::Refused(refusal), &asked, true)
    }

    #[test]
    fn a_server_that_no_longer_has_the_tool_is_told_from_one_that_refuses_arguments() {
        for (code, message, expected) in [
            (-32602, "Unknown tool: create_issue", Code::SourceChanged),
            (
                -32602,
                "MCP error -32602: Tool create_issue not found",
                Code::SourceChanged,
            ),
            (-32602, "Tool foo not found", Code::InvalidArguments),
            (-32602, "`title` is too long", Code::InvalidArguments),
            (-32601, "Method not found", Code::SourceChanged),
            (-32603, "Internal error", Code::UpstreamError),
        ] {
            assert_eq!(refusal(code, message).code, expected, "{code} {message}");
        }
        assert_eq!(
            refusal(-32603, "Internal error").outcome,
            Some(WriteOutcome::Unknown)
        );
        assert_eq!(
            refusal(-32602, "`title`\u{1b}[31m is\ntoo long").message,
            "`title`[31m is\ntoo long"
        );
    }

    #[test]
    fn the_data_of_a_refusal_is_passed_on_within_its_bound() {
        let with = |data: &Value| {
            let refusal = Refusal {
                code: -32603,
                message: "Internal error".to_owned(),
                data: Some(raw(data).expect("JSON")),
            };
            let asked = Asked::Resource { uri: "u".into() };
            refused(&refusal, &asked, false).message.into_owned()
        };
        assert_eq!(
            with(&object!({ "reason": "quota of project 7 used up" })),
            r#"Internal error: {"reason":"quota of project 7 used up"}"#
        );
        assert_eq!(with(&object!("quota\u{1b}[1m")), "Internal error: quota[1m");
        for nothing in [object!(null), object!({}), object!("error")] {
            assert_eq!(with(&nothing), "Internal error");
        }
        let long = with(&object!({ "trace": "x".repeat(1 << 20) }));
        assert!(long.chars().count() <= WORDS_MAX + 3, "{}", long.len());
    }

    #[test]
    fn urls_that_a_legacy_server_wants_opened_are_a_question() {
        let url = object!({ "mode": "url", "message": "Sign in", "url": "https://example.com", "elicitationId": "7" });
        let refusal = |code, elicitations: Value| {
            let data = raw(&object!({ "elicitations": elicitations })).expect("JSON");
            asked_by(&Refusal {
                code,
                message: String::new(),
                data: Some(data),
            })
        };
        let asked = refusal(URL_ELICITATION_REQUIRED, object!([url])).expect("a question");
        assert_eq!(asked["resultType"], "input_required");
        let request = object!({ "url-0": { "method": "elicitation/create", "params": url } });
        assert_eq!(asked["inputRequests"], request);
        for other in [object!([]), object!([{ "mode": "form" }]), Value::Null] {
            assert_eq!(refusal(URL_ELICITATION_REQUIRED, other), None);
        }
        assert_eq!(refusal(-32603, object!([url])), None);
    }

    #[test]
    fn what_was_never_sent_changed_nothing_and_what_was_may_have() {
        let asked = Asked::Tool {
            name: "t".into(),
            arguments: None,
            as_task: false,
        };
        let closed = Failure::new(Kind::Closed, "x", "y");
        let sent = failed(CallFailure::Failed(closed.clone()), &asked, true);
        assert_eq!(
            (sent.outcome, sent.retry_after_ms),
            (Some(WriteOutcome::Unknown), None)
        );
        let unsent = failed(
            CallFailure::Failed(closed.clone().before_sending()),
            &asked,
            true,
        );
        assert_eq!(
            (unsent.outcome, unsent.retry_after_ms),
            (Some(WriteOutcome::None), Some(1_000))
        );
        assert_eq!(
            failed(CallFailure::Failed(closed), &asked, false).outcome,
            None
        );
    }
}
