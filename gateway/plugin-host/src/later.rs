//! Work that calls asked for and that takes longer than a call: one piece after the other, in the background.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    CallContext, CollectionRef, Host, Query,
    call::{Ask, GuestReply},
    guest::{Purpose, Writes},
};

/// Works that may wait; what does not fit is asked for again by a later call.
const WAITING_MAX: usize = 64;
/// The time for one piece of work, its sorting and syncing included.
const PIECE_MAX: Duration = Duration::from_secs(60);
const PIECES_MAX: usize = 10_000;
/// Work that failed is not tried again so soon.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The work to be done for one collection.
struct Work {
    collection: CollectionRef,
    tenant: Arc<str>,
    text: String,
}

/// A collection's key and a work's text.
type Known = (Arc<str>, String);

pub(crate) struct Later {
    queue: mpsc::Sender<Work>,
    /// The receiver, which the one task that does the work takes.
    waiting: Mutex<Option<mpsc::Receiver<Work>>>,
    /// The known works: one under way has no time, and a failed one has the time of its failure.
    known: Mutex<HashMap<Known, Option<Instant>>>,
}

impl Default for Later {
    fn default() -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        Self { queue, waiting: Mutex::new(Some(waiting)), known: Mutex::default() }
    }
}

impl Later {
    /// Takes up what a call asked for.
    pub(crate) fn take(&self, writes: &Writes, context: &CallContext, collection: &CollectionRef) {
        for text in writes.asked_later() {
            let known = (Arc::clone(&collection.key), text.clone());
            let mut works = locked(&self.known);
            works.retain(|_, failed| failed.is_none_or(|at| at.elapsed() < TRIED_AGAIN_AFTER));
            if works.contains_key(&known) {
                continue;
            }
            let work = Work { collection: collection.clone(), tenant: Arc::clone(&context.tenant), text };
            if self.queue.try_send(work).is_ok() {
                works.insert(known, None);
            }
        }
    }
}

impl Host {
    /// Does the work that calls ask for, until the task is aborted.
    pub async fn work_later(self: Arc<Self>) {
        let Some(mut waiting) = locked(&self.later.waiting).take() else { return };
        while let Some(work) = waiting.recv().await {
            let known = (Arc::clone(&work.collection.key), work.text.clone());
            let began = Instant::now();
            let done = self.do_work(&work).await;
            let collection = &*work.collection.key;
            let mut works = locked(&self.later.known);
            match done {
                Ok(()) => {
                    tracing::debug!(collection, took_ms = began.elapsed().as_millis(), "work for later calls is done");
                    works.remove(&known);
                }
                Err(why) => {
                    tracing::warn!(collection, why, "work for later calls failed; calls read the source meanwhile");
                    works.insert(known, Some(Instant::now()));
                }
            }
        }
    }

    async fn do_work(&self, work: &Work) -> Result<(), String> {
        let options = serde_json::json!({ "later": work.text }).to_string();
        let query = Arc::new(Query { limit: 1, options: Some(options), ..Query::default() });
        for _ in 0..PIECES_MAX {
            let context = CallContext {
                tenant: Arc::clone(&work.tenant),
                call_id: Arc::from("later"),
                deadline: Instant::now() + PIECE_MAX,
                cancel: CancellationToken::new(),
                events: None,
                ran_on: Arc::default(),
            };
            let ask = Ask::Read { collection: work.collection.clone(), query: Arc::clone(&query) };
            match self.run(&context, &work.collection.adapter, Purpose::Later, ask, &Arc::default()).await {
                Ok(GuestReply::Page(page)) if page.next.is_some() => {}
                Ok(_) => return Ok(()),
                Err(failure) => return Err(failure.to_string()),
            }
        }
        Err("it does not come to an end".to_owned())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
