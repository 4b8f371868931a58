//! The buckets that several nodes count together.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use weir_ledger::{BucketId, TokenRate};

use super::Rate;

/// Returns the name of a bucket, which is the same on each node and unique to the bucket.
pub(super) fn bucket_id(
    tenant: &str,
    agent: &str,
    tool: Option<&str>,
    (calls, seconds): Rate,
) -> BucketId {
    let mut digest = Sha256::new();
    for part in [Some(tenant), Some(agent), tool] {
        // The length distinguishes two names from one name that contains both.
        let length = part.map_or(u64::MAX, |part| part.len() as u64);
        digest.update(length.to_le_bytes());
        digest.update(part.unwrap_or_default());
    }
    digest.update(calls.to_le_bytes());
    digest.update(seconds.to_le_bytes());
    let digest = digest.finalize();
    let mut id = BucketId::default();
    let length = id.len();
    id.copy_from_slice(&digest[..length]);
    id
}

pub(super) fn token_rate((calls, seconds): Rate) -> TokenRate {
    TokenRate::new(calls, Duration::from_secs(seconds.max(1).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_has_a_name_of_its_own() {
        let ids = [
            bucket_id("t", "ab", None, (1, 1)),
            bucket_id("ta", "b", None, (1, 1)),
            bucket_id("t", "a", Some("b"), (1, 1)),
            bucket_id("t", "ab", Some(""), (1, 1)),
            bucket_id("t", "ab", None, (1, 60)),
        ];
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id));
        }
    }
}
