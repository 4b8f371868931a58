//! The side of the library: its table, and the way to the host for the time of a call.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use serde::{Serialize, de::DeserializeOwned};

use super::abi::{self, ABI, Answer, DONE, FAILED, PANICKED, Reply, Slice, Table};
use super::{exports, wire};
use crate::error::{Error, Result};
use crate::plugin::Plugin;

/// The table of the host that loaded the library; null in an author's own tests.
static HOST: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// The call that this thread serves; 0: none.
    static TOKEN: Cell<u64> = const { Cell::new(0) };
}

struct Exports<P>(PhantomData<P>);

impl<P: Plugin> Exports<P> {
    const TABLE: Table = Table::new(call::<P>);
}

/// Returns what `weir_plugin_abi` answers: null if the host speaks another version.
pub fn table<P: Plugin>(abi: u32, host: *const Table) -> *const Table {
    if abi != ABI || host.is_null() {
        return std::ptr::null();
    }
    HOST.store(host.cast_mut(), Ordering::Release);
    &raw const *const { &Exports::<P>::TABLE }
}

/// Answers one call of the host. No panic leaves the library.
unsafe extern "C" fn call<P: Plugin>(
    token: u64,
    function: Slice,
    head: Slice,
    body: Slice,
    out: *mut Reply,
) {
    log_panics();
    TOKEN.set(token);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the host lends them until this function returns.
        let (function, head, body) = unsafe { (function.bytes(), head.bytes(), body.bytes()) };
        exports::answer::<P>(function, head, body)
    }));
    let answer = caught.unwrap_or_else(|panic| {
        let message = wire::Panic {
            message: text_of(&*panic).into(),
        };
        Answer {
            status: PANICKED,
            head: serde_json::to_vec(&message).unwrap_or_default(),
            body: Vec::new(),
        }
    });
    TOKEN.set(0);
    // SAFETY: `out` came with this call.
    unsafe { abi::put(answer, out) };
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

/// Logs panics with their location, which a caught panic does not contain.
fn log_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            crate::log::error_for_the_log_alone(&format!("The plugin panicked: {panic}"));
        }));
    });
}

/// Returns `true` in a library that was loaded: then the functions of the SDK go to the host, and not to
/// [`crate::testing`].
pub(crate) fn is_there() -> bool {
    !HOST.load(Ordering::Acquire).is_null()
}

/// Asks the host, in the name of the call that this thread serves. The answer's head, and its body.
pub(crate) fn ask<T: DeserializeOwned>(
    function: &str,
    head: &impl Serialize,
    body: &[u8],
) -> Result<(T, Vec<u8>)> {
    let Answer { head, body, .. } = send(function, head, body)?;
    let head = serde_json::from_slice(&head)
        .map_err(|_| Error::internal("The gateway's answer cannot be read."))?;
    Ok((head, body))
}

/// Asks for an answer without a head.
pub(crate) fn ask_bytes(function: &str, head: &impl Serialize, body: &[u8]) -> Result<Vec<u8>> {
    Ok(send(function, head, body)?.body)
}

fn send(function: &str, head: &impl Serialize, body: &[u8]) -> Result<Answer> {
    let token = TOKEN.get();
    // SAFETY: null, or the host's table, which it never takes back.
    let host = unsafe { HOST.load(Ordering::Acquire).as_ref() };
    let Some(host) = host.filter(|_| token != 0) else {
        return Err(Error::internal(
            "Only the thread of a call can reach the gateway, and only while the call lasts.",
        ));
    };
    let head = serde_json::to_vec(head).expect("plain data");
    // SAFETY: the table is the host's.
    let answer = unsafe { host.ask(token, function, &head, body) };
    match answer.status {
        DONE => Ok(answer),
        FAILED => Err(error_of(&answer.head)),
        _ => Err(Error::internal("The gateway does not offer this function.")),
    }
}

fn error_of(head: &[u8]) -> Error {
    let record = serde_json::from_slice::<wire::ErrorRecord<'_>>(head);
    record.map_or_else(
        |_| Error::internal("The gateway's answer cannot be read."),
        Error::from,
    )
}

impl From<wire::ErrorRecord<'_>> for Error {
    fn from(record: wire::ErrorRecord<'_>) -> Self {
        let wire::ErrorRecord {
            code,
            message,
            field,
            retry_after_ms,
            details,
        } = record;
        Self {
            code: code.into_owned(),
            message: message.into_owned(),
            field: field.map(Into::into),
            retry_after_ms,
            details: details.map(Into::into),
        }
    }
}
