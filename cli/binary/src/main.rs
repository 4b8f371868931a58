//! The program: the gateway, the adapters and the console that were built before it, and the starting files for
//! authors of plugins.

use std::process::ExitCode;

use weir_files::embedded::EmbeddedFile;

/// Name, digest and component, from `build.rs`.
const ADAPTERS: &[(&str, &str, EmbeddedFile)] = include!(concat!(env!("OUT_DIR"), "/adapters.rs"));

/// The files of the repository that the author of a plugin needs, from `build.rs`.
const SOURCES: weir_cli::SourceArchive = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The files of the console, from `build.rs`; none where it was not built.
const CONSOLE: &[weir::web_files::WebFile] = include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// The commit of the sources, from `build.rs`; none where neither git nor `WEIR_COMMIT` has one.
const COMMIT: Option<&str> = option_env!("WEIR_BUILT_COMMIT");

fn main() -> ExitCode {
    weir::web_files::embed_web_files(CONSOLE);
    weir_cli::main(ADAPTERS, Some(SOURCES), COMMIT)
}
