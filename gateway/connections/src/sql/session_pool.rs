//! Sessions with one database server: opened on use, kept while they are good, and never more than allowed.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::refused;
use crate::{ConnectionError, FailureCode};

pub(super) const CONNECT_MAX: Duration = Duration::from_secs(2);
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long callers are refused immediately after a server did not even refuse a connection.
const UNREACHABLE_FOR: Duration = Duration::from_millis(500);
const IDLE_MAX: Duration = Duration::from_secs(300);

/// A session that calls use one after the other.
pub(super) trait PooledSession: Sized + Send + 'static {
    type Address: Send + Sync + 'static;

    fn open(address: &Self::Address) -> impl Future<Output = Result<Self, ConnectionError>> + Send;

    /// Returns `true` if nothing of a call is left in it.
    fn is_at_rest(&self) -> bool;

    /// Returns `true` if the call that holds it may continue with it.
    fn is_usable(&self) -> bool;

    /// Returns `true` if the server has not ended it while it was idle, as far as can be seen without asking.
    fn is_quiet(&mut self) -> bool {
        true
    }

    /// Gives back what only a call needs.
    fn shrink(&mut self) {}

    /// Ends what a call has left unfinished. Returns the session if it is at rest then.
    fn end_late(
        self: Box<Self>,
        pool: &SessionPool<Self>,
    ) -> impl Future<Output = Option<Box<Self>>> + Send;
}

pub(super) struct SessionPool<S: PooledSession> {
    pub(super) address: S::Address,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<(Box<S>, Instant)>>,
    unreachable_until: Mutex<Option<Instant>>,
}

/// One of the pool's turns, and the session it is taken with. When it is dropped, a session at rest goes back, and one
/// in the middle of something is ended by a task, which keeps the turn until that is done.
pub(super) struct HeldSession<S: PooledSession> {
    pub(super) pool: Arc<SessionPool<S>>,
    turn: Option<OwnedSemaphorePermit>,
    pub(super) session: Option<Box<S>>,
    /// The session was used before, so the server may have gone away since.
    is_reused: bool,
}

impl<S: PooledSession> SessionPool<S> {
    pub(super) fn new(address: S::Address, size: usize) -> Self {
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
    ) -> Result<HeldSession<S>, ConnectionError> {
        let held = |turn| HeldSession {
            pool: self.clone(),
            turn: Some(turn),
            session: None,
            is_reused: false,
        };
        if let Ok(turn) = self.turns.clone().try_acquire_owned() {
            return Ok(held(turn));
        }
        let until = deadline.min(Instant::now() + TURN_WAIT_MAX);
        match tokio::time::timeout_at(until.into(), self.turns.clone().acquire_owned()).await {
            Ok(Ok(turn)) => Ok(held(turn)),
            _ if until == deadline => Err(refused::timed_out()),
            _ => Err(ConnectionError::new(
                FailureCode::Unavailable,
                "all connections to the database are busy",
            )),
        }
    }

    pub(super) fn clear(&self) {
        self.idle.lock().clear();
    }

    async fn connect(&self, left: Duration) -> Result<Box<S>, ConnectionError> {
        let unreachable_until = *self.unreachable_until.lock();
        if unreachable_until.is_some_and(|until| Instant::now() < until) {
            return Err(refused::unavailable());
        }
        match timeout(left.min(CONNECT_MAX), S::open(&self.address)).await {
            Ok(opened) => {
                *self.unreachable_until.lock() = None;
                opened.map(Box::new)
            }
            // This caller's time was short, which is no evidence about the server.
            Err(_) if left < CONNECT_MAX => Err(refused::timed_out()),
            Err(_) => {
                *self.unreachable_until.lock() = Some(Instant::now() + UNREACHABLE_FOR);
                Err(refused::unavailable().details("connecting took too long"))
            }
        }
    }

    fn give_back(&self, mut session: Box<S>) {
        session.shrink();
        self.idle.lock().push((session, Instant::now()));
    }

    /// Returns the session used last, so that the others may grow old, unless the server has ended it since.
    fn idle(&self) -> Option<Box<S>> {
        let mut idle = self.idle.lock();
        idle.retain(|(_, since)| since.elapsed() < IDLE_MAX);
        while let Some((mut session, _)) = idle.pop() {
            if session.is_quiet() {
                return Some(session);
            }
        }
        None
    }
}

impl<S: PooledSession> HeldSession<S> {
    /// Takes a session, unless it has one that can be used.
    pub(super) async fn connect(&mut self, left: Duration) -> Result<(), ConnectionError> {
        if self.session.as_ref().is_some_and(|it| it.is_usable()) {
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

    pub(super) fn session(&mut self) -> &mut S {
        self.session.as_mut().expect("a session was taken")
    }

    pub(super) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Gives the session up. The server rolls it back when it notices.
    pub(super) fn let_go(&mut self) {
        self.session = None;
    }
}

impl<S: PooledSession> Drop for HeldSession<S> {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        if session.is_at_rest() {
            return self.pool.give_back(session);
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let (pool, turn) = (self.pool.clone(), self.turn.take());
        runtime.spawn(async move {
            if let Some(session) = session.end_late(&pool).await {
                pool.give_back(session);
            }
            drop(turn);
        });
    }
}
