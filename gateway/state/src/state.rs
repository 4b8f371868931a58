//! The state: its queries and its changes, on either engine.

mod accounts;
mod agent_calls;
mod audit_heads;
pub(crate) mod builds;
mod call_replies;
mod changes;
mod client_sessions;
mod clock;
mod contracts;
mod drafts;
mod key_uses;
mod keys;
mod messages;
mod nodes;
mod plans;
mod profiles;
mod replies;
pub(crate) mod secrets;
mod sessions;
pub(crate) mod shapes;
mod uploads;
mod versions;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use self::{changes::ChangeFeed, nodes::OwnNode};
use crate::{
    NewBuild, StateError,
    copy_mark::CopyMark,
    engine::{StateChange, StateEngine},
    server::{ServerAddress, ServerTimeline},
};

pub use clock::SharedClock;
pub use contracts::LiveChange;
pub use nodes::FeedPart;

/// The state of a gateway, open. A change by one process is seen by all that share it.
pub struct GatewayState {
    pub(crate) engine: StateEngine,
    /// The folder of this machine's own files.
    pub(crate) folder: PathBuf,
    /// Where a database with the state may be.
    pub(crate) address: Option<ServerAddress>,
    pub(crate) timeline: Arc<ServerTimeline>,
    /// The mark of this machine's copy of the state, if one is kept.
    pub(crate) mark: Option<CopyMark>,
    changes: ChangeFeed,
    node: OwnNode,
    /// Builds that were let in while a copy of the state was read, without their content.
    waiting_builds: Mutex<Vec<NewBuild>>,
}

impl GatewayState {
    pub(crate) fn new(engine: StateEngine, folder: &Path) -> Self {
        Self {
            engine,
            folder: folder.to_owned(),
            address: None,
            timeline: Arc::default(),
            mark: None,
            changes: ChangeFeed::default(),
            node: OwnNode::default(),
            waiting_builds: Mutex::default(),
        }
    }

    /// Returns `true` while the state can be read.
    pub async fn is_healthy(&self) -> bool {
        self.generation().await.is_ok()
    }

    /// Takes the lock of writers immediately, so that what is read inside remains true until the end.
    pub(crate) async fn change(&self) -> Result<StateChange, StateError> {
        self.engine.begin().await
    }
}

impl std::fmt::Debug for GatewayState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("State")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}
