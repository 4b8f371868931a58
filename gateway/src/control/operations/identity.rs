//! Callers that were refused at this process, with the reasons.

use crate::{control::ControlPlane, identity::IdentityFailure};

/// Returns the recent refusals, newest first. At most 200 are kept, in memory.
pub fn list_failures(control: &ControlPlane) -> Vec<IdentityFailure> {
    control.gateway().identities().failures().list()
}
