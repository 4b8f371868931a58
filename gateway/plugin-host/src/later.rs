//! Work that calls asked for and that takes longer than a call: one piece after the other, in the background.
//!
//! Adapters take turns, so that none waits for endless work of another. Each adapter finishes one piece of work before
//! it begins the next: few indexes are half built at any time.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    AdapterQuery, CallContext, CollectionRef, PluginHost,
    call::{GuestReply, GuestRequest},
    guest::{CallPurpose, WriteTracker},
};

/// Works of one adapter that may wait; what does not fit is asked for again by a later call.
const WAITING_MAX: usize = 64;
/// Works of one adapter that are known, including those that failed recently; beyond this number none is accepted.
const KNOWN_MAX: usize = 1_024;
/// The time for one adapter's work before the next one's turn.
const TURN: Duration = Duration::from_secs(2);
/// The time for one piece of work, its sorting and syncing included.
const PIECE_MAX: Duration = Duration::from_secs(60);
const PIECES_MAX: u32 = 10_000;
/// Work that failed is not tried again so soon.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The work to be done for one collection.
struct BackgroundWork {
    collection: CollectionRef,
    tenant: Arc<str>,
    text: String,
    /// The pieces that were done.
    pieces: u32,
}

/// A collection's key and a work's text.
type Known = (Arc<str>, String);

#[derive(Default)]
pub(crate) struct BackgroundQueue {
    works: Mutex<AdapterQueues>,
    asked: Notify,
}

/// The works of each adapter. The adapter whose turn is the next comes first.
#[derive(Default)]
struct AdapterQueues(VecDeque<OfAdapter>);

struct OfAdapter {
    adapter: Arc<str>,
    waiting: VecDeque<BackgroundWork>,
    /// The known works: one that waits or is under way has no time, and a failed one has the time of its failure.
    known: HashMap<Known, Option<Instant>>,
}

impl BackgroundQueue {
    /// Takes up what a call asked for.
    pub(crate) fn take(
        &self,
        writes: &WriteTracker,
        context: &CallContext,
        collection: &CollectionRef,
    ) {
        for text in writes.asked_later() {
            let (collection, tenant) = (collection.clone(), Arc::clone(&context.tenant));
            if self.works.lock().take(BackgroundWork {
                collection,
                tenant,
                text,
                pieces: 0,
            }) {
                self.asked.notify_one();
            }
        }
    }

    /// Waits for a work.
    async fn next(&self) -> BackgroundWork {
        loop {
            let next = self.works.lock().next();
            match next {
                Some(work) => return work,
                None => self.asked.notified().await,
            }
        }
    }
}

impl AdapterQueues {
    /// Returns `true` if the work is to be done and was not known yet.
    fn take(&mut self, work: BackgroundWork) -> bool {
        let of = self.adapter_queue(&work.collection.adapter);
        of.known
            .retain(|_, failed| failed.is_none_or(|at| at.elapsed() < TRIED_AGAIN_AFTER));
        if of.known.len() >= KNOWN_MAX
            || of.waiting.len() >= WAITING_MAX
            || of.known.contains_key(&work.known())
        {
            return false;
        }
        of.known.insert(work.known(), None);
        of.waiting.push_back(work);
        true
    }

    /// Returns the oldest work of the adapter whose turn it is.
    fn next(&mut self) -> Option<BackgroundWork> {
        let at = self.0.iter().position(|of| !of.waiting.is_empty())?;
        let mut of = self.0.remove(at)?;
        let work = of.waiting.pop_front();
        self.0.push_back(of);
        work
    }

    /// Puts back unfinished work. It continues in the next turn of its adapter.
    fn put_back(&mut self, work: BackgroundWork) {
        self.adapter_queue(&work.collection.adapter)
            .waiting
            .push_front(work);
    }

    fn done(&mut self, work: &BackgroundWork) {
        self.adapter_queue(&work.collection.adapter)
            .known
            .remove(&work.known());
        self.0.retain(|of| !of.known.is_empty());
    }

    fn failed(&mut self, work: &BackgroundWork) {
        self.adapter_queue(&work.collection.adapter)
            .known
            .insert(work.known(), Some(Instant::now()));
    }

    fn adapter_queue(&mut self, adapter: &Arc<str>) -> &mut OfAdapter {
        let at = self
            .0
            .iter()
            .position(|of| of.adapter == *adapter)
            .unwrap_or_else(|| {
                let (waiting, known) = (VecDeque::new(), HashMap::new());
                self.0.push_back(OfAdapter {
                    adapter: Arc::clone(adapter),
                    waiting,
                    known,
                });
                self.0.len() - 1
            });
        &mut self.0[at]
    }
}

impl BackgroundWork {
    fn known(&self) -> Known {
        (Arc::clone(&self.collection.key), self.text.clone())
    }
}

impl PluginHost {
    /// Does the work that calls ask for, until the task is aborted. One task is to do it.
    pub async fn work_later(self: Arc<Self>) {
        loop {
            let mut work = self.later.next().await;
            let collection = Arc::clone(&work.collection.key);
            match self.do_work(&mut work).await {
                Ok(true) => {
                    tracing::debug!(
                        collection = &*collection,
                        pieces = work.pieces,
                        "work for later calls is done"
                    );
                    self.later.works.lock().done(&work);
                }
                Ok(false) => self.later.works.lock().put_back(work),
                Err(why) => {
                    if self.may_log(&work.collection.adapter, why.len()) {
                        let collection = &*collection;
                        tracing::warn!(
                            collection,
                            why,
                            "work for later calls failed; calls read the source meanwhile"
                        );
                    }
                    self.later.works.lock().failed(&work);
                }
            }
        }
    }

    /// Works for one turn. Returns `true` if the work is done.
    async fn do_work(&self, work: &mut BackgroundWork) -> Result<bool, String> {
        let options = serde_json::json!({ "later": work.text }).to_string();
        let query = Arc::new(AdapterQuery {
            limit: 1,
            options: Some(options),
            ..AdapterQuery::default()
        });
        let turn_ends = Instant::now() + TURN;
        while work.pieces < PIECES_MAX {
            let context = CallContext {
                tenant: Arc::clone(&work.tenant),
                call_id: Arc::from("later"),
                deadline: Instant::now() + PIECE_MAX,
                cancel: CancellationToken::new(),
                events: None,
                trace: None,
                ran_on: Arc::default(),
            };
            let ask = GuestRequest::Read {
                collection: work.collection.clone(),
                query: Arc::clone(&query),
            };
            work.pieces += 1;
            match self
                .run(
                    &context,
                    &work.collection.adapter,
                    CallPurpose::Later,
                    ask,
                    &Arc::default(),
                )
                .await
            {
                Ok(GuestReply::Page(page)) if page.next.is_none() => return Ok(true),
                Ok(GuestReply::Page(_)) if Instant::now() >= turn_ends => return Ok(false),
                Ok(GuestReply::Page(_)) => {}
                Ok(_) => return Ok(true),
                Err(failure) => return Err(failure.to_string()),
            }
        }
        Err("it does not end".to_owned())
    }

    /// Returns `true` if the log of the adapter's plugin has room for a text of this many bytes.
    fn may_log(&self, adapter: &str, bytes: usize) -> bool {
        let plugin = self.served.by_adapter.load().get(adapter).cloned();
        plugin.is_none_or(|plugin| {
            let generation = plugin.generation.load();
            generation.profile.log.passes(&generation.about.name, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(adapter: &str, text: &str) -> BackgroundWork {
        let collection = CollectionRef {
            key: "shop 1.0.0 things".into(),
            adapter: adapter.into(),
            settings: "{}".into(),
            shape: "{}".into(),
        };
        BackgroundWork {
            collection,
            tenant: "tenant".into(),
            text: text.to_owned(),
            pieces: 0,
        }
    }

    #[test]
    fn works_of_one_adapter_are_done_in_order_and_adapters_take_turns() {
        let mut works = AdapterQueues::default();
        for (adapter, text) in [
            ("endless", "a"),
            ("endless", "b"),
            ("one", "c"),
            ("two", "d"),
            ("one", "e"),
        ] {
            assert!(works.take(work(adapter, text)));
            assert!(!works.take(work(adapter, text)), "it is known");
        }
        let mut order = String::new();
        while let Some(next) = works.next().filter(|_| order.len() < 9) {
            order.push_str(&next.text);
            if next.text == "a" {
                works.put_back(next)
            } else {
                works.done(&next)
            }
        }
        assert_eq!(order, "acdaeaaaa");
    }

    #[test]
    fn what_one_adapter_asks_for_is_bounded_and_in_no_others_way() {
        let mut works = AdapterQueues::default();
        let taken = |works: &mut AdapterQueues, adapter: &str| {
            (0..2_000)
                .filter(|at| works.take(work(adapter, &at.to_string())))
                .collect::<Vec<_>>()
                .len()
        };
        assert_eq!(taken(&mut works, "asks"), WAITING_MAX);
        while let Some(next) = works.next() {
            works.done(&next);
        }
        for at in 0..2_000 {
            let is_known = works.take(work("fails", &at.to_string()));
            assert_eq!(is_known, at < KNOWN_MAX, "{at}");
            works.next().iter().for_each(|next| works.failed(next));
        }
        assert_eq!(taken(&mut works, "another"), WAITING_MAX);
    }
}
