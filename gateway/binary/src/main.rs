//! The program: the gateway, the adapters that were built when it was, and what the author of a plugin begins with.

use std::process::ExitCode;

/// Name, digest and component, from `build.rs`.
const ADAPTERS: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/adapters.rs"));

/// Path in the repository and content, from `build.rs`.
const SOURCES: weir::cli::Sources = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

fn main() -> ExitCode {
    weir::cli::main(ADAPTERS, SOURCES)
}
