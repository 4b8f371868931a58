//! A caller of either era, which receives progress, cancels and answers questions.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use weir_tests::{Events, Legacy, Modern, client};

const SILENCE: Duration = Duration::from_secs(20);

pub(super) enum Caller {
    Modern(Modern),
    Legacy(Legacy),
}

/// A call that is under way.
pub(super) struct Open {
    id: Value,
    events: Events,
}

impl Caller {
    pub(super) async fn both(url: &str, capabilities: Value) -> [Self; 2] {
        [
            Self::Modern(Modern::able(url, capabilities.clone())),
            Self::Legacy(Legacy::able(url, client::LEGACY, capabilities).await),
        ]
    }

    pub(super) fn era(&self) -> &'static str {
        match self {
            Self::Modern(_) => "a modern caller",
            Self::Legacy(_) => "a legacy caller",
        }
    }

    pub(super) async fn tools(&self) -> Vec<Value> {
        match self {
            Self::Modern(client) => client.list().await.0,
            Self::Legacy(client) => {
                let answer = client.ask("tools/list", json!({})).await;
                answer.result()["tools"]
                    .as_array()
                    .expect("a listing has tools")
                    .clone()
            }
        }
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Value {
        match self {
            Self::Modern(client) => client.call(tool, arguments).await,
            Self::Legacy(client) => client.call(tool, arguments).await,
        }
    }

    /// Calls, and asks for progress.
    pub(super) async fn begin(&self, tool: &str, arguments: Value) -> Open {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
        match self {
            Self::Modern(client) => Open {
                id: Value::Null,
                events: Events::open(client.request("tools/call", params)).await,
            },
            Self::Legacy(client) => {
                // No id is given twice in a session: a cancellation must not reach the next call.
                static CALLS: AtomicU64 = AtomicU64::new(1);
                let id = json!(format!("call {}", CALLS.fetch_add(1, Ordering::Relaxed)));
                let body =
                    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
                Open {
                    id,
                    events: Events::open(client.in_session(body.to_string())).await,
                }
            }
        }
    }

    /// Cancels as its era does: a modern caller hangs up.
    pub(super) async fn cancel(&self, open: Open) {
        if let Self::Legacy(client) = self {
            let params = json!({"requestId": open.id});
            let body =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            client::send(client.in_session(body.to_string())).await;
        }
    }

    /// Calls a tool that asks once. Returns the question, its `method` and `params`, and the result.
    pub(super) async fn answer(&self, tool: &str, answer: &Value) -> (Value, Value) {
        match self {
            Self::Modern(client) => {
                let call = json!({"name": tool, "arguments": {}});
                let asked = client
                    .ask("tools/call", call.clone())
                    .await
                    .result()
                    .clone();
                let requests = asked["inputRequests"]
                    .as_object()
                    .unwrap_or_else(|| panic!("no question: {asked}"));
                let (key, question) = requests.iter().next().expect("a question");
                let mut again = call;
                again["inputResponses"] = json!({ key: answer });
                if let Some(state) = asked.get("requestState") {
                    again["requestState"] = state.clone();
                }
                let done = client.ask("tools/call", again).await;
                (question.clone(), done.result().clone())
            }
            Self::Legacy(client) => {
                let mut open = self.begin(tool, json!({})).await;
                let question = open.next().await;
                assert!(question["method"].is_string(), "no question: {question}");
                let body = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
                client::send(client.in_session(body.to_string())).await;
                let done = open.next().await;
                assert!(done["result"].is_object(), "no result: {done}");
                (question, done["result"].clone())
            }
        }
    }
}

impl Open {
    pub(super) async fn next(&mut self) -> Value {
        self.first().await.expect("the call says something in time")
    }

    /// Returns the next message; `None` for a call that is answered before it sends any message.
    pub(super) async fn first(&mut self) -> Option<Value> {
        self.events.next(SILENCE).await
    }
}
