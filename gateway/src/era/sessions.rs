//! Legacy sessions: what `initialize` agreed on, for those who come back with its id.
//!
//! A session is never authority: it is bound to the caller that opened it, and a caller is identified anew with every
//! request. They are bounded in number; beyond it, the one unused for longest has to make room.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use crate::{
    identity::Caller,
    methods::{Client, Endpoint, Stream},
    wire::Version,
};

/// The number of sessions looked at when room is needed, so that one request never walks through all of them.
const LOOKED_AT_MAX: usize = 16;

/// 128 random bits, on the wire as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(u128);

pub struct Session {
    pub id: SessionId,
    pub version: Version,
    pub client: Arc<Client>,
    caller: Caller,
    endpoint: Endpoint,
    /// Milliseconds since the table was made.
    used: AtomicU64,
    /// The token that is cancelled when the session ends: its calls and its stream end with it.
    ended: CancellationToken,
    /// The one stream of notifications: each message goes out once.
    stream: Mutex<Option<(CancellationToken, Weak<Stream>)>>,
}

pub struct Sessions {
    table: DashMap<SessionId, Arc<Session>>,
    /// The sessions in the order of their opening, renewed when found in use: a clock's hand, not a sorted list.
    queue: Mutex<VecDeque<(SessionId, u64)>>,
    most: usize,
    idle: Duration,
    start: Instant,
}

impl SessionId {
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.len() == 32
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        hex.then(|| u128::from_str_radix(text, 16).ok().map(Self))
            .flatten()
    }

    pub fn number(self) -> u128 {
        self.0
    }

    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

impl Session {
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Makes the caller's stream the only one: an older one ends, as its client may long have gone, and leaves its room to
    /// the new one. Where none is open, `admit` takes room.
    pub fn take_stream<E>(
        &self,
        admit: impl FnOnce() -> Result<Stream, E>,
    ) -> Result<(CancellationToken, Arc<Stream>), E> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let room = match stream.as_ref().and_then(|(_, room)| room.upgrade()) {
            Some(room) => room,
            None => Arc::new(admit()?),
        };
        let token = self.ended.child_token();
        if let Some((older, _)) = stream.replace((token.clone(), Arc::downgrade(&room))) {
            older.cancel();
        }
        Ok((token, room))
    }
}

impl Sessions {
    pub fn new(most: usize, idle: Duration) -> Self {
        Self {
            table: DashMap::new(),
            queue: Mutex::default(),
            most: most.max(1),
            idle,
            start: Instant::now(),
        }
    }

    pub fn open(
        &self,
        id: SessionId,
        client: Arc<Client>,
        caller: Caller,
        endpoint: Endpoint,
        version: Version,
    ) -> Arc<Session> {
        let now = self.now();
        let session = Arc::new(Session {
            id,
            version,
            client,
            caller,
            endpoint,
            used: AtomicU64::new(now),
            ended: CancellationToken::new(),
            stream: Mutex::new(None),
        });
        // The table comes first: a session that is queued and not in the table counts as ended.
        self.table.insert(session.id, session.clone());
        self.make_room(session.id, now);
        session
    }

    /// Returns the session, if it lives and belongs to this caller on this endpoint; others cannot tell whether it
    /// exists.
    pub fn get(&self, id: SessionId, caller: &Caller, endpoint: &Endpoint) -> Option<Arc<Session>> {
        let session = self.table.get(&id)?.clone();
        if session.caller != *caller || session.endpoint != *endpoint {
            return None;
        }
        if self.is_idle(&session) {
            self.end(&session);
            return None;
        }
        self.touch(&session);
        Some(session)
    }

    /// Keeps a session from being idle.
    pub fn touch(&self, session: &Session) {
        session.used.store(self.now(), Ordering::Relaxed);
    }

    pub fn end(&self, session: &Session) {
        self.table.remove(&session.id);
        session.ended.cancel();
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Queues a new session, which is in the table; drops ended and idle ones on the way, and while the table is full, the first that was not
    /// used since it was queued, or else the first.
    fn make_room(&self, new: SessionId, now: u64) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        for looked_at in 0..LOOKED_AT_MAX {
            let full = self.table.len() > self.most;
            let Some((id, queued)) = queue.pop_front() else {
                break;
            };
            let Some(session) = self.table.get(&id).map(|session| session.clone()) else {
                continue;
            };
            let used_since = session.used.load(Ordering::Relaxed) > queued;
            if self.is_idle(&session) || (full && (!used_since || looked_at + 1 == LOOKED_AT_MAX)) {
                self.end(&session);
            } else if full {
                queue.push_back((id, now));
            } else {
                queue.push_front((id, queued));
                break;
            }
        }
        while self.table.len() > self.most {
            let Some((id, _)) = queue.pop_front() else {
                break;
            };
            if let Some(session) = self.table.get(&id).map(|session| session.clone()) {
                self.end(&session);
            }
        }
        queue.push_back((new, now));
        if queue.len() >= self.most.saturating_mul(2) {
            queue.retain(|(id, _)| self.table.contains_key(id));
        }
    }

    fn is_idle(&self, session: &Session) -> bool {
        let unused = self
            .now()
            .saturating_sub(session.used.load(Ordering::Relaxed));
        Duration::from_millis(unused) > self.idle
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
