//! Sessions with one server: opened on use, kept while they are good.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sqlx::mysql::MySqlConnectOptions;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{super::refused, CLEANUP_MAX, session::MysqlSession};
use crate::{Code, ConnectionError};

const CONNECT_MAX: Duration = Duration::from_secs(2);
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// The time for which callers are answered at once after a server that did not even refuse.
const UNREACHABLE_FOR: Duration = Duration::from_millis(500);
const IDLE_MAX: Duration = Duration::from_secs(300);

pub(super) struct SessionPool {
    address: MySqlConnectOptions,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<(MysqlSession, Instant)>>,
    unreachable_until: Mutex<Option<Instant>>,
}

/// One of the pool's turns, and the session it is taken with. When it is dropped, a session at rest goes back, and one
/// in the middle of something is ended by a task, which keeps the turn until the server has been asked to.
pub(super) struct HeldSession {
    pool: Arc<SessionPool>,
    turn: Option<OwnedSemaphorePermit>,
    session: Option<MysqlSession>,
    /// The session was used before, so the server may have gone since.
    is_reused: bool,
}

impl SessionPool {
    pub(super) fn new(address: MySqlConnectOptions, size: usize) -> Self {
        Self {
            address,
            turns: Arc::new(Semaphore::new(size)),
            idle: Mutex::default(),
            unreachable_until: Mutex::default(),
        }
    }

    pub(super) async fn turn(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<HeldSession, ConnectionError> {
        let until = deadline.min(Instant::now() + TURN_WAIT_MAX);
        let turn = self.turns.clone().acquire_owned();
        match tokio::time::timeout_at(until.into(), turn).await {
            Ok(Ok(turn)) => Ok(HeldSession {
                pool: self.clone(),
                turn: Some(turn),
                session: None,
                is_reused: false,
            }),
            _ if until == deadline => Err(refused::timed_out()),
            _ => Err(ConnectionError::new(
                Code::Unavailable,
                "all connections to the database are busy",
            )),
        }
    }

    pub(super) fn clear(&self) {
        self.idle.lock().clear();
    }

    async fn connect(&self, left: Duration) -> Result<MysqlSession, ConnectionError> {
        let unreachable_until = *self.unreachable_until.lock();
        if unreachable_until.is_some_and(|until| Instant::now() < until) {
            return Err(refused::unavailable());
        }
        match timeout(left.min(CONNECT_MAX), MysqlSession::open(&self.address)).await {
            Ok(opened) => {
                *self.unreachable_until.lock() = None;
                opened
            }
            // This caller's time was short, which says nothing of the server.
            Err(_) if left < CONNECT_MAX => Err(refused::timed_out()),
            Err(_) => {
                *self.unreachable_until.lock() = Some(Instant::now() + UNREACHABLE_FOR);
                Err(refused::unavailable().details("connecting took too long"))
            }
        }
    }

    /// Returns the session used last, so that the others may grow old.
    fn idle(&self) -> Option<MysqlSession> {
        let mut idle = self.idle.lock();
        idle.retain(|(_, since)| since.elapsed() < IDLE_MAX);
        idle.pop().map(|(session, _)| session)
    }

    /// Asks the server to end a session, and what it runs with it. Best effort: the server's own timeout is behind it.
    async fn kill(&self, id: u64) {
        let killed = async {
            let mut session = MysqlSession::open(&self.address).await?;
            session.kill(id).await.map_err(|failure| failure.error)
        };
        match timeout(CONNECT_MAX + CLEANUP_MAX, killed).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(?error, "a session could not be ended"),
            Err(_) => tracing::debug!("a session could not be ended in time"),
        }
    }
}

impl HeldSession {
    /// Takes a session, unless it has one.
    pub(super) async fn connect(&mut self, left: Duration) -> Result<(), ConnectionError> {
        if self.session.as_ref().is_some_and(MysqlSession::is_at_rest) {
            return Ok(());
        }
        self.let_go();
        let idle = self.pool.idle();
        self.is_reused = idle.is_some();
        self.session = Some(match idle {
            Some(session) => session,
            None => Box::pin(self.pool.connect(left)).await?,
        });
        Ok(())
    }

    pub(super) fn session(&mut self) -> &mut MysqlSession {
        self.session.as_mut().expect("a session was taken")
    }

    pub(super) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Ends the transaction of a session that waits for the next statement.
    pub(super) async fn roll_back(&mut self) {
        if let Some(session) = &mut self.session {
            let _ = timeout(CLEANUP_MAX, session.end()).await;
        }
    }

    /// Gives the session up. The server takes back what it did when it notices.
    pub(super) fn let_go(&mut self) {
        self.session = None;
    }
}

impl Drop for HeldSession {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        if session.is_at_rest() {
            self.pool.idle.lock().push((session, Instant::now()));
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let (pool, turn) = (self.pool.clone(), self.turn.take());
        runtime.spawn(async move {
            pool.kill(session.id()).await;
            drop(session);
            drop(turn);
        });
    }
}
