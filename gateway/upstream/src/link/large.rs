//! Reads a large answer concurrently with the messages behind it, which may be for other callers.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;
use weir_admission::LARGE_BYTES;

use crate::{inbox::UpstreamInbox, unreadable::begins_answer};

/// The large answer of one connection that is being read. There is one at a time, since each takes memory.
#[derive(Default)]
pub(super) struct LargeAnswer(Option<AbortOnDropHandle<()>>);

impl LargeAnswer {
    /// Begins to read a message that is a large answer, and returns any other one. A large message waits for the one before it.
    pub(super) async fn begin<M: AsRef<[u8]> + Into<Vec<u8>>>(
        &mut self,
        message: M,
        inbox: &Arc<UpstreamInbox>,
    ) -> Option<M> {
        if message.as_ref().len() <= LARGE_BYTES {
            return Some(message);
        }
        self.finish().await;
        // Others keep their place: a call receives nothing more once it is answered.
        let is_whole = message.as_ref().trim_ascii_end().ends_with(b"}");
        if !is_whole || !begins_answer(message.as_ref()) {
            return Some(message);
        }
        let (inbox, message) = (inbox.clone(), message.into());
        self.0 = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let text = String::from_utf8(message)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            drop(inbox.receive(&text, None).await); // nothing is sent back for an answer
        })));
        None
    }

    /// Waits until the answer has been read.
    pub(super) async fn finish(&mut self) {
        if let Some(reading) = self.0.take() {
            let _ = reading.await; // it does not fail
        }
    }
}
