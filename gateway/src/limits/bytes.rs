//! Bounds the bytes that clients make the gateway hold: bodies that are being read, and answers that clients have not read yet.
//! There is one bound on all bytes and a smaller one on those of each agent.
//!
//! A body that would exceed a bound is refused. An answer that exceeds it is kept, since its call has ended and may have changed
//! something: the oldest unread answer gives way instead, either of the agent itself, or of the one with the most.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use ahash::RandomState;
use bytes::Bytes;
use parking_lot::Mutex;

use super::Agent;
use crate::memory;

/// The size up to which a body, or a piece of an answer, is not counted. For each connection, this is little compared with the
/// memory of the connection itself.
pub const UNCOUNTED_MAX_BYTES: usize = 64 << 10;

/// The currently counted bytes, and their bounds.
#[derive(Default)]
pub struct ByteBudget(Mutex<HeldTotals>);

#[derive(Default)]
struct HeldTotals {
    bytes_max: usize,
    agent_bytes_max: usize,
    bytes: usize,
    /// The highest total since it was last zero.
    peak: usize,
    answers: u64,
    agents: HashMap<BytesHolder, AgentBytes, RandomState>,
}

/// The agent that the bytes count for. `None`: a caller without a key, which has no share of its own.
pub type BytesHolder = Option<Agent>;

/// The bytes of one agent.
#[derive(Default)]
struct AgentBytes {
    bytes: usize,
    /// The unread answers, oldest first.
    untaken: VecDeque<UntakenAnswer>,
}

struct UntakenAnswer {
    number: u64,
    bytes: usize,
    give_way: Box<dyn Fn() + Send>,
}

/// Bytes that are counted until this is dropped.
pub struct HeldBytes {
    budget: Arc<ByteBudget>,
    holder: BytesHolder,
    bytes: usize,
    /// The number of the answer, if these are the bytes of one.
    answer: Option<u64>,
}

/// The bound that a body would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetFull {
    /// The agent has used its share.
    Agent,
    /// All agents together have used the whole budget.
    All,
}

impl ByteBudget {
    /// Creates a budget with a bound on all bytes and one on those of each agent.
    pub fn new(bytes_max: usize, agent_bytes_max: usize) -> Self {
        let budget = Self::default();
        budget.set_most(bytes_max, agent_bytes_max);
        budget
    }

    /// Sets the bounds for further bytes.
    pub fn set_most(&self, bytes_max: usize, agent_bytes_max: usize) {
        let mut held = self.0.lock();
        (held.bytes_max, held.agent_bytes_max) = (bytes_max, agent_bytes_max);
    }

    /// Returns the currently counted bytes.
    pub fn bytes(&self) -> usize {
        self.0.lock().bytes
    }

    /// Returns an empty count, for a body that is about to be read.
    pub fn begin(self: &Arc<Self>, holder: BytesHolder) -> HeldBytes {
        HeldBytes {
            budget: self.clone(),
            holder,
            bytes: 0,
            answer: None,
        }
    }

    /// Counts an answer, or a piece of one, until it is read. `give_way` closes its connection.
    pub fn hold_answer(
        self: &Arc<Self>,
        holder: BytesHolder,
        bytes: usize,
        give_way: impl Fn() + Send + 'static,
    ) -> HeldBytes {
        let mut held = self.0.lock();
        held.answers += 1;
        let number = held.answers;
        held.make_room(&holder, bytes);
        held.bytes += bytes;
        let agent = held.agents.entry(holder.clone()).or_default();
        agent.bytes += bytes;
        agent.untaken.push_back(UntakenAnswer {
            number,
            bytes,
            give_way: Box::new(give_way),
        });
        drop(held);
        HeldBytes {
            budget: self.clone(),
            holder,
            bytes,
            answer: Some(number),
        }
    }
}

impl HeldTotals {
    /// Closes the connections of the oldest unread answers until there is room for an answer of this size. They no longer count,
    /// although their memory is freed a moment later.
    fn make_room(&mut self, holder: &BytesHolder, bytes: usize) {
        while holder.is_some() && self.bytes_of(holder) + bytes > self.agent_bytes_max {
            if !self.close_oldest(holder) {
                break;
            }
        }
        while self.bytes + bytes > self.bytes_max {
            let untaken = self
                .agents
                .iter()
                .filter(|(_, agent)| !agent.untaken.is_empty());
            let most = untaken.max_by_key(|(_, agent)| agent.bytes);
            let Some(holder) = most.map(|(holder, _)| holder.clone()) else {
                break;
            };
            self.close_oldest(&holder);
        }
    }

    /// Closes the connection of the holder's oldest unread answer. Returns `false` if there is none.
    fn close_oldest(&mut self, holder: &BytesHolder) -> bool {
        let agent = self.agents.get_mut(holder);
        let Some(oldest) = agent.and_then(|agent| agent.untaken.pop_front()) else {
            return false;
        };
        (oldest.give_way)();
        self.subtract(holder, oldest.bytes);
        true
    }

    /// Returns whether there is room for this many bytes of a body.
    fn has_room(&self, holder: &BytesHolder, bytes: usize) -> Result<(), BudgetFull> {
        // A small body of an agent is accepted whatever other agents hold.
        let own = self.bytes_of(holder) + bytes;
        let is_small = holder.is_some() && own <= UNCOUNTED_MAX_BYTES;
        if self.bytes + bytes > self.bytes_max && !is_small {
            return Err(BudgetFull::All);
        }
        match holder.is_some() && own > self.agent_bytes_max {
            true => Err(BudgetFull::Agent),
            false => Ok(()),
        }
    }

    fn bytes_of(&self, holder: &BytesHolder) -> usize {
        self.agents.get(holder).map_or(0, |agent| agent.bytes)
    }

    fn subtract(&mut self, holder: &BytesHolder, bytes: usize) {
        self.peak = self.peak.max(self.bytes);
        self.bytes -= bytes;
        if self.bytes == 0 && self.peak >= memory::MUCH_BYTES {
            self.peak = 0;
            memory::give_free_blocks_back();
        }
        if let Some(agent) = self.agents.get_mut(holder) {
            agent.bytes -= bytes;
            if agent.bytes == 0 {
                self.agents.remove(holder);
            }
        }
    }
}

/// Bytes with their count, which ends when their last reference is dropped.
struct OwnedBytes {
    bytes: Bytes,
    _held: HeldBytes,
}

impl AsRef<[u8]> for OwnedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HeldBytes {
    /// Returns how many are counted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes that are counted: the count ends when they are dropped.
    pub fn keep(self, bytes: Bytes) -> Bytes {
        if self.bytes == 0 {
            return bytes;
        }
        Bytes::from_owner(OwnedBytes { bytes, _held: self })
    }

    /// Counts this many further bytes.
    pub fn grow(&mut self, bytes: usize) -> Result<(), BudgetFull> {
        if bytes == 0 {
            return Ok(());
        }
        let mut held = self.budget.0.lock();
        held.has_room(&self.holder, bytes)?;
        held.bytes += bytes;
        held.agents.entry(self.holder.clone()).or_default().bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Returns whether there is room for this many further bytes now.
    pub fn has_room(&self, bytes: usize) -> Result<(), BudgetFull> {
        self.budget.0.lock().has_room(&self.holder, bytes)
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut held = self.budget.0.lock();
        let Some(number) = self.answer else {
            return held.subtract(&self.holder, self.bytes);
        };
        let Some(agent) = held.agents.get_mut(&self.holder) else {
            return;
        };
        let untaken = agent.untaken.len();
        agent.untaken.retain(|answer| answer.number != number);
        // An answer that gave way is no longer counted.
        if agent.untaken.len() < untaken {
            held.subtract(&self.holder, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn agent(name: &str) -> BytesHolder {
        Some(("t".into(), name.into()))
    }

    #[test]
    fn bodies_are_refused_over_a_bound_and_counted_until_they_are_dropped() {
        let budget = Arc::new(ByteBudget::new(100, 60));
        let (mut first, mut second) = (budget.begin(agent("a")), budget.begin(agent("a")));
        assert_eq!(first.grow(40), Ok(()));
        assert_eq!(first.grow(20), Ok(()));
        assert_eq!(second.grow(1), Err(BudgetFull::Agent));
        let mut other = budget.begin(agent("b"));
        assert_eq!(other.grow(40), Ok(()));
        assert_eq!(
            budget.begin(agent("c")).grow(UNCOUNTED_MAX_BYTES + 1),
            Err(BudgetFull::All)
        );
        assert_eq!(budget.bytes(), 100);
        drop((first, second, other));
        assert_eq!(budget.bytes(), 0);
        assert!(budget.0.lock().agents.is_empty());
    }

    #[test]
    fn the_oldest_answer_gives_way_of_the_agent_itself_and_then_of_who_has_the_most() {
        let budget = Arc::new(ByteBudget::new(100, 60));
        let closed = Arc::new(AtomicUsize::new(0));
        let hold = |name, bytes, number| {
            let closed = closed.clone();
            let close = move || {
                closed.fetch_add(number, Ordering::Relaxed);
            };
            budget.hold_answer(agent(name), bytes, close)
        };
        let all = || closed.load(Ordering::Relaxed);
        let first = hold("a", 30, 1);
        let second = hold("a", 30, 10);
        assert_eq!(all(), 0);
        let third = hold("a", 20, 100);
        assert_eq!(all(), 1, "the oldest of its own");
        drop(first);
        let other = hold("b", 55, 1000);
        assert_eq!(all(), 11, "the oldest of the agent that has the most");
        let large = hold("c", 90, 10_000);
        assert_eq!(all(), 1111, "all older ones");
        drop((second, third, other, large));
        assert_eq!(budget.bytes(), 0);
        assert!(budget.0.lock().agents.is_empty());
    }
}
