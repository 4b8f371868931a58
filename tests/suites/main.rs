//! Weir seen from outside, one module a concern. One binary, so that it links once.

mod admin;
mod arguments;
mod audit;
mod author;
mod bound;
mod built_in;
mod calls;
mod clients;
mod code;
mod conformance;
mod extract;
mod frameworks;
mod gate;
mod identical;
mod identity;
mod large_sheet;
mod metrics;
mod operations;
mod packages;
mod plugins;
mod protocol;
mod rest;
mod restart;
mod sample;
mod spreadsheet;
mod upstreams;
