//! Keeps what calls looked like, for the question which of them a change would have refused.
//!
//! If `[contracts] impact_days` says so, it is kept for each valid call what its arguments looked like (see
//! [`weir_contracts::impact`]: no text, no free number), counted by day. Counts wait in memory and are written down
//! every few seconds; a process that is killed loses those of its last seconds, which no receipt speaks of.

use std::sync::Arc;

use dashmap::DashMap;
use weir_contracts::impact::Profile;
use weir_state::{ProfileRow, State};

use crate::{catalogue::CatalogueTool, identity::now_ms};

/// Different calls that may wait to be written down; further ones are not kept.
const WAITING_MAX: usize = 10_000;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// The counts that are not written down yet.
#[derive(Default)]
pub struct CallHistory {
    waiting: DashMap<Seen, i64>,
}

#[derive(PartialEq, Eq, Hash)]
struct Seen {
    contract: Arc<str>,
    tool: Arc<str>,
    agent: Arc<str>,
    profile: String,
}

impl CallHistory {
    pub fn note(&self, tool: &CatalogueTool, agent: &Arc<str>, profile: &Profile) {
        let profile = serde_json::to_string(profile).expect("a profile is plain data");
        let seen = Seen { contract: tool.contract.clone(), tool: tool.name.clone(), agent: agent.clone(), profile };
        if self.waiting.len() < WAITING_MAX || self.waiting.contains_key(&seen) {
            *self.waiting.entry(seen).or_default() += 1;
        }
    }

    fn take(&self) -> Vec<ProfileRow> {
        let mut rows = Vec::new();
        self.waiting.retain(|seen, calls| {
            rows.push(ProfileRow {
                contract: seen.contract.to_string(),
                tool: seen.tool.to_string(),
                agent: seen.agent.to_string(),
                profile: seen.profile.clone(),
                calls: *calls,
            });
            false
        });
        rows
    }

    /// Writes down what waits.
    pub async fn write(&self, state: &State, days: u32) {
        let rows = self.take();
        if rows.is_empty() {
            return;
        }
        let today = now_ms() / DAY_MS;
        if let Err(error) = state.keep_profiles(today, today - i64::from(days), &rows).await {
            tracing::error!(%error, "what calls looked like could not be kept");
        }
    }
}
