//! Torn tails: what a process left behind that was killed while it wrote. Such a record was never answered.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{ChainName, chains, lock_ended, segments_of};

/// Repairs that one record states; what is left waits for the next process.
const REPAIRED_MAX: usize = 256;

/// Bytes after the last complete line were moved to a file beside the segment, ending in `.torn`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Repaired {
    pub(crate) chain: ChainName,
    pub(crate) segment: u32,
    pub(crate) torn_bytes: u64,
}

/// Repairs every ended chain. One that cannot be repaired is logged and left: it is no reason not to start.
pub(crate) fn repair(folder: &Path) -> io::Result<Vec<Repaired>> {
    let mut repaired = Vec::new();
    for (name, path) in chains(folder)? {
        match repair_chain(&name, &path) {
            Ok(torn) => repaired.extend(torn),
            Err(error) => tracing::warn!(chain = %name, %error, "an audit chain cannot be repaired"),
        }
        if repaired.len() >= REPAIRED_MAX {
            break;
        }
    }
    Ok(repaired)
}

/// Any segment: the last may be an empty one, that was made and not begun.
fn repair_chain(name: &ChainName, chain: &Path) -> io::Result<Vec<Repaired>> {
    let torn = |chain: &Path| -> io::Result<Vec<(u32, PathBuf)>> {
        let mut torn = segments_of(chain)?;
        // What cannot be read is for verification to tell.
        torn.retain(|(_, path)| is_torn(path).unwrap_or_default());
        Ok(torn)
    };
    // Looked at twice: first without the lock, since nearly all chains are whole.
    if torn(chain)?.is_empty() {
        return Ok(Vec::new());
    }
    let Some(_lock) = lock_ended(chain)? else { return Ok(Vec::new()) };
    let mut repaired = Vec::new();
    for (segment, path) in torn(chain)? {
        let torn_bytes = move_aside(&path, complete_bytes(&path)?)?;
        repaired.push(Repaired { chain: name.clone(), segment, torn_bytes });
    }
    Ok(repaired)
}

/// The file does not end with a newline.
fn is_torn(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Length of the complete lines at the start of a file.
fn complete_bytes(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut end = file.metadata()?.len();
    let mut block = vec![0; 64 << 10];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let block = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Copies before it cuts: killed in between, the next process does it again.
fn move_aside(segment: &Path, from: u64) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).write(true).open(segment)?;
    file.seek(SeekFrom::Start(from))?;
    let mut aside = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(torn_path(segment))?;
    let bytes = io::copy(&mut file, &mut aside)?;
    aside.flush()?;
    aside.sync_all()?;
    file.set_len(from)?;
    file.sync_all()?;
    Ok(bytes)
}

fn torn_path(segment: &Path) -> PathBuf {
    segment.with_extension("torn")
}
