//! The rights that ended before their time: keys that were revoked, sessions that were signed out, links and approvals that were used,
//! accounts that were removed. The database notes them by its triggers, and each process reads the notes. Where another database takes
//! over that has not received an end, the right ends again there, before anything is read from it.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use sqlx::{Connection as _, PgConnection, PgPool};

use super::in_time;
use crate::StateError;

/// The rows that are read at once.
const PAGE: i64 = 4096;
/// The time for which the end is known of a right that would not have ended by itself.
pub(crate) const KEPT_MS: i64 = 30 * 24 * 3600 * 1000;
/// The status of a plan that may be used again.
const APPROVED: &str = "approved";

/// For each kind of right, the statement that ends those whose end is noted.
const END_AGAIN: [(&str, &str); 6] = [
    (
        "key",
        "UPDATE keys SET revoked_ms = endings.at_ms FROM endings \
         WHERE endings.kind = 'key' AND endings.id = keys.id AND keys.revoked_ms IS NULL",
    ),
    (
        "admin",
        "UPDATE admins SET revoked_ms = endings.at_ms FROM endings \
         WHERE endings.kind = 'admin' AND endings.id = admins.id AND admins.revoked_ms IS NULL",
    ),
    (
        "session",
        "DELETE FROM sessions USING endings WHERE endings.kind = 'session' AND endings.id = sessions.id",
    ),
    (
        "plan",
        "UPDATE plans SET status = endings.status, sealed = NULL, reason = NULL, \
         decided_ms = coalesce(plans.decided_ms, endings.at_ms) FROM endings \
         WHERE endings.kind = 'plan' AND endings.id = plans.id AND plans.status IN ('pending', 'approved') \
         AND endings.status NOT IN ('pending', 'approved')",
    ),
    (
        "account",
        "DELETE FROM accounts USING endings WHERE endings.kind = 'account' \
         AND endings.id = concat(accounts.number, ' ', accounts.created_ms)",
    ),
    (
        "connect_link",
        "DELETE FROM connect_links USING endings WHERE endings.kind = 'connect_link' \
         AND endings.id = encode(connect_links.hash, 'hex')",
    ),
];

/// The rights that this process has seen end.
#[derive(Debug, Default)]
pub(crate) struct EndedRights(Mutex<SeenEndings>);

#[derive(Debug, Default)]
struct SeenEndings {
    rights: HashMap<RightId, RightEnding>,
    /// The number of the last note that was read.
    number: i64,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RightId {
    kind: String,
    id: String,
}

#[derive(Debug)]
struct RightEnding {
    status: String,
    at_ms: i64,
    until_ms: i64,
}

/// A row of the table: kind, id, status, times and number.
type EndingRow = (String, String, String, i64, i64, i64);

/// Endings by their columns, as one statement takes them.
#[derive(Default)]
struct EndingColumns {
    kinds: Vec<String>,
    ids: Vec<String>,
    statuses: Vec<String>,
    at_ms: Vec<i64>,
    until_ms: Vec<i64>,
}

impl EndedRights {
    /// Reads the endings that were noted since the last time.
    pub(crate) async fn take_over(&self, pool: &PgPool) -> Result<(), StateError> {
        let query = "SELECT kind, id, status, at_ms, until_ms, change FROM endings \
                     WHERE change > $1 ORDER BY change LIMIT $2";
        loop {
            let seen = self.0.lock().number;
            let read = sqlx::query_as(query).bind(seen).bind(PAGE).fetch_all(pool);
            let rows: Vec<EndingRow> = in_time(read).await?;
            let is_all = rows.len() < PAGE as usize;
            self.0.lock().add(rows, seen);
            if is_all {
                return Ok(());
            }
        }
    }

    /// Adds keys that a copy of the database knows to be revoked: kind, id, and the time.
    pub(crate) fn add_revoked(&self, keys: Vec<(String, String, i64)>) {
        let revoked = keys.into_iter().map(|(kind, id, at_ms)| {
            let ending = RightEnding {
                status: String::new(),
                at_ms,
                until_ms: at_ms.saturating_add(KEPT_MS),
            };
            (RightId { kind, id }, ending)
        });
        self.0.lock().rights.extend(revoked);
    }

    /// Ends the rights again that are there although they had ended.
    pub(crate) async fn end_in(&self, pool: &PgPool) -> Result<(), StateError> {
        in_time(async {
            let mut connection = pool.acquire().await?;
            self.end_again(&mut connection).await
        })
        .await
    }

    /// Does the same by a connection that nothing else is asked on yet.
    pub(super) async fn end_again(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let known = self.0.lock().columns();
        let mut change = connection.begin().await?;
        sqlx::query("SELECT n FROM generation FOR UPDATE")
            .execute(&mut *change)
            .await?;
        let count = "UPDATE ending_changes SET n = n + $1 RETURNING n - $1";
        let number: i64 = sqlx::query_scalar(count)
            .bind(known.ids.len() as i64)
            .fetch_one(&mut *change)
            .await?;
        let note = "INSERT INTO endings (kind, id, status, at_ms, until_ms, change) \
                    SELECT kind, id, status, at_ms, until_ms, $6 + place \
                    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) \
                    WITH ORDINALITY AS known (kind, id, status, at_ms, until_ms, place) \
                    ON CONFLICT (kind, id) DO UPDATE SET status = excluded.status, change = excluded.change \
                    WHERE endings.status <> excluded.status";
        sqlx::query(note)
            .bind(known.kinds)
            .bind(known.ids)
            .bind(known.statuses)
            .bind(known.at_ms)
            .bind(known.until_ms)
            .bind(number)
            .execute(&mut *change)
            .await?;
        for (kind, end) in END_AGAIN {
            let ended = sqlx::query(end).execute(&mut *change).await?;
            let count = ended.rows_affected();
            if count > 0 {
                tracing::error!(
                    kind,
                    count,
                    "the database did not know that these rights had ended: they have ended there too"
                );
            }
        }
        change.commit().await?;
        self.0.lock().number = 0; // its numbers may be others
        Ok(())
    }
}

impl SeenEndings {
    /// Adds rows that were read after a number, unless all are read anew meanwhile.
    fn add(&mut self, rows: Vec<EndingRow>, after: i64) {
        let now_ms = now_ms();
        self.rights.retain(|_, ending| ending.until_ms > now_ms);
        let is_anew = self.number != after;
        for (kind, id, status, at_ms, until_ms, change) in rows {
            let right = RightId { kind, id };
            let ending = RightEnding {
                status,
                at_ms,
                until_ms,
            };
            match ending.status == APPROVED {
                true => self.rights.remove(&right),
                false => self.rights.insert(right, ending),
            };
            if !is_anew {
                self.number = change;
            }
        }
    }

    fn columns(&self) -> EndingColumns {
        let mut columns = EndingColumns::default();
        for (right, ending) in &self.rights {
            columns.kinds.push(right.kind.clone());
            columns.ids.push(right.id.clone());
            columns.statuses.push(ending.status.clone());
            columns.at_ms.push(ending.at_ms);
            columns.until_ms.push(ending.until_ms);
        }
        columns
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
