//! Tools by plain HTTP: `POST /rest/<contract>/<tool>` with the arguments as its JSON body, and, for tools that only read, `GET`
//! with the arguments in the query. The call path is the same as for MCP; errors are RFC 9457 problems.

use std::{borrow::Cow, convert::Infallible, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    response::Response,
};
use futures::{FutureExt as _, future::BoxFuture, stream};
use serde_json::{Map, Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;
use weir_admission::ApartTurn;
use weir_contracts::{
    ContractTool,
    openapi::{self, ApiDescription},
};
use weir_schema::text;
use weir_text::shorten;

use super::{
    HttpServerState, forms,
    plain::{self, not_allowed, refusal},
    reply, running,
};
use crate::{
    call::{CallContent, CallRequest, IncompleteCall, ToolResult, call_tool},
    catalogue::{CatalogueEndpoint, CatalogueTool, CatalogueViewer},
    codes::FailureCode,
    era,
    identity::CallerIdentity,
    limits::RateCharge,
    methods::{CallChannel, CallMessages},
    pages,
    serving::ServingGateway,
    transport::front_door::{AdmittedCaller, closing},
    wire::{RpcError, is_idempotency_key, sse},
};

/// Proof that the call is recorded.
const RECEIPT: &str = "weir-receipt";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const ASKS: &str = "The tool asks its caller a question, which plain HTTP cannot carry. Call it with an MCP client.";

/// A call that runs on its own, with or without a reader.
struct DetachedCall {
    gateway: Arc<ServingGateway>,
    caller: CallerIdentity,
    charge: RateCharge,
    endpoint: CatalogueEndpoint,
    tool: String,
    /// JSON.
    arguments: String,
    /// The body, which counts against the budget while the call runs.
    _body: Bytes,
    trace: Option<String>,
    trace_state: Option<String>,
    /// The key by which a repeated write is recognised.
    idempotency_key: Option<String>,
    /// Whether the tool may change something.
    writes: bool,
}

/// A result or a problem.
pub(super) struct CallResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) receipt: Option<String>,
    pub(super) retry_after_s: Option<u32>,
}

pub(super) async fn tool(
    State(server): State<Arc<HttpServerState>>,
    Path((contract, tool)): Path<(String, String)>,
    request: Request,
) -> Response {
    let (server, name) = (&server, contract.clone());
    let enter = async |admitted: AdmittedCaller<'_>, head: &Parts, body| {
        call(server, admitted, contract, tool, head, body).await
    };
    plain::REST.answer(server, &name, request, enter).await
}

/// Answers one call, if its caller is admitted.
pub(super) async fn call(
    server: &HttpServerState,
    admitted: AdmittedCaller<'_>,
    contract: String,
    tool: String,
    head: &Parts,
    body: Body,
) -> Response {
    let snapshot = server.gateway.snapshot();
    let endpoint = CatalogueEndpoint::contract(&contract);
    let known =
        snapshot
            .catalogue
            .tool(&endpoint, &tool, CatalogueViewer::Caller(admitted.caller()));
    if !admitted.caller().may_write() && known.is_some_and(|known| known.tool.writes()) {
        admitted.record_hidden(head.uri.path());
        return refusal(&RpcError::insufficient_scope());
    }
    let Ok(idempotency_key) = idempotency_key(&head.headers) else {
        return refusal(&RpcError::refused(
            400,
            "an Idempotency-Key is 1 to 128 visible characters, once",
        ));
    };
    let (arguments, body) = match arguments(&admitted, known, head, body).await {
        Ok(arguments) => arguments,
        Err(refused) => return refused,
    };
    let writes = known.is_some_and(|known| known.tool.writes());
    drop(snapshot);
    let trace = head
        .headers
        .get("traceparent")
        .and_then(|value| era::traceparent(value.to_str().ok()?));
    let trace = trace.map(ToOwned::to_owned);
    let trace_state = trace.as_ref().and(era::header_state(&head.headers));
    let trace_state = trace_state.map(Cow::into_owned);
    let (caller, charge) = admitted.into_caller();
    let call = DetachedCall {
        gateway: server.gateway.clone(),
        caller,
        charge,
        endpoint,
        tool,
        arguments,
        _body: body,
        trace,
        trace_state,
        idempotency_key,
        writes,
    };
    if wants_events(&head.headers) {
        return events(server, call);
    }
    if call.is_kept() {
        let work = async move { call.run(&CancellationToken::new(), None).await };
        let answer = running::unattended(&server.tasks, work).await;
        return answer.unwrap_or_else(broken).into_response();
    }
    let cancel = CancellationToken::new();
    let gone = cancel.drop_guard_ref();
    let answer = call.run(&cancel, None).await;
    gone.disarm();
    answer.into_response()
}

/// Answers the operations that this caller can use, as OpenAPI 3.1.
pub(super) async fn document(
    State(server): State<Arc<HttpServerState>>,
    Path(contract): Path<String>,
    request: Request,
) -> Response {
    let show = |caller: &CallerIdentity| {
        let document = openapi_document(&server.gateway, caller, &contract)?;
        Some(reply::json(200, document.into_bytes()))
    };
    plain::REST.page(&server, &contract, request, show).await
}

/// Answers `GET /rest/<contract>/`: the tools as a page for people.
pub(super) async fn reference(
    State(server): State<Arc<HttpServerState>>,
    Path(contract): Path<String>,
    request: Request,
) -> Response {
    let show = |caller: &CallerIdentity| {
        let page = described(&server.gateway, caller, &contract, |api, tools| {
            pages::reference(api, tools)
        })?;
        Some(forms::html(page))
    };
    plain::REFERENCE
        .page(&server, &contract, request, show)
        .await
}

/// Returns the document of one contract, with the tools that this caller sees; `None` if it sees no such contract.
pub fn openapi_document(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    contract: &str,
) -> Option<String> {
    described(gateway, caller, contract, |api, tools| {
        openapi::document(api, tools).to_string()
    })
}

fn described(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    contract: &str,
    describe: impl FnOnce(&ApiDescription<'_>, Vec<&ContractTool>) -> String,
) -> Option<String> {
    let snapshot = gateway.snapshot();
    let listing = snapshot.catalogue.listing(
        &CatalogueEndpoint::contract(contract),
        CatalogueViewer::Caller(caller),
    )?;
    let below = format!("/rest/{contract}");
    let api = ApiDescription {
        title: listing
            .server
            .title
            .as_deref()
            .unwrap_or(&listing.server.name),
        version: &listing.server.version,
        description: listing.server.instructions.as_deref(),
        server: &below,
        needs_key: gateway.identities().are_required(),
    };
    Some(describe(
        &api,
        listing
            .tools
            .entries()
            .iter()
            .map(|tool| &*tool.tool)
            .collect(),
    ))
}

/// Returns the arguments as JSON. An unknown tool is left to the call, which records the attempt.
async fn arguments(
    admitted: &AdmittedCaller<'_>,
    tool: Option<&Arc<CatalogueTool>>,
    head: &Parts,
    body: Body,
) -> Result<(String, Bytes), Response> {
    let uncounted = |text: String| (text, Bytes::new());
    match (&head.method, tool) {
        (&Method::GET, Some(tool)) if !openapi::takes_query(&tool.tool, tool.checks().schema()) => {
            Err(not_allowed("POST, OPTIONS"))
        }
        (&Method::GET, Some(_)) if comes_from_another_site(&head.headers) => Err(refusal(
            &RpcError::refused(403, "a page of another site may not call (Sec-Fetch-Site)"),
        )),
        (&Method::GET, tool) => {
            let query = head.uri.query().unwrap_or_default();
            Ok(uncounted(tool.map_or_else(
                || "{}".to_owned(),
                |tool| of_query(tool.checks().schema(), query),
            )))
        }
        (&Method::POST, tool) => {
            if let Some(name) = tool.and_then(|tool| find_query_argument(tool, head)) {
                let why = format!(
                    "the arguments of a POST are its body, and the query has `{}`",
                    shorten(&name, 64)
                );
                return Err(closing(refusal(&RpcError::refused(400, why))));
            }
            let has_no_body = !head.headers.contains_key(header::TRANSFER_ENCODING)
                && head
                    .headers
                    .get(header::CONTENT_LENGTH)
                    .is_none_or(|length| length == "0");
            if has_no_body {
                return Ok(uncounted("{}".to_owned()));
            }
            let bytes = admitted.read(&head.headers, body).await;
            let bytes = bytes.map_err(|refused| closing(refusal(&refused.error)))?;
            match serde_json::from_slice::<&RawValue>(&bytes) {
                Ok(raw) if raw.get().starts_with('{') => {
                    let text = raw.get().to_owned();
                    Ok((text, bytes))
                }
                Ok(_) => Err(refusal(&RpcError::refused(
                    400,
                    "the body must be a JSON object: the arguments",
                ))),
                Err(error) => Err(refusal(&RpcError::refused(
                    400,
                    format!("the body is not JSON: {error}"),
                ))),
            }
        }
        (_, Some(tool)) if openapi::takes_query(&tool.tool, tool.checks().schema()) => {
            Err(not_allowed("GET, POST, OPTIONS"))
        }
        _ => Err(not_allowed("POST, OPTIONS")),
    }
}

/// Returns the first name in the query that is one of the tool's arguments: without them, it would be a different call.
fn find_query_argument(tool: &CatalogueTool, head: &Parts) -> Option<String> {
    let query = head.uri.query()?;
    let checks = tool.checks();
    let arguments = checks.schema()["properties"].as_object()?;
    form_urlencoded::parse(query.as_bytes())
        .map(|(name, _)| name.into_owned())
        .find(|name| arguments.contains_key(name))
}

/// Reads a query as arguments. Each name is looked up in the schema; the tool refuses unknown names.
fn of_query(schema: &Value, query: &str) -> String {
    let mut texts: Map<String, Value> = Map::new();
    for (name, text) in form_urlencoded::parse(query.as_bytes()) {
        let list = texts
            .entry(name)
            .or_insert_with(|| Value::Array(Vec::new()));
        list.as_array_mut()
            .expect("made as a list")
            .push(text.into());
    }
    let arguments = texts.iter().map(|(name, texts)| {
        let texts: Vec<&str> = texts
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        (
            name.clone(),
            text::value(&schema["properties"][name], &texts),
        )
    });
    Value::Object(arguments.collect()).to_string()
}

/// Returns the idempotency key of a request, or an error for an invalid one.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ()> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(key), None) => {
            let key = key.to_str().ok().filter(|key| is_idempotency_key(key));
            key.map(|key| Some(key.to_owned())).ok_or(())
        }
        (Some(_), Some(_)) => Err(()),
    }
}

/// Returns `true` if a browser reports another site; it sends no Origin for resources that it merely loads.
fn comes_from_another_site(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::ORIGIN)
        && headers
            .get("sec-fetch-site")
            .is_some_and(|site| site == "cross-site")
}

/// Returns `true` if a stream of events is accepted. A weight of 0 means that it is not.
fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
        let weight = parameters
            .split(';')
            .find_map(|parameter| parameter.trim().strip_prefix("q="));
        let is_refused = weight.is_some_and(|weight| weight.trim().parse() == Ok(0.0));
        kind.trim().eq_ignore_ascii_case("text/event-stream") && !is_refused
    })
}

impl DetachedCall {
    /// Returns `true` if the result is kept: the caller may leave and ask again.
    fn is_kept(&self) -> bool {
        self.idempotency_key.is_some() && self.writes
    }

    async fn run(
        &self,
        cancel: &CancellationToken,
        channel: Option<Arc<CallChannel>>,
    ) -> CallResponse {
        let snapshot = self.gateway.snapshot();
        let request = CallRequest {
            arguments: Some(&self.arguments),
            events: channel.map(|channel| channel as _),
            trace: self.trace.as_deref(),
            trace_state: self.trace_state.as_deref(),
            charge: self.charge,
            idempotency_key: self.idempotency_key.as_deref(),
            ..CallRequest::new(&snapshot, &self.endpoint, &self.tool, "rest", cancel)
        };
        match call_tool(&self.gateway, &self.caller, &request)
            .await
            .unasked()
        {
            // Only a result that must be written into another text takes time.
            Ok(result) if result.is_large() && result.structured.is_none() => {
                let turn = ApartTurn::wait().await;
                turn.run(|| CallResponse::from_result(result))
            }
            Ok(result) => CallResponse::from_result(result),
            Err(IncompleteCall::NotThere) => unknown_tool(&self.tool),
            Err(IncompleteCall::Asks) => {
                let code = FailureCode::Unsupported;
                problem(code.row().status, code.label(), ASKS.to_owned())
            }
        }
    }
}

pub(super) fn unknown_tool(tool: &str) -> CallResponse {
    let tool = shorten(tool, 64);
    problem(
        404,
        "unknown_tool",
        format!("There is no tool `{tool}` here."),
    )
}

impl CallResponse {
    fn from_result(result: ToolResult) -> Self {
        let receipt = result.receipt.as_ref().map(ToString::to_string);
        if result.is_error {
            return Self {
                receipt,
                ..failed(&result)
            };
        }
        let body = match (result.structured, result.content) {
            (Some(structured), _) => structured.into_bytes(),
            (None, CallContent::Blocks(blocks)) => {
                format!(r#"{{"content":{blocks}}}"#).into_bytes()
            }
            (None, CallContent::Text(text)) => {
                json!({ "content": [{ "type": "text", "text": text }] })
                    .to_string()
                    .into_bytes()
            }
        };
        Self {
            status: 200,
            body,
            receipt,
            retry_after_s: None,
        }
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = reply::json(self.status, self.body);
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status != 200 {
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/problem+json"),
            );
        }
        if let Some(receipt) = self
            .receipt
            .and_then(|receipt| HeaderValue::try_from(receipt).ok())
        {
            headers.insert(RECEIPT, receipt);
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Returns the answer of a refused or failed call: the members of its error, as a problem. An error in the words of another
/// server is a `tool_error` with its structured content in a separate member, where it cannot be mistaken for Weir's own.
fn failed(result: &ToolResult) -> CallResponse {
    let row = result.code.unwrap_or(FailureCode::ToolError).row();
    let mut body = problem_members(row.status, row.label, row.meaning, &result.content.text());
    let read = |json: &str| serde_json::from_str(json).unwrap_or_default();
    match (
        result.error().map(read),
        result.structured.as_deref().map(read),
    ) {
        (Some(Value::Object(error)), _) => {
            body.extend(error.into_iter().filter(|(name, _)| name != "message"))
        }
        (None, Some(theirs)) => drop(body.insert("structuredContent".to_owned(), theirs)),
        _ => {}
    }
    if let Some(call_id) = &result.call_id {
        body.insert("call_id".to_owned(), (&**call_id).into());
    }
    let retry_after_s = body
        .get("retry_after_ms")
        .and_then(Value::as_u64)
        .map(|wait| wait.div_ceil(1000));
    CallResponse {
        status: row.status,
        body: Value::Object(body).to_string().into_bytes(),
        receipt: None,
        retry_after_s: retry_after_s.and_then(|seconds| seconds.try_into().ok()),
    }
}

pub(super) fn problem(status: u16, code: &str, detail: String) -> CallResponse {
    let title = StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Error");
    let body = Value::Object(problem_members(status, code, title, &detail))
        .to_string()
        .into_bytes();
    CallResponse {
        status,
        body,
        receipt: None,
        retry_after_s: None,
    }
}

fn problem_members(status: u16, code: &str, title: &str, detail: &str) -> Map<String, Value> {
    Map::from_iter([
        ("type".to_owned(), format!("urn:weir:error:{code}").into()),
        ("title".to_owned(), title.into()),
        ("status".to_owned(), status.into()),
        ("detail".to_owned(), detail.into()),
        ("code".to_owned(), code.into()),
    ])
}

/// Returns the call as events: `progress` as often as the tool reports, then `result` or `problem`. Dropping them cancels the
/// call; otherwise it runs even without a reader.
fn events(server: &HttpServerState, call: DetachedCall) -> Response {
    let (channel, messages) = CallChannel::bare();
    let (cancel, is_kept) = (CancellationToken::new(), call.is_kept());
    let work = {
        let cancel = cancel.clone();
        async move { call.run(&cancel, Some(channel)).await }
    };
    let running = match is_kept {
        true => running::unattended(&server.tasks, work),
        false => running::started(&server.tasks, cancel, work),
    };
    let running = running.map(|answer| answer.unwrap_or_else(broken));
    let state = Some((running.boxed(), messages, reply::keep_alive()));
    reply::events(stream::unfold(state, async |state| {
        let (mut running, messages, mut keep_alive): (
            BoxFuture<'static, CallResponse>,
            CallMessages,
            _,
        ) = state?;
        let bytes = tokio::select! {
            biased;
            answer = &mut running => return Some((Ok::<_, Infallible>(last(&messages, answer)), None)),
            () = messages.arrived() => reported(&messages).into(),
            _ = keep_alive.tick() => reply::comment(),
        };
        Some((Ok(bytes), Some((running, messages, keep_alive))))
    }))
}

/// Returns the answer of a call that panicked.
fn broken() -> CallResponse {
    let detail = "The gateway failed.".to_owned();
    problem(500, FailureCode::Internal.label(), detail)
}

fn reported(messages: &CallMessages) -> Vec<u8> {
    messages
        .take()
        .iter()
        .flat_map(|update| event("progress", update))
        .collect()
}

fn last(messages: &CallMessages, answer: CallResponse) -> Bytes {
    let mut bytes = reported(messages);
    let name = if answer.status == 200 {
        "result"
    } else {
        "problem"
    };
    bytes.extend(event(name, &answer.body));
    bytes.into()
}

/// Returns an event with JSON on one line as its data.
fn event(name: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    sse::write_event(&mut bytes, name, data);
    bytes
}
