//! What a client asked of its session beyond the handshake, and that it ended it: what the id of the session does not say. The
//! state keeps it, so that a session is the same wherever it is taken up.

use std::{
    collections::{BTreeSet, HashMap},
    sync::OnceLock,
};

use ahash::RandomState;
use dashmap::DashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use weir_state::{ClientSessionRow, State, StateError};

use crate::identity::now_ms;

/// The time for which an id leads to its session, wherever it is taken up.
pub const SESSION_LIFE_MS: i64 = 24 * 60 * 60 * 1000;
/// Notes that are known at once. Over it a session that is noted ends elsewhere as it is not known there.
const NOTES_MAX: usize = 1 << 16;
/// A note that is longer is not carried on: the session can be taken up by no other process.
const NOTE_MAX_BYTES: usize = 16 << 10;
/// Rows that are read at once.
const PAGE: u32 = 4096;

/// The number in a session's id.
type SessionNumber = u128;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNote {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// The lowest level of log messages that it wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The resources that it listens for.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub watched: BTreeSet<String>,
}

/// What is done with a note that another process has written.
type Listener = Box<dyn Fn(SessionNumber, &SessionNote) + Send + Sync>;

#[derive(Default)]
pub struct SessionNotes {
    notes: DashMap<SessionNumber, (SessionNote, i64), RandomState>,
    /// Those that are not written down yet.
    waiting: Mutex<HashMap<SessionNumber, SessionNote, RandomState>>,
    noted: Notify,
    /// The number of the last change taken over.
    seen: Mutex<i64>,
    listener: OnceLock<Listener>,
}

impl SessionNotes {
    /// Sets what hears of notes that other processes write.
    pub fn listen(&self, listener: impl Fn(SessionNumber, &SessionNote) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener)); // one listener serves the sessions of a process
    }

    pub fn find(&self, session: SessionNumber) -> Option<SessionNote> {
        self.notes.get(&session).map(|known| known.0.clone())
    }

    /// Notes something of a session; it is written down in a moment.
    pub fn add(&self, session: SessionNumber, note: SessionNote) {
        self.keep(session, note.clone(), now_ms() + SESSION_LIFE_MS);
        self.waiting.lock().insert(session, note);
        self.noted.notify_one();
    }

    /// Waits for a note that is to be written down.
    pub async fn noted(&self) {
        self.noted.notified().await;
    }

    /// Writes down what was noted. What cannot be written is tried again with the next note.
    pub async fn write(&self, state: &State) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        if waiting.is_empty() {
            return;
        }
        let now = now_ms();
        let rows: Vec<ClientSessionRow> = waiting
            .iter()
            .map(|(session, note)| row(*session, note, now + SESSION_LIFE_MS))
            .collect();
        if let Err(error) = state.write_client_sessions(&rows, now).await {
            tracing::warn!(%error, "what clients asked of their sessions is not in the state yet");
            let mut later = self.waiting.lock();
            for (session, note) in waiting {
                later.entry(session).or_insert(note);
            }
        }
    }

    /// Takes over what other processes have written.
    pub async fn take_over(&self, state: &State) -> Result<(), StateError> {
        loop {
            let seen = *self.seen.lock();
            let rows = state.client_sessions_after(seen, PAGE).await?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            *self.seen.lock() = last.change;
            for row in &rows {
                self.hear(row);
            }
        }
    }

    fn hear(&self, row: &ClientSessionRow) {
        let session = SessionNumber::from_str_radix(&row.id, 16);
        let (Ok(session), Ok(note)) = (session, serde_json::from_str::<SessionNote>(&row.note))
        else {
            return;
        };
        // What was noted here since is newer, and what comes back is known.
        if self.waiting.lock().contains_key(&session)
            || self
                .notes
                .get(&session)
                .is_some_and(|known| known.0 == note)
        {
            return;
        }
        if let Some(listener) = self.listener.get() {
            listener(session, &note);
        }
        self.keep(session, note, row.expires_ms);
    }

    fn keep(&self, session: SessionNumber, note: SessionNote, expires_ms: i64) {
        self.notes.insert(session, (note, expires_ms));
        if self.notes.len() <= NOTES_MAX {
            return;
        }
        let mut ends: Vec<i64> = self.notes.iter().map(|known| known.1).collect();
        let eighth = ends.len() / 8;
        let (_, last, _) = ends.select_nth_unstable(eighth);
        self.notes.retain(|_, known| known.1 > *last);
    }
}

fn row(session: SessionNumber, note: &SessionNote, expires_ms: i64) -> ClientSessionRow {
    let mut text = serde_json::to_string(note).expect("plain data");
    if text.len() > NOTE_MAX_BYTES {
        let ended = SessionNote {
            ended: true,
            ..SessionNote::default()
        };
        text = serde_json::to_string(&ended).expect("plain data");
    }
    ClientSessionRow {
        id: format!("{session:032x}"),
        note: text,
        expires_ms,
        change: 0,
    }
}
