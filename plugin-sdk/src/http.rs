//! A web service, by the name of a connection, which holds the base address and the credentials.

#[cfg(target_arch = "wasm32")]
use crate::bindings::calls::http as imported;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::http as imported;
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::http as imported;

use crate::error::Result;

/// `path` is joined to the connection's base address; `query` is encoded by the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The connection's name.
    pub connection: String,
    /// `GET`, `POST`, …
    pub method: String,
    /// Below the connection's base address.
    pub path: String,
    /// Names and values, not encoded.
    pub query: Vec<(String, String)>,
    /// Names and values; the connection adds its credentials.
    pub headers: Vec<(String, String)>,
    /// The body; `None` for a request without a body.
    pub body: Option<Vec<u8>>,
    /// A JSON object: `query` is a text that is appended to the query as it is, such as `ids=1,2`, where the host would encode
    /// the comma.
    pub options: Option<String>,
}

/// The answer of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// Sends one request.
pub fn send(request: &Request) -> Result<Response> {
    imported::send(request)
}

/// Sends them side by side; answers in the order asked.
pub fn send_many(requests: &[Request]) -> Vec<Result<Response>> {
    imported::send_many(requests)
}
