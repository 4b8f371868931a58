#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy((environment, service): (String, String)) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
