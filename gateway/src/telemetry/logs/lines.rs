//! Lines on their way to stderr: collected for a moment, then written together by a separate thread.

use std::{
    io::{self, Write},
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::MakeWriter;
use weir_connections::mask::mask;

/// The longest time that a line waits to be written together with others.
const HELD: Duration = Duration::from_millis(10);
/// The most bytes that may wait; beyond it, lines are lost, and counted.
const WAITING_MAX: usize = 4 << 20;
/// A buffer that has grown beyond this size is freed.
const BUFFER_KEPT: usize = 256 << 10;

/// The lines that wait to be written. A caller that adds one never waits for the reader of stderr.
#[derive(Default)]
pub(super) struct LogQueue {
    waiting: Mutex<QueuedLines>,
    changed: Condvar,
    lost: AtomicUsize,
}

#[derive(Default)]
struct QueuedLines {
    bytes: Vec<u8>,
    /// The thread waits for a first line.
    idle: bool,
    ended: bool,
}

/// The thread that writes them.
pub(super) struct LogWriter {
    lines: Arc<LogQueue>,
    thread: JoinHandle<()>,
}

impl LogQueue {
    /// Starts the writer. `to` receives all pending lines in one `write_all`.
    pub(super) fn start(to: impl Write + Send + 'static) -> io::Result<(Arc<Self>, LogWriter)> {
        let lines = Arc::new(Self::default());
        let thread = thread::Builder::new().name("weir-log".into()).spawn({
            let lines = lines.clone();
            move || lines.write_to(to)
        })?;
        Ok((lines.clone(), LogWriter { lines, thread }))
    }

    /// Adds one or several lines, each with its line end.
    pub(super) fn put(&self, line: &[u8]) {
        let mut waiting = self.waiting.lock();
        if waiting.bytes.len() + line.len() > WAITING_MAX {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes.extend_from_slice(line);
        if mem::take(&mut waiting.idle) {
            drop(waiting);
            self.changed.notify_one();
        }
    }

    pub(super) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    fn write_to(&self, mut to: impl Write) {
        let mut bytes = Vec::new();
        loop {
            let mut waiting = self.waiting.lock();
            while waiting.bytes.is_empty() {
                if waiting.ended {
                    return;
                }
                waiting.idle = true;
                self.changed.wait(&mut waiting);
            }
            self.changed
                .wait_while_for(&mut waiting, |waiting| !waiting.ended, HELD);
            mem::swap(&mut waiting.bytes, &mut bytes);
            drop(waiting);
            // A failure cannot be reported anywhere.
            let _ = to.write_all(&bytes).and_then(|()| to.flush());
            bytes.clear();
            bytes.shrink_to(BUFFER_KEPT);
        }
    }
}

impl LogWriter {
    /// Writes the pending lines, and ends the writer.
    pub(super) fn end(self) {
        self.lines.waiting.lock().ended = true;
        self.lines.changed.notify_one();
        let _ = self.thread.join();
    }
}

/// Whole lines, as `tracing` makes them.
pub(super) struct LogMakeWriter(pub(super) Arc<LogQueue>);

impl<'a> MakeWriter<'a> for LogMakeWriter {
    type Writer = &'a LogQueue;

    fn make_writer(&'a self) -> &'a LogQueue {
        &self.0
    }
}

impl Write for &LogQueue {
    /// Adds a line without the secrets that quoted texts in it may repeat.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.put(mask(&String::from_utf8_lossy(line)).as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A reader that takes one piece on request.
    struct Stalled(mpsc::Receiver<()>, mpsc::Sender<usize>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_does_not_read_holds_up_nobody() {
        let (go, wait) = mpsc::channel();
        let (took, taken) = mpsc::channel();
        let (lines, writer) = LogQueue::start(Stalled(wait, took)).expect("a thread");
        let line = [b'x'; 1 << 10];
        for _ in 0..3 * WAITING_MAX / line.len() {
            lines.put(&line);
        }
        let lost = lines.lost();
        assert!(lost >= WAITING_MAX / line.len(), "{lost}");
        drop(go);
        writer.end();
        let written: usize = taken.iter().sum();
        assert_eq!(
            written,
            3 * WAITING_MAX - lost * line.len(),
            "what was not lost is written at the end"
        );
    }
}
