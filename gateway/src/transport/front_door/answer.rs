//! The bytes of answers, counted until their clients have taken them.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::{
    limits::{ByteBudget, BytesHolder, UNCOUNTED_MAX_BYTES},
    telemetry::{GatewayMetrics, metrics::LossReason},
    transport::http::connections::ClientConnection,
};

/// The body of an answer that is large, or whose size is not known. The connection frees each piece once the system has
/// taken it for the client.
pub(super) struct CountedBody {
    pub body: Body,
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
        let polled = Pin::new(&mut self.body).poll_frame(context);
        polled.map_ok(|frame| frame.map_data(|piece| self.count(piece)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
