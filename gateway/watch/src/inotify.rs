//! inotify: folders are watched, never files, since most files are changed by moving another one into their place.

use std::{
    ffi::CStr,
    io::{PipeReader, PipeWriter, pipe},
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
        statfs,
    },
    io::Errno,
};
use tokio::sync::Notify;

use crate::WatchTarget;

/// The least time between two readings of events: a folder that is written without end costs no more.
const BATCH: Duration = Duration::from_millis(5);
/// Room for the events of one reading.
const EVENT_BYTES: usize = 4096;

/// File systems that other machines, or programs, change without the kernel's knowledge, by their numbers in `statfs`.
const FOREIGN: [(u32, &str); 16] = [
    (0x0000_6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0000_517b, "SMB"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x786f_4256, "VirtualBox"),
    (0xbacb_acbc, "VMware"),
];

/// The changes that count. Reading a file does not.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The thread that reads events needs little more than room for them.
const STACK_BYTES: usize = 128 << 10;

/// The process's inotify instance.
pub(crate) struct Kernel {
    shared: Arc<InotifyState>,
    /// The thread that reads events ends when this is closed.
    _end: PipeWriter,
}

struct InotifyState {
    inotify: OwnedFd,
    watches: Mutex<Vec<Weak<WatchList>>>,
}

/// The places of one loop.
pub(crate) struct Watch {
    kernel: Arc<Kernel>,
    places: Arc<WatchList>,
}

struct WatchList {
    places: Mutex<Vec<InotifyWatch>>,
    changed: Notify,
}

struct InotifyWatch {
    place: WatchTarget,
    /// The number that inotify gave the folder; `None` while there is no folder.
    number: Option<i32>,
}

impl Kernel {
    pub(crate) fn start() -> Result<Arc<Self>, String> {
        let failed = |error: std::io::Error| format!("inotify: {error}");
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| failed(error.into()))?;
        let shared = Arc::new(InotifyState {
            inotify,
            watches: Mutex::default(),
        });
        let (ended, end) = pipe().map_err(failed)?;
        let events = shared.clone();
        thread::Builder::new()
            .name("weir-watch".into())
            .stack_size(STACK_BYTES)
            .spawn(move || read(&events, &ended))
            .map_err(failed)?;
        Ok(Arc::new(Self { shared, _end: end }))
    }

    pub(crate) fn watch(self: &Arc<Self>, places: Vec<WatchTarget>) -> Watch {
        let watched = |place| InotifyWatch {
            place,
            number: None,
        };
        let places = Arc::new(WatchList {
            places: Mutex::new(places.into_iter().map(watched).collect()),
            changed: Notify::new(),
        });
        let mut watches = self.shared.watches.lock();
        watches.retain(|watch| watch.strong_count() > 0);
        watches.push(Arc::downgrade(&places));
        Watch {
            kernel: self.clone(),
            places,
        }
    }
}

impl Watch {
    /// Watches the folders that are there now: one may be new, or a different one with the same name.
    pub(crate) fn renew(&self) -> Result<(), String> {
        for watched in self.places.places.lock().iter_mut() {
            self.kernel.shared.renew(watched)?;
        }
        Ok(())
    }

    /// Waits for a change after the last one that this, or [`take_change`](Self::take_change), has returned.
    pub(crate) async fn changed(&self) {
        self.places.changed.notified().await;
    }

    pub(crate) fn take_change(&self) -> bool {
        let mut changed = std::pin::pin!(self.places.changed.notified());
        changed.as_mut().enable()
    }
}

impl InotifyState {
    fn renew(&self, watched: &mut InotifyWatch) -> Result<(), String> {
        let folder = &watched.place.folder;
        let number = match inotify::add_watch(&self.inotify, folder, CHANGES) {
            Ok(number) => Some(number),
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(error) => return Err(format!("{} cannot be watched: {error}", folder.display())),
        };
        let before = std::mem::replace(&mut watched.number, number);
        if before == number {
            return Ok(());
        }
        if let Some(before) = before {
            // Gone already if its folder is. A loop with the same place watches it again at its next look.
            let _ = inotify::remove_watch(&self.inotify, before);
        }
        match number.and_then(|_| foreign_system(folder)) {
            Some(name) => {
                watched.number = None;
                Err(format!(
                    "{} is on {name}, where not every change is reported",
                    folder.display()
                ))
            }
            None => Ok(()),
        }
    }

    fn deliver(&self, number: i32, is_all: bool, name: Option<&CStr>) {
        for places in self.watches.lock().iter().filter_map(Weak::upgrade) {
            let is_meant = |watched: &InotifyWatch| {
                is_all || (watched.number == Some(number) && is_named(&watched.place, name))
            };
            if places.places.lock().iter().any(is_meant) {
                places.changed.notify_one();
            }
        }
    }
}

/// Returns `true` if an event with this name is of the place; without a name it is of the folder itself.
fn is_named(place: &WatchTarget, name: Option<&CStr>) -> bool {
    let (Some(begins), Some(name)) = (&place.name, name) else {
        return true;
    };
    name.to_bytes().starts_with(begins.as_bytes())
}

fn read(shared: &InotifyState, ended: &PipeReader) {
    let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
    loop {
        let mut ready = [
            PollFd::new(&shared.inotify, PollFlags::IN),
            PollFd::new(ended, PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => continue,
            Err(error) => return tracing::error!(%error, "changes of files are no longer reported"),
            Ok(_) if !ready[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        let mut reader = Reader::new(&shared.inotify, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let is_all = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    shared.deliver(event.wd(), is_all, event.file_name());
                }
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        thread::sleep(BATCH);
    }
}

/// Returns the name of the folder's file system, if the kernel does not see every change there.
fn foreign_system(folder: &Path) -> Option<&'static str> {
    let kind = statfs(folder).ok()?.f_type as u32;
    let (_, name) = FOREIGN.iter().find(|(number, _)| *number == kind)?;
    Some(name)
}
