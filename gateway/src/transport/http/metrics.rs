//! `/metrics`, for Prometheus: with the token if one is set, otherwise only on loopback, and not through a proxy.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CONTENT_TYPE, WWW_AUTHENTICATE},
    },
    response::{IntoResponse as _, Response},
    routing::get,
};

use super::reply;
use crate::{
    scrape,
    serving::ServingGateway,
    transport::front_door::{FrontDoor, credential, is_own},
};

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

/// Writes a refusal like the other routes of a listener.
pub(crate) type ProblemAnswer = fn(StatusCode, &str) -> Response;

struct MetricsEndpoint {
    gateway: Arc<ServingGateway>,
    door: Arc<FrontDoor>,
    /// The listener can only be reached from this machine.
    loopback: bool,
    /// `None` on the agents' listener, which may be behind a proxy.
    problem: Option<ProblemAnswer>,
}

/// Returns the router of a listener with its door. `local` is the address that it listens on; `problem` writes refusals on
/// listeners that agents do not call.
pub(crate) fn router(
    gateway: &Arc<ServingGateway>,
    door: Arc<FrontDoor>,
    local: SocketAddr,
    problem: Option<ProblemAnswer>,
) -> Router {
    let asked = MetricsEndpoint {
        gateway: gateway.clone(),
        door,
        loopback: local.ip().is_loopback(),
        problem,
    };
    Router::new()
        .route("/metrics", get(answer))
        .with_state(Arc::new(asked))
}

async fn answer(State(asked): State<Arc<MetricsEndpoint>>, request: Request) -> Response {
    let metrics = asked.gateway.metrics();
    let (head, _) = request.into_parts();
    if !metrics.are_guarded() {
        if !asked.loopback {
            return asked.refuse("metrics are open only on loopback; set `token` under [metrics]");
        }
        // A page in a browser on this machine does not count as this machine.
        if let Err(error) = asked.door.visit(&head, || "/metrics".to_owned()) {
            return match asked.problem {
                Some(problem) => {
                    let status = StatusCode::from_u16(error.status);
                    problem(status.unwrap_or(StatusCode::FORBIDDEN), &error.message)
                }
                None => reply::refusal(&error),
            };
        }
        if asked.is_behind_proxy(&head.headers) {
            return asked.refuse(
                "metrics are open only to this machine, and a proxy is in front; set `token` under [metrics]",
            );
        }
    }
    match metrics.admit(credential(&head.headers)) {
        true => ([(CONTENT_TYPE, TEXT)], scrape::text(&asked.gateway)).into_response(),
        false => asked.refuse("send `Authorization: Bearer` with the token of [metrics]"),
    }
}

impl MetricsEndpoint {
    /// Returns `true` if a proxy forwards the request: by the configuration, by its headers, or by a host name other than this
    /// machine's.
    fn is_behind_proxy(&self, headers: &HeaderMap) -> bool {
        let http = &self.gateway.config().http;
        let is_public = self.problem.is_none();
        let is_expected = is_public && (!http.hosts.is_empty() || http.public_url.is_some());
        is_expected || !is_own(headers) || OF_PROXIES.iter().any(|name| headers.contains_key(*name))
    }

    /// Asks for the token.
    fn refuse(&self, message: &str) -> Response {
        let mut response = match self.problem {
            Some(problem) => problem(StatusCode::UNAUTHORIZED, message),
            None => (StatusCode::UNAUTHORIZED, format!("{message}\n")).into_response(),
        };
        let challenge = HeaderValue::from_static("Bearer realm=\"weir metrics\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        response
    }
}
