#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::{data, tool};

#[data]
#[serde(default)]
#[derive(Default)]
struct Target(String);

#[tool]
fn deploy(target: Target) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
