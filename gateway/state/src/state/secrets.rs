//! The gateway's own secrets. All processes on one state share them.

use std::time::{SystemTime, UNIX_EPOCH};

use super::GatewayState;
use crate::{
    SecretPurpose, StateError,
    engine::{StateChange, sql},
};

const SECRET_BYTES: usize = 32;

impl GatewayState {
    /// Returns the secret for this purpose. The first process that asks makes it from random bytes.
    pub async fn secret(&self, purpose: SecretPurpose) -> Result<[u8; SECRET_BYTES], StateError> {
        if let Some(known) = self.known_secret(purpose).await? {
            return Ok(known);
        }
        let mut fresh = [0; SECRET_BYTES];
        getrandom::fill(&mut fresh)
            .map_err(|error| StateError::Database(error.to_string().into()))?;
        let mut change = self.change().await?;
        keep(&mut change, purpose, &fresh).await?;
        change.commit().await?;
        self.known_secret(purpose)
            .await?
            .ok_or(StateError::Unknown("secret"))
    }

    /// Returns the secret for this purpose, if there is one yet.
    pub async fn known_secret(
        &self,
        purpose: SecretPurpose,
    ) -> Result<Option<[u8; SECRET_BYTES]>, StateError> {
        let query = "SELECT bytes FROM secrets WHERE purpose = $1";
        let bytes: Option<Vec<u8>> = sql(query).bind(purpose).find_value(&self.engine).await?;
        let sized = |bytes: Vec<u8>| {
            <[u8; SECRET_BYTES]>::try_from(bytes).map_err(|bytes| {
                let length = bytes.len();
                let why = format!(
                    "the secret `{purpose}` has {length} bytes and not {SECRET_BYTES}: restore the state from a backup"
                );
                StateError::Database(why.into())
            })
        };
        bytes.map(sized).transpose()
    }
}

/// Stores a secret if there is none for its purpose. Returns `true` if the stored secret is now this one.
pub(crate) async fn keep(
    change: &mut StateChange,
    purpose: SecretPurpose,
    bytes: &[u8],
) -> Result<bool, StateError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |since| since.as_millis() as i64);
    sql(
        "INSERT INTO secrets (purpose, bytes, created_ms) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    )
    .bind(purpose)
    .bind(bytes)
    .bind(now_ms)
    .execute(&mut *change)
    .await?;
    let query = "SELECT bytes = $1 FROM secrets WHERE purpose = $2";
    sql(query)
        .bind(bytes)
        .bind(purpose)
        .fetch_value(&mut *change)
        .await
}
