//! What the programs of this crate share: what the measured servers answer, and how they are asked.
#![allow(clippy::print_stdout, reason = "measurements are printed")]

pub mod load;
pub mod noop;
pub mod ticket;
