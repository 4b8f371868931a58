//! The order in which sessions make room: the clock algorithm over all sessions, and over those of each agent. Sessions that are
//! found in use go back to the end.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use ahash::RandomState;

use super::SessionId;

/// A tenant, and the name of one of its agents.
pub(super) type Agent = (Arc<str>, Arc<str>);

/// A session, and when it was queued.
type QueuedSession = (SessionId, u64);

/// The ended sessions, in addition to the number of live ones, that a queue may hold before it is cleaned.
const ENDED_MAX: usize = 16;

/// The sessions in the order of their opening, including ended ones that have not been reached since.
#[derive(Default)]
pub(super) struct SessionOrder {
    all: VecDeque<QueuedSession>,
    sessions: usize,
    agents: HashMap<Agent, AgentSessions, RandomState>,
    /// The agents by the number of their sessions.
    sizes: BTreeSet<(usize, Agent)>,
}

#[derive(Default)]
struct AgentSessions {
    sessions: usize,
    queue: VecDeque<QueuedSession>,
}

impl SessionOrder {
    pub(super) fn add(&mut self, agent: Agent, id: SessionId, now: u64) {
        self.sessions += 1;
        self.all.push_back((id, now));
        let of_agent = self.agents.entry(agent.clone()).or_default();
        of_agent.queue.push_back((id, now));
        self.sizes.remove(&(of_agent.sessions, agent.clone()));
        of_agent.sessions += 1;
        self.sizes.insert((of_agent.sessions, agent));
    }

    /// Notes that a session of the agent has ended.
    pub(super) fn remove(&mut self, agent: &Agent) {
        let Some(of_agent) = self.agents.get_mut(agent) else {
            return;
        };
        self.sessions -= 1;
        self.sizes.remove(&(of_agent.sessions, agent.clone()));
        of_agent.sessions -= 1;
        match of_agent.sessions {
            0 => drop(self.agents.remove(agent)),
            left => drop(self.sizes.insert((left, agent.clone()))),
        }
    }

    pub(super) fn sessions(&self) -> usize {
        self.sessions
    }

    pub(super) fn sessions_of(&self, agent: &Agent) -> usize {
        self.agents
            .get(agent)
            .map_or(0, |of_agent| of_agent.sessions)
    }

    /// Returns the agent that makes room for a session of `agent` if all places are taken: itself if it has its even share, else
    /// the one with the most.
    pub(super) fn agent_to_displace(&self, agent: &Agent) -> Option<Agent> {
        let even = (self.sessions / self.agents.len().max(1)).max(1);
        match self.sessions_of(agent) >= even {
            true => Some(agent.clone()),
            false => self.sizes.last().map(|(_, most)| most.clone()),
        }
    }

    pub(super) fn take_first(&mut self) -> Option<QueuedSession> {
        self.all.pop_front()
    }

    pub(super) fn put_first(&mut self, id: SessionId, queued: u64) {
        self.all.push_front((id, queued));
    }

    pub(super) fn put_last(&mut self, id: SessionId, now: u64) {
        self.all.push_back((id, now));
    }

    pub(super) fn take_first_of(&mut self, agent: &Agent) -> Option<QueuedSession> {
        self.agents.get_mut(agent)?.queue.pop_front()
    }

    pub(super) fn put_last_of(&mut self, agent: &Agent, id: SessionId, now: u64) {
        if let Some(of_agent) = self.agents.get_mut(agent) {
            of_agent.queue.push_back((id, now));
        }
    }

    /// Forgets ended sessions once there are as many as live ones. Called for each new session.
    pub(super) fn forget_ended(&mut self, agent: &Agent, lives: impl Fn(SessionId) -> bool) {
        if self.all.len() > 2 * self.sessions + ENDED_MAX {
            self.all.retain(|(id, _)| lives(*id));
        }
        if let Some(of_agent) = self.agents.get_mut(agent)
            && of_agent.queue.len() > 2 * of_agent.sessions + ENDED_MAX
        {
            of_agent.queue.retain(|(id, _)| lives(*id));
        }
    }

    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        let of_agents = self.agents.values().map(|of_agent| of_agent.queue.len());
        of_agents.max().unwrap_or_default().max(self.all.len())
    }
}
