//! Defines what is recorded. The gateway fills these in; bounds and redaction of lengths are here, and secrets never
//! get this far.

use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};
use sha2::Sha256;
use weir_text::shorten;

/// Names and ids longer than this many characters are cut, and end in `…`.
const NAME_MAX_CHARS: usize = 256;
const TEXT_MAX_CHARS: usize = 1024;
/// A value recorded in clear whose JSON is longer is replaced by a note of its length.
const CLEAR_VALUE_MAX_BYTES: usize = 1024;
const CLEAR_FIELDS_MAX: usize = 32;

/// The key for digests of arguments. Each installation has its own: an amount or a name could be guessed from a plain
/// digest by trying them all.
#[derive(Clone)]
pub struct ArgumentsKey(Hmac<Sha256>);

impl ArgumentsKey {
    /// Takes the key of the state. It is not in the trail, since a reader of the trail need not have it.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes a key of any length"))
    }

    /// Returns the HMAC-SHA256 of the arguments as they are handed to the adapter, in 64 hex digits.
    pub fn digest(&self, arguments: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(arguments);
        hex::encode(mac.finalize().into_bytes())
    }
}

/// A record, without what the chain adds (`seq`, `time`, `prev`, `hash`).
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AuditEvent<'a> {
    /// A call has ended. Written before its answer leaves.
    Call(AuditedCall<'a>),
    /// A write is about to run. Written before it does, so that one without a `call` of the same id may have run.
    Intent(AuditedIntent<'a>),
    /// A request that was refused before it became a call.
    Refused(AuditedRefusal<'a>),
    /// An admin changed what the gateway serves or who may use it.
    Admin(AuditedChange<'a>),
}

/// The call: which one, by whom, of what, and how it came in.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallDetails<'a> {
    #[serde(serialize_with = "name")]
    pub call_id: &'a str,
    #[serde(serialize_with = "name")]
    pub agent: &'a str,
    #[serde(serialize_with = "name")]
    pub tenant: &'a str,
    /// The person to whom the agent's token was issued; `None` for the agent of a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<HolderRecord<'a>>,
    /// `None` when no such tool exists for this caller: the name is then the caller's text.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub tool: Option<&'a str>,
    /// The requested name, if this caller has no such tool or prompt. It is the caller's text.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub asked: Option<&'a str>,
    /// Whether what was asked for is served, but not to this caller. Present together with `asked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
    /// The kind of the requested item, if it is not a tool: `prompt` or `resource`, and then `tool` is its name.
    #[serde(rename = "item", skip_serializing_if = "Option::is_none")]
    pub item: Option<&'static str>,
    /// `name@version`.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub contract: Option<&'a str>,
    /// The digest from [`ArgumentsKey::digest`](crate::ArgumentsKey::digest).
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub arguments_digest: Option<&'a str>,
    /// The arguments that the contract lists to be recorded in clear, by name.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "values_if_any"
    )]
    pub clear: Option<&'a Map<String, Value>>,
    /// W3C `traceparent`.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub trace: Option<&'a str>,
    /// `http`, `stdio`, `cli`.
    #[serde(serialize_with = "name")]
    pub transport: &'a str,
    /// The version of the protocol spoken.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub protocol: Option<&'a str>,
    /// sha256 of the plugin that ran it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub plugin: Option<&'a str>,
    /// The other server that the tool belongs to, by its name in the configuration.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub upstream: Option<&'a str>,
    /// The denials of policies, or those that they would have made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyRecord<'a>>,
    /// The approval that the call used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRecord<'a>>,
}

/// A write that a person approved.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ApprovalRecord<'a> {
    #[serde(serialize_with = "name")]
    pub plan: &'a str,
    /// The admin that approved it.
    #[serde(serialize_with = "name")]
    pub by: &'a str,
}

/// A call that policies deny.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PolicyRecord<'a> {
    /// `denied`; `audited` if the call continued regardless.
    pub decision: &'static str,
    /// The ids of the policies; empty if no policy permits it.
    #[serde(serialize_with = "names")]
    pub policies: &'a [Arc<str>],
}

/// The holder of a token: its issuer, its subject, and its client.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HolderRecord<'a> {
    #[serde(serialize_with = "name")]
    pub issuer: &'a str,
    #[serde(serialize_with = "name")]
    pub subject: &'a str,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub client: Option<&'a str>,
}

/// The record of a call that has ended.
#[derive(Clone, Debug, Serialize)]
pub struct AuditedCall<'a> {
    #[serde(flatten)]
    pub about: CallDetails<'a>,
    pub outcome: AuditOutcome,
    /// The error code of the answer, from the gateway's table.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub code: Option<&'a str>,
    /// The refused fields of the arguments and the reasons, or the limit that was reached. It contains no value of an
    /// argument.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "text_if_any"
    )]
    pub reason: Option<&'a str>,
    /// The time from the opening of the record to its end, to the microsecond.
    pub ms: f64,
}

/// How a call ended, and whether it may have changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditOutcome {
    Ok,
    /// The call was not run: unknown tool, no access, a limit, invalid arguments.
    Refused,
    /// The call ran and failed, and had no effect.
    Failed,
    /// The caller had gone before it ran to its end; no effect.
    Cancelled,
    /// A write whose effect is unknown.
    Unknown,
}

impl AuditOutcome {
    /// Returns the word in records, logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

/// The record of a write that is about to run. The record of its end has the same call id.
#[derive(Clone, Debug, Serialize)]
pub struct AuditedIntent<'a> {
    #[serde(flatten)]
    pub about: CallDetails<'a>,
}

/// The record of requests that were refused before they became calls.
#[derive(Clone, Debug, Serialize)]
pub struct AuditedRefusal<'a> {
    pub what: RefusedWhat,
    /// The endpoint or route, or the method.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub place: Option<&'a str>,
    /// Public id of the key that was shown, when it has one. Never the key.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub key_id: Option<&'a str>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub agent: Option<&'a str>,
    /// The caller's network address.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub address: Option<&'a str>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "text_if_any"
    )]
    pub reason: Option<&'a str>,
    /// The number of refusals in this record. Records of more than one contain only what they have in common.
    pub count: u64,
}

/// The stage that refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedWhat {
    /// The caller is not known: no key, or a wrong, expired or revoked one.
    Identity,
    /// The caller is known, but may not do this.
    Access,
    Rate,
    /// Host, origin, size or form of the request.
    Request,
}

/// The record of a change by an administrator, or by a file.
#[derive(Clone, Debug, Serialize)]
pub struct AuditedChange<'a> {
    pub act: AdminAct,
    /// The object of the change: `contract@version`, a key's id, a plugin's name.
    #[serde(serialize_with = "name")]
    pub subject: &'a str,
    /// The exact change that was approved, or the digest of the plugin.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "name_if_any"
    )]
    pub fingerprint: Option<&'a str>,
    /// The author of the change, such as `admin:NAME`, `file:NAME` or `built-in`.
    #[serde(serialize_with = "name")]
    pub by: &'a str,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "values_if_any"
    )]
    pub detail: Option<&'a Map<String, Value>>,
}

/// What an administrator, or a file, changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminAct {
    Publish,
    Rollback,
    Retire,
    /// A draft was discarded.
    Reject,
    /// A version is kept in addition to the one that replaced it, or its last day was moved.
    VersionKeep,
    /// An agent was pinned to one major version of a contract.
    AgentPin,
    AgentUnpin,
    KeyCreate,
    KeyRevoke,
    GrantChange,
    PluginLoad,
    /// A file that was handed in and does not run.
    PluginRefuse,
    PluginRemove,
    ConfigReload,
    /// An admin key began a session.
    SignIn,
    /// An operator ended the session of an admin key.
    SessionEnd,
    /// A call that was made in the name of an agent, to try a tool.
    TryCall,
    /// An admin looked at a source before there was a contract over it.
    SourceLook,
    /// A file was put into a connection.
    FileUpload,
    /// Another server was looked at that is not in the configuration.
    UpstreamLook,
    /// A caller's account at another server was connected.
    AccountConnect,
    AccountDisconnect,
    /// A write that waits for a person was approved or rejected.
    PlanApprove,
    PlanReject,
}

fn name<S: Serializer>(name: &str, to: S) -> Result<S::Ok, S::Error> {
    cut(name, NAME_MAX_CHARS, to)
}

fn name_if_any<S: Serializer>(name: &Option<&str>, to: S) -> Result<S::Ok, S::Error> {
    cut(name.unwrap_or_default(), NAME_MAX_CHARS, to)
}

fn names<S: Serializer>(names: &[Arc<str>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(names.iter().map(|name| shorten(name, NAME_MAX_CHARS)))
}

fn text_if_any<S: Serializer>(text: &Option<&str>, to: S) -> Result<S::Ok, S::Error> {
    cut(text.unwrap_or_default(), TEXT_MAX_CHARS, to)
}

fn cut<S: Serializer>(text: &str, max_chars: usize, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&shorten(text, max_chars))
}

fn values_if_any<S: Serializer>(
    values: &Option<&Map<String, Value>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let Some(values) = values else {
        return to.serialize_none();
    };
    let mut map = to.serialize_map(None)?;
    for (key, value) in values.iter().take(CLEAR_FIELDS_MAX) {
        let key = shorten(key, NAME_MAX_CHARS);
        let bytes = json_bytes(value);
        if bytes <= CLEAR_VALUE_MAX_BYTES {
            map.serialize_entry(&key, value)?;
        } else {
            map.serialize_entry(&key, &format!("… ({bytes} bytes)"))?;
        }
    }
    if values.len() > CLEAR_FIELDS_MAX {
        map.serialize_entry("…", &format!("{} more", values.len() - CLEAR_FIELDS_MAX))?;
    }
    map.end()
}

fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        // A number has at most 17 digits, a sign, a point and an exponent.
        Value::Number(_) => 24,
        value => serde_json::to_vec(value).map_or(usize::MAX, |json| json.len()),
    }
}
