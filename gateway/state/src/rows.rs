//! The rows: what the state keeps, as plain data. Times are milliseconds since the Unix epoch.

use crate::words::{
    BuildKind, ChangeClass, ConnectKind, ContractOrigin, DraftStatus, JoinedRoles, PlanStatus,
    Role, SessionKind,
};

/// The source of a version, and for one from a file the contracts folder that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionSource<'a> {
    pub origin: ContractOrigin,
    pub owner: Option<&'a str>,
}

/// A contract, and which version of it is live.
#[derive(Clone, Debug)]
pub struct ContractRow {
    pub name: String,
    pub origin: ContractOrigin,
    /// The contracts folder that owns it; null if it does not come from a file, or is not claimed yet.
    pub owner: Option<String>,
    /// Null: retired.
    pub live: Option<String>,
    /// Moves with every change of `live` and of its text.
    pub revision: i64,
    /// The version that was live before the contract was retired.
    pub last: Option<String>,
    /// The version from which an admin went back, until its file changes.
    pub rolled_back: Option<String>,
}

/// The shape of a collection as it was described last. It counts only for this adapter and these settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedShape {
    pub contract: String,
    pub collection: String,
    pub adapter: String,
    /// JSON.
    pub settings: String,
    /// JSON.
    pub shape: String,
}

/// The live version of one contract.
#[derive(Clone, Debug)]
pub struct LiveRow {
    pub name: String,
    pub origin: ContractOrigin,
    pub owner: Option<String>,
    pub version: String,
    pub revision: i64,
    pub artifact: String,
    pub source: String,
}

/// A published version of a contract. Versions never change.
#[derive(Clone, Debug)]
pub struct VersionRow {
    pub contract: String,
    pub version: String,
    /// The compiled contract.
    pub artifact: String,
    /// The form it was compiled from.
    pub source: String,
    /// The class of its difference from the version before.
    pub class: ChangeClass,
    pub fingerprint: String,
    pub published_ms: i64,
    pub published_by: String,
}

/// A version without its texts.
#[derive(Clone, Debug)]
pub struct VersionHead {
    pub version: String,
    pub class: ChangeClass,
    pub fingerprint: String,
    pub published_ms: i64,
    pub published_by: String,
}

/// A draft without its texts.
#[derive(Clone, Debug)]
pub struct DraftHead {
    pub id: String,
    pub contract: String,
    /// The live version it was compared with; null if there was none.
    pub base: Option<String>,
    /// The version it would become; null where the contract would be retired.
    pub version: Option<String>,
    pub origin: ContractOrigin,
    pub owner: Option<String>,
    pub class: ChangeClass,
    pub fingerprint: String,
    pub status: DraftStatus,
    pub created_ms: i64,
    pub created_by: String,
    pub decided_ms: Option<i64>,
    pub decided_by: Option<String>,
}

/// A draft as lists show it.
#[derive(Clone, Debug)]
pub struct ListedDraft {
    pub head: DraftHead,
    /// The difference, JSON.
    pub report: String,
}

/// A change of a contract that waits for approval, with its texts.
#[derive(Clone, Debug)]
pub struct DraftRow {
    pub head: DraftHead,
    /// The compiled contract; null where the contract would be retired.
    pub artifact: Option<String>,
    pub source: String,
    /// The difference, JSON.
    pub report: String,
}

/// What a decision about a contract is based on.
#[derive(Clone, Debug)]
pub struct ContractBasis {
    /// The revision of the live version; 0 if there is none.
    pub revision: i64,
    /// `None` accepts any.
    pub newest_draft: Option<NewestDraft>,
}

/// The id of the newest draft of a contract, if it ever had one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestDraft(pub Option<String>);

impl From<i64> for ContractBasis {
    fn from(revision: i64) -> Self {
        Self {
            revision,
            newest_draft: None,
        }
    }
}

/// A draft to be added.
#[derive(Clone, Debug)]
pub struct NewDraft<'a> {
    /// Another basis refuses it, and `None` accepts any.
    pub on: Option<&'a ContractBasis>,
    pub id: &'a str,
    pub contract: &'a str,
    pub base: Option<&'a str>,
    pub version: Option<&'a str>,
    pub artifact: Option<&'a str>,
    pub source: &'a str,
    pub origin: ContractOrigin,
    pub owner: Option<&'a str>,
    pub class: ChangeClass,
    pub fingerprint: &'a str,
    pub report: &'a str,
    pub at_ms: i64,
    pub by: &'a str,
}

/// A filter of drafts. A part that is `None` accepts all.
#[derive(Clone, Copy, Debug, Default)]
pub struct DraftFilter<'a> {
    pub contract: Option<&'a str>,
    pub status: Option<DraftStatus>,
    /// The id of a draft: those that no longer wait and are older than it.
    pub before: Option<&'a str>,
}

/// Milliseconds are since the Unix epoch.
#[derive(Clone, Debug)]
pub struct KeyRow {
    pub id: String,
    pub secret_hash: Vec<u8>,
    pub agent: String,
    pub tenant: String,
    /// The access as JSON; null for every tool.
    pub access: Option<String>,
    /// The view that the key gets in place of everything; null if it gets everything.
    pub view: Option<String>,
    /// The limits as JSON; null for those that are configured.
    pub limits: Option<String>,
    pub created_ms: i64,
    pub created_by: String,
    pub expires_ms: Option<i64>,
    pub revoked_ms: Option<i64>,
    /// The number of its last change; the state gives it.
    pub change: i64,
}

/// An admin key.
#[derive(Clone, Debug)]
pub struct AdminRow {
    pub id: String,
    pub secret_hash: Vec<u8>,
    pub name: String,
    pub role: Role,
    /// Whether it decides about plans of writes in addition to what its role allows.
    pub approves: bool,
    pub created_ms: i64,
    pub created_by: String,
    pub revoked_ms: Option<i64>,
}

impl AdminRow {
    /// Returns the role of the key, joined with its right to approve if it has that.
    pub fn roles(&self) -> JoinedRoles {
        JoinedRoles {
            role: self.role,
            approves: self.approves,
        }
    }
}

/// A session of an admin, or a link that begins one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    pub id: String,
    pub secret_hash: Vec<u8>,
    /// The id of the admin key.
    pub admin: String,
    pub kind: SessionKind,
    pub created_ms: i64,
    pub expires_ms: i64,
    pub used_ms: i64,
}

/// Calls of a key that are added to those that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUseRow {
    /// The key's id.
    pub key: String,
    pub calls: i64,
    /// The time of the last one.
    pub last_ms: i64,
}

/// Calls of an agent on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCallsRow {
    pub tenant: String,
    pub agent: String,
    /// Days since 1970, UTC.
    pub day: i64,
    pub calls: i64,
}

/// The calls of an agent on a day, and in its month until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTotalsRow {
    pub tenant: String,
    pub agent: String,
    pub calls_day: i64,
    pub calls_month: i64,
}

/// The use of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUsage {
    /// The key's id.
    pub key: String,
    pub last_used_ms: i64,
    /// Calls of the last 24 hours, counted by whole hours.
    pub calls_24h: i64,
}

/// The number of an agent's calls whose arguments had the same profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRow {
    pub contract: String,
    pub tool: String,
    pub agent: String,
    /// JSON.
    pub profile: String,
    pub calls: i64,
}

/// The calls of an agent to a tool, over all days that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerRow {
    pub agent: String,
    pub tool: String,
    pub calls: i64,
    /// Days since 1970.
    pub last_day: i64,
}

/// The answer to a request of the admin API that came with an idempotency key.
#[derive(Clone, Debug)]
pub struct ReplyRow {
    pub admin: String,
    pub key: String,
    /// Digest of the request: a key that comes with another request is refused.
    pub request: String,
    pub status: i64,
    pub body: String,
    pub created_ms: i64,
}

/// The state of a request as it begins.
#[derive(Clone, Debug)]
pub enum IdempotencyState {
    /// The request is the first with its key: it runs, and ends with [`GatewayState::end_reply`](crate::GatewayState::end_reply).
    First,
    /// The first one has not ended, or its process was stopped; the digest of the request.
    Pending(String),
    Answered(ReplyRow),
}

/// A build of a plugin that may run without further approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedBuildRow {
    pub plugin: String,
    /// sha256, hex.
    pub digest: String,
    pub accepted_ms: i64,
    /// The admin that accepted it; null for a file that was in the plugins folder at a start.
    pub accepted_by: Option<String>,
    /// The number of its last change; the state gives it.
    pub change: i64,
}

/// A build that a published contract was made from. The state has its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptBuildRow {
    pub plugin: String,
    /// The digest of the tools that it defines.
    pub definitions: String,
    /// sha256, hex.
    pub digest: String,
    pub kind: BuildKind,
    /// Bytes.
    pub size: i64,
    pub used_ms: i64,
}

/// A build to be kept.
#[derive(Clone, Debug)]
pub struct NewBuild {
    pub plugin: String,
    pub definitions: String,
    pub digest: String,
    pub kind: BuildKind,
    pub bytes: Vec<u8>,
    pub signature: Option<String>,
    pub at_ms: i64,
}

/// An account of a caller at another server.
#[derive(Clone)]
pub struct AccountRow {
    /// No other account ever has it.
    pub number: i64,
    pub upstream: String,
    /// The owner, in a form that no other owner has.
    pub owner: String,
    /// The same for people.
    pub label: String,
    /// The address of the server that its tokens are for.
    pub server: String,
    pub issuer: String,
    pub sealed: Vec<u8>,
    /// Moves when its tokens do.
    pub version: i64,
    pub renewing_until_ms: i64,
    pub created_ms: i64,
    pub renewed_ms: i64,
}

/// A link that leads to a sign-in at another server, or a sign-in that has begun.
#[derive(Clone)]
pub struct ConnectRow {
    /// The hash of the secret that opens it.
    pub hash: Vec<u8>,
    pub kind: ConnectKind,
    pub upstream: String,
    pub owner: String,
    pub label: String,
    pub sealed: Vec<u8>,
    pub expires_ms: i64,
}

/// A process that shares a state in PostgreSQL with others, as it makes itself known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// The id, which is new with each start.
    pub id: String,
    /// The name of the machine.
    pub name: String,
    pub version: String,
    /// The formats of artifacts that it can read, with a comma between two.
    pub formats: String,
    /// The digest of its configuration.
    pub configuration: String,
    /// The time for which it serves the last known state without the database.
    pub stale_ms: i64,
}

/// A node as recorded in the database. Times are the database's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub id: String,
    pub name: String,
    pub version: String,
    pub formats: String,
    pub configuration: String,
    pub started_ms: i64,
    /// The end of its lease.
    pub lease_ms: i64,
    pub stale_ms: i64,
    /// The number of the last change that it has applied.
    pub seen: i64,
    /// The last upload of a plugin that it has applied.
    pub builds: i64,
    /// The time of this answer.
    pub now_ms: i64,
}

impl NodeRow {
    /// Returns `true` while its lease lasts.
    pub fn is_live(&self) -> bool {
        self.lease_ms > self.now_ms
    }

    /// Returns the formats of artifacts that it can read.
    pub fn read_formats(&self) -> impl Iterator<Item = u32> {
        self.formats
            .split(',')
            .filter_map(|format| format.parse().ok())
    }

    /// Returns `true` if it can read artifacts of a format.
    pub fn reads(&self, format: u32) -> bool {
        self.read_formats().any(|read| read == format)
    }

    /// Returns the time by which it has stopped, if it no longer reaches the database.
    pub fn stops_ms(&self) -> i64 {
        self.lease_ms.saturating_add(self.stale_ms)
    }
}

/// A version that is served in addition to the live one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRow {
    pub contract: String,
    pub major: i64,
    pub version: String,
    /// JSON; null: it keeps its own binding.
    pub shim: Option<String>,
    /// Null: until an operator ends it.
    pub sunset_ms: Option<i64>,
    pub kept_ms: i64,
    pub kept_by: String,
}

/// The major version of a contract that an agent keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPin {
    pub agent: String,
    pub contract: String,
    pub major: i64,
    pub created_ms: i64,
    pub created_by: String,
}

/// The settings that a client changed in its session, and whether it ended the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSessionRow {
    pub id: String,
    /// JSON.
    pub note: String,
    pub expires_ms: i64,
    /// The number of the change that it was written with.
    pub change: i64,
}

/// The last record of a chain of the audit trail, as its process stated it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHeadRow {
    pub chain: String,
    /// The name of the machine that writes the chain.
    pub node: String,
    pub segment: i64,
    pub seq: i64,
    pub hash: String,
    pub written_ms: i64,
}

/// A message for another node, or for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// The id of a node. `None`: it is for all.
    pub recipient: Option<String>,
    pub content: Vec<u8>,
}

/// A message between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    pub number: i64,
    /// The id of the node that sent it.
    pub sender: String,
    pub content: Vec<u8>,
}

/// A build of a plugin that was uploaded to one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadRow {
    /// Its name in the plugins folder.
    pub file: String,
    /// `None`: the file was taken away.
    pub digest: Option<String>,
    pub uploaded_by: String,
    /// The number of the change.
    pub change: i64,
}

/// A write that waits for a person, or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRow {
    pub id: String,
    /// The caller, in a form that no other caller has.
    pub caller: String,
    pub agent: String,
    pub tenant: String,
    /// The person to whom the caller's token was issued; null for the agent of a key.
    pub subject: Option<String>,
    /// `name@version`.
    pub contract: String,
    pub tool: String,
    /// Digest of what would be done: the same call has the same one.
    pub change: String,
    /// Digest of what a person agrees to.
    pub fingerprint: String,
    /// What would change; null once it has ended.
    pub sealed: Option<String>,
    pub status: PlanStatus,
    pub created_ms: i64,
    pub expires_ms: i64,
    pub decided_ms: Option<i64>,
    pub decided_by: Option<String>,
    /// Why it was rejected; of an approved one, that its call waits for the answer to its question.
    pub reason: Option<String>,
}

/// The result of adding a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedPlan {
    Added,
    /// One of the same caller for the same change waits already.
    Known(Box<PlanRow>),
    /// As many wait as may.
    Full {
        scope: PlanScope,
        max: i64,
    },
}

/// The owner of the counted plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanScope {
    Caller,
    Tenant,
    Gateway,
}

/// A decision about a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanDecision<'a> {
    pub status: PlanStatus,
    pub by: &'a str,
    pub reason: Option<&'a str>,
    pub at_ms: i64,
}

/// A write with an idempotency key: its caller, tool and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKey {
    /// The caller, in a form that no other one has.
    pub caller: String,
    pub tool: String,
    pub key: String,
}

/// The state of a write with a key as it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BegunCall {
    /// It is the first with its key: it runs, and ends with [`GatewayState::end_call`](crate::GatewayState::end_call).
    First,
    /// The first one has not ended.
    Running,
    /// It was made: its result, sealed, if that was kept.
    Done(Option<String>),
    /// Its outcome is unknown.
    Unknown,
    /// The key was used with other arguments.
    Other,
    /// Too many of the caller have not ended.
    Full,
}
