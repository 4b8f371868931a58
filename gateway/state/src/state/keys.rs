//! Keys of agents and of admins. Secrets are stored as hashes alone.

use sqlx::SqliteExecutor;

use super::{State, columns::from_row};
use crate::{AdminRow, KeyRow, StateError};

from_row!(KeyRow {
    id,
    secret_hash,
    agent,
    tenant,
    access,
    view,
    limits,
    created_ms,
    created_by,
    expires_ms,
    revoked_ms,
    change
});

from_row!(AdminRow {
    id,
    secret_hash,
    name,
    role,
    created_ms,
    created_by,
    revoked_ms
});

impl State {
    /// Returns all keys that ever were, by id.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, StateError> {
        Ok(sqlx::query_as("SELECT * FROM keys ORDER BY created_ms, id")
            .fetch_all(&self.pool)
            .await?)
    }

    /// Returns the keys that changed after the change `seen`, in the order of their changes, at most `most`. The cost
    /// is that of what changed, however many keys there are.
    pub async fn keys_after(&self, seen: i64, most: u32) -> Result<Vec<KeyRow>, StateError> {
        let query = "SELECT * FROM keys WHERE change > ? ORDER BY change LIMIT ?";
        Ok(sqlx::query_as(query)
            .bind(seen)
            .bind(most)
            .fetch_all(&self.pool)
            .await?)
    }

    pub async fn add_key(&self, key: &KeyRow) -> Result<(), StateError> {
        sqlx::query(
            "INSERT INTO keys (id, secret_hash, agent, tenant, access, view, limits, created_ms, created_by, expires_ms) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&key.id)
        .bind(&key.secret_hash)
        .bind(&key.agent)
        .bind(&key.tenant)
        .bind(&key.access)
        .bind(&key.view)
        .bind(&key.limits)
        .bind(key.created_ms)
        .bind(&key.created_by)
        .bind(key.expires_ms)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    pub async fn key(&self, id: &str) -> Result<Option<KeyRow>, StateError> {
        Ok(sqlx::query_as("SELECT * FROM keys WHERE id = ?")
            .bind(id)
            .fetch_optional(&self.pool)
            .await?)
    }

    /// Revokes one key alone. A key revoked before keeps its time.
    pub async fn revoke_key(&self, id: &str, at_ms: i64) -> Result<(), StateError> {
        let update = "UPDATE keys SET revoked_ms = coalesce(revoked_ms, ?) WHERE id = ?";
        let done = sqlx::query(update)
            .bind(at_ms)
            .bind(id)
            .execute(&self.pool)
            .await?;
        if done.rows_affected() == 0 {
            Err(StateError::Unknown("key"))
        } else {
            Ok(())
        }
    }

    pub async fn admins(&self) -> Result<Vec<AdminRow>, StateError> {
        Ok(
            sqlx::query_as("SELECT * FROM admins ORDER BY created_ms, id")
                .fetch_all(&self.pool)
                .await?,
        )
    }

    pub async fn add_admin(&self, admin: &AdminRow) -> Result<(), StateError> {
        insert(admin, &self.pool).await
    }

    /// Adds the admin only where none was ever made: of several processes starting at once, one does.
    pub async fn add_first_admin(&self, admin: &AdminRow) -> Result<bool, StateError> {
        let mut change = self.change().await?;
        let (there,): (i64,) = sqlx::query_as("SELECT count(*) FROM admins")
            .fetch_one(&mut *change)
            .await?;
        if there > 0 {
            return Ok(false);
        }
        insert(admin, &mut *change).await?;
        change.commit().await?;
        Ok(true)
    }

    pub async fn revoke_admin(&self, id: &str, at_ms: i64) -> Result<(), StateError> {
        let update = "UPDATE admins SET revoked_ms = coalesce(revoked_ms, ?) WHERE id = ?";
        let done = sqlx::query(update)
            .bind(at_ms)
            .bind(id)
            .execute(&self.pool)
            .await?;
        if done.rows_affected() == 0 {
            Err(StateError::Unknown("admin key"))
        } else {
            Ok(())
        }
    }
}

async fn insert<'e>(admin: &AdminRow, to: impl SqliteExecutor<'e>) -> Result<(), StateError> {
    sqlx::query("INSERT INTO admins (id, secret_hash, name, role, created_ms, created_by) VALUES (?, ?, ?, ?, ?, ?)")
        .bind(&admin.id)
        .bind(&admin.secret_hash)
        .bind(&admin.name)
        .bind(admin.role)
        .bind(admin.created_ms)
        .bind(&admin.created_by)
        .execute(to)
        .await?;
    Ok(())
}
