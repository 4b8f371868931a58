//! The files of a trail as copies of it need them: which chains have which segments, and their whole lines.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    ChainName, LINE_MAX_BYTES,
    folder::{self, FolderSurvey, repair::complete_bytes},
    verify::{ChainHead, CollectedHeads},
};

/// The bytes of whole lines that are read at once, at least; beyond one line they are not more.
pub const PART_MAX_BYTES: usize = 4 << 20;

/// A chain of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainFiles {
    #[schema(value_type = String)]
    pub chain: ChainName,
    /// Whether its process runs.
    pub live: bool,
    pub segments: Vec<SegmentFile>,
}

/// One segment of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SegmentFile {
    pub number: u32,
    /// The bytes of its whole lines.
    pub bytes: u64,
}

/// Returns the chains of a folder with their segments.
pub fn list_files(folder: &Path) -> io::Result<Vec<ChainFiles>> {
    let mut chains = Vec::new();
    for (chain, path) in folder::chains(folder)? {
        let looked = folder::is_live(&path).and_then(|live| Ok((live, list_segments(&path)?)));
        let (live, segments) = match looked {
            // Retention has removed the chain in the meantime, or it belongs to another user.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) =>
            {
                continue;
            }
            looked => looked?,
        };
        chains.push(ChainFiles {
            chain,
            live,
            segments,
        });
    }
    Ok(chains)
}

fn list_segments(chain: &Path) -> io::Result<Vec<SegmentFile>> {
    let segments = folder::begun_segments(chain)?;
    let newest = segments.last().map(|(number, _)| *number);
    let file = |(number, path): (u32, PathBuf)| {
        // What a killed process left torn was moved aside; the newest may be written to.
        let bytes = match Some(number) == newest {
            true => complete_bytes(&path)?,
            false => path.metadata()?.len(),
        };
        Ok(SegmentFile { number, bytes })
    };
    segments.into_iter().map(file).collect()
}

/// Reads whole lines of a segment from byte `from` on: those that fit into [`PART_MAX_BYTES`], and always the first.
/// Returns nothing if there are no lines.
pub fn read_lines(
    folder: &Path,
    chain: &ChainName,
    segment: u32,
    from: u64,
) -> io::Result<Vec<u8>> {
    let path = folder
        .join(chain.as_str())
        .join(folder::segment_name(segment));
    let mut file = File::open(path)?;
    // A position beyond the largest that the system supports would be an error.
    if from >= file.metadata()?.len() {
        return Ok(Vec::new());
    }
    file.seek(SeekFrom::Start(from))?;
    let mut lines = Vec::new();
    let max_bytes = PART_MAX_BYTES + LINE_MAX_BYTES;
    file.take(max_bytes as u64).read_to_end(&mut lines)?;
    let newline = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n');
    let fits = &lines[..lines.len().min(PART_MAX_BYTES)];
    let end = newline(fits).or_else(|| newline(&lines));
    lines.truncate(end.map_or(0, |newline| newline + 1));
    Ok(lines)
}

/// Returns the last record of each chain of a folder. `node` is the name of this machine.
pub fn list_heads(folder: &Path, node: &str) -> io::Result<CollectedHeads> {
    let survey = FolderSurvey::take(folder)?;
    let heads = survey.chains.iter().filter_map(|chain| {
        let last = chain.last?;
        Some(ChainHead {
            chain: chain.name.clone(),
            node: node.to_owned(),
            segment: chain.begun_segments().last()?.number,
            seq: last.seq,
            hash: last.hash,
        })
    });
    Ok(CollectedHeads {
        heads: heads.collect(),
    })
}
