//! The process of a native library, which the tests of this crate start with the words of their host.

use std::{
    env,
    io::{self, stdin, stdout},
    path::Path,
    time::Duration,
};

use weir_plugin_host::library::{LibraryBounds, serve};

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [
        "--processor-ms",
        processor,
        "--memory-bytes",
        memory,
        "--sha256",
        digest,
        path,
    ] = words[..]
    else {
        panic!("{words:?}")
    };
    let processor = Duration::from_millis(processor.parse().expect("a number"));
    let bounds = LibraryBounds {
        processor,
        memory: memory.parse().expect("a number"),
    };
    serve(Path::new(path), digest, bounds, stdin(), stdout())
}
