//! The mark of a node's copy of the state: which one is complete, and until when it was known to have all changes that this node
//! had applied.
//!
//! A node that has reported a change as applied may be restarted without the database, and must not serve without that change:
//! before it reports the change, the mark of a copy that lacks it is removed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use weir_files::FilePermission;

const FILE: &str = "copy.json";
/// Held by the process that keeps the copy.
const LOCK: &str = "copy.lock";

/// A copy as the mark describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MarkedCopy {
    /// The number of the last change that it has.
    pub(crate) number: i64,
    /// The folder inside the state folder that the copy is in.
    pub(crate) folder: String,
    /// The timeline of the server that it was read from.
    pub(crate) timeline: Option<String>,
    /// The nodes that there were.
    pub(crate) nodes: usize,
    /// When it was known last that nothing had changed since, in milliseconds since 1970 by the clock of this machine.
    pub(crate) known_ms: u64,
}

/// The mark of one state folder, which one process at a time may set.
pub(crate) struct CopyMark {
    folder: PathBuf,
    _lock: fs::File,
    known: Mutex<MarkState>,
}

struct MarkState {
    copy: Option<MarkedCopy>,
    /// The last change that this node has confirmed.
    reported: i64,
    /// Set once no other node still waits for this one to apply changes.
    has_left: bool,
}

impl CopyMark {
    /// Returns `None` if another process keeps the copy of this folder.
    pub(crate) fn open(folder: &Path) -> io::Result<Option<Self>> {
        let lock = fs::File::create(folder.join(LOCK))?;
        weir_files::hand_over(&lock, folder);
        if lock.try_lock().is_err() {
            return Ok(None);
        }
        let text = fs::read(folder.join(FILE)).unwrap_or_default();
        Ok(Some(Self {
            folder: folder.to_owned(),
            _lock: lock,
            known: Mutex::new(MarkState {
                // A mark that cannot be read counts as none.
                copy: serde_json::from_slice(&text).ok(),
                reported: i64::MIN,
                has_left: false,
            }),
        }))
    }

    /// Returns the copy that is whole, if there is one.
    pub(crate) fn copy(&self) -> Option<MarkedCopy> {
        self.known.lock().copy.clone()
    }

    /// Marks a copy as whole. Returns `false` if it lacks a change that this node has confirmed, or may confirm soon.
    pub(crate) fn set(&self, copy: MarkedCopy) -> io::Result<bool> {
        let mut known = self.known.lock();
        if known.has_left || copy.number < known.reported {
            return Ok(false);
        }
        self.write(&copy)?;
        known.copy = Some(copy);
        Ok(true)
    }

    /// Notes when the copy that is whole was known last to lack nothing, if there still is one.
    pub(crate) fn set_again(&self, known_ms: u64) -> io::Result<()> {
        let mut known = self.known.lock();
        let Some(copy) = known.copy.clone() else {
            return Ok(());
        };
        let copy = MarkedCopy { known_ms, ..copy };
        self.write(&copy)?;
        known.copy = Some(copy);
        Ok(())
    }

    /// Removes the mark of an earlier process: the database may be a different one, or an older state of it.
    pub(crate) fn give_up(&self) -> io::Result<()> {
        let mut known = self.known.lock();
        self.remove_file()?;
        known.copy = None;
        Ok(())
    }

    /// Notes that this node is about to report all changes up to a number as applied. `timeline` is that of the server: a copy
    /// from another timeline may have changes that this server lacks, as may a copy if the numbers go back.
    pub(crate) fn report(&self, number: i64, timeline: Option<&str>) -> io::Result<()> {
        let mut known = self.known.lock();
        let is_back = number >= 0 && number < known.reported;
        let is_past = |copy: &MarkedCopy| {
            copy.number < number || is_back || copy.timeline.as_deref() != timeline
        };
        if known.copy.as_ref().is_some_and(is_past) {
            self.remove_file()?;
            known.copy = None;
        }
        known.reported = number;
        Ok(())
    }

    /// Removes the mark before this process leaves the list of nodes. Returns the removed mark.
    pub(crate) fn leave(&self) -> io::Result<Option<MarkedCopy>> {
        let mut known = self.known.lock();
        known.has_left = true;
        if known.copy.is_some() {
            self.remove_file()?;
        }
        Ok(known.copy.take())
    }

    /// Marks a copy again, where this process could not be taken off the nodes.
    pub(crate) fn stay(&self, copy: MarkedCopy) -> io::Result<bool> {
        self.known.lock().has_left = false;
        self.set(copy)
    }

    fn write(&self, copy: &MarkedCopy) -> io::Result<()> {
        let text = serde_json::to_vec(copy).map_err(io::Error::other)?;
        weir_files::replace(&self.folder.join(FILE), &text, FilePermission::Owner)
    }

    fn remove_file(&self) -> io::Result<()> {
        match fs::remove_file(self.folder.join(FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // The machine may fail too.
        fs::File::open(&self.folder)?.sync_all()
    }
}

impl MarkedCopy {
    /// Returns the time since the copy was known to lack nothing; `None` where the clock was set back since.
    pub(crate) fn age(&self) -> Option<Duration> {
        let known = UNIX_EPOCH + Duration::from_millis(self.known_ms);
        SystemTime::now().duration_since(known).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(number: i64) -> MarkedCopy {
        MarkedCopy {
            number,
            folder: "copy-0".to_owned(),
            timeline: None,
            nodes: 3,
            known_ms: 0,
        }
    }

    #[test]
    fn a_copy_that_lacks_what_was_taken_over_is_no_longer_marked() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let open = || CopyMark::open(folder.path()).expect("a folder");
        let mark = open().expect("no other process");
        assert!(open().is_none(), "one process keeps it");
        assert!(mark.set(copy(5)).expect("written"));
        mark.report(5, None).expect("kept");
        assert_eq!(mark.copy(), Some(copy(5)));
        mark.report(6, None).expect("removed");
        assert_eq!(mark.copy(), None);
        assert!(!mark.set(copy(5)).expect("not written"), "it came too late");
        drop(mark);
        let mark = open().expect("the other one has ended");
        assert_eq!(mark.copy(), None, "it is gone from the disk too");
        assert!(mark.set(copy(6)).expect("written"));
        drop(mark);
        let mark = open().expect("the other one has ended");
        assert_eq!(mark.leave().expect("removed"), Some(copy(6)));
        assert!(!mark.set(copy(7)).expect("not written"), "it has left");
        assert!(mark.stay(copy(6)).expect("written"), "it could not");
        mark.leave().expect("removed");
        drop(mark);
        assert_eq!(open().expect("no other process").copy(), None);
    }
}
