//! Copies new segments and lines each round.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{task::spawn_blocking, time::interval};
use weir_audit::{ChainFiles, ChainName, SegmentFile};

use crate::bucket::{CopyBucket, CopyError, whole_bytes};

/// The time between two rounds.
const ROUND: Duration = Duration::from_secs(10);

/// The state of copying, for metrics and for retention.
#[derive(Debug)]
pub struct CopyStatus(Mutex<CopyProgress>);

#[derive(Debug)]
struct CopyProgress {
    figures: CopyFigures,
    /// When the last round began after which all was copied; before the first, when this was made.
    whole_at: Instant,
}

/// Numbers for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CopyFigures {
    pub unshipped_segments: u64,
    pub unshipped_bytes: u64,
    /// Rounds that failed.
    pub failures: u64,
    /// The time since all that was written then was copied, if something is not.
    pub age: Duration,
}

impl Default for CopyStatus {
    fn default() -> Self {
        Self(Mutex::new(CopyProgress {
            figures: CopyFigures::default(),
            whole_at: Instant::now(),
        }))
    }
}

impl CopyStatus {
    /// Returns the figures of the last round. The age is that of now.
    pub fn figures(&self) -> CopyFigures {
        let known = self.0.lock();
        let age = match known.figures.unshipped_bytes {
            0 => Duration::ZERO,
            _ => known.whole_at.elapsed(),
        };
        CopyFigures {
            age,
            ..known.figures
        }
    }
}

/// Copies the chains of a folder to a bucket.
pub struct ChainShipper {
    bucket: CopyBucket,
    folder: PathBuf,
    status: Arc<CopyStatus>,
    /// For each segment of the folder the bytes that are copied. A chain is in it once the bucket was asked for its parts.
    shipped: BTreeMap<ChainName, BTreeMap<u32, u64>>,
}

impl ChainShipper {
    /// Creates the shipper of a folder. It reports each round to `status`.
    pub fn new(bucket: CopyBucket, folder: PathBuf, status: Arc<CopyStatus>) -> Self {
        Self {
            bucket,
            folder,
            status,
            shipped: BTreeMap::new(),
        }
    }

    /// Copies round after round. `note` takes the last segment of each chain up to which all is copied, whenever that has changed.
    pub async fn run(mut self, note: impl Fn(BTreeMap<ChainName, u32>)) {
        let mut ticks = interval(ROUND);
        let mut failing = false;
        loop {
            ticks.tick().await;
            match self.round(&note).await {
                Ok(()) => {
                    if std::mem::take(&mut failing) {
                        tracing::info!("the audit trail is copied again");
                    }
                }
                Err(error) => {
                    self.status.0.lock().figures.failures += 1;
                    if !std::mem::replace(&mut failing, true) {
                        tracing::error!(%error, "the audit trail cannot be copied: its segments are kept here until it can");
                    }
                }
            }
        }
    }

    /// Copies everything recorded so far. At the beginning and after each segment, `note` receives the last segment of each chain
    /// up to which everything is copied and final.
    pub async fn round(
        &mut self,
        note: impl Fn(BTreeMap<ChainName, u32>),
    ) -> Result<(), CopyError> {
        let begun = Instant::now();
        let files = self.list().await?;
        self.shipped
            .retain(|chain, _| files.iter().any(|files| files.chain == *chain));
        self.count(&files);
        note(self.copied_segments(&files));
        let mut unread = None;
        for chain in &files {
            for segment in &chain.segments {
                match self.ship(&chain.chain, *segment).await {
                    Ok(false) => continue,
                    Ok(true) => {}
                    // The other segments are copied anyway.
                    Err(error @ CopyError::Trail(_)) => {
                        unread.get_or_insert(error);
                    }
                    Err(error) => return Err(error),
                }
                self.count(&files);
                note(self.copied_segments(&files));
            }
        }
        unread.map_or(Ok(()), Err)?;
        self.status.0.lock().whole_at = begun;
        Ok(())
    }

    /// Copies everything recorded so far in one chain.
    pub async fn copy_chain(&mut self, chain: &ChainName) -> Result<(), CopyError> {
        let files = self.list().await?;
        for files in files.iter().filter(|files| files.chain == *chain) {
            for segment in &files.segments {
                self.ship(chain, *segment).await?;
            }
        }
        Ok(())
    }

    async fn list(&self) -> Result<Vec<ChainFiles>, CopyError> {
        let folder = self.folder.clone();
        Ok(blocking(move || weir_audit::list_files(&folder)).await?)
    }

    /// Copies the part of a segment that is not copied yet. Returns whether there was any.
    async fn ship(&mut self, chain: &ChainName, segment: SegmentFile) -> Result<bool, CopyError> {
        if !self.shipped.contains_key(chain) {
            let parts = self.bucket.chain_parts(chain).await?;
            let shipped = parts
                .iter()
                .map(|(segment, parts)| (*segment, whole_bytes(parts)));
            self.shipped.insert(chain.clone(), shipped.collect());
        }
        let number = segment.number;
        let mut is_new = false;
        loop {
            let from = self.shipped_bytes(chain, number);
            if from >= segment.bytes {
                break;
            }
            let (folder, name) = (self.folder.clone(), chain.clone());
            let read = blocking(move || weir_audit::read_lines(&folder, &name, number, from)).await;
            let lines = match read {
                // It was removed in the meantime.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
                lines => lines?,
            };
            let bytes = lines.len() as u64;
            if bytes == 0 {
                break;
            }
            self.bucket.put_part(chain, number, from, lines).await?;
            let shipped = self.shipped.entry(chain.clone()).or_default();
            shipped.insert(number, from + bytes);
            is_new = true;
        }
        Ok(is_new)
    }

    fn shipped_bytes(&self, chain: &ChainName, segment: u32) -> u64 {
        let shipped = self.shipped.get(chain);
        let bytes = shipped.and_then(|segments| segments.get(&segment));
        bytes.copied().unwrap_or_default()
    }

    fn copied_segments(&self, files: &[ChainFiles]) -> BTreeMap<ChainName, u32> {
        let copied = files
            .iter()
            .filter_map(|files| Some((files.chain.clone(), self.copied_segment(files)?)));
        copied.collect()
    }

    /// The newest segment of a chain whose process lives may grow.
    fn copied_segment(&self, files: &ChainFiles) -> Option<u32> {
        let ended = files.segments.len() - usize::from(files.live && !files.segments.is_empty());
        let copied = files.segments[..ended]
            .iter()
            .take_while(|file| self.shipped_bytes(&files.chain, file.number) >= file.bytes);
        copied.last().map(|file| file.number)
    }

    fn count(&self, files: &[ChainFiles]) {
        let (mut segments, mut bytes) = (0, 0);
        for files in files {
            for file in &files.segments {
                let left = file
                    .bytes
                    .saturating_sub(self.shipped_bytes(&files.chain, file.number));
                segments += u64::from(left > 0);
                bytes += left;
            }
        }
        let mut known = self.status.0.lock();
        known.figures.unshipped_segments = segments;
        known.figures.unshipped_bytes = bytes;
    }
}

async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    spawn_blocking(read).await.map_err(std::io::Error::other)?
}
