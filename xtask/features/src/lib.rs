//! Has features and nothing else. The native crates build their tests together with it, and `cargo xtask demo` builds the
//! program together with it, so that cargo compiles each shared dependency with the features that the whole workspace gives
//! it: tests of one crate after a demo compile only that crate. Its manifest is generated and checked by
//! `tests/tidy/features.rs`.
