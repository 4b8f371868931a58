//! Defines what the gateway asks of an adapter, and how that can fail.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Instant,
};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use weir_admission::{BackedOff, OverloadError};
use weir_connections::http::TraceContext;

/// One collection of one contract version. It is cheap to clone, and prepared once per snapshot.
#[derive(Clone, Debug)]
pub struct CollectionRef {
    /// Unique and never reused with another meaning: contract, version and collection, plus a digest of the rest.
    pub key: Arc<str>,
    pub adapter: Arc<str>,
    /// JSON.
    pub settings: Arc<str>,
    /// The recorded shape, JSON.
    pub shape: Arc<str>,
}

/// The context that goes with every call into a guest.
#[derive(Clone)]
pub struct CallContext {
    pub tenant: Arc<str>,
    pub call_id: Arc<str>,
    pub deadline: Instant,
    /// The caller is gone: interrupt the guest. A write already handed to a source still runs to its end.
    pub cancel: CancellationToken,
    /// `None`: the caller gets no messages before the answer.
    pub events: Option<Arc<dyn CallEvents>>,
    /// The trace of the call, which is sent along with requests to web services.
    pub trace: Option<TraceContext>,
    /// Set by the host: sha256, hex, of the plugin that the call ran on. Remains empty if no plugin did.
    pub ran_on: Arc<OnceLock<Arc<str>>>,
}

/// Receives what a call sends to its caller before it answers. It is called from the guest's thread, so it must not block.
pub trait CallEvents: Send + Sync {
    fn wants_progress(&self) -> bool;

    fn progress(&self, done: f64, total: Option<f64>, message: &str);

    /// Returns the least severe level of log messages that the caller requested, as MCP names it. `None` if it requested none.
    fn log_level(&self) -> Option<&'static str>;

    /// Takes a log message. `level` is a word of MCP or of the interface `log`.
    fn log(&self, level: &str, logger: &str, data: Value);
}

/// A read of a collection, as `collections.query` of the plugin interface.
#[derive(Clone, Debug, Default)]
pub struct AdapterQuery {
    pub conditions: Vec<AdapterCondition>,
    pub order: Arc<[String]>,
    pub columns: Arc<[String]>,
    pub limit: u32,
    pub cursor: Option<String>,
    /// JSON.
    pub options: Option<String>,
}

/// A condition on one column of a record.
#[derive(Clone, Debug)]
pub struct AdapterCondition {
    pub column: String,
    pub comparison: String,
    /// JSON.
    pub value: String,
}

/// A count, or measures of groups of records, as `summaries.query` of the plugin interface.
#[derive(Clone, Debug, Default)]
pub struct AdapterSummaryQuery {
    pub conditions: Vec<AdapterCondition>,
    pub groups: Vec<AdapterSummaryGroup>,
    pub measures: Vec<AdapterSummaryMeasure>,
    /// Conditions on measures, by their names.
    pub having: Vec<AdapterCondition>,
    pub order: Vec<String>,
    pub limit: u32,
    /// JSON.
    pub options: Option<String>,
}

impl AdapterCondition {
    /// Returns the bytes handed to the guest.
    pub(crate) fn size(&self) -> usize {
        self.column.len() + self.comparison.len() + self.value.len()
    }
}

impl AdapterSummaryQuery {
    /// Returns the bytes handed to the guest.
    pub(crate) fn size(&self) -> usize {
        let conditions = self.conditions.iter().chain(&self.having);
        let groups = self.groups.iter();
        let measures = self.measures.iter();
        let column = |column: &Option<String>| column.as_ref().map_or(0, String::len);
        conditions.map(AdapterCondition::size).sum::<usize>()
            + groups
                .map(|group| group.name.len() + group.column.len())
                .sum::<usize>()
            + measures
                .map(|measure| measure.name.len() + column(&measure.column))
                .sum::<usize>()
            + self.order.iter().map(String::len).sum::<usize>()
            + column(&self.options)
    }
}

/// A column that records are grouped by.
#[derive(Clone, Debug)]
pub struct AdapterSummaryGroup {
    pub name: String,
    pub column: String,
    pub step: Option<&'static str>,
}

/// A measure of each group of a summary, and the column that it is of.
#[derive(Clone, Debug)]
pub struct AdapterSummaryMeasure {
    pub name: String,
    pub function: &'static str,
    pub column: Option<String>,
}

/// The groups of a summary.
#[derive(Clone, Debug)]
pub struct AdapterSummaryPage {
    /// JSON array of objects, as the guest wrote it: not to be trusted.
    pub records: String,
    pub more: bool,
}

/// One page of records, and the cursor of the next.
#[derive(Clone, Debug)]
pub struct AdapterPage {
    /// JSON array of objects, as the guest wrote it: not to be trusted.
    pub records: String,
    pub next: Option<String>,
}

/// A write to a collection, as `collections.change` of the plugin interface.
#[derive(Clone, Debug, Default)]
pub struct AdapterChange {
    /// The verb: create, update, delete or call.
    pub verb: String,
    /// JSON object of the key columns.
    pub key: Option<String>,
    /// JSON object.
    pub record: Option<String>,
    /// JSON; for `call`: `{"operation": …, "params": {…}}`.
    pub options: Option<String>,
}

/// An error the guest answered. Codes are open strings.
#[derive(Clone, Debug)]
pub struct GuestError {
    pub code: String,
    pub message: String,
    pub field: Option<String>,
    pub retry_after_ms: Option<u32>,
    pub details: Option<String>,
}

impl GuestError {
    /// Returns the error of a plugin that was built against an interface without summaries.
    pub(crate) fn no_summaries() -> Self {
        Self {
            code: "unsupported".into(),
            message: "The adapter can neither count nor summarize records.".into(),
            field: None,
            retry_after_ms: None,
            details: None,
        }
    }
}

/// Why a call of a plugin has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdapterFailure {
    /// The guest answered an error record.
    #[error("{}: {}", .0.code, .0.message)]
    Guest(GuestError),
    /// No loaded plugin provides the adapter.
    #[error("no plugin provides the adapter `{0}`")]
    Unavailable(String),
    /// No loaded build of the plugin defines its tools as the contract was promised.
    #[error("no build of the plugin `{0}` is loaded that defines the tool as it was published")]
    NoBuild(String),
    #[error("too many calls in flight")]
    Overloaded { retry_after_ms: u32 },
    /// The plugin has failed again and again for this caller, and is not called for a while.
    #[error("the plugin failed in all its last calls; the next try is in {retry_after_ms} ms")]
    BackedOff { retry_after_ms: u32 },
    #[error("the deadline passed")]
    Timeout,
    #[error("the caller has gone")]
    Cancelled,
    /// A trap, or an answer that cannot be read. For the log.
    #[error("the plugin failed: {0}")]
    Failed(String),
    /// One call exceeded its bounds for the processor, the memory or the host. Its caller may read which one.
    #[error("the plugin was ended: {0}")]
    OverLimit(BoundReached),
}

/// A bound of one call that was reached.
#[derive(Clone, Debug)]
pub struct BoundReached {
    /// What the plugin did, with the bound: "it used more than 2000 ms of processor time".
    pub reason: String,
    /// The key of `[plugins.NAME]` that sets the bound, if one does.
    pub setting: Option<&'static str>,
}

impl fmt::Display for BoundReached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)?;
        match self.setting {
            Some(setting) => write!(
                formatter,
                "; an operator can raise `{setting}` of the plugin"
            ),
            None => Ok(()),
        }
    }
}

impl From<OverloadError> for AdapterFailure {
    fn from(OverloadError { retry_after_ms }: OverloadError) -> Self {
        Self::Overloaded { retry_after_ms }
    }
}

impl From<BackedOff> for AdapterFailure {
    fn from(BackedOff { retry_after_ms }: BackedOff) -> Self {
        Self::BackedOff { retry_after_ms }
    }
}

/// Why a write failed, and whether the source may have been changed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{failure}")]
pub struct WriteFailure {
    pub failure: AdapterFailure,
    /// A host function that changes the source had been entered: a retry may duplicate.
    pub handed_over: bool,
}
