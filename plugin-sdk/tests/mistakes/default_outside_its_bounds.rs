#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy(#[arg(ge = 1, default = 0)] count: u32) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
