//! The settings of a session beyond the handshake, and its end: what the id of the session does not contain. The state stores
//! them, so that a session is the same at every node.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::OnceLock,
};

use ahash::RandomState;
use dashmap::DashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use weir_state::{ClientSessionRow, GatewayState, StateError};

use crate::identity::now_ms;

/// The time for which an id leads to its session, wherever it is resumed.
pub const SESSION_LIFE_MS: i64 = 24 * 60 * 60 * 1000;
/// The most notes in memory. Beyond it, a session with a note ends at other processes, which do not have the note.
const NOTES_MAX: usize = 1 << 16;
/// The bound on a note. A longer one is not passed on: no other process can then resume the session.
const NOTE_MAX_BYTES: usize = 16 << 10;
/// The number of rows that are read at once.
const PAGE: u32 = 4096;

/// The number in a session's id.
type SessionNumber = u128;

/// The settings of one session, as stored in the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNote {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// The lowest level of log messages that it requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The resources for which it listens.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub watched: BTreeSet<String>,
}

/// Called for a note that another process has written.
type Listener = Box<dyn Fn(SessionNumber, &SessionNote) + Send + Sync>;

/// The settings that a client changed since its session was last written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SessionChange {
    ended: bool,
    level: Option<String>,
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
}

/// The notes of all sessions that have any.
#[derive(Default)]
pub struct SessionNotes {
    /// The notes, and when each is forgotten.
    notes: DashMap<SessionNumber, (SessionNote, i64), RandomState>,
    /// The changes that are not yet written.
    waiting: Mutex<HashMap<SessionNumber, SessionChange, RandomState>>,
    noted: Notify,
    /// The number of the last applied change.
    seen: Mutex<i64>,
    /// The number of database fail-overs after which everything was read.
    fail_overs: Mutex<u64>,
    listener: OnceLock<Listener>,
}

impl SessionNote {
    /// Returns the note in the form that is passed on: if it is too long for that, no other process resumes the session.
    fn carried(self) -> Self {
        let is_short = |text: String| text.len() <= NOTE_MAX_BYTES;
        match !self.ended && serde_json::to_string(&self).is_ok_and(is_short) {
            true => self,
            false => Self {
                ended: true,
                ..Self::default()
            },
        }
    }
}

impl SessionChange {
    fn between(old: &SessionNote, new: &SessionNote) -> Self {
        Self {
            ended: new.ended,
            level: new
                .level
                .clone()
                .filter(|level| old.level.as_ref() != Some(level)),
            added: new.watched.difference(&old.watched).cloned().collect(),
            removed: old.watched.difference(&new.watched).cloned().collect(),
        }
    }

    /// Adds later settings.
    fn join(&mut self, later: Self) {
        self.ended |= later.ended;
        self.level = later.level.or(self.level.take());
        self.added.retain(|uri| !later.removed.contains(uri));
        self.removed.retain(|uri| !later.added.contains(uri));
        self.added.extend(later.added);
        self.removed.extend(later.removed);
    }

    /// Applies the change to what may have been written elsewhere meanwhile.
    fn apply(&self, note: SessionNote) -> SessionNote {
        let mut note = note;
        note.ended |= self.ended;
        note.level = self.level.clone().or(note.level);
        note.watched.retain(|uri| !self.removed.contains(uri));
        note.watched.extend(self.added.iter().cloned());
        note.carried()
    }
}

impl SessionNotes {
    /// Sets the receiver of notes that other processes write.
    pub fn listen(&self, listener: impl Fn(SessionNumber, &SessionNote) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener)); // one listener serves the sessions of a process
    }

    /// Returns the note of a session; `None` if it has the settings of its handshake.
    pub fn find(&self, session: SessionNumber) -> Option<SessionNote> {
        self.notes.get(&session).map(|known| known.0.clone())
    }

    /// Changes the note of a session; it is written in a moment.
    pub fn add(&self, session: SessionNumber, note: SessionNote) {
        let known = self.find(session).unwrap_or_default();
        let change = SessionChange::between(&known, &note);
        self.keep(session, note.carried(), now_ms() + SESSION_LIFE_MS);
        let mut waiting = self.waiting.lock();
        if waiting.len() < NOTES_MAX || waiting.contains_key(&session) {
            waiting.entry(session).or_default().join(change);
        }
        drop(waiting);
        self.noted.notify_one();
    }

    /// Waits for a note to write.
    pub async fn noted(&self) {
        self.noted.notified().await;
    }

    /// Writes the notes to the state. Notes that cannot be written wait for the next time.
    pub async fn write(&self, state: &GatewayState) -> Result<(), StateError> {
        let waiting = self.waiting.lock().clone();
        if waiting.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = waiting
            .keys()
            .map(|session| session_name(*session))
            .collect();
        let merge = |name: &str, old: Option<&str>| {
            let old = old.and_then(|text| serde_json::from_str(text).ok());
            let change = SessionNumber::from_str_radix(name, 16);
            let change = change.ok().and_then(|session| waiting.get(&session));
            let note = change.map(|change| change.apply(old.unwrap_or_default()));
            serde_json::to_string(&note.unwrap_or_default()).expect("plain data")
        };
        let now = now_ms();
        let written = state
            .write_client_sessions(&names, merge, now, now + SESSION_LIFE_MS)
            .await;
        match &written {
            Ok(()) => {
                let mut later = self.waiting.lock();
                later.retain(|session, change| waiting.get(session) != Some(change));
            }
            Err(_) => self.noted.notify_one(),
        }
        written
    }

    /// Reads what other processes have written.
    pub async fn take_over(&self, state: &GatewayState) -> Result<(), StateError> {
        // After a fail-over, the database may have less than this process has seen.
        let fail_overs = state.fail_overs();
        let has_moved = *self.fail_overs.lock() != fail_overs;
        if has_moved || state.session_number().await? < *self.seen.lock() {
            *self.seen.lock() = 0;
        }
        let mut there = HashSet::new();
        loop {
            let seen = *self.seen.lock();
            let rows = state.client_sessions_after(seen, now_ms(), PAGE).await?;
            let Some(last) = rows.last() else {
                break;
            };
            *self.seen.lock() = last.change;
            for row in &rows {
                self.hear(row);
            }
            if has_moved {
                there.extend(rows.into_iter().map(|row| row.id));
            }
        }
        if has_moved {
            self.end_again(&there);
            *self.fail_overs.lock() = fail_overs;
        }
        Ok(())
    }

    /// Writes the ends of sessions again that the database does not have.
    fn end_again(&self, there: &HashSet<String>) {
        let now = now_ms();
        let is_lost = |session: SessionNumber| !there.contains(&session_name(session));
        let known = self.notes.iter();
        let ended = known.filter(|known| known.0.ended && known.1 > now && is_lost(*known.key()));
        let lost: Vec<SessionNumber> = ended.map(|known| *known.key()).collect();
        let mut waiting = self.waiting.lock();
        for session in lost {
            if waiting.len() < NOTES_MAX || waiting.contains_key(&session) {
                waiting.entry(session).or_default().ended = true;
            }
        }
        drop(waiting);
        self.noted.notify_one();
    }

    fn hear(&self, row: &ClientSessionRow) {
        let session = SessionNumber::from_str_radix(&row.id, 16);
        let (Ok(session), Ok(note)) = (session, serde_json::from_str::<SessionNote>(&row.note))
        else {
            return;
        };
        let known = self.find(session);
        // Newer notes of this process will overwrite it, and a note that comes back unchanged is already known.
        if self.waiting.lock().contains_key(&session) || known.as_ref() == Some(&note) {
            return;
        }
        // After a fail-over, the database may not have an end: it is written again.
        if !note.ended && known.is_some_and(|known| known.ended) {
            let change = SessionChange {
                ended: true,
                ..SessionChange::default()
            };
            self.waiting.lock().insert(session, change);
            self.noted.notify_one();
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

fn session_name(session: SessionNumber) -> String {
    format!("{session:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(level: Option<&str>, watched: &[&str]) -> SessionNote {
        SessionNote {
            ended: false,
            level: level.map(str::to_owned),
            watched: watched.iter().map(|uri| (*uri).to_owned()).collect(),
        }
    }

    async fn state() -> (tempfile::TempDir, GatewayState) {
        let folder = tempfile::tempdir().expect("a folder");
        let state = GatewayState::open(folder.path()).await.expect("a state");
        (folder, state)
    }

    #[tokio::test]
    async fn what_two_processes_note_of_one_session_is_joined() {
        let (_folder, state) = state().await;
        let (one, other) = (SessionNotes::default(), SessionNotes::default());
        one.add(7, note(None, &["a"]));
        other.add(7, note(Some("info"), &["b"]));
        one.write(&state).await.expect("written");
        other.write(&state).await.expect("written");
        let both = note(Some("info"), &["a", "b"]);
        for notes in [&one, &other] {
            notes.take_over(&state).await.expect("read");
            assert_eq!(notes.find(7), Some(both.clone()));
        }
        one.add(7, note(Some("info"), &["b"]));
        let ended = SessionNote {
            ended: true,
            ..SessionNote::default()
        };
        other.add(7, ended.clone());
        other.write(&state).await.expect("written");
        one.write(&state).await.expect("written");
        one.take_over(&state).await.expect("read");
        assert_eq!(
            one.find(7),
            Some(ended),
            "it ended, whatever was asked for beside it"
        );
    }

    #[tokio::test]
    async fn an_end_is_written_again_where_the_database_does_not_know_it() {
        let (_folder, state) = state().await;
        let notes = SessionNotes::default();
        let ended = SessionNote {
            ended: true,
            ..SessionNote::default()
        };
        notes.add(7, ended);
        notes.write(&state).await.expect("written");
        notes.take_over(&state).await.expect("read");
        let names = [session_name(7)];
        let earlier = |_: &str, _: Option<&str>| r#"{"level":"info"}"#.to_owned();
        let now = now_ms();
        let written = state.write_client_sessions(&names, earlier, now, now + SESSION_LIFE_MS);
        written.await.expect("written");
        notes.take_over(&state).await.expect("read");
        assert!(notes.find(7).expect("known").ended, "it stays so here");
        notes.write(&state).await.expect("written");
        let other = SessionNotes::default();
        other.take_over(&state).await.expect("read");
        assert!(other.find(7).expect("known").ended, "and elsewhere");
    }

    #[tokio::test]
    async fn an_end_is_written_again_where_the_database_does_not_know_the_session() {
        let [(_folder, before), (_other, after)] = [state().await, state().await];
        let notes = SessionNotes::default();
        let ended = SessionNote {
            ended: true,
            ..SessionNote::default()
        };
        notes.add(7, ended);
        notes.write(&before).await.expect("written");
        notes.take_over(&before).await.expect("read");
        *notes.fail_overs.lock() += 1;
        notes.take_over(&after).await.expect("read");
        notes.write(&after).await.expect("written");
        let other = SessionNotes::default();
        other.take_over(&after).await.expect("read");
        assert!(other.find(7).expect("known").ended, "and elsewhere");
        notes.take_over(&after).await.expect("read");
        assert!(notes.waiting.lock().is_empty(), "it is known there");
    }

    #[tokio::test]
    async fn a_session_goes_on_although_its_note_is_too_long_to_be_carried_on() {
        let (_folder, state) = state().await;
        let notes = SessionNotes::default();
        let heard = std::sync::Arc::new(Mutex::new(0));
        let count = heard.clone();
        notes.listen(move |_, _| *count.lock() += 1);
        let long = "x".repeat(NOTE_MAX_BYTES);
        notes.add(7, note(None, &[&long]));
        notes.write(&state).await.expect("written");
        notes.take_over(&state).await.expect("read");
        assert_eq!(*heard.lock(), 0, "what it wrote itself is no news");
        assert!(
            notes.find(7).expect("known").ended,
            "no other process takes it up"
        );
    }
}
