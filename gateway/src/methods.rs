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

pub use crate::catalogue::Endpoint;
pub use call::McpAnswer;
pub use changes::Changes;
pub use channel::{CallChannel, CallMessages};
pub use client::Client;
pub use initialize::negotiate;
pub use listen::{Stream, Subscription, Subscriptions};
use request::CallSubject;
pub use request::{CallParams, McpCall, McpRequest};
pub use tasks::report_task;
use weir_text::shorten;

use crate::{
    catalogue::{CatalogueViewer, Listing},
    identity::Caller,
    limits::RateCharge,
    serving::Serving,
    snapshot::Snapshot,
    tasks::Task,
    wire::{Method, ResultWriter, RpcError},
};

/// The endpoint where a request arrived, and its caller.
#[derive(Clone)]
pub struct RequestScope {
    pub gateway: Arc<Serving>,
    pub caller: Caller,
    pub endpoint: Endpoint,
    /// `http` or `stdio`.
    pub transport: &'static str,
    /// The client whose session it is, where there are sessions.
    pub client: Option<Arc<Client>>,
    /// What the request costs the rate of its agent.
    pub charge: RateCharge,
}

/// The reply to a request. Requests that may take a while, and subscriptions, are run by the transport, which knows
/// what a disconnect means.
pub enum Reply<'a> {
    Answer(Vec<u8>),
    Call(McpCall<'a>),
    Subscribe(Subscription),
}

/// Answers a request at once, or returns what the transport has to run. Counts the request in the metrics.
///
/// `Err` is the protocol error that the client gets.
pub fn answer<'a>(
    scope: &RequestScope,
    subscriptions: &Subscriptions,
    request: McpRequest<'a>,
) -> Result<Reply<'a>, RpcError> {
    let (method, version) = (request.method, request.version);
    // A request that the transport runs is measured where it ends.
    let began = (method != Method::CallTool).then(Instant::now);
    let reply = reply(scope, subscriptions, request);
    let began = began.filter(|_| !matches!(reply, Ok(Reply::Call(_) | Reply::Subscribe(_))));
    scope
        .gateway
        .metrics()
        .request(method, version, began.map(|began| began.elapsed()));
    reply
}

fn reply<'a>(
    scope: &RequestScope,
    subscriptions: &Subscriptions,
    request: McpRequest<'a>,
) -> Result<Reply<'a>, RpcError> {
    // A request that runs on the call path takes from the agent's bucket there.
    let on_call_path = matches!(
        request.method,
        Method::CallTool | Method::GetPrompt | Method::ReadResource | Method::Complete
    );
    if !on_call_path {
        scope.within_rate(request.method)?;
    }
    Ok(match request.method {
        Method::Discover => Reply::Answer(discover::answer(scope, &*scope.listing()?, &request)),
        Method::Initialize => {
            Reply::Answer(initialize::answer(scope, &*scope.listing()?, &request)?)
        }
        Method::Ping => Reply::Answer(ResultWriter::new(&request.id, 0).finish()),
        Method::SetLogLevel => {
            capabilities::check(&*scope.listing()?, &request)?;
            Reply::Answer(log_level::answer(scope, &request)?)
        }
        Method::ListResources if scope.listing()?.live().next().is_some() => {
            Reply::Call(request.into_call()?)
        }
        Method::ListTools
        | Method::ListPrompts
        | Method::ListResources
        | Method::ListResourceTemplates => {
            Reply::Answer(list::answer(scope, &*scope.listing()?, &request)?)
        }
        Method::CallTool => {
            let call = request.into_call()?;
            scope.check_scope(&call)?;
            Reply::Call(call)
        }
        Method::Subscribe | Method::Unsubscribe => {
            capabilities::check(&*scope.listing()?, &request)?;
            Reply::Answer(subscribe::answer(scope, &request)?)
        }
        Method::GetTask | Method::UpdateTask | Method::CancelTask
            if tasks::is_elsewhere(scope, &request)? =>
        {
            Reply::Call(request.into_call()?)
        }
        Method::GetTask => Reply::Answer(tasks::get(scope, &request)?),
        Method::UpdateTask => Reply::Answer(tasks::update(scope, &request)?),
        Method::CancelTask => Reply::Answer(tasks::cancel(scope, &request)?),
        Method::Listen => Reply::Subscribe(subscriptions.open(scope, &request)?),
        Method::GetPrompt | Method::ReadResource | Method::Complete => {
            capabilities::check(&*scope.listing()?, &request)?;
            Reply::Call(request.into_call()?)
        }
    })
}

/// The longest name from outside that an error repeats, in characters.
const NAME_MAX_CHARS: usize = 64;

impl RequestScope {
    /// The number of the client's session.
    pub fn session(&self) -> Option<u128> {
        self.client.as_ref().map(|client| client.session)
    }

    /// Returns what the caller can list at this endpoint. `Err` means that it may not know of the endpoint.
    pub fn listing(&self) -> Result<Arc<Listing>, RpcError> {
        let snapshot = self.gateway.snapshot();
        let listing = snapshot
            .catalogue
            .listing(&self.endpoint, CatalogueViewer::Caller(&self.caller));
        listing.ok_or_else(|| self.unknown())
    }

    /// Returns whether results hold the receipt of their call here.
    fn has_receipts(&self, snapshot: &Snapshot) -> bool {
        let usually = self.gateway.config().audit.receipts;
        snapshot.catalogue.has_receipts(&self.endpoint, usually)
    }

    /// Checks that the endpoint exists for this caller.
    pub fn exists(&self) -> Result<(), RpcError> {
        self.listing().map(|_| ())
    }

    /// Returns a task of the caller by its id, if it may still see its tool.
    fn task(&self, id: &str) -> Option<Arc<Task>> {
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

    /// Refuses the call of a tool that writes where the caller's token is for reading alone, before there is an answer: its
    /// client can ask for another one.
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

    /// Takes a request from the rate of its agent.
    fn within_rate(&self, method: Method) -> Result<(), RpcError> {
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

    /// Returns the path of the endpoint, as the trail has it.
    fn place(&self) -> String {
        match &self.endpoint {
            Endpoint::All => "/mcp".to_owned(),
            Endpoint::Contract(name) => format!("/mcp/{}", shorten(name, NAME_MAX_CHARS)),
            Endpoint::View(name) => format!("/mcp/view/{}", shorten(name, NAME_MAX_CHARS)),
            Endpoint::Version(name, major) => {
                format!("/mcp/{}@{major}", shorten(name, NAME_MAX_CHARS))
            }
        }
    }

    fn unknown(&self) -> RpcError {
        self.gateway
            .audit()
            .refused_access(&self.place(), &self.caller.agent);
        let message = match &self.endpoint {
            Endpoint::All => "nothing is served here".to_owned(), // which cannot be: /mcp is there for everyone
            Endpoint::Version(name, major) => {
                format!(
                    "no contract `{}@{major}` is served here; /mcp serves all of them",
                    shorten(name, NAME_MAX_CHARS)
                )
            }
            Endpoint::Contract(name) => {
                format!(
                    "no contract `{}` is served here; /mcp serves all of them",
                    shorten(name, NAME_MAX_CHARS)
                )
            }
            Endpoint::View(name) => {
                format!("no view `{}` is served here", shorten(name, NAME_MAX_CHARS))
            }
        };
        RpcError::refused(404, message)
    }
}
