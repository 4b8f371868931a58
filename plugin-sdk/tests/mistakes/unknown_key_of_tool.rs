#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool(readonly)]
fn deploy(service: String) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
