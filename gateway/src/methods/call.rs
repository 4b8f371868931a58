//! Takes requests that may take a while to the call path, and for `tools/call` turns the outcome into the answer.

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use weir_plugin_host::CallEvents;

use super::{
    CallChannel, CallMessages, Client, Request, RequestScope,
    blocks::lowered,
    complete, item, list,
    meta::{Proved, write_meta},
    resources,
    rounds::{Asker, Rounds},
    tasks,
};
use crate::{
    call::{
        self, Asking, CallError, CallOutcome, CallRequest, Content, InputRequired, Lacking,
        MissingCapability, ParamHeaders, Resumed, Searched, ToolResult, call_tool,
    },
    catalogue::{ItemKind, Listing},
    codes::Code,
    snapshot::Snapshot,
    tasks::Task,
    wire::{
        Id, LogLevel, Method, ResultWriter, RpcError, Version, error_answer, raw, string_room,
        write_string,
    },
};

pub(super) const BAD_STATE: &str =
    "`params.requestState` belongs to no question of this call, or the answer comes too late";

/// The answer of a request, and the status that HTTP says with it.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// Whether the call was cancelled and did nothing.
    pub was_cancelled: bool,
}

impl Answer {
    pub(super) fn refused(id: &Id<'_>, error: &RpcError) -> Self {
        Self {
            status: error.status,
            ..error_answer(Some(id), error).into()
        }
    }
}

impl From<Vec<u8>> for Answer {
    fn from(body: Vec<u8>) -> Self {
        Self {
            status: 200,
            body,
            was_cancelled: false,
        }
    }
}

/// A request that has been read and not started.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub id: Id<'a>,
    /// JSON; present when the caller asks for progress.
    progress_token: Option<Cow<'a, str>>,
    /// Of a modern caller, who says with each request what it wants to hear.
    log_level: Option<LogLevel>,
    pub(super) asked: Asked<'a>,
    pub(super) version: Version,
    trace: Option<Cow<'a, str>>,
    /// Over HTTP, of a modern caller.
    param_headers: Option<Box<ParamHeaders>>,
    /// JSON: what a modern caller says it can answer while a call is under way.
    capabilities: Option<Cow<'a, str>>,
    /// JSON: its answers.
    responses: Option<Cow<'a, str>>,
    /// The state that the caller was given with the question.
    state: Option<Cow<'a, str>>,
}

/// The subject of a request. `arguments`, `reference`, `argument` and `context` are JSON objects.
#[derive(Clone, Debug)]
pub(super) enum Asked<'a> {
    Tool {
        name: Cow<'a, str>,
        arguments: Option<Cow<'a, str>>,
    },
    Prompt {
        name: Cow<'a, str>,
        arguments: Option<Cow<'a, str>>,
    },
    Resource {
        uri: Cow<'a, str>,
    },
    Completion {
        reference: Cow<'a, str>,
        argument: Cow<'a, str>,
        context: Option<Cow<'a, str>>,
    },
    /// The list of resources, some of which have to be asked for.
    Resources {
        cursor: Option<Cow<'a, str>>,
    },
}

impl<'a> Asked<'a> {
    fn read(request: &Request<'a>) -> Result<Self, RpcError> {
        let params = &request.params;
        let text = |value: Option<&'a RawValue>, name: &str| {
            let text = value.and_then(raw::string);
            text.ok_or_else(|| {
                RpcError::invalid_params(format!("`params.{name}` must be a string"))
            })
        };
        let object = |value: Option<&'a RawValue>, name: &str| match value {
            Some(value) if !raw::is_object(value) => Err(RpcError::invalid_params(format!(
                "`params.{name}` must be an object"
            ))),
            value => Ok(value.map(|value| Cow::Borrowed(value.get()))),
        };
        let needed = |value: Option<&'a RawValue>, name: &str| {
            let missing = || RpcError::invalid_params(format!("`params.{name}` must be an object"));
            object(value, name)?.ok_or_else(missing)
        };
        Ok(match request.method {
            Method::GetPrompt => Self::Prompt {
                name: text(params.name, "name")?,
                arguments: object(params.arguments, "arguments")?,
            },
            Method::ReadResource => Self::Resource {
                uri: text(params.uri, "uri")?,
            },
            Method::Complete => Self::Completion {
                reference: needed(params.reference, "ref")?,
                argument: needed(params.argument, "argument")?,
                context: object(params.context, "context")?,
            },
            Method::ListResources => Self::Resources {
                cursor: list::cursor(request)?,
            },
            _ => Self::Tool {
                name: text(params.name, "name")?,
                arguments: object(params.arguments, "arguments")?,
            },
        })
    }

    fn into_owned(self) -> Asked<'static> {
        match self {
            Self::Tool { name, arguments } => Asked::Tool {
                name: owned(name),
                arguments: arguments.map(owned),
            },
            Self::Prompt { name, arguments } => Asked::Prompt {
                name: owned(name),
                arguments: arguments.map(owned),
            },
            Self::Resource { uri } => Asked::Resource { uri: owned(uri) },
            Self::Completion {
                reference,
                argument,
                context,
            } => Asked::Completion {
                reference: owned(reference),
                argument: owned(argument),
                context: context.map(owned),
            },
            Self::Resources { cursor } => Asked::Resources {
                cursor: cursor.map(owned),
            },
        }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

impl<'a> Call<'a> {
    pub(super) fn read(request: Request<'a>) -> Result<Self, RpcError> {
        let asked = Asked::read(&request)?;
        let (responses, state) = (request.params.input_responses, request.params.request_state);
        if responses.is_some_and(|responses| !raw::is_object(responses)) {
            return Err(RpcError::invalid_params(
                "`params.inputResponses` must be an object",
            ));
        }
        let wrong = || {
            RpcError::invalid_params(
                "`params.requestState` must be the string that came with the question",
            )
        };
        let state = state
            .map(|state| raw::string(state).ok_or_else(wrong))
            .transpose()?;
        let is_modern = request.version.is_modern();
        let capabilities = request
            .params
            .meta
            .client_capabilities
            .filter(|_| is_modern);
        let log_level = if is_modern {
            request.params.meta.log_level()?
        } else {
            None
        };
        Ok(Self {
            capabilities: capabilities.map(|stated| stated.get().into()),
            responses: responses.map(|responses| responses.get().into()),
            state,
            id: request.id,
            progress_token: request.progress_token.map(Cow::Borrowed),
            log_level,
            asked,
            version: request.version,
            trace: request.trace,
            param_headers: request.param_headers,
        })
    }

    /// What the call says before its answer, and where it is said. `None`: its caller wants to hear nothing. `client`: of
    /// a legacy session, whose log level counts and who can be asked. `ending`: cancelled when its answers are not waited for
    /// any more.
    pub fn channel(
        &self,
        client: Option<&Arc<Client>>,
        ending: &CancellationToken,
    ) -> Option<(Arc<CallChannel>, CallMessages)> {
        let client = client.filter(|_| !self.version.is_modern());
        let level = self
            .log_level
            .or_else(|| client.and_then(|client| client.log_level()));
        CallChannel::open(self.progress_token.as_deref(), level, client, ending)
    }

    /// `None` when the call was cancelled: a cancelled call gets no answer.
    pub async fn run(
        &self,
        scope: &RequestScope,
        cancel: &CancellationToken,
        channel: Option<Arc<CallChannel>>,
    ) -> Option<Answer> {
        // One generation for the whole request: the answer names the server that ran the call, whatever came since.
        let snapshot = scope.gateway.snapshot();
        // What asks other servers is in a place of its own: it would make the future of every call of a tool large.
        let channel = channel.as_ref();
        let answer = match &self.asked {
            Asked::Tool { name, arguments } => {
                match tasks::opened(self, scope, &snapshot, name, channel) {
                    Some(task) => Box::pin(tasks::run(self, scope, &snapshot, task, cancel)).await,
                    None => {
                        self.called(
                            scope,
                            &snapshot,
                            (name, arguments.as_deref()),
                            cancel,
                            channel,
                            None,
                        )
                        .await
                    }
                }
            }
            Asked::Prompt { name, arguments } => {
                let request = self.request(
                    scope,
                    &snapshot,
                    (name, arguments.as_deref()),
                    cancel,
                    channel,
                );
                Box::pin(item::answer(
                    self,
                    scope,
                    ItemKind::Prompt,
                    request,
                    channel,
                ))
                .await
                .into()
            }
            Asked::Resource { uri } => {
                let request = self.request(scope, &snapshot, (uri, None), cancel, channel);
                Box::pin(item::answer(
                    self,
                    scope,
                    ItemKind::Resource,
                    request,
                    channel,
                ))
                .await
                .into()
            }
            Asked::Completion {
                reference,
                argument,
                context,
            } => {
                let request = self.request(
                    scope,
                    &snapshot,
                    ("completion/complete", None),
                    cancel,
                    channel,
                );
                let asked = (&**reference, &**argument, context.as_deref());
                Box::pin(complete::answer(self, scope, request, asked))
                    .await
                    .into()
            }
            Asked::Resources { cursor } => {
                Box::pin(resources::answer(self, scope, &snapshot, cursor.as_deref()))
                    .await
                    .into()
            }
        };
        if cancel.is_cancelled() {
            None
        } else {
            Some(answer)
        }
    }

    /// Runs the call of a tool that may have become a task.
    pub(super) async fn as_task(
        &self,
        scope: &RequestScope,
        snapshot: &Snapshot,
        task: &Arc<Task>,
    ) -> Answer {
        let Asked::Tool { name, arguments } = &self.asked else {
            return Answer::refused(
                &self.id,
                &RpcError::internal("only calls of tools become tasks"),
            );
        };
        self.called(
            scope,
            snapshot,
            (name, arguments.as_deref()),
            task.token(),
            None,
            Some(task),
        )
        .await
    }

    /// JSON: what a modern caller says it can answer.
    pub(super) fn capabilities(&self) -> Option<&str> {
        self.capabilities.as_deref()
    }

    /// Answers `tools/call`. In a view with search, the tool that is called stands in the arguments, or the answer is
    /// what was found.
    async fn called(
        &self,
        scope: &RequestScope,
        snapshot: &Snapshot,
        (name, arguments): (&str, Option<&str>),
        cancel: &CancellationToken,
        channel: Option<&Arc<CallChannel>>,
        task: Option<&Arc<Task>>,
    ) -> Answer {
        let searching = snapshot
            .catalogue
            .searching(&scope.endpoint, scope.caller.access());
        let mut request = self.request(scope, snapshot, (name, arguments), cancel, channel);
        let asker = match (task, channel) {
            (Some(task), _) => {
                request.events = Some(task.clone());
                Some(Asker::Task(task))
            }
            (None, Some(channel)) if !self.version.is_modern() => Some(Asker::Session(channel)),
            (None, _) => None,
        };
        let Some(searching) = searching else {
            let outcome = self.tool(scope, request, asker).await;
            return self.outcome(scope, snapshot, name, false, outcome);
        };
        match Box::pin(call::searched(
            &scope.gateway,
            &scope.caller,
            &searching,
            &request,
        ))
        .await
        {
            Searched::Answer(outcome) => self.outcome(scope, snapshot, name, true, *outcome),
            Searched::Call { tool, arguments } => {
                let request = CallRequest {
                    tool: &tool,
                    arguments,
                    ..request
                };
                let outcome = self.tool(scope, request, asker).await;
                self.outcome(scope, snapshot, &tool, true, outcome)
            }
        }
    }

    /// Returns the request as the call path takes it, for a name and its arguments.
    fn request<'r>(
        &'r self,
        scope: &'r RequestScope,
        snapshot: &'r Snapshot,
        (name, arguments): (&'r str, Option<&'r str>),
        cancel: &'r CancellationToken,
        channel: Option<&'r Arc<CallChannel>>,
    ) -> CallRequest<'r> {
        let responses = self.responses.as_deref();
        let state = self.state.as_deref();
        let resumed =
            (responses.is_some() || state.is_some()).then_some(Resumed { responses, state });
        let capabilities = self
            .capabilities
            .as_deref()
            .or_else(|| channel.and_then(|channel| channel.capabilities()));
        let lacking = if self.version.is_modern() {
            Lacking::ProtocolError
        } else {
            Lacking::Result
        };
        CallRequest {
            snapshot,
            endpoint: &scope.endpoint,
            tool: name,
            arguments,
            events: channel.map(|channel| channel.clone() as Arc<dyn CallEvents>),
            cancel,
            trace: self.trace.as_deref(),
            transport: scope.transport,
            protocol: self.version.as_str(),
            session: scope.session(),
            charge: scope.charge,
            param_headers: self.param_headers.as_deref(),
            asking: Asking {
                capabilities,
                lacking,
                resumed,
            },
        }
    }

    async fn tool(
        &self,
        scope: &RequestScope,
        request: CallRequest<'_>,
        asker: Option<Asker<'_>>,
    ) -> CallOutcome {
        let outcome = call_tool(&scope.gateway, &scope.caller, &request).await;
        match (&outcome, asker) {
            (CallOutcome::InputRequired(ask), Some(asker)) if asker.asks_now() => {
                Box::pin(rounds(scope, request, asker, ask)).await
            }
            _ => outcome,
        }
    }

    /// Writes the answer of a call of `name`. `found`: by a search, whose callers are told of a name that is not there as
    /// of every other mistake.
    fn outcome(
        &self,
        scope: &RequestScope,
        snapshot: &Snapshot,
        name: &str,
        found: bool,
        outcome: CallOutcome,
    ) -> Answer {
        let listing = || match self.version.is_modern() {
            true => snapshot
                .catalogue
                .listing(&scope.endpoint, scope.caller.access()),
            false => None,
        };
        match outcome {
            CallOutcome::UnknownTool(call_id) if found => self
                .answer(listing().as_deref(), &call::unknown(name, &call_id))
                .into(),
            CallOutcome::UnknownTool(_) => {
                let listing = snapshot
                    .catalogue
                    .listing(&scope.endpoint, scope.caller.access());
                let meant = listing
                    .as_deref()
                    .and_then(|listing| prefixed(listing, name));
                Answer::refused(&self.id, &RpcError::unknown_tool(name, meant))
            }
            CallOutcome::BadState => {
                Answer::refused(&self.id, &RpcError::invalid_params(BAD_STATE))
            }
            CallOutcome::HeaderMismatch(message) => {
                Answer::refused(&self.id, &RpcError::header_mismatch(message))
            }
            CallOutcome::MissingCapability(needed) => Answer::refused(&self.id, &lacks(needed)),
            CallOutcome::Complete(mut result) => {
                result.receipt = result.receipt.filter(|_| scope.has_receipts(snapshot));
                Answer {
                    was_cancelled: result.was_cancelled(),
                    ..self.answer(listing().as_deref(), &result).into()
                }
            }
            CallOutcome::InputRequired(ask) => self.ask(listing().as_deref(), &ask).into(),
        }
    }

    /// Answers that the tool asks first. Only modern clients are asked this way.
    pub(super) fn ask(&self, listing: Option<&Listing>, ask: &InputRequired) -> Vec<u8> {
        let room = [&ask.requests, &ask.state]
            .into_iter()
            .flatten()
            .map(String::len)
            .sum::<usize>();
        let mut answer = ResultWriter::new(&self.id, room + 384);
        answer.string("resultType", "input_required");
        if let Some(requests) = &ask.requests {
            answer.json("inputRequests", requests);
        }
        if let Some(state) = &ask.state {
            answer.string("requestState", state);
        }
        if let Some(listing) = listing {
            list::write_server(&mut answer, &listing.server);
        }
        answer.finish()
    }

    pub fn into_owned(self) -> Call<'static> {
        Call {
            id: self.id.into_owned(),
            progress_token: self.progress_token.map(owned),
            log_level: self.log_level,
            asked: self.asked.into_owned(),
            version: self.version,
            trace: self.trace.map(owned),
            param_headers: self.param_headers,
            capabilities: self.capabilities.map(owned),
            responses: self.responses.map(owned),
            state: self.state.map(owned),
        }
    }

    fn answer(&self, listing: Option<&Listing>, result: &ToolResult) -> Vec<u8> {
        let room = match &result.content {
            Content::Text(text) => string_room(text),
            Content::Blocks(blocks) => blocks.len(),
        };
        let mut answer = ResultWriter::new(
            &self.id,
            room + result.structured.as_ref().map_or(0, String::len) + 384,
        );
        if self.version.is_modern() {
            answer.string("resultType", "complete");
        }
        let content = answer.member("content");
        match &result.content {
            Content::Text(text) => {
                content.extend_from_slice(br#"[{"type":"text","text":"#);
                write_string(content, text);
                content.extend_from_slice(b"}]");
            }
            Content::Blocks(blocks) => {
                content.extend_from_slice(lowered(blocks, self.version).as_bytes())
            }
        }
        if let Some(structured) = result
            .structured
            .as_ref()
            .filter(|_| self.version.is_structured())
        {
            // We wrote this, value by value: on stdio a line break would end the message.
            debug_assert!(
                !structured.as_bytes().contains(&b'\n'),
                "a message is one line"
            );
            answer.json("structuredContent", structured);
        }
        answer.json("isError", if result.is_error { "true" } else { "false" });
        let proved = Proved {
            receipt: result.receipt.as_ref(),
            unrecorded: result.unrecorded,
        };
        write_meta(
            &mut answer,
            listing,
            proved,
            result
                .meta
                .iter()
                .map(|(name, value)| (&**name, value.as_str())),
        );
        answer.finish()
    }
}

/// Returns the listed tool that has a prefix here and was asked for without it: texts of other servers name their tools so.
/// Similar names are not looked for, since what is hidden has to be answered as what is not there.
fn prefixed<'l>(listing: &'l Listing, name: &str) -> Option<&'l str> {
    let is_meant = |tool: &&str| {
        tool.strip_suffix(name)
            .is_some_and(|prefix| prefix.ends_with(['_', '-']))
    };
    let mut meant = listing
        .tools
        .entries()
        .iter()
        .map(|tool| &*tool.name)
        .filter(is_meant);
    if name.is_empty() { None } else { meant.next() }
}

/// Returns the error for a client that lacks a capability.
pub(super) fn lacks(needed: MissingCapability) -> RpcError {
    let (message, reason) = needed.told();
    RpcError::missing_capability(message, reason, &needed.as_json())
}

/// The call goes on with the answers of its caller, until it asks nothing more.
async fn rounds(
    scope: &RequestScope,
    request: CallRequest<'_>,
    asker: Asker<'_>,
    first: &InputRequired,
) -> CallOutcome {
    let mut rounds = Rounds::default();
    let mut asked = first.clone();
    let ended = |error: CallError| {
        let mut result = error.into_result("none");
        let tool =
            request
                .snapshot
                .catalogue
                .tool(request.endpoint, request.tool, scope.caller.access());
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
                return ended(asked.give_up(CallError::new(Code::Unavailable, message)));
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn call(version: Version) -> Call<'static> {
        let id = serde_json::value::RawValue::from_string("7".to_owned()).expect("JSON");
        let id = Id::read(&id).expect("an id").into_owned();
        Call {
            id,
            progress_token: None,
            log_level: None,
            asked: Asked::Tool {
                name: "t".into(),
                arguments: None,
            },
            version,
            trace: None,
            param_headers: None,
            capabilities: None,
            responses: None,
            state: None,
        }
    }

    fn result(answer: &[u8]) -> Value {
        serde_json::from_slice::<Value>(answer).expect("JSON")["result"].take()
    }

    #[test]
    fn content_blocks_and_meta_reach_the_client_as_they_are() {
        let blocks = r#"[{"type":"image","data":"AA==","mimeType":"image/png"}]"#;
        let mut told = ToolResult::of(Content::Blocks(blocks.to_owned()), None, false);
        told.meta
            .push(("dev.example/trace".into(), r#"{"a":1}"#.to_owned()));
        let answer = result(&call(Version::V2025_11_25).answer(None, &told));
        let expected = json!({
            "content": [{ "type": "image", "data": "AA==", "mimeType": "image/png" }],
            "isError": false,
            "_meta": { "dev.example/trace": { "a": 1 } },
        });
        assert_eq!(answer, expected);
    }

    #[test]
    fn a_question_of_the_tool_is_asked_as_the_modern_era_has_it() {
        let requests =
            r#"{"name":{"method":"elicitation/create","params":{"message":"Who?"}}}"#.to_owned();
        let ask = InputRequired {
            requests: Some(requests),
            state: Some("sealed".to_owned()),
            ..InputRequired::default()
        };
        let answer = result(&call(Version::V2026_07_28).ask(None, &ask));
        assert_eq!(answer["resultType"], "input_required");
        assert_eq!(
            answer["inputRequests"]["name"]["method"],
            "elicitation/create"
        );
        assert_eq!(answer["requestState"], "sealed");
        assert!(answer.get("content").is_none(), "{answer}");
    }
}
