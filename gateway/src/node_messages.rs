//! Messages between the nodes that share a state in PostgreSQL: messages about a session or a task of another node are handed to
//! that node. Nothing that this process can handle on its own is sent, and without such a state there are no messages.
//!
//! They are sent in sealed batches, and only requests about tasks of another node wait for them, for a bounded time.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use ahash::RandomState;
use dashmap::DashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use tokio::{
    sync::{Notify, Semaphore, SemaphorePermit, oneshot},
    time::Instant,
};
use weir_state::{GatewayState, MessageRow, NewMessage, StateError};

use crate::{cursor::CursorCipher, tasks::TaskReport};

/// The time during which messages are collected into one batch.
const BATCH_INTERVAL: Duration = Duration::from_millis(5);
/// The most messages that wait to be sent; further ones are lost.
const WAITING_MAX: usize = 4096;
const WAITING_MAX_BYTES: usize = 64 << 20;
/// The maximum size of a message; a longer one is not sent. The answers of one agent's tasks may be this long.
const MESSAGE_MAX_BYTES: usize = 17 << 20;
/// The bound on the id of a cancelled request that is passed on.
const REQUEST_ID_MAX_BYTES: usize = 1 << 10;
/// The time within which another node must answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const ASKED_AT_ONCE: usize = 32;
/// The time for which a node counts as live after a check.
const LIVE_MAX_AGE: Duration = Duration::from_millis(900);

/// A message from one node to another, or to all others.
#[derive(Debug, Serialize, Deserialize)]
pub enum NodeMessage {
    /// The client of a session cancels one of its calls.
    Cancelled { session: u128, request: Box<str> },
    /// The client answers a question of one of its calls.
    Answered {
        session: u128,
        question: u64,
        outcome: Result<Box<RawValue>, String>,
    },
    /// The client opened its stream of notifications: older ones end.
    StreamOpened { session: u128, stream: u64 },
    /// A caller asks for its task, which the receiving node has.
    TaskRequested { question: u64, request: TaskRequest },
    /// The reply to that. `None`: there is no such task.
    TaskReported {
        question: u64,
        report: Option<Box<TaskReport>>,
    },
    /// A caller has been sent how its task ended: the stage with this number.
    TaskDelivered { task: u128, entered: u64 },
}

/// A request about a task of another node. Its permission was checked where it arrived.
#[derive(Debug, Serialize, Deserialize)]
pub struct TaskRequest {
    pub task: u128,
    pub act: TaskAct,
}

/// What a request does with the task of another node.
#[derive(Debug, Serialize, Deserialize)]
pub enum TaskAct {
    Look,
    Answer(Map<String, Value>),
    Cancel,
}

/// A message that arrived.
pub struct ReceivedMessage {
    pub message: NodeMessage,
    /// The id of the node that sent it.
    pub sender: String,
    pub is_own: bool,
}

type MessageListener = Box<dyn Fn(ReceivedMessage) + Send + Sync>;
type WaitingReport = oneshot::Sender<Option<Box<TaskReport>>>;

/// Sends and receives messages through the state that the nodes share.
pub struct NodeMessages {
    state: Arc<GatewayState>,
    /// The id of this process as a node.
    node: String,
    cursors: CursorCipher,
    waiting: Mutex<WaitingMessages>,
    noted: Notify,
    listener: OnceLock<MessageListener>,
    /// The pending requests about tasks of other nodes, by their numbers.
    asked: DashMap<u64, WaitingReport, RandomState>,
    /// Bounds the concurrent requests about tasks of other nodes.
    turns: Semaphore,
    /// The nodes with valid leases, and when these were read.
    live: tokio::sync::Mutex<Option<(Instant, Vec<String>)>>,
    started: Instant,
}

/// A request that waits for another node; it is forgotten when its caller has gone.
struct AskedQuestion<'m>(&'m NodeMessages, u64);

impl Drop for AskedQuestion<'_> {
    fn drop(&mut self) {
        self.0.asked.remove(&self.1);
    }
}

#[derive(Default)]
struct WaitingMessages {
    messages: Vec<NewMessage>,
    bytes: usize,
}

impl NodeMessage {
    /// Returns the message that cancels a request, if its id is short enough to be passed on.
    pub fn cancel(session: u128, request: Box<str>) -> Option<Self> {
        let is_short = request.len() <= REQUEST_ID_MAX_BYTES;
        is_short.then_some(Self::Cancelled { session, request })
    }
}

impl NodeMessages {
    /// Creates the messages of a node. `node` is its id, and `cursors` seals them with the key that all nodes have.
    pub fn new(state: Arc<GatewayState>, node: &str, cursors: CursorCipher) -> Self {
        Self {
            state,
            node: node.to_owned(),
            cursors,
            waiting: Mutex::default(),
            noted: Notify::new(),
            listener: OnceLock::new(),
            asked: DashMap::default(),
            turns: Semaphore::new(ASKED_AT_ONCE),
            live: tokio::sync::Mutex::default(),
            started: Instant::now(),
        }
    }

    /// Waits until another node may be asked: the requests of one agent must not fill the database's connections.
    pub async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// Sets the receiver of other nodes' messages, and of this node's messages to all.
    pub fn listen(&self, listener: impl Fn(ReceivedMessage) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener)); // one transport serves a node
    }

    /// Hands a message on, to one node or to all. A message for which there is no room is lost, as with the database.
    pub fn send(&self, recipient: Option<&str>, message: &NodeMessage) {
        let content = serde_json::to_vec(message).expect("plain data");
        if content.len() > MESSAGE_MAX_BYTES {
            tracing::warn!(
                bytes = content.len(),
                "a message is too long for other nodes"
            );
            return;
        }
        let Some(content) = self.cursors.seal_message(&content) else {
            return;
        };
        let mut waiting = self.waiting.lock();
        if waiting.messages.len() >= WAITING_MAX
            || waiting.bytes + content.len() > WAITING_MAX_BYTES
        {
            return;
        }
        waiting.bytes += content.len();
        waiting.messages.push(NewMessage {
            recipient: recipient.map(str::to_owned),
            content,
        });
        drop(waiting);
        self.noted.notify_one();
    }

    /// Asks the node that has a task, and returns its answer. `Err`: it does not answer.
    pub async fn ask(
        &self,
        node: &str,
        request: TaskRequest,
    ) -> Result<Option<Box<TaskReport>>, StateError> {
        let mut number = [0; 8];
        getrandom::fill(&mut number)
            .map_err(|error| StateError::Database(error.to_string().into()))?;
        let question = u64::from_be_bytes(number);
        let (tell, report) = oneshot::channel();
        self.asked.insert(question, tell);
        let _asked = AskedQuestion(self, question);
        let message = NodeMessage::TaskRequested { question, request };
        self.send(Some(node), &message);
        match tokio::time::timeout(ANSWER_WITHIN, report).await {
            Ok(Ok(report)) => Ok(report),
            _ => Err(StateError::Unreachable(
                "the node that runs the task does not answer".to_owned(),
            )),
        }
    }

    /// Returns `true` while the lease of a node is valid. Concurrent requests share one check, and a node is reported as gone
    /// only after a check that began with this request or later.
    pub async fn is_live(&self, node: &str) -> Result<bool, StateError> {
        let begun = Instant::now();
        let Ok(mut live) = tokio::time::timeout(ANSWER_WITHIN, self.live.lock()).await else {
            let why = "the database does not answer";
            return Err(StateError::Unreachable(why.to_owned()));
        };
        let is_known = |(looked, nodes): &(Instant, Vec<String>)| {
            let is_live = nodes.iter().any(|live| live == node);
            let is_current = match is_live {
                true => looked.elapsed() < LIVE_MAX_AGE,
                false => *looked >= begun,
            };
            is_current.then_some(is_live)
        };
        if let Some(is_live) = live.as_ref().and_then(is_known) {
            return Ok(is_live);
        }
        let looked = Instant::now();
        let nodes = self.state.live_nodes().await?;
        let is_live = nodes.iter().any(|live| live == node);
        *live = Some((looked, nodes));
        Ok(is_live)
    }

    /// Returns the time of the next check that everything in this process makes at the same moment, so that the requests go out
    /// together.
    pub fn next_look(&self, interval: Duration) -> Instant {
        let looks = self.started.elapsed().as_nanos() / interval.as_nanos() + 1;
        self.started + interval * u32::try_from(looks).unwrap_or(u32::MAX)
    }

    /// Sends waiting messages, and receives those of others, while the process serves.
    pub async fn run(&self) {
        tokio::join!(
            self.write(),
            self.state.follow_messages(|row| self.hear(row))
        );
    }

    async fn write(&self) {
        let mut is_failing = false;
        loop {
            self.noted.notified().await;
            tokio::time::sleep(BATCH_INTERVAL).await;
            let batch = std::mem::take(&mut *self.waiting.lock());
            if batch.messages.is_empty() {
                continue;
            }
            let sent = self.state.send_messages(&self.node, &batch.messages).await;
            if let (Err(error), false) = (&sent, is_failing) {
                tracing::warn!(%error, "messages for other nodes are lost");
            }
            is_failing = sent.is_err();
        }
    }

    fn hear(&self, row: MessageRow) {
        // A node with another key does not belong to this gateway.
        let Some(content) = self.cursors.open_message(&row.content) else {
            return;
        };
        // A newer node may send messages that this one does not support.
        let Ok(message) = serde_json::from_slice(&content) else {
            return;
        };
        match message {
            NodeMessage::TaskReported { question, report } => {
                if let Some((_, asker)) = self.asked.remove(&question) {
                    let _ = asker.send(report); // it may wait no more
                }
            }
            message => {
                if let Some(listener) = self.listener.get() {
                    listener(ReceivedMessage {
                        message,
                        is_own: row.sender == self.node,
                        sender: row.sender,
                    });
                }
            }
        }
    }
}
