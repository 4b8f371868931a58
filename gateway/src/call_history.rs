//! Keeps the profiles of past calls, to find out which of them a change would have refused.
//!
//! With `[contracts] impact_days`, the profile of each valid call's arguments is kept (see
//! [`weir_contracts::impact`]: no text, no free number), counted by day. Counts wait in memory and are written every few seconds;
//! a process that is killed loses those of its last seconds, which no receipt mentions.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use dashmap::DashMap;
use weir_contracts::impact::ValueProfile;
use weir_state::{GatewayState, ProfileRow, StateError};

use crate::{catalogue::CatalogueTool, identity::now_ms};

/// The most different calls that may wait to be written; further ones are not kept.
const WAITING_MAX: usize = 10_000;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// The counts that are not yet written.
#[derive(Default)]
pub struct CallHistory {
    waiting: DashMap<HistoryKey, i64>,
    /// The day before which everything has already been forgotten; 0 if nothing has.
    forgotten: AtomicI64,
}

#[derive(PartialEq, Eq, Hash)]
struct HistoryKey {
    contract: Arc<str>,
    tool: Arc<str>,
    agent: Arc<str>,
    profile: String,
}

impl CallHistory {
    /// Counts a valid call by the profile of its arguments. Once too many profiles wait to be written, new ones are not
    /// counted.
    pub fn note(&self, tool: &CatalogueTool, agent: &Arc<str>, profile: &ValueProfile) {
        let profile = serde_json::to_string(profile).expect("a profile is plain data");
        let seen = HistoryKey {
            contract: tool.contract.clone(),
            tool: tool.name.clone(),
            agent: agent.clone(),
            profile,
        };
        self.add(seen, 1);
    }

    fn add(&self, seen: HistoryKey, calls: i64) {
        if self.waiting.len() < WAITING_MAX || self.waiting.contains_key(&seen) {
            *self.waiting.entry(seen).or_default() += calls;
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

    /// Writes the pending profiles to the state, and deletes those older than `days`; with 0 days, all of them. Profiles that
    /// cannot be written continue to wait.
    pub async fn write(&self, state: &GatewayState, days: u32) -> Result<(), StateError> {
        let rows = self.take();
        let written = self.write_rows(state, days, &rows).await;
        if written.is_err() && days > 0 {
            for row in rows {
                let seen = HistoryKey {
                    contract: row.contract.into(),
                    tool: row.tool.into(),
                    agent: row.agent.into(),
                    profile: row.profile,
                };
                self.add(seen, row.calls);
            }
        }
        written
    }

    async fn write_rows(
        &self,
        state: &GatewayState,
        days: u32,
        rows: &[ProfileRow],
    ) -> Result<(), StateError> {
        let today = now_ms() / DAY_MS;
        let oldest = if days == 0 {
            today + 1
        } else {
            today - i64::from(days)
        };
        // Once a day, or when the number of days changes, since it takes the state's lock.
        if self.forgotten.load(Ordering::Relaxed) != oldest {
            state.forget_profiles(oldest).await?;
            self.forgotten.store(oldest, Ordering::Relaxed);
        }
        if days > 0 && !rows.is_empty() {
            state.keep_profiles(today, rows).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days also pass without any call, and profiles that are too old are forgotten immediately.
    #[tokio::test]
    async fn what_is_too_old_is_forgotten_without_a_call() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = GatewayState::open(folder.path()).await.expect("opened");
        let today = now_ms() / DAY_MS;
        for (day, tool) in [(today - 40, "old"), (today, "new")] {
            let (contract, agent) = ("desk".to_owned(), "ann".to_owned());
            let row = ProfileRow {
                contract,
                tool: tool.to_owned(),
                agent,
                profile: "{}".to_owned(),
                calls: 1,
            };
            state.keep_profiles(day, &[row]).await.expect("kept");
        }
        let history = CallHistory::default();
        let tools = async || {
            let rows = state.profiles("desk").await.expect("read");
            rows.into_iter().map(|row| row.tool).collect::<Vec<_>>()
        };
        history.write(&state, 30).await.expect("written");
        assert_eq!(tools().await, ["new"]);
        history.write(&state, 0).await.expect("written");
        assert!(tools().await.is_empty());
    }
}
