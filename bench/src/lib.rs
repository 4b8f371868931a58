//! The common parts of this crate's programs: the answers of the measured servers, and the requests to them.

pub mod load;
pub mod ticket;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    serve::{Listener, ListenerExt as _},
};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::net::{TcpListener, TcpStream};

/// Serves HTTP on loopback until this process is asked to end.
pub async fn serve(port: u16, router: Router) -> std::io::Result<()> {
    let listener = listen(port).await?;
    exit_on_term()?;
    axum::serve(listener, router).await
}

/// Serves MCP by rmcp at `/mcp`, with plain JSON and without sessions.
pub async fn serve_mcp(port: u16, server: impl ServerHandler + Clone) -> std::io::Result<()> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    serve(port, Router::new().nest_service("/mcp", service)).await
}

/// Listens as Weir does: an answer in several parts does not wait until the caller has acknowledged the first one, which may
/// take up to 40 ms.
async fn listen(port: u16) -> std::io::Result<impl Listener<Io = TcpStream, Addr = SocketAddr>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    Ok(listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    }))
}

/// Ends this process regularly on SIGTERM: a build that counts then writes its counts.
fn exit_on_term() -> std::io::Result<()> {
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move {
        term.recv().await;
        std::process::exit(0)
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_sends_each_part_at_once() {
        let mut listener = listen(0).await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let caller = TcpStream::connect(address)
            .await
            .expect("it lets everybody in");
        let (stream, from) = listener.accept().await;
        assert_eq!(from, caller.local_addr().expect("it is connected"));
        assert!(stream.nodelay().expect("a socket has its options"));
    }
}
