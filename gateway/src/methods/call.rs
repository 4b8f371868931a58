//! Passes requests that may take a while to the call path, and turns the outcome of `tools/call` into the answer.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use weir_admission::ApartTurn;

use super::{
    CallChannel, McpCall, RequestScope,
    blocks::{lowered, with_value},
    complete, item,
    meta::{ReceiptMeta, write_meta, write_server},
    request::CallSubject,
    resources,
    rounds::{QuestionChannel, ask_and_resume},
    tasks,
};
use crate::{
    call::{
        self, CallContent, CallOutcome, CallRequest, InputRequired, MissingCapability,
        SearchDispatch, ToolResult, call_tool,
    },
    catalogue::{CatalogueListing, CatalogueViewer, ItemKind},
    snapshot::CatalogueSnapshot,
    tasks::CallTask,
    wire::{RequestId, ResultWriter, RpcError, error_answer, string_room, write_string},
};

pub(super) const BAD_STATE: &str =
    "`params.requestState` belongs to no question of this call, or the answer comes too late";

/// The answer of a request, and its HTTP status.
pub struct McpAnswer {
    pub status: u16,
    pub body: Vec<u8>,
    /// Whether the call was cancelled and did nothing.
    pub was_cancelled: bool,
}

impl McpAnswer {
    pub(super) fn refused(id: &RequestId<'_>, error: &RpcError) -> Self {
        Self {
            status: error.status,
            ..error_answer(Some(id), error).into()
        }
    }
}

impl From<Vec<u8>> for McpAnswer {
    fn from(body: Vec<u8>) -> Self {
        Self {
            status: 200,
            body,
            was_cancelled: false,
        }
    }
}

impl McpCall<'_> {
    /// `None` when the call was cancelled: a cancelled call gets no answer.
    pub async fn run(
        &self,
        scope: &RequestScope,
        cancel: &CancellationToken,
        channel: Option<Arc<CallChannel>>,
    ) -> Option<McpAnswer> {
        // One generation for the whole request: the answer names the server that ran the call, whatever was published since.
        let snapshot = scope.gateway.snapshot();
        // Requests to other servers have a separate future: otherwise the future of every tool call would be large.
        let channel = channel.as_ref();
        let answer = match &self.params.subject {
            CallSubject::Tool { name, arguments } => {
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
            CallSubject::Prompt { name, arguments } => {
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
            CallSubject::Resource { uri } => {
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
            CallSubject::Completion {
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
                Box::pin(complete::answer(self, scope, request, asked)).await
            }
            CallSubject::Resources { cursor } => {
                Box::pin(resources::answer(self, scope, &snapshot, cursor.as_deref()))
                    .await
                    .into()
            }
            CallSubject::Task { id } => Box::pin(tasks::answer_elsewhere(self, scope, id)).await,
        };
        if cancel.is_cancelled() {
            None
        } else {
            Some(answer)
        }
    }

    /// Runs a tool call that may have become a task.
    pub(super) async fn as_task(
        &self,
        scope: &RequestScope,
        snapshot: &CatalogueSnapshot,
        task: &Arc<CallTask>,
    ) -> McpAnswer {
        let CallSubject::Tool { name, arguments } = &self.params.subject else {
            return McpAnswer::refused(
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

    /// Answers `tools/call`. In a view with search, the arguments name the tool to call, or the answer is the search results.
    async fn called(
        &self,
        scope: &RequestScope,
        snapshot: &CatalogueSnapshot,
        (name, arguments): (&str, Option<&str>),
        cancel: &CancellationToken,
        channel: Option<&Arc<CallChannel>>,
        task: Option<&Arc<CallTask>>,
    ) -> McpAnswer {
        let searching = snapshot
            .catalogue
            .searching(&scope.endpoint, CatalogueViewer::Caller(&scope.caller));
        let mut request = self.request(scope, snapshot, (name, arguments), cancel, channel);
        let asker = match (task, channel) {
            (Some(task), _) => {
                request.events = Some(task.clone());
                Some(QuestionChannel::Task(task))
            }
            (None, Some(channel)) if !self.version.is_modern() => {
                Some(QuestionChannel::Session(channel))
            }
            (None, _) => None,
        };
        let Some(searching) = searching else {
            let outcome = self.tool(scope, request, asker).await;
            return self.outcome(scope, snapshot, name, false, outcome).await;
        };
        match Box::pin(call::searched(
            &scope.gateway,
            &scope.caller,
            &searching,
            &request,
        ))
        .await
        {
            SearchDispatch::Answer(outcome) => {
                self.outcome(scope, snapshot, name, true, *outcome).await
            }
            SearchDispatch::Call { tool, arguments } => {
                let request = CallRequest {
                    tool: &tool,
                    arguments,
                    ..request
                };
                let outcome = self.tool(scope, request, asker).await;
                self.outcome(scope, snapshot, &tool, true, outcome).await
            }
        }
    }

    async fn tool(
        &self,
        scope: &RequestScope,
        request: CallRequest<'_>,
        asker: Option<QuestionChannel<'_>>,
    ) -> CallOutcome {
        let outcome = call_tool(&scope.gateway, &scope.caller, &request).await;
        match (&outcome, asker) {
            (CallOutcome::InputRequired(ask), Some(asker)) if asker.asks_now() => {
                Box::pin(ask_and_resume(scope, request, asker, ask)).await
            }
            _ => outcome,
        }
    }

    /// Writes the answer of a call of `name`. `found`: the call came through a search, which reports an unknown name like any
    /// other mistake.
    async fn outcome(
        &self,
        scope: &RequestScope,
        snapshot: &CatalogueSnapshot,
        name: &str,
        found: bool,
        outcome: CallOutcome,
    ) -> McpAnswer {
        let listing = || match self.version.is_modern() {
            true => snapshot
                .catalogue
                .listing(&scope.endpoint, CatalogueViewer::Caller(&scope.caller)),
            false => None,
        };
        match outcome {
            CallOutcome::UnknownTool(call_id) if found => self
                .answer(listing().as_deref(), &call::unknown(name, &call_id))
                .into(),
            CallOutcome::UnknownTool(_) => {
                let listing = snapshot
                    .catalogue
                    .listing(&scope.endpoint, CatalogueViewer::Caller(&scope.caller));
                let meant = listing
                    .as_deref()
                    .and_then(|listing| prefixed(listing, name));
                McpAnswer::refused(&self.id, &RpcError::unknown_tool(name, meant))
            }
            CallOutcome::BadState => {
                McpAnswer::refused(&self.id, &RpcError::invalid_params(BAD_STATE))
            }
            CallOutcome::HeaderMismatch(message) => {
                McpAnswer::refused(&self.id, &RpcError::header_mismatch(message))
            }
            CallOutcome::MissingCapability(needed) => McpAnswer::refused(&self.id, &lacks(needed)),
            CallOutcome::Complete(mut result) => {
                result.receipt = result.receipt.filter(|_| scope.has_receipts(snapshot));
                let (is_large, listing) = (result.is_large(), listing());
                let write = move || McpAnswer {
                    was_cancelled: result.was_cancelled(),
                    ..self.answer(listing.as_deref(), &result).into()
                };
                match is_large {
                    true => ApartTurn::wait().await.run(write),
                    false => write(),
                }
            }
            CallOutcome::InputRequired(ask) => self.ask(listing().as_deref(), &ask).into(),
        }
    }

    /// Answers that the tool has questions first. Only modern clients are asked this way.
    pub(super) fn ask(&self, listing: Option<&CatalogueListing>, ask: &InputRequired) -> Vec<u8> {
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
            write_server(&mut answer, &listing.server);
        }
        answer.finish()
    }

    fn answer(&self, listing: Option<&CatalogueListing>, result: &ToolResult) -> Vec<u8> {
        let room = match &result.content {
            CallContent::Text(text) => string_room(text),
            CallContent::Blocks(blocks) => blocks.len(),
        };
        let mut answer = ResultWriter::new(
            &self.id,
            room + result.structured.as_ref().map_or(0, String::len) + 384,
        );
        if self.version.is_modern() {
            answer.string("resultType", "complete");
        }
        // Before 2026-07-28, structured content is an object, and clients refuse a whole result with any other value.
        let is_sent = |structured: &&String| {
            self.version.is_modern() || self.version.is_structured() && structured.starts_with('{')
        };
        let content = answer.member("content");
        match &result.content {
            CallContent::Text(text) => {
                content.extend_from_slice(br#"[{"type":"text","text":"#);
                write_string(content, text);
                content.extend_from_slice(b"}]");
            }
            CallContent::Blocks(blocks) => {
                let blocks = lowered(blocks, self.version);
                // Next to an object, the text is what the tool offers clients without structured content.
                let is_lost = |value: &&String| !is_sent(value) && !value.starts_with('{');
                let blocks = match result.structured.as_ref().filter(is_lost) {
                    Some(value) => with_value(blocks, value),
                    None => blocks,
                };
                content.extend_from_slice(blocks.as_bytes());
            }
        }
        if let Some(structured) = result.structured.as_ref().filter(is_sent) {
            // Weir wrote this, value by value: on stdio, a line break would end the message.
            debug_assert!(
                !structured.as_bytes().contains(&b'\n'),
                "a message is one line"
            );
            answer.json("structuredContent", structured);
        }
        answer.json("isError", if result.is_error { "true" } else { "false" });
        let proved = ReceiptMeta {
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

/// Returns the listed tool that has a prefix here but was requested without it, as texts of other servers name their tools.
/// Similar names are not searched for, since a hidden tool must be answered like a missing one.
fn prefixed<'l>(listing: &'l CatalogueListing, name: &str) -> Option<&'l str> {
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
    let (message, reason) = needed.describe();
    RpcError::missing_capability(message, reason, &needed.as_json())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        methods::CallParams,
        wire::{ProtocolVersion, RpcMethod},
    };

    fn call(version: ProtocolVersion) -> McpCall<'static> {
        let id = serde_json::value::RawValue::from_string("7".to_owned()).expect("JSON");
        let id = RequestId::read(&id).expect("an id").into_owned();
        let subject = CallSubject::Tool {
            name: "t".into(),
            arguments: None,
        };
        McpCall {
            id,
            method: RpcMethod::CallTool,
            version,
            progress_token: None,
            trace: None,
            trace_state: None,
            trace_link: None,
            param_headers: None,
            params: CallParams {
                subject,
                log_level: None,
                capabilities: None,
                responses: None,
                state: None,
                is_preview: false,
                idempotency_key: None,
            },
        }
    }

    fn result(answer: &[u8]) -> Value {
        serde_json::from_slice::<Value>(answer).expect("JSON")["result"].take()
    }

    #[test]
    fn content_blocks_and_meta_reach_the_client_as_they_are() {
        let blocks = r#"[{"type":"image","data":"AA==","mimeType":"image/png"}]"#;
        let mut sent =
            ToolResult::from_content(CallContent::Blocks(blocks.to_owned()), None, false);
        sent.meta
            .push(("dev.example/trace".into(), r#"{"a":1}"#.to_owned()));
        let answer = result(&call(ProtocolVersion::V2025_11_25).answer(None, &sent));
        let expected = json!({
            "content": [{ "type": "image", "data": "AA==", "mimeType": "image/png" }],
            "isError": false,
            "_meta": { "dev.example/trace": { "a": 1 } },
        });
        assert_eq!(answer, expected);
    }

    #[test]
    fn a_value_that_is_no_object_is_structured_content_in_the_modern_era_alone() {
        for value in ["[1,2]", "null", r#""a""#, r#"{"a":1}"#] {
            let sent = ToolResult::new("text".to_owned(), value.to_owned(), false);
            for version in [
                ProtocolVersion::V2025_03_26,
                ProtocolVersion::V2025_06_18,
                ProtocolVersion::V2025_11_25,
                ProtocolVersion::V2026_07_28,
            ] {
                let answer = result(&call(version).answer(None, &sent));
                let expected = version.is_modern()
                    || version >= ProtocolVersion::V2025_06_18 && value.starts_with('{');
                assert_eq!(
                    answer.get("structuredContent").is_some(),
                    expected,
                    "{version:?}: {answer}"
                );
                assert_eq!(answer["content"][0]["text"], "text");
            }
        }
    }

    #[test]
    fn a_value_that_a_client_is_not_sent_is_in_a_text() {
        let texts = |version, texts: &[&str]| {
            let blocks: Vec<Value> = texts
                .iter()
                .map(|text| json!({ "type": "text", "text": text }))
                .collect();
            let blocks = CallContent::Blocks(Value::from(blocks).to_string());
            let sent = ToolResult::from_content(blocks, Some("[1,\"a\"]".to_owned()), false);
            let answer = result(&call(version).answer(None, &sent));
            let content = answer["content"].as_array().expect("a list").iter();
            let texts: Vec<String> = content
                .map(|block| block["text"].as_str().expect("a text").to_owned())
                .collect();
            texts
        };
        for version in [ProtocolVersion::V2025_03_26, ProtocolVersion::V2025_11_25] {
            let placed = texts(version, &["See structuredContent."]);
            assert_eq!(placed, ["[1,\"a\"]", "See structuredContent."]);
            for present in [&["[1, \"a\"]"][..], &["1", "a"]] {
                assert_eq!(texts(version, present), present, "it is there already");
            }
        }
        let modern = texts(ProtocolVersion::V2026_07_28, &["See structuredContent."]);
        assert_eq!(modern, ["See structuredContent."]);
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
        let answer = result(&call(ProtocolVersion::V2026_07_28).ask(None, &ask));
        assert_eq!(answer["resultType"], "input_required");
        assert_eq!(
            answer["inputRequests"]["name"]["method"],
            "elicitation/create"
        );
        assert_eq!(answer["requestState"], "sealed");
        assert!(answer.get("content").is_none(), "{answer}");
    }
}
