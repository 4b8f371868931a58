//! The admin API: its own listener, its own keys with roles, one OpenAPI document made from these handlers.

mod address;
mod admins;
mod api_routes;
mod approvals;
mod audit;
mod calls;
mod collections;
mod connections;
mod console;
mod console_sign_in;
mod contracts;
mod form;
mod identity;
mod keys;
mod live;
mod nodes;
mod plugins;
mod policy;
mod problem;
mod retries;
mod sessions;
mod settings;
mod snippets;
mod staff;
mod tools;
mod trails;
mod unread_body;
mod upstreams;
mod versions;

use std::{
    future::Future,
    net::SocketAddr,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context as _;
use axum::{
    Router,
    body::HttpBody as _,
    extract::{DefaultBodyLimit, Request, State as Shared},
    http::{StatusCode, Uri},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{get, put},
};
use hyper::{
    body::Incoming,
    service::{Service as _, service_fn},
};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use weir_state::{AdminRow, GatewayState};

use self::api_routes::{ApiRoutes, check_query, routes};
pub use self::{
    address::{announce, found},
    problem::AdminProblem,
};
use crate::{
    control::{
        ControlPlane,
        gate::Role,
        operations::{console_sign_in::ConsoleSignIns, sessions::make_link},
        refused::RefusedArtifact,
        reload::ConfigReloader,
    },
    identity::{MintedSecret, SecretKind, now_ms},
    serving::ServingGateway,
    transport::{
        front_door::{COMPRESSED, FrontDoor, is_by_address, is_compressed},
        http::{
            connections::{ListenerBounds, serve as serve_connections},
            metrics::{self, ProblemAnswer},
        },
    },
};

/// The first admin key, in the state folder; readable only by its owner.
pub const TOKEN_FILE: &str = "admin.token";
/// Admins send few requests; this bounds those of other clients. An operator still finds room: connections that have not shown an
/// admin key give way.
const CONNECTIONS_MAX: usize = 64;
/// Connections from one address that have not shown an admin key.
const ADDRESS_CONNECTIONS_MAX: usize = 32;
/// The time within which the head of the first request on a connection must arrive.
const FIRST_HEAD_MAX: Duration = Duration::from_secs(2);
/// The paths for probes. Probes use an IP address as the host, which no page of another site can have as its name.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// The state that all handlers share.
pub struct AdminContext {
    pub gateway: Arc<ServingGateway>,
    pub control: Arc<ControlPlane>,
    pub state: Arc<GatewayState>,
    pub reload: Arc<ConfigReloader>,
    pub door: Arc<FrontDoor>,
    /// Sign-ins by an issuer that have begun.
    pub(crate) sign_ins: ConsoleSignIns,
    /// Cancelled when the process ends, which ends the streams.
    pub ending: CancellationToken,
}

type Ask = Shared<Arc<AdminContext>>;
/// The answer of a handler.
type Answer<T> = Result<T, AdminProblem>;

/// Returns the routes that the document describes.
fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .routes(routes!(sessions::show, sessions::begin, sessions::end))
        .routes(routes!(sessions::link))
        .routes(routes!(console_sign_in::show, console_sign_in::begin))
        .routes(routes!(console_sign_in::finish))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(identity::failures))
        .routes(routes!(versions::list))
        .routes(routes!(versions::set_sunset))
        .routes(routes!(versions::pin, versions::unpin))
        .routes(routes!(snippets::list))
        .routes(routes!(admins::list, admins::create))
        .routes(routes!(admins::revoke))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::end_one))
        .routes(
            routes!(contracts::list, contracts::submit).body_max(contracts::SUBMITTED_MAX_BYTES),
        )
        .routes(routes!(contracts::preview).body_max(contracts::SUBMITTED_MAX_BYTES))
        .routes(routes!(contracts::show))
        .routes(routes!(contracts::version))
        .routes(routes!(contracts::compare))
        .routes(routes!(contracts::plan).body_max(contracts::PLANNED_MAX_BYTES))
        .routes(routes!(contracts::list_callers))
        .routes(routes!(contracts::roll_back))
        .routes(routes!(contracts::retire))
        .routes(routes!(contracts::drafts))
        .routes(routes!(contracts::draft))
        .routes(routes!(contracts::publish))
        .routes(routes!(contracts::discard))
        .routes(routes!(form::show))
        .routes(routes!(form::schema))
        .routes(routes!(tools::list))
        .routes(routes!(policy::show_policy))
        .routes(routes!(policy::policy_schema))
        .routes(routes!(policy::test_policy))
        .routes(routes!(collections::list))
        .routes(routes!(collections::describe))
        .routes(routes!(connections::list))
        .routes(routes!(connections::check))
        .routes(routes!(connections::list_sources))
        .routes(routes!(connections::describe))
        .routes(routes!(connections::draft))
        .routes(routes!(connections::rows))
        .routes(routes!(connections::upload))
        .routes(routes!(plugins::list))
        .routes(routes!(plugins::upload, plugins::remove).body_max(plugins::BODY_MAX_BYTES))
        .routes(routes!(plugins::accept))
        .routes(routes!(plugins::reload))
        .routes(routes!(upstreams::list))
        .routes(routes!(upstreams::show))
        .routes(routes!(upstreams::look))
        .routes(routes!(upstreams::look_at))
        .routes(routes!(upstreams::list_accounts))
        .routes(routes!(upstreams::disconnect))
        .routes(routes!(calls::try_call))
        .routes(routes!(live::stats))
        .routes(routes!(live::events))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::show))
        .routes(routes!(approvals::approve))
        .routes(routes!(approvals::reject))
        .routes(routes!(audit::query))
        .routes(routes!(audit::verify, audit::verify_receipts))
        .routes(routes!(audit::export))
        .routes(routes!(trails::heads))
        .routes(routes!(trails::chains))
        .routes(routes!(trails::lines))
        .routes(routes!(audit::show_call))
        .routes(routes!(audit::prove))
        .routes(routes!(nodes::list))
        .routes(routes!(settings::show))
        .routes(routes!(settings::reload))
}

/// Serves until `shutdown`.
pub async fn serve(
    admin: Arc<AdminContext>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let local = listener.local_addr()?;
    let registered = admin.gateway.metrics().clone();
    let bounds = ListenerBounds {
        listener: "admin",
        connections_max: CONNECTIONS_MAX,
        address_connections_max: ADDRESS_CONNECTIONS_MAX,
        first_head_max: FIRST_HEAD_MAX,
    };
    // Built for the first request: the routes take megabytes and milliseconds, and many gateways never need them.
    let routes = Arc::new(OnceLock::new());
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let routes = routes.get_or_init(|| TowerToHyperService::new(router(&admin, local)));
        routes.clone().call(request)
    });
    let ending = CancellationToken::new();
    serve_connections(listener, service, &bounds, &registered, shutdown, &ending).await;
    Ok(())
}

/// Returns everything that the listener answers.
fn router(admin: &Arc<AdminContext>, local: SocketAddr) -> Router {
    let problem: ProblemAnswer = |status, detail| AdminProblem::new(status, detail).into_response();
    let scrape = metrics::router(&admin.gateway, admin.door.clone(), local, Some(problem))
        .method_not_allowed_fallback(async || AdminProblem::method().into_response());
    let router = routes().router;
    router
        // A contract may be called like the route for previews.
        .route(
            "/v1/contracts/preview",
            check_query("/v1/contracts/{name}", get(contracts::show_preview)),
        )
        // So may an upstream.
        .route(
            "/v1/upstreams/look",
            check_query("/v1/upstreams/{name}", get(upstreams::show_look)),
        )
        // So may a plugin.
        .route(
            "/v1/plugins/reload",
            check_query(
                "/v1/plugins/{name}",
                put(plugins::upload_reload)
                    .delete(plugins::remove_reload)
                    .layer(DefaultBodyLimit::max(plugins::BODY_MAX_BYTES)),
            ),
        )
        .merge(console::router())
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .fallback(async |uri: Uri| {
            AdminProblem::not_found("route", uri.path())
                .see("see /openapi.json")
                .into_response()
        })
        .method_not_allowed_fallback(async || AdminProblem::method().into_response())
        .layer(from_fn_with_state(admin.clone(), retries::answer))
        .layer(from_fn_with_state(admin.clone(), nodes::await_nodes))
        .layer(from_fn_with_state(admin.clone(), visit))
        .layer(from_fn(unread_body::close_if_unread))
        .with_state(admin.clone())
        .merge(scrape)
}

/// Checks Host and Origin for every route, and that a body is not compressed: otherwise a file would be kept in its compressed
/// form.
async fn visit(Shared(admin): Ask, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let is_probe = PROBES.contains(&path) && is_by_address(&head.headers);
    let refused = match is_probe {
        true => None,
        false => admin.door.visit(&head, || path.to_owned()).err(),
    };
    match refused {
        None if is_compressed(&head.headers) && !body.is_end_stream() => {
            AdminProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, COMPRESSED).into_response()
        }
        None => next.run(Request::from_parts(head, body)).await,
        Some(error) => {
            let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::FORBIDDEN);
            AdminProblem::new(status, error.message).into_response()
        }
    }
}

/// Returns whether the gateway is ready for calls. Everything that is currently refused is listed, one line each.
async fn ready(Shared(admin): Ask) -> Response {
    match admin.gateway.fault().await {
        None => {
            let refused = admin.control.refused();
            let line = |refused: &RefusedArtifact| {
                format!("refused: {} {}\n", refused.kind.word(), refused.name)
            };
            let lines: String = refused.iter().map(line).collect();
            format!("ready\n{lines}").into_response()
        }
        Some(fault) => AdminProblem::unavailable(fault).into_response(),
    }
}

/// Returns an address that signs an operator in at the console, once, within a minute; `None` if no operator has a key.
pub async fn sign_in_address(
    state: &GatewayState,
    listen: SocketAddr,
) -> anyhow::Result<Option<String>> {
    let admins = state.admins().await?;
    let is_operator = |row: &&AdminRow| row.role == Role::Operator && row.revoked_ms.is_none();
    let Some(operator) = admins.iter().find(is_operator) else {
        return Ok(None);
    };
    let link = make_link(state, &operator.id).await?;
    let host = match listen.ip().is_unspecified() {
        true => "127.0.0.1".to_owned(),
        false => SocketAddr::new(listen.ip(), 0)
            .to_string()
            .trim_end_matches(":0")
            .to_owned(),
    };
    Ok(Some(format!(
        "http://{host}:{}{}",
        listen.port(),
        link.path
    )))
}

/// Makes the first admin key if none was ever made. It is written to the file, which only its owner can read, before it is valid:
/// after a crash in between, the next start continues.
pub async fn first_key(state: &GatewayState, folder: &Path) -> anyhow::Result<()> {
    if !state.admins().await?.is_empty() {
        return Ok(());
    }
    let path = folder.join(TOKEN_FILE);
    let failed = || format!("the first admin key in {}", path.display());
    if !path.exists() {
        let minted = MintedSecret::new(SecretKind::Admin)
            .map_err(|error| anyhow::anyhow!("no random number: {error}"))?;
        // If several processes start at once, one of them wins.
        weir_files::create_once(
            &path,
            minted.text.as_bytes(),
            weir_files::FilePermission::Owner,
        )
        .with_context(failed)?;
    }
    let text = std::fs::read_to_string(&path).with_context(failed)?;
    let minted = MintedSecret::read(text.trim(), SecretKind::Admin);
    let minted =
        minted.with_context(|| format!("{} holds no admin key: delete it", path.display()))?;
    let row = AdminRow {
        id: minted.id,
        secret_hash: minted.hash.to_vec(),
        name: "first".into(),
        role: Role::Operator,
        approves: false,
        created_ms: now_ms(),
        created_by: "start".into(),
        revoked_ms: None,
    };
    if state.add_first_admin(&row).await? {
        tracing::info!("the first admin key is in {}", path.display());
    } else if state.admins().await?.iter().all(|it| it.id != row.id) {
        // A node on another machine was faster: the key minted here gives no access.
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::warn!(%error, "the admin key in {} gives no access: delete it", path.display());
        }
    }
    Ok(())
}
