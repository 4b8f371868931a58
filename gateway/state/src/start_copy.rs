//! A node's copy of the state in its own state folder, in the tables of SQLite. A start without the database reads from it until
//! the database is reachable.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::{Instant, sleep};

use crate::{
    GatewayState, StateError,
    copy_mark::{CopyMark, MarkedCopy},
    engine::{ServerEngine, StateEngine, sql},
    server::{self, ServerAddress, ServerTimeline, endings},
};

/// The time between two looks whether the copy lacks something.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The time after which it is noted again that the copy lacks nothing.
const MARK_INTERVAL: Duration = Duration::from_secs(5);
/// A copy is made again after this many times the duration of the last one, since it may be large.
const PAUSE_TIMES: u32 = 4;
/// The copy is known to be whole while the last look is as young as this.
const LOOKED_MAX: Duration = Duration::from_secs(5);
/// The marked copy is in one of these, and the next one is made in the other.
const FOLDERS: [&str; 2] = ["copy-0", "copy-1"];

impl GatewayState {
    /// Opens the state in a database for a process that serves. If the server is unreachable, and this machine has a copy that
    /// was known to be complete less than `stale_max` ago, reads come from the copy until the server is reached.
    pub async fn connect_to_serve(
        address: &ServerAddress,
        folder: &Path,
        stale_max: Duration,
    ) -> Result<Self, StateError> {
        let away = match Self::connect(address, folder).await {
            Ok(mut state) => {
                let mark = open_mark(folder, stale_max);
                if let Some(copy) = mark.as_ref().and_then(CopyMark::copy)
                    && let Err(error) = state.end_known_by(&copy).await
                {
                    tracing::warn!(%error, "keys were not compared with those revoked in this machine's copy");
                }
                // A copy is not worth a start that fails.
                state.mark = mark.filter(|mark| mark.give_up().is_ok());
                return Ok(state);
            }
            Err(error) if error.is_away() => error,
            Err(error) => return Err(error),
        };
        let Some(mark) = open_mark(folder, stale_max) else {
            return Err(away);
        };
        let copy = mark.copy();
        let young = copy.and_then(|copy| Some((copy.age().filter(|age| *age < stale_max)?, copy)));
        let Some((age, copy)) = young else {
            return Err(away);
        };
        let Ok(opened) = Self::open_to_read(&folder.join(&copy.folder)).await else {
            return Err(away);
        };
        let is_whole = matches!(opened.generation().await, Ok(number) if number == copy.number);
        let (StateEngine::Sqlite(rows), true) = (opened.engine, is_whole) else {
            return Err(away);
        };
        let Some(known) = Instant::now().checked_sub(age) else {
            return Err(away);
        };
        tracing::error!(
            error = %away,
            age_s = age.as_secs(),
            "started from the copy of the state on this machine"
        );
        let timeline = Arc::new(ServerTimeline::known(copy.timeline.clone()));
        let pool = server::open_later(address, &timeline);
        let engine = StateEngine::Postgresql(ServerEngine::with_copy(pool, rows));
        let mut state = Self::new(engine, folder);
        state.address = Some(address.clone());
        state.timeline = timeline;
        state.mark = Some(mark);
        state.set_looked(copy.number, known);
        // The server that was reached may be a different one, where they are not revoked.
        let Ok(revoked) = state.revoked_lately().await else {
            return Err(away);
        };
        state.timeline.endings().add_revoked(revoked);
        Ok(state)
    }

    /// Ends the keys again that are revoked in a copy, if it comes from another server or has a change that this one lacks.
    async fn end_known_by(&self, copy: &MarkedCopy) -> Result<(), StateError> {
        let StateEngine::Postgresql(server) = &self.engine else {
            return Ok(());
        };
        if copy.timeline == self.timeline.last() && copy.number <= self.generation().await? {
            return Ok(());
        }
        let opened = Self::open_to_read(&self.folder.join(&copy.folder)).await?;
        let endings = self.timeline.endings();
        endings.add_revoked(opened.revoked_lately().await?);
        endings.end_in(&server.pool).await?;
        Ok(())
    }

    /// Returns the keys of agents and admins that were revoked lately: kind, id, and the time.
    async fn revoked_lately(&self) -> Result<Vec<(String, String, i64)>, StateError> {
        let query = "SELECT 'key' AS kind, id, revoked_ms FROM keys WHERE revoked_ms > $1 \
                     UNION ALL SELECT 'admin' AS kind, id, revoked_ms FROM admins WHERE revoked_ms > $1";
        let now_ms = i64::try_from(now_ms()).unwrap_or(i64::MAX);
        let keys = sql(query).bind(now_ms - endings::KNOWN_MS);
        keys.fetch_all(&self.engine).await
    }

    /// Returns `true` while reads come from this machine's copy, since the database was not reached yet.
    pub fn reads_copy(&self) -> bool {
        matches!(&self.engine, StateEngine::Postgresql(server) if server.copy().is_some())
    }

    /// Returns how many nodes there were when the copy was made that this process started from.
    pub fn nodes_of_copy(&self) -> Option<usize> {
        let copy = self.mark.as_ref().filter(|_| self.reads_copy())?.copy()?;
        Some(copy.nodes)
    }

    /// Maintains the copy of this machine until the task ends. Without a mark there is no copy.
    pub async fn keep_copy(&self) {
        let Some(mark) = &self.mark else {
            return;
        };
        let (mut next, mut is_failing) = (Instant::now(), false);
        loop {
            let looked = self.since_look();
            let is_marked = mark
                .copy()
                .is_some_and(|copy| copy.number >= self.looked_number());
            let kept = match (is_marked, looked < LOOKED_MAX && !self.reads_copy()) {
                (true, true) => self.mark_again(mark, looked),
                (false, true) if next <= Instant::now() => {
                    let began = Instant::now();
                    let made = self.make_copy(mark).await;
                    next = Instant::now() + began.elapsed() * PAUSE_TIMES;
                    made
                }
                _ => Ok(()),
            };
            if let (Err(error), false) = (&kept, is_failing) {
                tracing::warn!(%error, "a start without the database is not possible: this machine has no copy of the state");
            }
            is_failing = kept.is_err();
            let _ = self.keep_waiting_builds().await; // tried again in a moment
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// Notes that nothing has changed since the copy was made.
    fn mark_again(&self, mark: &CopyMark, looked: Duration) -> Result<(), StateError> {
        let is_old = |copy: MarkedCopy| copy.age().is_none_or(|age| age > MARK_INTERVAL);
        if !mark.copy().is_some_and(is_old) {
            return Ok(());
        }
        let known_ms = now_ms().saturating_sub(milliseconds(looked));
        mark.set_again(known_ms).map_err(failed)
    }

    async fn make_copy(&self, mark: &CopyMark) -> Result<(), StateError> {
        let before = mark.copy().map(|copy| copy.folder);
        let name = FOLDERS
            .iter()
            .find(|name| before.as_deref() != Some(**name));
        let name = name.unwrap_or(&FOLDERS[0]);
        let folder = self.folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(failed)?;
        }
        let known_ms = now_ms();
        let copy = Self::open(&folder).await?;
        // One that begins in the meantime makes the copy one of an earlier server.
        let timeline = self.timeline.last();
        let number = self.copy_to_start(&copy).await?;
        let nodes = self.nodes().await?;
        if let StateEngine::Sqlite(file) = &copy.engine {
            file.close().await?; // what is in its log goes into the file
        }
        let copy = MarkedCopy {
            number,
            folder: (*name).to_owned(),
            timeline,
            nodes: nodes.iter().filter(|node| node.is_live()).count(),
            known_ms,
        };
        mark.set(copy).map_err(failed)?;
        if let Some(before) = before {
            let _ = fs::remove_dir_all(self.folder.join(before)); // it is made anew there before it is marked again
        }
        Ok(())
    }
}

/// Opens the mark of this machine's copy. If nothing may be served from memory, there is no copy either.
fn open_mark(folder: &Path, stale_max: Duration) -> Option<CopyMark> {
    if stale_max.is_zero() {
        return None;
    }
    let mark = CopyMark::open(folder);
    match &mark {
        Ok(Some(_)) => {}
        Ok(None) => tracing::warn!(
            "another process keeps the copy of this state folder: this process keeps none until it is restarted"
        ),
        Err(error) => tracing::warn!(%error, "this machine keeps no copy of the state"),
    }
    mark.ok().flatten()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, milliseconds)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn failed(error: std::io::Error) -> StateError {
    StateError::Database(error.into())
}
