//! `weir native-host`: the process that a native plugin runs in. It ends with the gateway that started it.

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::Args;
use weir_plugin_host::library::{LibraryBounds, serve, take_pipes};

use super::Done;

#[derive(Args)]
pub(super) struct NativeHost {
    #[arg(long)]
    processor_ms: u64,
    #[arg(long)]
    memory_bytes: usize,
    #[arg(long)]
    sha256: String,
    library: PathBuf,
}

impl NativeHost {
    pub(super) fn run(self) -> Done {
        let (input, output) = take_pipes().context("taking stdin and stdout")?;
        weir_upstream::end_with_reader(output.try_clone()?);
        let bounds = LibraryBounds {
            processor: Duration::from_millis(self.processor_ms.max(1)),
            memory: self.memory_bytes,
        };
        serve(&self.library, &self.sha256, bounds, input, output)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the words that start this command.
pub(super) fn words() -> Vec<OsString> {
    let program = std::env::current_exe().map(Into::into);
    program
        .map(|program: OsString| vec![program, "native-host".into()])
        .unwrap_or_default()
}
