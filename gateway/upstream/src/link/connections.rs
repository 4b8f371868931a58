//! The connections to one server. Whoever waits for an answer on one also reads and writes there, so that a call needs no other
//! task and is not handed from task to task.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::{
    body::{Body as _, Incoming},
    client::conn::{TrySendError, http1},
    service::Service as _,
};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo, service::TowerToHyperService};
use tokio::{net::TcpStream, runtime::Handle, time::timeout};

use super::client::broken;
use crate::error::{Failure, Kind};

const IDLE_MAX: Duration = Duration::from_secs(30);
/// The time that a server may take to end an answer of which nothing more is wanted: then its connection is used again.
const END_MAX: Duration = Duration::from_millis(50);

type Message = Request<Full<Bytes>>;
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

pub(super) struct Connections {
    connector: TowerToHyperService<HttpsConnector<HttpConnector>>,
    address: Uri,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The one that was used last stands at the end.
    connections: Vec<Connection>,
    is_swept: bool,
}

struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Reads and writes where it is polled. `None` once the connection is over.
    io: Option<Box<http1::Connection<Stream, Full<Bytes>>>>,
    used: Instant,
}

/// The body of an answer. Its connection is used again once it has ended.
pub(super) struct Body(Option<Open>);

struct Open {
    incoming: Incoming,
    connection: Connection,
    connections: Arc<Connections>,
}

impl Connections {
    pub(super) fn new(connector: HttpsConnector<HttpConnector>, address: Uri) -> Arc<Self> {
        Arc::new(Self { connector: TowerToHyperService::new(connector), address, idle: Mutex::default() })
    }

    /// Sends a request, and receives the head of its answer. A request that a connection did not take since the server had
    /// closed it goes over another one.
    pub(super) async fn send(self: &Arc<Self>, mut request: Message) -> Result<Response<Body>, Failure> {
        loop {
            let idle = self.take();
            let was_idle = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                None => Box::pin(self.connect()).await?,
            };
            match connection.exchange(request).await {
                Ok(response) => {
                    let connections = self.clone();
                    return Ok(response.map(|incoming| Body(Some(Open { incoming, connection, connections }))));
                }
                Err(mut error) => request = error.take_message().filter(|_| was_idle).ok_or_else(broken)?,
            }
        }
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let unreachable = || {
            Failure::new(Kind::Unreachable, "the address to be reached", "nothing answers there")
                .step("start the server, or correct host and port")
                .step("where the address is https, check its certificate")
                .before_sending()
        };
        let stream = self.connector.call(self.address.clone()).await.map_err(|_| unreachable())?;
        let (sender, io) = http1::handshake(stream).await.map_err(|_| unreachable())?;
        Ok(Connection { sender, io: Some(Box::new(io)), used: Instant::now() })
    }

    /// Returns a connection that waits for a request, if there is one that the server has not closed.
    fn take(&self) -> Option<Connection> {
        loop {
            let mut connection = lock(&self.idle).connections.pop()?;
            if connection.is_usable() {
                return Some(connection);
            }
        }
    }

    fn put(self: &Arc<Self>, connection: Connection) {
        let mut idle = lock(&self.idle);
        idle.connections.push(connection);
        if !idle.is_swept
            && let Ok(runtime) = Handle::try_current()
        {
            idle.is_swept = true;
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }
}

/// Closes what was not used for long, and what the server has closed.
async fn sweep(connections: Weak<Connections>) {
    loop {
        tokio::time::sleep(IDLE_MAX).await;
        let Some(connections) = connections.upgrade() else { return };
        let mut idle = lock(&connections.idle);
        idle.connections.retain_mut(Connection::is_usable);
        idle.is_swept = !idle.connections.is_empty();
        if !idle.is_swept {
            return;
        }
    }
}

impl Connection {
    async fn exchange(&mut self, request: Message) -> Result<Response<Incoming>, TrySendError<Message>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            self.drive(cx);
            answer.as_mut().poll(cx)
        })
        .await
    }

    /// Returns `true` if it was used not long ago, and waits for a request.
    fn is_usable(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.sender.is_ready() && self.used.elapsed() < IDLE_MAX
    }

    /// Reads and writes what can be without waiting. Whoever waits for a message of this connection looks for it afterwards.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if self.io.as_mut().is_some_and(|io| Pin::new(io).poll(cx).is_ready()) {
            self.io = None;
        }
    }
}

impl Body {
    /// Returns the next bytes, or `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(open) = &mut self.0 else { return Ok(None) };
        let chunk = poll_fn(|cx| open.poll_chunk(cx)).await;
        match chunk {
            Ok(Some(_)) => {}
            Ok(None) => self.0.take().into_iter().for_each(Open::end),
            Err(_) => self.0 = None,
        }
        chunk
    }
}

/// An answer may not be wanted to its end.
impl Drop for Body {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        if open.incoming.is_end_stream() {
            open.end();
        } else if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(open.finish());
        }
    }
}

impl Open {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Failure>> {
        let mut has_driven = false;
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Ok(Some(bytes)));
                    }
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(broken())),
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Pending if has_driven => return Poll::Pending,
                Poll::Pending => {
                    self.connection.drive(cx);
                    has_driven = true;
                }
            }
        }
    }

    /// Waits for the end, if it comes at once.
    async fn finish(mut self) {
        let end = async {
            loop {
                match poll_fn(|cx| self.poll_chunk(cx)).await {
                    Ok(Some(_)) => {}
                    Ok(None) => return true,
                    Err(_) => return false,
                }
            }
        };
        if timeout(END_MAX, end).await == Ok(true) {
            self.end();
        }
    }

    /// Gives back the connection.
    fn end(mut self) {
        self.connection.used = Instant::now();
        if self.connection.is_usable() {
            self.connections.put(self.connection);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
