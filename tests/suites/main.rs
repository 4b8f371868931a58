//! Weir seen from outside, one module a concern. One binary, so that it links once.

mod bound;
mod calls;
mod clients;
mod conformance;
mod identical;
mod operations;
mod plugins;
mod protocol;
mod sample;
