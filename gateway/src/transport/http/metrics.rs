//! `/metrics`, for Prometheus: with the token where one is set, else on loopback alone, and not through a proxy.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE},
    },
    response::{IntoResponse as _, Response},
    routing::get,
};

use super::{access, reply};
use crate::{gateway::Gateway, identity::Credential, scrape};

/// The headers that proxies add to a request.
const OF_PROXIES: [&str; 5] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
];
/// The version is that of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

struct Scrape {
    gateway: Arc<Gateway>,
    access: access::Current,
    /// The listener is reached from this machine alone.
    loopback: bool,
    /// The listener is that of the agents, in front of which a proxy may stand.
    is_public: bool,
}

/// Returns the router of a listener. `local` is the address that it listens on, and `is_public` says whether agents call
/// there.
pub(crate) fn router(
    gateway: &Arc<Gateway>,
    local: SocketAddr,
    is_public: bool,
) -> anyhow::Result<Router> {
    let access = access::Current::new(gateway, local)?;
    let asked = Scrape {
        gateway: gateway.clone(),
        access,
        loopback: local.ip().is_loopback(),
        is_public,
    };
    Ok(Router::new()
        .route("/metrics", get(answer))
        .with_state(Arc::new(asked)))
}

async fn answer(State(asked): State<Arc<Scrape>>, request: Request) -> Response {
    let metrics = asked.gateway.metrics();
    if !metrics.are_guarded() {
        if !asked.loopback {
            return refused("metrics are open on loopback alone; set `token` under [metrics]");
        }
        // A page in a browser on this machine is not this machine.
        if let Err(refused) = asked.access.check(request.uri(), request.headers()) {
            return reply::refusal(&refused.error);
        }
        if asked.is_behind_proxy(request.headers()) {
            return refused(
                "metrics are open to this machine alone, and a proxy stands in front; set `token` under [metrics]",
            );
        }
    }
    let values = request
        .headers()
        .get_all(AUTHORIZATION)
        .iter()
        .map(HeaderValue::as_bytes);
    match metrics.admit(Credential::of_header(values)) {
        true => ([(CONTENT_TYPE, TEXT)], scrape::text(&asked.gateway)).into_response(),
        false => refused("send `Authorization: Bearer` with the token of [metrics]"),
    }
}

impl Scrape {
    /// Returns `true` if a proxy passes on what others ask: one that is configured for, that says so, or that is asked by
    /// another name than this machine's own.
    fn is_behind_proxy(&self, headers: &HeaderMap) -> bool {
        let http = &self.gateway.config().http;
        let is_expected = self.is_public && (!http.hosts.is_empty() || http.public_url.is_some());
        is_expected
            || !access::is_own(headers)
            || OF_PROXIES.iter().any(|name| headers.contains_key(*name))
    }
}

fn refused(message: &'static str) -> Response {
    let challenge = HeaderValue::from_static("Bearer realm=\"weir metrics\"");
    (
        StatusCode::UNAUTHORIZED,
        [(WWW_AUTHENTICATE, challenge)],
        format!("{message}\n"),
    )
        .into_response()
}
