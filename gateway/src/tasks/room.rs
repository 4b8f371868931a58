//! The room for tasks and their answers. Every agent has a share of it.
//!
//! An answer that its caller has read is dropped first, to make room for any agent. An unread answer makes room only for a later
//! answer of the same agent, and its task reports this.

use std::{cmp::Reverse, collections::HashMap, sync::Arc, time::Instant};

use super::CallTask;

/// The bound on all kept answers, in bytes.
pub(super) const ANSWERS_MAX: usize = 128 << 20;
/// The largest share of the tasks, and of the bytes, for one agent, as a divisor.
const AGENT_SHARE: usize = 8;
/// The bound on the answers of one agent, in bytes.
pub(super) const OF_AGENT_MAX: usize = ANSWERS_MAX / AGENT_SHARE;
/// The bytes that must be free for an agent whose call becomes a task. With fewer, its request waits for the answer.
const FREE_MIN: usize = OF_AGENT_MAX / 2;
/// An answer of fewer bytes takes no more than the message that an answer is not kept.
const SMALL: usize = 1 << 10;

pub(super) type Table = HashMap<u128, Arc<CallTask>>;

/// The room in use: tasks, and bytes of answers.
#[derive(Clone, Copy, Default)]
struct TaskUsage {
    tasks: usize,
    bytes: usize,
}

/// The room used by all agents, and by the agent that needs room.
struct TaskRoom<A, O> {
    all: TaskUsage,
    own: TaskUsage,
    all_fit: A,
    own_fit: O,
}

/// A task that may be evicted.
struct EvictionCandidate {
    task: Arc<CallTask>,
    bytes: usize,
    is_told: bool,
    is_own: bool,
}

/// Makes room for one more task; returns `false` if there is none. Only answers that were read are dropped.
pub(super) fn for_task(table: &mut Table, task: &CallTask, most: usize) -> bool {
    let all_fit = |all: TaskUsage| all.tasks < most && all.bytes < ANSWERS_MAX;
    let own_fit = |own: TaskUsage| {
        own.tasks < most.div_ceil(AGENT_SHARE) && own.bytes + FREE_MIN <= OF_AGENT_MAX
    };
    TaskRoom::from_table(table, task, all_fit, own_fit).make(table, task, |old| old.is_told)
}

/// Makes room for the answer of a task; `false` if there is none.
pub(super) fn for_answer(table: &mut Table, task: &CallTask, bytes: usize) -> bool {
    if bytes == 0 {
        return true;
    }
    let all_fit = |all: TaskUsage| all.bytes + bytes <= ANSWERS_MAX;
    let own_fit = |own: TaskUsage| own.bytes + bytes <= OF_AGENT_MAX;
    let may_go = |old: &EvictionCandidate| old.bytes > SMALL && (old.is_told || old.is_own);
    TaskRoom::from_table(table, task, all_fit, own_fit).make(table, task, may_go)
}

impl<A: Fn(TaskUsage) -> bool, O: Fn(TaskUsage) -> bool> TaskRoom<A, O> {
    fn from_table(table: &Table, task: &CallTask, all_fit: A, own_fit: O) -> Self {
        let mut room = Self {
            all: TaskUsage::default(),
            own: TaskUsage::default(),
            all_fit,
            own_fit,
        };
        for other in table.values() {
            let bytes = other.lock().stage.bytes();
            room.all.add(bytes);
            if other.is_of(&task.owner) {
                room.own.add(bytes);
            }
        }
        room
    }

    /// Drops the oldest until the rest fits. If even that is not enough, none is dropped.
    fn make(
        mut self,
        table: &mut Table,
        task: &CallTask,
        may_go: impl Fn(&EvictionCandidate) -> bool,
    ) -> bool {
        if self.fits() {
            return true;
        }
        let mut old: Vec<EvictionCandidate> = table
            .values()
            .map(|other| EvictionCandidate::from_task(other, task))
            .filter(may_go)
            .collect();
        old.sort_by_key(EvictionCandidate::turn);
        let mut going = Vec::new();
        for old in old {
            if self.is_helped_by(&old) {
                self.all.remove(old.bytes);
                if old.is_own {
                    self.own.remove(old.bytes);
                }
                going.push(old);
            }
        }
        if self.fits() {
            going.into_iter().for_each(|old| old.go(table));
            return true;
        }
        false
    }

    fn fits(&self) -> bool {
        (self.all_fit)(self.all) && (self.own_fit)(self.own)
    }

    fn is_helped_by(&self, old: &EvictionCandidate) -> bool {
        !(self.all_fit)(self.all) || (old.is_own && !(self.own_fit)(self.own))
    }
}

impl EvictionCandidate {
    fn from_task(old: &Arc<CallTask>, task: &CallTask) -> Self {
        let state = old.lock();
        let (bytes, is_told) = (state.stage.bytes(), state.is_told);
        drop(state);
        Self {
            task: old.clone(),
            bytes,
            is_told,
            is_own: old.is_of(&task.owner),
        }
    }

    /// Returns the order in which answers are dropped: of those that were read, the agent's own come first.
    fn turn(&self) -> (Reverse<bool>, Reverse<bool>, Instant) {
        (Reverse(self.is_told), Reverse(self.is_own), self.task.began)
    }

    /// Forgets the task, or only its answer if its caller has not read how it ended.
    fn go(self, table: &mut Table) {
        if self.is_told {
            table.remove(&self.task.id);
            return;
        }
        let mut state = self.task.lock();
        if state.is_told {
            return;
        }
        let unkept = state.stage.unkept(self.task.writes);
        state.enter(unkept);
    }
}

impl TaskUsage {
    fn add(&mut self, bytes: usize) {
        self.tasks += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: usize) {
        self.tasks -= 1;
        self.bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalogue::CatalogueEndpoint,
        identity::CallerIdentity,
        tasks::{TaskRegistry, TaskStage},
    };

    const LARGE: usize = OF_AGENT_MAX / 2;

    fn caller(tenant: &str, agent: &str) -> CallerIdentity {
        CallerIdentity {
            tenant: tenant.into(),
            agent: agent.into(),
            grant: None,
        }
    }

    fn open(tasks: &TaskRegistry, owner: &CallerIdentity) -> Arc<CallTask> {
        tasks
            .open(
                owner,
                &CatalogueEndpoint::All,
                (&"contract".into(), &"tool".into()),
                true,
                None,
            )
            .expect("it may begin")
    }

    fn begun(tasks: &TaskRegistry, owner: &CallerIdentity) -> Arc<CallTask> {
        let task = open(tasks, owner);
        assert!(tasks.keep(&task), "there is room");
        task
    }

    fn end(tasks: &TaskRegistry, task: &CallTask, bytes: usize) {
        tasks.end(task, TaskStage::Completed("x".repeat(bytes).into()));
    }

    fn tell(task: &CallTask) {
        task.tell();
    }

    fn is_complete(task: &CallTask) -> bool {
        matches!(task.seen().stage, TaskStage::Completed(_))
    }

    fn is_kept(tasks: &TaskRegistry, task: &CallTask) -> bool {
        tasks
            .find(&task.owner, &CatalogueEndpoint::All, task.id())
            .is_some()
    }

    #[test]
    fn an_agent_has_its_share_in_each_tenant_and_no_more() {
        let (tasks, here, there) = (
            TaskRegistry::new(16),
            caller("here", "agent"),
            caller("there", "agent"),
        );
        let (_first, _second) = (begun(&tasks, &here), begun(&tasks, &here));
        let third = open(&tasks, &here);
        assert!(!tasks.keep(&third), "its request waits on");
        assert!(third.answers_at_once());
        begun(&tasks, &there);
        begun(&tasks, &caller("here", "other"));
        assert!(
            TaskRegistry::new(0)
                .open(
                    &here,
                    &CatalogueEndpoint::All,
                    (&"c".into(), &"t".into()),
                    true,
                    None
                )
                .is_none()
        );
    }

    #[test]
    fn answers_that_were_told_make_room_for_tasks_and_no_others_do() {
        let (tasks, here) = (TaskRegistry::new(16), caller("here", "agent"));
        let (first, second) = (begun(&tasks, &here), begun(&tasks, &here));
        end(&tasks, &first, 7);
        end(&tasks, &second, 7);
        assert!(
            !tasks.keep(&open(&tasks, &here)),
            "its request waits: no one knows yet how the others ended"
        );
        tell(&second);
        begun(&tasks, &here);
        assert!(is_kept(&tasks, &first) && !is_kept(&tasks, &second));
    }

    #[test]
    fn a_call_is_waited_for_where_its_answer_may_find_no_room() {
        let (tasks, here) = (TaskRegistry::new(64), caller("here", "agent"));
        let (first, second) = (begun(&tasks, &here), begun(&tasks, &here));
        end(&tasks, &first, LARGE);
        end(&tasks, &second, LARGE);
        assert!(
            !tasks.keep(&open(&tasks, &here)),
            "its request waits and gets its answer"
        );
        begun(&tasks, &caller("there", "agent"));
        tell(&first);
        begun(&tasks, &here);
        assert!(is_complete(&second));
    }

    #[test]
    fn a_later_answer_takes_the_room_of_one_that_was_told_and_else_of_the_oldest() {
        let (tasks, here) = (TaskRegistry::new(64), caller("here", "agent"));
        let all: Vec<_> = (0..4).map(|_| begun(&tasks, &here)).collect();
        end(&tasks, &all[0], LARGE);
        end(&tasks, &all[1], LARGE);
        tell(&all[1]);
        end(&tasks, &all[2], LARGE);
        assert!(is_complete(&all[0]) && is_complete(&all[2]) && !is_kept(&tasks, &all[1]));
        end(&tasks, &all[3], LARGE);
        assert!(is_complete(&all[2]) && is_complete(&all[3]));
        let TaskStage::Failed(why) = all[0].seen().stage else {
            panic!("its answer is gone, and it is there still")
        };
        let why: serde_json::Value = serde_json::from_str(&why).expect("JSON");
        assert_eq!(
            why["data"],
            serde_json::json!({ "code": "too_large", "outcome": "unknown" })
        );
        assert!(is_kept(&tasks, &all[0]));
    }

    #[test]
    fn an_answer_that_is_too_large_by_itself_costs_no_other() {
        let (tasks, here) = (TaskRegistry::new(64), caller("here", "agent"));
        let (first, second) = (begun(&tasks, &here), begun(&tasks, &here));
        end(&tasks, &first, LARGE);
        tell(&first);
        end(&tasks, &second, OF_AGENT_MAX + 1);
        let TaskStage::Failed(why) = second.seen().stage else {
            panic!("it is too much")
        };
        assert!(why.contains("too_large") && why.contains("16 MB"), "{why}");
        assert!(is_kept(&tasks, &first));
    }

    #[test]
    fn what_other_agents_were_told_makes_room_too() {
        let tasks = TaskRegistry::new(64);
        let agents: Vec<_> = (0..AGENT_SHARE)
            .map(|agent| caller("here", &agent.to_string()))
            .collect();
        let full: Vec<_> = agents.iter().map(|agent| begun(&tasks, agent)).collect();
        let last = begun(&tasks, &caller("there", "0"));
        full.iter().for_each(|task| end(&tasks, task, OF_AGENT_MAX));
        tell(&full[5]);
        end(&tasks, &last, LARGE);
        assert!(is_complete(&last) && !is_kept(&tasks, &full[5]));
        assert_eq!(
            full.iter()
                .filter(|task| is_complete(task) && is_kept(&tasks, task))
                .count(),
            AGENT_SHARE - 1
        );
    }
}
