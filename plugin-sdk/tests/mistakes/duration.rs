#![allow(dead_code, unused_variables)]

use std::time::Duration;

use weir_plugin_sdk::tool;

#[tool]
fn deploy(wait: Duration) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
