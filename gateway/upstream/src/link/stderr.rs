//! What a child writes to stderr.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::{Instant, sleep_until},
};
use weir_connections::mask::{SecretMask, masked};

use crate::{sandbox::KeptFiles, settings::UpstreamCommand};

/// The bytes of the end that are kept.
const STDERR_MAX_BYTES: usize = 64 * 1024;
/// The bytes of stderr that are read within a span of time, so that a child which writes without end waits.
const STDERR_BURST_BYTES: usize = 1 << 20;
const STDERR_BURST: Duration = Duration::from_millis(20);
/// The bytes at the beginning of a cut text that may be the rest of a secret.
const CUT_MAX_BYTES: usize = 8 * 1024;

/// The end of what a child wrote to stderr, without the values that it was given.
pub(super) struct StderrTail {
    bytes: Mutex<VecDeque<u8>>,
    given: SecretMask,
    /// Files of the gateway are kept from the child.
    pub(super) is_sandboxed: bool,
}

impl StderrTail {
    pub(super) fn new(command: &UpstreamCommand) -> Self {
        let values = command.environment.values();
        Self {
            bytes: Mutex::default(),
            given: SecretMask::new(values.filter_map(|value| value.to_str())),
            is_sandboxed: command.kept != KeptFiles::default(),
        }
    }

    pub(super) async fn read(self: Arc<Self>, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = [0; 4096];
        let (mut read, mut began) = (0, Instant::now());
        while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
            self.push(&chunk[..length]);
            read += length;
            if read > STDERR_BURST_BYTES {
                sleep_until(began + STDERR_BURST).await;
                (read, began) = (0, Instant::now());
            }
        }
    }

    fn push(&self, chunk: &[u8]) {
        let mut bytes = self.bytes.lock();
        bytes.extend(chunk);
        let over = bytes.len().saturating_sub(STDERR_MAX_BYTES);
        bytes.drain(..over);
    }

    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.lock().iter().copied().collect();
        let text = self
            .given
            .mask(&String::from_utf8_lossy(&bytes))
            .into_owned();
        let text = masked(text);
        match bytes.len() < STDERR_MAX_BYTES {
            true => text,
            // A secret whose beginning is gone is not found.
            false => text[text.ceil_char_boundary(CUT_MAX_BYTES)..].to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_rest_of_a_secret_that_was_cut_is_not_shown() {
        let secret = "s3cret-of-the-server";
        let command = UpstreamCommand {
            environment: std::collections::BTreeMap::from([("TOKEN".into(), secret.into())]),
            ..UpstreamCommand::default()
        };
        // Progress in a terminal is one line, which never ends.
        for separator in ["\r", "\n"] {
            let tail = Arc::new(StderrTail::new(&command));
            let after = format!("{separator}working").repeat(STDERR_MAX_BYTES / 8);
            let after = &after[..STDERR_MAX_BYTES - secret.len() / 2];
            let written = format!("{secret}{after}");
            tail.clone().read(written.as_bytes()).await;
            let text = tail.text();
            assert!(after.ends_with(&text), "{}", &text[..40]);
            assert!(text.len() > STDERR_MAX_BYTES / 2);
        }
    }

    #[tokio::test]
    async fn a_child_that_writes_errors_without_end_is_read_slowly() {
        let tail = Arc::new(StderrTail::new(&UpstreamCommand::default()));
        let (began, written) = (Instant::now(), vec![b'x'; 5 * STDERR_BURST_BYTES]);
        tail.read(&written[..]).await;
        assert!(began.elapsed() >= 4 * STDERR_BURST);
    }
}
