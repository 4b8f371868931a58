//! The program: the gateway, and the adapters that were built when it was.

use std::process::ExitCode;

/// Name, digest and component, from `build.rs`.
const ADAPTERS: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/adapters.rs"));

fn main() -> ExitCode {
    weir::cli::main(ADAPTERS)
}
