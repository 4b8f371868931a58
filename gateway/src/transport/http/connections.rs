//! Connections: accepted within a bound, with timeouts against slow clients, and drained at the end.

use std::{
    convert::Infallible, future::Future, net::SocketAddr, pin::pin, sync::Arc, time::Duration,
};

use axum::response::Response;
use hyper::{Request, body::Incoming, server::conn::http1, service::Service};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::head_timer::HeadTimer;

/// The head of a request takes no longer to arrive, and a kept connection is idle no longer.
const HEAD_MAX: Duration = Duration::from_secs(60);
/// The time after which a client that takes nothing of an answer loses the connection, which holds the answer and a
/// place.
#[cfg(target_os = "linux")]
const UNREAD_MAX: Duration = Duration::from_secs(60);
/// The time for which a client that reads no answer holds up the end of the process.
const DRAIN_MAX: Duration = Duration::from_secs(60);

tokio::task_local! {
    /// The peer of the connection that a task serves. It is asked for rarely, so no request carries it.
    static PEER: SocketAddr;
}

/// Returns who is at the other end of the connection whose request is being answered.
pub(crate) fn peer() -> Option<SocketAddr> {
    PEER.try_with(|peer| *peer).ok()
}

/// Runs work that a request hands to a task of its own, with the same answer of [`peer`].
pub(crate) async fn with_peer<T>(work: impl Future<Output = T>, peer: Option<SocketAddr>) -> T {
    match peer {
        Some(peer) => PEER.scope(peer, work).await,
        None => work.await,
    }
}

/// A service that answers the requests of all connections.
pub(crate) trait Answering:
    Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<S> Answering for S where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// Accepts until `shutdown`, then sets `ending` and returns when the connections have ended.
pub(crate) async fn serve(
    listener: TcpListener,
    service: impl Answering,
    connections_max: usize,
    shutdown: impl Future<Output = ()>,
    ending: &CancellationToken,
) {
    let connections = TaskTracker::new();
    let room = Arc::new(Semaphore::new(
        connections_max.clamp(1, Semaphore::MAX_PERMITS),
    ));
    let mut shutdown = pin!(shutdown);
    loop {
        // Without room the next client waits in the system's queue.
        let accepted = async {
            let permit = room.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection =
                    PEER.scope(peer, connection(stream, service.clone(), ending.clone()));
                connections.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            Err(error) => {
                // There are no file handles left, or the connection was gone already.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(20)).await;
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

async fn connection(stream: TcpStream, service: impl Answering, ending: CancellationToken) {
    // An answer is not held back to be sent with a next one.
    let _ = stream.set_nodelay(true);
    // The kernel's own clock: nothing is asked of it for a request.
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNREAD_MAX.as_millis() as u32);
    let connection = http1::Builder::new()
        .timer(HeadTimer::new(HEAD_MAX))
        .header_read_timeout(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = ending.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
