//! The bytes of answers: counted until clients have read them, and passed to the connection in pieces.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::task::coop;

use crate::{
    limits::{ByteBudget, BytesHolder, UNCOUNTED_MAX_BYTES},
    telemetry::{GatewayMetrics, metrics::LossReason},
    transport::http::connections::ClientConnection,
};

/// The bytes that the connection gets at once. Otherwise one system call would take megabytes of an answer, and the thread would
/// serve nothing else meanwhile.
const PIECE_BYTES: usize = 64 << 10;
/// The cost of each further piece, out of a task's cooperative budget of 128 operations.
const PIECE_OPERATIONS: usize = 32;

/// The body of an answer that is large, or whose size is unknown. The connection frees a piece as soon as the system has taken
/// all of it for the client.
pub(super) struct CountedBody {
    pub body: Body,
    /// Bytes that the body has produced, but that the connection has not yet received.
    pub rest: Bytes,
    pub budget: Arc<ByteBudget>,
    pub holder: BytesHolder,
    pub connection: Option<ClientConnection>,
    pub metrics: Arc<GatewayMetrics>,
}

impl CountedBody {
    fn count(&self, piece: Bytes) -> Bytes {
        if piece.len() <= UNCOUNTED_MAX_BYTES {
            return piece;
        }
        let (connection, metrics) = (self.connection.clone(), self.metrics.clone());
        let give_way = move || {
            if let Some(connection) = &connection {
                connection.close();
                metrics.connections_lost("agents", LossReason::Untaken, 1);
            }
        };
        let held = self
            .budget
            .hold_answer(self.holder.clone(), piece.len(), give_way);
        held.keep(piece)
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let polled = ready!(Pin::new(&mut self.body).poll_frame(context));
            let piece = match polled.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) => piece,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            self.rest = self.count(piece);
        } else {
            for _ in 0..PIECE_OPERATIONS {
                ready!(coop::poll_proceed(context)).made_progress();
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint() + SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::BodyExt as _;

    use super::*;

    fn counted(length: usize, budget: &Arc<ByteBudget>) -> CountedBody {
        CountedBody {
            body: Body::from(vec![b'x'; length]),
            rest: Bytes::new(),
            budget: budget.clone(),
            holder: None,
            connection: None,
            metrics: Arc::new(GatewayMetrics::new(1, None)),
        }
    }

    #[tokio::test]
    async fn a_large_answer_comes_in_pieces_and_counts_until_the_last_is_taken() {
        const LENGTH: usize = 10 * PIECE_BYTES + 1;
        let budget = Arc::new(ByteBudget::new(1 << 30, 1 << 30));
        let mut body = counted(LENGTH, &budget);
        let mut left = LENGTH;
        while left > 0 {
            assert!(!body.is_end_stream());
            assert_eq!(body.size_hint().exact(), Some(left as u64));
            let frame = body.frame().await.expect("a piece").expect("no error");
            let piece = frame.into_data().expect("data");
            assert_eq!(piece.len(), left.min(PIECE_BYTES));
            left -= piece.len();
            assert_eq!(budget.bytes(), LENGTH);
        }
        assert!(body.is_end_stream());
        assert!(body.frame().await.is_none());
        assert_eq!(budget.bytes(), 0);
    }

    #[tokio::test]
    async fn other_requests_go_on_between_the_pieces() {
        let budget = Arc::new(ByteBudget::new(1 << 30, 1 << 30));
        let turns = Arc::new(AtomicUsize::new(0));
        let counting = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counting.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let body = counted(64 * PIECE_BYTES, &budget);
        let whole = body.collect().await.expect("no error").to_bytes();
        assert_eq!(whole.len(), 64 * PIECE_BYTES);
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= 10, "{turns}");
        other.abort();
    }
}
