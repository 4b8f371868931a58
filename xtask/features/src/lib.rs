//! Has features and nothing else. The native crates build their tests beside it, and `cargo xtask demo` builds the program
//! beside it, so that cargo compiles each shared dependency with the features that the whole workspace gives it: tests of one
//! crate after a demo compile that crate alone. Its manifest is generated and checked by `tests/tidy/features.rs`.
