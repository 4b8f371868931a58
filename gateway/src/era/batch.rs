//! The answers of one batch (2025-03-26 only), bounded together.

use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all, ready},
};

use crate::wire::RpcError;

/// The bytes of answers after which a batch gets no further ones: a short message can request long lists many times.
const BYTES_MAX: usize = 8 << 20;

#[derive(Default)]
pub(crate) struct RpcBatch {
    answers: Vec<BoxFuture<'static, Option<Vec<u8>>>>,
    bytes: usize,
}

impl RpcBatch {
    /// Checks that one more request may be answered.
    pub(crate) fn room(&self) -> Result<(), RpcError> {
        match self.bytes < BYTES_MAX {
            true => Ok(()),
            false => Err(RpcError::internal(
                "the answers of this batch are too large: send this request in another",
            )),
        }
    }

    pub(crate) fn answer(&mut self, body: Vec<u8>) {
        self.bytes += body.len();
        self.answers.push(ready(Some(body)).boxed());
    }

    /// Adds an answer that is still being made; it is `None` if the request was cancelled.
    pub(crate) fn later(&mut self, answer: BoxFuture<'static, Option<Vec<u8>>>) {
        self.answers.push(answer);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Returns all answers as one message, once the last is complete; `None` if there are none.
    pub(crate) async fn message(self) -> Option<Vec<u8>> {
        let answers: Vec<Vec<u8>> = join_all(self.answers).await.into_iter().flatten().collect();
        (!answers.is_empty()).then(|| [b"[".as_slice(), &answers.join(&b","[..]), b"]"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_batch_has_room_up_to_its_bound() {
        let mut batch = RpcBatch::default();
        assert!(batch.is_empty());
        let mut answered = 0;
        while batch.room().is_ok() {
            batch.answer(vec![b'7'; 1 << 20]);
            answered += 1;
        }
        assert_eq!(answered, BYTES_MAX >> 20);
        batch.later(ready(None).boxed());
        assert_eq!(
            batch.message().await.expect("answers").len(),
            BYTES_MAX + answered + 1
        );
        let mut cancelled = RpcBatch::default();
        cancelled.later(ready(None).boxed());
        assert_eq!(cancelled.message().await, None);
    }
}
