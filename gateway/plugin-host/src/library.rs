//! Plugins as native libraries: the same calls and the same bounds as a component's, without its sandbox.
//!
//! A library is code that the operator trusts. Its requests to the gateway go through the same functions as a component's;
//! what else it does is not observed. It runs in child processes, so that a crash ends only the call that the child serves.

// The interface is the SDK's, as the component interface is: both sides compile these two files.
#[expect(
    unsafe_code,
    unreachable_pub,
    reason = "the file is the SDK's, which publishes it"
)]
#[path = "../../../plugin-sdk/src/native/abi.rs"]
pub(crate) mod abi;
#[path = "../../../plugin-sdk/src/native/wire.rs"]
mod wire;

mod child;
mod imports;
mod instance;
#[expect(
    unsafe_code,
    reason = "a library is opened and called through pointers"
)]
mod loaded;
mod message;
mod serve;

use std::{ffi::OsString, fs, path::PathBuf, sync::OnceLock, time::Duration};

use crate::config::DESCRIBE_TIMES;

pub(crate) use instance::LibraryInstance;
pub use serve::{LibraryBounds, serve, take_pipes};

/// The function that describes a collection.
const DESCRIBE: &str = "collections.describe";

/// Returns the processor time that one call of a function may take.
fn processor_max(function: &str, of_a_call: Duration) -> Duration {
    if function == DESCRIBE {
        of_a_call * DESCRIBE_TIMES
    } else {
        of_a_call
    }
}

/// A library that can be run.
pub(crate) struct LibraryCode {
    /// The copy that was checked.
    pub(crate) path: PathBuf,
    /// sha256, hex.
    pub(crate) digest: String,
    /// The signature that was next to the file when it was copied.
    pub(crate) signature: Option<String>,
    /// The words that start a child which runs it.
    pub(crate) runner: Vec<OsString>,
    /// The interfaces that the library declares, once it was asked.
    pub(crate) interfaces: OnceLock<LibraryInterfaces>,
}

impl LibraryCode {
    /// Reads the copy.
    pub(crate) fn read(&self) -> Result<Vec<u8>, String> {
        fs::read(&self.path)
            .map_err(|error| format!("its copy {} cannot be read: {error}", self.path.display()))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LibraryInterfaces {
    pub(crate) collections: bool,
    pub(crate) summaries: bool,
    pub(crate) tools: bool,
    pub(crate) items: bool,
}
