//! `/metrics`, for Prometheus: with the token where one is set, else on loopback alone.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE},
    },
    response::{IntoResponse as _, Response},
    routing::get,
};

use super::{access, reply};
use crate::{gateway::Gateway, identity::Credential, scrape};

/// The version is that of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

struct Scrape {
    gateway: Arc<Gateway>,
    access: access::Current,
    /// The listener is reached from this machine alone.
    loopback: bool,
}

/// Returns the router. `local` is the address that it listens on.
pub(crate) fn router(gateway: &Arc<Gateway>, local: SocketAddr) -> anyhow::Result<Router> {
    let access = access::Current::new(gateway, local)?;
    let asked = Scrape { gateway: gateway.clone(), access, loopback: local.ip().is_loopback() };
    Ok(Router::new().route("/metrics", get(answer)).with_state(Arc::new(asked)))
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
    }
    let values = request.headers().get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
    match metrics.admit(Credential::of_header(values)) {
        true => ([(CONTENT_TYPE, TEXT)], scrape::text(&asked.gateway)).into_response(),
        false => refused("send `Authorization: Bearer` with the token of [metrics]"),
    }
}

fn refused(message: &'static str) -> Response {
    let challenge = HeaderValue::from_static("Bearer realm=\"weir metrics\"");
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)], format!("{message}\n")).into_response()
}
