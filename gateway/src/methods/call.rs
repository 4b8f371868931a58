//! `tools/call`: from the request to the call path, and from its outcome to the answer.

use std::{borrow::Cow, io::Write as _, sync::Arc};

use tokio_util::sync::CancellationToken;
use weir_plugin_host::Progress;

use super::{Request, RequestScope, blocks::lowered, list};
use crate::{
    call::{self, Asking, CallOutcome, CallRequest, Content, InputRequired, Resumed, Searched, ToolResult, call_tool},
    catalogue::Listing,
    wire::{Id, ResultWriter, RpcError, Version, error_answer, raw, string_room, write_string},
};

/// The call's receipt, in `_meta`.
const RECEIPT: &str = "dev.weir/receipt";
/// Set when a completed write could not be recorded.
const AUDIT: &str = "dev.weir/audit";
const BAD_STATE: &str = "`params.requestState` belongs to no question of this call, or the answer comes too late";

/// A call that has been read and not started.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub id: Id<'a>,
    /// JSON; present when the caller asks for progress.
    pub progress_token: Option<Cow<'a, str>>,
    tool: Cow<'a, str>,
    /// JSON.
    arguments: Option<Cow<'a, str>>,
    version: Version,
    trace: Option<Cow<'a, str>>,
    /// JSON: what a modern caller says it can answer while a call is under way.
    capabilities: Option<Cow<'a, str>>,
    /// JSON: its answers.
    responses: Option<Cow<'a, str>>,
    /// What it was given with the question.
    state: Option<Cow<'a, str>>,
}

impl<'a> Call<'a> {
    pub(super) fn read(request: Request<'a>) -> Result<Self, RpcError> {
        let Some(tool) = request.params.name.and_then(raw::string) else {
            return Err(RpcError::invalid_params("`params.name` must be a string"));
        };
        let arguments = match request.params.arguments {
            Some(arguments) if !raw::is_object(arguments) => {
                return Err(RpcError::invalid_params("`params.arguments` must be an object"));
            }
            arguments => arguments.map(|arguments| Cow::Borrowed(arguments.get())),
        };
        let (responses, state) = (request.params.input_responses, request.params.request_state);
        if responses.is_some_and(|responses| !raw::is_object(responses)) {
            return Err(RpcError::invalid_params("`params.inputResponses` must be an object"));
        }
        let state = match (state, responses) {
            (Some(state), _) => Some(raw::string(state).ok_or_else(|| {
                RpcError::invalid_params("`params.requestState` must be the string that came with the question")
            })?),
            (None, Some(_)) => return Err(RpcError::invalid_params(BAD_STATE)),
            (None, None) => None,
        };
        let capabilities = request.params.meta.client_capabilities.filter(|_| request.version.is_modern());
        Ok(Self {
            capabilities: capabilities.map(|stated| stated.get().into()),
            responses: responses.map(|responses| responses.get().into()),
            state,
            id: request.id,
            progress_token: request.progress_token.map(Cow::Borrowed),
            tool,
            arguments,
            version: request.version,
            trace: request.trace,
        })
    }

    /// `None` when the call was cancelled: a cancelled call gets no answer.
    pub async fn run(
        &self,
        scope: &RequestScope,
        cancel: &CancellationToken,
        progress: Option<Arc<dyn Progress>>,
    ) -> Option<Vec<u8>> {
        // One generation for the whole request: the answer names the server that ran the call, whatever came since.
        let snapshot = scope.gateway.snapshot();
        let is_modern = self.version.is_modern();
        let listing = || match is_modern {
            true => snapshot.catalogue.listing(&scope.endpoint, scope.caller.access()),
            false => None,
        };
        // A view with search: the tool that is called stands in the arguments, or the answer is what was found.
        let searching = snapshot.catalogue.searching(&scope.endpoint, scope.caller.access());
        let (tool, arguments) = match &searching {
            None => (Cow::Borrowed(&*self.tool), self.arguments.as_deref()),
            Some(searching) => {
                let arguments = self.arguments.as_deref();
                match call::searched(&scope.gateway, &scope.caller, searching, &self.tool, arguments) {
                    Searched::Call { tool, arguments } => (tool, arguments),
                    Searched::Answer(result) => return Some(self.answer(listing().as_deref(), &result)),
                }
            }
        };
        let responses = self.responses.as_deref();
        let resumed = self.state.as_deref().map(|state| Resumed { responses, state });
        let request = CallRequest {
            snapshot: &snapshot,
            endpoint: &scope.endpoint,
            tool: &tool,
            arguments,
            progress,
            cancel,
            trace: self.trace.as_deref(),
            transport: scope.transport,
            protocol: self.version.as_str(),
            timeout: None,
            session: scope.session,
            asking: Asking { capabilities: self.capabilities.as_deref(), resumed },
        };
        let outcome = call_tool(&scope.gateway, &scope.caller, request).await;
        if cancel.is_cancelled() {
            return None;
        }
        Some(match outcome {
            CallOutcome::UnknownTool if searching.is_some() => self.answer(listing().as_deref(), &call::unknown(&tool)),
            CallOutcome::UnknownTool => error_answer(Some(&self.id), &RpcError::unknown_tool(&self.tool)),
            CallOutcome::BadState => error_answer(Some(&self.id), &RpcError::invalid_params(BAD_STATE)),
            CallOutcome::Complete(result) => self.answer(listing().as_deref(), &result),
            CallOutcome::InputRequired(ask) => self.ask(listing().as_deref(), &ask),
        })
    }

    /// `_meta`: the proof that the call is recorded, and what every modern result carries.
    fn meta(&self, answer: &mut ResultWriter, listing: Option<&Listing>, result: &ToolResult) {
        if result.receipt.is_none() && !result.unrecorded && result.meta.is_empty() && listing.is_none() {
            return;
        }
        let meta = answer.member("_meta");
        meta.push(b'{');
        // Neither needs an escape: digits, letters, `:` and `-`.
        if let Some(receipt) = &result.receipt {
            write!(meta, "\"{RECEIPT}\":\"{receipt}\",").expect("memory can be written");
        }
        if result.unrecorded {
            write!(meta, "\"{AUDIT}\":\"not recorded\",").expect("memory can be written");
        }
        for (name, value) in &result.meta {
            write_string(meta, name);
            meta.push(b':');
            meta.extend_from_slice(value.as_bytes());
            meta.push(b',');
        }
        match listing {
            Some(listing) => list::write_server_member(meta, &listing.server),
            None => drop(meta.pop()),
        }
        meta.push(b'}');
    }

    /// The tool asks first. Only modern clients are asked this way.
    fn ask(&self, listing: Option<&Listing>, ask: &InputRequired) -> Vec<u8> {
        let room = [&ask.requests, &ask.state].into_iter().flatten().map(String::len).sum::<usize>();
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
        fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        Call {
            id: self.id.into_owned(),
            progress_token: self.progress_token.map(owned),
            tool: owned(self.tool),
            arguments: self.arguments.map(owned),
            version: self.version,
            trace: self.trace.map(owned),
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
        let mut answer = ResultWriter::new(&self.id, room + result.structured.as_ref().map_or(0, String::len) + 384);
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
            Content::Blocks(blocks) => content.extend_from_slice(lowered(blocks, self.version).as_bytes()),
        }
        if let Some(structured) = result.structured.as_ref().filter(|_| self.version.is_structured()) {
            // Written by us, value by value: on stdio a line break would end the message.
            debug_assert!(!structured.contains(['\n', '\r']), "a message is one line");
            answer.json("structuredContent", structured);
        }
        answer.json("isError", if result.is_error { "true" } else { "false" });
        self.meta(&mut answer, listing, result);
        answer.finish()
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
            tool: "t".into(),
            arguments: None,
            version,
            trace: None,
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
        told.meta.push(("dev.example/trace".into(), r#"{"a":1}"#.to_owned()));
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
        let requests = r#"{"name":{"method":"elicitation/create","params":{"message":"Who?"}}}"#.to_owned();
        let ask = InputRequired { requests: Some(requests), state: Some("sealed".to_owned()), receipt: None };
        let answer = result(&call(Version::V2026_07_28).ask(None, &ask));
        assert_eq!(answer["resultType"], "input_required");
        assert_eq!(answer["inputRequests"]["name"]["method"], "elicitation/create");
        assert_eq!(answer["requestState"], "sealed");
        assert!(answer.get("content").is_none(), "{answer}");
    }
}
