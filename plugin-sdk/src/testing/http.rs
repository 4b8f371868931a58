//! A web service whose answers a test defines.

use std::cell::RefCell;

use crate::error::{Error, Result};
use crate::http::{Request, Response};

type Answer = Box<dyn FnMut(&Request) -> Result<Response>>;

thread_local! {
    static ANSWER: RefCell<Option<Answer>> = const { RefCell::new(None) };
    static SENT: RefCell<Vec<Request>> = const { RefCell::new(Vec::new()) };
}

/// Answers every request from now on by `answer`; without it, requests are `denied`.
pub fn answer(answer: impl FnMut(&Request) -> Result<Response> + 'static) {
    ANSWER.set(Some(Box::new(answer)));
}

/// Returns a JSON answer.
pub fn json(status: u16, body: &str) -> Response {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Response {
        status,
        headers,
        body: body.as_bytes().to_vec(),
    }
}

/// Returns the requests sent so far.
pub fn sent() -> Vec<Request> {
    SENT.with_borrow(Clone::clone)
}

/// Answers [`crate::http::send`].
pub fn send(request: &Request) -> Result<Response> {
    SENT.with_borrow_mut(|sent| sent.push(request.clone()));
    ANSWER.with_borrow_mut(|answer| match answer {
        Some(answer) => answer(request),
        None => Err(Error::denied(format!(
            "The connection {:?} is not granted.",
            request.connection
        ))),
    })
}

/// Answers [`crate::http::send_many`].
pub fn send_many(requests: &[Request]) -> Vec<Result<Response>> {
    requests.iter().map(send).collect()
}

pub(super) fn reset() {
    ANSWER.set(None);
    SENT.with_borrow_mut(Vec::clear);
}
