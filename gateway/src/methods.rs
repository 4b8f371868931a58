//! Calls the method of a request: one line for each MCP method.

mod blocks;
mod call;
mod capabilities;
mod changes;
mod channel;
mod client;
mod complete;
mod discover;
mod followed;
mod initialize;
mod item;
mod list;
mod listen;
mod log_level;
mod meta;
mod request;
mod resources;
mod rounds;
mod subscribe;
mod tasks;

use std::{sync::Arc, time::Instant};

pub use crate::catalogue::CatalogueEndpoint;
pub use call::McpAnswer;
pub use changes::CatalogueWatcher;
pub use channel::{CallChannel, CallMessages};
pub use client::SessionClient;
pub use initialize::negotiate;
pub use listen::{ListenSubscription, StreamLimiter, StreamPermit};
use request::CallSubject;
pub use request::{CallParams, McpCall, McpRequest};
pub use tasks::report_task;
use weir_text::shorten;

use crate::{
    catalogue::{CatalogueListing, CatalogueViewer},
    identity::CallerIdentity,
    limits::RateCharge,
    serving::ServingGateway,
    snapshot::CatalogueSnapshot,
    tasks::CallTask,
    wire::{ResultWriter, RpcError, RpcMethod},
};

/// The endpoint where a request arrived, and its caller.
#[derive(Clone)]
pub struct RequestScope {
    pub gateway: Arc<ServingGateway>,
    pub caller: CallerIdentity,
    pub endpoint: CatalogueEndpoint,
    /// `http` or `stdio`.
    pub transport: &'static str,
    /// The client of the session, if there are sessions.
    pub client: Option<Arc<SessionClient>>,
    /// The charge of the request to the rate of its agent.
    pub charge: RateCharge,
}

/// The reply to a request. Requests that may take a while, and subscriptions, are run by the transport, which handles
/// disconnects.
pub enum MethodReply<'a> {
    Answer(Vec<u8>),
    Call(McpCall<'a>),
    Subscribe(ListenSubscription),
}

/// Answers a request immediately, or returns the work that the transport has to run. Counts the request in the metrics.
///
/// `Err` is the protocol error that the client gets.
pub fn answer<'a>(
    scope: &RequestScope,
    subscriptions: &StreamLimiter,
    request: McpRequest<'a>,
) -> Result<MethodReply<'a>, RpcError> {
    let (method, version) = (request.method, request.version);
    // A request that the transport runs is measured where it ends.
    let began = (method != RpcMethod::CallTool).then(Instant::now);
    let reply = reply(scope, subscriptions, request);
    let began =
        began.filter(|_| !matches!(reply, Ok(MethodReply::Call(_) | MethodReply::Subscribe(_))));
    scope
        .gateway
        .metrics()
        .request(method, version, began.map(|began| began.elapsed()));
    reply
}

fn reply<'a>(
    scope: &RequestScope,
    subscriptions: &StreamLimiter,
    request: McpRequest<'a>,
) -> Result<MethodReply<'a>, RpcError> {
    // A request that runs on the call path takes from the agent's bucket there.
    let on_call_path = matches!(
        request.method,
        RpcMethod::CallTool | RpcMethod::GetPrompt | RpcMethod::ReadResource | RpcMethod::Complete
    );
    if !on_call_path {
        scope.within_rate(request.method)?;
    }
    Ok(match request.method {
        RpcMethod::Discover => {
            MethodReply::Answer(discover::answer(scope, &*scope.listing()?, &request))
        }
        RpcMethod::Initialize => {
            MethodReply::Answer(initialize::answer(scope, &*scope.listing()?, &request)?)
        }
        RpcMethod::Ping => MethodReply::Answer(ResultWriter::new(&request.id, 0).finish()),
        RpcMethod::SetLogLevel => {
            capabilities::check(scope, &*scope.listing()?, &request)?;
            MethodReply::Answer(log_level::answer(scope, &request)?)
        }
        RpcMethod::ListResources if scope.listing()?.live().next().is_some() => {
            MethodReply::Call(request.into_call()?)
        }
        RpcMethod::ListTools
        | RpcMethod::ListPrompts
        | RpcMethod::ListResources
        | RpcMethod::ListResourceTemplates => {
            MethodReply::Answer(list::answer(scope, &*scope.listing()?, &request)?)
        }
        RpcMethod::CallTool => {
            let call = request.into_call()?;
            scope.check_scope(&call)?;
            MethodReply::Call(call)
        }
        RpcMethod::Subscribe | RpcMethod::Unsubscribe => {
            capabilities::check(scope, &*scope.listing()?, &request)?;
            MethodReply::Answer(subscribe::answer(scope, &request)?)
        }
        RpcMethod::GetTask | RpcMethod::UpdateTask | RpcMethod::CancelTask
            if tasks::is_elsewhere(scope, &request)? =>
        {
            MethodReply::Call(request.into_call()?)
        }
        RpcMethod::GetTask => MethodReply::Answer(tasks::get(scope, &request)?),
        RpcMethod::UpdateTask => MethodReply::Answer(tasks::update(scope, &request)?),
        RpcMethod::CancelTask => MethodReply::Answer(tasks::cancel(scope, &request)?),
        RpcMethod::Listen => MethodReply::Subscribe(subscriptions.open(scope, &request)?),
        RpcMethod::GetPrompt | RpcMethod::ReadResource | RpcMethod::Complete => {
            capabilities::check(scope, &*scope.listing()?, &request)?;
            MethodReply::Call(request.into_call()?)
        }
    })
}

/// The most characters of an outside name that an error repeats.
const NAME_MAX_CHARS: usize = 64;

impl RequestScope {
    /// The number of the client's session.
    pub fn session(&self) -> Option<u128> {
        self.client.as_ref().map(|client| client.session)
    }

    /// Returns what the caller can list at this endpoint. `Err` means that the endpoint is hidden from it.
    pub fn listing(&self) -> Result<Arc<CatalogueListing>, RpcError> {
        let snapshot = self.gateway.snapshot();
        let listing = snapshot
            .catalogue
            .listing(&self.endpoint, CatalogueViewer::Caller(&self.caller));
        listing.ok_or_else(|| self.unknown())
    }

    /// Returns whether results contain the receipt of their call here.
    fn has_receipts(&self, snapshot: &CatalogueSnapshot) -> bool {
        let usually = self.gateway.config().audit.receipts;
        snapshot.catalogue.has_receipts(&self.endpoint, usually)
    }

    /// Checks that the endpoint exists for this caller.
    pub fn exists(&self) -> Result<(), RpcError> {
        self.listing().map(|_| ())
    }

    /// Returns a task of the caller by its id, if it may still see its tool.
    fn task(&self, id: &str) -> Option<Arc<CallTask>> {
        let task = self
            .gateway
            .tasks()
            .find(&self.caller, &self.endpoint, id)?;
        let [contract, tool] = task.named();
        self.may_see(contract, tool).then_some(task)
    }

    /// Returns `true` if the caller may see a tool of a task.
    fn may_see(&self, contract: &str, tool: &str) -> bool {
        let snapshot = self.gateway.snapshot();
        let viewer = CatalogueViewer::Caller(&self.caller);
        self.caller.access().allows(contract, tool)
            && !snapshot.catalogue.is_hidden(contract, tool, viewer)
    }

    /// Refuses the call of a tool that writes if the caller's token is only for reading, before there is an answer: its client
    /// can request another token.
    fn check_scope(&self, call: &McpCall<'_>) -> Result<(), RpcError> {
        let CallSubject::Tool { name, .. } = &call.params.subject else {
            return Ok(());
        };
        if self.caller.may_write() {
            return Ok(());
        }
        let snapshot = self.gateway.snapshot();
        let viewer = CatalogueViewer::Caller(&self.caller);
        let tool = snapshot.catalogue.tool(&self.endpoint, name, viewer);
        match tool.is_some_and(|tool| tool.tool.writes()) {
            true => {
                let audit = self.gateway.audit();
                audit.refused_access(&self.place(), &self.caller.agent);
                Err(RpcError::insufficient_scope())
            }
            false => Ok(()),
        }
    }

    /// Charges a request to the rate of its agent.
    fn within_rate(&self, method: RpcMethod) -> Result<(), RpcError> {
        self.gateway
            .buckets()
            .settle_at_once(self.charge, &self.caller, Instant::now())
            .map_err(|wait| {
                let place = format!("{} {}", self.place(), method.name());
                self.gateway
                    .audit()
                    .refused_rate(&place, &self.caller.agent);
                RpcError::rate_limited(wait)
            })
    }

    /// Returns the path of the endpoint, as in the trail.
    fn place(&self) -> String {
        match &self.endpoint {
            CatalogueEndpoint::All => "/mcp".to_owned(),
            CatalogueEndpoint::Contract(name) => format!("/mcp/{}", shorten(name, NAME_MAX_CHARS)),
            CatalogueEndpoint::View(name) => format!("/mcp/view/{}", shorten(name, NAME_MAX_CHARS)),
            CatalogueEndpoint::Version(name, major) => {
                format!("/mcp/{}@{major}", shorten(name, NAME_MAX_CHARS))
            }
        }
    }

    fn unknown(&self) -> RpcError {
        self.gateway
            .audit()
            .refused_access(&self.place(), &self.caller.agent);
        let message = match &self.endpoint {
            CatalogueEndpoint::All => "nothing is served here".to_owned(), // which cannot be: /mcp is there for everyone
            CatalogueEndpoint::Version(name, major) => {
                format!(
                    "no contract `{}@{major}` is served here; /mcp serves all of them",
                    shorten(name, NAME_MAX_CHARS)
                )
            }
            CatalogueEndpoint::Contract(name) => {
                format!(
                    "no contract `{}` is served here; /mcp serves all of them",
                    shorten(name, NAME_MAX_CHARS)
                )
            }
            CatalogueEndpoint::View(name) => {
                format!("no view `{}` is served here", shorten(name, NAME_MAX_CHARS))
            }
        };
        RpcError::refused(404, message)
    }
}
