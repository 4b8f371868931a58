//! Keeps the calls that continue after their request was answered: the tasks of the protocol's extension
//! `io.modelcontextprotocol/tasks`.
//!
//! A task is known only to its process, and to the caller who began it. Neither it nor its result survives a restart; the call is
//! in the audit trail like any other. If several nodes share a state, the id of a task names its node, which the others ask.

mod events;
mod name;
mod report;
mod room;

use std::{
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use weir_plugin_host::CallEvents;

use crate::{
    catalogue::CatalogueEndpoint, codes::FailureCode, cursor::CursorCipher,
    identity::CallerIdentity,
};

pub use name::TaskPlace;
pub use report::{LOST, TaskReport};

/// The time for which a task is kept, from its beginning. One that still runs then is cancelled.
pub const KEPT_FOR: Duration = Duration::from_secs(60 * 60);

/// The tasks of this process.
pub struct TaskRegistry {
    /// Writes the names of tasks, if other nodes can be asked for them.
    names: OnceLock<name::SharedNames>,
    most: AtomicUsize,
    table: Mutex<room::Table>,
    running: TaskTracker,
    /// Wakes the listeners of tasks.
    tick: Arc<watch::Sender<u64>>,
    /// Whether calls no longer become tasks.
    closed: AtomicBool,
    ending: CancellationToken,
}

/// A call that may outlive its request.
pub struct CallTask {
    id: u128,
    /// The id in the form for its caller.
    name: String,
    owner: CallerIdentity,
    endpoint: CatalogueEndpoint,
    contract: Arc<str>,
    tool: Arc<str>,
    writes: bool,
    /// Gets the messages of the call as long as its request is open.
    events: Option<Arc<dyn CallEvents>>,
    began: Instant,
    created: Timestamp,
    cancel: CancellationToken,
    state: Mutex<CallTaskState>,
    /// Wakes the call that waits for the answers of its caller.
    answered: Notify,
}

struct CallTaskState {
    stage: TaskStage,
    updated: Timestamp,
    message: Option<String>,
    /// The number of stages that it has entered.
    entered: u64,
    /// Whether its caller has read how it ended.
    is_told: bool,
    tick: Arc<watch::Sender<u64>>,
}

/// The stage of a task. The last three are final.
#[derive(Clone, Debug)]
pub enum TaskStage {
    /// The request is still open, and no client has the task.
    Open,
    /// The request was answered with the result of the call. There is no task.
    AnsweredAtOnce,
    Working,
    InputRequired(TaskQuestions),
    /// JSON: the result of the call.
    Completed(Arc<str>),
    /// JSON: the protocol error with which the request would have been answered.
    Failed(Arc<str>),
    Cancelled,
}

/// The questions of a call to its caller, and the answers so far.
#[derive(Clone, Debug, Default)]
pub struct TaskQuestions {
    pub open: Map<String, Value>,
    answers: Map<String, Value>,
}

/// The current state of a task.
pub struct TaskSnapshot {
    pub stage: TaskStage,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub message: Option<String>,
    /// Counts the stages: a different number means a different stage.
    pub entered: u64,
}

impl TaskRegistry {
    /// Creates room for `most` tasks; with none, no call becomes a task.
    pub fn new(most: usize) -> Self {
        Self {
            names: OnceLock::new(),
            most: AtomicUsize::new(most),
            table: Mutex::default(),
            running: TaskTracker::new(),
            tick: Arc::new(watch::Sender::new(0)),
            closed: AtomicBool::new(false),
            ending: CancellationToken::new(),
        }
    }

    /// Allows other nodes to be asked for tasks. `node` is the id of this one.
    pub fn share(&self, node: &str, cursors: CursorCipher) {
        if let Some(names) = name::SharedNames::new(node, cursors) {
            let _ = self.names.set(names); // a process joins once
        }
    }

    /// Sets how many tasks are kept at once, for calls that begin later.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Wakes whenever a task enters another stage.
    pub fn heard(&self) -> watch::Receiver<u64> {
        self.tick.subscribe()
    }

    /// Returns how many are kept, including ended ones.
    pub fn len(&self) -> usize {
        self.table().len() // which lets go of those that are over
    }

    /// Returns `true` if no task is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a call that may become a task; `None` if no call may currently become one. `events` get its messages until then.
    pub fn open(
        &self,
        owner: &CallerIdentity,
        endpoint: &CatalogueEndpoint,
        (contract, tool): (&Arc<str>, &Arc<str>),
        writes: bool,
        events: Option<Arc<dyn CallEvents>>,
    ) -> Option<Arc<CallTask>> {
        if self.most.load(Ordering::Relaxed) == 0 || self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let mut id = [0; 16];
        getrandom::fill(&mut id).ok()?;
        let now = Timestamp::now();
        let id = u128::from_be_bytes(id);
        let name = match self.names.get() {
            Some(names) => names.write(id, now, owner, endpoint),
            None => name::plain(id),
        };
        Some(Arc::new(CallTask {
            id,
            name,
            owner: owner.clone(),
            endpoint: endpoint.clone(),
            contract: contract.clone(),
            tool: tool.clone(),
            writes,
            events,
            began: Instant::now(),
            created: now,
            cancel: self.ending.child_token(),
            state: Mutex::new(CallTaskState {
                stage: TaskStage::Open,
                updated: now,
                message: None,
                entered: 0,
                is_told: false,
                tick: self.tick.clone(),
            }),
            answered: Notify::new(),
        }))
    }

    /// Runs the call of a task, which ends with its key, with its time limit, and with this process.
    pub fn run(&self, task: &Arc<CallTask>, call: impl Future<Output = ()> + Send + 'static) {
        let task = task.clone();
        self.running.spawn(async move {
            let _broken = TaskEndGuard(&task);
            let mut call = std::pin::pin!(call);
            tokio::select! {
                biased;
                () = &mut call => return,
                () = task.owner.withdrawn() => {}
                () = tokio::time::sleep(KEPT_FOR) => {}
            }
            task.cancel();
            call.await;
        });
    }

    /// Turns a running call into a task, unless it has just ended or there is no room: then its request keeps waiting.
    pub fn keep(&self, task: &Arc<CallTask>) -> bool {
        let mut table = self.table();
        let most = self.most.load(Ordering::Relaxed);
        if self.closed.load(Ordering::Relaxed) || !room::for_task(&mut table, task, most) {
            return false;
        }
        let mut state = task.lock();
        if !matches!(state.stage, TaskStage::Open) {
            return false;
        }
        state.enter(TaskStage::Working);
        drop(state);
        table.insert(task.id, task.clone());
        true
    }

    /// Ends a task. An answer for which there is no room is not kept.
    pub fn end(&self, task: &CallTask, stage: TaskStage) {
        let mut table = self.table();
        let has_room = room::for_answer(&mut table, task, stage.bytes());
        task.lock().enter(if has_room {
            stage
        } else {
            stage.unkept(task.writes)
        });
    }

    /// Returns a task by its id, if this caller began it at this endpoint and its grant still allows the tool.
    pub fn find(
        &self,
        caller: &CallerIdentity,
        endpoint: &CatalogueEndpoint,
        id: &str,
    ) -> Option<Arc<CallTask>> {
        let task = self.with_number(name::number(id)?)?;
        let may_see = caller.access().allows(&task.contract, &task.tool);
        (task.is_of(caller) && may_see && task.endpoint == *endpoint && !task.is_over())
            .then_some(task)
    }

    /// Returns a task of this process, of any caller: another node has checked that.
    pub fn with_number(&self, number: u128) -> Option<Arc<CallTask>> {
        self.lock().get(&number).cloned()
    }

    /// Returns `true` while a task of this process is kept.
    pub fn keeps(&self, id: &str) -> bool {
        name::number(id).is_some_and(|number| self.lock().contains_key(&number))
    }

    /// Returns the place of a task by its id, if this caller began it at this endpoint at another node, and it is still kept.
    pub fn elsewhere(
        &self,
        caller: &CallerIdentity,
        endpoint: &CatalogueEndpoint,
        id: &str,
    ) -> Option<TaskPlace> {
        self.names.get()?.open(id, caller, endpoint)
    }

    /// Prevents further calls from becoming tasks: the process is about to end, and no client could read one.
    pub fn keep_no_more(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Cancels the calls that are still running, and waits for them.
    pub async fn end_all(&self) {
        self.keep_no_more();
        self.ending.cancel();
        self.running.close();
        self.running.wait().await;
    }

    /// Returns the tasks that are still kept.
    fn table(&self) -> MutexGuard<'_, room::Table> {
        let mut table = self.lock();
        table.retain(|_, task| !task.is_over());
        table
    }

    /// Returns the tasks, possibly with some that are no longer kept.
    fn lock(&self) -> MutexGuard<'_, room::Table> {
        self.table.lock()
    }
}

impl CallTask {
    /// Returns the id in the form for clients.
    pub fn id(&self) -> &str {
        &self.name
    }

    /// Returns the token that is set when the task is cancelled.
    pub fn token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the state of the task, without counting as a read by its caller.
    pub fn seen(&self) -> TaskSnapshot {
        self.seen_in(&self.lock())
    }

    fn seen_in(&self, state: &CallTaskState) -> TaskSnapshot {
        let CallTaskState {
            stage,
            updated,
            message,
            entered,
            ..
        } = state;
        let (stage, message) = (stage.clone(), message.clone());
        TaskSnapshot {
            stage,
            created: self.created,
            updated: *updated,
            message,
            entered: *entered,
        }
    }

    /// Returns the state for its caller. A final state that was read does not change.
    pub fn tell(&self) -> TaskSnapshot {
        let mut state = self.lock();
        state.is_told |= state.stage.has_ended();
        self.seen_in(&state)
    }

    /// Notes that another node has sent its caller how it ended, if the stage still has this number.
    pub fn note_delivered(&self, entered: u64) {
        let mut state = self.lock();
        state.is_told |= state.entered == entered && state.stage.has_ended();
    }

    /// Ends the call of the task.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns `true` if the request is still open, and notes that it is answered with the result of the call.
    pub fn answers_at_once(&self) -> bool {
        let mut state = self.lock();
        let is_open = matches!(state.stage, TaskStage::Open | TaskStage::AnsweredAtOnce);
        if is_open {
            state.stage = TaskStage::AnsweredAtOnce;
        }
        is_open
    }

    /// Withdraws questions whose answers are no longer awaited.
    pub fn take_back_questions(&self) {
        let mut state = self.lock();
        if matches!(state.stage, TaskStage::InputRequired(_)) {
            state.enter(TaskStage::Working);
        }
    }

    /// Asks the caller, who reads the task, and returns the answers once they are all there. `None`: the task was cancelled
    /// first.
    pub async fn ask(&self, questions: Map<String, Value>) -> Option<Map<String, Value>> {
        self.lock().enter(TaskStage::InputRequired(TaskQuestions {
            open: questions,
            answers: Map::new(),
        }));
        loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return None,
                () = self.answered.notified() => {}
            }
            let mut state = self.lock();
            if let TaskStage::InputRequired(TaskQuestions { open, answers }) = &mut state.stage
                && open.is_empty()
            {
                let answers = std::mem::take(answers);
                state.enter(TaskStage::Working);
                return Some(answers);
            }
        }
    }

    /// Takes answers of the caller. Those that belong to no open question are ignored.
    pub fn answer(&self, given: Map<String, Value>) {
        let mut state = self.lock();
        let TaskStage::InputRequired(TaskQuestions { open, answers }) = &mut state.stage else {
            return;
        };
        for (key, answer) in given {
            if open.shift_remove(&key).is_some() {
                answers.insert(key, answer);
            }
        }
        state.updated = Timestamp::now();
        drop(state);
        self.answered.notify_one();
    }

    fn is_over(&self) -> bool {
        self.began.elapsed() >= KEPT_FOR && self.lock().stage.has_ended()
    }

    /// Returns the names of the contract and the tool.
    pub fn named(&self) -> [&str; 2] {
        [&self.contract, &self.tool]
    }

    /// Returns `true` if this agent of this tenant began it.
    fn is_of(&self, caller: &CallerIdentity) -> bool {
        (&*self.owner.tenant, self.owner.principal()) == (&*caller.tenant, caller.principal())
    }

    fn lock(&self) -> MutexGuard<'_, CallTaskState> {
        self.state.lock()
    }
}

impl TaskStage {
    fn bytes(&self) -> usize {
        match self {
            Self::Completed(json) | Self::Failed(json) => json.len(),
            _ => 0,
        }
    }

    /// Returns `true` for a final stage.
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_) | Self::Cancelled)
    }

    /// Returns the same end without its answer, which is not kept.
    fn unkept(&self, writes: bool) -> Self {
        let mut message = format!(
            "the call ended, and its answer of {} bytes is not kept: the answers of one agent's tasks take at most {} MB, \
             and those of all agents {} MB",
            self.bytes(),
            room::OF_AGENT_MAX >> 20,
            room::ANSWERS_MAX >> 20,
        );
        let mut data = serde_json::json!({ "code": FailureCode::TooLarge.label() });
        if writes {
            message.push_str("; no answer shows what it wrote: look at that before you call again");
            data["outcome"] = "unknown".into();
        }
        let error = serde_json::json!({ "code": -32603, "message": message, "data": data });
        Self::Failed(error.to_string().into())
    }
}

/// Ends a task whose call panicked.
struct TaskEndGuard<'t>(&'t CallTask);

impl Drop for TaskEndGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(
            state.stage,
            TaskStage::Working | TaskStage::InputRequired(_)
        ) {
            state.enter(TaskStage::Failed(
                r#"{"code":-32603,"message":"the call ended without an answer"}"#.into(),
            ));
        }
    }
}

impl CallTaskState {
    fn enter(&mut self, stage: TaskStage) {
        self.stage = stage;
        self.updated = Timestamp::now();
        self.entered += 1;
        self.tick.send_modify(|tick| *tick += 1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(tasks: &TaskRegistry, owner: &CallerIdentity) -> Option<Arc<CallTask>> {
        tasks.open(
            owner,
            &CatalogueEndpoint::All,
            (&"contract".into(), &"tool".into()),
            true,
            None,
        )
    }

    fn kept(tasks: &TaskRegistry) -> Arc<CallTask> {
        let task = open(tasks, &CallerIdentity::local()).expect("there is room");
        assert!(tasks.keep(&task));
        task
    }

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn a_task_is_found_by_who_began_it_where_it_was_begun() {
        let tasks = TaskRegistry::new(8);
        let task = kept(&tasks);
        let other = CallerIdentity {
            agent: "other".into(),
            ..CallerIdentity::local()
        };
        assert!(
            tasks
                .find(&CallerIdentity::local(), &CatalogueEndpoint::All, task.id())
                .is_some()
        );
        assert!(
            tasks
                .find(&other, &CatalogueEndpoint::All, task.id())
                .is_none()
        );
        assert!(
            tasks
                .find(
                    &CallerIdentity::local(),
                    &CatalogueEndpoint::Contract("a".into()),
                    task.id()
                )
                .is_none()
        );
        for id in ["", "x", &task.id()[1..], &format!("+{}", &task.id()[1..])] {
            assert!(
                tasks
                    .find(&CallerIdentity::local(), &CatalogueEndpoint::All, id)
                    .is_none(),
                "{id}"
            );
        }
    }

    #[test]
    fn a_call_is_answered_at_once_or_becomes_a_task_and_never_both() {
        let tasks = TaskRegistry::new(8);
        let task = open(&tasks, &CallerIdentity::local()).expect("there is room");
        assert!(task.answers_at_once());
        assert!(!tasks.keep(&task));
        let task = kept(&tasks);
        assert!(!task.answers_at_once());
    }

    #[test]
    fn no_call_becomes_a_task_when_the_process_is_about_to_end() {
        let tasks = TaskRegistry::new(8);
        let task = open(&tasks, &CallerIdentity::local()).expect("there is room");
        tasks.keep_no_more();
        assert!(!tasks.keep(&task), "its request waits on");
        assert!(open(&tasks, &CallerIdentity::local()).is_none());
    }

    #[tokio::test]
    async fn a_call_that_panics_ends_its_task() {
        let tasks = TaskRegistry::new(8);
        let task = kept(&tasks);
        tasks.run(&task, async { panic!("a mistake of ours") });
        tasks.end_all().await;
        assert!(matches!(task.seen().stage, TaskStage::Failed(_)));
    }

    #[tokio::test]
    async fn a_question_waits_until_every_part_of_it_is_answered() {
        let tasks = TaskRegistry::new(8);
        let task = kept(&tasks);
        let asking = tokio::spawn({
            let task = task.clone();
            async move {
                task.ask(map(json!({ "a": { "method": "roots/list" }, "b": {} })))
                    .await
            }
        });
        while !matches!(task.seen().stage, TaskStage::InputRequired(_)) {
            tokio::task::yield_now().await;
        }
        task.answer(map(json!({ "b": 2, "c": 3 })));
        let TaskStage::InputRequired(questions) = task.seen().stage else {
            panic!("one part is open")
        };
        assert_eq!(
            questions.open,
            map(json!({ "a": { "method": "roots/list" } }))
        );
        task.answer(map(json!({ "a": 1, "b": "too late" })));
        assert_eq!(
            asking.await.expect("it ends"),
            Some(map(json!({ "b": 2, "a": 1 })))
        );
        assert!(matches!(task.seen().stage, TaskStage::Working));
    }
}
