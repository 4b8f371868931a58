#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy(#[arg(min_len = 1, min_len = 2)] service: String) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
