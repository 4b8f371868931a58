//! The tests of the client as one program: each one of its own would be linked with the whole crate again.

mod children;
mod odd_answers;
mod owners;
mod tokens;
mod urls;
