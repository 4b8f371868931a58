//! HTTP+SSE, of the revision 2024-11-05: one stream for all that comes, and another address, named by it, for POSTs.

use std::sync::Arc;

use http::{
    HeaderValue, Method, Response, Uri,
    header::{ACCEPT, CONTENT_TYPE},
};
use http_body_util::Full;
use hyper::body::Incoming as Body;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;
use weir_protocol::sse::SseDecoder;

use super::{
    REPLY_MAX,
    child::too_large,
    client::{LinkClient, check_encoding, chunk, content_type, uri},
    large::LargeAnswer,
};
use crate::{
    error::{UpstreamFailure, UpstreamFailureKind},
    inbox::UpstreamInbox,
    settings::{UpstreamSettings, UpstreamUrl},
};

/// The answers to requests of the server that wait to be sent. More are dropped.
const REPLIES_MAX: usize = 64;

pub(crate) struct SseLink {
    sender: SseSender,
    reader: AbortOnDropHandle<()>,
}

#[derive(Clone)]
struct SseSender {
    client: LinkClient,
    endpoint: Uri,
}

impl SseLink {
    pub(crate) async fn open(
        url: &UpstreamUrl,
        message_max: usize,
        settings: &UpstreamSettings,
        inbox: Arc<UpstreamInbox>,
    ) -> Result<Self, UpstreamFailure> {
        let start = settings.start;
        let (client, address) = LinkClient::new(url, settings.tokens.clone())?;
        let expected = "the address to open a stream of MCP messages";
        let mut open = client.request(Method::GET, &uri(&address)?);
        open.headers_mut()
            .insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let late = || {
            UpstreamFailure::new(
                UpstreamFailureKind::Timeout,
                expected,
                format!("there was no answer within {} s", start.as_secs()),
            )
        };
        let response = timeout(start, client.send(open))
            .await
            .map_err(|_| late())??;
        let status = response.status();
        if matches!(status.as_u16(), 401 | 403) {
            return Err(UpstreamFailure::new(
                UpstreamFailureKind::Access,
                expected,
                format!("it answers {status}: it needs other credentials"),
            )
            .step("give a header that it accepts, such as `--header 'Authorization: Bearer …'`"));
        }
        if !status.is_success() || content_type(&response) != "text/event-stream" {
            return Err(UpstreamFailure::new(
                UpstreamFailureKind::NotHere,
                expected,
                format!("it answers {status} and no stream"),
            )
            .step(
                "check the path of the address; most servers answer at /mcp, older ones at /sse",
            ));
        }
        check_encoding(&response)?;
        let (named, endpoint) = oneshot::channel();
        let stream = SseReceiver {
            address,
            client,
            message_max,
            inbox,
            named: Some(named),
        };
        let reader = AbortOnDropHandle::new(tokio::spawn(stream.read(response)));
        match timeout(start, endpoint).await {
            Ok(Ok(sender)) => Ok(Self {
                sender: sender?,
                reader,
            }),
            _ => Err(UpstreamFailure::new(
                UpstreamFailureKind::Protocol,
                expected,
                "its stream does not name the address for messages",
            )),
        }
    }

    pub(crate) async fn send(&self, text: &str) -> Result<(), UpstreamFailure> {
        self.sender.send(text).await
    }

    pub(crate) fn close(&self) {
        self.reader.abort();
    }
}

impl SseSender {
    async fn send(&self, text: &str) -> Result<(), UpstreamFailure> {
        let mut request = self.client.request(Method::POST, &self.endpoint);
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = Full::from(text.to_owned());
        let status = self.client.send(request).await?.status();
        if status.is_success() {
            return Ok(());
        }
        let expected = "the server to accept a message at the address it named";
        Err(UpstreamFailure::new(
            UpstreamFailureKind::Unreachable,
            expected,
            format!("it answers {status}"),
        ))
    }
}

struct SseReceiver {
    address: url::Url,
    client: LinkClient,
    message_max: usize,
    inbox: Arc<UpstreamInbox>,
    named: Option<oneshot::Sender<Result<SseSender, UpstreamFailure>>>,
}

impl SseReceiver {
    async fn read(mut self, response: Response<Body>) {
        let mut body = response.into_body();
        let mut events = SseDecoder::new(self.message_max);
        let (mut sender, mut large) = (None::<SseSender>, LargeAnswer::default());
        let (replies, queue) = mpsc::channel(REPLIES_MAX);
        let _replying = AbortOnDropHandle::new(tokio::spawn(reply(queue)));
        let over = loop {
            let bytes = match chunk(&mut body).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => {
                    break UpstreamFailure::new(
                        UpstreamFailureKind::Closed,
                        "the server's stream to stay open",
                        "it ended",
                    );
                }
                Err(failure) => break failure,
            };
            let Ok(whole) = events.feed(&bytes) else {
                break too_large(self.message_max);
            };
            for event in whole {
                match event.name.as_deref() {
                    Some("endpoint") => sender = self.endpoint(&event.data).or(sender),
                    None | Some("message") if !event.data.is_empty() => {
                        let Some(text) = large.begin(event.data, &self.inbox).await else {
                            continue;
                        };
                        for reply in self.inbox.receive(&text, None).await {
                            // A server that asks and does not take the answers must not keep us from reading.
                            if let Some(sender) = sender.clone() {
                                let _ = replies.try_send((sender, reply));
                            }
                        }
                    }
                    _ => {}
                }
                self.inbox.pace().await;
            }
        };
        large.finish().await;
        self.inbox.close(over);
    }

    /// Credentials go where the operator sent them, and nowhere that a stream names.
    fn endpoint(&mut self, named: &str) -> Option<SseSender> {
        let expected = "the server to take messages at its own address";
        let refused =
            |cause: &str| UpstreamFailure::new(UpstreamFailureKind::Protocol, expected, cause);
        let found = match self.address.join(named.trim()) {
            Ok(endpoint) if endpoint.origin() == self.address.origin() => {
                uri(&endpoint).map(|endpoint| SseSender {
                    client: self.client.clone(),
                    endpoint,
                })
            }
            Ok(_) => Err(refused("it names an address of another host")),
            Err(_) => Err(refused("it names no address")),
        };
        let sender = found.as_ref().ok().cloned();
        if let Some(waiting) = self.named.take() {
            let _ = waiting.send(found); // the opening may have been abandoned
        }
        sender
    }
}

/// Sends the answers to requests of the server, one after the other.
async fn reply(mut queue: mpsc::Receiver<(SseSender, String)>) {
    while let Some((sender, reply)) = queue.recv().await {
        let _ = timeout(REPLY_MAX, sender.send(&reply)).await; // it asked; the answer is its own affair
    }
}
