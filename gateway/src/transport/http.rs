//! Streamable HTTP, both eras on one URL: `/mcp`, `/mcp/<contract>`, `/mcp/view/<view>`; the same lists as text: `/llms.txt`;
//! plain HTTP: `/rest/<contract>/<tool>`; `/healthz`, `/readyz`.

mod connect;
pub(crate) mod connections;
mod elsewhere;
mod forms;
mod legacy;
mod llms;
pub(crate) mod metrics;
mod modern;
mod plain;
mod reply;
mod rest;
mod running;

use std::{future::Future, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, Request, State},
    http::{HeaderMap, Method, StatusCode, Uri, request::Parts},
    response::{IntoResponse as _, Redirect, Response},
    routing::{any, get},
};
use hyper::{
    body::Incoming,
    service::{Service as _, service_fn},
};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use weir_contracts::name::check_contract;

use super::front_door::{
    AdmittedCaller, DoorSurface, FrontDoor, METADATA, below_prefix, closing, read_of_unknown_caller,
};
use crate::{
    config::{GatewayConfig, access::AccessRules},
    era::{
        RequestEra,
        cancellations::CancellationTable,
        names_modern,
        sessions::{SessionId, SessionTable},
    },
    identity::AuthenticationError,
    limits::UNCOUNTED_MAX_BYTES,
    methods::{CatalogueEndpoint, RequestScope, StreamLimiter},
    serving::ServingGateway,
    wire::{self, MalformedMessage, MessageBody, RpcError, RpcMessage},
};

pub use self::rest::openapi_document;

/// The time within which the head of the first request on a connection must arrive.
const FIRST_HEAD_MAX: Duration = Duration::from_secs(10);

/// The state that all connections share.
struct HttpServerState {
    gateway: Arc<ServingGateway>,
    door: Arc<FrontDoor>,
    sessions: SessionTable,
    calls: CancellationTable<(SessionId, Box<str>)>,
    subscriptions: StreamLimiter,
    /// Calls that run even if no client reads their messages: legacy calls outlive their connection.
    tasks: TaskTracker,
}

/// Serves until `shutdown`, then accepts no more connections, ends the streams with their last message, and returns when every
/// accepted call has been answered and every write has ended.
pub async fn serve(
    gateway: Arc<ServingGateway>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let config = gateway.config();
    let http = &config.http;
    let ending = CancellationToken::new();
    let local = listener.local_addr()?;
    if let Some(accounts) = gateway.accounts() {
        accounts.set_listener(local);
    }
    let door = Arc::new(FrontDoor::new(&gateway, local, AccessRules::public)?);
    let server = Arc::new(HttpServerState {
        door: door.clone(),
        sessions: SessionTable::new(http.sessions_max, Duration::from_secs(http.session_idle_s)),
        calls: CancellationTable::default(),
        subscriptions: StreamLimiter::new(http.streams_max, ending.clone()),
        tasks: TaskTracker::new(),
        gateway: gateway.clone(),
    });
    let listening = Arc::downgrade(&server);
    gateway.session_notes().listen(move |session, note| {
        if let Some(server) = listening.upgrade() {
            server.sessions.take_over(session, note);
        }
    });
    elsewhere::take_from_nodes(&server);
    let (sessions, streams) = (Arc::downgrade(&server), Arc::downgrade(&server));
    gateway.metrics().watch_http(
        move || sessions.upgrade().map_or(0, |server| server.sessions.len()),
        move || {
            streams
                .upgrade()
                .map_or(0, |server| server.subscriptions.len())
        },
    );
    let scrape = metrics::router(&gateway, door, local, None);
    let routes = TowerToHyperService::new(router(server.clone()).merge(scrape));
    let service = service_fn({
        let server = server.clone();
        move |request: hyper::Request<Incoming>| {
            let (server, routes) = (server.clone(), routes.clone());
            async move {
                // Nearly all requests are for these endpoints, so they bypass the router.
                let mut response = match endpoint(request.uri().path()) {
                    Some(endpoint) => {
                        answer(&server, endpoint, request.map(axum::body::Body::new)).await
                    }
                    None => routes.call(request).await?,
                };
                if server.gateway.readiness().is_ending() {
                    response = closing(response);
                }
                Ok(response)
            }
        }
    });
    let shutdown = async {
        shutdown.await;
        gateway.readiness().end();
        // A caller that gets a task now could not poll it later.
        gateway.tasks().keep_no_more();
        let drain_s = gateway.config().http.drain_s;
        if drain_s > 0 {
            tracing::info!(drain_s, "still serving, and no longer ready");
            tokio::time::sleep(Duration::from_secs(drain_s)).await;
        }
    };
    let connections_max = connections::connections_within_limit(http.connections_max);
    let bounds = connections::ListenerBounds {
        listener: "agents",
        connections_max,
        address_connections_max: http
            .address_connections_max
            .min(connections_max.div_ceil(2)),
        first_head_max: FIRST_HEAD_MAX,
    };
    let metrics = gateway.metrics();
    connections::serve(listener, service, &bounds, metrics, shutdown, &ending).await;
    server.tasks.close();
    server.tasks.wait().await;
    gateway.tasks().end_all().await;
    crate::call::abandon_questions();
    gateway.in_flight().drained().await;
    Ok(())
}

/// Returns the MCP endpoint that an undecoded path names. Some clients add a slash.
fn endpoint(path: &str) -> Option<CatalogueEndpoint> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let below = path.strip_prefix("/mcp")?;
    if below.is_empty() {
        return Some(CatalogueEndpoint::All);
    }
    let below = below.strip_prefix('/')?;
    let (name, endpoint) = match below.strip_prefix("view/") {
        Some(view) => (view, CatalogueEndpoint::View(view.into())),
        None => match CatalogueEndpoint::contract(below) {
            CatalogueEndpoint::Version(contract, major) => {
                let is_name = check_contract(&contract).is_ok();
                return is_name.then_some(CatalogueEndpoint::Version(contract, major));
            }
            endpoint => (below, endpoint),
        },
    };
    check_contract(name).is_ok().then_some(endpoint)
}

fn router(server: Arc<HttpServerState>) -> Router {
    let router = Router::new()
        .route("/rest/{contract}", any(with_slash))
        .route("/rest/{contract}/", any(rest::reference))
        .route("/forms/_assets/{file}", any(forms::asset))
        .route("/forms/{contract}", any(with_slash))
        .route("/forms/{contract}/", any(forms::index))
        .route("/forms/{contract}/{tool}", any(forms::tool))
        .route("/forms/{contract}/{tool}/", any(without_slash));
    let served = [
        ("/mcp", any(all)),
        ("/mcp/{contract}", any(contract)),
        ("/mcp/view/{view}", any(view)),
        ("/llms.txt", any(llms::all)),
        ("/mcp/{contract}/llms.txt", any(llms::contract)),
        // This is the page of a contract called `view`: no view has this name.
        ("/mcp/view/llms.txt", any(llms::contract_view)),
        ("/mcp/view/{view}/llms.txt", any(llms::view)),
        ("/rest/{contract}/openapi.json", any(rest::document)),
        ("/rest/{contract}/{tool}", any(rest::tool)),
        ("/healthz", get(async || "ok\n")),
        ("/readyz", get(ready)),
    ];
    let router = served.into_iter().fold(router, |router, (path, answer)| {
        let with_slash = format!("{path}/");
        router
            .route(path, answer.clone())
            .route(&with_slash, answer)
    });
    router
        .merge(connect::router())
        .fallback(nothing)
        .with_state(server)
}

/// Tells a load balancer whether to send calls here. Only the admin listener lists what is refused.
async fn ready(State(server): State<Arc<HttpServerState>>) -> Response {
    match server.gateway.fault().await {
        None => "ready\n".into_response(),
        Some(fault) => (StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n")).into_response(),
    }
}

/// Redirects to the page of a contract, whose links are relative to the slash. That page shows whether the contract exists.
async fn with_slash(uri: Uri) -> Response {
    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    Redirect::permanent(&format!("{}/{query}", uri.path())).into_response()
}

/// Redirects to a page whose links are relative to its contract.
async fn without_slash(uri: Uri) -> Response {
    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let path = uri.path().trim_end_matches('/');
    Redirect::permanent(&format!("{path}{query}")).into_response()
}

/// The paths where clients look for an OAuth sign-in: below `/.well-known/`, at the root or after the endpoint.
const SIGN_IN: [&str; 3] = [
    "oauth-protected-resource",
    "oauth-authorization-server",
    "openid-configuration",
];

/// Answers requests for unknown paths. A client that looks for a sign-in learns that a key is needed.
async fn nothing(State(server): State<Arc<HttpServerState>>, request: Request) -> Response {
    let path = request.uri().path();
    let is_discovery = path.split_once("/.well-known/").is_some_and(|(_, rest)| {
        let name = rest.split('/').next().unwrap_or_default();
        SIGN_IN.contains(&name)
    });
    if let Some(endpoint) = described_endpoint(&server.gateway.config(), path) {
        let (head, _) = request.into_parts();
        return match server.door.metadata(&head, &endpoint) {
            Some(Ok(metadata)) => metadata,
            Some(Err(error)) => reply::refusal(&error),
            None => no_sign_in(&server, &head, 404),
        };
    }
    let is_challenged = server.gateway.config().http.openai_apps_challenge.is_some();
    if is_challenged && path == "/.well-known/openai-apps-challenge" {
        return apps_challenge(&server, request);
    }
    let status = match path {
        "/register" | "/authorize" | "/token" => 400,
        _ if is_discovery => 404,
        _ => return nothing_there(request).await,
    };
    let (head, _) = request.into_parts();
    no_sign_in(&server, &head, status)
}

/// Answers with the text by which the registry of ChatGPT's apps verifies who owns this server.
fn apps_challenge(server: &HttpServerState, request: Request) -> Response {
    let (head, _) = request.into_parts();
    match server.door.visit(&head, || head.uri.path().to_owned()) {
        Ok(_) => server
            .gateway
            .config()
            .http
            .openai_apps_challenge
            .clone()
            .unwrap_or_default()
            .into_response(),
        Err(error) => reply::refusal(&error),
    }
}

/// Returns the endpoint whose OAuth resource metadata is requested. At the root, it is the endpoint of all contracts.
fn described_endpoint(config: &GatewayConfig, path: &str) -> Option<CatalogueEndpoint> {
    let rest = path.strip_prefix(METADATA)?;
    if matches!(rest, "" | "/") {
        return Some(CatalogueEndpoint::All);
    }
    endpoint(below_prefix(config, rest))
}

/// Answers a client that looks for a sign-in if Weir has none.
fn no_sign_in(server: &HttpServerState, head: &Parts, status: u16) -> Response {
    let visit = match server.door.visit(head, || head.uri.path().to_owned()) {
        Ok(visit) => visit,
        Err(error) => return reply::refusal(&error),
    };
    let mut response = match head.method {
        Method::OPTIONS => visit.preflight(),
        _ => reply::no_sign_in(status, server.gateway.identities().tokens().is_some()),
    };
    visit.expose(response.headers_mut());
    response
}

/// Answers a request for an unknown path. Clients show the message only if it answers their JSON-RPC request.
async fn nothing_there(request: Request) -> Response {
    let path: String = request.uri().path().chars().take(64).collect();
    let (head, body) = request.into_parts();
    let body = match head.method {
        Method::POST => read_of_unknown_caller(&head.headers, body).await,
        _ => None,
    };
    let id = body.as_deref().and_then(wire::request_id);
    let message = format!("Nothing is served at {path}. MCP is at /mcp.");
    reply::unread(id.as_ref(), &RpcError::refused(404, message))
}

async fn all(State(server): State<Arc<HttpServerState>>, request: Request) -> Response {
    answer(&server, CatalogueEndpoint::All, request).await
}

async fn contract(
    State(server): State<Arc<HttpServerState>>,
    Path(contract): Path<String>,
    request: Request,
) -> Response {
    answer(&server, CatalogueEndpoint::contract(&contract), request).await
}

async fn view(
    State(server): State<Arc<HttpServerState>>,
    Path(view): Path<String>,
    request: Request,
) -> Response {
    answer(&server, CatalogueEndpoint::View(view.into()), request).await
}

/// Answers a request to an MCP endpoint.
async fn answer(
    server: &Arc<HttpServerState>,
    endpoint: CatalogueEndpoint,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let surface = McpEndpoint(&endpoint);
    let enter = async |admitted: AdmittedCaller<'_>, body| match head.method {
        Method::POST => post(server, admitted, &endpoint, &head, body).await,
        Method::GET => legacy::get(server, admitted, &endpoint, &head.headers).await,
        _ => legacy::delete(
            server,
            &admitted.into_scope(endpoint.clone()),
            &head.headers,
        ),
    };
    let mut response = server.door.answer(&surface, &head, body, enter).await;
    give_back(head.headers, response.headers_mut());
    response
}

/// An MCP endpoint as a surface of the door.
struct McpEndpoint<'e>(&'e CatalogueEndpoint);

impl DoorSurface for McpEndpoint<'_> {
    fn place(&self) -> String {
        self.0.to_string()
    }

    fn endpoint(&self) -> CatalogueEndpoint {
        self.0.clone()
    }

    fn methods(&self) -> Option<&'static str> {
        Some("GET, POST, DELETE, OPTIONS")
    }

    fn names_requests(&self) -> bool {
        true
    }

    fn refusal(&self, error: &RpcError) -> Response {
        reply::refusal(error)
    }

    fn unauthorized(&self, refused: AuthenticationError, body: Option<&[u8]>) -> Response {
        reply::unauthorized(refused, body.and_then(wire::request_id).as_ref())
    }
}

/// Gives a header map back: hyper reads a connection's next request into the map of this answer's headers, which should therefore
/// have capacity.
fn give_back(mut asked: HeaderMap, answered: &mut HeaderMap) {
    asked.clear();
    asked.extend(answered.drain());
    *answered = asked;
}

async fn post(
    server: &Arc<HttpServerState>,
    admitted: AdmittedCaller<'_>,
    endpoint: &CatalogueEndpoint,
    head: &Parts,
    body: axum::body::Body,
) -> Response {
    let bytes = match admitted.read(&head.headers, body).await {
        Ok(bytes) => bytes,
        Err(refused) => return closing(reply::refused_body(&refused)),
    };
    let scope = admitted.into_scope(endpoint.clone());
    match MessageBody::read(&bytes) {
        Ok(MessageBody::One(message)) => {
            let is_request = matches!(message, RpcMessage::Request { .. });
            if !is_request && bytes.len() <= UNCOUNTED_MAX_BYTES {
                server.door.give_back(scope.charge, &scope.caller);
            }
            one(server, scope, &head.headers, message).await
        }
        Ok(MessageBody::Batch(elements)) => {
            let modern = names_modern(&head.headers)
                || elements
                    .iter()
                    .any(|element| element_claims_modern(element));
            match modern {
                true => reply::error(
                    None,
                    &RpcError::invalid_request("2026-07-28 has no batches"),
                ),
                false => Box::pin(legacy::batch(server, scope, &head.headers, &elements)).await,
            }
        }
        Err(MalformedMessage { id, error }) => reply::error(id.as_ref(), &error),
    }
}

async fn one(
    server: &Arc<HttpServerState>,
    scope: RequestScope,
    headers: &HeaderMap,
    message: RpcMessage<'_>,
) -> Response {
    match message {
        RpcMessage::Request { id, method, params } => {
            let read = params.read().and_then(|params| {
                Ok((
                    RequestEra::detect(&method, &params.meta, Some(headers))?,
                    params,
                ))
            });
            match read {
                Ok((RequestEra::Modern, params)) => {
                    modern::request(server, scope, headers, id, &method, params).await
                }
                Ok((RequestEra::Legacy, params)) => {
                    Box::pin(legacy::request(server, scope, headers, id, &method, params)).await
                }
                Err(error) => reply::error(Some(&id), &error),
            }
        }
        RpcMessage::Notification { method, params } => {
            match params.claim_modern() || names_modern(headers) {
                // The core protocol defines none over HTTP: a modern client cancels by closing the response.
                true => reply::accepted(),
                false => legacy::notification(server, &scope, headers, &method, params).await,
            }
        }
        RpcMessage::Response(response) => {
            legacy::response(server, &scope, headers, &response).await
        }
    }
}

fn element_claims_modern(element: &serde_json::value::RawValue) -> bool {
    match RpcMessage::read(element.get()) {
        Ok(RpcMessage::Request { params, .. } | RpcMessage::Notification { params, .. }) => {
            params.claim_modern()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
