#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy(#[arg(min_length = 1)] service: String) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
