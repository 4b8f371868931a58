#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy(values: (u8, u8, u8, u8, u8, u8, u8, u8, u8)) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
