//! The audit trail of this state folder, all processes together.

use serde_json::Value;
use weir_audit::Filter;

use super::{OperationError, OperationResult};
use crate::control::Control;

/// Records in one answer; older ones are asked for with `until`, which is the time of the first record of this answer.
const RECORDS_MAX: usize = 1000;

/// Records in one answer where no number is asked for.
const RECORDS_USUAL: usize = 100;

/// Returns the newest records that match, oldest first.
pub async fn query(
    control: &Control,
    filter: Filter,
    limit: Option<usize>,
) -> OperationResult<Vec<Value>> {
    let limit = limit.unwrap_or(RECORDS_USUAL);
    if !(1..=RECORDS_MAX).contains(&limit) {
        return Err(OperationError::invalid(format!(
            "`limit` must be 1 to {RECORDS_MAX}"
        )));
    }
    let folder = control.gateway().config().folders.state.join("audit");
    let read = move || -> std::io::Result<Vec<Value>> {
        let (newest, _) = weir_audit::tail(&folder, filter, limit)?;
        Ok(newest
            .into_iter()
            .map(|record| Value::Object(record.members))
            .collect())
    };
    blocking(read).await
}

/// Returns whether any record was changed, deleted, moved or cut.
pub async fn verify(control: &Control) -> OperationResult<Value> {
    let folder = control.gateway().config().folders.state.join("audit");
    let verify = move || weir_audit::verify(&folder, &[]).map_err(std::io::Error::other);
    let report = blocking(verify).await?;
    Ok(serde_json::to_value(report).expect("plain data"))
}

/// Reads files beside the runtime.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> OperationResult<T> {
    let done = tokio::task::spawn_blocking(read)
        .await
        .map_err(std::io::Error::other)
        .and_then(|done| done);
    done.map_err(|error| {
        tracing::error!(%error, "an admin request failed");
        OperationError::unavailable("the audit trail cannot be read now")
    })
}
