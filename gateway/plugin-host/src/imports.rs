//! Links the imports of plugins. Every function of ours is always linked; the grants are checked at each call.

use std::{future::Future, pin::Pin, sync::Arc};

use futures::{StreamExt as _, stream};
use wasmtime::component::{HasSelf, Linker};
use weir_connections::{ConnectionError, ConnectionHandle, FailureCode};
use weir_text::shorten;

use crate::{
    ConnectionGrant,
    bindings::v0_1::{
        Gateway,
        weir::plugin::{answers, types},
    },
    engine::{EnginePair, EngineSize},
    guest::{CallPurpose, GuestState, GuestStop},
};

mod files;
mod http;
mod index;
mod local;
mod parts;
mod sql;
mod wasi;

pub(crate) use wasi::stub_network;

/// Statements or requests of one `query-many` or `send-many`, and how many may run at once.
const BATCH_MAX: usize = 64;
const SIDE_BY_SIDE_MAX: usize = 8;
/// The bound on what a guest passes in one call; file contents are bounded by the guest's memory instead.
const ARGUMENT_MAX_BYTES: usize = 1 << 20;
/// Calls that reach no source (log, clock, …) cost little: this many are allowed for each call that may reach one.
const OTHER_CALLS_PER_SOURCE_CALL: u32 = 100;

/// Returns a linker with everything a plugin may import: our own interfaces, and WASI 0.2 without network.
pub(crate) fn linker(
    engines: &EnginePair,
    size: EngineSize,
) -> wasmtime::Result<Linker<GuestState>> {
    let mut linker = Linker::new(engines.get(size));
    Gateway::add_to_linker::<_, HasSelf<GuestState>>(&mut linker, |guest| guest)?;
    wasi::add_to_linker(&mut linker)?;
    Ok(linker)
}

/// The access that a host function is about to make.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ImportAccess {
    Read,
    Write,
}

impl GuestState {
    /// Counts `calls` into a source.
    fn count_source_calls(&mut self, calls: usize) -> wasmtime::Result<()> {
        let max = self.profile.limits.host_calls_max;
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        self.call.source_calls = self.call.source_calls.saturating_add(calls);
        if self.call.source_calls > max {
            Err(wasmtime::Error::new(GuestStop::HostCalls(max)))
        } else {
            Ok(())
        }
    }

    /// Counts a call that does not leave the host.
    fn count_other_call(&mut self) -> wasmtime::Result<()> {
        let max = self
            .profile
            .limits
            .host_calls_max
            .saturating_mul(OTHER_CALLS_PER_SOURCE_CALL);
        self.call.other_calls = self.call.other_calls.saturating_add(1);
        if self.call.other_calls > max {
            Err(wasmtime::Error::new(GuestStop::HostCalls(max)))
        } else {
            Ok(())
        }
    }

    /// Returns the connection, if the plugin has been granted it. The same error is for an ungranted and an unknown name.
    fn connection(
        &self,
        name: &str,
        access: ImportAccess,
    ) -> Result<&ConnectionHandle, types::Error> {
        let granted = match (self.profile.grants.get(name), access) {
            (None, _) => false,
            (Some(_), ImportAccess::Read) => true,
            (Some(grant), ImportAccess::Write) => grant.may_write(),
        };
        if !granted {
            return Err(denied("the plugin has not been granted this", name));
        }
        if access == ImportAccess::Write && self.call.purpose != CallPurpose::Write {
            self.call.writes.refuse();
            return Err(denied("only a write may change a source", name));
        }
        self.profile.connections.get(name).ok_or_else(|| {
            let mut error = error(
                FailureCode::Unavailable,
                "The data source is not configured.",
            );
            error.details = Some(detail("no such connection", name));
            error
        })
    }

    /// Refuses a statement of a contract's own on a connection without the grant for such.
    fn check_statements_granted(&self, name: &str) -> Result<(), types::Error> {
        match self.profile.grants.get(name) {
            Some(ConnectionGrant::Statements) => Ok(()),
            _ => {
                let message = format!(
                    "A statement of a contract's own needs the grant \"statements\" on the connection `{}`.",
                    shorten(name, 64)
                );
                Err(error(FailureCode::Forbidden, &message))
            }
        }
    }

    /// Waits for a source. The guest does not run in the meantime, so its processor time does not advance either.
    fn wait<T, F: Future<Output = T>>(&self, work: F) -> impl Future<Output = T> + use<T, F> {
        let meter = Arc::clone(&self.call.meter);
        async move {
            meter.pause();
            let done = work.await;
            meter.resume();
            done
        }
    }

    /// Runs a write in its own task: once begun it runs to its end or its deadline, whatever happens to the
    /// caller. It begins when the future is first polled, so that only a few writes of a batch are under way at
    /// a time. `changed` returns whether the source may hold something new.
    fn hand_over<T, F>(
        &self,
        write: F,
        changed: fn(&Result<T, ConnectionError>) -> bool,
    ) -> impl Future<Output = Result<T, ConnectionError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ConnectionError>> + Send + 'static,
    {
        let writes = Arc::clone(&self.call.writes);
        async move {
            writes.begin();
            let task = tokio::spawn(async move {
                let answer = write.await;
                writes.end(changed(&answer));
                answer
            });
            match task.await {
                Ok(answer) => answer,
                Err(error) => Err(ConnectionError::new(
                    FailureCode::UpstreamError,
                    "The write broke off.",
                )
                .details(error)),
            }
        }
    }
}

/// A call into a source that has been admitted, with all it needs.
type Running<T> = Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send>>;

/// Returns the answers in the order of the requests, of which several run at once. The answers together have at most `most`
/// bytes: the rest is dropped as it arrives.
async fn side_by_side<T: Send + 'static>(
    begun: Vec<Result<Running<T>, types::Error>>,
    size: fn(&T) -> usize,
    most: usize,
) -> Vec<Result<T, types::Error>> {
    let waits: Vec<_> = begun.into_iter().map(finish).collect();
    let mut coming = stream::iter(waits).buffered(SIDE_BY_SIDE_MAX);
    let mut answers = Vec::new();
    let mut left = most;
    while let Some(answer) = coming.next().await {
        answers.push(answer.and_then(|answer| {
            left = left
                .checked_sub(size(&answer))
                .ok_or_else(|| too_large("The answers are too large; ask for fewer."))?;
            Ok(answer)
        }));
    }
    answers
}

async fn finish<T>(begun: Result<Running<T>, types::Error>) -> Result<T, types::Error> {
    Ok(begun?.await?)
}

/// Returns `true` unless the source refused the write.
fn may_have_changed<T>(answer: &Result<T, ConnectionError>) -> bool {
    answer.as_ref().err().is_none_or(|error| !refused(error))
}

/// Returns `true` if the source refused, so that nothing was changed.
fn refused(error: &ConnectionError) -> bool {
    error.nothing_changed
}

fn error(code: FailureCode, message: &str) -> types::Error {
    types::Error {
        code: code.word().into(),
        message: message.into(),
        field: None,
        retry_after_ms: None,
        details: None,
    }
}

fn denied(why: &str, connection: &str) -> types::Error {
    let message = format!(
        "The plugin may not use the connection `{}`.",
        shorten(connection, 64)
    );
    let mut denied = error(FailureCode::Forbidden, &message);
    denied.details = Some(detail(why, connection));
    denied
}

fn wrong_kind(wanted: &str, connection: &str) -> types::Error {
    let mut error = error(
        FailureCode::InvalidArguments,
        "The connection is of another kind.",
    );
    error.details = Some(detail(wanted, connection));
    error
}

fn too_large(what: &str) -> types::Error {
    error(FailureCode::TooLarge, what)
}

/// Details are JSON, for the log only.
fn detail(why: &str, connection: &str) -> String {
    let connection = shorten(connection, 64);
    serde_json::json!({ "why": why, "connection": connection }).to_string()
}

impl From<ConnectionError> for types::Error {
    fn from(error: ConnectionError) -> Self {
        Self {
            code: error.code.word().into(),
            message: error.message,
            field: error.field,
            retry_after_ms: error.retry_after_ms,
            details: error.details,
        }
    }
}

impl types::Host for GuestState {}
impl answers::Host for GuestState {}
