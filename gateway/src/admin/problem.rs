//! Refusals as RFC 9457 problem documents.

use std::{future::Future, time::Duration};

use axum::{
    Json,
    extract::{
        FromRequest, FromRequestParts, Path, Query, RawPathParams, Request,
        path::ErrorKind,
        rejection::{JsonRejection, PathRejection, QueryRejection},
    },
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;
use weir_state::StateError;
use weir_text::shorten;

use crate::{
    control::operations::{FailureKind, OperationError},
    wire::raw,
};

/// The bound on a name in a refusal.
pub(super) const NAME_MAX_CHARS: usize = 64;
/// The bound on a refusal that repeats the wrong value.
const UNREAD_MAX_CHARS: usize = 400;

/// Why a request was refused.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub struct AdminProblem {
    /// `about:blank`: the title is that of the status.
    #[serde(rename = "type")]
    kind: &'static str,
    status: u16,
    title: &'static str,
    detail: String,
    /// Every problem of a refused contract or configuration, `{file, place, line?, message, hint?}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    problems: Vec<Value>,
}

impl AdminProblem {
    /// Creates a problem document whose title is that of the status. `detail` is shown to the client.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self {
            kind: "about:blank",
            status: status.as_u16(),
            title,
            detail: detail.into(),
            problems: Vec::new(),
        }
    }

    /// Refuses a request for a missing thing. The name comes from the request.
    pub fn not_found(what: &str, name: &str) -> Self {
        let shown = shorten(name, NAME_MAX_CHARS);
        Self::new(
            StatusCode::NOT_FOUND,
            format!("there is no {what} `{shown}`"),
        )
    }

    /// Adds what to do next.
    pub fn see(mut self, next: &str) -> Self {
        self.detail = format!("{}: {next}", self.detail);
        self
    }

    /// Returns the refusal of a method that the route does not have (405).
    pub fn method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "the route has other methods: see /openapi.json",
        )
    }

    /// Returns a refusal after which another attempt may succeed (503).
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Returns the refusal of a request that cannot be read. Quoted parts of the request are shortened.
    fn unread(status: StatusCode, detail: &str) -> Self {
        Self::new(status, shorten(detail, UNREAD_MAX_CHARS))
    }

    /// Returns the refusal of a request that can be read but makes no sense (422).
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }
}

impl IntoResponse for AdminProblem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"weir admin\""),
            );
        }
        response
    }
}

impl From<OperationError> for AdminProblem {
    fn from(error: OperationError) -> Self {
        let status = match error.kind {
            FailureKind::Malformed => StatusCode::BAD_REQUEST,
            FailureKind::Forbidden => StatusCode::FORBIDDEN,
            FailureKind::NotFound => StatusCode::NOT_FOUND,
            FailureKind::Conflict => StatusCode::CONFLICT,
            FailureKind::Outdated => StatusCode::PRECONDITION_FAILED,
            FailureKind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            FailureKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            FailureKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        let problems = error
            .problems
            .iter()
            .map(|problem| serde_json::to_value(problem).expect("plain data"))
            .collect();
        Self {
            problems,
            ..Self::new(status, error.detail)
        }
    }
}

impl From<StateError> for AdminProblem {
    fn from(error: StateError) -> Self {
        OperationError::from(error).into()
    }
}

/// A JSON body whose refusal is also a problem document.
pub(super) struct JsonBody<T>(pub T);

/// The path of a request, with Weir's own refusal for a wrong one.
pub(super) struct PathParams<T>(pub T);

/// The query of a request, with Weir's own refusal for a wrong one.
pub(super) struct QueryParams<T>(pub T);

/// The time within which a body must arrive.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

/// Waits for a body, within its time.
pub(super) async fn arrived<T>(body: impl Future<Output = T>) -> Result<T, AdminProblem> {
    arrived_within(ARRIVAL_MAX, body).await
}

/// Waits for a body that may take longer.
pub(super) async fn arrived_within<T>(
    arrival_max: Duration,
    body: impl Future<Output = T>,
) -> Result<T, AdminProblem> {
    let late = |_| {
        let why = format!("the body did not arrive within {} s", arrival_max.as_secs());
        AdminProblem::new(StatusCode::REQUEST_TIMEOUT, why)
    };
    tokio::time::timeout(arrival_max, body).await.map_err(late)
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = AdminProblem;

    async fn from_request(request: Request, state: &S) -> Result<Self, AdminProblem> {
        let Json(JsonObject(body)) = arrived(Json::from_request(request, state)).await??;
        Ok(Self(body))
    }
}

/// Reads a body once its sender is permitted to send one: large bodies of others are not read.
pub(super) async fn read_json<T: DeserializeOwned>(request: Request) -> Result<T, AdminProblem> {
    let JsonBody(body) = JsonBody::from_request(request, &()).await?;
    Ok(body)
}

/// A body that is an object, and not one of the lists that serde would read as an object.
struct JsonObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        raw::object(deserializer).map(Self)
    }
}

/// Reads a member of a body that is an object or null.
pub(super) fn read_nullable_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let object = Option::<JsonObject<T>>::deserialize(deserializer)?;
    Ok(object.map(|JsonObject(object)| object))
}

/// Reads a whole number from a query. A negative one becomes zero, and one that is too large becomes the largest number, so that
/// it is refused with the bounds of its parameter.
pub(super) fn read_number<'de, D: Deserializer<'de>, T: TryFrom<u64>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits = text.trim_start_matches(['-', '+']);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(D::Error::custom("a whole number is expected"));
    }
    let number = match text.starts_with('-') {
        true => 0,
        false => digits.parse().unwrap_or(u64::MAX),
    };
    let wide = || D::Error::custom("the number is too large");
    T::try_from(number).map(Some).map_err(|_| wide())
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = AdminProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, AdminProblem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(place)) => Ok(Self(place)),
            Err(refused) => {
                let params = RawPathParams::from_request_parts(parts, state).await.ok();
                Err(name_param(&refused, params.as_ref()).unwrap_or_else(|| refused.into()))
            }
        }
    }
}

/// Refuses a part of a path that is not a number where one is required, by its name in the document.
fn name_param(refused: &PathRejection, params: Option<&RawPathParams>) -> Option<AdminProblem> {
    let PathRejection::FailedToDeserializePathParams(failed) = refused else {
        return None;
    };
    let (index, value, kind) = match failed.kind() {
        ErrorKind::ParseErrorAtIndex {
            index,
            value,
            expected_type,
        } => (*index, value, *expected_type),
        ErrorKind::ParseError {
            value,
            expected_type,
        } => (0, value, *expected_type),
        _ => return None,
    };
    let (name, _) = params?.iter().nth(index)?;
    let wanted = match kind {
        "u32" => "a whole number of 0 to 4294967295",
        "i64" => "a whole number of at most 64 bits",
        other => other,
    };
    let shown = shorten(value, NAME_MAX_CHARS);
    let detail = format!("`{name}` in the path must be {wanted}, not `{shown}`");
    Some(AdminProblem::new(StatusCode::BAD_REQUEST, detail))
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = AdminProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, AdminProblem> {
        let Query(asked) = Query::from_request_parts(parts, state).await?;
        Ok(Self(asked))
    }
}

impl From<JsonRejection> for AdminProblem {
    fn from(rejection: JsonRejection) -> Self {
        Self::unread(rejection.status(), &rejection.body_text())
    }
}

impl From<PathRejection> for AdminProblem {
    fn from(rejection: PathRejection) -> Self {
        Self::unread(rejection.status(), &rejection.body_text())
    }
}

impl From<QueryRejection> for AdminProblem {
    fn from(rejection: QueryRejection) -> Self {
        Self::unread(rejection.status(), &rejection.body_text())
    }
}
