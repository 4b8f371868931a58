//! The lookout: what other servers list is looked at in the background, compiled, and judged by the gate like every other
//! submission. What is served comes from the state, so that no list depends on how a server fares.
//!
//! Processes that share a state look each for themselves: the same lists give the same draft, whoever is first.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::value::RawValue;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;
use weir_contracts::{
    Contract, Problem, Version,
    diff::{ForeignChanges, diff},
    name,
    offer::{self, Lists},
    upstream::{self as offered, Compiled, Overlay},
    uri,
};
use weir_state::Source;
use weir_upstream::{Changes, First, Kind, Listed, Resources, Seen, Upstream, UpstreamConfig};
use weir_watch::{Place, Watcher, next_beat};

use super::files;
use crate::{
    control::{
        Registry, WATCH_INTERVAL,
        gate::{DraftStatus, GateError, LiveContract, Origin, Submission, Verdict},
    },
    identity::now_ms,
};

/// The time without a further change after which a changed list is read.
const QUIET: Duration = Duration::from_secs(1);
/// The least time between two looks, however often a server says that its lists changed.
const APART: Duration = Duration::from_secs(3);
/// The same of a server that lists something else again and again.
const RESTLESS_APART: Duration = Duration::from_secs(60);
/// The time for which the drafts of a server are counted, so that one that has come to rest is looked at as any other.
const RESTLESS_MS: i64 = 3600 * 1000;
/// The pause after a first failed look; each further one doubles it, up to [`AGAIN_MAX`].
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// The pause between two looks whether a server still tells its news.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);
/// The time for all pages of all lists, beside the server's start.
const LISTING_MAX: Duration = Duration::from_secs(120);
/// The drafts that were replaced undecided, of one version, from which on that is remarked upon.
const REPLACED_MIN: u32 = 3;
/// Items left out, and notes, that are kept of one look.
const TOLD_MAX: usize = 200;
/// The reason of a server that is there, and whose lists cannot be published.
const REFUSED: &str = "refused";

/// Why a server's lists could not be looked at or made a contract of: a word for metrics, and the whole of it.
struct Unseen {
    reason: &'static str,
    failure: String,
}

impl Registry {
    /// Looks at every server of the configuration, as it is at any time, until the task ends.
    pub async fn watch_upstreams(self: Arc<Self>, watcher: Watcher) {
        let mut published = self.gate.state().changes();
        let mut background = self.gateway.background_changes();
        let mut lookouts: BTreeMap<Arc<str>, (Arc<Upstream>, AbortOnDropHandle<()>)> =
            BTreeMap::new();
        let mut gone = BTreeSet::new();
        loop {
            let all = self.gateway.upstreams().all();
            let is_gone =
                |known: &Arc<Upstream>| !all.iter().any(|upstream| Arc::ptr_eq(upstream, known));
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

    /// Drops the drafts of a server that is taken out of the configuration before any of it was published.
    async fn forget(&self, contract: &str) {
        if contract.is_empty() || self.gate.live().contains_key(contract) {
            return;
        }
        let pending = match self.gate.state().pending(Some(contract)).await {
            Ok(pending) => pending,
            Err(error) => return tracing::error!(contract, %error, "its drafts cannot be read"),
        };
        for draft in pending
            .into_iter()
            .filter(|draft| draft.origin == Origin::Upstream)
        {
            match self.gate.discard(&draft.id, "config").await {
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

    /// Looks at a server, and listens to what it says of its lists and resources, until the task ends.
    async fn attend(self: Arc<Self>, upstream: Arc<Upstream>, watcher: Watcher) {
        tokio::join!(
            self.clone().look_out(upstream.clone(), &watcher),
            self.listen_to(&upstream)
        );
    }

    /// Asks the server for news of the resources that somebody listens for, and passes them on.
    async fn listen_to(&self, upstream: &Upstream) {
        let announcements = self.gateway.announcements();
        let (mut wanted, mut updated) = (announcements.wanted(), upstream.updated());
        loop {
            let live = self.gate.live();
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
                    tracing::debug!(upstream = &*upstream.name, ?failure, "it tells no news now");
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
            // Now and then it is asked anew: its session may be another, or its stream have ended.
            let _ = timeout(LISTEN_AGAIN, async {
                tokio::select! { _ = wanted.changed() => {}, () = heard => {} }
            })
            .await;
        }
    }

    /// Looks at a server at the start, whenever it says that a list changed or its overlay is edited, at a pace, and when a
    /// call doubts it.
    async fn look_out(self: Arc<Self>, upstream: Arc<Upstream>, watcher: &Watcher) {
        let (mut failures, mut said) = (0_u32, None);
        loop {
            let began = Instant::now();
            let overlay = upstream
                .config()
                .overlay
                .as_ref()
                .map(|file| self.gateway.config().base.join(file));
            let stamp = overlay.as_deref().and_then(files::stamp);
            let seen = self.look_at(&upstream).await;
            let told = (
                seen.failure.clone(),
                seen.left_out.clone(),
                seen.draft.clone(),
            );
            if said.as_ref() != Some(&told) {
                log(&upstream, &seen);
                said = Some(told);
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
                sleep_until(began + self.apart(&seen.contract).await).await;
            };
            tokio::select! {
                () = changed => {}
                () = edited(overlay.as_deref(), stamp.as_ref(), watcher) => {}
                () = next => {}
            }
        }
    }

    /// Looks at one server now: what it lists becomes the live version, a draft, or a reason why neither.
    pub async fn look_at(&self, upstream: &Upstream) -> Seen {
        let mut seen = Seen {
            at: Some(SystemTime::now()),
            ..Seen::default()
        };
        match self.offer(upstream).await {
            // What was found before is served on, and is told beside the reason.
            Err(Unseen { reason, failure }) => {
                seen = Seen {
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
                seen.contract.clone_from(&offer.compiled.contract.name);
                let problem = |problem: &Problem| format!("{}: {}", problem.place, problem.message);
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
                    Err(GateError::Refused(problems)) => Some(said(&problems)),
                    Err(error) => Some(error.to_string()),
                };
                seen.reason = why.is_some().then_some(REFUSED);
                seen.failure = why.map(|why| format!("its tools cannot be published: {why}"));
            }
        }
        upstream.note(seen.clone());
        seen
    }

    async fn offer(&self, upstream: &Upstream) -> Result<Offer, Unseen> {
        let most = LISTING_MAX + Duration::from_secs(upstream.config().start_s);
        let late = |_| Unseen {
            reason: Kind::Timeout.word(),
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
                reason: Kind::Protocol.word(),
                failure,
            });
        }
        let refused = |failure| Unseen {
            reason: REFUSED,
            failure,
        };
        let base = self.gateway.config().base.clone();
        let taken = self
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
        .map_err(|problems| refused(said(&problems)))
    }

    /// Returns whether something is published that the server lists by this method: then an error instead of the list does not
    /// mean that it is gone.
    fn has_published(&self, upstream: &str, method: &str) -> bool {
        self.gate
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

    /// Returns the names of tools that other contracts publish, which a server's tools cannot have, with those contracts.
    pub async fn names_taken_from(
        &self,
        upstream: &str,
    ) -> Result<BTreeMap<String, String>, GateError> {
        self.gate.refresh().await?;
        let live = self.gate.live();
        let others = live
            .values()
            .filter(|live| live.contract.upstream() != Some(upstream));
        let names = others.flat_map(|live| {
            live.contract
                .tools
                .iter()
                .map(|tool| (tool.name.clone(), live.contract.name.clone()))
        });
        Ok(names.collect())
    }

    /// Submits an offer, and returns the draft that waits, if one does.
    async fn submit_offer(
        &self,
        upstream: &Upstream,
        contract: Contract,
        source: &str,
    ) -> Result<Option<String>, GateError> {
        let owner = files::owner(&self.gateway.config().base);
        let name = contract.name.clone();
        let by = format!("upstream:{}", upstream.name);
        if let Some(owned) = self.gate.own(&name, &owner).await? {
            return Err(owned);
        }
        self.read_lock_of_offer(
            &name,
            Source {
                origin: Origin::Upstream,
                owner: Some(&owner),
            },
        )
        .await?;
        self.gate.refresh().await?;
        let live = self.gate.live().get(&name).cloned();
        let is_live = live.as_ref().is_some_and(|live| live.source == source);
        if self.is_discarded(live.as_deref(), &name, source).await?
            || (!is_live && self.is_rolled_back(&name, source).await?)
        {
            // What was offered in between is offered no more.
            self.gate
                .state()
                .drop_held(&name, Origin::Upstream, now_ms(), &by)
                .await?;
            return Ok(None);
        }
        let hold = self
            .holds(upstream.config(), live.as_deref(), &contract)
            .await?;
        let submission = Submission {
            contract,
            source,
            origin: Origin::Upstream,
            owner: Some(&owner),
            by: &by,
            hold,
            on: live.map(|live| live.revision),
        };
        match self.submit(submission).await? {
            Verdict::Held(held) => {
                tracing::warn!("held: {}", held.line());
                Ok(Some(held.draft))
            }
            Verdict::Published { .. } | Verdict::Unchanged { .. } => Ok(None),
        }
    }

    /// Publishes what someone has looked at and agreed to. Where something of that name was published before, the gate judges
    /// the change as it does every other.
    pub async fn agree(
        &self,
        upstream: &str,
        offer: Offer,
        by: &str,
    ) -> Result<Verdict, GateError> {
        let owner = files::owner(&self.gateway.config().base);
        let source = Source {
            origin: Origin::Upstream,
            owner: Some(&owner),
        };
        self.read_lock_of_offer(&offer.compiled.contract.name, source)
            .await?;
        self.gate.refresh().await?;
        let is_first = !self
            .gate
            .was_published(&offer.compiled.contract.name)
            .await?;
        tracing::debug!(upstream, is_first, "agreed to");
        let submission = Submission {
            contract: offer.compiled.contract,
            source: &offer.source,
            origin: Origin::Upstream,
            owner: Some(&owner),
            by,
            hold: !is_first,
            on: None,
        };
        self.submit(submission).await
    }

    /// Returns `true` if the offer waits for someone even if the gate would let it through.
    async fn holds(
        &self,
        config: &UpstreamConfig,
        live: Option<&LiveContract>,
        contract: &Contract,
    ) -> Result<bool, GateError> {
        let Some(live) = live else {
            // A contract that was retired and comes back is compared with what it was, and waits.
            let is_first = !self.gate.was_published(&contract.name).await?;
            return Ok(!(is_first && config.first == First::Publish));
        };
        let changes = match config.changes {
            Changes::Hold => ForeignChanges::Hold,
            Changes::Compatible => ForeignChanges::Compatible,
        };
        Ok(!diff(&live.contract, contract)
            .awaiting_consent(changes)
            .is_empty())
    }

    /// Says that drafts follow each other although nobody decides: some servers list something else at each start, and to be
    /// asked again and again is to agree unseen.
    async fn restless(&self, contract: &str) -> Option<String> {
        let replaced = self.replaced(contract, 0).await;
        (replaced >= REPLACED_MIN).then(|| {
            format!(
                "at least {replaced} drafts were replaced by the one that waits: if the server lists something else at each \
                 start, keep it still (a server in Python by `env = {{ PYTHONHASHSEED = \"0\" }}`)"
            )
        })
    }

    /// Returns the least time between two looks at a server. One that lists something else again and again, which no one can
    /// agree to in time, is looked at less often.
    async fn apart(&self, contract: &str) -> Duration {
        let is_restless = self.replaced(contract, now_ms() - RESTLESS_MS).await >= REPLACED_MIN;
        if is_restless { RESTLESS_APART } else { APART }
    }

    /// Returns how many drafts made since then were replaced although nobody decided about them.
    async fn replaced(&self, contract: &str, since_ms: i64) -> u32 {
        let base = self
            .gate
            .live()
            .get(contract)
            .map(|live| live.contract.version.to_string());
        let replaced = self
            .gate
            .state()
            .superseded(contract, Origin::Upstream, base.as_deref(), since_ms)
            .await;
        replaced.unwrap_or_else(|error| {
            tracing::error!(contract, %error, "its drafts cannot be counted");
            0
        })
    }

    /// Returns `true` if someone has decided against exactly this: then nobody is asked again.
    async fn is_discarded(
        &self,
        live: Option<&LiveContract>,
        name: &str,
        source: &str,
    ) -> Result<bool, GateError> {
        let base = live.map(|live| live.contract.version.to_string());
        let status = self
            .gate
            .state()
            .status_of_source(name, base.as_deref(), source)
            .await?;
        Ok(status == Some(DraftStatus::Discarded))
    }

    /// Finds the servers that were taken out of the configuration: each is listed on until someone agrees that its
    /// tools go.
    async fn unconfigured(&self, gone: &mut BTreeSet<(String, Version)>) {
        let config = Arc::clone(&self.gateway.config());
        let owner = files::owner(&config.base);
        let is_configured = |contract: &Contract| {
            let upstream = contract.upstream().unwrap_or_default();
            // An overlay may have given it another contract since.
            let now = self
                .gateway
                .upstreams()
                .get(upstream)
                .map(|upstream| upstream.seen().contract);
            let is_other = now.is_some_and(|now| !now.is_empty() && now != contract.name);
            config.upstreams.contains_key(upstream) && !is_other
        };
        let live = self.gate.live();
        let now: BTreeSet<(String, Version)> = live
            .values()
            .filter(|live| {
                live.origin == Origin::Upstream && live.owner.as_deref() == Some(&*owner)
            })
            .filter(|live| !is_configured(&live.contract))
            .map(|live| (live.contract.name.clone(), live.contract.version))
            .collect();
        for (name, _) in now.difference(gone) {
            match self.gate.ask_to_retire(name, "config", None).await {
                Ok(held) => tracing::warn!("held: {}", held.line()),
                Err(error) => {
                    tracing::error!(contract = name, %error, "nobody could be asked whether its tools go")
                }
            }
        }
        *gone = now;
    }
}

/// A server's lists, as they can be published.
pub struct Offer {
    pub compiled: Compiled,
    /// The text that it was compiled from.
    pub source: String,
    /// The server's words about what it is.
    pub server: String,
    pub notes: Vec<String>,
    pub overlay: Option<Overlay>,
}

/// Waits until a file is another than it was.
async fn edited(file: Option<&Path>, was: Option<&files::Stamp>, watcher: &Watcher) {
    let Some(file) = file else {
        return std::future::pending().await;
    };
    let mut pace = watcher.pace(WATCH_INTERVAL, vec![Place::file(file)]);
    loop {
        pace.next_look().await;
        if files::stamp(file).as_ref() != was {
            return;
        }
    }
}

/// Makes a contract of what a server lists. `base` is the folder that the overlay's path starts from. `taken` has the
/// names of tools that other contracts have, and which contract has each.
pub fn compile(
    name: &str,
    config: &UpstreamConfig,
    base: &Path,
    listed: Listed,
    about: &RawValue,
    taken: &BTreeMap<String, String>,
) -> Result<Offer, Vec<Problem>> {
    let overlay = match &config.overlay {
        None => None,
        Some(file) => {
            let path = base.join(file);
            let text = files::read(&path).map_err(|problem| vec![problem])?;
            Some(Overlay::read(&path.display().to_string(), &text)?)
        }
    };
    let (all, mut notes) = lists(listed, about);
    let server = all
        .info
        .as_ref()
        .map(|info| info.get().to_owned())
        .unwrap_or_default();
    // An unpublished item is no part of the comparison: a resource that comes and goes changes no contract.
    let has_resources = all.resources.is_some();
    let pinned = Lists {
        tools: all.tools,
        prompts: all.prompts,
        templates: all.templates.or_else(|| has_resources.then(Vec::new)),
        resources: all
            .resources
            .filter(|_| config.resources == Resources::Pinned),
        instructions: all.instructions,
        ..Lists::default()
    };
    let composed = offer::compose(name, &pinned);
    let source = composed.document.pinned();
    let with = offered::Upstream {
        name,
        contract: config.contract(name),
        prefix: config.prefix.as_deref(),
        overlay: overlay.as_ref(),
        taken: Some(taken),
        resources: match config.resources {
            Resources::Live => offered::Resources::Live,
            Resources::Pinned => offered::Resources::Pinned,
        },
        ..offered::Upstream::default()
    };
    let compiled = offered::compile(&with, &source)?;
    notes.extend(composed.problems.iter().map(ToString::to_string));
    notes.extend(compiled.notes.iter().map(ToString::to_string));
    notes.extend(named_twice(
        config.prefix.as_deref().unwrap_or(name),
        &compiled.contract,
    ));
    Ok(Offer {
        compiled,
        source,
        server,
        notes,
        overlay,
    })
}

/// Says that tools have the prefix twice, since the server's own names have it already.
fn named_twice(prefix: &str, contract: &Contract) -> Option<String> {
    let own = name::prefixed(prefix, "");
    let twice = name::prefixed(prefix, &own);
    let named = contract
        .tools
        .iter()
        .filter(|tool| tool.name.starts_with(&twice))
        .count();
    (named > 0 && !prefix.is_empty()).then(|| {
        format!("the server itself begins the names of {named} tools with `{own}`; with `prefix = \"\"` they keep them as they are")
    })
}

/// Returns a server's lists, as documents are composed of them, and remarks about how it lists.
pub fn lists(listed: Listed, about: &RawValue) -> (Lists, Vec<String>) {
    let mut lists = Lists {
        tools: listed.tools,
        resources: listed.resources,
        templates: listed.templates,
        prompts: listed.prompts,
        ..Lists::default()
    };
    lists.server_result(about);
    (lists, listed.notes)
}

fn log(upstream: &Upstream, seen: &Seen) {
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

fn said(problems: &[Problem]) -> String {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}
