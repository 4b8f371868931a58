//! A ledger in memory, for one process and for tests: the same arithmetic as the others have in SQL and in a script.

use std::collections::HashMap;

use crate::{
    level::TokenLevel,
    request::{BucketId, LedgerGrant, TokenRequest},
};

/// The buckets of all nodes.
#[derive(Debug, Default)]
pub struct MemoryLedger(HashMap<BucketId, TokenLevel>);

impl MemoryLedger {
    /// Answers each request, in their order.
    pub fn apply(&mut self, requests: &[TokenRequest], now: f64) -> Vec<LedgerGrant> {
        let answer = |request: &TokenRequest| {
            let full = TokenLevel {
                level: request.rate.burst,
                at: now,
            };
            let bucket = self.0.entry(request.id).or_insert(full);
            bucket.refill(request.rate, now);
            bucket.put_back(request.rate, request.given_back);
            let granted = bucket.take(request.wanted);
            LedgerGrant {
                granted,
                level: bucket.level,
            }
        };
        requests.iter().map(answer).collect()
    }
}
