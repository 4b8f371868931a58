//! Legacy sessions: what `initialize` agreed on, for clients that return with its id.
//!
//! A session never gives authority: it is bound to the caller that opened it, and a caller is identified again at every request.
//! The result of the handshake is sealed in its id, so a session that is not in the table can be resumed, for a day, unless its
//! client has ended it. The table is bounded, in total and for each agent. Above its share, an agent's own least recently used
//! session makes room; if the table is full, a session of the agent with the most.

mod order;
mod sealed;

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use dashmap::{DashMap, Entry};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use self::sealed::NamedSession;
use self::{order::SessionOrder, sealed::SessionTerms};
use crate::{
    identity::CallerIdentity,
    methods::{CatalogueEndpoint, SessionClient, StreamPermit},
    serving::ServingGateway,
    session_notes::SessionNote,
    wire::ProtocolVersion,
};

/// The number of sessions examined when room is needed, so that one request never goes through all of them.
const LOOKED_AT_MAX: usize = 16;
/// The largest share of the sessions for an agent with a key, as a divisor.
const AGENT_PART: usize = 8;

/// 128 random bits: the beginning of the id on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(u128);

/// A legacy session: the revision and the client from its handshake, and the caller that opened it.
pub struct ClientSession {
    pub id: SessionId,
    pub version: ProtocolVersion,
    pub client: Arc<SessionClient>,
    caller: CallerIdentity,
    endpoint: CatalogueEndpoint,
    /// Milliseconds since the table was made.
    used: AtomicU64,
    /// The token that is cancelled when the session ends: its calls and its stream end with it.
    ended: CancellationToken,
    /// The one stream of notifications: each message goes out once.
    stream: Mutex<Option<OpenStream>>,
}

struct OpenStream {
    number: u64,
    ending: CancellationToken,
    room: Weak<StreamPermit>,
    /// Whether its announcement has reached all nodes: a later announcement of another node is newer.
    is_announced: bool,
}

/// A stream that a request has opened.
pub struct TakenStream {
    /// Its number, in this process.
    pub number: u64,
    /// Cancelled when it has to end.
    pub ending: CancellationToken,
    pub room: Arc<StreamPermit>,
}

/// The table of sessions, bounded in number. A session that is idle for too long may be removed.
pub struct SessionTable {
    table: DashMap<SessionId, Arc<ClientSession>>,
    order: Mutex<SessionOrder>,
    most: usize,
    idle: Duration,
    start: Instant,
}

impl SessionId {
    /// Returns the id as a number, for other nodes.
    pub fn number(self) -> u128 {
        self.0
    }

    /// Makes an id of 128 random bits. `Err` means that the system has no randomness.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }
}

impl ClientSession {
    /// Returns the id in the form for the client.
    pub fn name(&self, gateway: &ServingGateway) -> String {
        let terms = SessionTerms {
            version: self.version,
            abilities: self.client.abilities(),
        };
        sealed::write(
            gateway.cursors(),
            self.id,
            &self.caller,
            &self.endpoint,
            terms,
        )
    }

    fn agent(&self) -> order::Agent {
        (self.caller.tenant.clone(), self.caller.agent.clone())
    }

    /// Returns the token that is set when the session ends.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Makes the caller's stream the only one: an older one ends, since its client may long have gone, and leaves its room to the
    /// new one. If none is open, `admit` takes room.
    pub fn take_stream<E>(
        &self,
        admit: impl FnOnce() -> Result<StreamPermit, E>,
    ) -> Result<TakenStream, E> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let mut stream = self.stream.lock();
        let room = match stream.as_ref().and_then(|open| open.room.upgrade()) {
            Some(room) => room,
            None => Arc::new(admit()?),
        };
        let taken = TakenStream {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            ending: self.ended.child_token(),
            room,
        };
        let open = OpenStream {
            number: taken.number,
            ending: taken.ending.clone(),
            room: Arc::downgrade(&taken.room),
            is_announced: false,
        };
        if let Some(older) = stream.replace(open) {
            older.ending.cancel();
        }
        Ok(taken)
    }

    /// Handles the announcement that a stream of this session was opened: here, if `is_own`, or at another node, which ends an
    /// older one here.
    pub fn hear_of_stream(&self, number: u64, is_own: bool) {
        let mut stream = self.stream.lock();
        match &mut *stream {
            Some(open) if is_own => open.is_announced |= open.number == number,
            Some(open) if open.is_announced => {
                open.ending.cancel();
                *stream = None;
            }
            _ => {}
        }
    }
}

impl SessionTable {
    /// Creates an empty table of at most `most` sessions, and at least one. `idle` is the time after which an unused session has
    /// ended.
    pub fn new(most: usize, idle: Duration) -> Self {
        Self {
            table: DashMap::new(),
            order: Mutex::default(),
            most: most.max(1),
            idle,
            start: Instant::now(),
        }
    }

    /// Opens a session, or returns the existing one under this id. A full table makes room first.
    pub fn open(
        &self,
        id: SessionId,
        client: Arc<SessionClient>,
        caller: CallerIdentity,
        endpoint: CatalogueEndpoint,
        version: ProtocolVersion,
    ) -> Arc<ClientSession> {
        let now = self.now();
        let session = Arc::new(ClientSession {
            id,
            version,
            client,
            caller,
            endpoint,
            used: AtomicU64::new(now),
            ended: CancellationToken::new(),
            stream: Mutex::new(None),
        });
        // The table comes first: a session that is in the order but not in the table counts as ended. Two requests may resume one
        // session at the same time.
        if let Some(first) = self.insert(&session) {
            return first;
        }
        self.make_room(&session, now);
        session
    }

    /// Returns the existing session under the same id, if there is one.
    fn insert(&self, session: &Arc<ClientSession>) -> Option<Arc<ClientSession>> {
        match self.table.entry(session.id) {
            Entry::Occupied(first) => Some(first.get().clone()),
            Entry::Vacant(room) => {
                room.insert(session.clone());
                None
            }
        }
    }

    /// Returns the session that a request names, and resumes it if it is not in the table.
    pub fn find(
        &self,
        gateway: &ServingGateway,
        named: &NamedSession,
        caller: &CallerIdentity,
        endpoint: &CatalogueEndpoint,
    ) -> Option<Arc<ClientSession>> {
        let id = named.id;
        if self.table.contains_key(&id) {
            return self.get(id, caller, endpoint);
        }
        let terms = named.terms(gateway.cursors(), caller, endpoint)?;
        let note = gateway
            .session_notes()
            .find(id.number())
            .unwrap_or_default();
        if note.ended {
            return None;
        }
        let announcements = gateway.announcements();
        let client = SessionClient::with_abilities(id.number(), announcements, terms.abilities);
        if gateway.node_messages().is_some() {
            client.number_questions_apart();
        }
        client.take_over(&note);
        let (caller, endpoint) = (caller.clone(), endpoint.clone());
        Some(self.open(id, Arc::new(client), caller, endpoint, terms.version))
    }

    /// Returns the session, if it exists and belongs to this caller at this endpoint; other callers cannot find out whether it
    /// exists.
    pub fn get(
        &self,
        id: SessionId,
        caller: &CallerIdentity,
        endpoint: &CatalogueEndpoint,
    ) -> Option<Arc<ClientSession>> {
        let session = self.table.get(&id)?.clone();
        if session.caller != *caller || session.endpoint != *endpoint {
            return None;
        }
        self.touch(&session);
        Some(session)
    }

    /// Marks a session as used.
    pub fn touch(&self, session: &ClientSession) {
        session.used.store(self.now(), Ordering::Relaxed);
    }

    /// Returns the session with a number, of any caller: another node has checked that.
    pub fn with_number(&self, session: u128) -> Option<Arc<ClientSession>> {
        let found = self.table.get(&SessionId(session));
        found.map(|found| found.clone())
    }

    /// Applies what another process has noted about a session that is also in use here.
    pub fn take_over(&self, session: u128, note: &SessionNote) {
        let Some(session) = self.with_number(session) else {
            return;
        };
        match note.ended {
            true => self.end(&session),
            false => session.client.take_over(note),
        }
    }

    /// Ends a session.
    pub fn end(&self, session: &ClientSession) {
        self.end_in(&mut self.order.lock(), session);
    }

    /// Returns the number of sessions in the table.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns `true` if the table has no session.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Ends sessions that must make room for a new one, and adds the new one to the order.
    fn make_room(&self, new: &ClientSession, now: u64) {
        let mut order = self.order.lock();
        let agent = new.agent();
        self.end_idle(&mut order, now);
        let share = match new.caller.grant {
            Some(_) => self.most.div_ceil(AGENT_PART),
            None => self.most,
        };
        while order.sessions_of(&agent) >= share && self.displace(&mut order, &agent, now) {}
        while order.sessions() >= self.most
            && let Some(most) = order.agent_to_displace(&agent)
            && self.displace(&mut order, &most, now)
        {}
        order.add(agent.clone(), new.id, now);
        order.forget_ended(&agent, |id| self.table.contains_key(&id));
    }

    /// Ends some of the sessions that were opened first, if they have been idle for too long.
    fn end_idle(&self, order: &mut SessionOrder, now: u64) {
        for _ in 0..LOOKED_AT_MAX {
            let Some((id, queued)) = order.take_first() else {
                break;
            };
            let Some(session) = self.table.get(&id).map(|session| session.clone()) else {
                continue;
            };
            if self.is_idle(&session) {
                self.end_in(order, &session);
            } else if session.used.load(Ordering::Relaxed) > queued {
                order.put_last(id, now);
            } else {
                order.put_first(id, queued);
                break;
            }
        }
    }

    /// Ends the first session of an agent that was not used since it was last queued, or else one of the first. Returns
    /// `false` if it has none.
    fn displace(&self, order: &mut SessionOrder, agent: &order::Agent, now: u64) -> bool {
        let mut looked_at = 0;
        while let Some((id, queued)) = order.take_first_of(agent) {
            let Some(session) = self.table.get(&id).map(|session| session.clone()) else {
                continue;
            };
            looked_at += 1;
            let used_since = session.used.load(Ordering::Relaxed) > queued;
            if !used_since || looked_at == LOOKED_AT_MAX {
                self.end_in(order, &session);
                return true;
            }
            order.put_last_of(agent, id, now);
        }
        false
    }

    /// Removes a session from the table.
    fn end_in(&self, order: &mut SessionOrder, session: &ClientSession) {
        if self.table.remove(&session.id).is_some() {
            order.remove(&session.agent());
        }
        session.ended.cancel();
    }

    fn is_idle(&self, session: &ClientSession) -> bool {
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
