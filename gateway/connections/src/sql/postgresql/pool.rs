//! Connections to one PostgreSQL server: opened on use, kept while they are good.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    super::refused,
    CLEANUP_MAX,
    address::Address,
    error, login,
    session::{CancelKey, Session},
};
use crate::{Code, ConnectionError};

const CONNECT_MAX: Duration = Duration::from_secs(2);
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// The time for which callers are answered at once after a server that did not even refuse.
const UNREACHABLE_FOR: Duration = Duration::from_millis(500);
const IDLE_MAX: Duration = Duration::from_secs(300);

pub(super) struct Pool {
    address: Address,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<(Box<Session>, Instant)>>,
    unreachable_until: Mutex<Option<Instant>>,
}

/// One of the pool's turns, and the session it is taken with. When it is dropped, a session at rest goes back, and one
/// in the middle of something is brought to rest by a task, which keeps the turn until the server has ended it.
pub(super) struct Held {
    pool: Arc<Pool>,
    turn: Option<OwnedSemaphorePermit>,
    session: Option<Box<Session>>,
    /// The session was used before, so the server may have gone since.
    reused: bool,
}

impl Pool {
    pub(super) fn new(address: Address, size: usize) -> Self {
        Self {
            address,
            turns: Arc::new(Semaphore::new(size)),
            idle: Mutex::default(),
            unreachable_until: Mutex::default(),
        }
    }

    pub(super) async fn turn(self: &Arc<Self>, deadline: Instant) -> Result<Held, ConnectionError> {
        let held = |turn| Held {
            pool: self.clone(),
            turn: Some(turn),
            session: None,
            reused: false,
        };
        if let Ok(turn) = self.turns.clone().try_acquire_owned() {
            return Ok(held(turn));
        }
        let until = deadline.min(Instant::now() + TURN_WAIT_MAX);
        match tokio::time::timeout_at(until.into(), self.turns.clone().acquire_owned()).await {
            Ok(Ok(turn)) => Ok(held(turn)),
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

    /// Asks the server to end what that session runs. Best effort: `statement_timeout` is behind it. Returns `false` if the
    /// server cannot be reached.
    pub(super) async fn cancel(&self, key: CancelKey) -> bool {
        match timeout(CONNECT_MAX, login::cancel(&self.address, key)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => tracing::debug!(%error, "a statement could not be cancelled"),
            Err(_) => tracing::debug!("a statement could not be cancelled in time"),
        }
        false
    }

    async fn connect(&self, left: Duration) -> Result<Box<Session>, ConnectionError> {
        let unreachable_until = *self.unreachable_until.lock();
        if unreachable_until.is_some_and(|until| Instant::now() < until) {
            return Err(refused::unavailable());
        }
        match timeout(left.min(CONNECT_MAX), login::session(&self.address)).await {
            Ok(Ok(session)) => {
                *self.unreachable_until.lock() = None;
                Ok(Box::new(session))
            }
            Ok(Err(error)) => Err(error::while_connecting(error)),
            // This caller's time was short, which says nothing of the server.
            Err(_) if left < CONNECT_MAX => Err(refused::timed_out()),
            Err(_) => {
                *self.unreachable_until.lock() = Some(Instant::now() + UNREACHABLE_FOR);
                Err(refused::unavailable().details("connecting took too long"))
            }
        }
    }

    fn give_back(&self, mut session: Box<Session>) {
        session.shrink();
        self.idle.lock().push((session, Instant::now()));
    }

    /// Returns the session used last, so that the others may grow old, unless the server has ended it since.
    fn idle(&self) -> Option<Box<Session>> {
        let mut idle = self.idle.lock();
        idle.retain(|(_, since)| since.elapsed() < IDLE_MAX);
        while let Some((mut session, _)) = idle.pop() {
            if session.quiet() {
                return Some(session);
            }
        }
        None
    }

    /// Brings to rest what a call left in the middle: it is cancelled, read over, rolled back. Returns `None` if the
    /// server is still at work after a while, and then whether it could be told to stop.
    async fn settle(&self, session: &mut Session) -> Option<bool> {
        let told = !session.under_way() || self.cancel(session.key).await;
        match timeout(CLEANUP_MAX, session.settle()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => session.give_up(),
            Err(_) => return Some(told),
        }
        None
    }

    /// Asks over another session whether the server still runs what that one began; its own answer may be lost.
    async fn is_at_work(&self, key: CancelKey) -> bool {
        let asked = async {
            let mut session = login::session(&self.address).await?;
            session.is_active(key, CLEANUP_MAX).await
        };
        matches!(
            timeout(CLEANUP_MAX, asked).await,
            Ok(Ok(true)) | Ok(Err(_)) | Err(_)
        )
    }
}

impl Held {
    /// Takes a session, unless it has one.
    pub(super) async fn connect(&mut self, left: Duration) -> Result<(), ConnectionError> {
        if self.session.as_ref().is_some_and(|session| !session.dead()) {
            return Ok(());
        }
        let idle = self.pool.idle();
        self.reused = idle.is_some();
        self.session = Some(match idle {
            Some(session) => session,
            None => Box::pin(self.pool.connect(left)).await?,
        });
        Ok(())
    }

    pub(super) fn session(&mut self) -> &mut Session {
        self.session.as_mut().expect("a session was taken")
    }

    pub(super) fn reused(&self) -> bool {
        self.reused
    }

    /// Brings the session to rest. Returns `false` if the server is still at work on it.
    pub(super) async fn settle(&mut self) -> bool {
        match &mut self.session {
            Some(session) => Box::pin(self.pool.settle(session)).await.is_none(),
            None => true,
        }
    }

    pub(super) fn let_go(&mut self) {
        self.session = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(mut session) = self.session.take() else {
            return;
        };
        if session.at_rest() {
            return self.pool.give_back(session);
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if session.dead() {
            return;
        }
        let (pool, turn) = (self.pool.clone(), self.turn.take());
        runtime.spawn(async move {
            // A function may go on though it was cancelled. Its backend keeps the turn until it has ended, so that there are
            // never more at work than the pool may have; of a server that cannot be reached nothing is known.
            while let Some(true) = pool.settle(&mut session).await {
                if !pool.is_at_work(session.key).await {
                    session.give_up();
                    break;
                }
            }
            if session.at_rest() {
                pool.give_back(session);
            }
            drop(turn);
        });
    }
}
