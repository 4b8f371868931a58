//! `cargo xtask demo | test | console | docs | plugins | package | instructions | bench | cluster | beginner | figures | fuzz`: sets up what a machine lacks, then does the one thing asked.
//!
//! Needs nothing but Rust, git, a shell and apt. No dependencies, so that it starts at once on a fresh machine.
#![expect(
    clippy::print_stdout,
    reason = "a terminal tool: standard output is what it is for"
)]
#![expect(clippy::disallowed_types, reason = "std alone: it has no dependencies")]

mod beginner;
mod bench;
mod clients;
mod console;
mod debian;
mod demo;
mod dist;
mod docs;
mod earlier;
mod fuzz;
mod image;
mod package;
mod pages;
mod plugins;
mod step;
mod test;
mod workshop;

use std::{path::Path, process::ExitCode};

use workshop::XtaskContext;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  demo [--port N]   build everything, then serve the sample contracts (default port 8484)
  test              everything .ci/run runs: format, lints, plugins, clients, tests; with --frameworks the agent frameworks
                    alone, those too that are too large for every run
  console           build the console into console/dist, which the program takes in
  docs              build the documentation site into site/dist; fails on a dead link
  plugins           build the adapters into plugins/*.wasm; with --guests also those that the tests load
  package           the release: one program with the adapters inside, and what it is run with, in dist/; with --program FILE
                    of a program that is built already
  instructions      the instructions of a request against bench/instructions.json; WEIR_BLESS=1 accepts what is counted
  bench [OPTIONS]   Weir and its peers, measured as released, into docs/benchmarks/; `bench -- --help` for a part
  cluster           three gateways behind HAProxy, each on a machine of its own, which are network namespaces: needs root; with
                    hundreds of rounds, and with nodes of an earlier program, which it builds
  beginner [LANGUAGE…]
                    the first plugin of an author, from empty caches, timed step by step: rust, js, python, c
  figures           sizes, names and words of the code, which may only fall (tests/tidy/figures.txt); WEIR_BLESS=1
                    accepts what is counted
  fuzz [TARGET] [--minutes N]
                    hostile bytes for everything that reads some, or for one target; a minute each, or N

Environment:
  WEIR_CACHE        where builds, clients and logs are kept (default: ~/.cache/weir)
  WEIR_COLD=1       start from an empty temporary cache, as a fresh machine would
  CARGO_TARGET_DIR  where cargo builds (default: target/ in the cache)
  WEIR_WASM         target: only rustup's wasm target; debian: only Debian's compiler (default: whichever is installed)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nxtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), step::StepFailure> {
    match words {
        ["demo"] => demo::run(&XtaskContext::open()?, demo::PORT_DEFAULT),
        ["demo", "--port", port] => demo::run(&XtaskContext::open()?, demo::parse_port(port)?),
        // `demo` starts this together with the gateway; it is not for people.
        ["announce", port, target, state] => {
            demo::announce(demo::parse_port(port)?, target, Path::new(state))
        }
        ["test"] => test::run(&XtaskContext::open()?),
        ["test", "--frameworks"] => test::frameworks(&XtaskContext::open()?),
        ["console"] => console::build(&XtaskContext::open()?),
        ["docs"] => docs::run(&XtaskContext::open()?),
        ["plugins"] => plugins::run(&XtaskContext::open()?, false),
        ["plugins", "--guests"] => plugins::run(&XtaskContext::open()?, true),
        ["package"] => package::run(&XtaskContext::open()?),
        ["package", "--program", program] => {
            package::pack_release(&XtaskContext::open()?, program.as_ref())
        }
        ["instructions"] => test::instructions(&XtaskContext::open()?),
        ["bench", "--", options @ ..] | ["bench", options @ ..] => {
            bench::run(&XtaskContext::open()?, options)
        }
        ["cluster"] => test::cluster(&XtaskContext::open()?),
        ["beginner", languages @ ..] => beginner::run(&XtaskContext::open()?, languages),
        ["figures"] => test::figures(&XtaskContext::open()?),
        ["fuzz", words @ ..] => fuzz::run(&XtaskContext::open()?, words),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("unknown arguments\n\n{USAGE}").into()),
    }
}
