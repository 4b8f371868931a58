#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy(#[arg(min_len = 1)] count: u32) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
