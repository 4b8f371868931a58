//! Stores the settings of clients' sessions beyond their ids, for as long as an id is valid.

use super::GatewayState;
use crate::{
    ClientSessionRow, StateError,
    columns::from_row,
    engine::{StateChange, sql},
};

/// Sessions whose notes are kept: as many as a process holds at once. The oldest are removed.
const KEPT_MAX: u32 = 1 << 16;
/// The number of writes after which that is looked at.
const BOUND_INTERVAL: i64 = 64;

from_row!(ClientSessionRow {
    id,
    note,
    expires_ms,
    change
});

impl GatewayState {
    /// Writes notes, each made by `merge` from the current one, and forgets those that have expired at `now_ms`.
    pub async fn write_client_sessions(
        &self,
        ids: &[String],
        merge: impl Fn(&str, Option<&str>) -> String,
        now_ms: i64,
        expires_ms: i64,
    ) -> Result<(), StateError> {
        let mut change = self.engine.begin_counts().await?;
        // The number of the change goes to the feed and to the rows alike; its row is locked first.
        let number: i64 = sql("UPDATE session_changes SET n = n + 1 RETURNING n")
            .fetch_value(&mut change)
            .await?;
        sql("DELETE FROM client_sessions WHERE expires_ms <= $1")
            .bind(now_ms)
            .execute(&mut change)
            .await?;
        if number % BOUND_INTERVAL == 0 {
            drop_beyond(&mut change).await?;
        }
        for id in ids {
            let there: Option<String> = sql("SELECT note FROM client_sessions WHERE id = $1")
                .bind(id)
                .find_value(&mut change)
                .await?;
            let note = merge(id, there.as_deref());
            let write = "INSERT INTO client_sessions (id, note, expires_ms, change) VALUES ($1, $2, $3, $4) \
                         ON CONFLICT (id) DO UPDATE SET note = excluded.note, expires_ms = excluded.expires_ms, \
                         change = excluded.change";
            sql(write)
                .bind(id)
                .bind(&note)
                .bind(expires_ms)
                .bind(number)
                .execute(&mut change)
                .await?;
        }
        change.commit().await
    }

    /// Returns the notes that were written after a change and have not expired, in the order of the changes: at most `limit`,
    /// plus all that were written together with the last one.
    pub async fn client_sessions_after(
        &self,
        change: i64,
        now_ms: i64,
        limit: u32,
    ) -> Result<Vec<ClientSessionRow>, StateError> {
        let query = "SELECT * FROM client_sessions WHERE change > $1 AND expires_ms > $4 AND change <= coalesce((SELECT change FROM client_sessions \
                     WHERE change > $1 AND expires_ms > $4 ORDER BY change LIMIT 1 OFFSET $2), $3) ORDER BY change, id";
        sql(query)
            .bind(change)
            .bind(limit)
            .bind(i64::MAX)
            .bind(now_ms)
            .fetch_all(&self.engine)
            .await
    }
}

async fn drop_beyond(change: &mut StateChange) -> Result<(), StateError> {
    let beyond = "DELETE FROM client_sessions WHERE change <= (SELECT change FROM client_sessions ORDER BY change DESC LIMIT 1 OFFSET $1)";
    sql(beyond).bind(KEPT_MAX).execute(change).await?;
    Ok(())
}
