//! Contracts: list, show, versions, differences, submit, roll back, retire.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use weir_contracts::{CompiledContract, FileProblem, compiled_document, diff::diff, form};
use weir_state::{DraftFilter, DraftHead, VersionHead, VersionRow};
use weir_text::shorten;

use super::{
    ActingAdmin, FailureKind, OperationError, OperationResult,
    drafts::{DRAFTS_MAX, DraftView},
    error::NAME_MAX_CHARS,
    versions::{KeptView, beside},
};
use crate::control::{
    CompileFailure, ControlPlane, UnservedFile,
    gate::{
        ChangeClass, ContractBasis, ContractOrigin, DraftApproval, DraftStatus, HeldDraft, Role,
        Submission, Verdict, revision,
    },
    impact::{Impact, Inputs, impact, inputs},
};

/// The advice for an unknown contract or draft.
const CONTRACTS: &str = "GET /v1/contracts and `weir contracts list` list the contracts";

const CHANGED: &str = "the contract has changed since it was read: read it again";

/// All contracts, and the files that are not served.
#[derive(Serialize, ToSchema)]
pub struct ContractsView {
    /// All contracts, retired ones too.
    pub contracts: Vec<ContractView>,
    /// Files and contracts that are refused now; the versions published before are still served.
    pub refused: Vec<RefusedFile>,
    /// Contract files whose source cannot be described yet; they are tried again.
    pub waiting: Vec<WaitingFile>,
}

/// A contract file that was refused, with every problem of it.
#[derive(Serialize, ToSchema)]
pub struct RefusedFile {
    /// `contract` (a contract file or its lock), `version` (a published one), `plugin`, `connection` or `upstream`.
    pub kind: &'static str,
    /// The file, or the name of the connection or the upstream.
    pub file: String,
    /// Every problem: `{file, place, message, hint?}`.
    #[schema(value_type = Vec<Object>)]
    pub problems: Vec<FileProblem>,
}

/// A contract file that waits for its source.
#[derive(Serialize, ToSchema)]
pub struct WaitingFile {
    pub file: String,
    pub reason: String,
}

/// A contract in the list of all.
#[derive(Serialize, ToSchema)]
pub struct ContractView {
    pub name: String,
    /// `file`, `api`, `code` or `upstream`: where it is changed.
    pub origin: &'static str,
    /// The contracts folder that owns it, if it comes from a file.
    pub owner: Option<String>,
    /// Its file in that folder, if this process has seen it.
    pub file: Option<String>,
    /// Null: retired, or never published.
    pub version: Option<String>,
    /// Changes with the live version or its text. Null: the contract was never published.
    pub revision: Option<i64>,
    /// The version that an admin rolled back. Its file, plugin or server still has its text, which is ignored until it changes.
    pub rolled_back: Option<String>,
    pub tools: Vec<String>,
    /// The number of waiting drafts.
    pub pending: Vec<String>,
}

/// A contract with its versions and drafts.
#[derive(Serialize, ToSchema)]
pub struct ContractDetail {
    pub name: String,
    /// Null: retired.
    pub version: Option<String>,
    /// The compiled document, as `weir compile` prints it.
    #[schema(value_type = Option<Object>)]
    pub document: Option<Value>,
    /// The form it was compiled from.
    pub source: Option<String>,
    /// Oldest first.
    pub versions: Vec<VersionView>,
    /// Versions that are served in addition to the live one.
    pub kept: Vec<KeptView>,
    /// Waiting drafts, then the newest 200 of the others.
    pub drafts: Vec<DraftView>,
}

/// A version in the history of a contract.
#[derive(Serialize, ToSchema)]
pub struct VersionView {
    pub version: String,
    /// The class of the change since the version before; `first` if there was none.
    pub class: ChangeClass,
    pub fingerprint: String,
    pub published_ms: i64,
    pub published_by: String,
}

/// A version with its source and its document.
#[derive(Serialize, ToSchema)]
pub struct VersionDetail {
    #[serde(flatten)]
    pub view: VersionView,
    /// The compiled document, as `weir compile` prints it.
    #[schema(value_type = Object)]
    pub document: Value,
    /// Everything that was published, as in a lock file: the tools with the parts that agents do not see.
    #[schema(value_type = Object)]
    pub artifact: Value,
    pub source: String,
}

/// The gate's decision about a submission.
#[derive(Serialize, ToSchema)]
pub struct Submitted {
    pub contract: String,
    /// `unchanged`, `published` or `held`.
    pub verdict: &'static str,
    /// The version that is now live.
    pub version: Option<String>,
    /// The draft that waits.
    pub draft: Option<String>,
    /// The role that may publish it.
    pub needs: Option<Role>,
    pub fingerprint: Option<String>,
    /// The difference: `{class, breaking, fingerprint, items}`.
    #[schema(value_type = Option<Object>)]
    pub report: Option<Value>,
    /// The agents whose past calls it would refuse; null if no calls are kept.
    pub impact: Option<Impact>,
}

/// The past calls that a planned contract would have refused.
#[derive(Serialize, ToSchema)]
pub struct PlannedImpact {
    /// Null if no calls are kept.
    pub impact: Option<Impact>,
}

/// The version that is live now.
#[derive(Serialize, ToSchema)]
pub struct NowLive {
    pub contract: String,
    /// Null: retired.
    pub version: Option<String>,
    /// The versions that are served in addition to it.
    pub kept: Vec<KeptView>,
}

/// One contract, with the tag that a change of it may depend on.
pub struct ContractAsRead {
    pub tag: String,
    pub contract: ContractDetail,
}

/// Returns all contracts, retired ones too, and everything that is refused or waits.
pub async fn list(control: &ControlPlane) -> OperationResult<ContractsView> {
    let gate = control.gate();
    gate.refresh().await?;
    let live = gate.live();
    let mut pending: BTreeMap<String, Vec<DraftHead>> = BTreeMap::new();
    for draft in control.state().pending(None).await? {
        pending
            .entry(draft.contract.clone())
            .or_default()
            .push(draft);
    }
    let ids = |drafts: Vec<DraftHead>| drafts.into_iter().map(|draft| draft.id).collect();
    let files = control.contract_files();
    let file = |name: &str, origin: ContractOrigin| {
        let path = files.get(name).filter(|_| origin == ContractOrigin::File)?;
        Some(path.display().to_string())
    };
    let heads = control.state().heads().await?.into_iter();
    let mut views: Vec<ContractView> = heads
        .map(|head| ContractView {
            tools: live
                .get(&head.name)
                .map_or_else(Vec::new, |live| tools(&live.contract)),
            pending: ids(pending.remove(&head.name).unwrap_or_default()),
            origin: head.origin.as_str(),
            file: file(&head.name, head.origin),
            owner: head.owner,
            name: head.name,
            version: head.live,
            revision: Some(head.revision),
            rolled_back: head.rolled_back,
        })
        .collect();
    views.extend(pending.into_iter().map(|(name, drafts)| ContractView {
        file: file(&name, drafts[0].origin),
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
    let refused = control.refused().into_iter().map(|refused| RefusedFile {
        kind: refused.kind.word(),
        file: refused.name,
        problems: refused.problems,
    });
    let waiting =
        control
            .unserved()
            .into_iter()
            .filter_map(|UnservedFile { file, waiting, .. }| {
                Some(WaitingFile {
                    file: file.display().to_string(),
                    reason: waiting?,
                })
            });
    Ok(ContractsView {
        contracts: views,
        refused: refused.collect(),
        waiting: waiting.collect(),
    })
}

/// Returns one contract with its history.
pub async fn show(control: &ControlPlane, name: &str) -> OperationResult<ContractAsRead> {
    let gate = control.gate();
    gate.refresh().await?;
    let versions = control.state().versions(name).await?;
    let of = DraftFilter {
        contract: Some(name),
        ..DraftFilter::default()
    };
    let drafts = control.state().drafts(of, DRAFTS_MAX).await?;
    let live = gate.live().get(name).cloned();
    if versions.is_empty() && drafts.is_empty() {
        return Err(OperationError::not_found("contract", name).see(CONTRACTS));
    }
    let heads = || drafts.iter().map(|draft| &draft.head);
    let newest = heads().max_by_key(|head| (head.created_ms, &head.id));
    let pending = heads().filter(|head| head.status == DraftStatus::Pending);
    let tag = tag(
        revision(live.as_ref()),
        newest.map(|head| head.id.as_str()),
        pending,
    );
    let contract = ContractDetail {
        name: name.to_owned(),
        version: live.as_ref().map(|live| live.contract.version.to_string()),
        document: live.as_ref().map(|live| compiled_document(&live.contract)),
        kept: live.as_ref().map_or_else(Vec::new, |live| beside(live)),
        source: live.map(|live| live.source.clone()),
        versions: versions.into_iter().map(VersionView::from).collect(),
        drafts: drafts.into_iter().map(DraftView::from).collect(),
    };
    Ok(ContractAsRead { tag, contract })
}

/// Returns a tag that differs for every other answer about one contract: a live version changes the revision, each draft has its
/// own id, and one that no longer waits never changes.
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

/// Returns the basis that a change may depend on, if one of the tags is the current tag of the contract. `None` accepts
/// any.
async fn check_tags(
    control: &ControlPlane,
    name: &str,
    tags: Option<&str>,
) -> OperationResult<Option<ContractBasis>> {
    let Some(tags) = tags else { return Ok(None) };
    let changed = || OperationError::new(FailureKind::Outdated, CHANGED);
    let gate = control.gate();
    gate.refresh().await?;
    // The revision is read first: the gate refuses the change if the contract moves in between.
    let revision = revision(gate.live().get(name));
    let newest = control.state().newest_draft(name).await?;
    if newest.0.is_none() && !gate.was_published(name).await? {
        return Err(changed());
    }
    let now = tag(
        revision,
        newest.0.as_deref(),
        control.state().pending(Some(name)).await?.iter(),
    );
    let is_now = |tag: &str| tag.trim() == "*" || tag.trim() == now;
    if tags.split(',').any(is_now) {
        Ok(Some(ContractBasis {
            revision,
            newest_draft: Some(newest),
        }))
    } else {
        Err(changed())
    }
}

/// Compiles a contract, compares it with the live version, and publishes or holds it. `tags` are those that [`show`]
/// returned for the version that the change depends on; `None` accepts any.
pub async fn submit(
    control: &ControlPlane,
    text: &str,
    hold: bool,
    tags: Option<&str>,
    by: &str,
) -> OperationResult<Submitted> {
    let refused =
        |problems: Vec<FileProblem>| OperationError::problems("the contract is refused", problems);
    let source = form::read("source", text).map_err(refused)?;
    let Some(name) = source.contract.clone() else {
        return Err(OperationError::invalid(
            "a form without a contract compiles, but there is nothing to serve",
        ));
    };
    let contract = control
        .compiler()
        .compile(&source)
        .await
        .map_err(|error| match error {
            CompileFailure::Refused(problems) => refused(problems),
            CompileFailure::Waiting(away) => OperationError::unavailable(away.why),
        })?;
    let on = check_tags(control, &name, tags).await?;
    let submission = Submission {
        contract,
        source: text,
        origin: ContractOrigin::Api,
        owner: None,
        by,
        hold,
        on,
    };
    Ok(match control.publisher().submit(submission).await? {
        Verdict::Unchanged { version } => Submitted {
            verdict: "unchanged",
            version: Some(version.to_string()),
            ..Submitted::new(name)
        },
        Verdict::Published { version, diff } => Submitted {
            verdict: "published",
            version: Some(version.to_string()),
            report: diff.as_ref().map(value),
            ..Submitted::new(name)
        },
        Verdict::Held(held) => Submitted::held(control, held).await?,
    })
}

impl Submitted {
    fn new(contract: String) -> Self {
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

    /// Returns `true` if the draft waits.
    pub fn is_held(&self) -> bool {
        self.draft.is_some()
    }

    async fn held(control: &ControlPlane, held: HeldDraft) -> OperationResult<Self> {
        let impact = match control.state().draft(&held.draft).await? {
            Some(draft) => super::drafts::impact_of(control, &draft).await?,
            None => None,
        };
        Ok(Self {
            impact,
            verdict: "held",
            draft: Some(held.draft),
            needs: Some(held.needs),
            fingerprint: Some(held.fingerprint),
            report: held.diff.as_ref().map(value),
            ..Self::new(held.contract)
        })
    }
}

/// Returns one version.
pub async fn version(
    control: &ControlPlane,
    name: &str,
    version: &str,
) -> OperationResult<VersionDetail> {
    let row = find(control, name, version).await?;
    let contract = read_contract(&row.artifact)?;
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
    Ok(VersionDetail {
        view,
        document,
        artifact,
        source,
    })
}

/// Finds one version.
async fn find(control: &ControlPlane, name: &str, version: &str) -> OperationResult<VersionRow> {
    let row = control.state().version(name, version).await?;
    row.ok_or_else(|| {
        let shown = shorten(name, NAME_MAX_CHARS);
        let next = format!(
            "GET /v1/contracts/{shown} and `weir contracts show {shown}` list its versions"
        );
        OperationError::not_found("version", &format!("{name}@{version}")).see(&next)
    })
}

/// Returns the difference between two versions, and, if calls are kept, which of these the second would have refused (`impact`).
/// The default for either version is the live one, or the last live one of a retired contract. From that version, the difference
/// is the one whose fingerprint a rollback requires.
pub async fn compare(
    control: &ControlPlane,
    name: &str,
    from: Option<String>,
    to: Option<String>,
) -> OperationResult<Value> {
    let head = control.state().head(name).await?;
    // A retired contract is compared with its last version.
    let served = head.and_then(|head| head.live.or(head.last));
    let is_served = from.is_none() || from == served;
    let side = async |asked: Option<String>| {
        let version = asked
            .or_else(|| served.clone())
            .ok_or_else(|| OperationError::not_found("live contract", name).see(CONTRACTS))?;
        read_contract(&find(control, name, &version).await?.artifact)
    };
    let (from, to) = (side(from).await?, side(to).await?);
    let change = match is_served {
        true => control.gate().compare(&from, &to).await?,
        false => diff(&from, &to),
    };
    let mut report = value(&change);
    if let Some(impact) =
        impact(control.gateway(), control.state(), name, &inputs(Some(&to))).await?
    {
        report["impact"] = value(&impact);
    }
    Ok(report)
}

/// Returns the agents whose past calls would be refused if the contract had other tools; nothing is stored.
pub async fn plan(
    control: &ControlPlane,
    name: &str,
    tools: &Inputs,
) -> OperationResult<PlannedImpact> {
    let gate = control.gate();
    gate.refresh().await?;
    if !gate.live().contains_key(name) {
        return Err(OperationError::not_found("live contract", name).see(CONTRACTS));
    }
    let impact = impact(control.gateway(), control.state(), name, tools).await?;
    Ok(PlannedImpact { impact })
}

/// Makes an earlier version live again; the fingerprint is that of the difference from the live version to it.
pub async fn roll_back(
    control: &ControlPlane,
    name: &str,
    to: &str,
    fingerprint: &str,
    tags: Option<&str>,
    admin: ActingAdmin<'_>,
) -> OperationResult<NowLive> {
    let on = check_tags(control, name, tags).await?;
    find(control, name, to).await?;
    let approval = DraftApproval {
        by: admin.by,
        role: admin.role,
        fingerprint,
    };
    control
        .publisher()
        .roll_back(name, to, &approval, on.as_ref())
        .await?;
    let live = control.gate().live().get(name).cloned();
    Ok(NowLive {
        contract: name.to_owned(),
        version: Some(to.to_owned()),
        kept: live.map_or_else(Vec::new, |live| beside(&live)),
    })
}

/// Asks for a contract to be retired: a draft that an operator approves.
pub async fn retire(
    control: &ControlPlane,
    name: &str,
    tags: Option<&str>,
    by: &str,
) -> OperationResult<Submitted> {
    let on = check_tags(control, name, tags).await?;
    let gate = control.gate();
    gate.refresh().await?;
    let held = gate.ask_to_retire(name, by, on.as_ref()).await;
    let held = held.map_err(|error| OperationError::at_the_gate(error, name, CONTRACTS))?;
    Submitted::held(control, held).await
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

/// Reads a stored version.
pub(super) fn read_contract(artifact: &str) -> OperationResult<CompiledContract> {
    CompiledContract::from_own_artifact(artifact)
        .map_err(|_| OperationError::unavailable("the stored version cannot be read"))
}

fn tools(contract: &CompiledContract) -> Vec<String> {
    contract
        .tools
        .iter()
        .map(|tool| tool.name.clone())
        .collect()
}

pub(super) fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).expect("plain data")
}
