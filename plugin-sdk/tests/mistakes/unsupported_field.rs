#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::{data, tool};

struct Service;

#[data]
struct Target {
    service: Service,
}

#[tool]
fn deploy(target: Target) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
