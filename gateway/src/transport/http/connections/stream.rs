//! The connection of a client that may have nothing more to send: some close their side after the request, like `nc -N`, and read
//! the answer. This looks like a client that has gone, until something is written to it.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Sleep,
};

use super::seats::ConnectionSeat;

/// How long a request is still answered after its client has closed its side. Then the client counts as gone.
const HALF_CLOSED_MAX: Duration = Duration::from_millis(500);

/// A connection whose end is reported later while a request is being answered.
pub(super) struct ClientStream {
    stream: TcpStream,
    seat: Arc<ConnectionSeat>,
    /// Set once the client has closed its side while a request was being answered.
    half_closed: Option<Pin<Box<Sleep>>>,
}

impl ClientStream {
    pub(super) fn new(stream: TcpStream, seat: Arc<ConnectionSeat>) -> Self {
        Self {
            stream,
            seat,
            half_closed: None,
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.half_closed.is_none() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            if buffer.filled().len() > before || !self.seat.is_answering() {
                return Poll::Ready(Ok(()));
            }
        }
        if !self.seat.is_answering() {
            return Poll::Ready(Ok(()));
        }
        let wait = || Box::pin(tokio::time::sleep(HALF_CLOSED_MAX));
        let wait = self.half_closed.get_or_insert_with(wait);
        wait.as_mut().poll(context).map(Ok)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
