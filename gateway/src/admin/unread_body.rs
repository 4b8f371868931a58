//! Announces the end of a connection whose request is answered before its body was read: hyper closes it, and an uninformed
//! client would lose its next request. The memory of a large body is given back.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
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

use crate::{memory, transport::front_door::closing};

/// Adds `Connection: close` to an answer whose request has a body that was not read to its end.
pub(super) async fn close_if_unread(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let arrival = Arc::new(BodyArrival::default());
    let watch = |body| {
        let arrival = arrival.clone();
        Body::new(WatchedBody { body, arrival })
    };
    let response = next.run(request.map(watch)).await;
    if arrival.is_read.load(Ordering::Relaxed) {
        response
    } else {
        closing(response)
    }
}

/// How much of a body has arrived.
#[derive(Default)]
struct BodyArrival {
    is_read: AtomicBool,
    bytes: AtomicUsize,
}

impl Drop for BodyArrival {
    /// This is the end of the request, even if its client has gone.
    fn drop(&mut self) {
        if *self.bytes.get_mut() >= memory::MUCH_BYTES {
            memory::give_free_blocks_back();
        }
    }
}

/// The body of a request, which records what was read of it.
struct WatchedBody {
    body: Body,
    arrival: Arc<BodyArrival>,
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
        self.arrival.is_read.fetch_or(is_over, Ordering::Relaxed);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.arrival.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
