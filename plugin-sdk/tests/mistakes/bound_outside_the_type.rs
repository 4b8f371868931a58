#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy(#[arg(le = 300)] count: u8) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
