//! One line per MCP method.

mod absent;
mod blocks;
mod call;
mod changes;
mod discover;
mod initialize;
mod list;
mod listen;
mod ping;
mod progress;
mod trace;

use std::{borrow::Cow, sync::Arc, time::Instant};

pub use crate::catalogue::Endpoint;
pub use call::Call;
pub use changes::{LIST_CHANGED, ListChanges};
pub use initialize::negotiate;
pub use listen::{Subscription, Subscriptions};
pub use progress::{ProgressUpdates, bare_progress, progress};
pub use weir_plugin_host::Progress;

use crate::{
    catalogue::Listing,
    gateway::Gateway,
    identity::Caller,
    wire::{Id, Method, Params, RpcError, Version},
};

/// What we advertise: no logging, no completion. Modern clients are also told of prompts and resources, whose lists
/// are empty; legacy clients are not told, and those that ask all the same get the empty lists too. See [`absent`].
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true}}"#;
const CAPABILITIES_MODERN: &str = r#"{"tools":{"listChanged":true},"prompts":{},"resources":{}}"#;

/// A request that has passed every check of its era.
#[derive(Debug)]
pub struct Request<'a> {
    pub id: Id<'a>,
    pub method: Method,
    pub params: Params<'a>,
    pub version: Version,
    /// JSON.
    pub progress_token: Option<&'a str>,
    /// W3C `traceparent`, well-formed.
    pub trace: Option<Cow<'a, str>>,
}

/// Where a request arrived, and from whom.
#[derive(Clone)]
pub struct RequestScope {
    pub gateway: Arc<Gateway>,
    pub caller: Caller,
    pub endpoint: Endpoint,
    /// `http` or `stdio`.
    pub transport: &'static str,
    /// Which of the caller's sessions it is, where there are any.
    pub session: Option<u128>,
}

/// What comes of a request. Calls and subscriptions are run by the transport, which knows what a disconnect means.
pub enum Reply<'a> {
    Answer(Vec<u8>),
    Call(Call<'a>),
    Subscribe(Subscription),
}

pub fn answer<'a>(
    scope: &RequestScope,
    subscriptions: &Subscriptions,
    request: Request<'a>,
) -> Result<Reply<'a>, RpcError> {
    let (method, version) = (request.method, request.version);
    // What the transport runs is measured where it ends.
    let began = (method != Method::CallTool).then(Instant::now);
    let reply = reply(scope, subscriptions, request);
    let began = began.filter(|_| !matches!(reply, Ok(Reply::Subscribe(_))));
    scope.gateway.metrics().request(method, version, began.map(|began| began.elapsed()));
    reply
}

fn reply<'a>(scope: &RequestScope, subscriptions: &Subscriptions, request: Request<'a>) -> Result<Reply<'a>, RpcError> {
    // A call has a record to leave, so it takes from the agent's bucket on its own path.
    if request.method != Method::CallTool {
        scope.gateway.buckets().request(&scope.caller, Instant::now()).map_err(RpcError::rate_limited)?;
    }
    Ok(match request.method {
        Method::Discover => Reply::Answer(discover::answer(scope, &*scope.listing()?, &request)),
        Method::Initialize => Reply::Answer(initialize::answer(&*scope.listing()?, &request)?),
        Method::Ping => Reply::Answer(ping::answer(&request)),
        Method::ListTools => Reply::Answer(list::answer(scope, &*scope.listing()?, &request)?),
        Method::CallTool => Reply::Call(Call::read(request)?),
        Method::Listen => Reply::Subscribe(subscriptions.open(scope, &request)?),
        Method::ListPrompts | Method::ListResources | Method::ListResourceTemplates => {
            Reply::Answer(absent::list(scope, &*scope.listing()?, &request))
        }
        Method::GetPrompt | Method::ReadResource => return Err(absent::read(&request)),
    })
}

/// `traceparent`, where it is well-formed; anything else is ignored.
pub use trace::traceparent;

impl RequestScope {
    pub fn listing(&self) -> Result<Arc<Listing>, RpcError> {
        let snapshot = self.gateway.snapshot();
        let listing = snapshot.catalogue.listing(&self.endpoint, self.caller.access());
        listing.ok_or_else(|| self.unknown())
    }

    pub fn exists(&self) -> Result<(), RpcError> {
        self.listing().map(|_| ())
    }

    fn unknown(&self) -> RpcError {
        let shown = |name: &str| name.chars().take(64).collect::<String>();
        let message = match &self.endpoint {
            Endpoint::All => "nothing is served here".to_owned(), // which cannot be: /mcp is there for everyone
            Endpoint::Contract(name) => {
                format!("no contract `{}` is served here; /mcp serves all of them", shown(name))
            }
            Endpoint::View(name) => format!("no view `{}` is served here", shown(name)),
        };
        RpcError::refused(404, message)
    }
}
