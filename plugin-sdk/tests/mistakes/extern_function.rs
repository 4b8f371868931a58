#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
extern "C" fn deploy(environment: String) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
