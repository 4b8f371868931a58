//! Changes that plugins and servers report, for the clients that listen.
//!
//! A list that is published in another form is announced by its snapshot. This module is for changes that are not in a snapshot:
//! a plugin reports that one of its lists changed, or that a resource has new contents. Nothing is queued: a counter counts the
//! changes, and each listener remembers the last value that it saw.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// The least time between two announcements of a plugin; of more frequent reports, the last one is announced at the end.
const INTERVAL: Duration = Duration::from_millis(100);

/// Counts what plugins and servers report as changed, and wakes the listeners.
pub struct ChangeNotifier {
    counts: Mutex<AnnouncementCounts>,
    /// Wakes the listeners.
    tick: watch::Sender<u64>,
    /// Wakes the task that subscribes to resources of other servers.
    wanted: watch::Sender<u64>,
}

#[derive(Default)]
struct AnnouncementCounts {
    /// By contract, in the order of [`crate::catalogue::CatalogueListing::digests`].
    lists: HashMap<Arc<str>, [AnnouncementThrottle; 3]>,
    /// Resources with a listener, by the URI for clients.
    resources: BTreeMap<Arc<str>, ResourceListeners>,
}

#[derive(Default)]
struct ResourceListeners {
    listeners: usize,
    pulse: AnnouncementThrottle,
}

#[derive(Default)]
struct AnnouncementThrottle {
    count: u64,
    last: Option<Instant>,
    /// Whether one more announcement is scheduled.
    is_due: bool,
}

/// The resources for which one client listens.
pub struct WatchedResources {
    announcements: Arc<ChangeNotifier>,
    /// The last count that was seen.
    seen: Mutex<BTreeMap<Arc<str>, u64>>,
    most: usize,
}

/// The client already listens for as many resources as it may.
pub struct TooMany(pub usize);

impl Default for ChangeNotifier {
    fn default() -> Self {
        Self {
            counts: Mutex::default(),
            tick: watch::Sender::new(0),
            wanted: watch::Sender::new(0),
        }
    }
}

impl ChangeNotifier {
    /// Wakes at every announcement.
    pub fn heard(&self) -> watch::Receiver<u64> {
        self.tick.subscribe()
    }

    /// Wakes when the set of resources with a listener changes.
    pub fn wanted(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    /// Returns the resources that have a listener.
    pub fn watched(&self) -> BTreeSet<Arc<str>> {
        self.lock().resources.keys().cloned().collect()
    }

    /// Returns how often the lists of these contracts were reported as changed, in total.
    pub fn lists(&self, contracts: &[Arc<str>]) -> [u64; 3] {
        let counts = self.lock();
        let announced = contracts
            .iter()
            .filter_map(|contract| counts.lists.get(contract));
        announced.fold([0; 3], |sums, pulses| {
            std::array::from_fn(|list| sums[list] + pulses[list].count)
        })
    }

    /// `list`: in the order of [`crate::catalogue::CatalogueListing::digests`].
    pub fn list_changed(self: &Arc<Self>, contract: &str, list: usize) {
        let contract: Arc<str> = contract.into();
        self.lock().lists.entry(contract.clone()).or_default();
        self.beat(move |counts| {
            counts
                .lists
                .get_mut(&contract)
                .and_then(|pulses| pulses.get_mut(list))
        });
    }

    /// Reports a change of a resource. Does nothing if it has no listener.
    pub fn resource_changed(self: &Arc<Self>, uri: &str) {
        let uri: Arc<str> = uri.into();
        self.beat(move |counts| {
            counts
                .resources
                .get_mut(&uri)
                .map(|watched| &mut watched.pulse)
        });
    }

    fn beat(
        self: &Arc<Self>,
        find: impl Fn(&mut AnnouncementCounts) -> Option<&mut AnnouncementThrottle> + Send + 'static,
    ) {
        let mut counts = self.lock();
        let Some(pulse) = find(&mut counts) else {
            return;
        };
        let since = pulse.last.map_or(INTERVAL, |last| last.elapsed());
        if since >= INTERVAL {
            pulse.count += 1;
            pulse.last = Some(Instant::now());
            drop(counts);
            self.tick.send_modify(|tick| *tick += 1);
        } else if !pulse.is_due {
            pulse.is_due = true;
            drop(counts);
            let announcements = self.clone();
            let later = async move {
                tokio::time::sleep(INTERVAL - since).await;
                if let Some(pulse) = find(&mut announcements.lock()) {
                    pulse.count += 1;
                    pulse.last = Some(Instant::now());
                    pulse.is_due = false;
                }
                announcements.tick.send_modify(|tick| *tick += 1);
            };
            // The caller is a plugin or a server, and both run on the runtime.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(later);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, AnnouncementCounts> {
        self.counts.lock()
    }
}

impl WatchedResources {
    /// Creates an empty set of at most `most` resources.
    pub fn new(announcements: &Arc<ChangeNotifier>, most: usize) -> Self {
        Self {
            announcements: announcements.clone(),
            seen: Mutex::default(),
            most,
        }
    }

    /// Returns the URIs with a listener.
    pub fn uris(&self) -> BTreeSet<String> {
        self.lock().keys().map(|uri| uri.to_string()).collect()
    }

    /// From now on.
    pub fn add(&self, uri: &str) -> Result<(), TooMany> {
        let mut seen = self.lock();
        if seen.contains_key(uri) {
            return Ok(());
        }
        if seen.len() >= self.most {
            return Err(TooMany(self.most));
        }
        let uri: Arc<str> = uri.into();
        let mut counts = self.announcements.lock();
        let watched = counts.resources.entry(uri.clone()).or_default();
        watched.listeners += 1;
        let (is_new, count) = (watched.listeners == 1, watched.pulse.count);
        drop(counts);
        seen.insert(uri, count);
        drop(seen);
        if is_new {
            self.announcements.wanted.send_modify(|wanted| *wanted += 1);
        }
        Ok(())
    }

    /// Stops listening for a resource. Does nothing if there is no listener for it.
    pub fn remove(&self, uri: &str) {
        if let Some((uri, _)) = self.lock().remove_entry(uri) {
            self.forget([uri]);
        }
    }

    /// Returns the resources that changed since the last call.
    pub fn changed(&self) -> Vec<Arc<str>> {
        let mut seen = self.lock();
        if seen.is_empty() {
            return Vec::new();
        }
        let counts = self.announcements.lock();
        let mut changed = Vec::new();
        for (uri, seen) in seen.iter_mut() {
            let count = counts
                .resources
                .get(uri)
                .map_or(*seen, |watched| watched.pulse.count);
            if std::mem::replace(seen, count) != count {
                changed.push(uri.clone());
            }
        }
        changed
    }

    fn forget(&self, uris: impl IntoIterator<Item = Arc<str>>) {
        let mut counts = self.announcements.lock();
        let mut any = false;
        for uri in uris {
            if let Some(watched) = counts.resources.get_mut(&uri) {
                watched.listeners -= 1;
                if watched.listeners == 0 {
                    counts.resources.remove(&uri);
                    any = true;
                }
            }
        }
        drop(counts);
        if any {
            self.announcements.wanted.send_modify(|wanted| *wanted += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, u64>> {
        self.seen.lock()
    }
}

impl Drop for WatchedResources {
    fn drop(&mut self) {
        let seen = std::mem::take(&mut *self.lock());
        self.forget(seen.into_keys());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_is_heard_at_once_and_once_more_at_its_end() {
        let [notes, others] = ["notes", "others"].map(|contract| [Arc::from(contract)]);
        let (announcements, mut heard) = loop {
            let announcements = Arc::new(ChangeNotifier::default());
            let heard = announcements.heard();
            let began = Instant::now();
            for _ in 0..1_000 {
                announcements.list_changed("notes", 2);
            }
            let lists = announcements.lists(&notes);
            // It begins again if the machine paused in the middle of the flood.
            if began.elapsed() < INTERVAL {
                assert_eq!(lists, [0, 0, 1]);
                break (announcements, heard);
            }
        };
        heard.changed().await.expect("heard at once");
        heard.changed().await.expect("heard at the end");
        assert_eq!(announcements.lists(&notes), [0, 0, 2]);
        assert_eq!(announcements.lists(&others), [0; 3]);
        announcements.list_changed("others", 0);
        assert_eq!(announcements.lists(&[notes, others].concat()), [1, 0, 2]);
    }

    #[tokio::test]
    async fn who_listens_for_a_resource_hears_of_it_and_nobody_else_is_kept() {
        let announcements = Arc::new(ChangeNotifier::default());
        announcements.resource_changed("note://1");
        assert!(announcements.watched().is_empty());
        let (one, other) = (
            WatchedResources::new(&announcements, 2),
            WatchedResources::new(&announcements, 2),
        );
        assert!(
            one.add("note://1").is_ok()
                && one.add("note://1").is_ok()
                && other.add("note://2").is_ok()
        );
        announcements.resource_changed("note://1");
        assert_eq!(one.changed(), [Arc::from("note://1")]);
        assert!(one.changed().is_empty() && other.changed().is_empty());
        assert!(one.add("note://2").is_ok());
        assert!(matches!(one.add("note://3"), Err(TooMany(2))));
        one.remove("note://1");
        drop(other);
        assert_eq!(announcements.watched(), BTreeSet::from(["note://2".into()]));
        drop(one);
        assert!(announcements.watched().is_empty());
    }
}
