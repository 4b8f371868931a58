//! Looks at the lists of other servers in the background, compiles them, and submits them to the gate like every other source.
//! The served lists come from the state, so that none depends on the health of a server.
//!
//! Processes that share a state look independently: the same lists give the same draft, in any order.

pub mod offer;
mod submit;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::sync::{broadcast::error::RecvError, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;
use weir_contracts::{CompiledContract, ContractVersion, FileProblem, uri};
use weir_upstream::{UpstreamFailureKind, UpstreamFindings, UpstreamResources, UpstreamServer};
use weir_watch::{FileWatcher, WatchTarget, next_beat};

use self::offer::{CompiledOffer, compile};
use super::folder;
use crate::{
    control::{
        SnapshotPublisher, WATCH_INTERVAL,
        gate::{ContractOrigin, Gate, GateError},
    },
    serving::ServingGateway,
};

/// The time without a further change after which a changed list is read.
const QUIET: Duration = Duration::from_secs(1);
/// The least time between two looks, however often a server announces changed lists.
const APART: Duration = Duration::from_secs(3);
/// The same for a server that lists something different each time, or that announces changes without any.
const RESTLESS_APART: Duration = Duration::from_secs(60);
/// The period over which the drafts of a server are counted, so that one that has settled is looked at like any other.
const RESTLESS_MS: i64 = 3600 * 1000;
/// The pause after a first failed look; each further one doubles it, up to [`AGAIN_MAX`].
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// The pause between two checks that a server still sends its notifications.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);
/// The time for all pages of all lists, not counting the server's start.
const LISTING_MAX: Duration = Duration::from_secs(120);
/// The number of drafts replaced undecided, over one version, from which a note is added.
const REPLACED_MIN: u32 = 3;
/// The most left out items, and the most notes, that are kept from one look.
const TOLD_MAX: usize = 200;
/// The reason for a server that answers, but whose lists cannot be published.
const REFUSED: &str = "refused";

/// Why a server's lists could not be read or turned into a contract: a word for metrics, and the full text.
struct Unseen {
    reason: &'static str,
    failure: String,
}

/// Reads the lists of other servers, and submits them.
pub struct UpstreamSource {
    gateway: Arc<ServingGateway>,
    publisher: Arc<SnapshotPublisher>,
}

impl UpstreamSource {
    pub(in crate::control) fn new(
        gateway: Arc<ServingGateway>,
        publisher: Arc<SnapshotPublisher>,
    ) -> Self {
        Self { gateway, publisher }
    }

    fn gate(&self) -> &Gate {
        self.publisher.gate()
    }

    /// Looks at every server of the current configuration, until the task ends. `background` wakes when the configuration
    /// changes.
    pub async fn watch(
        self: Arc<Self>,
        watcher: FileWatcher,
        mut background: watch::Receiver<u64>,
    ) {
        let mut published = self.gate().state().changes();
        let mut lookouts: BTreeMap<Arc<str>, (Arc<UpstreamServer>, AbortOnDropHandle<()>)> =
            BTreeMap::new();
        let mut gone = BTreeSet::new();
        loop {
            let all = self.gateway.upstreams().all();
            let is_gone = |known: &Arc<UpstreamServer>| {
                !all.iter().any(|upstream| Arc::ptr_eq(upstream, known))
            };
            for (known, _) in lookouts.values().filter(|(known, _)| is_gone(known)) {
                if !all.iter().any(|upstream| upstream.name == known.name) {
                    self.forget(&known.seen().contract).await;
                }
            }
            lookouts.retain(|_, (known, _)| !is_gone(known));
            for upstream in all {
                let task = || {
                    AbortOnDropHandle::new(tokio::spawn(
                        Arc::clone(&self).attend(Arc::clone(&upstream), watcher.clone()),
                    ))
                };
                lookouts
                    .entry(upstream.name.clone())
                    .or_insert_with(|| (Arc::clone(&upstream), task()));
            }
            self.unconfigured(&mut gone).await;
            tokio::select! {
                Ok(()) = published.changed() => {}
                Ok(()) = background.changed() => {}
                // A look may have given a server another contract.
                () = next_beat() => {}
            }
        }
    }

    /// Drops the drafts of a server that was removed from the configuration before any of them was published.
    async fn forget(&self, contract: &str) {
        if contract.is_empty() || self.gate().live().contains_key(contract) {
            return;
        }
        let pending = match self.gate().state().pending(Some(contract)).await {
            Ok(pending) => pending,
            Err(error) => return tracing::error!(contract, %error, "its drafts cannot be read"),
        };
        for draft in pending
            .into_iter()
            .filter(|draft| draft.origin == ContractOrigin::Upstream)
        {
            match self.gate().discard(&draft.id, "config").await {
                Ok(()) => tracing::info!(
                    contract,
                    draft = draft.id,
                    "discarded: its server was taken out"
                ),
                Err(error) => {
                    tracing::error!(contract, draft = draft.id, %error, "cannot be discarded")
                }
            }
        }
    }

    /// Looks at a server, and listens to its notifications about lists and resources, until the task ends.
    async fn attend(self: Arc<Self>, upstream: Arc<UpstreamServer>, watcher: FileWatcher) {
        tokio::join!(
            self.clone().look_out(upstream.clone(), &watcher),
            self.listen_to(&upstream)
        );
    }

    /// Subscribes to the resources that have a listener, and passes their updates on.
    async fn listen_to(&self, upstream: &UpstreamServer) {
        let announcements = self.gateway.announcements();
        let (mut wanted, mut updated) = (announcements.wanted(), upstream.updated());
        loop {
            let live = self.gate().live();
            let contract = live
                .values()
                .find(|live| live.contract.upstream() == Some(&*upstream.name));
            let contract = contract
                .map(|live| live.contract.name.clone())
                .unwrap_or_default();
            if upstream.seen().state() == "up" {
                let watched = announcements.watched();
                let own = watched
                    .iter()
                    .filter_map(|uri| uri::own_uri(uri).filter(|(of, _)| *of == contract));
                if let Err(failure) = upstream.subscribe(&own.map(|(_, own)| own).collect()).await {
                    tracing::debug!(
                        upstream = &*upstream.name,
                        ?failure,
                        "it cannot be subscribed to now"
                    );
                }
            }
            let heard = async {
                loop {
                    match updated.recv().await {
                        Ok(own) => announcements
                            .resource_changed(&uri::published_uri(Some(&contract), &own)),
                        Err(RecvError::Lagged(_)) => {}
                        Err(RecvError::Closed) => std::future::pending().await,
                    }
                }
            };
            // The server is asked again at intervals: its session may have changed, or its stream may have ended.
            let _ = timeout(LISTEN_AGAIN, async {
                tokio::select! { _ = wanted.changed() => {}, () = heard => {} }
            })
            .await;
        }
    }

    /// Looks at a server at the start, whenever it announces a changed list, when its overlay is edited, at intervals, and when a
    /// call doubts its lists.
    async fn look_out(self: Arc<Self>, upstream: Arc<UpstreamServer>, watcher: &FileWatcher) {
        let (mut failures, mut last_report, mut last_version) = (0_u32, None, None);
        let mut last_resources = None;
        // The number of consecutive looks at announced changes that found none.
        let (mut is_announced, mut idle) = (false, 0);
        loop {
            let began = Instant::now();
            let overlay = upstream
                .config()
                .overlay
                .as_ref()
                .map(|file| self.gateway.config().base.join(file));
            let stamp = overlay.as_deref().and_then(folder::stamp);
            let seen = self.look_at(&upstream).await;
            let has_others = last_resources.is_some() && last_resources != seen.resources;
            last_resources = seen.resources;
            self.announce_resources(&upstream, &seen.contract, has_others);
            let report = (
                seen.failure.clone(),
                seen.left_out.clone(),
                seen.draft.clone(),
            );
            let version = self
                .gate()
                .live()
                .get(&seen.contract)
                .map(|live| live.contract.version);
            let is_same = last_report.as_ref() == Some(&report);
            idle = match is_announced && is_same && last_version == version {
                true => idle + 1,
                false => 0,
            };
            last_version = version;
            if !is_same {
                log(&upstream, &seen);
                last_report = Some(report);
            }
            let pause = match seen.failure {
                None => {
                    failures = 0;
                    Duration::from_secs(self.gateway.config().contracts.drift_interval_s)
                }
                Some(_) => {
                    failures += 1;
                    AGAIN_MIN
                        .saturating_mul(1 << (failures - 1).min(16))
                        .min(AGAIN_MAX)
                }
            };
            let next = async {
                match pause.is_zero() {
                    true => std::future::pending().await,
                    false => sleep(pause).await,
                }
            };
            let changed = async {
                upstream.list_changed().await;
                sleep(QUIET).await;
                let apart = self.apart(&seen.contract).await.max(idle_apart(idle));
                sleep_until(began + apart).await;
            };
            is_announced = tokio::select! {
                () = changed => true,
                () = edited(overlay.as_deref(), stamp.as_ref(), watcher) => false,
                () = next => false,
            };
        }
    }

    /// Announces that a list of resources changed which is not part of a contract. `has_others`: the server now lists other
    /// resources; to a caller's own session it may list more than to the gateway's.
    fn announce_resources(&self, upstream: &UpstreamServer, contract: &str, has_others: bool) {
        let is_announced = upstream.take_resource_news() || has_others;
        let is_live = upstream.config().resources == UpstreamResources::Live;
        if is_announced && is_live && !contract.is_empty() {
            self.gateway.announcements().list_changed(contract, 2);
        }
    }

    /// Looks at one server now: its lists become the live version or a draft, or a reason is recorded.
    pub async fn look_at(&self, upstream: &UpstreamServer) -> UpstreamFindings {
        let mut seen = UpstreamFindings {
            at: Some(SystemTime::now()),
            ..UpstreamFindings::default()
        };
        match self.list_offer(upstream).await {
            // What was found before is still served, and is reported together with the reason.
            Err(Unseen { reason, failure }) => {
                seen = UpstreamFindings {
                    at: seen.at,
                    failure: Some(failure),
                    reason: Some(reason),
                    ..upstream.seen()
                };
            }
            Ok(offer) => {
                self.gateway
                    .live_resources()
                    .set_overlay(&upstream.name, offer.overlay);
                seen.server = offer.server;
                seen.tools = offer.compiled.contract.tools.len();
                seen.resources = Some(offer.resources);
                seen.contract.clone_from(&offer.compiled.contract.name);
                let problem =
                    |problem: &FileProblem| format!("{}: {}", problem.place, problem.message);
                seen.left_out = offer
                    .compiled
                    .left_out
                    .iter()
                    .take(TOLD_MAX)
                    .map(problem)
                    .collect();
                seen.notes = offer.notes;
                seen.notes.truncate(TOLD_MAX);
                let why = match self
                    .submit_offer(upstream, offer.compiled.contract, &offer.source)
                    .await
                {
                    Ok(draft) => {
                        if draft.is_some() {
                            seen.notes.extend(self.restless(&seen.contract).await);
                        }
                        seen.draft = draft;
                        None
                    }
                    Err(GateError::Refused(problems)) => Some(join_problems(&problems)),
                    Err(error) => Some(error.to_string()),
                };
                seen.reason = why.is_some().then_some(REFUSED);
                seen.failure = why.map(|why| format!("its tools cannot be published: {why}"));
            }
        }
        upstream.note(seen.clone());
        seen
    }

    async fn list_offer(&self, upstream: &UpstreamServer) -> Result<CompiledOffer, Unseen> {
        let most = LISTING_MAX + Duration::from_secs(upstream.config().start_s);
        let late = |_| Unseen {
            reason: UpstreamFailureKind::Timeout.word(),
            failure: "its lists took too long".to_owned(),
        };
        let listed = timeout(most, upstream.lists()).await.map_err(late)?;
        let (listed, about) = listed.map_err(|failure| Unseen {
            reason: failure.kind.word(),
            failure: failure.to_string(),
        })?;
        if let Some(method) = listed
            .refused
            .iter()
            .find(|method| self.has_published(&upstream.name, method))
        {
            let failure = listed
                .notes
                .iter()
                .find(|note| note.contains(method))
                .cloned()
                .unwrap_or_default();
            return Err(Unseen {
                reason: UpstreamFailureKind::Protocol.word(),
                failure,
            });
        }
        let refused = |failure| Unseen {
            reason: REFUSED,
            failure,
        };
        let base = self.gateway.config().base.clone();
        let taken = self
            .gate()
            .names_taken_from(&upstream.name)
            .await
            .map_err(|error| refused(error.to_string()))?;
        compile(
            &upstream.name,
            upstream.config(),
            &base,
            listed,
            &about,
            &taken,
        )
        .map_err(|problems| refused(join_problems(&problems)))
    }

    /// Returns whether something is published that the server lists by this method: in that case, an error instead of the list
    /// does not mean that it is gone.
    fn has_published(&self, upstream: &str, method: &str) -> bool {
        self.gate()
            .live()
            .values()
            .map(|live| &live.contract)
            .any(|contract| {
                contract.upstream() == Some(upstream)
                    && match method {
                        "prompts/list" => !contract.prompts.is_empty(),
                        "resources/list" => !contract.resources.is_empty(),
                        _ => !contract.templates.is_empty(),
                    }
            })
    }

    /// Finds the servers that were removed from the configuration: each remains listed until the removal of its tools is
    /// approved.
    async fn unconfigured(&self, gone: &mut BTreeSet<(String, ContractVersion)>) {
        let config = Arc::clone(&self.gateway.config());
        let owner = folder::owner(&config.base);
        let is_configured = |contract: &CompiledContract| {
            let upstream = contract.upstream().unwrap_or_default();
            // An overlay may have renamed its contract since.
            let now = self
                .gateway
                .upstreams()
                .get(upstream)
                .map(|upstream| upstream.seen().contract);
            let is_other = now.is_some_and(|now| !now.is_empty() && now != contract.name);
            config.upstreams.contains_key(upstream) && !is_other
        };
        let live = self.gate().live();
        let now: BTreeSet<(String, ContractVersion)> = live
            .values()
            .filter(|live| {
                live.origin == ContractOrigin::Upstream && live.owner.as_deref() == Some(&*owner)
            })
            .filter(|live| !is_configured(&live.contract))
            .map(|live| (live.contract.name.clone(), live.contract.version))
            .collect();
        for (name, _) in now.difference(gone) {
            match self.gate().ask_to_retire(name, "config", None).await {
                Ok(held) => tracing::warn!("held: {}", held.line()),
                Err(error) => {
                    tracing::error!(contract = name, %error, "the draft that retires its tools could not be made")
                }
            }
        }
        *gone = now;
    }
}

/// Returns the least time between two looks after `idle` looks that found nothing new. Some servers announce a change whenever
/// they are asked, or all the time.
fn idle_apart(idle: u32) -> Duration {
    APART.saturating_mul(1 << idle.min(16)).min(RESTLESS_APART)
}

/// Waits until a file changes.
async fn edited(file: Option<&Path>, was: Option<&folder::SourceStamp>, watcher: &FileWatcher) {
    let Some(file) = file else {
        return std::future::pending().await;
    };
    let mut pace = watcher.pace(WATCH_INTERVAL, vec![WatchTarget::file(file)]);
    loop {
        pace.next_look().await;
        if folder::stamp(file).as_ref() != was {
            return;
        }
    }
}

fn log(upstream: &UpstreamServer, seen: &UpstreamFindings) {
    let name = &*upstream.name;
    if let Some(failure) = &seen.failure {
        return tracing::warn!(
            upstream = name,
            "cannot be looked at: {}",
            failure.replace('\n', " ")
        );
    }
    tracing::info!(
        upstream = name,
        tools = seen.tools,
        left_out = seen.left_out.len(),
        "looked at"
    );
    for left_out in &seen.left_out {
        tracing::warn!(upstream = name, "left out: {left_out}");
    }
}

fn join_problems(problems: &[FileProblem]) -> String {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}
