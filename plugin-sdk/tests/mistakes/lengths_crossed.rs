#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy(#[arg(min_len = 5, max_len = 1)] service: String) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
