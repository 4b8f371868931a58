//! The ways to a server. Each sends messages, and gives everything that comes back to the inbox.

pub(crate) mod child;
mod client;
pub(crate) mod http;
mod large;
mod spread;
pub(crate) mod sse;
mod stderr;

use std::{sync::Arc, time::Duration};

use crate::{
    error::UpstreamFailure,
    inbox::UpstreamInbox,
    message::OutgoingMessage,
    settings::{UpstreamSettings, UpstreamTarget, UpstreamTransport},
};

pub(crate) use client::ask_for_challenge;

/// The time that a server may take to accept an answer to one of its own requests.
pub(crate) const REPLY_MAX: Duration = Duration::from_secs(10);

pub(crate) enum UpstreamLink {
    Child(child::ChildLink),
    Http(Arc<http::HttpLink>),
    Sse(Box<sse::SseLink>),
}

impl UpstreamLink {
    pub(crate) async fn open(
        target: &UpstreamTarget,
        transport: UpstreamTransport,
        settings: &UpstreamSettings,
        inbox: &Arc<UpstreamInbox>,
    ) -> Result<Self, UpstreamFailure> {
        let message_max = settings.bounds.message_max_bytes;
        match target {
            UpstreamTarget::Command(command) => {
                child::ChildLink::start(command, message_max, inbox.clone()).map(Self::Child)
            }
            UpstreamTarget::Url(url) if transport == UpstreamTransport::Sse => {
                let link = sse::SseLink::open(url, message_max, settings, inbox.clone()).await?;
                Ok(Self::Sse(Box::new(link)))
            }
            UpstreamTarget::Url(url) => {
                http::HttpLink::new(url, message_max, settings.tokens.clone(), inbox.clone())
                    .map(Self::Http)
            }
        }
    }

    /// Sends a request, and is ready once it is handed over, or queued to be; over HTTP only once its answer, or the reason
    /// why there is none, is in the inbox. Dropping the future hangs up.
    pub(crate) async fn exchange(&self, message: OutgoingMessage) -> Result<(), UpstreamFailure> {
        match self {
            Self::Http(http) => http.exchange(&message).await,
            Self::Child(_) | Self::Sse(_) => self.send(message).await,
        }
    }

    /// Sends a message. It is ready once the message is handed over, or queued to be: the inbox receives the answer or
    /// a failure.
    pub(crate) async fn send(&self, message: OutgoingMessage) -> Result<(), UpstreamFailure> {
        match self {
            Self::Child(child) => child.send(message.text).await,
            Self::Http(http) => http.send(message).await,
            Self::Sse(sse) => sse.send(&message.text).await,
        }
    }

    /// Stops listening for the answer to a request. If that is how a request is cancelled, this cancels it.
    pub(crate) fn hang_up(&self, id: u64) {
        if let Self::Http(http) = self {
            http.hang_up(id);
        }
    }

    /// Listens for unsolicited messages of the server, if that takes a separate request.
    pub(crate) fn listen(&self, version: &'static str) {
        if let Self::Http(http) = self {
            http.listen(version);
        }
    }

    /// Returns what the server wrote to stderr last.
    pub(crate) fn stderr(&self) -> String {
        if let Self::Child(child) = self {
            child.stderr()
        } else {
            String::new()
        }
    }

    /// Ends it, and waits until it is ended: a child gets its stdin closed, then TERM, then KILL.
    pub(crate) async fn close(&self) {
        match self {
            Self::Child(child) => child.close().await,
            Self::Http(http) => {
                drop(tokio::time::timeout(Duration::from_secs(2), http.close()).await)
            }
            Self::Sse(sse) => sse.close(),
        }
    }
}

impl Drop for UpstreamLink {
    fn drop(&mut self) {
        if let Self::Http(http) = self {
            http.abandon();
        }
    }
}
