//! A library in this process, and the functions that it may call during a call.

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::{
    abi::{self, ABI, Answer, FAILED, PANICKED, Reply, SYMBOL, Slice, Table},
    wire,
};

/// A loaded library. It is never unloaded, since its threads may hold anything.
#[derive(Clone, Copy)]
pub(crate) struct LoadedLibrary {
    table: &'static Table,
}

type Entry = unsafe extern "C" fn(u32, *const Table) -> *const Table;
/// Answers what the library asks of its host: a function, its head and its body.
type Host = Box<dyn FnMut(&str, &[u8], &[u8]) -> Answer>;

static OURS: Table = Table::new(answer);

thread_local! {
    /// The call under way; 0 if there is none.
    static TOKEN: Cell<u64> = const { Cell::new(0) };
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// Answers the libraries that this thread calls.
pub(super) fn answer_with(host: impl FnMut(&str, &[u8], &[u8]) -> Answer + 'static) {
    HOST.set(Some(Box::new(host)));
}

impl LoadedLibrary {
    /// Runs the library's own start code. The reason is a sentence for the operator.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        // SAFETY: the operator has named this file and its digest, and is responsible for its code.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| format!("it cannot be loaded as a library here: {}", chain(&error)))?;
        // SAFETY: the interface defines the type of this symbol.
        let entry = unsafe { library.get::<Entry>(SYMBOL.as_bytes()) }.map(|entry| *entry).map_err(|_| {
            format!("it has no symbol `{SYMBOL}`: build it with the feature `native` of the SDK (`weir plugin build --native`)")
        })?;
        #[expect(
            clippy::disallowed_methods,
            reason = "the library may have started threads already"
        )]
        std::mem::forget(library);
        // SAFETY: our table is there as long as the process.
        let table = unsafe { entry(ABI, &raw const OURS).as_ref() };
        let table = table.ok_or_else(|| {
            format!("it does not speak version {ABI} of the native interface: build it with the SDK of this gateway")
        })?;
        if table.abi != ABI || (table.size as usize) < size_of::<Table>() {
            return Err(format!(
                "its table is of version {} of the native interface, {} bytes; this gateway speaks version {ABI}, {} \
                 bytes: build it with the SDK of this gateway",
                table.abi,
                table.size,
                size_of::<Table>()
            ));
        }
        Ok(Self { table })
    }

    /// Calls one function in this thread.
    pub(super) fn call(self, function: &str, head: &[u8], body: &[u8]) -> Answer {
        static TOKENS: AtomicU64 = AtomicU64::new(1);
        let token = TOKENS.fetch_add(1, Ordering::Relaxed);
        TOKEN.set(token);
        // SAFETY: the table is that of a library that is never unloaded.
        let answer = unsafe { self.table.ask(token, function, head, body) };
        TOKEN.set(0);
        answer
    }
}

/// Answers what a library asks, for the call that its thread serves and for no other.
unsafe extern "C" fn answer(
    token: u64,
    function: Slice,
    head: Slice,
    body: Slice,
    out: *mut Reply,
) {
    let answered = catch_unwind(AssertUnwindSafe(|| {
        if token == 0 || token != TOKEN.get() {
            return failed(
                "denied",
                "Only the thread of a call can reach the gateway, and only while the call lasts.",
            );
        }
        // SAFETY: the library lends them until this function returns.
        let (function, head, body) = unsafe { (function.bytes(), head.bytes(), body.bytes()) };
        let Ok(function) = std::str::from_utf8(function) else {
            return failed("invalid", "A name is not text.");
        };
        HOST.with_borrow_mut(|host| match host {
            Some(host) => host(function, head, body),
            None => failed("internal", "There is no gateway."),
        })
    }));
    let answer = answered.unwrap_or_else(|_| Answer {
        status: PANICKED,
        ..Answer::default()
    });
    // SAFETY: `out` came with this call.
    unsafe { abi::put(answer, out) };
}

pub(super) fn failed(code: &str, message: &str) -> Answer {
    let record = wire::ErrorRecord {
        code: code.into(),
        message: message.into(),
        field: None,
        retry_after_ms: None,
        details: None,
    };
    Answer {
        status: FAILED,
        head: serde_json::to_vec(&record).expect("plain data"),
        body: Vec::new(),
    }
}

/// Returns the error with the loader's own words, which name the missing symbol or file.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
