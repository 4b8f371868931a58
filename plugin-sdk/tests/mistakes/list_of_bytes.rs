#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
fn deploy(image: Vec<u8>) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
