//! The background thread of a trail: syncs, begins segments and removes old ones, so that no append waits for that.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{FsyncPolicy, TrailState};

/// The time between two looks at the place of the file and the age of the segment.
const LOOK: Duration = Duration::from_secs(1);
/// The time between two looks at the room that is taken.
const ROOM: Duration = Duration::from_secs(5);
/// The time until the next try after a failed rotation.
const RETRY: Duration = Duration::from_secs(10);

/// Stops its thread when dropped.
pub(super) struct TrailKeeper {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl TrailKeeper {
    pub(super) fn start(shared: Arc<TrailState>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name("weir-audit".into())
            .spawn(move || run(&shared, &stopped))?;
        Ok(Self {
            thread: Some(thread),
            stop,
        })
    }

    pub(super) fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for TrailKeeper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the thread that keeps the audit trail has panicked");
            }
        }
    }
}

fn run(shared: &TrailState, stop: &AtomicBool) {
    let mut sync_at = None;
    let mut look_at = Instant::now();
    let mut room_at = look_at;
    // The first is the earliest time for the rotation of a full segment, the second is when the segment reaches its
    // age.
    let mut retry_at = Instant::now();
    let mut aged_at = Instant::now() + shared.settings.segment_max_age;
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        if let FsyncPolicy::Interval(interval) = shared.settings.fsync {
            if shared.dirty.load(Ordering::Relaxed) {
                sync_at.get_or_insert(now + interval);
            }
            if sync_at.is_some_and(|at| at <= now) {
                sync_at = None;
                sync(shared);
            }
        }
        if look_at <= now {
            look_at = now + LOOK;
            shared.writer().check_place();
            shared.try_again();
        }
        if shared.room_due.swap(false, Ordering::Relaxed) || room_at <= now {
            room_at = now + ROOM;
            if let Err(error) = shared.check_room() {
                tracing::warn!(%error, "the size of the audit trail cannot be read");
            }
        }
        if retry_at <= now && (aged_at <= now || shared.full.load(Ordering::Relaxed)) {
            aged_at = now + shared.settings.segment_max_age;
            if let Err(error) = shared.rotate(false) {
                tracing::warn!(%error, "the audit trail cannot begin a new segment; it continues in the old one");
                retry_at = now + RETRY;
                aged_at = retry_at;
            }
        }
        let next = sync_at.map_or(look_at, |at| at.min(look_at));
        thread::park_timeout(next.saturating_duration_since(Instant::now()));
    }
}

/// Syncs. `dirty` is cleared before the records are looked at, so that one appended in the meantime sets it again.
fn sync(shared: &TrailState) {
    shared.dirty.store(false, Ordering::SeqCst);
    let (seq, _) = shared.writer().head();
    if shared.sync_up_to(seq).is_err() {
        // The failure was logged where it happened, and the sync is tried again.
        shared.dirty.store(true, Ordering::Relaxed);
    }
}
