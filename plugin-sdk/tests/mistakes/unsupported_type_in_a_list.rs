#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

struct Service;

#[tool]
fn deploy(services: Vec<Service>) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
