#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool(name = "deploy a service")]
fn deploy(service: String) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
