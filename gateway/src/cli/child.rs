//! `weir child`: runs a server's command and ends it when the gateway that started it is gone.

use std::ffi::OsString;

use clap::Args;

use super::Done;

#[derive(Args)]
pub(super) struct Child {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

impl Child {
    pub(super) fn run(self) -> Done {
        Ok(weir_upstream::guard(&self.command))
    }
}

/// Returns the words that go before a command, to start it under the guard.
pub(super) fn words() -> Vec<OsString> {
    let program = std::env::current_exe().map(Into::into);
    program
        .map(|program: OsString| vec![program, "child".into(), "--".into()])
        .unwrap_or_default()
}
