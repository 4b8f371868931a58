//! Contracts: submit → draft with its report → publish, roll back, retire.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{FromRequestParts, State as Shared},
    http::{HeaderName, StatusCode, header, request::Parts},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};
use weir_contracts::{Contract, Problem, compiled_document, diff::diff, form, lint};
use weir_state::{DraftFilter, DraftHead, DraftRow, ListedDraft, VersionHead, VersionRow};

use super::{
    Admin, Answer, Ask, Refusal,
    problem::{Asked, At, Body},
    staff::Staff,
};
use crate::{
    control::impact::{Impact, Inputs, impact, inputs},
    control::{
        Uncompiled, UnservedFile,
        gate::{
            Approval, ChangeClass, DraftStatus, Held, Origin, Role, Submission, Verdict, revision,
        },
    },
};

/// What to do where no contract, or no draft, has a name.
const CONTRACTS: &str = "GET /v1/contracts and `weir contracts list` name those that there are";
const DRAFTS: &str = "GET /v1/drafts and `weir contracts list` name those that wait";
/// Drafts in one answer that no longer wait; those that wait are always in it.
const DRAFTS_MAX: u32 = 200;
/// The bound on a submission: a contract file as large as one may be, with what JSON escapes in it.
pub(super) const SUBMITTED_MAX_BYTES: usize = 2 * form::FILE_BYTES_MAX;
/// The schemas of one contract's tools.
pub(super) const PLANNED_MAX_BYTES: usize = 16 << 20;
const CHANGED: &str = "the contract has changed since it was read: read it again";

#[derive(Serialize, ToSchema)]
pub(super) struct ContractsView {
    /// All that ever were.
    contracts: Vec<ContractView>,
    /// What is refused as it stands; what was published before is served on.
    refused: Vec<RefusedFile>,
    /// Contract files whose source cannot be described yet; they are tried again.
    waiting: Vec<WaitingFile>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct RefusedFile {
    /// `contract` (a contract file or its lock), `version` (a published one), `plugin`, `connection` or `upstream`.
    kind: &'static str,
    /// The file, or the name of the connection or the upstream.
    file: String,
    /// Every problem: `{file, place, message, hint?}`.
    #[schema(value_type = Vec<Object>)]
    problems: Vec<Problem>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct WaitingFile {
    file: String,
    reason: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ContractView {
    name: String,
    /// `file`, `api`, `code` or `upstream`: where it is changed.
    origin: &'static str,
    /// The contracts folder that owns it, where it comes from a file.
    owner: Option<String>,
    /// Null: retired, or never published.
    version: Option<String>,
    /// Moves with every change of what is live, and of its text. Null: nothing of the contract was ever published.
    revision: Option<i64>,
    /// The version that someone went back from. Its file, plugin or server still says it, which is not taken over before it
    /// says something else.
    rolled_back: Option<String>,
    tools: Vec<String>,
    /// Drafts that wait for someone.
    pending: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ContractDetail {
    name: String,
    /// Null: retired.
    version: Option<String>,
    /// The compiled document, as `weir compile` prints it.
    #[schema(value_type = Option<Object>)]
    document: Option<Value>,
    /// The form it was compiled from.
    source: Option<String>,
    /// Oldest first.
    versions: Vec<VersionView>,
    /// Those that wait, then the newest 200 that no longer do.
    drafts: Vec<DraftView>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct VersionView {
    version: String,
    /// How it differed from the one before; `first` where there was none.
    class: ChangeClass,
    fingerprint: String,
    published_ms: i64,
    published_by: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct VersionDetail {
    #[serde(flatten)]
    view: VersionView,
    /// The compiled document, as `weir compile` prints it.
    #[schema(value_type = Object)]
    document: Value,
    /// All that was published, as in a lock file: the tools with what agents do not see of them.
    #[schema(value_type = Object)]
    artifact: Value,
    source: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct DraftView {
    id: String,
    contract: String,
    /// The live version it was compared with.
    base: Option<String>,
    /// What it would become; null: the contract would be retired.
    version: Option<String>,
    class: ChangeClass,
    fingerprint: String,
    /// Who may publish it; null where it is decided.
    needs: Option<Role>,
    status: DraftStatus,
    created_ms: i64,
    created_by: String,
    decided_ms: Option<i64>,
    decided_by: Option<String>,
    /// The difference: `{class, breaking, fingerprint, items}`.
    #[schema(value_type = Object)]
    report: Value,
    /// Which agents' calls of the past it would have refused; null where no calls are kept, and in lists.
    impact: Option<Impact>,
    /// The compiled document that it would become, as `weir compile` prints it; null in lists, and where the contract would
    /// be retired.
    #[schema(value_type = Option<Object>)]
    document: Option<Value>,
    /// The findings of lint that the live version does not have; null in lists.
    #[schema(value_type = Option<Vec<Object>>)]
    findings: Option<Value>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewContract {
    /// The contract file, YAML or JSON.
    #[schema(min_length = 1, max_length = 16777216)]
    source: String,
    /// True: wait for someone even where it could go live at once.
    #[serde(default)]
    hold: bool,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Submitted {
    contract: String,
    /// `unchanged`, `published` or `held`.
    verdict: &'static str,
    /// Now live.
    version: Option<String>,
    /// The draft that waits.
    draft: Option<String>,
    /// Who may publish it.
    needs: Option<Role>,
    fingerprint: Option<String>,
    /// The difference: `{class, breaking, fingerprint, items}`.
    #[schema(value_type = Option<Object>)]
    report: Option<Value>,
    /// Which agents' calls of the past it would refuse; null where no calls are kept.
    impact: Option<Impact>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Agreed {
    /// Of the difference that was looked at; another one is refused.
    fingerprint: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Back {
    /// An earlier version.
    to: String,
    /// Of the difference between what is live and `to`; see the diff route.
    fingerprint: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Between {
    /// A version; by default the live one, or the last one that was live of a contract that was retired.
    from: Option<String>,
    /// A version; by default the live one, or the last one that was live of a contract that was retired.
    to: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    /// Of one contract alone.
    contract: Option<String>,
    /// Of one status alone.
    status: Option<DraftStatus>,
    /// The id of a draft: those that no longer wait and are older than it.
    before: Option<String>,
}

/// What a contract's tools would be.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Planned {
    /// The input schema of each tool, by name; a tool that is left out would be gone.
    #[schema(value_type = HashMap<String, Object>)]
    tools: Inputs,
}

#[derive(Serialize, ToSchema)]
pub(super) struct PlannedImpact {
    /// Null where no calls are kept.
    impact: Option<Impact>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct NowLive {
    contract: String,
    /// Null: retired.
    version: Option<String>,
}

/// All contracts that ever were, and what is refused or waits. Role: viewer.
#[utoipa::path(get, path = "/v1/contracts", responses(
    (status = 200, body = ContractsView), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn list(Shared(admin): Ask, staff: Staff) -> Answer<Json<ContractsView>> {
    staff.needs(Role::Viewer)?;
    let gate = admin.control.gate();
    gate.refresh().await?;
    let live = gate.live();
    let mut pending: BTreeMap<String, Vec<DraftHead>> = BTreeMap::new();
    for draft in admin.state.pending(None).await? {
        pending
            .entry(draft.contract.clone())
            .or_default()
            .push(draft);
    }
    let ids = |drafts: Vec<DraftHead>| drafts.into_iter().map(|draft| draft.id).collect();
    let heads = admin.state.heads().await?.into_iter();
    let mut views: Vec<ContractView> = heads
        .map(|head| ContractView {
            tools: live
                .get(&head.name)
                .map_or_else(Vec::new, |live| tools(&live.contract)),
            pending: ids(pending.remove(&head.name).unwrap_or_default()),
            origin: head.origin.as_str(),
            owner: head.owner,
            name: head.name,
            version: head.live,
            revision: Some(head.revision),
            rolled_back: head.rolled_back,
        })
        .collect();
    views.extend(pending.into_iter().map(|(name, drafts)| ContractView {
        name,
        origin: drafts[0].origin.as_str(),
        owner: drafts[0].owner.clone(),
        version: None,
        revision: None,
        rolled_back: None,
        tools: Vec::new(),
        pending: ids(drafts),
    }));
    views.sort_by(|a, b| a.name.cmp(&b.name));
    let refused = admin
        .control
        .refused()
        .into_iter()
        .map(|refused| RefusedFile {
            kind: refused.kind.word(),
            file: refused.name,
            problems: refused.problems,
        });
    let waiting = admin.control.unserved().into_iter().filter_map(
        |UnservedFile { file, waiting, .. }| {
            Some(WaitingFile {
                file: file.display().to_string(),
                reason: waiting?,
            })
        },
    );
    Ok(Json(ContractsView {
        contracts: views,
        refused: refused.collect(),
        waiting: waiting.collect(),
    }))
}

/// Compiles a contract, compares it with the live version and publishes or holds it. Role: editor.
#[utoipa::path(post, path = "/v1/contracts", request_body = NewContract,
    params(("If-Match" = Option<String>, Header, description = "the ETag of the contract as it was read")), responses(
    (status = 200, body = Submitted, description = "unchanged, or published"),
    (status = 202, body = Submitted, description = "held: someone has to agree"),
    (status = 400, body = Refusal), (status = 401, body = Refusal), (status = 403, body = Refusal),
    (status = 409, body = Refusal), (status = 412, body = Refusal, description = "it has changed since it was read"),
    (status = 413, body = Refusal), (status = 415, body = Refusal),
    (status = 422, body = Refusal, description = "refused, with every problem"), (status = 503, body = Refusal)))]
pub(super) async fn submit(
    Shared(admin): Ask,
    staff: Staff,
    seen: IfMatch,
    Body(new): Body<NewContract>,
) -> Answer<(StatusCode, Json<Submitted>)> {
    staff.needs(Role::Editor)?;
    let refused = |problems: &[Problem]| Refusal::problems("the contract is refused", problems);
    let source = form::read("source", &new.source).map_err(|problems| refused(&problems))?;
    let Some(name) = source.contract.clone() else {
        return Err(Refusal::invalid(
            "a form without a contract compiles, but there is nothing to serve",
        ));
    };
    let contract =
        admin
            .control
            .compiler()
            .compile(&source)
            .await
            .map_err(|error| match error {
                Uncompiled::Refused(problems) => refused(&problems),
                Uncompiled::Waiting(away) => Refusal::unavailable(away.why),
            })?;
    let by = staff.by();
    let on = seen.holds(&admin, &name).await?;
    let submission = Submission {
        contract,
        source: &new.source,
        origin: Origin::Api,
        owner: None,
        by: &by,
        hold: new.hold,
        on,
    };
    Ok(match admin.control.publisher().submit(submission).await? {
        Verdict::Unchanged { version } => {
            let version = Some(version.to_string());
            (
                StatusCode::OK,
                Json(Submitted {
                    verdict: "unchanged",
                    version,
                    ..Submitted::of(name)
                }),
            )
        }
        Verdict::Published { version, diff } => {
            let (version, report) = (Some(version.to_string()), diff.as_ref().map(value));
            (
                StatusCode::OK,
                Json(Submitted {
                    verdict: "published",
                    version,
                    report,
                    ..Submitted::of(name)
                }),
            )
        }
        Verdict::Held(held) => (
            StatusCode::ACCEPTED,
            Json(Submitted::held(&admin, held).await?),
        ),
    })
}

impl Submitted {
    fn of(contract: String) -> Self {
        Self {
            contract,
            verdict: "",
            version: None,
            draft: None,
            needs: None,
            fingerprint: None,
            report: None,
            impact: None,
        }
    }

    async fn held(admin: &Admin, held: Held) -> Answer<Self> {
        let impact = match admin.state.draft(&held.draft).await? {
            Some(draft) => of_draft(admin, &draft).await?,
            None => None,
        };
        Ok(Self {
            impact,
            verdict: "held",
            draft: Some(held.draft),
            needs: Some(held.needs),
            fingerprint: Some(held.fingerprint),
            report: held.diff.as_ref().map(value),
            ..Self::of(held.contract)
        })
    }
}

/// One contract with its history. Role: viewer.
#[utoipa::path(get, path = "/v1/contracts/{name}",
    params(("name" = String, Path, description = "the contract's name")),
    responses((status = 200, body = ContractDetail,
            headers(("ETag" = String, description = "for `If-Match` of what changes it"))),
        (status = 401, body = Refusal), (status = 403, body = Refusal), (status = 404, body = Refusal)))]
pub(super) async fn show(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
) -> Answer<([(HeaderName, String); 1], Json<ContractDetail>)> {
    staff.needs(Role::Viewer)?;
    let gate = admin.control.gate();
    gate.refresh().await?;
    let versions = admin.state.versions(&name).await?;
    let of = DraftFilter {
        contract: Some(&name),
        ..DraftFilter::default()
    };
    let drafts = admin.state.drafts(of, DRAFTS_MAX).await?;
    let live = gate.live().get(&name).cloned();
    if versions.is_empty() && drafts.is_empty() {
        return Err(Refusal::not_found("contract", &name).see(CONTRACTS));
    }
    let heads = || drafts.iter().map(|draft| &draft.head);
    let newest = heads().max_by_key(|head| (head.created_ms, &head.id));
    let pending = heads().filter(|head| head.status == DraftStatus::Pending);
    let tag = tag(
        revision(live.as_ref()),
        newest.map(|head| head.id.as_str()),
        pending,
    );
    let detail = ContractDetail {
        name,
        version: live.as_ref().map(|live| live.contract.version.to_string()),
        document: live.as_ref().map(|live| compiled_document(&live.contract)),
        source: live.map(|live| live.source.clone()),
        versions: versions.into_iter().map(VersionView::from).collect(),
        drafts: drafts.into_iter().map(DraftView::from).collect(),
    };
    Ok(([(header::ETAG, tag)], Json(detail)))
}

/// Returns a tag that differs for every other answer about one contract: what is live moves the revision, each draft has an
/// id of its own, and one that no longer waits never changes.
fn tag<'a>(
    revision: i64,
    newest: Option<&str>,
    pending: impl Iterator<Item = &'a DraftHead>,
) -> String {
    let pending: Vec<&str> = pending.map(|head| head.id.as_str()).collect();
    let seen = serde_json::json!([revision, newest, pending]);
    format!(
        "\"{}\"",
        hex::encode(&Sha256::digest(seen.to_string())[..16])
    )
}

/// The condition of a change: the contract still is what was read.
pub(super) struct IfMatch(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
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
    /// Returns the revision that the change may rest on; `None` stands for any.
    async fn holds(&self, admin: &Admin, name: &str) -> Answer<Option<i64>> {
        let Some(tags) = &self.0 else { return Ok(None) };
        let changed = || Refusal::new(StatusCode::PRECONDITION_FAILED, CHANGED);
        let gate = admin.control.gate();
        gate.refresh().await?;
        // The revision is taken first: the gate refuses what moves between the two.
        let revision = revision(gate.live().get(name));
        let newest = admin.state.newest_draft(name).await?;
        if newest.is_none() && !gate.was_published(name).await? {
            return Err(changed());
        }
        let now = tag(
            revision,
            newest.as_deref(),
            admin.state.pending(Some(name)).await?.iter(),
        );
        let is_now = |tag: &str| tag.trim() == "*" || tag.trim() == now;
        if tags.split(',').any(is_now) {
            Ok(Some(revision))
        } else {
            Err(changed())
        }
    }
}

/// One version. Role: viewer.
#[utoipa::path(get, path = "/v1/contracts/{name}/versions/{version}",
    params(("name" = String, Path, description = "the contract's name"),
        ("version" = String, Path, description = "such as 1.2.0")),
    responses((status = 200, body = VersionDetail), (status = 401, body = Refusal), (status = 403, body = Refusal),
        (status = 404, body = Refusal)))]
pub(super) async fn version(
    Shared(admin): Ask,
    staff: Staff,
    At((name, version)): At<(String, String)>,
) -> Answer<Json<VersionDetail>> {
    staff.needs(Role::Viewer)?;
    let row = find(&admin, &name, &version).await?;
    let contract = read(&row)?;
    let (document, artifact) = (compiled_document(&contract), contract.to_artifact());
    let VersionRow {
        version,
        source,
        class,
        fingerprint,
        published_ms,
        published_by,
        ..
    } = row;
    let view = VersionView {
        version,
        class,
        fingerprint,
        published_ms,
        published_by,
    };
    Ok(Json(VersionDetail {
        view,
        document,
        artifact,
        source,
    }))
}

/// Finds one version.
async fn find(admin: &Admin, name: &str, version: &str) -> Answer<VersionRow> {
    let row = admin.state.version(name, version).await?;
    row.ok_or_else(|| {
        let next = format!(
            "GET /v1/contracts/{name} and `weir contracts show {name}` show those that there are"
        );
        Refusal::not_found("version", &format!("{name}@{version}")).see(&next)
    })
}

/// The difference between two versions, and, where calls are kept, which of them the second would have refused
/// (`impact`). Role: viewer.
#[utoipa::path(get, path = "/v1/contracts/{name}/diff",
    params(("name" = String, Path, description = "the contract's name"), Between),
    responses((status = 200, body = Object), (status = 400, body = Refusal), (status = 401, body = Refusal),
        (status = 403, body = Refusal), (status = 404, body = Refusal)))]
pub(super) async fn compare(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
    Asked(between): Asked<Between>,
) -> Answer<Json<Value>> {
    staff.needs(Role::Viewer)?;
    let head = admin.state.head(&name).await?;
    // A contract that was retired is compared with what was served last.
    let served = head.and_then(|head| head.live.or(head.last));
    let side = async |asked: Option<String>| {
        let version = asked
            .or_else(|| served.clone())
            .ok_or_else(|| Refusal::not_found("live contract", &name).see(CONTRACTS))?;
        read(&find(&admin, &name, &version).await?)
    };
    let (from, to) = (side(between.from).await?, side(between.to).await?);
    let mut report = value(&diff(&from, &to));
    if let Some(impact) = impact(&admin.gateway, &admin.state, &name, &inputs(Some(&to))).await? {
        report["impact"] = value(&impact);
    }
    Ok(Json(report))
}

/// Which agents' calls of the past other tools would refuse; nothing is stored. Role: viewer.
#[utoipa::path(post, path = "/v1/contracts/{name}/impact", request_body = Planned,
    params(("name" = String, Path, description = "the contract's name")),
    responses((status = 200, body = PlannedImpact), (status = 400, body = Refusal), (status = 401, body = Refusal),
        (status = 403, body = Refusal), (status = 404, body = Refusal), (status = 413, body = Refusal),
        (status = 415, body = Refusal), (status = 422, body = Refusal)))]
pub(super) async fn plan(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
    Body(planned): Body<Planned>,
) -> Answer<Json<PlannedImpact>> {
    staff.needs(Role::Viewer)?;
    let gate = admin.control.gate();
    gate.refresh().await?;
    if !gate.live().contains_key(&name) {
        return Err(Refusal::not_found("live contract", &name).see(CONTRACTS));
    }
    let impact = impact(&admin.gateway, &admin.state, &name, &planned.tools).await?;
    Ok(Json(PlannedImpact { impact }))
}

/// Makes an earlier version live again; the fingerprint is that of the difference from live to it. Role: editor, and
/// operator where it breaks.
#[utoipa::path(post, path = "/v1/contracts/{name}/rollback", request_body = Back,
    params(("name" = String, Path, description = "the contract's name"),
        ("If-Match" = Option<String>, Header, description = "the ETag of the contract as it was read")),
    responses((status = 200, body = NowLive), (status = 400, body = Refusal), (status = 401, body = Refusal),
        (status = 403, body = Refusal), (status = 404, body = Refusal), (status = 409, body = Refusal),
        (status = 412, body = Refusal, description = "it has changed since it was read"),
        (status = 413, body = Refusal), (status = 415, body = Refusal), (status = 422, body = Refusal)))]
pub(super) async fn roll_back(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
    seen: IfMatch,
    Body(back): Body<Back>,
) -> Answer<Json<NowLive>> {
    staff.needs(Role::Editor)?;
    let on = seen.holds(&admin, &name).await?;
    find(&admin, &name, &back.to).await?;
    let approval = Approval {
        by: &staff.by(),
        role: staff.role,
        fingerprint: &back.fingerprint,
    };
    admin
        .control
        .publisher()
        .roll_back(&name, &back.to, &approval, on)
        .await?;
    Ok(Json(NowLive {
        contract: name,
        version: Some(back.to),
    }))
}

/// Asks for a contract to be retired: a draft that an operator publishes. Role: editor.
#[utoipa::path(post, path = "/v1/contracts/{name}/retire",
    params(("name" = String, Path, description = "the contract's name"),
        ("If-Match" = Option<String>, Header, description = "the ETag of the contract as it was read")),
    responses((status = 202, body = Submitted), (status = 401, body = Refusal), (status = 403, body = Refusal),
        (status = 404, body = Refusal),
        (status = 412, body = Refusal, description = "it has changed since it was read")))]
pub(super) async fn retire(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
    seen: IfMatch,
) -> Answer<(StatusCode, Json<Submitted>)> {
    staff.needs(Role::Editor)?;
    let on = seen.holds(&admin, &name).await?;
    let gate = admin.control.gate();
    gate.refresh().await?;
    let held = gate.ask_to_retire(&name, &staff.by(), on).await;
    let held = held.map_err(|error| Refusal::of(error, &name, CONTRACTS))?;
    Ok((
        StatusCode::ACCEPTED,
        Json(Submitted::held(&admin, held).await?),
    ))
}

/// Drafts: all that wait, then the newest 200 that no longer do, newest first. Role: viewer.
#[utoipa::path(get, path = "/v1/drafts", params(Of), responses((status = 200, body = Vec<DraftView>),
    (status = 400, body = Refusal), (status = 401, body = Refusal), (status = 403, body = Refusal),
    (status = 404, body = Refusal, description = "there is no draft `before`, or none any more")))]
pub(super) async fn drafts(
    Shared(admin): Ask,
    staff: Staff,
    Asked(of): Asked<Of>,
) -> Answer<Json<Vec<DraftView>>> {
    staff.needs(Role::Viewer)?;
    let of = DraftFilter {
        contract: of.contract.as_deref(),
        status: of.status,
        before: of.before.as_deref(),
    };
    let drafts = admin.state.drafts(of, DRAFTS_MAX).await?;
    Ok(Json(drafts.into_iter().map(DraftView::from).collect()))
}

/// One draft. Role: viewer.
#[utoipa::path(get, path = "/v1/drafts/{id}", params(("id" = String, Path, description = "the draft's id")), responses(
    (status = 200, body = DraftView), (status = 401, body = Refusal), (status = 403, body = Refusal),
    (status = 404, body = Refusal)))]
pub(super) async fn draft(
    Shared(admin): Ask,
    staff: Staff,
    At(id): At<String>,
) -> Answer<Json<DraftView>> {
    staff.needs(Role::Viewer)?;
    let draft = admin
        .state
        .draft(&id)
        .await?
        .ok_or_else(|| Refusal::not_found("draft", &id).see(DRAFTS))?;
    let new = draft.artifact.as_deref().map(contract).transpose()?;
    let DraftRow { head, report, .. } = draft;
    let impact = impact(
        &admin.gateway,
        &admin.state,
        &head.contract,
        &inputs(new.as_ref()),
    )
    .await?;
    let gate = admin.control.gate();
    gate.refresh().await?;
    let live = gate.live().get(&head.contract).cloned();
    let known = live
        .map(|live| lint::lint_contract(&live.contract))
        .unwrap_or_default();
    let found = new.as_ref().map(lint::lint_contract).unwrap_or_default();
    let findings: Vec<_> = found
        .into_iter()
        .filter(|finding| !known.contains(finding))
        .collect();
    Ok(Json(DraftView {
        impact,
        document: new.as_ref().map(compiled_document),
        findings: Some(value(&findings)),
        ..ListedDraft { head, report }.into()
    }))
}

/// Publishes a draft exactly as it was reported. Role: editor, and operator where it breaks.
#[utoipa::path(post, path = "/v1/drafts/{id}/publish", request_body = Agreed,
    params(("id" = String, Path, description = "the draft's id")),
    responses((status = 200, body = NowLive), (status = 400, body = Refusal), (status = 401, body = Refusal),
        (status = 403, body = Refusal), (status = 404, body = Refusal), (status = 409, body = Refusal),
        (status = 413, body = Refusal), (status = 415, body = Refusal), (status = 422, body = Refusal)))]
pub(super) async fn publish(
    Shared(admin): Ask,
    staff: Staff,
    At(id): At<String>,
    Body(agreed): Body<Agreed>,
) -> Answer<Json<NowLive>> {
    staff.needs(Role::Editor)?;
    let approval = Approval {
        by: &staff.by(),
        role: staff.role,
        fingerprint: &agreed.fingerprint,
    };
    let published = admin.control.publisher().approve(&id, &approval).await;
    let (draft, version) = published.map_err(|error| Refusal::of(error, &id, DRAFTS))?;
    Ok(Json(NowLive {
        contract: draft.contract,
        version: version.map(|version| version.to_string()),
    }))
}

/// Discards a pending draft. Role: editor.
#[utoipa::path(post, path = "/v1/drafts/{id}/discard", params(("id" = String, Path, description = "the draft's id")),
    responses((status = 204), (status = 401, body = Refusal), (status = 403, body = Refusal),
        (status = 404, body = Refusal), (status = 409, body = Refusal)))]
pub(super) async fn discard(
    Shared(admin): Ask,
    staff: Staff,
    At(id): At<String>,
) -> Answer<StatusCode> {
    staff.needs(Role::Editor)?;
    let discarded = admin.control.gate().discard(&id, &staff.by()).await;
    discarded.map_err(|error| Refusal::of(error, &id, DRAFTS))?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<VersionHead> for VersionView {
    fn from(head: VersionHead) -> Self {
        let VersionHead {
            version,
            class,
            fingerprint,
            published_ms,
            published_by,
        } = head;
        Self {
            version,
            class,
            fingerprint,
            published_ms,
            published_by,
        }
    }
}

impl From<ListedDraft> for DraftView {
    fn from(ListedDraft { head, report }: ListedDraft) -> Self {
        Self {
            needs: (head.status == DraftStatus::Pending).then(|| Role::for_class(head.class)),
            report: serde_json::from_str(&report).unwrap_or_default(),
            impact: None,
            document: None,
            findings: None,
            id: head.id,
            contract: head.contract,
            base: head.base,
            version: head.version,
            class: head.class,
            fingerprint: head.fingerprint,
            status: head.status,
            created_ms: head.created_ms,
            created_by: head.created_by,
            decided_ms: head.decided_ms,
            decided_by: head.decided_by,
        }
    }
}

/// Returns the impact of a draft that waits.
async fn of_draft(admin: &Admin, draft: &DraftRow) -> Answer<Option<Impact>> {
    let new = draft.artifact.as_deref().map(contract).transpose()?;
    Ok(impact(
        &admin.gateway,
        &admin.state,
        &draft.head.contract,
        &inputs(new.as_ref()),
    )
    .await?)
}

fn read(row: &VersionRow) -> Result<Contract, Refusal> {
    contract(&row.artifact)
}

fn contract(artifact: &str) -> Result<Contract, Refusal> {
    Contract::from_own_artifact(artifact)
        .map_err(|_| Refusal::unavailable("the stored version cannot be read"))
}

fn tools(contract: &Contract) -> Vec<String> {
    contract
        .tools
        .iter()
        .map(|tool| tool.name.clone())
        .collect()
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).expect("plain data")
}
