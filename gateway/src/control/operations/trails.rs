//! Returns what is needed from each machine to collect all trails: its chains, their lines, and the heads in the state.

use std::io;

use bytes::Bytes;
use weir_audit::{ChainFiles, ChainName, CollectedHeads};

use super::{
    OperationError, OperationResult,
    audit::{read_trail, trail_folder},
};
use crate::{control::ControlPlane, telemetry};

/// Returns the last record of each chain: of all machines if they share the state, else only of this folder.
pub async fn heads(control: &ControlPlane) -> OperationResult<CollectedHeads> {
    if control.state().is_shared() {
        let rows = control.state().audit_heads().await?;
        return Ok(CollectedHeads {
            heads: telemetry::read_heads(rows).collect(),
        });
    }
    let folder = trail_folder(control);
    read_trail(move || weir_audit::list_heads(&folder, "")).await
}

/// Returns the chains in the folder of this machine.
pub async fn chains(control: &ControlPlane) -> OperationResult<Vec<ChainFiles>> {
    let folder = trail_folder(control);
    read_trail(move || weir_audit::list_files(&folder)).await
}

/// Returns whole lines of a segment from byte `from` on; none if there are no more.
pub async fn lines(
    control: &ControlPlane,
    chain: &str,
    segment: u32,
    from: u64,
) -> OperationResult<Bytes> {
    let folder = trail_folder(control);
    let unknown = || OperationError::not_found("segment", &format!("{chain}/{segment}"));
    let name: ChainName = chain.parse().map_err(|_| unknown())?;
    let read = move || match weir_audit::read_lines(&folder, &name, segment, from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        lines => lines.map(Some),
    };
    let lines = read_trail(read).await?;
    lines.map(Bytes::from).ok_or_else(unknown)
}
