#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy(count: i128) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
