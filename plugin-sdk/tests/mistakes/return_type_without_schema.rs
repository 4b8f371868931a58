#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::tool;

struct Done;

#[tool]
fn deploy(service: String) -> Done {
    Done
}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
