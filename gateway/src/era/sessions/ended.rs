//! Sessions that are not taken up again.

use std::{
    collections::{HashSet, VecDeque},
    time::Instant,
};

use ahash::RandomState;
use parking_lot::Mutex;

use super::{LIFE, SessionId};

/// Ended sessions that are known at once; over it the first ones are forgotten, and could be taken up by who ended them.
const ENDED_MAX: usize = 1 << 16;

#[derive(Default)]
pub(super) struct EndedSessions(Mutex<Ended>);

#[derive(Default)]
struct Ended {
    ids: HashSet<SessionId, RandomState>,
    order: VecDeque<(SessionId, Instant)>,
}

impl EndedSessions {
    pub(super) fn add(&self, id: SessionId) {
        let mut ended = self.0.lock();
        if !ended.ids.insert(id) {
            return;
        }
        ended.order.push_back((id, Instant::now()));
        while let Some((first, at)) = ended.order.front().copied()
            && (ended.order.len() > ENDED_MAX || at.elapsed() > LIFE)
        {
            ended.order.pop_front();
            ended.ids.remove(&first);
        }
    }

    pub(super) fn contains(&self, id: SessionId) -> bool {
        self.0.lock().ids.contains(&id)
    }
}
