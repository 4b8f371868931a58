//! Torn tails: what a process left behind that was killed while it wrote. Such a record was never answered.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{ChainName, ChainView, FolderSurvey, lock_ended};

/// Repairs that one record states; the rest waits for the next process.
const REPAIRED_MAX: usize = 256;

/// Bytes after the last complete line were moved to a file next to the segment, ending in `.torn`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TailRepair {
    pub(crate) chain: ChainName,
    pub(crate) segment: u32,
    pub(crate) torn_bytes: u64,
}

/// Repairs the ended chains. One that cannot be repaired is logged and left as it is: it does not prevent the start.
pub(crate) fn repair(survey: &FolderSurvey) -> Vec<TailRepair> {
    let mut repaired = Vec::new();
    let torn =
        |chain: &&ChainView| !chain.live && chain.segments.iter().any(|segment| segment.torn);
    for chain in survey.chains.iter().filter(torn) {
        match repair_chain(chain) {
            Ok(segments) => repaired.extend(segments),
            Err(error) => {
                tracing::warn!(chain = %chain.name, %error, "an audit chain cannot be repaired")
            }
        }
        if repaired.len() >= REPAIRED_MAX {
            break;
        }
    }
    repaired
}

/// Repairs the torn segments of a chain. Any segment may be torn, not only the last one, which may have been created
/// but not begun.
fn repair_chain(chain: &ChainView) -> io::Result<Vec<TailRepair>> {
    let Some(_lock) = lock_ended(&chain.path)? else {
        return Ok(Vec::new());
    };
    let mut repaired = Vec::new();
    for segment in chain.segments.iter().filter(|segment| segment.torn) {
        let whole = complete_bytes(&segment.path)?;
        // Another process may have been here first.
        if whole < fs::metadata(&segment.path)?.len() {
            let torn_bytes = move_aside(&segment.path, whole)?;
            repaired.push(TailRepair {
                chain: chain.name.clone(),
                segment: segment.number,
                torn_bytes,
            });
        }
    }
    Ok(repaired)
}

/// Returns the length of the complete lines at the start of a file.
pub(crate) fn complete_bytes(path: &Path) -> io::Result<u64> {
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
    let mut aside = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(torn_path(segment))?;
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
