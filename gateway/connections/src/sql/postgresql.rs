//! PostgreSQL.

use super::{Access, Outcome, Prepared};
use crate::ConnectionError;

pub(super) struct Postgresql {}

impl Postgresql {
    pub(super) fn new(_url: &str, _pool_max: Option<u32>) -> Result<Self, String> {
        Ok(Self {})
    }

    pub(super) async fn run(&self, _prepared: Prepared, _access: Access) -> Result<Outcome, ConnectionError> {
        Err(ConnectionError::new("unavailable", "not connected"))
    }
}
