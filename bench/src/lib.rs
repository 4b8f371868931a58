//! What the measured servers answer; shared by the programs of this crate.
#![allow(clippy::print_stdout, reason = "measurements are printed")]

pub mod noop;
pub mod ticket;
