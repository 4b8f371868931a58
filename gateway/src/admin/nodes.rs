//! The nodes that share a state. An answer to a change waits for them.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::{Request, State as Shared},
    http::{Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};

use super::{AdminContext, AdminProblem, Answer, Ask, staff::AdminPrincipal};
use crate::control::{
    gate::Role,
    operations::nodes::{self, MissingNode, NodeList},
};

/// Prefixes of the routes whose changes are awaited.
const CHANGING: [&str; 7] = [
    "/v1/keys",
    "/v1/admins",
    "/v1/contracts",
    "/v1/drafts",
    "/v1/plugins",
    "/v1/versions",
    "/v1/pins",
];

/// The prefix of the routes that change builds, which nodes compile before they serve them.
const BUILDS: &str = "/v1/plugins";

/// The prefix of the routes of contracts, and the suffixes of those that change nothing.
const CONTRACTS: &str = "/v1/contracts/";
const UNCHANGING: [&str; 2] = ["/preview", "/impact"];

/// The processes that share the state, with the last change that each has applied; none if the state is a file. Role:
/// viewer.
#[utoipa::path(get, path = "/v1/nodes", responses(
    (status = 200, body = NodeList), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn list(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<NodeList>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(nodes::list(&admin.control).await?))
}

/// Delays the answer to a change until all nodes have applied it, if several share the state. In the answer, `everywhere` shows
/// whether they have, and `missing` lists those that have not.
pub(super) async fn await_nodes(
    Shared(admin): Shared<Arc<AdminContext>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let changes = is_change(request.method(), path);
    let is_build = path.starts_with(BUILDS);
    let response = next.run(request).await;
    if !changes || !admin.state.is_shared() || !response.status().is_success() {
        return response;
    }
    // The change is made. If the nodes cannot be asked, the answer does not claim that it applies everywhere.
    let builds = match is_build {
        true => nodes::await_builds(&admin.control).await,
        false => Ok(Vec::new()),
    };
    let changes = nodes::await_everywhere(&admin.control).await;
    let missing = builds.and_then(|builds| {
        let add = |mut missing: Vec<MissingNode>| {
            let others = builds
                .into_iter()
                .filter(|node| missing.iter().all(|known| known.id != node.id));
            let others: Vec<MissingNode> = others.collect();
            missing.extend(others);
            missing
        };
        changes.map(|changes| changes.map(add))
    });
    let reach = match missing {
        Ok(Some(missing)) if missing.is_empty() => json!({ "everywhere": true }),
        Ok(Some(missing)) => json!({ "everywhere": false, "missing": missing }),
        Ok(None) => return response,
        Err(_) => json!({ "everywhere": false }),
    };
    add_members(response, reach).await
}

/// Returns `true` for a request whose answer waits for all nodes.
pub(super) fn is_change(method: &Method, path: &str) -> bool {
    // A pin or a plugin may be named like such a route.
    let is_unchanging =
        path.starts_with(CONTRACTS) && UNCHANGING.iter().any(|route| path.ends_with(route));
    *method != Method::GET
        && *method != Method::HEAD
        && CHANGING.iter().any(|route| path.starts_with(route))
        && !is_unchanging
}

/// Adds members to an answer that is an object, or that has no body.
async fn add_members(response: Response, members: Value) -> Response {
    let (mut head, body) = response.into_parts();
    let Ok(collected) = body.collect().await else {
        return AdminProblem::unavailable("the answer was lost").into_response();
    };
    let body = collected.to_bytes();
    let object = match body.is_empty() {
        true => Ok(Map::new()),
        false => serde_json::from_slice::<Map<String, Value>>(&body),
    };
    let (Ok(mut object), Value::Object(members)) = (object, members) else {
        return Response::from_parts(head, Body::from(body));
    };
    object.extend(members);
    if head.status == StatusCode::NO_CONTENT {
        head.status = StatusCode::OK;
    }
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.remove(header::CONTENT_TYPE);
    let mut answer = (head.status, Json(object)).into_response();
    answer.headers_mut().extend(head.headers);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_a_change_waits_whatever_its_name() {
        for (method, path, waits) in [
            (Method::POST, "/v1/contracts", true),
            (Method::POST, "/v1/contracts/preview/retire", true),
            (Method::PUT, "/v1/pins/bot/preview", true),
            (Method::DELETE, "/v1/plugins/impact", true),
            (Method::POST, "/v1/contracts/preview", false),
            (Method::POST, "/v1/contracts/airports/impact", false),
            (Method::GET, "/v1/keys", false),
            (Method::POST, "/v1/calls", false),
        ] {
            assert_eq!(is_change(&method, path), waits, "{method} {path}");
        }
    }
}
