#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::{data, tool};

#[data]
fn other() {}

#[tool]
fn deploy(service: String) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
