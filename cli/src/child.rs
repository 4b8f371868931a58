//! `weir child`: runs a server's command and ends it when the gateway that started it is gone.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;
use weir_upstream::KeptFiles;

use super::Done;

#[derive(Args)]
pub(super) struct ChildArgs {
    /// A file or folder that the command may not reach
    #[arg(long, value_name = "PATH")]
    hidden: Vec<PathBuf>,
    /// A file or folder that the command may read, and not change
    #[arg(long, value_name = "PATH")]
    read_only: Vec<PathBuf>,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

impl ChildArgs {
    pub(super) fn run(self) -> Done {
        let kept = KeptFiles {
            hidden: self.hidden,
            read_only: self.read_only,
        };
        Ok(weir_upstream::guard(&self.command, &kept))
    }
}

/// Returns the words that go before a command, to start it under the guard.
pub(super) fn words() -> Vec<OsString> {
    let program = std::env::current_exe().map(Into::into);
    program
        .map(|program: OsString| vec![program, "child".into()])
        .unwrap_or_default()
}
