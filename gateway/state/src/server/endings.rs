//! The rights that ended before their time: keys that were revoked, sessions that were signed out, links and approvals that were used,
//! accounts that were removed. The database notes them by its triggers, and each process reads the notes. Where another database takes
//! over that has not received an end, the right ends again there, before anything is read from it.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use sqlx::{Connection as _, PgConnection, PgPool};

use super::{failure::code, in_time};
use crate::StateError;

/// The rows that are read at once.
const PAGE: i64 = 4096;
/// The rights that end again in one transaction. Each of them increments the numbers of changes, whose rows then have one more
/// version until the transaction ends.
const BATCH_MAX: usize = 500;
/// The ids that one line of the log names.
const LOGGED_MAX: usize = 20;
/// The time for which a process remembers an end: far longer than a standby lags behind.
pub(crate) const KNOWN_MS: i64 = 24 * 3600 * 1000;
/// The time for which the database keeps the end of a right that would not have expired on its own.
const KEPT_MS: i64 = 30 * 24 * 3600 * 1000;
/// The code of the error for a table that is not there.
const TABLE_ABSENT: &str = "42P01";

/// For each kind of right, the statement that ends those of the given ids whose end is noted. It returns what may be logged about
/// them: a link has only the hash of a secret.
const END_AGAIN: [(&str, &str); 6] = [
    (
        "key",
        "UPDATE keys SET revoked_ms = endings.at_ms FROM endings \
         WHERE endings.kind = 'key' AND endings.id = ANY($1) AND endings.id = keys.id \
         AND keys.revoked_ms IS NULL RETURNING keys.id",
    ),
    (
        "admin",
        "UPDATE admins SET revoked_ms = endings.at_ms FROM endings \
         WHERE endings.kind = 'admin' AND endings.id = ANY($1) AND endings.id = admins.id \
         AND admins.revoked_ms IS NULL RETURNING admins.id",
    ),
    (
        "session",
        "DELETE FROM sessions USING endings WHERE endings.kind = 'session' AND endings.id = ANY($1) \
         AND endings.id = sessions.id RETURNING sessions.id",
    ),
    (
        "plan",
        "UPDATE plans SET status = endings.status, sealed = NULL, reason = NULL, \
         decided_ms = coalesce(plans.decided_ms, endings.at_ms) FROM endings \
         WHERE endings.kind = 'plan' AND endings.id = ANY($1) AND endings.id = plans.id \
         AND plans.status IN ('pending', 'approved') AND endings.status NOT IN ('pending', 'approved') \
         RETURNING plans.id",
    ),
    (
        "account",
        "DELETE FROM accounts USING endings WHERE endings.kind = 'account' AND endings.id = ANY($1) \
         AND endings.id = concat(accounts.number, ' ', accounts.created_ms) \
         RETURNING CAST(accounts.number AS TEXT)",
    ),
    (
        "connect_link",
        "DELETE FROM connect_links USING endings WHERE endings.kind = 'connect_link' AND endings.id = ANY($1) \
         AND endings.id = encode(connect_links.hash, 'hex') RETURNING ''",
    ),
];
/// Finds which of the known endings the database lacks. Only a plan has several: the newer one counts, and of two at once the one
/// that ends the plan.
const FIND_MISSING: &str = "SELECT known.place \
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) \
    WITH ORDINALITY AS known (kind, id, status, at_ms, place) \
    LEFT JOIN endings ON endings.kind = known.kind AND endings.id = known.id \
    WHERE endings.id IS NULL OR (known.kind = 'plan' AND (known.at_ms > endings.at_ms \
    OR (known.at_ms = endings.at_ms AND endings.status = 'approved' AND known.status <> 'approved')))";
const NOTE_MISSING: &str = "INSERT INTO endings (kind, id, status, at_ms, until_ms, change) \
    SELECT kind, id, status, at_ms, until_ms, $6 + place \
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) \
    WITH ORDINALITY AS known (kind, id, status, at_ms, until_ms, place) \
    ON CONFLICT (kind, id) DO NOTHING";
const NOTE_MISSING_PLANS: &str = "INSERT INTO endings (kind, id, status, at_ms, until_ms, change) \
    SELECT kind, id, status, at_ms, until_ms, $6 + place \
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) \
    WITH ORDINALITY AS known (kind, id, status, at_ms, until_ms, place) \
    ON CONFLICT (kind, id) DO UPDATE SET status = excluded.status, at_ms = excluded.at_ms, \
    until_ms = excluded.until_ms, change = excluded.change \
    WHERE excluded.at_ms > endings.at_ms \
    OR (excluded.at_ms = endings.at_ms AND endings.status = 'approved' AND excluded.status <> 'approved')";

/// The rights that this process has seen end.
#[derive(Debug, Default)]
pub(crate) struct EndedRights(Mutex<SeenEndings>);

#[derive(Debug, Default)]
struct SeenEndings {
    rights: HashMap<RightId, RightEnding>,
    /// The number up to which notes were read.
    number: i64,
    /// The last note that was read: a database without it is not the one that it was read from.
    last: Option<LastNote>,
    /// Whether rights have still to end again.
    is_ending_again: bool,
}

#[derive(Clone, Debug)]
struct LastNote {
    right: RightId,
    status: String,
    until_ms: i64,
    change: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RightId {
    kind: String,
    id: String,
}

#[derive(Clone, Debug)]
struct RightEnding {
    /// What became of a plan. One that was given back is approved again, and has not ended.
    status: String,
    at_ms: i64,
    until_ms: i64,
}

/// The notes of the database, compared with those that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteCheck {
    /// There are no other notes, or no table of them.
    Same,
    /// There are others, up to a number.
    New(i64),
    /// The last one that was read was rewritten: by rights that ended again, or since a plan came and went.
    Doubtful,
    /// The last one that was read is not there.
    Fewer,
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
    /// Compares the notes of the database with those that were read. Their number alone is not enough: rights that end again
    /// in a database after a fail-over change it too.
    pub(crate) async fn compare(&self, pool: &PgPool) -> Result<NoteCheck, StateError> {
        let (number, last, is_ending_again) = {
            let seen = self.0.lock();
            (seen.number, seen.last.clone(), seen.is_ending_again)
        };
        let query = "SELECT ending_changes.n, endings.change, endings.status, \
                     CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) \
                     FROM ending_changes LEFT JOIN endings ON endings.kind = $1 AND endings.id = $2";
        let right = last.as_ref().map(|last| &last.right);
        let read = sqlx::query_as(query)
            .bind(right.map(|right| right.kind.as_str()))
            .bind(right.map(|right| right.id.as_str()))
            .fetch_one(pool);
        let found: Option<(i64, Option<i64>, Option<String>, i64)> =
            in_time(async { there(read.await) }).await?;
        let Some((count, change, status, now_ms)) = found else {
            return Ok(NoteCheck::Same);
        };
        if is_ending_again || count < number {
            return Ok(NoteCheck::Fewer);
        }
        if let Some(last) = last {
            match change {
                None if last.until_ms > now_ms => return Ok(NoteCheck::Fewer),
                Some(change) if change < last.change => return Ok(NoteCheck::Fewer),
                Some(change) if change > last.change && status == Some(last.status) => {
                    return Ok(NoteCheck::Doubtful);
                }
                _ => {}
            }
        }
        Ok(match count > number {
            true => NoteCheck::New(count),
            false => NoteCheck::Same,
        })
    }

    /// Reads the endings that were noted since the last time. All endings up to `count` exist.
    pub(crate) async fn take_over(&self, pool: &PgPool, count: i64) -> Result<(), StateError> {
        let query = "SELECT kind, id, status, at_ms, until_ms, change FROM endings \
                     WHERE change > $1 AND at_ms > $2 ORDER BY change LIMIT $3";
        loop {
            let seen = self.0.lock().number;
            let read = sqlx::query_as(query)
                .bind(seen)
                .bind(now_ms() - KNOWN_MS)
                .bind(PAGE)
                .fetch_all(pool);
            let rows: Option<Vec<EndingRow>> = in_time(async { there(read.await) }).await?;
            let rows = rows.unwrap_or_default();
            let is_all = rows.len() < PAGE as usize;
            self.0
                .lock()
                .add(rows, seen, if is_all { count } else { 0 });
            if is_all {
                return Ok(());
            }
        }
    }

    /// Adds keys that are revoked in a copy of the database: kind, id, and the time.
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

    /// Ends the rights again that exist although they had ended. Returns how many ends the database lacked.
    pub(crate) async fn end_in(&self, pool: &PgPool) -> Result<usize, StateError> {
        in_time(async {
            let mut connection = pool.acquire().await?;
            self.end_again(&mut connection).await
        })
        .await
    }

    /// Does the same on a connection that is not used for anything else yet. If it is cut off, the rights that have ended by then
    /// remain so, and the next run continues from there.
    pub(super) async fn end_again(
        &self,
        connection: &mut PgConnection,
    ) -> Result<usize, sqlx::Error> {
        let known = {
            let mut seen = self.0.lock();
            seen.is_ending_again = true;
            seen.known()
        };
        // Without the table they end as soon as it exists.
        let Some(mut missing) = there(find_missing(connection, known).await)? else {
            return Ok(0);
        };
        missing.sort_by(|(one, _), (other, _)| one.kind.cmp(&other.kind));
        let of_one_kind = missing.chunk_by(|(one, _), (other, _)| one.kind == other.kind);
        for batch in of_one_kind.flat_map(|of_kind| of_kind.chunks(BATCH_MAX)) {
            let kind = batch[0].0.kind.as_str();
            let ended = end_batch(connection, kind, batch).await?;
            log_ended(kind, &ended);
        }
        let mut seen = self.0.lock();
        (seen.number, seen.last) = (0, None); // its numbers may be others
        seen.is_ending_again = false;
        Ok(missing.len())
    }
}

/// Returns `None` if the database has no table of endings: its tables are those of an earlier version.
fn there<T>(read: Result<T, sqlx::Error>) -> Result<Option<T>, sqlx::Error> {
    match read {
        Err(error) if code(&error).as_deref() == Some(TABLE_ABSENT) => Ok(None),
        read => read.map(Some),
    }
}

async fn find_missing(
    connection: &mut PgConnection,
    known: Vec<(RightId, RightEnding)>,
) -> Result<Vec<(RightId, RightEnding)>, sqlx::Error> {
    let columns = EndingColumns::new(&known);
    let places: Vec<i64> = sqlx::query_scalar(FIND_MISSING)
        .bind(columns.kinds)
        .bind(columns.ids)
        .bind(columns.statuses)
        .bind(columns.at_ms)
        .fetch_all(connection)
        .await?;
    let ending = |place: i64| known.get(usize::try_from(place - 1).ok()?).cloned();
    Ok(places.into_iter().filter_map(ending).collect())
}

/// Notes endings of one kind, and ends the rights, in one transaction. Returns the ids of the rights that existed.
async fn end_batch(
    connection: &mut PgConnection,
    kind: &str,
    batch: &[(RightId, RightEnding)],
) -> Result<Vec<String>, sqlx::Error> {
    let known = EndingColumns::new(batch);
    let mut change = connection.begin().await?;
    sqlx::query("SELECT n FROM generation FOR UPDATE")
        .execute(&mut *change)
        .await?;
    let count = "UPDATE ending_changes SET n = n + $1 RETURNING n - $1";
    let number: i64 = sqlx::query_scalar(count)
        .bind(batch.len() as i64)
        .fetch_one(&mut *change)
        .await?;
    let note = match kind {
        "plan" => NOTE_MISSING_PLANS,
        _ => NOTE_MISSING,
    };
    sqlx::query(note)
        .bind(known.kinds)
        .bind(&known.ids)
        .bind(known.statuses)
        .bind(known.at_ms)
        .bind(known.until_ms)
        .bind(number)
        .execute(&mut *change)
        .await?;
    // A kind from a later version is noted for the nodes that support it.
    let end = END_AGAIN.iter().find(|(known, _)| *known == kind);
    let ended = match end {
        Some((_, end)) => {
            let end = sqlx::query_scalar(*end).bind(&known.ids);
            end.fetch_all(&mut *change).await?
        }
        None => Vec::new(),
    };
    change.commit().await?;
    Ok(ended)
}

fn log_ended(kind: &str, ended: &[String]) {
    if ended.is_empty() {
        return;
    }
    let named = ended.iter().filter(|id| !id.is_empty()).take(LOGGED_MAX);
    let ids = named.map(String::as_str).collect::<Vec<_>>().join(", ");
    tracing::error!(
        kind,
        count = ended.len(),
        ids,
        "the database did not have the end of these rights: they have ended there too"
    );
}

impl SeenEndings {
    /// Adds rows that were read after a number, unless all are read again in the meantime. Those up to `count` are among them.
    fn add(&mut self, rows: Vec<EndingRow>, after: i64, count: i64) {
        let is_anew = self.number != after;
        let has_rows = !rows.is_empty();
        for (kind, id, status, at_ms, until_ms, change) in rows {
            let right = RightId { kind, id };
            if !is_anew {
                self.number = change;
                self.last = Some(LastNote {
                    right: right.clone(),
                    status: status.clone(),
                    until_ms,
                    change,
                });
            }
            let ending = RightEnding {
                status,
                at_ms,
                until_ms,
            };
            self.rights.insert(right, ending);
        }
        if !is_anew {
            self.number = self.number.max(count);
        }
        if has_rows {
            let now_ms = now_ms();
            self.rights.retain(|_, ending| ending.is_known(now_ms));
        }
    }

    fn known(&self) -> Vec<(RightId, RightEnding)> {
        let now_ms = now_ms();
        let known = self.rights.iter();
        let known = known.filter(|(_, ending)| ending.is_known(now_ms));
        known
            .map(|(right, ending)| (right.clone(), ending.clone()))
            .collect()
    }
}

impl RightEnding {
    fn is_known(&self, now_ms: i64) -> bool {
        self.until_ms > now_ms && self.at_ms > now_ms - KNOWN_MS
    }
}

impl EndingColumns {
    fn new(endings: &[(RightId, RightEnding)]) -> Self {
        let mut columns = Self::default();
        for (right, ending) in endings {
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
