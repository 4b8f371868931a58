//! Callers that were refused at this process, with the reasons.

use crate::{control::ControlPlane, identity::IdentityFailure};

/// Returns the recent refusals, the newest first. They are kept in memory, at most 200.
pub fn list_failures(control: &ControlPlane) -> Vec<IdentityFailure> {
    control.gateway().identities().failures().list()
}
