//! The query parameters of the API. A request with any other is refused: a misspelt filter would find everything.

use axum::{
    extract::{Request, State as Shared},
    http::StatusCode,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::MethodRouter,
};
use weir_text::shorten;

use crate::admin::{AdminProblem, problem::NAME_MAX_CHARS};

/// The names of the parameters of a query.
type ParamNames = &'static [&'static str];

/// The parameters of each path whose query has any. A test compares them with the descriptions of the routes.
const PARAMS: [(&str, ParamNames); 11] = [
    (
        "/v1/audit",
        &[
            "since", "until", "kind", "agent", "tenant", "tool", "contract", "outcome", "call_id",
            "text", "before", "order", "limit",
        ],
    ),
    ("/v1/audit/chains/{chain}/{segment}", &["from"]),
    (
        "/v1/audit/export",
        &[
            "since", "until", "kind", "agent", "tenant", "tool", "contract", "outcome", "call_id",
            "text",
        ],
    ),
    ("/v1/audit/{call_id}/proof", &["to"]),
    ("/v1/connections/{name}/sources", &["q", "cursor"]),
    ("/v1/contracts/{name}/diff", &["from", "to"]),
    ("/v1/drafts", &["contract", "status", "before"]),
    ("/v1/events", &["calls"]),
    ("/v1/snippets", &["client", "agent"]),
    ("/v1/stats", &["window"]),
    ("/v1/tools", &["agent", "q", "cursor"]),
];

/// Returns the names of the query parameters of a path.
pub(super) fn param_names(path: &str) -> ParamNames {
    let listed = PARAMS.iter().find(|(listed, _)| *listed == path);
    listed.map_or(&[], |(_, names)| names)
}

/// Makes the handlers of a path refuse unknown query parameters.
pub(in crate::admin) fn check_query<S: Clone + Send + Sync + 'static>(
    path: &str,
    handlers: MethodRouter<S>,
) -> MethodRouter<S> {
    handlers.layer(from_fn_with_state(param_names(path), refuse_unknown))
}

async fn refuse_unknown(
    Shared(names): Shared<ParamNames>,
    request: Request,
    next: Next,
) -> Response {
    let Some(unknown) = unknown_param(request.uri().query().unwrap_or_default(), names) else {
        return next.run(request).await;
    };
    let known = match names {
        [] => "this route has none in its query".to_owned(),
        names => format!("this route has `{}`", names.join("`, `")),
    };
    let detail = format!("there is no parameter `{unknown}`: {known}");
    AdminProblem::new(StatusCode::BAD_REQUEST, detail).into_response()
}

/// Returns the first parameter of a query that is not among `names`, in the form for a refusal.
fn unknown_param(query: &str, names: ParamNames) -> Option<String> {
    let mut given = form_urlencoded::parse(query.as_bytes());
    let (unknown, _) = given.find(|(name, _)| !names.contains(&&**name))?;
    Some(shorten(&unknown, NAME_MAX_CHARS).escape_debug().to_string())
}
