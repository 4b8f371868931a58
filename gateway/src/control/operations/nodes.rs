//! The nodes that share a state, and whether all of them have applied a change.

use serde::Serialize;
use utoipa::ToSchema;
use weir_state::NodeRow;

use super::OperationResult;
use crate::control::ControlPlane;

/// A process that shares the state with others. Times are the database's, in milliseconds since 1970.
#[derive(Serialize, ToSchema)]
pub struct NodeView {
    /// The id, which is new at each start.
    pub id: String,
    /// The name of the machine.
    pub name: String,
    pub version: String,
    /// The formats of published contracts that it can read.
    pub formats: Vec<u32>,
    /// The digest of its configuration: nodes with the same digest have the same settings.
    pub configuration: String,
    pub started_ms: i64,
    /// The end of its lease, which it renews each second.
    pub lease_ms: i64,
    /// Whether the lease is still valid.
    pub live: bool,
    /// The number of the last change that it has applied.
    pub seen: i64,
    /// Whether it is the node that answers this request.
    pub own: bool,
}

/// The nodes that share the state; empty if the state is in a file.
#[derive(Serialize, ToSchema)]
pub struct NodeList {
    /// The number of the last change.
    pub generation: i64,
    pub nodes: Vec<NodeView>,
}

/// A node that may still serve without a change.
#[derive(Serialize, ToSchema)]
pub struct MissingNode {
    pub id: String,
    pub name: String,
    /// The time at which it stops serving, unless it reaches the database before.
    pub stops_ms: i64,
}

/// Lists the nodes.
pub async fn list(control: &ControlPlane) -> OperationResult<NodeList> {
    let state = control.state();
    let generation = state.generation().await?;
    let own = state.node_id();
    let view = |row: NodeRow| NodeView {
        live: row.is_live(),
        own: own == Some(row.id.as_str()),
        formats: row
            .formats
            .split(',')
            .filter_map(|it| it.parse().ok())
            .collect(),
        id: row.id,
        name: row.name,
        version: row.version,
        configuration: row.configuration,
        started_ms: row.started_ms,
        lease_ms: row.lease_ms,
        seen: row.seen,
    };
    let nodes = state.nodes().await?.into_iter().map(view).collect();
    Ok(NodeList { generation, nodes })
}

/// Waits until all nodes have applied the last change, and returns those that may still serve without it; `None` if the state is
/// in a file.
pub async fn await_everywhere(control: &ControlPlane) -> OperationResult<Option<Vec<MissingNode>>> {
    let state = control.state();
    if !state.is_shared() {
        return Ok(None);
    }
    Ok(Some(views(state.await_everywhere().await?)))
}

/// Waits until all nodes have loaded the last uploaded plugin, and returns those that have not.
pub async fn await_builds(control: &ControlPlane) -> OperationResult<Vec<MissingNode>> {
    Ok(views(control.state().await_builds().await?))
}

fn views(missing: Vec<NodeRow>) -> Vec<MissingNode> {
    let view = |row: NodeRow| MissingNode {
        stops_ms: row.stops_ms(),
        id: row.id,
        name: row.name,
    };
    missing.into_iter().map(view).collect()
}
