//! A request for a prompt, a resource or a completion of a plugin or another server.

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
    /// Where the host records which build of a plugin answered.
    pub ran_on: Arc<OnceLock<Arc<str>>>,
}
