//! HTTP+SSE, of the revision 2024-11-05: one stream for all that comes, and another address, named by it, for POSTs.

use std::{sync::Arc, time::Duration};

use reqwest::{
    Client,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap},
};
use tokio::{sync::oneshot, task::AbortHandle, time::timeout};

use super::{
    child::too_large,
    event_stream::Events,
    http::{content_type, failed, parts},
};
use crate::{
    error::{Failure, Kind},
    inbox::Inbox,
    settings::Url,
};

pub(crate) struct SseLink {
    sender: Sender,
    reader: AbortHandle,
}

#[derive(Clone)]
struct Sender {
    client: Client,
    headers: HeaderMap,
    endpoint: reqwest::Url,
}

impl SseLink {
    pub(crate) async fn open(
        url: &Url,
        message_max: usize,
        start: Duration,
        inbox: Arc<Inbox>,
    ) -> Result<Self, Failure> {
        let (client, address, headers) = parts(url)?;
        let expected = "the address to open a stream of MCP messages";
        let open = client.get(address.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream").send();
        let late = || Failure::new(Kind::Timeout, expected, format!("nothing came within {} s", start.as_secs()));
        let response = timeout(start, open).await.map_err(|_| late())?.map_err(|error| failed(&error))?;
        let status = response.status();
        if matches!(status.as_u16(), 401 | 403) {
            return Err(Failure::new(
                Kind::Access,
                expected,
                format!("it answers {status}: it wants other credentials"),
            )
            .step("give a header that it accepts, such as `--header 'Authorization: Bearer …'`"));
        }
        if !status.is_success() || content_type(&response) != "text/event-stream" {
            return Err(Failure::new(Kind::NotHere, expected, format!("it answers {status} and no stream"))
                .step("check the path of the address; most servers answer at /mcp, older ones at /sse"));
        }
        let (named, endpoint) = oneshot::channel();
        let stream = Stream { address, client, headers, message_max, inbox, named: Some(named) };
        let reader = tokio::spawn(stream.read(response)).abort_handle();
        let sender = match timeout(start, endpoint).await {
            Ok(Ok(Ok(sender))) => sender,
            Ok(Ok(Err(failure))) => return Err(failure),
            _ => {
                reader.abort();
                return Err(Failure::new(
                    Kind::Protocol,
                    expected,
                    "its stream does not name the address for messages",
                ));
            }
        };
        Ok(Self { sender, reader })
    }

    pub(crate) async fn send(&self, text: &str) -> Result<(), Failure> {
        self.sender.send(text).await
    }

    pub(crate) fn close(&self) {
        self.reader.abort();
    }
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Sender {
    async fn send(&self, text: &str) -> Result<(), Failure> {
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(text.to_owned());
        let status = request.send().await.map_err(|error| failed(&error))?.status();
        if status.is_success() {
            return Ok(());
        }
        let expected = "the server to accept a message at the address it named";
        Err(Failure::new(Kind::Unreachable, expected, format!("it answers {status}")))
    }
}

struct Stream {
    address: reqwest::Url,
    client: Client,
    headers: HeaderMap,
    message_max: usize,
    inbox: Arc<Inbox>,
    named: Option<oneshot::Sender<Result<Sender, Failure>>>,
}

impl Stream {
    async fn read(mut self, mut response: reqwest::Response) {
        let mut events = Events::new(self.message_max);
        let mut sender = None;
        let over = loop {
            let bytes = match response.chunk().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break Failure::new(Kind::Closed, "the server's stream to stay open", "it ended"),
                Err(error) => break failed(&error),
            };
            let Ok(whole) = events.feed(&bytes) else { break too_large(self.message_max) };
            for event in whole {
                match event.name.as_deref() {
                    Some("endpoint") => sender = self.endpoint(&event.data).or(sender),
                    None | Some("message") if !event.data.is_empty() => {
                        for reply in self.inbox.receive(&event.data, None) {
                            let Some(sender): Option<Sender> = sender.clone() else { continue };
                            tokio::spawn(async move { sender.send(&reply).await });
                        }
                    }
                    _ => {}
                }
            }
        };
        self.inbox.close(over);
    }

    /// Credentials go where the operator sent them, and nowhere that a stream names.
    fn endpoint(&mut self, named: &str) -> Option<Sender> {
        let expected = "the server to take messages at its own address";
        let refused = |cause: &str| Failure::new(Kind::Protocol, expected, cause);
        let found = match self.address.join(named.trim()) {
            Ok(endpoint) if endpoint.origin() == self.address.origin() => {
                Ok(Sender { client: self.client.clone(), headers: self.headers.clone(), endpoint })
            }
            Ok(_) => Err(refused("it names an address of another host")),
            Err(_) => Err(refused("it names no address")),
        };
        let sender = found.as_ref().ok().cloned();
        if let Some(waiting) = self.named.take() {
            let _ = waiting.send(found); // the opening may have been given up
        }
        sender
    }
}
