#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::{data, tool};

#[data]
struct Inner {
    name: String,
}

#[data]
struct Target {
    #[serde(flatten)]
    inner: Inner,
}

#[tool]
fn deploy(target: Target) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
