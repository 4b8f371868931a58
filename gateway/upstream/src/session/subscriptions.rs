//! The subscriptions at a server: its lists, and resources that have a listener.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{sync::broadcast, task::AbortHandle};

use super::{OutgoingMeta, SessionRequest, UpstreamSession};
use crate::{
    error::{RequestError, UpstreamFailureKind},
    handshake::HandshakeResult,
    message,
};

/// The subscriptions that the server got.
#[derive(Default)]
pub(super) struct SubscriptionState {
    uris: BTreeSet<String>,
    /// The request of a modern server's stream.
    stream: Option<(u64, AbortHandle)>,
    /// The server has no such stream, and is not asked again in this session.
    is_refused: Arc<AtomicBool>,
}

impl UpstreamSession {
    /// The URIs of resources that the server reports as changed.
    pub fn updated(&self) -> broadcast::Receiver<String> {
        self.core.inbox.updated()
    }

    /// Asks the server to announce changes of its lists and of these resources, and no others.
    pub async fn subscribe(&self, uris: &BTreeSet<String>) -> Result<(), RequestError> {
        let agreed = self.agreed();
        let mut subscribed = self.subscribed.lock().await;
        if agreed.is_modern() {
            if subscribed.is_refused.load(Ordering::Relaxed) {
                return Ok(());
            }
            if subscribed
                .stream
                .as_ref()
                .is_some_and(|(_, task)| !task.is_finished())
                && subscribed.uris == *uris
            {
                return Ok(());
            }
            let stream = self
                .listen(uris, &agreed, subscribed.is_refused.clone())
                .await?;
            let before = subscribed.stream.replace(stream);
            if let Some((id, task)) = before {
                self.cancel(id, &agreed).await;
                task.abort();
            }
            subscribed.uris.clone_from(uris);
            return Ok(());
        }
        if !self.advertises("resources") {
            return Ok(());
        }
        let gone: Vec<String> = subscribed.uris.difference(uris).cloned().collect();
        let new: Vec<String> = uris.difference(&subscribed.uris).cloned().collect();
        for (method, uris) in [
            ("resources/unsubscribe", gone),
            ("resources/subscribe", new),
        ] {
            for uri in uris {
                let params = message::object(&[("uri", &message::text(&uri))]);
                // A server that cannot announce changes of a resource is not asked again.
                let _ = self
                    .core
                    .request(SessionRequest::new(method, params, agreed.version))
                    .await;
                match method {
                    "resources/subscribe" => drop(subscribed.uris.insert(uri)),
                    _ => drop(subscribed.uris.remove(&uri)),
                }
            }
        }
        Ok(())
    }

    /// Opens the stream on which a modern server announces changes.
    async fn listen(
        &self,
        uris: &BTreeSet<String>,
        agreed: &HandshakeResult,
        is_refused: Arc<AtomicBool>,
    ) -> Result<(u64, AbortHandle), RequestError> {
        let mut wanted: Vec<(&str, &str)> = [
            "toolsListChanged",
            "promptsListChanged",
            "resourcesListChanged",
        ]
        .map(|list| (list, "true"))
        .to_vec();
        let uris = serde_json::to_string(uris).unwrap_or_default();
        if uris != "[]" {
            wanted.push(("resourceSubscriptions", &uris));
        }
        let wanted = message::object(&wanted);
        let meta = self.core.meta(agreed.version, &OutgoingMeta::default());
        let params = message::object(&[("notifications", &wanted), ("_meta", &meta)]);
        let id = self.core.id();
        let mut wait = self.core.inbox.expect(id, None)?;
        self.core
            .send(
                id,
                SessionRequest::new("subscriptions/listen", params, agreed.version),
            )
            .await?;
        // Messages on the stream go to the inbox; its answer is the end of the stream.
        let task = tokio::spawn(async move {
            let has_none = match (&mut wait.answer).await {
                Ok(Err(RequestError::Refused(_))) => true,
                Ok(Err(RequestError::Failed(failure))) => {
                    failure.kind == UpstreamFailureKind::NotHere
                }
                _ => false,
            };
            is_refused.store(has_none, Ordering::Relaxed);
        });
        Ok((id, task.abort_handle()))
    }
}
