//! Web services: one base URL with its credentials. A guest chooses method, path, query and body; never a host.

use std::time::Instant;

use crate::ConnectionError;

pub struct HttpConnection {}

pub struct Request {
    pub method: String,
    /// Relative to the base URL, already percent-encoded by segment; checked not to leave it.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpConnection {
    /// True where methods other than GET and HEAD may be sent.
    pub fn writable(&self) -> bool {
        false
    }

    pub async fn send(&self, _request: Request, _deadline: Instant) -> Result<Response, ConnectionError> {
        Err(ConnectionError::new("unavailable", "not connected"))
    }
}

/// Chooses the process's one TLS stack; the first caller wins.
pub fn install_tls() {
    drop(rustls::crypto::ring::default_provider().install_default());
}
