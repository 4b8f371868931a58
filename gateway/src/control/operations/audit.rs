//! The audit trail of this state folder, all processes together.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    sync::LazyLock,
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use utoipa::ToSchema;
use weir_audit::{
    AuditFilter, AuditReceipt, AuditRecord, ProofSubject, RecordProof, TrailReport, command,
};

use super::{OperationError, OperationResult};
use crate::control::ControlPlane;

/// The most records in one answer; `before` asks for older ones.
const RECORDS_MAX: usize = 1000;

/// Records in one answer if the request gives no number.
const RECORDS_USUAL: usize = 100;
/// Records of one call: its intent, its end, and what belongs to it.
const CALL_RECORDS_MAX: usize = 100;
/// The most receipts that are checked in one request.
const RECEIPTS_MAX: usize = 100;
/// The bound on a search text.
const TEXT_MAX_CHARS: usize = 400;
/// The size of one part of an export in bytes, and the parts that may wait for a slow reader.
const PART_BYTES: usize = 64 << 10;
const PARTS_WAITING: usize = 4;
/// The number of whole trails that are read concurrently.
static WHOLE_READS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));
/// The number of searches of the trail that run concurrently.
static SEARCHES: Semaphore = Semaphore::const_new(4);
const CROWDED: &str = "the whole trail is being read for others: try again";

/// A record as it was written, with its receipt.
#[derive(Serialize, ToSchema)]
pub struct ReceiptedRecord {
    /// Proof of the record: `chain:seq:hash`.
    #[schema(value_type = String)]
    pub receipt: AuditReceipt,
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub members: Map<String, Value>,
}

/// The records of one call.
#[derive(Serialize, ToSchema)]
pub struct CallTrail {
    pub call_id: String,
    /// Oldest first: for a write, its intent before it ran, and then its end.
    pub records: Vec<ReceiptedRecord>,
}

/// The order of records in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordOrder {
    /// Oldest first.
    #[default]
    Asc,
    /// Newest first.
    Desc,
}

impl From<AuditRecord> for ReceiptedRecord {
    fn from(record: AuditRecord) -> Self {
        Self {
            receipt: record.receipt(),
            members: record.members,
        }
    }
}

/// Waits until the trail may be searched. The turn is held until reading ends, even if the client has gone.
async fn search_turn() -> SemaphorePermit<'static> {
    SEARCHES.acquire().await.expect("it is never closed")
}

/// Returns the newest records that match.
pub async fn query(
    control: &ControlPlane,
    filter: AuditFilter,
    limit: Option<usize>,
    order: RecordOrder,
) -> OperationResult<Vec<ReceiptedRecord>> {
    check(&filter)?;
    let limit = limit.unwrap_or(RECORDS_USUAL);
    if !(1..=RECORDS_MAX).contains(&limit) {
        return Err(OperationError::invalid(format!(
            "`limit` must be 1 to {RECORDS_MAX}"
        )));
    }
    let folder = trail_folder(control);
    let turn = search_turn().await;
    let read = move || -> io::Result<Vec<ReceiptedRecord>> {
        let _turn = turn;
        let (mut newest, _) = weir_audit::tail(&folder, filter, limit)?;
        if order == RecordOrder::Desc {
            newest.reverse();
        }
        Ok(newest.into_iter().map(ReceiptedRecord::from).collect())
    };
    read_trail(read).await
}

/// Returns all records of one call.
pub async fn show_call(control: &ControlPlane, call_id: &str) -> OperationResult<CallTrail> {
    let filter = AuditFilter {
        call_id: Some(call_id.to_owned()),
        ..AuditFilter::default()
    };
    check(&filter)?;
    let folder = trail_folder(control);
    let turn = search_turn().await;
    let read = move || {
        let _turn = turn;
        weir_audit::tail(&folder, filter, CALL_RECORDS_MAX)
    };
    let (records, _) = read_trail(read).await?;
    if records.is_empty() {
        return Err(OperationError::not_found("recorded call", call_id)
            .see("a record is kept for as long as `[audit]` says"));
    }
    Ok(CallTrail {
        call_id: call_id.to_owned(),
        records: records.into_iter().map(ReceiptedRecord::from).collect(),
    })
}

/// Returns whether any record was changed, deleted, moved or cut, and for each receipt whether its record exists.
pub async fn verify(control: &ControlPlane, receipts: &[String]) -> OperationResult<TrailReport> {
    if receipts.len() > RECEIPTS_MAX {
        let detail = format!("`receipts`: at most {RECEIPTS_MAX} are checked at once");
        return Err(OperationError::invalid(detail));
    }
    let receipts = receipts.iter().enumerate().map(|(at, text)| {
        let receipt: Result<AuditReceipt, _> = text.parse();
        receipt.map_err(|error| OperationError::invalid(format!("`receipts[{at}]`: {error}")))
    });
    let receipts: Vec<AuditReceipt> = receipts.collect::<OperationResult<_>>()?;
    let turn = WHOLE_READS
        .try_acquire()
        .map_err(|_| OperationError::unavailable(CROWDED))?;
    let folder = trail_folder(control);
    let verify = move || {
        // The turn is held until reading ends, even if the client has gone.
        let _turn = turn;
        command::report(&folder, &receipts).map_err(io::Error::other)
    };
    let (report, _) = read_trail(verify).await?;
    Ok(report)
}

/// Returns the proof of one record, up to the record of the receipt `to` if one is given.
pub async fn prove(
    control: &ControlPlane,
    subject: &str,
    to: Option<&str>,
) -> OperationResult<RecordProof> {
    if subject.chars().count() > TEXT_MAX_CHARS {
        let detail = format!("a record is named by at most {TEXT_MAX_CHARS} characters");
        return Err(OperationError::invalid(detail));
    }
    let to: Option<AuditReceipt> = to
        .map(str::parse)
        .transpose()
        .map_err(|error| OperationError::invalid(format!("`to`: {error}")))?;
    let Ok(wanted) = subject.parse::<ProofSubject>();
    let folder = trail_folder(control);
    let turn = search_turn().await;
    let read = move || {
        let _turn = turn;
        weir_audit::prove(&folder, &wanted, to.as_ref())
    };
    read_trail(read).await?.ok_or_else(|| {
        OperationError::not_found("recorded call or record", subject)
            .see("a proof reaches a receipt in `to` only if that follows in the same chain, among the next 1000 records")
    })
}

/// Returns all records that match as JSON lines, as they were written, oldest first. A slow client delays the reading; a client
/// that disconnects ends it. After an error the export is incomplete.
pub fn export(
    control: &ControlPlane,
    filter: AuditFilter,
) -> OperationResult<mpsc::Receiver<io::Result<Bytes>>> {
    check(&filter)?;
    let turn = WHOLE_READS
        .try_acquire()
        .map_err(|_| OperationError::unavailable(CROWDED))?;
    let folder = trail_folder(control);
    let (sender, receiver) = mpsc::channel(PARTS_WAITING);
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let written = weir_audit::read(&folder, filter).and_then(|records| {
            write_parts(records, |part| sender.blocking_send(Ok(part)).is_ok())
        });
        if let Err(error) = written {
            tracing::error!(%error, "an export of the audit trail was broken off");
            let _ = sender.blocking_send(Err(error));
        }
    });
    Ok(receiver)
}

/// Sends records in parts, until there are no more or the client has gone.
fn write_parts(
    records: impl Iterator<Item = io::Result<AuditRecord>>,
    mut send: impl FnMut(Bytes) -> bool,
) -> io::Result<()> {
    let mut part = Vec::with_capacity(PART_BYTES);
    for record in records {
        writeln!(part, "{}", record?.line)?;
        if part.len() >= PART_BYTES && !send(std::mem::take(&mut part).into()) {
            return Ok(());
        }
    }
    send(part.into());
    Ok(())
}

/// Bounds the search.
fn check(filter: &AuditFilter) -> OperationResult<()> {
    let texts = [
        ("text", &filter.text),
        ("call_id", &filter.call_id),
        ("agent", &filter.agent),
        ("tenant", &filter.tenant),
        ("tool", &filter.tool),
        ("contract", &filter.contract),
        ("outcome", &filter.outcome),
    ];
    for (field, text) in texts {
        let chars = text.as_ref().map_or(0, |text| text.chars().count());
        if chars > TEXT_MAX_CHARS {
            let detail = format!("`{field}` must be at most {TEXT_MAX_CHARS} characters");
            return Err(OperationError::invalid(detail));
        }
    }
    if filter.has_no_time() {
        let detail = "`until` must be later than `since`: records of the time of `until` are not among those that match";
        return Err(OperationError::invalid(detail));
    }
    Ok(())
}

/// Returns the folder of the trail of this machine.
pub(super) fn trail_folder(control: &ControlPlane) -> PathBuf {
    control.gateway().config().folders.state.join("audit")
}

/// Reads files of the trail on a blocking thread.
pub(super) async fn read_trail<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> OperationResult<T> {
    let done = tokio::task::spawn_blocking(read)
        .await
        .map_err(io::Error::other)
        .and_then(|done| done);
    done.map_err(|error| {
        tracing::error!(%error, "an admin request failed");
        OperationError::unavailable("the audit trail cannot be read now")
    })
}
