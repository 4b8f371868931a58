//! The audit trail of this state folder, all processes together.

use std::io;

use axum::{
    Json,
    body::Body as ResponseBody,
    extract::State as Shared,
    http::header,
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use weir_audit::{
    AuditFilter, CALL_OUTCOMES, RECORD_KINDS, RecordPlace, RecordProof, TrailReport, parse_time,
};

use super::{
    AdminProblem, Answer, Ask,
    problem::{JsonBody, PathParams, QueryParams, read_number},
    staff::AdminPrincipal,
};
use crate::control::{
    gate::Role,
    operations::audit::{self, CallTrail, ReceiptedRecord, RecordOrder},
};

/// Filters of records.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RecordFilter {
    /// RFC 3339, a date, or 90s, 15m, 2h, 7d ago; records of exactly that time are included.
    since: Option<String>,
    /// As `since`; records of exactly that time are excluded.
    until: Option<String>,
    /// call, intent, refused, admin or chain; several are separated by commas.
    kind: Option<String>,
    #[param(max_length = 400)]
    agent: Option<String>,
    #[param(max_length = 400)]
    tenant: Option<String>,
    #[param(max_length = 400)]
    tool: Option<String>,
    #[param(max_length = 400)]
    contract: Option<String>,
    /// ok, refused, failed, cancelled or unknown.
    #[param(max_length = 400)]
    outcome: Option<String>,
    #[param(max_length = 400)]
    call_id: Option<String>,
    /// A text that the written record contains, such as a digest of arguments.
    #[param(max_length = 400)]
    text: Option<String>,
}

/// One page of records.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RecordPage {
    #[serde(flatten)]
    #[param(ignore)]
    filter: RecordFilter,
    /// `time` and `receipt` of a record, separated by a comma: only records that precede it are returned.
    #[param(max_length = 400)]
    before: Option<String>,
    /// asc: oldest first, which is the default; desc: newest first.
    #[serde(default)]
    #[param(inline)]
    order: RecordOrder,
    /// The number of newest matching records, 1 to 1000; by default 100.
    #[serde(default, deserialize_with = "read_number")]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ProofRange {
    /// The receipt of a later record of the same chain, or of this one, that the proof is to reach. By default it reaches the next
    /// record that another chain names, or else the last of its chain.
    #[param(max_length = 400)]
    to: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Receipts {
    /// Receipts that callers kept, `chain:seq:hash`; at most 100.
    #[schema(max_items = 100)]
    receipts: Vec<String>,
}

impl RecordFilter {
    fn filter(self) -> Answer<AuditFilter> {
        Ok(AuditFilter {
            since: time("since", self.since)?,
            until: time("until", self.until)?,
            kinds: kinds(self.kind)?,
            agent: self.agent,
            tenant: self.tenant,
            tool: self.tool,
            contract: self.contract,
            outcome: outcome(self.outcome)?,
            call_id: self.call_id,
            text: self.text,
            ..AuditFilter::default()
        })
    }
}

fn time(name: &str, text: Option<String>) -> Answer<Option<weir_audit::Timestamp>> {
    let parsed = text.as_deref().map(parse_time).transpose();
    parsed.map_err(|error| AdminProblem::invalid(format!("`{name}`: {error}")))
}

fn outcome(text: Option<String>) -> Answer<Option<String>> {
    let is_known = |text: &String| CALL_OUTCOMES.contains(&text.as_str());
    if text.as_ref().is_none_or(is_known) {
        return Ok(text);
    }
    let known = CALL_OUTCOMES.join(", ");
    Err(AdminProblem::invalid(format!(
        "`outcome` must be one of {known}"
    )))
}

fn place(text: &str) -> Answer<RecordPlace> {
    text.parse()
        .map_err(|error| AdminProblem::invalid(format!("`before`: {error}")))
}

fn kinds(text: Option<String>) -> Answer<Vec<String>> {
    let kinds = text.as_deref().into_iter().flat_map(|text| text.split(','));
    let known = |kind: &str| match RECORD_KINDS.contains(&kind) {
        true => Ok(kind.to_owned()),
        false => Err(AdminProblem::invalid(format!(
            "`kind` must be some of {}, with commas between them",
            RECORD_KINDS.join(", ")
        ))),
    };
    kinds.map(known).collect()
}

/// The newest records that match, each with its receipt. Role: auditor.
#[utoipa::path(get, path = "/v1/audit", params(RecordFilter, RecordPage), responses(
    (status = 200, body = Vec<ReceiptedRecord>), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn query(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    QueryParams(page): QueryParams<RecordPage>,
) -> Answer<Json<Vec<ReceiptedRecord>>> {
    staff.needs(Role::Auditor)?;
    let mut filter = page.filter.filter()?;
    filter.before = page.before.as_deref().map(place).transpose()?;
    let records = audit::query(&admin.control, filter, page.limit, page.order);
    Ok(Json(records.await?))
}

/// The records of one call, each with its receipt. Role: auditor.
#[utoipa::path(get, path = "/v1/audit/{call_id}",
    params(("call_id" = String, Path, description = "the call's id, as errors, log lines and records have it")),
    responses((status = 200, body = CallTrail), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem), (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn show_call(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(call_id): PathParams<String>,
) -> Answer<Json<CallTrail>> {
    staff.needs(Role::Auditor)?;
    Ok(Json(audit::show_call(&admin.control, &call_id).await?))
}

/// Proof of one record, for a file that `weir audit verify --file` checks without the trail: its line, and the lines that link it
/// to a later record that is known elsewhere. Role: auditor.
#[utoipa::path(get, path = "/v1/audit/{call_id}/proof",
    params(ProofRange, ("call_id" = String, Path, description = "the call's id, of which the end is proven; or `chain:seq` of a record")),
    responses((status = 200, body = RecordProof), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
        (status = 404, body = AdminProblem), (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn prove(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    PathParams(subject): PathParams<String>,
    QueryParams(range): QueryParams<ProofRange>,
) -> Answer<Json<RecordProof>> {
    staff.needs(Role::Auditor)?;
    let proof = audit::prove(&admin.control, &subject, range.to.as_deref());
    Ok(Json(proof.await?))
}

/// Whether any record was changed, deleted, moved or cut. Role: auditor.
#[utoipa::path(get, path = "/v1/audit/verify", responses(
    (status = 200, body = TrailReport), (status = 401, body = AdminProblem), (status = 403, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn verify(Shared(admin): Ask, staff: AdminPrincipal) -> Answer<Json<TrailReport>> {
    staff.needs(Role::Auditor)?;
    Ok(Json(audit::verify(&admin.control, &[]).await?))
}

/// The same, and for each receipt whether its record exists, with the record. Role: auditor.
#[utoipa::path(post, path = "/v1/audit/verify", request_body = Receipts, responses(
    (status = 200, body = TrailReport), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 413, body = AdminProblem), (status = 415, body = AdminProblem),
    (status = 422, body = AdminProblem), (status = 503, body = AdminProblem)))]
pub(super) async fn verify_receipts(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    JsonBody(wanted): JsonBody<Receipts>,
) -> Answer<Json<TrailReport>> {
    staff.needs(Role::Auditor)?;
    Ok(Json(audit::verify(&admin.control, &wanted.receipts).await?))
}

/// Streams all matching records as JSON lines, as they were written, oldest first. A broken stream ends the connection, so that a
/// part is not mistaken for the whole. Role: auditor.
#[utoipa::path(get, path = "/v1/audit/export", params(RecordFilter), responses(
    (status = 200, content_type = "application/jsonl", body = String), (status = 400, body = AdminProblem),
    (status = 401, body = AdminProblem), (status = 403, body = AdminProblem), (status = 422, body = AdminProblem),
    (status = 503, body = AdminProblem)))]
pub(super) async fn export(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    QueryParams(wanted): QueryParams<RecordFilter>,
) -> Answer<Response> {
    staff.needs(Role::Auditor)?;
    let parts = audit::export(&admin.control, wanted.filter()?)?;
    let begun = Some((parts, admin.ending.clone()));
    let whole = futures::stream::unfold(begun, async |left| {
        let (mut parts, ending) = left?;
        let part = tokio::select! {
            part = parts.recv() => part?,
            () = ending.cancelled() => Err(io::Error::other("the gateway ends")),
        };
        let left = part.is_ok().then_some((parts, ending));
        Some((part, left))
    });
    let disposition = "attachment; filename=\"audit.jsonl\"";
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl"),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, ResponseBody::from_stream(whole)).into_response())
}
