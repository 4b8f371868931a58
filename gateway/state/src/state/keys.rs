//! Keys of agents and of admins. Secrets are stored only as hashes.

use super::GatewayState;
use crate::{
    AdminRow, KeyRow, Role, StateError,
    columns::from_row,
    engine::{QueryTarget, StateChange, sql},
};

const REVOKE_ADMIN: &str = "UPDATE admins SET revoked_ms = coalesce(revoked_ms, $1) WHERE id = $2";

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
    approves,
    created_ms,
    created_by,
    revoked_ms
});

impl GatewayState {
    /// Returns all keys that ever were, by id.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, StateError> {
        sql("SELECT * FROM keys ORDER BY created_ms, id")
            .fetch_all(&self.engine)
            .await
    }

    /// Returns the keys that changed after the change `seen`, in the order of their changes, at most `most`. The cost
    /// is that of what changed, however many keys there are.
    pub async fn keys_after(&self, seen: i64, most: u32) -> Result<Vec<KeyRow>, StateError> {
        let query = "SELECT * FROM keys WHERE change > $1 ORDER BY change LIMIT $2";
        sql(query)
            .bind(seen)
            .bind(most)
            .fetch_all(&self.engine)
            .await
    }

    /// Adds an agent's key. `Err` also means that its id is taken.
    pub async fn add_key(&self, key: &KeyRow) -> Result<(), StateError> {
        sql(
            "INSERT INTO keys (id, secret_hash, agent, tenant, access, view, limits, created_ms, created_by, expires_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
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
        .execute(&self.engine)
        .await?;
        Ok(())
    }

    /// Returns the number of the last change of a key.
    pub async fn last_key_change(&self) -> Result<i64, StateError> {
        sql("SELECT n FROM key_changes")
            .fetch_value(&self.engine)
            .await
    }

    /// Returns an agent's key by its id, revoked ones too.
    pub async fn key(&self, id: &str) -> Result<Option<KeyRow>, StateError> {
        sql("SELECT * FROM keys WHERE id = $1")
            .bind(id)
            .fetch_optional(&self.engine)
            .await
    }

    /// Revokes a single key. A key revoked before keeps its time.
    pub async fn revoke_key(&self, id: &str, at_ms: i64) -> Result<(), StateError> {
        let update = "UPDATE keys SET revoked_ms = coalesce(revoked_ms, $1) WHERE id = $2";
        revoke(update, "key", id, at_ms, &self.engine).await
    }

    /// Returns all admin keys, the oldest first, revoked ones too.
    pub async fn admins(&self) -> Result<Vec<AdminRow>, StateError> {
        let query = "SELECT admins.*, EXISTS (SELECT 1 FROM approvers WHERE approvers.admin = admins.id) AS approves \
                     FROM admins ORDER BY created_ms, id";
        sql(query).fetch_all(&self.engine).await
    }

    /// Adds an admin key. `Err` also means that its id is taken.
    pub async fn add_admin(&self, admin: &AdminRow) -> Result<(), StateError> {
        let mut change = self.change().await?;
        insert(admin, &mut change).await?;
        change.commit().await
    }

    /// Adds the admin only if none was ever made: of several processes starting at once, one does.
    pub async fn add_first_admin(&self, admin: &AdminRow) -> Result<bool, StateError> {
        let mut change = self.change().await?;
        let (there,): (i64,) = sql("SELECT count(*) FROM admins")
            .fetch_one(&mut change)
            .await?;
        if there > 0 {
            return Ok(false);
        }
        insert(admin, &mut change).await?;
        change.commit().await?;
        Ok(true)
    }

    /// Revokes an admin key, even the last one of an operator. A key revoked before keeps its time. Returns
    /// [`StateError::Unknown`] if there is no such key.
    pub async fn revoke_admin(&self, id: &str, at_ms: i64) -> Result<(), StateError> {
        revoke(REVOKE_ADMIN, "admin key", id, at_ms, &self.engine).await
    }

    /// Revokes an admin key like [`revoke_admin`](Self::revoke_admin), unless it is the last one of an operator, and then
    /// returns `false`. If several processes revoke the last ones at once, one is kept.
    pub async fn revoke_spare_admin(&self, id: &str, at_ms: i64) -> Result<bool, StateError> {
        let mut change = self.change().await?;
        let query = "SELECT id FROM admins WHERE role = $1 AND revoked_ms IS NULL LIMIT 2";
        let operators: Vec<String> = sql(query)
            .bind(Role::Operator)
            .fetch_values(&mut change)
            .await?;
        if operators == [id] {
            return Ok(false);
        }
        revoke(REVOKE_ADMIN, "admin key", id, at_ms, &mut change).await?;
        change.commit().await?;
        Ok(true)
    }
}

async fn revoke<'t>(
    update: &'static str,
    kind: &'static str,
    id: &str,
    at_ms: i64,
    target: impl Into<QueryTarget<'t>>,
) -> Result<(), StateError> {
    let revoked = sql(update).bind(at_ms).bind(id).execute(target).await?;
    match revoked {
        0 => Err(StateError::Unknown(kind)),
        _ => Ok(()),
    }
}

async fn insert(admin: &AdminRow, change: &mut StateChange) -> Result<(), StateError> {
    sql("INSERT INTO admins (id, secret_hash, name, role, created_ms, created_by) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(&admin.id)
        .bind(&admin.secret_hash)
        .bind(&admin.name)
        .bind(admin.role)
        .bind(admin.created_ms)
        .bind(&admin.created_by)
        .execute(&mut *change)
        .await?;
    if admin.approves {
        sql("INSERT INTO approvers (admin) VALUES ($1)")
            .bind(&admin.id)
            .execute(change)
            .await?;
    }
    Ok(())
}
