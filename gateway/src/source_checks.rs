//! Requests to check a source whose answer did not conform to what was published.

use std::{sync::OnceLock, time::Duration};

use tokio::sync::{mpsc, oneshot};

/// The most checks that may wait: sources are described one after the other.
const WAITING_MAX: usize = 16;
/// How long a failed call waits for the check of its source.
const PATIENCE: Duration = Duration::from_secs(1);

/// Passes requests to check a source to the task that makes the checks.
#[derive(Default)]
pub struct SourceChecks {
    /// The sender, set once there is a receiver.
    to: OnceLock<mpsc::Sender<SourceCheck>>,
}

/// A request to check the source of a collection of a live contract.
pub struct SourceCheck {
    pub contract: String,
    pub collection: String,
    pub has_drifted: oneshot::Sender<bool>,
}

impl SourceChecks {
    /// Returns the receiver of checks; there can be only one.
    pub fn listen(&self) -> Option<mpsc::Receiver<SourceCheck>> {
        let (to, checks) = mpsc::channel(WAITING_MAX);
        self.to.set(to).is_ok().then_some(checks)
    }

    /// Returns `true` if the source of a live contract differs from what was published, and `false` if this cannot be determined
    /// soon.
    pub async fn has_drifted(&self, contract: &str, collection: &str) -> bool {
        let Some(to) = self.to.get() else {
            return false;
        };
        let (has_drifted, answer) = oneshot::channel();
        let check = SourceCheck {
            contract: contract.to_owned(),
            collection: collection.to_owned(),
            has_drifted,
        };
        if to.try_send(check).is_err() {
            return false;
        }
        matches!(tokio::time::timeout(PATIENCE, answer).await, Ok(Ok(true)))
    }
}
