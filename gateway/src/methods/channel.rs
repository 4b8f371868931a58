//! The channel of one call to its caller: progress, log messages and questions, in the order in which they came up.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use weir_plugin_host::CallEvents;
use weir_text::shorten;

use super::client::SessionClient;
use crate::wire::{LogLevel, notification, write_string};

/// The most progress updates that wait for a slow reader; beyond it, the newest replaces the previous one.
const PROGRESS_MAX: usize = 16;
/// The most log messages that wait for a slow reader; further ones are dropped.
const LOGS_MAX: usize = 64;
const MESSAGE_MAX_CHARS: usize = 512;
/// The bytes of one log message; a longer one is dropped.
const LOG_MAX_BYTES: usize = 64 << 10;

/// The sending end, held by the call path and the plugin host.
pub struct CallChannel {
    waiting: Mutex<ChannelQueue>,
    arrived: Notify,
    progress: ProgressMode,
    /// The least severe log level that the caller requests. `None`: no log messages.
    level: Option<LogLevel>,
    /// The client of a legacy caller, which can be asked questions.
    pub(super) client: Option<Arc<SessionClient>>,
    /// Cancelled when the client no longer reads: open questions get no answer.
    pub(super) left: CancellationToken,
}

/// The receiving end: the messages for the caller.
pub struct CallMessages(Arc<CallChannel>);

impl Drop for CallMessages {
    fn drop(&mut self) {
        self.0.left.cancel();
    }
}

/// The form in which progress is reported.
enum ProgressMode {
    Unwanted,
    /// By notifications with this token, which is JSON.
    With(Box<str>),
    /// As the object `{progress, total?, message?}`, to a caller that does not use MCP.
    Bare,
}

#[derive(Default)]
struct ChannelQueue {
    events: VecDeque<ChannelEvent>,
    progress: usize,
    logs: usize,
    last: Option<f64>,
}

enum ChannelEvent {
    Progress {
        done: f64,
        total: Option<f64>,
        message: String,
    },
    Log(Vec<u8>),
    Question(Vec<u8>),
}

impl CallChannel {
    /// `token`: the caller's progress token, JSON. `ending`: cancelled when no answer is awaited any more. `None`: the caller
    /// requests no messages and cannot be asked.
    pub(super) fn open(
        token: Option<&str>,
        level: Option<LogLevel>,
        client: Option<&Arc<SessionClient>>,
        ending: &CancellationToken,
    ) -> Option<(Arc<Self>, CallMessages)> {
        let client = client.filter(|client| client.capabilities().is_some());
        if token.is_none() && level.is_none() && client.is_none() {
            return None;
        }
        let progress = token.map_or(ProgressMode::Unwanted, |token| {
            ProgressMode::With(token.into())
        });
        Some(Self::new(
            progress,
            level,
            client.cloned(),
            ending.child_token(),
        ))
    }

    /// Creates a channel for a caller that does not use MCP.
    pub fn bare() -> (Arc<Self>, CallMessages) {
        Self::new(ProgressMode::Bare, None, None, CancellationToken::new())
    }

    fn new(
        progress: ProgressMode,
        level: Option<LogLevel>,
        client: Option<Arc<SessionClient>>,
        left: CancellationToken,
    ) -> (Arc<Self>, CallMessages) {
        let (waiting, arrived) = (Mutex::default(), Notify::new());
        let channel = Arc::new(Self {
            waiting,
            arrived,
            progress,
            level,
            client,
            left,
        });
        (channel.clone(), CallMessages(channel))
    }

    /// Returns the capabilities of a legacy caller for answering questions; JSON.
    pub(super) fn capabilities(&self) -> Option<&str> {
        self.client.as_ref()?.capabilities()
    }

    /// Sends a request of the gateway, which is never dropped: the call waits for its answer.
    pub(super) fn send(&self, request: Vec<u8>) {
        self.waiting
            .lock()
            .events
            .push_back(ChannelEvent::Question(request));
        self.arrived.notify_one();
    }
}

impl CallEvents for CallChannel {
    fn wants_progress(&self) -> bool {
        !matches!(self.progress, ProgressMode::Unwanted)
    }

    /// Never blocks. Progress that does not increase is dropped: the protocol requires strictly increasing numbers.
    fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        let mut waiting = self.waiting.lock();
        let is_wanted = self.wants_progress() && done.is_finite();
        if !is_wanted || waiting.last.is_some_and(|last| done <= last) {
            return;
        }
        waiting.last = Some(done);
        if waiting.progress == PROGRESS_MAX {
            let newest = waiting
                .events
                .iter()
                .rposition(|event| matches!(event, ChannelEvent::Progress { .. }));
            newest.and_then(|newest| waiting.events.remove(newest));
        } else {
            waiting.progress += 1;
        }
        let message = shorten(message, MESSAGE_MAX_CHARS).into_owned();
        let total = total.filter(|total| total.is_finite());
        waiting.events.push_back(ChannelEvent::Progress {
            done,
            total,
            message,
        });
        drop(waiting);
        self.arrived.notify_one();
    }

    fn log_level(&self) -> Option<&'static str> {
        self.level.map(LogLevel::name)
    }

    fn log(&self, level: &str, logger: &str, data: Value) {
        let level = LogLevel::of_plugin(level);
        if self.level.is_none_or(|least| level < least) {
            return;
        }
        let message = log_message(level, logger, &data);
        if message.len() > LOG_MAX_BYTES {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.logs == LOGS_MAX {
            return;
        }
        waiting.logs += 1;
        waiting.events.push_back(ChannelEvent::Log(message));
        drop(waiting);
        self.arrived.notify_one();
    }
}

fn log_message(level: LogLevel, logger: &str, data: &Value) -> Vec<u8> {
    let mut params = serde_json::json!({ "level": level.name(), "data": data });
    // Servers are not required to name a logger.
    if !logger.is_empty() {
        params["logger"] = logger.into();
    }
    notification("notifications/message", Some(&params.to_string()))
}

impl CallMessages {
    /// Waits until there is something to take. The future may be dropped and this called again.
    pub async fn arrived(&self) {
        while self.0.waiting.lock().events.is_empty() {
            self.0.arrived.notified().await;
        }
    }

    /// The messages since the last time, in order.
    pub fn take(&self) -> Vec<Vec<u8>> {
        let events = {
            let mut waiting = self.0.waiting.lock();
            (waiting.progress, waiting.logs) = (0, 0);
            std::mem::take(&mut waiting.events)
        };
        let message = |event| match event {
            ChannelEvent::Log(message) | ChannelEvent::Question(message) => Some(message),
            ChannelEvent::Progress {
                done,
                total,
                message,
            } => self.progress(done, total, &message),
        };
        events.into_iter().filter_map(message).collect()
    }

    fn progress(&self, done: f64, total: Option<f64>, message: &str) -> Option<Vec<u8>> {
        let mut params = vec![b'{'];
        if let ProgressMode::With(token) = &self.0.progress {
            params.extend_from_slice(format!(r#""progressToken":{token},"#).as_bytes());
        }
        params.extend_from_slice(format!(r#""progress":{done}"#).as_bytes());
        if let Some(total) = total {
            params.extend_from_slice(format!(r#","total":{total}"#).as_bytes());
        }
        if !message.is_empty() {
            params.extend_from_slice(br#","message":"#);
            write_string(&mut params, message);
        }
        params.push(b'}');
        match self.0.progress {
            ProgressMode::Unwanted => None,
            ProgressMode::Bare => Some(params),
            ProgressMode::With(_) => {
                let params = String::from_utf8(params).expect("made of JSON text");
                Some(notification("notifications/progress", Some(&params)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(token: Option<&str>, level: Option<LogLevel>) -> (Arc<CallChannel>, CallMessages) {
        CallChannel::open(token, level, None, &CancellationToken::new())
            .expect("something is wanted")
    }

    fn taken(messages: &CallMessages) -> Vec<Value> {
        let params = |bytes: Vec<u8>| {
            serde_json::from_slice::<Value>(&bytes).expect("JSON")["params"].take()
        };
        messages.take().into_iter().map(params).collect()
    }

    #[test]
    fn who_wants_nothing_has_no_channel() {
        let ending = CancellationToken::new();
        assert!(CallChannel::open(None, None, None, &ending).is_none());
        let never_agreed = Arc::new(SessionClient::new(1, &Arc::default()));
        assert!(CallChannel::open(None, None, Some(&never_agreed), &ending).is_none());
    }

    #[tokio::test]
    async fn only_what_increases_is_sent() {
        let (call, messages) = open(Some("\"p\""), None);
        for done in [0.0, 0.0, f64::NAN, 2.5, 1.0, f64::INFINITY, 1e21] {
            call.progress(done, Some(100.0), "");
        }
        messages.arrived().await;
        let sent = taken(&messages);
        assert_eq!(
            sent.iter()
                .map(|update| update["progress"].as_f64().expect("a number"))
                .collect::<Vec<_>>(),
            [0.0, 2.5, 1e21]
        );
        assert_eq!(
            sent[0],
            json!({ "progressToken": "p", "progress": 0, "total": 100 })
        );
    }

    #[test]
    fn a_guest_that_reports_without_end_fills_no_memory() {
        let (call, messages) = open(Some("7"), Some(LogLevel::Debug));
        for done in 0..10_000 {
            call.progress(done.into(), None, &"é".repeat(10_000));
            call.log("info", "plugin", "é".into());
        }
        let sent = taken(&messages);
        assert_eq!(sent.len(), PROGRESS_MAX + LOGS_MAX);
        let progress: Vec<_> = sent
            .iter()
            .filter(|params| params["progress"].is_number())
            .collect();
        assert_eq!(progress[PROGRESS_MAX - 1]["progress"], 9_999);
        assert_eq!(
            progress[0]["message"]
                .as_str()
                .expect("a text")
                .chars()
                .count(),
            MESSAGE_MAX_CHARS + 1,
            "with the mark that it was cut"
        );
        assert!(taken(&messages).is_empty());
    }

    #[test]
    fn log_messages_are_heard_from_the_level_that_was_asked_for() {
        let (call, messages) = open(None, Some(LogLevel::Warning));
        call.progress(1.0, None, "not asked for");
        call.log("info", "plugin", "too mild".into());
        call.log("warn", "plugin", json!({ "row": 7, "message": "heard" }));
        call.log("error", "plugin", "x".repeat(LOG_MAX_BYTES).into());
        call.log("error", "plugin", "heard".into());
        call.log("error", "", "of a server that names no logger".into());
        assert_eq!(
            taken(&messages),
            [
                json!({ "level": "warning", "logger": "plugin", "data": { "row": 7, "message": "heard" } }),
                json!({ "level": "error", "logger": "plugin", "data": "heard" }),
                json!({ "level": "error", "data": "of a server that names no logger" }),
            ]
        );
    }
}
