//! A tool of another MCP server. Its calls are sent once, and the trace context is the only thing that Weir adds.

mod account;
mod bind;
mod failure;
mod item;
mod listener;
mod outliving;
mod parked;
mod run;
mod shape;

use std::sync::Arc;

pub use self::parked::abandon_questions;
pub(crate) use self::shape::passed_meta;
pub(super) use self::{
    bind::bind,
    run::run,
    shape::{explain, shape},
};
pub(in crate::call) use self::{
    bind::raw,
    item::{bind_item, complete, run_item, shape_item},
    parked::{give_up, is_kept, wait_for_end},
    shape::members,
};
use crate::{call::asking::AllowedQuestions, identity::CallerIdentity};
use serde_json::value::RawValue;
use weir_upstream::{CallOwner, UpstreamOperation};

/// The request to the server.
pub(in crate::call) struct UpstreamRequest {
    /// The name of the server in the configuration.
    server: Arc<str>,
    asked: UpstreamOperation,
    resumed: Option<ResumedCall>,
    /// Arguments that a header repeats.
    headers: Vec<(String, String)>,
    /// The timeout of the tool, if it sets one.
    timeout_ms: Option<u64>,
    writes: bool,
}

impl UpstreamRequest {
    /// Returns the arguments of the tool, JSON.
    pub(in crate::call) fn arguments(&self) -> &str {
        match &self.asked {
            UpstreamOperation::Tool {
                arguments: Some(arguments),
                ..
            } => arguments.get(),
            _ => "{}",
        }
    }
}

/// The caller's answers to an earlier question.
enum ResumedCall {
    /// The request is sent again with them.
    Again(weir_upstream::CallResumption),
    /// A call is kept open for the answer, so only the answer is sent.
    Parked {
        handle: String,
        answer: Option<Box<RawValue>>,
    },
}

/// The server's answer, and the questions that it may ask. If there are none, a question in it comes from the gateway itself.
pub(in crate::call) struct UpstreamAnswer {
    pub(super) result: Box<RawValue>,
    may_ask: Option<AllowedQuestions>,
}

/// Returns the owner of the server's session.
pub(crate) fn call_owner(caller: &CallerIdentity, session: Option<u128>) -> CallOwner {
    let grant = caller.grant.as_ref();
    CallOwner {
        tenant: caller.tenant.clone(),
        agent: match caller.holder() {
            Some(holder) => holder.name().into(),
            None => caller.agent.clone(),
        },
        session,
        token: grant.and_then(|grant| grant.token()).cloned(),
    }
}
