//! Returns what collecting the trails of all machines needs of each: its chains, their lines, and the heads in the state.

use std::{io, path::PathBuf};

use bytes::Bytes;
use weir_audit::{ChainFiles, ChainName, CollectedHeads};

use super::{OperationError, OperationResult};
use crate::{control::Control, telemetry};

/// Returns the last record of each chain: of all machines where they share the state, else of this folder.
pub async fn heads(control: &Control) -> OperationResult<CollectedHeads> {
    if control.state().is_shared() {
        let rows = control.state().audit_heads().await?;
        return Ok(CollectedHeads {
            heads: telemetry::read_heads(rows).collect(),
        });
    }
    let folder = folder(control);
    blocking(move || weir_audit::list_heads(&folder, "")).await
}

/// Returns the chains in the folder of this machine.
pub async fn chains(control: &Control) -> OperationResult<Vec<ChainFiles>> {
    let folder = folder(control);
    blocking(move || weir_audit::list_files(&folder)).await
}

/// Returns whole lines of a segment from byte `from` on; none where there are no more.
pub async fn lines(
    control: &Control,
    chain: &str,
    segment: u32,
    from: u64,
) -> OperationResult<Bytes> {
    let folder = folder(control);
    let unknown = || OperationError::not_found("segment", &format!("{chain}/{segment}"));
    let name: ChainName = chain.parse().map_err(|_| unknown())?;
    let read = move || match weir_audit::read_lines(&folder, &name, segment, from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        lines => lines.map(Some),
    };
    let lines = blocking(read).await?;
    lines.map(Bytes::from).ok_or_else(unknown)
}

fn folder(control: &Control) -> PathBuf {
    control.gateway().config().folders.state.join("audit")
}

/// Reads files beside the runtime.
async fn blocking<T: Send + 'static>(
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
