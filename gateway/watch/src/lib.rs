//! Reports when files may have changed, so that the loops that look at them need not look several times a second.
//!
//! A process has one [`FileWatcher`]. Each loop waits for its [`LookPace`]: it ends immediately when the kernel reports a change,
//! and otherwise each second, since not every change is reported (that of a file behind a link, for instance). Where the kernel
//! cannot report changes, as on network file systems, a loop looks at its interval.

#[cfg(target_os = "linux")]
mod inotify;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

#[cfg(target_os = "linux")]
use inotify as kernel;
#[cfg(not(target_os = "linux"))]
use unsupported as kernel;

/// The time between two looks if no change is reported.
const REST: Duration = Duration::from_secs(1);
/// The time after a change during which a loop looks at its interval. A writer is seldom done with its first write, and what
/// SQLite writes becomes visible only after it is on the disk, which is not reported.
const ACTIVE: Duration = Duration::from_secs(2);
/// The most that the first look after a change waits, so that it seldom finds half a file.
const SETTLE: Duration = Duration::from_millis(50);
/// The time within which the change of the probe must be reported.
const PROBE_MAX: Duration = Duration::from_millis(250);

/// The watcher of a process.
#[derive(Clone, Default)]
pub struct FileWatcher {
    /// `None` where the kernel reports nothing.
    kernel: Option<Arc<kernel::Kernel>>,
}

/// A folder or file whose changes matter.
#[derive(Clone, Debug)]
pub struct WatchTarget {
    folder: PathBuf,
    /// The prefix of the names of the files that count; `None` if all count.
    name: Option<OsString>,
}

/// The times at which one loop looks at its places.
pub struct LookPace {
    /// The time between two looks while something changes, or if nothing is reported.
    interval: Duration,
    rest: Duration,
    watch: Option<kernel::Watch>,
    active_until: Option<Instant>,
    is_logged: bool,
}

impl FileWatcher {
    /// Starts the watcher, if a change that is made in this folder is reported. The folder is one of the gateway's own.
    pub async fn start(folder: &Path) -> Self {
        match probe(folder).await {
            Ok(kernel) => Self {
                kernel: Some(kernel),
            },
            Err(why) => {
                tracing::warn!(
                    "changes of files cannot be watched, so the gateway looks for them several times a second: {why}"
                );
                Self::default()
            }
        }
    }

    /// Returns the pace of a loop over these places.
    pub fn pace(&self, interval: Duration, places: Vec<WatchTarget>) -> LookPace {
        LookPace {
            interval,
            rest: REST,
            watch: self.kernel.as_ref().map(|kernel| kernel.watch(places)),
            active_until: None,
            is_logged: false,
        }
    }
}

impl WatchTarget {
    /// The files at the top of a folder. There may be no such folder yet.
    pub fn folder(path: &Path) -> Self {
        Self {
            folder: path.to_owned(),
            name: None,
        }
    }

    /// A file, and those next to it whose names begin like its own.
    pub fn file(path: &Path) -> Self {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        Self {
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            name: path.file_name().map(OsString::from),
        }
    }
}

impl LookPace {
    /// Waits until it is time to look again. Dropping the future before its end loses no change.
    pub async fn next_look(&mut self) {
        let Some(watch) = &self.watch else {
            return sleep(self.interval).await;
        };
        if let Err(why) = watch.renew() {
            if !self.is_logged {
                self.is_logged = true;
                tracing::warn!("changes are looked for several times a second: {why}");
            }
            return sleep(self.interval).await;
        }
        if self
            .active_until
            .is_some_and(|until| Instant::now() < until)
        {
            sleep(self.interval).await;
            if watch.take_change() {
                self.active_until = Some(Instant::now() + ACTIVE);
            }
            return;
        }
        tokio::select! {
            () = watch.changed() => {
                self.active_until = Some(Instant::now() + ACTIVE);
                sleep(self.interval.min(SETTLE)).await;
            }
            () = beat_of(self.rest) => {}
        }
    }
}

/// Waits for the next of the seconds at which the loops of this process look. They look together, so that an idle process
/// wakes once a second and not once for each loop.
pub async fn next_beat() {
    beat_of(REST).await;
}

async fn beat_of(period: Duration) {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let first = *FIRST.get_or_init(Instant::now);
    let passed = first.elapsed().as_nanos() % period.as_nanos();
    let left = period.as_nanos() - passed;
    sleep(Duration::from_nanos(
        u64::try_from(left).unwrap_or(u64::MAX),
    ))
    .await;
}

/// Makes a file, and waits until the kernel has reported it.
async fn probe(folder: &Path) -> Result<Arc<kernel::Kernel>, String> {
    let kernel = kernel::Kernel::start()?;
    let watch = kernel.watch(vec![WatchTarget::folder(folder)]);
    watch.renew()?;
    let file = tempfile::Builder::new()
        .prefix(".watch-")
        .tempfile_in(folder)
        .map_err(|error| format!("no file can be made in {}: {error}", folder.display()))?;
    let reported = timeout(PROBE_MAX, watch.changed()).await;
    drop(file);
    reported.map_err(|_| format!("a new file in {} was not reported", folder.display()))?;
    Ok(kernel)
}

#[cfg(test)]
mod tests;
