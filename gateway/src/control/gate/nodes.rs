//! Nodes that run an earlier program: a contract version that they cannot read does not become live.

use weir_contracts::CompiledContract;
use weir_state::NodeRow;

use super::GateError;

/// Checks that every running node can read a contract that is to become live.
pub(super) fn check_format(
    nodes: &[NodeRow],
    contract: &CompiledContract,
) -> Result<(), GateError> {
    let format = contract.format.number();
    let mut live = nodes.iter().filter(|node| node.is_live());
    let Some(older) = live.find(|node| !node.reads(format)) else {
        return Ok(());
    };
    let newest = older.read_formats().max().unwrap_or(0);
    Err(GateError::OlderNode(format!(
        "the contract `{}` is of format {format}, and the node `{}` ({}), which runs version {}, reads formats up to {newest}: \
         upgrade that node or stop it, and try again; nothing was changed",
        contract.name, older.name, older.id, older.version
    )))
}
