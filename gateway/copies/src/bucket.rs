//! The bucket: where parts of chains lie in it.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::{
    ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder, Checksum},
    path::Path,
};
use weir_audit::ChainName;

use crate::http::BucketClient;

/// Further tries of one request, and the time for all of them: a round is tried again as a whole.
const RETRIES: usize = 2;
const REQUEST_MAX: Duration = Duration::from_secs(20);
const SCHEME: &str = "s3://";
const ENDING: &str = ".jsonl";

/// The place of the copies. Credentials come from the environment, as the tools of AWS read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketAddress {
    /// `s3://BUCKET/PREFIX`.
    pub url: String,
    /// The server, where it is not that of AWS.
    pub endpoint: Option<String>,
    pub region: Option<String>,
}

/// Why a trail could not be copied or fetched.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("`{0}` is no place for copies: it is like s3://BUCKET/PREFIX")]
    Address(String),
    #[error("the bucket: {}", shorten_answer(_0))]
    Bucket(#[from] object_store::Error),
    #[error("no client of HTTP: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the audit trail cannot be read: {0}")]
    Trail(#[from] std::io::Error),
    #[error("the copy of {chain} lacks bytes of segment {segment} from {from} on")]
    Gap {
        chain: ChainName,
        segment: u32,
        from: u64,
    },
}

/// A bucket of S3 or a compatible service, and the prefix of the copies in it.
#[derive(Debug)]
pub struct Bucket {
    store: AmazonS3,
    prefix: Path,
}

/// The parts of one chain: for each segment the bytes that they begin with and their lengths.
pub(crate) type ChainParts = BTreeMap<u32, BTreeMap<u64, u64>>;

/// Leaves out what an answer repeats of the request, such as a session token.
fn shorten_answer(error: &object_store::Error) -> String {
    const CHARS_MAX: usize = 500;
    let text = error.to_string();
    let before = text.split("<AWSAccessKeyId>").next().unwrap_or_default();
    before.chars().take(CHARS_MAX).collect()
}

impl Bucket {
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
            // A bucket with Object Lock takes nothing without one.
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
        let store = builder.build()?;
        Ok(Self { store, prefix })
    }

    pub(crate) async fn put_part(
        &self,
        chain: &ChainName,
        segment: u32,
        from: u64,
        lines: Vec<u8>,
    ) -> Result<(), CopyError> {
        let place = self.place(chain, segment, from);
        self.store.put(&place, PutPayload::from(lines)).await?;
        Ok(())
    }

    fn place(&self, chain: &ChainName, segment: u32, from: u64) -> Path {
        let chain = self.prefix.clone().join(chain.as_str());
        chain
            .join(format!("{segment:06}"))
            .join(format!("{from:016}{ENDING}"))
    }

    /// Returns the parts of a chain. Other objects are left out.
    pub(crate) async fn parts(&self, chain: &ChainName) -> Result<ChainParts, CopyError> {
        let mut parts = ChainParts::new();
        let folder = self.prefix.clone().join(chain.as_str());
        let mut objects = self.store.list(Some(&folder));
        while let Some(object) = objects.try_next().await? {
            if let Some((segment, from)) = part_of(&object.location) {
                parts.entry(segment).or_default().insert(from, object.size);
            }
        }
        Ok(parts)
    }

    /// Returns the chains that have copies.
    pub async fn chains(&self) -> Result<Vec<ChainName>, CopyError> {
        let listed = self.store.list_with_delimiter(Some(&self.prefix)).await?;
        let chains = listed.common_prefixes.iter();
        let named = chains.filter_map(|place| place.filename()?.parse().ok());
        Ok(named.collect())
    }

    /// Returns the copied segments of a chain with their lines.
    pub async fn segments(&self, chain: &ChainName) -> Result<Vec<(u32, Vec<u8>)>, CopyError> {
        let mut segments = Vec::new();
        for (segment, parts) in self.parts(chain).await? {
            let mut lines: Vec<u8> = Vec::new();
            for from in parts.into_keys() {
                let part: Bytes = self
                    .store
                    .get(&self.place(chain, segment, from))
                    .await?
                    .bytes()
                    .await?;
                // A part that was put again may reach into the next one, with the same bytes.
                let Some(known) = (lines.len() as u64).checked_sub(from) else {
                    let (chain, from) = (chain.clone(), lines.len() as u64);
                    return Err(CopyError::Gap {
                        chain,
                        segment,
                        from,
                    });
                };
                lines.extend_from_slice(part.get(known as usize..).unwrap_or_default());
            }
            segments.push((segment, lines));
        }
        Ok(segments)
    }
}

/// Returns the segment and the first byte of the part at a place.
fn part_of(place: &Path) -> Option<(u32, u64)> {
    let mut names = place.as_ref().rsplit('/');
    let from = names.next()?.strip_suffix(ENDING)?.parse().ok()?;
    Some((names.next()?.parse().ok()?, from))
}

/// Returns how many bytes from the beginning on are in parts without a gap.
pub(crate) fn whole_bytes(parts: &BTreeMap<u64, u64>) -> u64 {
    parts
        .iter()
        .fold(0, |whole, (from, bytes)| match *from <= whole {
            true => whole.max(from + bytes),
            false => whole,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_gap_is_not_copied() {
        let whole = |parts: &[(u64, u64)]| whole_bytes(&parts.iter().copied().collect());
        assert_eq!(whole(&[]), 0);
        assert_eq!(whole(&[(0, 10), (10, 5)]), 15);
        assert_eq!(whole(&[(0, 12), (10, 5)]), 15);
        assert_eq!(whole(&[(0, 10), (11, 5)]), 10);
        assert_eq!(whole(&[(3, 10)]), 0);
    }
}
