//! Weir seen from outside, one module a concern. One binary, so that it links once.

mod clients;
mod conformance;
mod sample;
