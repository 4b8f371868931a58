//! A web service of one test, which counts what reaches it and can be slow.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{Path, State},
    http::{Method, StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The events at the service so far.
#[derive(Default)]
pub struct Seen {
    /// Requests that arrived.
    pub requests: AtomicUsize,
    /// Requests that were answered to their end.
    pub finished: AtomicUsize,
    /// Requests whose caller went away before the answer.
    pub dropped: AtomicUsize,
    /// Lets one request for `held` continue.
    release: Notify,
}

/// Serves at a free port for as long as the test runs, and returns `http://127.0.0.1:PORT`.
pub async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

/// Serves `/items` and `/items/{id}`: three records, and a record for whatever is written. An id like `slow-500` is
/// answered after that many milliseconds, `held` once the test releases it, `huge` with a name of 16 MB.
pub struct Web {
    pub base: String,
    pub seen: Arc<Seen>,
}

impl Web {
    pub async fn start() -> Self {
        let seen = Arc::new(Seen::default());
        let app = Router::new()
            .route("/items", axum::routing::any(items))
            .route("/items/{id}", axum::routing::any(item))
            .with_state(seen.clone());
        let base = serve(app).await;
        Self { base, seen }
    }

    pub fn requests(&self) -> usize {
        self.seen.requests.load(Ordering::SeqCst)
    }

    /// Lets one request for `held` be answered.
    pub fn release(&self) {
        self.seen.release.notify_one();
    }
}

/// Counts one request, and whether its caller waited for the end.
struct Visit {
    seen: Arc<Seen>,
    finished: bool,
}

impl Visit {
    fn new(seen: Arc<Seen>) -> Self {
        seen.requests.fetch_add(1, Ordering::SeqCst);
        Self {
            seen,
            finished: false,
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let counter = if self.finished {
            &self.seen.finished
        } else {
            &self.seen.dropped
        };
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

async fn items(State(seen): State<Arc<Seen>>, method: Method, body: String) -> impl IntoResponse {
    let mut visit = Visit::new(seen);
    let answer = if method == Method::GET {
        json!([record("1"), record("2"), record("3")])
    } else {
        let sent: Value = serde_json::from_str(&body).unwrap_or_default();
        let id = sent["id"].as_str().unwrap_or("1");
        wait(&visit.seen, id).await;
        record(id)
    };
    visit.finished = true;
    answered(StatusCode::OK, &answer)
}

async fn item(State(seen): State<Arc<Seen>>, Path(id): Path<String>) -> impl IntoResponse {
    let mut visit = Visit::new(seen);
    wait(&visit.seen, &id).await;
    visit.finished = true;
    if id == "missing" {
        answered(StatusCode::NOT_FOUND, &json!({}))
    } else {
        answered(StatusCode::OK, &record(&id))
    }
}

fn answered(status: StatusCode, body: &Value) -> impl IntoResponse + use<> {
    (
        status,
        [(CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
}

async fn wait(seen: &Seen, id: &str) {
    if id == "held" {
        seen.release.notified().await;
    } else if let Some(milliseconds) = id
        .strip_prefix("slow-")
        .and_then(|number| number.parse().ok())
    {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}

fn record(id: &str) -> Value {
    let name = if id == "huge" {
        "x".repeat(16 << 20)
    } else {
        format!("Item {id}")
    };
    json!({"id": id, "name": name, "count": 1})
}
