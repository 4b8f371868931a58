//! Contracts: submit → draft with its report → publish, roll back, retire.

use axum::{
    Json,
    extract::{FromRequestParts, Request, State as Shared},
    http::{HeaderName, StatusCode, header, request::Parts},
};
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use weir_contracts::form;
use weir_state::DraftFilter;

use super::{
    AdminProblem, Answer, Ask,
    problem::{JsonBody, PathParams, QueryParams, read_json},
    staff::AdminPrincipal,
};
use crate::control::{
    gate::{DraftStatus, Role},
    impact::Inputs,
    operations::{
        callers::{self, CallersView},
        contracts::{
            self, ContractDetail, ContractsView, NowLive, PlannedImpact, Submitted, VersionDetail,
        },
        drafts::{self, DraftView},
        preview::{self, ContractPreview},
        versions::KeepRequest,
    },
};

/// The bound on a submission: a contract file of the largest permitted size, with its JSON escapes.
pub(super) const SUBMITTED_MAX_BYTES: usize = 2 * form::FILE_BYTES_MAX;

/// The schemas of one contract's tools.
pub(super) const PLANNED_MAX_BYTES: usize = 16 << 20;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewContract {
    /// The contract file, YAML or JSON.
    #[schema(min_length = 1, max_length = 16777216)]
    source: String,
    /// Whether the contract waits for approval even if it could go live immediately.
    #[serde(default)]
    hold: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PreviewedText {
    /// The contract file, YAML or JSON.
    #[schema(max_length = 16777216)]
    source: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Agreed {
    /// The fingerprint of the difference that was reviewed; another one is refused.
    fingerprint: String,
    /// If true, the replaced version is still served, for agents that are pinned to it and at `/mcp/<contract>@<major>`.
    #[serde(default)]
    keep: bool,
    /// The last day of the kept version, or a time in RFC 3339. By default it has none.
    sunset: Option<String>,
    /// The conversion of calls of the kept version: see docs/versions.md. By default, the one that the difference suggests.
    #[schema(value_type = Option<Object>)]
    shim: Option<Value>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Back {
    /// An earlier version.
    to: String,
    /// The fingerprint of the difference between the live version and `to`; see the diff route.
    fingerprint: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DiffQuery {
    /// A version; by default the live one, or the last live one of a retired contract.
    from: Option<String>,
    /// A version; by default the live one, or the last live one of a retired contract.
    to: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DraftsQuery {
    /// Only the drafts of this contract.
    contract: Option<String>,
    /// Only drafts of one status.
    status: Option<DraftStatus>,
    /// The id of a draft: only older drafts that no longer wait.
    before: Option<String>,
}

/// A contract with its planned tools.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Planned {
    /// The input schema of each tool, by name; a tool that is left out counts as removed.
    #[schema(value_type = HashMap<String, Object>)]
    tools: Inputs,
}

/// Lists all contracts, retired ones too, and everything that is refused or waits. Role: viewer.
#[utoipa::path(get, path = "/v1/contracts", responses(
    (status = 200, body = ContractsView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem)))]
pub(super) async fn list(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<ContractsView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(contracts::list(&admin.control).await?))
}

/// Compiles a contract, compares it with the live version and publishes or holds it. Role: editor.
#[utoipa::path(post, path = "/v1/contracts", request_body = NewContract,
    params(("If-Match" = Option<String>, Header, description = "the ETag of the contract as it was read")), responses(
    (status = 200, body = Submitted, description = "unchanged, or published"),
    (status = 202, body = Submitted, description = "held: an admin has to agree"),
    (status = 400, body = AdminProblem), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 409, body = AdminProblem), (status = 412, body = AdminProblem, description = "it has changed since it was read"),
    (status = 413, body = AdminProblem), (status = 415, body = AdminProblem),
    (status = 422, body = AdminProblem, description = "refused, with every problem"), (status = 503, body = AdminProblem)))]
pub(super) async fn submit(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    seen: IfMatch,
    request: Request,
) -> Answer<(StatusCode, Json<Submitted>)> {
    staff.needs(Role::Editor)?;
    let new: NewContract = read_json(request).await?;
    let tags = seen.tags();
    let submitted =
        contracts::submit(&admin.control, &new.source, new.hold, tags, &staff.by()).await?;
    let status = match submitted.is_held() {
        true => StatusCode::ACCEPTED,
        false => StatusCode::OK,
    };
    Ok((status, Json(submitted)))
}

/// Shows the contract that is called `preview`.
pub(super) async fn show_preview(
    admin: Ask,
    staff: AdminPrincipal,
) -> Answer<([(HeaderName, String); 1], Json<ContractDetail>)> {
    show(admin, staff, PathParams("preview".to_owned())).await
}

/// Previews a contract: its tools, its difference, its cost. Nothing is stored. Role: editor.
#[utoipa::path(post, path = "/v1/contracts/preview", request_body = PreviewedText, responses(
    (status = 200, body = ContractPreview, description = "also where the contract is refused, with every problem"),
    (status = 400, body = AdminProblem), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 413, body = AdminProblem), (status = 415, body = AdminProblem), (status = 422, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn preview(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    request: Request,
) -> Answer<Json<ContractPreview>> {
    staff.needs(Role::Editor)?;
    let text: PreviewedText = read_json(request).await?;
    Ok(Json(
        preview::preview(&admin.control, &text.source, &staff.by()).await?,
    ))
}

/// One contract with its history. Role: viewer.
#[utoipa::path(get, path = "/v1/contracts/{name}",
    params(("name" = String, Path, description = "the contract's name")),
    responses((status = 200, body = ContractDetail,
            headers(("ETag" = String, description = "for `If-Match` of what changes it"))),
        (status = 401, body = AdminProblem), (status = 403, body = AdminProblem), (status = 404, body = AdminProblem)))]
pub(super) async fn show(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
) -> Answer<([(HeaderName, String); 1], Json<ContractDetail>)> {
    staff.needs(Role::Viewer)?;
    let read = contracts::show(&admin.control, &name).await?;
    Ok(([(header::ETAG, read.tag)], Json(read.contract)))
}

/// The condition for a change: the contract has not changed since it was read.
pub(super) struct IfMatch(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = AdminProblem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AdminProblem> {
        let tags = parts
            .headers
            .get_all(header::IF_MATCH)
            .iter()
            .map(|tags| String::from_utf8_lossy(tags.as_bytes()));
        let tags: Vec<_> = tags.collect();
        Ok(Self((!tags.is_empty()).then(|| tags.join(","))))
    }
}

impl IfMatch {
    fn tags(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// One version. Role: viewer.
#[utoipa::path(get, path = "/v1/contracts/{name}/versions/{version}",
    params(("name" = String, Path, description = "the contract's name"),
        ("version" = String, Path, description = "such as 1.2.0")),
    responses((status = 200, body = VersionDetail), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem)))]
pub(super) async fn version(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams((name, version)): PathParams<(String, String)>,
) -> Answer<Json<VersionDetail>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(
        contracts::version(&admin.control, &name, &version).await?,
    ))
}

/// The difference between two versions, and, if calls are kept, which of these the second would have refused (`impact`). Role:
/// viewer.
#[utoipa::path(get, path = "/v1/contracts/{name}/diff",
    params(("name" = String, Path, description = "the contract's name"), DiffQuery),
    responses((status = 200, body = Object), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem)))]
pub(super) async fn compare(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
    QueryParams(between): QueryParams<DiffQuery>,
) -> Answer<Json<Value>> {
    staff.needs(Role::Viewer)?;
    let DiffQuery { from, to } = between;
    Ok(Json(
        contracts::compare(&admin.control, &name, from, to).await?,
    ))
}

/// Lists the agents whose past calls would be refused if the contract had other tools. Nothing is stored. Role: viewer.
#[utoipa::path(post, path = "/v1/contracts/{name}/impact", request_body = Planned,
    params(("name" = String, Path, description = "the contract's name")),
    responses((status = 200, body = PlannedImpact), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 413, body = AdminProblem),
        (status = 415, body = AdminProblem), (status = 422, body = AdminProblem)))]
pub(super) async fn plan(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
    request: Request,
) -> Answer<Json<PlannedImpact>> {
    staff.needs(Role::Viewer)?;
    let planned: Planned = read_json(request).await?;
    Ok(Json(
        contracts::plan(&admin.control, &name, &planned.tools).await?,
    ))
}

/// The agents that called the contract's tools in the days for which calls are kept. Role: viewer.
#[utoipa::path(get, path = "/v1/contracts/{name}/callers",
    params(("name" = String, Path, description = "the contract's name")),
    responses((status = 200, body = CallersView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem)))]
pub(super) async fn list_callers(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
) -> Answer<Json<CallersView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(callers::list(&admin.control, &name).await?))
}

/// Makes an earlier version live again; the fingerprint is that of the difference from the live version to it. Role: editor, and
/// operator if it is breaking.
#[utoipa::path(post, path = "/v1/contracts/{name}/rollback", request_body = Back,
    params(("name" = String, Path, description = "the contract's name"),
        ("If-Match" = Option<String>, Header, description = "the ETag of the contract as it was read")),
    responses((status = 200, body = NowLive), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 409, body = AdminProblem),
        (status = 412, body = AdminProblem, description = "it has changed since it was read"),
        (status = 413, body = AdminProblem), (status = 415, body = AdminProblem), (status = 422, body = AdminProblem)))]
pub(super) async fn roll_back(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
    seen: IfMatch,
    JsonBody(back): JsonBody<Back>,
) -> Answer<Json<NowLive>> {
    staff.needs(Role::Editor)?;
    let by = staff.by();
    let live = contracts::roll_back(
        &admin.control,
        &name,
        &back.to,
        &back.fingerprint,
        seen.tags(),
        staff.acting(&by),
    );
    Ok(Json(live.await?))
}

/// Asks for a contract to be retired: a draft that an operator publishes. Role: editor.
#[utoipa::path(post, path = "/v1/contracts/{name}/retire",
    params(("name" = String, Path, description = "the contract's name"),
        ("If-Match" = Option<String>, Header, description = "the ETag of the contract as it was read")),
    responses((status = 202, body = Submitted), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem),
        (status = 412, body = AdminProblem, description = "it has changed since it was read")))]
pub(super) async fn retire(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(name): PathParams<String>,
    seen: IfMatch,
) -> Answer<(StatusCode, Json<Submitted>)> {
    staff.needs(Role::Editor)?;
    let held = contracts::retire(&admin.control, &name, seen.tags(), &staff.by()).await?;
    Ok((StatusCode::ACCEPTED, Json(held)))
}

/// Drafts: all that wait, then the newest 200 of the others, newest first. Role: viewer.
#[utoipa::path(get, path = "/v1/drafts", params(DraftsQuery), responses((status = 200, body = Vec<DraftView>),
    (status = 400, body = AdminProblem), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 404, body = AdminProblem, description = "there is no draft `before`, or none any more")))]
pub(super) async fn drafts(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    QueryParams(of): QueryParams<DraftsQuery>,
) -> Answer<Json<Vec<DraftView>>> {
    staff.needs(Role::Viewer)?;
    let of = DraftFilter {
        contract: of.contract.as_deref(),
        status: of.status,
        before: of.before.as_deref(),
    };
    Ok(Json(drafts::list(&admin.control, of).await?))
}

/// One draft. Role: viewer.
#[utoipa::path(get, path = "/v1/drafts/{id}", params(("id" = String, Path, description = "the draft's id")), responses(
    (status = 200, body = DraftView), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 404, body = AdminProblem)))]
pub(super) async fn draft(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(id): PathParams<String>,
) -> Answer<Json<DraftView>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(drafts::show(&admin.control, &id).await?))
}

/// Publishes a draft exactly as it was reported. Role: editor, and operator if it is breaking.
#[utoipa::path(post, path = "/v1/drafts/{id}/publish", request_body = Agreed,
    params(("id" = String, Path, description = "the draft's id")),
    responses((status = 200, body = NowLive), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
        (status = 403, body = AdminProblem), (status = 404, body = AdminProblem), (status = 409, body = AdminProblem),
        (status = 413, body = AdminProblem), (status = 415, body = AdminProblem), (status = 422, body = AdminProblem)))]
pub(super) async fn publish(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(id): PathParams<String>,
    JsonBody(agreed): JsonBody<Agreed>,
) -> Answer<Json<NowLive>> {
    staff.needs(Role::Editor)?;
    let by = staff.by();
    let keep = KeepRequest {
        keep: agreed.keep,
        sunset: agreed.sunset,
        shim: agreed.shim,
    };
    let (fingerprint, acting) = (&agreed.fingerprint, staff.acting(&by));
    let live = drafts::approve(&admin.control, &id, fingerprint, keep, acting);
    Ok(Json(live.await?))
}

/// Discards a pending draft. Role: editor.
#[utoipa::path(post, path = "/v1/drafts/{id}/discard", params(("id" = String, Path, description = "the draft's id")),
    responses((status = 204), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem), (status = 409, body = AdminProblem)))]
pub(super) async fn discard(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(id): PathParams<String>,
) -> Answer<StatusCode> {
    staff.needs(Role::Editor)?;
    drafts::reject(&admin.control, &id, &staff.by()).await?;
    Ok(StatusCode::NO_CONTENT)
}
