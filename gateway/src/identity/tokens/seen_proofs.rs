//! Used proofs, for as long as they would be valid. A proof is valid once.

use std::collections::HashMap;

use ahash::RandomState;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::{
    fault::TokenFault,
    proof::{KeyThumbprint, WINDOW_S},
};

/// Proofs that are remembered, over all keys.
const SEEN_MAX: usize = 100_000;
/// The time between two searches for expired proofs.
const PURGE_INTERVAL_S: i64 = 30;

/// The proofs of this process. If there are too many, the key with the most loses its older half, and proofs of that age are
/// refused for it: other keys lose nothing.
#[derive(Default)]
pub(super) struct SeenProofs(Mutex<ProofTable>);

#[derive(Default)]
struct ProofTable {
    by_key: HashMap<KeyThumbprint, KeyProofs, RandomState>,
    /// The proofs of all keys.
    count: usize,
    purged_s: i64,
}

/// The proofs of one key.
#[derive(Default)]
struct KeyProofs {
    /// When each was made, by the digest of its id.
    made_s: HashMap<[u8; 16], i64, RandomState>,
    /// Proofs made at this time or before are refused, since they may have been forgotten.
    forgotten_s: i64,
}

impl SeenProofs {
    /// Takes an otherwise valid proof, if it was not used before.
    pub(super) fn take(
        &self,
        key: &KeyThumbprint,
        id: &str,
        made_s: i64,
        now_s: i64,
    ) -> Result<(), TokenFault> {
        let digest = Sha256::digest(id);
        let id = digest[..16].try_into().expect("half of a digest");
        self.0.lock().take(key, id, made_s, now_s)
    }
}

impl ProofTable {
    fn take(
        &mut self,
        key: &KeyThumbprint,
        id: [u8; 16],
        made_s: i64,
        now_s: i64,
    ) -> Result<(), TokenFault> {
        if now_s >= self.purged_s.saturating_add(PURGE_INTERVAL_S) {
            self.purge(now_s);
        }
        if let Some(proofs) = self.by_key.get(key) {
            if proofs.made_s.contains_key(&id) {
                return Err(TokenFault::ProofReplayed);
            }
            if made_s <= proofs.forgotten_s {
                return Err(TokenFault::ProofForgotten);
            }
        }
        if self.room_is_short() && now_s > self.purged_s {
            self.purge(now_s);
        }
        if self.room_is_short() {
            self.halve_the_largest();
        }
        if self.room_is_short() {
            return Err(TokenFault::ProofsFull);
        }
        let proofs = self.by_key.entry(*key).or_default();
        // This key may be the one whose older half was dropped.
        if made_s <= proofs.forgotten_s {
            return Err(TokenFault::ProofForgotten);
        }
        proofs.made_s.insert(id, made_s);
        self.count += 1;
        Ok(())
    }

    /// A key takes room, too.
    fn room_is_short(&self) -> bool {
        self.count.max(self.by_key.len()) >= SEEN_MAX
    }

    /// Forgets proofs that are refused because of their time.
    fn purge(&mut self, now_s: i64) {
        let oldest_s = now_s - WINDOW_S;
        self.by_key.retain(|_, proofs| {
            proofs.made_s.retain(|_, made_s| *made_s >= oldest_s);
            !proofs.made_s.is_empty() || proofs.forgotten_s >= oldest_s
        });
        self.count = self.by_key.values().map(|all| all.made_s.len()).sum();
        self.purged_s = now_s;
    }

    fn halve_the_largest(&mut self) {
        let largest = self.by_key.values_mut().max_by_key(|all| all.made_s.len());
        let Some(proofs) = largest.filter(|all| all.made_s.len() > 1) else {
            return;
        };
        let mut times: Vec<i64> = proofs.made_s.values().copied().collect();
        let half = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(half);
        let (before, median) = (proofs.made_s.len(), *median);
        proofs.forgotten_s = proofs.forgotten_s.max(median);
        proofs.made_s.retain(|_, made_s| *made_s > median);
        self.count -= before - proofs.made_s.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_key_costs_others_nothing() {
        let seen = SeenProofs::default();
        let (quiet, loud) = ([1; 32], [2; 32]);
        assert_eq!(seen.take(&quiet, "first", 1000, 1000), Ok(()));
        for number in 0..3 * SEEN_MAX {
            let made_s = 1000 + (number / (SEEN_MAX / 10)) as i64;
            let taken = seen.take(&loud, &number.to_string(), made_s, 1030);
            assert!(taken.is_ok(), "{number}: {taken:?}");
        }
        let table = seen.0.lock();
        assert!(table.count <= SEEN_MAX, "{}", table.count);
        drop(table);
        let replayed = seen.take(&quiet, "first", 1000, 1030);
        assert_eq!(replayed, Err(TokenFault::ProofReplayed));
        assert_eq!(seen.take(&quiet, "second", 1000, 1030), Ok(()));
        let forgotten = seen.take(&loud, "0", 1000, 1030);
        assert_eq!(forgotten, Err(TokenFault::ProofForgotten));
        let newest = (3 * SEEN_MAX - 1).to_string();
        let replayed = seen.take(&loud, &newest, 1029, 1030);
        assert_eq!(replayed, Err(TokenFault::ProofReplayed));
    }

    #[test]
    fn proofs_are_forgotten_with_their_time() {
        let seen = SeenProofs::default();
        for number in 0..100 {
            let key = [number; 32];
            assert_eq!(seen.take(&key, "id", 1000, 1000), Ok(()));
        }
        assert_eq!(seen.take(&[200; 32], "id", 1100, 1100), Ok(()));
        let table = seen.0.lock();
        assert_eq!((table.count, table.by_key.len()), (1, 1));
    }
}
