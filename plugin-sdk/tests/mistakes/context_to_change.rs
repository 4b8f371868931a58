#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::{Context, tool};

#[tool]
fn deploy(ctx: &mut Context) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
