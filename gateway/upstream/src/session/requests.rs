//! Requests to a server and their answers, before and after an era is agreed on.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::value::RawValue;
use tokio::{sync::watch, time::timeout};
use weir_connections::http::TraceContext;

use super::{given_up, timed_out};
use crate::{
    error::{RequestError, UpstreamFailure},
    inbox::UpstreamInbox,
    link::UpstreamLink,
    message::{self, MODERN, OutgoingMessage},
    settings::{ClientCapability, UpstreamSettings},
};

/// The first id of a process is below this: some servers hold ids in 31 bits.
const FIRST_ID_MAX: u64 = 1 << 30;

/// The next id of all sessions. Some bridges send what a server answers one client to all of them, such as supergateway over
/// SSE. Those of another process begin elsewhere.
static NEXT_ID: LazyLock<AtomicU64> = LazyLock::new(|| {
    let random = RandomState::new().hash_one(std::process::id());
    AtomicU64::new(1 + random % FIRST_ID_MAX)
});

/// The parts that send requests, before and after an era is agreed on.
pub(crate) struct SessionCore {
    pub(super) link: UpstreamLink,
    pub(super) inbox: Arc<UpstreamInbox>,
    pub(super) settings: UpstreamSettings,
}

pub(crate) struct SessionRequest {
    pub(super) method: &'static str,
    pub(super) params: String,
    pub(super) version: &'static str,
    pub(super) name: Option<String>,
    pub(super) headers: Vec<(String, String)>,
}

/// The members of a request's `_meta` other than the version.
#[derive(Default)]
pub(crate) struct OutgoingMeta<'m> {
    pub(super) progress: Option<u64>,
    pub(super) trace: Option<&'m TraceContext>,
    pub(super) level: Option<&'m str>,
    /// A call may be answered with a task.
    pub(super) knows_tasks: bool,
}

impl OutgoingMeta<'_> {
    /// The `_meta` of a list: servers announce to clients that support tasks which calls may become one.
    pub(crate) const LIST: Self = Self {
        progress: None,
        trace: None,
        level: None,
        knows_tasks: true,
    };
}

impl SessionRequest {
    pub(crate) fn new(method: &'static str, params: String, version: &'static str) -> Self {
        Self {
            method,
            params,
            version,
            name: None,
            headers: Vec::new(),
        }
    }

    fn into_outgoing(self, id: u64) -> OutgoingMessage {
        let Self {
            method,
            params,
            version,
            name,
            headers,
        } = self;
        let text = message::request(id, method, &params);
        OutgoingMessage {
            text,
            id: Some(id),
            method,
            name,
            headers,
            version: Some(version),
        }
    }
}

impl SessionCore {
    pub(crate) fn settings(&self) -> &UpstreamSettings {
        &self.settings
    }

    pub(crate) fn ask(&self) -> &[ClientCapability] {
        &self.settings.ask
    }

    pub(crate) fn link(&self) -> &UpstreamLink {
        &self.link
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.inbox.changes()
    }

    /// Returns `_meta` of a request.
    pub(crate) fn meta(&self, version: &str, of: &OutgoingMeta<'_>) -> String {
        let &OutgoingMeta {
            progress,
            trace,
            level,
            knows_tasks,
        } = of;
        let version_text = message::text(version);
        let capabilities = message::capabilities(&self.settings.ask, knows_tasks);
        let progress = progress.map(|token| token.to_string());
        let parent = trace.map(|trace| message::text(&trace.parent));
        let state = trace.and_then(|trace| trace.state.as_deref().map(message::text));
        let level = level.map(message::text);
        let mut members: Vec<(&str, &str)> = Vec::new();
        if version == MODERN {
            members.push(("io.modelcontextprotocol/protocolVersion", &version_text));
            members.push(("io.modelcontextprotocol/clientCapabilities", &capabilities));
            members.push(("io.modelcontextprotocol/clientInfo", message::CLIENT_INFO));
            members.extend(
                level
                    .as_deref()
                    .map(|level| ("io.modelcontextprotocol/logLevel", level)),
            );
        }
        members.extend(progress.as_deref().map(|token| ("progressToken", token)));
        members.extend(parent.as_deref().map(|parent| ("traceparent", parent)));
        members.extend(state.as_deref().map(|state| ("tracestate", state)));
        message::object(&members)
    }

    pub(crate) async fn request(
        &self,
        request: SessionRequest,
    ) -> Result<Box<RawValue>, RequestError> {
        let (method, limit) = (request.method, self.settings.request);
        // The handshake as a whole has its own limit.
        let limit = if matches!(method, "server/discover" | "initialize") {
            self.settings.start
        } else {
            limit
        };
        let id = self.id();
        let mut wait = self.inbox.expect(id, None)?;
        let answer = async {
            self.exchange(id, request).await?;
            (&mut wait.answer)
                .await
                .unwrap_or_else(|_| Err(given_up().into()))
        };
        timeout(limit, answer)
            .await
            .unwrap_or_else(|_| Err(timed_out(method, limit).into()))
    }

    pub(crate) async fn notify(
        &self,
        method: &'static str,
        params: String,
        version: &'static str,
    ) -> Result<(), UpstreamFailure> {
        let text = message::notification(method, &params);
        self.link
            .send(OutgoingMessage {
                text,
                id: None,
                method,
                name: None,
                headers: Vec::new(),
                version: Some(version),
            })
            .await
    }

    /// Answers a request of the server.
    pub(super) async fn reply(
        &self,
        text: String,
        version: &'static str,
    ) -> Result<(), UpstreamFailure> {
        self.link
            .send(OutgoingMessage {
                text,
                id: None,
                method: "",
                name: None,
                headers: Vec::new(),
                version: Some(version),
            })
            .await
    }

    /// Sends a request, and receives until its answer is in the inbox if it comes on the same connection. Dropping this gives
    /// up the request.
    pub(super) async fn exchange(
        &self,
        id: u64,
        request: SessionRequest,
    ) -> Result<(), UpstreamFailure> {
        self.link.exchange(request.into_outgoing(id)).await
    }

    /// Sends a request whose answer may come at any time.
    pub(super) async fn send(
        &self,
        id: u64,
        request: SessionRequest,
    ) -> Result<(), UpstreamFailure> {
        self.link.send(request.into_outgoing(id)).await
    }

    /// Returns the id of a further request.
    pub(super) fn id(&self) -> u64 {
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    }
}
