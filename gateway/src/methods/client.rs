//! A legacy client, for as long as its session lasts: its abilities, its subscriptions, and its answers.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::sync::oneshot;

use super::changes::LastSeen;
use crate::{
    announcements::{ChangeNotifier, WatchedResources},
    session_notes::SessionNote,
    wire::{LogLevel, RequestId, RpcResponse},
};

/// The capabilities for answering questions, and their members: the modes of elicitation, and whether the model may be asked to
/// use tools. Their positions are part of session ids, so new ones are added at the end.
const ABILITIES: [(&str, Option<&str>); 6] = [
    ("elicitation", None),
    ("roots", None),
    ("sampling", None),
    ("elicitation", Some("form")),
    ("elicitation", Some("url")),
    ("sampling", Some("tools")),
];
/// The most resources for which one client may listen.
pub(super) const WATCHED_MAX: usize = 256;

/// The client of a legacy session.
pub struct SessionClient {
    /// The number of its session.
    pub session: u128,
    /// Bits, and the same as JSON. Other capabilities are left out, to keep sessions small.
    abilities: OnceLock<(u8, Box<str>)>,
    /// 0: no log messages; else 1 more than the level's place in [`LogLevel::ALL`].
    level: AtomicU8,
    watched: Arc<WatchedResources>,
    last_seen: Arc<LastSeen>,
    next_id: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<ClientAnswer>>>,
}

/// The result, or the message of the error; JSON and text.
pub(super) type ClientAnswer = Result<Box<RawValue>, String>;

/// A question that was put to a client. Dropping it forgets the question.
pub(super) struct PendingQuestion<'c> {
    client: &'c SessionClient,
    pub(super) id: u64,
    pub(super) answer: oneshot::Receiver<ClientAnswer>,
}

impl SessionClient {
    /// Creates the client of a session. It has declared no capability yet.
    pub fn new(session: u128, announcements: &Arc<ChangeNotifier>) -> Self {
        Self {
            session,
            abilities: OnceLock::new(),
            level: AtomicU8::new(0),
            watched: Arc::new(WatchedResources::new(announcements, WATCHED_MAX)),
            last_seen: Arc::default(),
            next_id: AtomicU64::new(1),
            waiting: Mutex::default(),
        }
    }

    /// Restores a client from what [`Self::abilities`] returned for it.
    pub fn with_abilities(
        session: u128,
        announcements: &Arc<ChangeNotifier>,
        abilities: u8,
    ) -> Self {
        let client = Self::new(session, announcements);
        client.keep_abilities(abilities);
        client
    }

    /// Begins the numbers of questions at a random one, so that an answer belongs to only one node.
    pub fn number_questions_apart(&self) {
        let mut first = [0; 4];
        // Without random numbers there is no session either. The numbers are exact even in a client that has only floats.
        if getrandom::fill(&mut first).is_ok() {
            let first = u64::from(u32::from_be_bytes(first)) << 20 | 1;
            self.next_id.store(first, Ordering::Relaxed);
        }
    }

    /// Keeps the abilities that the client declares in `initialize`.
    pub(super) fn agreed(&self, capabilities: Option<&RawValue>) {
        let stated = capabilities
            .and_then(|stated| serde_json::from_str::<Map<String, Value>>(stated.get()).ok());
        let Some(stated) = stated else { return };
        let mut abilities = 0;
        for (bit, (ability, mode)) in ABILITIES.into_iter().enumerate() {
            if let Some(Value::Object(details)) = stated.get(ability)
                && mode.is_none_or(|mode| details.contains_key(mode))
            {
                abilities |= 1 << bit;
            }
        }
        self.keep_abilities(abilities);
    }

    /// Returns a bit for each of [`ABILITIES`] that the client has.
    pub fn abilities(&self) -> u8 {
        self.abilities.get().map_or(0, |(abilities, _)| *abilities)
    }

    fn keep_abilities(&self, abilities: u8) {
        let mut stated = Map::new();
        for (bit, (ability, mode)) in ABILITIES.into_iter().enumerate() {
            if abilities & 1 << bit == 0 {
                continue;
            }
            let details = stated.entry(ability).or_insert_with(|| json!({}));
            if let (Some(mode), Value::Object(details)) = (mode, details) {
                details.insert(mode.to_owned(), json!({}));
            }
        }
        if !stated.is_empty() {
            let stated = Value::Object(stated).to_string();
            let _ = self.abilities.set((abilities, stated.into())); // a second `initialize` changes nothing
        }
    }

    /// `None`: it cannot be asked anything.
    pub(super) fn capabilities(&self) -> Option<&str> {
        self.abilities.get().map(|(_, stated)| &**stated)
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        self.level.store(level as u8 + 1, Ordering::Relaxed);
    }

    pub(super) fn log_level(&self) -> Option<LogLevel> {
        let level = self.level.load(Ordering::Relaxed).checked_sub(1)?;
        LogLevel::ALL.get(usize::from(level)).copied()
    }

    /// Returns its settings beyond the handshake.
    pub fn note(&self) -> SessionNote {
        SessionNote {
            ended: false,
            level: self.log_level().map(|level| level.name().to_owned()),
            watched: self.watched.uris(),
        }
    }

    /// Applies its settings from another process.
    pub fn take_over(&self, note: &SessionNote) {
        if let Some(level) = note.level.as_deref().and_then(LogLevel::find) {
            self.set_log_level(level);
        }
        for gone in self.watched.uris().difference(&note.watched) {
            self.watched.remove(gone);
        }
        for uri in &note.watched {
            let _ = self.watched.add(uri); // it may have listened for as many before
        }
    }

    /// Returns the resources to which it has subscribed.
    pub fn watched(&self) -> &Arc<WatchedResources> {
        &self.watched
    }

    /// Returns the lists that it last received, in any of its streams.
    pub(super) fn last_seen(&self) -> &Arc<LastSeen> {
        &self.last_seen
    }

    /// Sends a request to the client, and returns the receiver of its answer. `params` is JSON.
    pub(super) fn ask(&self, method: &str, params: Option<&str>) -> (Vec<u8>, PendingQuestion<'_>) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(id, sender);
        let mut request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{}"#, json!(method));
        if let Some(params) = params {
            request.push_str(r#","params":"#);
            request.push_str(params);
        }
        request.push('}');
        (
            request.into_bytes(),
            PendingQuestion {
                client: self,
                id,
                answer,
            },
        )
    }

    /// Passes the client's answer to the call that waits for it. If no call of this process does, returns it with the number of
    /// the question.
    pub fn answered(&self, response: &RpcResponse<'_>) -> Option<(u64, ClientAnswer)> {
        let id = response
            .id
            .as_ref()
            .map(RequestId::as_json)
            .and_then(|id| id.parse::<u64>().ok())?;
        let answer = match response.outcome {
            Ok(result) => Ok(result.to_owned()),
            Err(error) => Err(error_message(error)),
        };
        self.take_answer(id, answer).map(|answer| (id, answer))
    }

    /// Passes an answer to the call that waits for it, or returns it.
    pub fn take_answer(&self, question: u64, answer: ClientAnswer) -> Option<ClientAnswer> {
        let sender = self.waiting.lock().remove(&question);
        match sender {
            Some(sender) => {
                let _ = sender.send(answer); // the receiver may be gone
                None
            }
            None => Some(answer),
        }
    }
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        self.client.waiting.lock().remove(&self.id);
    }
}

fn error_message(error: &RawValue) -> String {
    let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
    let message = error
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or("no reason was given");
    message
        .chars()
        .filter(|character| !character.is_control())
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    #[test]
    fn of_what_a_client_states_only_its_answers_to_questions_are_kept() {
        for (stated, kept) in [
            (
                r#"{"elicitation":{"form":{"x":1},"tools":{}},"sampling":{"tools":{},"x":{}},"experimental":{"a":{}}}"#,
                Some(r#"{"elicitation":{"form":{}},"sampling":{"tools":{}}}"#),
            ),
            (r#"{"roots":{"listChanged":true}}"#, Some(r#"{"roots":{}}"#)),
            (r#"{"elicitation":true}"#, None),
            ("{}", None),
            ("7", None),
        ] {
            let client = SessionClient::new(1, &Arc::default());
            client.agreed(Some(&raw(stated)));
            assert_eq!(client.capabilities(), kept, "{stated}");
            let again = SessionClient::with_abilities(1, &Arc::default(), client.abilities());
            assert_eq!(again.capabilities(), kept, "{stated}");
        }
    }

    #[test]
    fn an_answer_reaches_who_asked_and_a_stray_one_nobody() {
        let client = SessionClient::new(1, &Arc::default());
        let (request, mut question) = client.ask("roots/list", None);
        assert_eq!(
            request,
            br#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#
        );
        let (id, result) = (raw("1"), raw(r#"{"roots":[]}"#));
        let stray = raw("2");
        client.answered(&RpcResponse {
            id: RequestId::read(&stray),
            outcome: Ok(&result),
        });
        assert!(question.answer.try_recv().is_err());
        client.answered(&RpcResponse {
            id: RequestId::read(&id),
            outcome: Ok(&result),
        });
        let answer = question
            .answer
            .try_recv()
            .expect("it is there")
            .expect("a result");
        assert_eq!(answer.get(), result.get());
        drop(question);
        assert!(client.waiting.lock().is_empty());
    }
}
