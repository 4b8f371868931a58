//! Operations: what the admin API, the command line and a console ask of a gateway, as plain functions with plain results.
//! Who may ask is decided by the caller; each change is recorded in the audit trail before it is made.

pub(crate) mod admins;
pub(crate) mod audit;
pub(crate) mod calls;
pub(crate) mod collections;
pub(crate) mod contracts;
pub(crate) mod drafts;
mod error;
pub(crate) mod keys;
pub(crate) mod plugins;
pub(crate) mod preview;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod tools;
pub(crate) mod upstreams;

pub(crate) use self::error::{FailureKind, OperationError, OperationResult};
use super::gate::Role;

/// The admin in whose name an operation is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActingAdmin<'a> {
    /// The name in the audit trail, such as `admin:NAME`.
    pub by: &'a str,
    pub role: Role,
}

impl ActingAdmin<'_> {
    /// Refuses what needs a higher role.
    pub(crate) fn needs(&self, role: Role) -> OperationResult<()> {
        if self.role >= role {
            return Ok(());
        }
        let detail = format!("this needs the role {}, and yours is {}", role, self.role);
        Err(OperationError::new(FailureKind::Forbidden, detail))
    }
}
