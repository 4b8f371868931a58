//! `subscriptions/listen`: acknowledged first, then one notification per change, then a result.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    CatalogueWatcher, McpRequest, RequestScope, client::WATCHED_MAX, followed::FollowedTasks,
    subscribe::too_many, tasks,
};
use crate::{
    announcements::{TooMany, WatchedResources},
    call,
    identity::CallerIdentity,
    wire::{RequestId, ResultWriter, RpcError, key, notification, raw},
};

/// The largest share of the streams for one agent, as a divisor.
const AGENT_SHARE: usize = 8;

/// All open streams of one transport, with their bound and their end.
#[derive(Clone)]
pub struct StreamLimiter {
    room: Arc<Semaphore>,
    of_agents: Arc<OfAgents>,
    most: usize,
    ending: CancellationToken,
}

/// Room for one stream; given back when dropped.
pub struct StreamPermit {
    /// `None`: the caller is not an agent with a bound.
    held: Option<(Arc<OfAgents>, Agent)>,
    _room: OwnedSemaphorePermit,
}

/// The number of open streams of each agent.
#[derive(Default)]
struct OfAgents(Mutex<HashMap<Agent, usize>>);

/// Tenant and name.
type Agent = (Arc<str>, Arc<str>);

/// An open subscription: a source of messages that queues nothing.
pub struct ListenSubscription {
    id: RequestId<'static>,
    /// The lists that it follows: of tools, of prompts, of resources and templates.
    lists: [bool; 3],
    /// The URIs of resources for which it listens.
    resources: Vec<String>,
    tasks: FollowedTasks,
    changes: CatalogueWatcher,
    ending: CancellationToken,
    /// The caller that opened the stream, which ends with its grant.
    caller: CallerIdentity,
    next: SubscriptionStep,
    /// Messages that are due.
    due: VecDeque<Vec<u8>>,
    _stream: StreamPermit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SubscriptionStep {
    Acknowledge,
    Change,
    Nothing,
}

impl StreamLimiter {
    /// Creates subscriptions. When `ending` is cancelled, each of them is closed with its result.
    pub fn new(most: usize, ending: CancellationToken) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self {
            room: Arc::new(Semaphore::new(most)),
            of_agents: Arc::default(),
            most,
            ending,
        }
    }

    /// Returns the number of open streams.
    pub fn len(&self) -> usize {
        self.most.saturating_sub(self.room.available_permits())
    }

    /// Returns `true` if no stream is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the token that closes all streams when it is set.
    pub fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// Takes room for one stream; legacy streams share the same room. Without keys every caller is `local`, which has no bound.
    pub fn admit(&self, caller: &CallerIdentity) -> Result<StreamPermit, RpcError> {
        let full =
            |_| RpcError::internal("too many notification streams are open ([http] streams_max)");
        let room = self.room.clone().try_acquire_owned().map_err(full)?;
        let held = match &caller.grant {
            None => None,
            Some(_) => Some(
                self.of_agents
                    .enter(caller, self.most.div_ceil(AGENT_SHARE))?,
            ),
        };
        Ok(StreamPermit { held, _room: room })
    }

    pub(super) fn open(
        &self,
        scope: &RequestScope,
        request: &McpRequest<'_>,
    ) -> Result<ListenSubscription, RpcError> {
        let stream = self.admit(&scope.caller)?;
        let ListenFilter {
            lists,
            mut resources,
            tasks,
        } = wanted(request)?;
        let listing = scope.listing()?;
        resources.retain(|uri| {
            let source = call::resource_source(&listing, uri);
            source.is_some_and(|source| call::notifies(&scope.gateway, &source))
        });
        let watched = WatchedResources::new(scope.gateway.announcements(), WATCHED_MAX);
        resources
            .iter()
            .try_for_each(|uri| watched.add(uri))
            .map_err(too_many)?;
        let scope = Arc::new(scope.clone());
        Ok(ListenSubscription {
            id: request.id.clone().into_owned(),
            lists,
            resources,
            tasks: FollowedTasks::new(scope.clone(), tasks),
            changes: CatalogueWatcher::new(scope.clone(), Arc::new(watched)),
            ending: self.ending.clone(),
            caller: scope.caller.clone(),
            next: SubscriptionStep::Acknowledge,
            due: VecDeque::new(),
            _stream: stream,
        })
    }
}

impl OfAgents {
    fn enter(
        self: &Arc<Self>,
        caller: &CallerIdentity,
        most: usize,
    ) -> Result<(Arc<Self>, Agent), RpcError> {
        let agent = (caller.tenant.clone(), caller.agent.clone());
        let mut table = self.0.lock();
        let open = table.entry(agent.clone()).or_default();
        if *open >= most {
            let message = format!(
                "an agent has at most {most} notification streams, an eighth of [http] streams_max"
            );
            return Err(RpcError::internal(message));
        }
        *open += 1;
        Ok((self.clone(), agent))
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let Some((of_agents, agent)) = &self.held else {
            return;
        };
        let mut table = of_agents.0.lock();
        if let Some(open) = table.get_mut(agent) {
            *open -= 1;
            if *open == 0 {
                table.remove(agent);
            }
        }
    }
}

impl ListenSubscription {
    /// Returns the id of the request that opened it, which its notifications name.
    pub fn id(&self) -> &RequestId<'static> {
        &self.id
    }

    /// Returns the next message; `None` after the last one. The future may be dropped and this called again.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        match self.next {
            SubscriptionStep::Acknowledge => {
                self.next = SubscriptionStep::Change;
                Some(self.acknowledge())
            }
            SubscriptionStep::Change => {
                while self.due.is_empty() {
                    let meta = self.meta();
                    let mut changed = tokio::select! {
                        biased;
                        () = self.ending.cancelled() => break,
                        () = self.caller.ended() => break,
                        changed_tasks = self.tasks.changed(&meta) => {
                            self.due.extend(changed_tasks);
                            continue;
                        }
                        changed = self.changes.changed() => changed,
                    };
                    changed.lists =
                        std::array::from_fn(|kind| changed.lists[kind] && self.lists[kind]);
                    self.due.extend(changed.messages(Some(&meta)));
                }
                if self.due.is_empty() {
                    self.next = SubscriptionStep::Nothing;
                    return Some(self.finish());
                }
                self.due.pop_front()
            }
            SubscriptionStep::Nothing => None,
        }
    }

    fn acknowledge(&self) -> Vec<u8> {
        let names = [
            "toolsListChanged",
            "promptsListChanged",
            "resourcesListChanged",
        ];
        let accepted = names.iter().zip(self.lists).filter(|(_, wanted)| *wanted);
        let mut accepted: Vec<String> = accepted
            .map(|(name, _)| format!(r#""{name}":true"#))
            .collect();
        if !self.resources.is_empty() {
            accepted.push(format!(
                r#""resourceSubscriptions":{}"#,
                serde_json::json!(self.resources)
            ));
        }
        if !self.tasks.is_empty() {
            accepted.push(format!(
                r#""taskIds":{}"#,
                serde_json::json!(self.tasks.ids())
            ));
        }
        let params = format!(
            r#"{{"_meta":{},"notifications":{{{}}}}}"#,
            self.meta(),
            accepted.join(",")
        );
        notification("notifications/subscriptions/acknowledged", Some(&params))
    }

    fn finish(&self) -> Vec<u8> {
        let mut result = ResultWriter::new(&self.id, 128);
        result
            .string("resultType", "complete")
            .json("_meta", &self.meta());
        result.finish()
    }

    /// Returns the `_meta` of every message: it contains the id of the subscription's request.
    fn meta(&self) -> String {
        format!(r#"{{"{}":{}}}"#, key::SUBSCRIPTION_ID, self.id.as_json())
    }
}

/// The changes for which a client listens.
struct ListenFilter {
    lists: [bool; 3],
    /// Each URI once, and at most as many as one client may listen for.
    resources: Vec<String>,
    tasks: Vec<String>,
}

/// Unsupported kinds of notification, and unknown resources and tasks, are left out of the acknowledgement rather than refused.
fn wanted(request: &McpRequest<'_>) -> Result<ListenFilter, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct FilterParams {
        tools_list_changed: Option<bool>,
        prompts_list_changed: Option<bool>,
        resources_list_changed: Option<bool>,
        resource_subscriptions: Option<Vec<String>>,
        task_ids: Option<Vec<String>>,
    }
    match request.params.notifications {
        Some(filter) if raw::is_object(filter) => {
            serde_json::from_str::<FilterParams>(filter.get())
                .map_err(|error| {
                    RpcError::invalid_params(format!("`params.notifications`: {error}"))
                })
                .and_then(|it| {
                    it.task_ids
                        .as_ref()
                        .map_or(Ok(()), |_| tasks::check(request))?;
                    Ok(ListenFilter {
                        lists: [
                            it.tools_list_changed.unwrap_or_default(),
                            it.prompts_list_changed.unwrap_or_default(),
                            it.resources_list_changed.unwrap_or_default(),
                        ],
                        resources: distinct(&it.resource_subscriptions.unwrap_or_default())
                            .map_err(too_many)?,
                        tasks: it.task_ids.unwrap_or_default(),
                    })
                })
        }
        _ => Err(RpcError::invalid_params(
            "`params.notifications` must be an object",
        )),
    }
}

/// Returns each URI once, in order. Unknown URIs count too, since recognising one means comparing it with every template.
fn distinct(uris: &[String]) -> Result<Vec<String>, TooMany> {
    let (mut known, mut distinct) = (HashSet::new(), Vec::new());
    for uri in uris.iter().filter(|uri| known.insert(uri.as_str())) {
        if distinct.len() == WATCHED_MAX {
            return Err(TooMany(WATCHED_MAX));
        }
        distinct.push(uri.clone());
    }
    Ok(distinct)
}
