//! Has features and nothing else. `cargo xtask demo` builds the program beside this crate, so that cargo compiles each
//! shared dependency with the features that the whole workspace gives it, and the tests after a demo find it built.
//! `tests/tidy.rs` compares the two and names a feature that is missing here.
