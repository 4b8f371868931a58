#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::{data, tool};

#[data]
struct Service {
    name: String,
}

#[data]
#[serde(tag = "kind")]
enum Target {
    Service(Option<Service>),
    Nobody,
}

#[tool]
fn deploy(target: Target) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
