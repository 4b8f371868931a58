#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

#[tool]
struct deploy {
    service: String,
}

fn main() {}
