//! Connections: accepted within bounds, with timeouts against slow clients, and drained at the end.

mod files;
mod seats;
mod stream;

use std::{
    convert::Infallible,
    future::Future,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use axum::response::Response;
use hyper::{
    Request,
    body::Incoming,
    rt::{Sleep, Timer},
    server::conn::http1,
    service::Service,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::files::connections_within_limit;
use self::{
    seats::{ConnectionSeat, SeatTable},
    stream::ClientStream,
};
use crate::telemetry::{GatewayMetrics, metrics::LossReason};

/// The bound on the head of a request, and on the bytes that a connection reads ahead.
const HEAD_MAX_BYTES: usize = 64 << 10;
/// The longest idle time of a kept-alive connection, and the time within which the head of a further request must arrive.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// The time after which a client that does not read an answer loses its connection, which holds the answer and a place.
#[cfg(target_os = "linux")]
const UNREAD_MAX: Duration = Duration::from_secs(60);
/// How long a client that does not read its answer may delay the end of the process.
const DRAIN_MAX: Duration = Duration::from_secs(60);
/// The shortest time between two log lines about lost connections.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

tokio::task_local! {
    /// The connection that a task serves. It is rarely needed, so requests do not carry it.
    static CONNECTION: ClientConnection;
}

/// The bounds on the connections of one listener.
pub(crate) struct ListenerBounds {
    /// The listener, as logs and metrics name it.
    pub listener: &'static str,
    pub connections_max: usize,
    /// Connections from one address on which no caller was identified.
    pub address_connections_max: usize,
    /// The time within which the head of the first request must arrive.
    pub first_head_max: Duration,
}

/// A connection that is being served.
#[derive(Clone)]
pub(crate) struct ClientConnection(Arc<ConnectionSeat>);

impl ClientConnection {
    /// Returns the connection whose request is being answered.
    pub(crate) fn current() -> Option<Self> {
        CONNECTION.try_with(Self::clone).ok()
    }

    /// Closes the connection, whatever it is doing.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}

/// While this exists, the connection waits for its client and may give way.
pub(crate) struct WaitingConnection(Option<ClientConnection>);

/// Notes that the connection whose request is being answered waits for the rest of a body.
pub(crate) fn wait_for_client() -> WaitingConnection {
    let connection = ClientConnection::current();
    if let Some(connection) = &connection {
        connection.0.set_sending(true);
    }
    WaitingConnection(connection)
}

impl Drop for WaitingConnection {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.0.set_sending(false);
        }
    }
}

/// Returns the peer address of the current request's connection.
pub(crate) fn peer() -> Option<SocketAddr> {
    CONNECTION.try_with(|connection| connection.0.peer).ok()
}

/// Notes that a caller was identified on the connection whose request is being answered: others give way before it.
pub(crate) fn set_known() {
    let _ = CONNECTION.try_with(|connection| connection.0.set_known()); // there is none in tests of single functions
}

/// Notes whether the caller on the connection whose request is being answered only reads: in a full listener it gives way.
pub(crate) fn set_yielding(is_yielding: bool) {
    let _ = CONNECTION.try_with(|connection| connection.0.set_yielding(is_yielding)); // as above
}

/// Runs work that a request moved to a separate task as work of its connection.
pub(crate) async fn within<T>(
    connection: Option<ClientConnection>,
    work: impl Future<Output = T>,
) -> T {
    match connection {
        Some(connection) => CONNECTION.scope(connection, work).await,
        None => work.await,
    }
}

/// A service that answers the requests of all connections.
pub(crate) trait RequestHandler:
    Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<S> RequestHandler for S where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// Accepts until `shutdown`, then sets `ending` and returns when the connections have ended.
pub(crate) async fn serve(
    listener: TcpListener,
    service: impl RequestHandler,
    bounds: &ListenerBounds,
    metrics: &GatewayMetrics,
    shutdown: impl Future<Output = ()>,
    ending: &CancellationToken,
) {
    let connections = TaskTracker::new();
    let seats = SeatTable::new(bounds.connections_max, bounds.address_connections_max);
    let mut losses = LossLog::new(bounds.listener, metrics);
    let first_head_max = bounds.first_head_max;
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            let (stream, peer) = listener.accept().await?;
            Ok::<_, std::io::Error>((stream, seats.take(peer).await))
        };
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, (taking, closed))) => {
                losses.note(
                    LossReason::GaveWay,
                    closed,
                    "connections were closed to make room",
                );
                let (service, ending) = (service.clone(), ending.clone());
                connections.spawn(async move {
                    let seat = taking.seat.clone();
                    let served = connection(stream, service, seat.clone(), first_head_max, ending);
                    within(Some(ClientConnection(seat)), served).await;
                    drop(taking);
                });
            }
            Err(error) => {
                // There are no file handles left, or the connection was already closed.
                let why = format!("connections could not be accepted: {error}");
                losses.note(LossReason::NotAccepted, 1, &why);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    ending.cancel();
    connections.close();
    if tokio::time::timeout(DRAIN_MAX, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            connections = connections.len(),
            "clients that do not read their answers are left"
        );
    }
}

async fn connection(
    stream: TcpStream,
    service: impl RequestHandler,
    seat: Arc<ConnectionSeat>,
    first_head_max: Duration,
    ending: CancellationToken,
) {
    // Answers are sent immediately instead of being collected (TCP_NODELAY).
    let _ = stream.set_nodelay(true);
    // The kernel runs this timer: it costs nothing per request.
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNREAD_MAX.as_millis() as u32);
    let connection = http1::Builder::new()
        .timer(HeadTimer::new(seat.clone(), first_head_max))
        .header_read_timeout(IDLE_MAX)
        .max_buf_size(HEAD_MAX_BYTES)
        .serve_connection(
            TokioIo::new(ClientStream::new(stream, seat.clone())),
            service,
        );
    let mut connection = pin!(connection);
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = seat.left() => {
            if seat.may_leave() {
                return;
            }
            // A request that arrived at the same moment is the last one.
            connection.as_mut().graceful_shutdown();
        }
        () = ending.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = connection => {}
        () = seat.closed() => {}
    }
}

/// Connections that a listener lost: all of them are counted, and one line a second is logged.
struct LossLog<'m> {
    listener: &'static str,
    metrics: &'m GatewayMetrics,
    unlogged: usize,
    logged: Option<Instant>,
}

impl<'m> LossLog<'m> {
    fn new(listener: &'static str, metrics: &'m GatewayMetrics) -> Self {
        Self {
            listener,
            metrics,
            unlogged: 0,
            logged: None,
        }
    }

    fn note(&mut self, lost: LossReason, count: usize, why: &str) {
        if count == 0 {
            return;
        }
        self.metrics.connections_lost(self.listener, lost, count);
        self.unlogged += count;
        if self
            .logged
            .is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL)
        {
            tracing::warn!(
                listener = self.listener,
                connections = self.unlogged,
                "{why}"
            );
            (self.unlogged, self.logged) = (0, Some(Instant::now()));
        }
    }
}

/// The timer of the runtime that all waits of a connection share.
type HeadClock = Arc<Mutex<Pin<Box<tokio::time::Sleep>>>>;

/// The time limit for the head of a request. hyper creates a timer for each request and drops it when the head has arrived. The
/// successive waits of one connection share one timer of the runtime, which is moved only when it fires. It also records when the
/// connection waits for a head.
struct HeadTimer {
    seat: Arc<ConnectionSeat>,
    clock: HeadClock,
    /// The end of the first wait, until that has begun.
    first: Mutex<Option<Instant>>,
}

struct HeadDeadline {
    deadline: Instant,
    clock: HeadClock,
    seat: Arc<ConnectionSeat>,
}

impl HeadTimer {
    /// Creates a timer. The first wait lasts no longer than `first`, and no later one is shorter.
    fn new(seat: Arc<ConnectionSeat>, first: Duration) -> Self {
        Self {
            seat,
            clock: Arc::new(Mutex::new(Box::pin(tokio::time::sleep(first)))),
            first: Mutex::new(Some(Instant::now() + first)),
        }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let first = self.first.lock().take();
        self.seat.set_waiting(true);
        Box::pin(HeadDeadline {
            deadline: first.map_or(deadline, |first| first.min(deadline)),
            clock: self.clock.clone(),
            seat: self.seat.clone(),
        })
    }
}

impl Drop for HeadDeadline {
    fn drop(&mut self) {
        self.seat.set_waiting(false);
    }
}

impl Future for HeadDeadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut clock = self.clock.lock();
        let deadline = self.deadline.into();
        loop {
            ready!(clock.as_mut().poll(context));
            if clock.deadline() >= deadline {
                return Poll::Ready(());
            }
            // The timer fired for an earlier request.
            clock.as_mut().reset(deadline);
        }
    }
}

impl Sleep for HeadDeadline {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first wait is the short one; each later one lasts as long as requested.
    #[tokio::test]
    async fn one_clock_serves_one_wait_after_another() {
        let short = Duration::from_millis(20);
        let (taking, _) = SeatTable::new(1, 1).take(([127, 0, 0, 1], 1).into()).await;
        let timer = HeadTimer::new(taking.seat.clone(), short);
        let mut answered = timer.sleep(short * 100);
        assert!(futures::poll!(answered.as_mut()).is_pending());
        answered.await;
        for wait in [short * 3, short] {
            let began = Instant::now();
            timer.sleep(wait).await;
            assert!(began.elapsed() >= wait);
        }
    }
}
