//! The nodes that share a state in PostgreSQL. Each has a row with a lease, which it renews with every look for changes; the row
//! also states which changes it has applied, so that an admin learns when a change is in effect everywhere.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, OnceCell},
    time::{Instant, sleep, timeout},
};

use super::{
    GatewayState, LiveChange,
    clock::{CLOCK_OFFSET_MAX_MS, SharedClock, local_ms},
};
use crate::{
    NewNode, NodeRow, StateError,
    columns::from_row,
    engine::{QueryTarget, StateChange, StateEngine, sql},
    server::endings::NoteCheck,
};

/// The time for which a row counts its node as running.
const LEASE_MS: i64 = 5_000;
/// The time for which an admin's request waits until all nodes have a change.
const REACH_MAX: Duration = Duration::from_secs(5);
/// The same where a build of a plugin has to be compiled.
const BUILDS_MAX: Duration = Duration::from_secs(60);
/// The time between two looks at the nodes, which is short at first.
const REACH_INTERVAL_MIN: Duration = Duration::from_millis(2);
const REACH_INTERVAL_MAX: Duration = Duration::from_millis(15);
/// The bound on bringing the tables to this version, where the database was away at the start.
const MIGRATE_MAX: Duration = Duration::from_secs(60);
/// Rows of nodes that ended without a word are kept for a day.
const GONE_KEPT_MS: i64 = 24 * 3600 * 1000;
/// Before anything is applied.
const NOTHING: i64 = -1;
/// The time of the database, in milliseconds since 1970.
macro_rules! now_ms {
    () => {
        "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}

pub(super) use now_ms;

const NODES: &str = concat!(
    "SELECT *, ",
    now_ms!(),
    " AS now_ms FROM nodes ORDER BY name, started_ms"
);

from_row!(NodeRow {
    id,
    name,
    version,
    formats,
    configuration,
    started_ms,
    lease_ms,
    stale_ms,
    seen,
    builds,
    now_ms
});

/// The part of a change that a part of the process must apply.
#[derive(Clone, Copy, Debug)]
pub enum FeedPart {
    Keys,
    Contracts,
}

/// This process as a node.
pub(super) struct OwnNode {
    row: OnceCell<NewNode>,
    taken: [AtomicI64; 2],
    noting: Mutex<()>,
    builds: AtomicI64,
    looked: Mutex<Instant>,
    pub(super) clock: Arc<SharedClock>,
    /// The number that the last look found.
    number: AtomicI64,
    /// Wakes the task that reports the last change applied.
    pub(super) moved: Notify,
}

impl Default for OwnNode {
    fn default() -> Self {
        Self {
            row: OnceCell::new(),
            taken: [AtomicI64::new(NOTHING), AtomicI64::new(NOTHING)],
            noting: Mutex::default(),
            builds: AtomicI64::new(0),
            looked: Mutex::new(Instant::now()),
            clock: Arc::default(),
            number: AtomicI64::new(NOTHING),
            moved: Notify::new(),
        }
    }
}

impl LiveChange {
    /// Returns the nodes, those that ended lately too. A state in a file has none.
    pub async fn nodes(&mut self) -> Result<Vec<NodeRow>, StateError> {
        match self.0 {
            StateChange::Sqlite(_) => Ok(Vec::new()),
            StateChange::Postgresql(_) => sql(NODES).fetch_all(&mut self.0).await,
        }
    }
}

impl GatewayState {
    /// Returns `true` if several machines may share this state.
    pub fn is_shared(&self) -> bool {
        !matches!(self.engine, StateEngine::Sqlite(_))
    }

    /// Makes this process a node, before it applies anything: from then on, others wait for it. A state in a file has no
    /// nodes. A machine whose clock is wrong does not join: keys would expire there at another time than elsewhere.
    pub async fn join(&self, node: NewNode) -> Result<(), StateError> {
        if !self.is_shared() {
            return Ok(());
        }
        if self.reads_copy() {
            let _ = self.node.row.set(node); // a process joins once
            return Ok(());
        }
        check_clock(&self.engine).await?;
        let forget = concat!(
            "DELETE FROM nodes WHERE lease_ms + stale_ms < ",
            now_ms!(),
            " - $1"
        );
        sql(forget).bind(GONE_KEPT_MS).execute(&self.engine).await?;
        if self.node.row.set(node).is_ok() {
            self.look().await?;
        }
        Ok(())
    }

    /// Removes this process from the nodes: it no longer serves anything. Its copy of the state is abandoned, since a
    /// change that others make from now on does not wait for this process.
    pub async fn leave(&self) -> Result<(), StateError> {
        let Some(node) = self.node.row.get() else {
            return Ok(());
        };
        let copy = match &self.mark {
            Some(mark) => mark.leave().map_err(copy_failed)?,
            None => None,
        };
        let delete = "DELETE FROM nodes WHERE id = $1";
        let left = sql(delete).bind(&node.id).execute(&self.engine).await;
        if let (Err(_), Some(mark), Some(copy)) = (&left, &self.mark, copy) {
            let _ = mark.stay(copy); // the others count this node as one that may serve
        }
        left.map(drop)
    }

    /// Returns the id of this process as a node.
    pub fn node_id(&self) -> Option<&str> {
        self.node.row.get().map(|node| node.id.as_str())
    }

    /// Notes that a part of this process has applied all changes up to a number.
    pub fn note_taken(&self, part: FeedPart, number: i64) {
        let _noting = self.node.noting.lock(); // of two parts at once, the later one sees the other
        let before = self.taken();
        self.node.taken[part as usize].store(number, Relaxed);
        if self.taken() != before {
            self.node.moved.notify_one();
        }
    }

    /// Returns the number up to which all parts of this process have applied changes.
    fn taken(&self) -> i64 {
        let taken = self.node.taken.iter().map(|taken| taken.load(Relaxed));
        taken.min().unwrap_or(NOTHING)
    }

    /// Notes that this process has applied all uploads of plugins up to a number.
    pub fn note_builds(&self, number: i64) {
        if self.node.builds.swap(number, Relaxed) != number {
            self.node.moved.notify_one();
        }
    }

    /// Reads the number of the last change. A node renews its lease with the same statement.
    pub(super) async fn look(&self) -> Result<i64, StateError> {
        let begun = Instant::now();
        self.reach_server().await?;
        let number = self.renew().await?;
        self.take_number(number).await?;
        *self.node.looked.lock() = begun;
        Ok(number)
    }

    /// Reads only the number of the last change, shortly after a full look: what a node writes has to reach the disk first.
    pub(super) async fn look_again(&self) -> Result<i64, StateError> {
        let number = self.generation().await?;
        self.take_number(number).await?;
        Ok(number)
    }

    /// Notes the number that a look found, and reads which rights have ended by then. If it is lower than an earlier one, or the
    /// last end that was read is missing, the database has less than this process: there, the rights end again.
    async fn take_number(&self, number: i64) -> Result<(), StateError> {
        let is_less = self.node.number.load(Relaxed) > number;
        let pool = match &self.engine {
            StateEngine::Postgresql(server) if server.copy().is_none() => &server.pool,
            _ => {
                if is_less {
                    self.timeline.note_move();
                }
                self.node.number.store(number, Relaxed);
                return Ok(());
            }
        };
        let endings = self.timeline.endings();
        let found = endings.compare(pool).await?;
        let is_other = match (is_less, found) {
            (true, _) | (_, NoteCheck::Fewer) => {
                endings.end_in(pool).await?;
                true
            }
            (_, NoteCheck::Doubtful) => endings.end_in(pool).await? > 0,
            (_, NoteCheck::Same | NoteCheck::New(_)) => false,
        };
        let mut number = number;
        if is_other {
            self.timeline.note_move();
            // The number may be that of the previous database.
            number = number.min(self.generation().await?);
        }
        self.node.number.store(number, Relaxed);
        match found {
            NoteCheck::Same if !is_other => Ok(()),
            NoteCheck::New(count) if !is_other => endings.take_over(pool, count).await,
            _ => endings.take_over(pool, 0).await,
        }
    }

    /// Returns how often the database was replaced by another one, or by an older state: all rows are then read again.
    pub fn fail_overs(&self) -> u64 {
        self.timeline.moves()
    }

    /// Returns the time since the last look that succeeded was begun.
    pub fn since_look(&self) -> Duration {
        self.node.looked.lock().elapsed()
    }

    /// Checks whether the server that was unreachable at the start can be reached: from then on, everything is read from it.
    async fn reach_server(&self) -> Result<(), StateError> {
        let StateEngine::Postgresql(server) = &self.engine else {
            return Ok(());
        };
        if server.copy().is_none() {
            return Ok(());
        }
        check_clock(QueryTarget::Server(&server.pool)).await?;
        // The tables may be those of an earlier version, as this process has not started on them.
        match timeout(MIGRATE_MAX, self.migrate(&server.pool)).await {
            Ok(migrated) => migrated?,
            Err(_) => {
                let why = "its tables were not brought to this version in time";
                return Err(StateError::Unreachable(why.to_owned()));
            }
        }
        self.timeline.endings().end_in(&server.pool).await?;
        server.end_copy();
        tracing::info!("the state is reached: this process is a node from now on");
        Ok(())
    }

    /// Notes what a copy knew, as if this process had looked then.
    pub(crate) fn set_looked(&self, number: i64, at: Instant) {
        self.node.number.store(number, Relaxed);
        *self.node.looked.lock() = at;
    }

    /// Returns the number that the last look found.
    pub(crate) fn looked_number(&self) -> i64 {
        self.node.number.load(Relaxed)
    }

    async fn renew(&self) -> Result<i64, StateError> {
        let Some(node) = self.node.row.get() else {
            if !self.is_shared() {
                self.look_at_sessions().await?;
            }
            return self.generation().await;
        };
        let seen = self.taken();
        if let Some(mark) = &self.mark {
            let timeline = self.timeline.last();
            mark.report(seen, timeline.as_deref())
                .map_err(copy_failed)?;
        }
        let renew = concat!(
            "INSERT INTO nodes (id, name, version, formats, configuration, started_ms, stale_ms, seen, builds, lease_ms) ",
            "VALUES ($1, $2, $3, $4, $5, ",
            now_ms!(),
            ", $6, $7, $8, ",
            now_ms!(),
            " + $9) ON CONFLICT (id) DO UPDATE SET lease_ms = excluded.lease_ms, seen = excluded.seen, \
             builds = excluded.builds RETURNING (SELECT n FROM generation), ",
            now_ms!()
        );
        let asked = Instant::now();
        let (number, there_ms): (i64, i64) = sql(renew)
            .bind(&node.id)
            .bind(&node.name)
            .bind(&node.version)
            .bind(&node.formats)
            .bind(&node.configuration)
            .bind(node.stale_ms)
            .bind(seen)
            .bind(self.node.builds.load(Relaxed))
            .bind(LEASE_MS)
            .fetch_one(&self.engine)
            .await?;
        self.node.clock.note(asked, there_ms);
        Ok(number)
    }

    /// Returns the nodes, those that ended lately too.
    pub async fn nodes(&self) -> Result<Vec<NodeRow>, StateError> {
        if !self.is_shared() {
            return Ok(Vec::new());
        }
        sql(NODES).fetch_all(&self.engine).await
    }

    /// Returns the ids of the nodes with a valid lease.
    pub async fn live_nodes(&self) -> Result<Vec<String>, StateError> {
        let query = concat!("SELECT id FROM nodes WHERE lease_ms > ", now_ms!());
        sql(query).fetch_values(&self.engine).await
    }

    /// Waits for at most five seconds until every node with a live lease has applied the last change. Returns the nodes that may
    /// still serve without it: those that did not apply it in time, and those that were cut off before.
    pub async fn await_everywhere(&self) -> Result<Vec<NodeRow>, StateError> {
        let number = self.generation().await?;
        self.await_nodes(REACH_MAX, |node| node.seen < number).await
    }

    /// Waits in the same way until every node has applied the last upload of a plugin, which it compiles first.
    pub async fn await_builds(&self) -> Result<Vec<NodeRow>, StateError> {
        let last = "SELECT coalesce(max(change), 0) FROM uploaded_builds";
        let number: i64 = sql(last).fetch_value(&self.engine).await?;
        self.await_nodes(BUILDS_MAX, |node| node.builds < number)
            .await
    }

    async fn await_nodes(
        &self,
        limit: Duration,
        lacks: impl Fn(&NodeRow) -> bool,
    ) -> Result<Vec<NodeRow>, StateError> {
        let end = Instant::now() + limit;
        let mut pause = REACH_INTERVAL_MIN;
        loop {
            let nodes = self.nodes().await?;
            let missing: Vec<NodeRow> = nodes
                .into_iter()
                .filter(|node| lacks(node) && node.stops_ms() > node.now_ms)
                .collect();
            if !missing.iter().any(NodeRow::is_live) || Instant::now() >= end {
                return Ok(missing);
            }
            sleep(pause).await;
            pause = (pause * 2).min(REACH_INTERVAL_MAX);
        }
    }
}

/// Compares the clock of this machine with that of the database. The time that the query took is counted in its favour.
async fn check_clock(target: impl Into<QueryTarget<'_>>) -> Result<(), StateError> {
    let asked = local_ms();
    let query = concat!("SELECT ", now_ms!());
    let there: i64 = sql(query).fetch_value(target).await?;
    let answered = local_ms();
    let ahead = (asked - there).max(0) - (there - answered).max(0);
    match ahead.abs() > CLOCK_OFFSET_MAX_MS {
        true => Err(StateError::Clock { ahead_ms: ahead }),
        false => Ok(()),
    }
}

fn copy_failed(error: std::io::Error) -> StateError {
    StateError::Database(error.into())
}
