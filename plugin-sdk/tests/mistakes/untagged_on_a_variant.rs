#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::{data, tool};

#[data]
enum Target {
    Named { name: String },
    #[serde(untagged)]
    Other(u32),
}

#[tool]
fn deploy(target: Target) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
