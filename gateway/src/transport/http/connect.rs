//! Links by which people connect their accounts at other servers: the page that a link opens, the sign-in at the issuer, and
//! the way back. No key is required here: a link is for one caller, and opens once.

use std::sync::Arc;

use axum::{
    RequestPartsExt as _, Router,
    extract::{FromRequest, Path, Request},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::get,
};
use weir_oauth::{ClientMetadata, SignInAnswer};
use weir_upstream::OauthServer;

use super::{HttpServerState, reply};
use crate::{
    accounts::{AccountRegistry, CALLBACK, CLIENT_DOCUMENT, CONNECT, ConnectFault},
    pages::{self, NoticePage},
};

/// The name of the cookie that identifies the browser that began a sign-in.
const COOKIE: &str = "weir-connect";
const COOKIE_SECONDS: u32 = 600;

pub(super) fn router() -> Router<Arc<HttpServerState>> {
    let below = |rest: &str| format!("{CONNECT}/{{upstream}}{rest}");
    Router::new()
        .route(&below(""), get(show).post(begin))
        .route(&below(&format!("/{CALLBACK}")), get(end))
        .route(&below(&format!("/{CLIENT_DOCUMENT}")), get(describe))
}

/// A request for a link: its Host and Origin have been checked, and its server has accounts.
struct LinkRequest {
    head: Parts,
    /// The server's name.
    name: String,
    accounts: Arc<AccountRegistry>,
    server: Arc<OauthServer>,
    base: String,
}

impl FromRequest<Arc<HttpServerState>> for LinkRequest {
    type Rejection = Response;

    /// An unknown name and a server without accounts get the same answer.
    async fn from_request(
        request: Request,
        server: &Arc<HttpServerState>,
    ) -> Result<Self, Response> {
        let (mut head, _) = request.into_parts();
        let name = head.extract::<Path<String>>().await;
        let Path(name) = name.map_err(IntoResponse::into_response)?;
        let visit = server.door.visit(&head, || format!("{CONNECT}/{name}"));
        visit.map_err(|error| reply::refusal(&error))?;
        let gateway = &server.gateway;
        let upstream = gateway.upstreams().get(&name);
        let oauth = upstream.and_then(|upstream| upstream.oauth().cloned());
        let accounts = gateway.accounts().cloned();
        let base = accounts
            .as_ref()
            .and_then(|accounts| accounts.link_base(&gateway.config()));
        match (oauth, accounts, base) {
            (Some(server), Some(accounts), Some(base)) => Ok(Self {
                head,
                name,
                accounts,
                server,
                base,
            }),
            _ => Err(over()),
        }
    }
}

/// Shows what the link is for, without using it up: programs that open links in advance change nothing.
async fn show(link: LinkRequest) -> Response {
    let ticket = parameter(&link.head, "ticket").unwrap_or_default();
    match link.accounts.ticket(&link.name, &ticket).await {
        Ok(known) => {
            let place = place(&link.server);
            let lines = [
                format!("You are about to connect your account at {place} for {}.", known.label),
                "What this agent calls there acts as you from then on. Continue only if you asked for this yourself: \
                 a link that someone else sent you would give them your account."
                    .to_owned(),
            ];
            page(
                StatusCode::OK,
                "Connect an account",
                &lines,
                Some("Sign in"),
            )
        }
        Err(fault) => failed(&link.name, &fault),
    }
}

/// Uses up the link, and sends the browser to the issuer.
async fn begin(link: LinkRequest) -> Response {
    let LinkRequest {
        head,
        name,
        accounts,
        server,
        base,
    } = link;
    let ticket = parameter(&head, "ticket").unwrap_or_default();
    let browser = hex::encode(fresh());
    let begun = match accounts.open_link(&base, &server, &ticket, &browser).await {
        Ok(begun) => begun,
        Err(fault) => return failed(&name, &fault),
    };
    let secure = if base.starts_with("https:") {
        "; Secure"
    } else {
        ""
    };
    let cookie = format!(
        "{COOKIE}={browser}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}"
    );
    let headers = [(header::LOCATION, begun.url), (header::SET_COOKIE, cookie)];
    guarded((StatusCode::SEE_OTHER, headers).into_response())
}

/// Ends the sign-in from which the browser returns.
async fn end(link: LinkRequest) -> Response {
    let LinkRequest {
        head,
        name,
        accounts,
        server,
        ..
    } = link;
    let answer = SignInAnswer::read(head.uri.query().unwrap_or_default());
    let (Some(answer), Some(browser)) = (answer, cookie(&head.headers)) else {
        return over();
    };
    let place = place(&server);
    // The code is valid once: its result is kept even if the browser leaves.
    let closed = tokio::spawn(async move { accounts.close_link(&server, answer, &browser).await });
    match closed.await {
        Ok(Ok(label)) => {
            let lines = [
                format!("{label} now calls {place} as you."),
                "You can close this page and continue where you were.".to_owned(),
            ];
            page(StatusCode::OK, "Connected", &lines, None)
        }
        Ok(Err(fault)) => failed(&name, &fault),
        Err(error) => failed(&name, &ConnectFault::Internal(error.to_string())),
    }
}

/// Describes the gateway as a client, for issuers that identify clients by such a document.
async fn describe(link: LinkRequest) -> Response {
    let LinkRequest { name, base, .. } = link;
    let id = format!("{base}{CONNECT}/{name}/{CLIENT_DOCUMENT}");
    let redirect = format!("{base}{CONNECT}/{name}/{CALLBACK}");
    let document = ClientMetadata::new(Some(&id), "Weir", &redirect);
    let text = serde_json::to_string(&document).expect("plain data");
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn over() -> Response {
    let lines =
        ["It opens once, for ten minutes. Call the tool again to get another one.".to_owned()];
    page(
        StatusCode::NOT_FOUND,
        "This link has expired or was used",
        &lines,
        None,
    )
}

fn failed(upstream: &str, fault: &ConnectFault) -> Response {
    if matches!(fault, ConnectFault::Over) {
        return over();
    }
    tracing::warn!(upstream, "an account was not connected: {fault}");
    let lines = [
        "The account was not connected. Nothing was changed.".to_owned(),
        match fault {
            ConnectFault::Oauth(fault) => fault.to_string(),
            _ => "The gateway failed; its log says why.".to_owned(),
        },
    ];
    page(StatusCode::BAD_GATEWAY, "Not connected", &lines, None)
}

fn page(status: StatusCode, title: &str, lines: &[String], button: Option<&str>) -> Response {
    let notice = NoticePage {
        title,
        lines,
        button,
    };
    let html = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    guarded((status, html, pages::notice(&notice)).into_response())
}

/// Keeps the page and its address from caches, other sites and frames.
fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, pages::notice_policy()),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the host of a server, in the form shown to people.
fn place(server: &OauthServer) -> String {
    let url = url::Url::parse(&server.url).ok();
    let host = url.as_ref().and_then(url::Url::host_str);
    format!("{} ({})", server.name, host.unwrap_or_default())
}

fn parameter(head: &Parts, wanted: &str) -> Option<String> {
    let query = head.uri.query()?;
    let mut all = form_urlencoded::parse(query.as_bytes());
    let found = all.find(|(name, _)| name == wanted)?;
    Some(found.1.into_owned())
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter();
    let mut pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    let found = pairs.find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='));
    found.map(str::to_owned)
}

fn fresh() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}
