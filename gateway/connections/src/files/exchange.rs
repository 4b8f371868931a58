//! Replaces the file that a new file was made from, and no other.
//!
//! The two exchange their names in one step, and the file that comes out is examined: a program that saved in the meantime
//! has put another file there, or has written to this one. Then the names are exchanged again, until the file that comes out
//! is the last one put there, so that the latest save has the name. A program that writes in place opens the old file, which
//! loses its name a moment later; a lease on it detects such a program before and after the exchange.

use std::{
    io::{self, ErrorKind},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use cap_std::fs::Dir;
use rustix::fs::{RenameFlags, renameat_with};

use super::{
    lease::{FileLease, LeaseAnswer},
    replace::TEMPORARY,
    root::open_itself,
    version::FileStamp,
};

/// The longest wait for a program that has the file open for writing. Some keep it open as long as they show it.
const WRITERS_WAIT_MAX: Duration = Duration::from_millis(200);
const WRITERS_LOOK_EVERY: Duration = Duration::from_millis(2);
/// The number of times names are exchanged again because another program saves in between.
const TURNS_MAX: usize = 100;

/// The result of the exchange.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExchangeOutcome {
    /// It has the name, and the file that was read is gone.
    Done,
    /// Another program has saved; its file has the name.
    Changed,
}

/// Returns the stamp of the file with this name; a link itself has none.
pub(super) fn stamp(folder: &Dir, name: &Path) -> Option<FileStamp> {
    let metadata = folder.symlink_metadata(name).ok()?;
    Some(FileStamp::from_metadata(&metadata))
}

/// Gives the temporary file the name of the file with this stamp.
pub(super) fn exchange(
    folder: &Dir,
    name: &Path,
    expected: FileStamp,
) -> io::Result<ExchangeOutcome> {
    let old = match open_itself(folder, name) {
        Ok(old) => old.into_std(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ExchangeOutcome::Changed),
        Err(error) => return Err(error),
    };
    let lease = wait_for_writers(&old);
    // The last look before: most changes show here, and nothing has to be undone.
    if stamp(folder, name) != Some(expected) {
        return Ok(ExchangeOutcome::Changed);
    }
    let ours = stamp(folder, Path::new(TEMPORARY));
    match swap(folder, name) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ExchangeOutcome::Changed),
        // File systems that cannot exchange names: a save between the look and the renaming is lost there.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported
            ) =>
        {
            folder.rename(TEMPORARY, folder, name)?;
            return Ok(ExchangeOutcome::Done);
        }
        Err(error) => return Err(error),
    }
    let is_awaited = lease.as_ref().is_some_and(FileLease::is_awaited);
    let came_out = stamp(folder, Path::new(TEMPORARY));
    if !is_awaited && came_out.is_some_and(|came_out| came_out.is_same_content(&expected)) {
        return Ok(ExchangeOutcome::Done);
    }
    give_back(folder, name, ours)?;
    Ok(ExchangeOutcome::Changed)
}

/// Exchanges the names until the newest file of another program has the name, and ours is temporary.
fn give_back(folder: &Dir, name: &Path, ours: Option<FileStamp>) -> io::Result<()> {
    // The file that was put there last comes out, unless another program has saved since.
    let mut last_put = ours;
    for _ in 0..TURNS_MAX {
        let now_put = stamp(folder, Path::new(TEMPORARY));
        match swap(folder, name) {
            // Another program has removed the file.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            swapped => swapped?,
        }
        let came_out = stamp(folder, Path::new(TEMPORARY));
        let is_same = |(out, put): (FileStamp, FileStamp)| out.is_same_file(&put);
        if came_out.zip(last_put).is_none_or(is_same) {
            return Ok(());
        }
        last_put = now_put;
    }
    Ok(())
}

fn swap(folder: &Dir, name: &Path) -> io::Result<()> {
    renameat_with(folder, TEMPORARY, folder, name, RenameFlags::EXCHANGE)?;
    Ok(())
}

/// Returns `true` if another program is known to have the file open for writing.
pub(super) fn has_writer(folder: &Dir, name: &Path) -> bool {
    let Ok(file) = open_itself(folder, name) else {
        return false;
    };
    let file = file.into_std();
    matches!(FileLease::take(&file), LeaseAnswer::Writers)
}

/// Waits while another program has the file open for writing. The lease tells of those that come later.
fn wait_for_writers(old: &std::fs::File) -> Option<FileLease<'_>> {
    let begin = Instant::now();
    loop {
        match FileLease::take(old) {
            LeaseAnswer::Given(lease) => return Some(lease),
            LeaseAnswer::Writers if begin.elapsed() < WRITERS_WAIT_MAX => {
                thread::sleep(WRITERS_LOOK_EVERY);
            }
            LeaseAnswer::Writers | LeaseAnswer::Unknown => return None,
        }
    }
}
