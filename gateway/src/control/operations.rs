//! Operations: the requests of the admin API, the command line and the console to a gateway, as plain functions with plain
//! results. The caller checks permissions; each change is recorded in the audit trail before it is made.

pub mod accounts;
pub mod admins;
pub mod approvals;
pub mod audit;
pub mod callers;
pub mod calls;
pub mod collections;
pub mod connections;
pub mod console_sign_in;
pub mod contracts;
pub mod databases;
pub mod drafts;
mod error;
pub mod form;
pub mod identity;
pub mod keys;
pub mod nodes;
pub mod plugins;
pub mod policies;
pub mod preview;
pub mod sessions;
pub mod settings;
pub mod shared_builds;
pub mod snippets;
pub mod sources;
pub mod stats;
pub mod tools;
pub mod trails;
pub mod uploads;
pub mod upstream_looks;
pub mod upstreams;
pub mod versions;

pub use self::error::{FailureKind, OperationError, OperationResult};
use super::gate::Role;

/// The admin in whose name an operation is done.
#[derive(Clone, Copy, Debug)]
pub struct ActingAdmin<'a> {
    /// The name in the audit trail, such as `admin:NAME`.
    pub by: &'a str,
    pub role: Role,
}

impl ActingAdmin<'_> {
    /// Refuses what needs a higher role.
    pub fn needs(&self, role: Role) -> OperationResult<()> {
        if self.role >= role {
            return Ok(());
        }
        let detail = format!("this needs the role {}, and yours is {}", role, self.role);
        Err(OperationError::new(FailureKind::Forbidden, detail))
    }
}
