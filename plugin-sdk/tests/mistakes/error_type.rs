#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

struct Failed;

#[tool]
fn deploy(service: String) -> Result<u32, Failed> {
    Err(Failed)
}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
