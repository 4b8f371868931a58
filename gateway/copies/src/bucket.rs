//! The bucket: where parts of chains lie in it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::TryStreamExt as _;
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig,
    aws::{AmazonS3Builder, Checksum},
    path::Path,
};
use weir_audit::{ChainName, CollectedTrail};

use crate::http::BucketClient;

/// Retries of one request, and the time for all of them: a round is retried as a whole.
const RETRIES: usize = 2;
const REQUEST_MAX: Duration = Duration::from_secs(20);
const SCHEME: &str = "s3://";
const ENDING: &str = ".jsonl";

/// The place of the copies. Credentials come from the environment, as the tools of AWS read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketAddress {
    /// `s3://BUCKET/PREFIX`.
    pub url: String,
    /// The server, if it is not that of AWS.
    pub endpoint: Option<String>,
    pub region: Option<String>,
}

/// Why a trail could not be copied or fetched.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("`{0}` is not a place for copies: write s3://BUCKET/PREFIX")]
    Address(String),
    #[error("the bucket: {}", shorten_answer(_0))]
    Bucket(#[from] object_store::Error),
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the audit trail cannot be read: {0}")]
    Trail(#[from] std::io::Error),
    #[error("what was collected cannot be kept: {0}")]
    Collected(#[source] std::io::Error),
}

/// A bucket of S3 or a compatible service, and the prefix of the copies in it.
#[derive(Debug)]
pub struct CopyBucket {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

/// A part of a segment: the bytes of the segment that it has, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentPart {
    pub(crate) from: u64,
    pub(crate) end: u64,
    place: Path,
}

/// The parts of each segment of a chain, in the order of their first bytes.
pub(crate) type ChainParts = BTreeMap<u32, Vec<SegmentPart>>;

/// Leaves out what an answer repeats of the request, such as a session token.
fn shorten_answer(error: &object_store::Error) -> String {
    const CHARS_MAX: usize = 500;
    let text = error.to_string();
    let before = text.split("<AWSAccessKeyId>").next().unwrap_or_default();
    before.chars().take(CHARS_MAX).collect()
}

impl CopyBucket {
    /// Opens the bucket of an address. Credentials come from the environment. No request is sent yet.
    pub fn open(address: &BucketAddress) -> Result<Self, CopyError> {
        let wrong = || CopyError::Address(address.url.clone());
        let place = address.url.strip_prefix(SCHEME).ok_or_else(wrong)?;
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if bucket.is_empty() {
            return Err(wrong());
        }
        let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|_| wrong())?;
        let retries = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: REQUEST_MAX,
            ..RetryConfig::default()
        };
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            // A bucket with Object Lock rejects uploads without a checksum.
            .with_checksum_algorithm(Checksum::SHA256)
            .with_retry(retries)
            .with_http_connector(BucketClient::new()?);
        if let Some(endpoint) = &address.endpoint {
            builder = builder
                .with_endpoint(endpoint)
                .with_allow_http(endpoint.starts_with("http://"));
        }
        if let Some(region) = &address.region {
            builder = builder.with_region(region);
        }
        let store = Arc::new(builder.build()?);
        Ok(Self { store, prefix })
    }

    /// Puts a part. Its name includes its end: one that arrives late cannot replace a longer one.
    pub(crate) async fn put_part(
        &self,
        chain: &ChainName,
        segment: u32,
        from: u64,
        lines: Vec<u8>,
    ) -> Result<(), CopyError> {
        let end = from + lines.len() as u64;
        let name = format!("{from:016}-{end:016}{ENDING}");
        let place = self.segment_place(chain, segment).join(name);
        self.store.put(&place, PutPayload::from(lines)).await?;
        Ok(())
    }

    fn segment_place(&self, chain: &ChainName, segment: u32) -> Path {
        let chain = self.prefix.clone().join(chain.as_str());
        chain.join(format!("{segment:06}"))
    }

    /// Returns the parts of a chain. Other objects are left out.
    pub(crate) async fn chain_parts(&self, chain: &ChainName) -> Result<ChainParts, CopyError> {
        self.parts(&self.prefix.clone().join(chain.as_str())).await
    }

    async fn parts(&self, folder: &Path) -> Result<ChainParts, CopyError> {
        let mut parts = ChainParts::new();
        let mut objects = self.store.list(Some(folder));
        while let Some(object) = objects.try_next().await? {
            if let Some((segment, part)) = read_place(object.location, object.size) {
                parts.entry(segment).or_default().push(part);
            }
        }
        parts.values_mut().for_each(|parts| parts.sort());
        Ok(parts)
    }

    /// Returns the chains that have copies.
    pub async fn chains(&self) -> Result<Vec<ChainName>, CopyError> {
        let listed = self.store.list_with_delimiter(Some(&self.prefix)).await?;
        let chains = listed.common_prefixes.iter();
        let named = chains.filter_map(|place| place.filename()?.parse().ok());
        Ok(named.collect())
    }

    /// Returns the numbers of the segments of a chain that have copies.
    pub async fn segments(&self, chain: &ChainName) -> Result<Vec<u32>, CopyError> {
        let folder = self.prefix.clone().join(chain.as_str());
        let listed = self.store.list_with_delimiter(Some(&folder)).await?;
        let segments = listed.common_prefixes.iter();
        let mut numbers: Vec<u32> = segments
            .filter_map(|place| place.filename()?.parse().ok())
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Puts the copied lines of a segment into a folder. Where a part is missing, the lines after it follow those before it.
    pub async fn collect_segment(
        &self,
        chain: &ChainName,
        segment: u32,
        to: &CollectedTrail,
    ) -> Result<(), CopyError> {
        let mut collected = to
            .begin_segment(chain, segment)
            .map_err(CopyError::Collected)?;
        let mut parts = self.parts(&self.segment_place(chain, segment)).await?;
        let mut end = 0;
        for part in parts.remove(&segment).unwrap_or_default() {
            // A part that was put again has the bytes of the one before it, and more.
            if part.end <= end {
                continue;
            }
            let options = GetOptions {
                range: (part.from < end).then(|| GetRange::Offset(end - part.from)),
                ..GetOptions::default()
            };
            let lines = match self.store.get_opts(&part.place, options).await {
                // It was removed since it was listed.
                Err(object_store::Error::NotFound { .. }) => continue,
                lines => lines?,
            };
            let (mut lines, before) = (lines.into_stream(), collected.bytes());
            while let Some(lines) = lines.try_next().await? {
                collected.write(&lines).map_err(CopyError::Collected)?;
            }
            // What was read may be less than what was listed, or more.
            end = part.from.max(end) + (collected.bytes() - before);
        }
        collected.finish().map_err(CopyError::Collected)
    }
}

/// Returns the segment of the part at a place, and the part. Its name is `FROM-END.jsonl`, and was `FROM.jsonl` before.
fn read_place(place: Path, bytes: u64) -> Option<(u32, SegmentPart)> {
    let mut names = place.as_ref().rsplit('/');
    let name = names.next()?.strip_suffix(ENDING)?;
    let from = name.split_once('-').map_or(name, |(from, _)| from);
    let from: u64 = from.parse().ok()?;
    let segment = names.next()?.parse().ok()?;
    let end = from.checked_add(bytes)?;
    Some((segment, SegmentPart { from, end, place }))
}

/// Returns how many bytes from the beginning on are in parts without a gap.
pub(crate) fn whole_bytes(parts: &[SegmentPart]) -> u64 {
    parts
        .iter()
        .fold(0, |whole, part| match part.from <= whole {
            true => whole.max(part.end),
            false => whole,
        })
}

#[cfg(test)]
pub(crate) mod tests {
    use object_store::memory::InMemory;

    use super::*;

    /// Opens a bucket in memory.
    pub(crate) fn open_in_memory() -> (CopyBucket, Arc<InMemory>) {
        let store = Arc::new(InMemory::new());
        let bucket = CopyBucket {
            store: store.clone(),
            prefix: Path::from("weir"),
        };
        (bucket, store)
    }

    fn chain() -> ChainName {
        "20260822T101530Z-4711-9f3c2a01".parse().expect("a name")
    }

    /// Returns the lines of a segment that are collected from a bucket.
    async fn collect(bucket: &CopyBucket, segment: u32) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let to = CollectedTrail::begin(folder.path()).expect("a folder");
        let collected = bucket.collect_segment(&chain(), segment, &to).await;
        collected.expect("collected");
        let place = folder.path().join(chain().as_str());
        let file = place.join(format!("{segment:06}.jsonl"));
        std::fs::read_to_string(file).unwrap_or_default()
    }

    #[test]
    fn what_comes_after_a_gap_is_not_copied() {
        let whole = |parts: &[(u64, u64)]| {
            let part = |(from, bytes): &(u64, u64)| {
                let place = Path::from(format!("weir/c/000001/{from:016}.jsonl"));
                read_place(place, *bytes).expect("a part").1
            };
            whole_bytes(&parts.iter().map(part).collect::<Vec<_>>())
        };
        assert_eq!(whole(&[]), 0);
        assert_eq!(whole(&[(0, 10), (10, 5)]), 15);
        assert_eq!(whole(&[(0, 12), (10, 5)]), 15);
        assert_eq!(whole(&[(0, 10), (11, 5)]), 10);
        assert_eq!(whole(&[(3, 10)]), 0);
    }

    /// A request that its sender has abandoned may arrive after the one that replaced it.
    #[tokio::test]
    async fn a_shorter_part_that_arrives_late_takes_nothing_away() {
        let (bucket, _) = open_in_memory();
        for lines in ["one\n", "one\ntwo\n", "one\n"] {
            let put = bucket.put_part(&chain(), 1, 0, lines.into()).await;
            put.expect("it is put");
        }
        let more = bucket.put_part(&chain(), 1, 8, "three\n".into()).await;
        more.expect("it is put");
        let parts = bucket.chain_parts(&chain()).await.expect("a list");
        assert_eq!(whole_bytes(&parts[&1]), 14);
        assert_eq!(collect(&bucket, 1).await, "one\ntwo\nthree\n");
    }

    #[tokio::test]
    async fn parts_of_before_are_read_and_what_is_none_is_left_out() {
        let (bucket, store) = open_in_memory();
        let folder = format!("weir/{}/000002", chain());
        for (name, lines) in [
            ("0000000000000000.jsonl", "one\n"),
            ("0000000000000004-0000000000000008.jsonl", "two\n"),
            ("0000000000000006.jsonl", "o\nthree\n"),
            ("18446744073709551615.jsonl", "beyond"),
            ("notes.txt", "others"),
        ] {
            let place = Path::from(format!("{folder}/{name}"));
            store.put(&place, lines.into()).await.expect("it is put");
        }
        assert_eq!(collect(&bucket, 2).await, "one\ntwo\nthree\n");
        assert_eq!(bucket.segments(&chain()).await.expect("a list"), [2]);
        assert_eq!(bucket.chains().await.expect("a list"), [chain()]);
    }

    #[tokio::test]
    async fn what_follows_a_missing_part_is_collected() {
        let (bucket, _) = open_in_memory();
        for (from, lines) in [(0, "one\n"), (8, "three\n")] {
            let put = bucket.put_part(&chain(), 1, from, lines.into()).await;
            put.expect("it is put");
        }
        assert_eq!(collect(&bucket, 1).await, "one\nthree\n");
    }
}
