//! A request for a prompt, a resource or a completion, as plugins and other servers are asked.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use weir_connections::http::TraceContext;

use crate::{call::CallRequest, identity::CallerIdentity, serving::ServingGateway};

/// A request for an item that its caller may see.
pub(in crate::call) struct ItemCall<'a> {
    pub gateway: &'a ServingGateway,
    pub caller: &'a CallerIdentity,
    pub request: &'a CallRequest<'a>,
    pub call_id: Arc<str>,
    pub asked_at: Instant,
    /// The trace to pass on; `None` if calls are not traced.
    pub carried: Option<TraceContext>,
    /// Where the host says which build of a plugin it was.
    pub ran_on: Arc<OnceLock<Arc<str>>>,
}
