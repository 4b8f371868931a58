//! Names the end of a connection whose request is answered before its body was read: hyper closes it, and the next request of a
//! client that was not informed would be lost.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    middleware::Next,
    response::Response,
};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::transport::front_door::closing;

/// Adds `Connection: close` to an answer whose request has a body that was not read to its end.
pub(super) async fn close_if_unread(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let is_read = Arc::new(AtomicBool::new(false));
    let watch = |body| {
        let is_read = is_read.clone();
        Body::new(WatchedBody { body, is_read })
    };
    let response = next.run(request.map(watch)).await;
    if is_read.load(Ordering::Relaxed) {
        response
    } else {
        closing(response)
    }
}

/// The body of a request, which records that its end was read.
struct WatchedBody {
    body: Body,
    is_read: Arc<AtomicBool>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let is_over = self.body.is_end_stream() || matches!(polled, Poll::Ready(None));
        self.is_read.fetch_or(is_over, Ordering::Relaxed);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
