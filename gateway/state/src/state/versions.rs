//! Versions that are served in addition to the live one, and the agents that are pinned to one.

use super::{GatewayState, LiveChange};
use crate::{AgentPin, KeptRow, StateError, columns::from_row, engine::sql};

from_row!(KeptRow {
    contract,
    major,
    version,
    shim,
    sunset_ms,
    kept_ms,
    kept_by
});

from_row!(AgentPin {
    agent,
    contract,
    major,
    created_ms,
    created_by
});

impl GatewayState {
    /// Returns the versions of all contracts that are served in addition to a live one, the newest of each first.
    pub async fn kept(&self) -> Result<Vec<KeptRow>, StateError> {
        let query = "SELECT * FROM served ORDER BY contract, major DESC";
        sql(query).fetch_all(&self.engine).await
    }

    /// Returns which agents are pinned to which versions.
    pub async fn pins(&self) -> Result<Vec<AgentPin>, StateError> {
        let query = "SELECT * FROM pins ORDER BY agent, contract";
        sql(query).fetch_all(&self.engine).await
    }

    /// Pins an agent to a version of a contract, in place of its present pin.
    pub async fn pin(&self, pin: &AgentPin) -> Result<(), StateError> {
        let insert = "INSERT INTO pins (agent, contract, major, created_ms, created_by) VALUES ($1, $2, $3, $4, $5) \
                      ON CONFLICT (agent, contract) DO UPDATE SET major = excluded.major, \
                      created_ms = excluded.created_ms, created_by = excluded.created_by";
        sql(insert)
            .bind(&pin.agent)
            .bind(&pin.contract)
            .bind(pin.major)
            .bind(pin.created_ms)
            .bind(&pin.created_by)
            .execute(&self.engine)
            .await?;
        Ok(())
    }

    /// Lets an agent have the version that is served by default.
    pub async fn unpin(&self, agent: &str, contract: &str) -> Result<(), StateError> {
        let delete = "DELETE FROM pins WHERE agent = $1 AND contract = $2";
        let done = sql(delete)
            .bind(agent)
            .bind(contract)
            .execute(&self.engine)
            .await?;
        match done {
            0 => Err(StateError::Unknown("pin")),
            _ => Ok(()),
        }
    }
}

impl LiveChange {
    /// Returns the versions of a contract that are served in addition to the live one, the newest first.
    pub async fn kept_of(&mut self, contract: &str) -> Result<Vec<KeptRow>, StateError> {
        let query = "SELECT * FROM served WHERE contract = $1 ORDER BY major DESC";
        sql(query).bind(contract).fetch_all(&mut self.0).await
    }

    /// Serves a version in addition to the live one, replacing the kept one of the same major version.
    pub async fn keep(&mut self, kept: &KeptRow) -> Result<(), StateError> {
        let insert = "INSERT INTO served (contract, major, version, shim, sunset_ms, kept_ms, kept_by) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (contract, major) DO UPDATE SET \
                      version = excluded.version, shim = excluded.shim, sunset_ms = excluded.sunset_ms, \
                      kept_ms = excluded.kept_ms, kept_by = excluded.kept_by";
        sql(insert)
            .bind(&kept.contract)
            .bind(kept.major)
            .bind(&kept.version)
            .bind(&kept.shim)
            .bind(kept.sunset_ms)
            .bind(kept.kept_ms)
            .bind(&kept.kept_by)
            .execute(&mut self.0)
            .await?;
        Ok(())
    }

    /// Forgets the kept version of a major version, if there is one.
    pub async fn forget_kept(&mut self, contract: &str, major: i64) -> Result<(), StateError> {
        let delete = "DELETE FROM served WHERE contract = $1 AND major = $2";
        sql(delete)
            .bind(contract)
            .bind(major)
            .execute(&mut self.0)
            .await?;
        Ok(())
    }

    /// Ends a change of the kept versions, leaving the live one: every process reads the contract again.
    pub async fn end_kept(self, contract: &str) -> Result<(), StateError> {
        let Self(mut change) = self;
        let update = "UPDATE contracts SET revision = revision + 1 WHERE name = $1";
        sql(update).bind(contract).execute(&mut change).await?;
        change.commit().await
    }
}
