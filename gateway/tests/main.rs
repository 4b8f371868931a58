//! The tests of the gateway that are no part of its modules, as one program: each one of its own would be linked with the whole
//! gateway again.

// The fuzz targets say `use libfuzzer_sys::fuzz_target`.
extern crate self as libfuzzer_sys;

mod corpora;
mod native;
mod panics;
mod totals;
