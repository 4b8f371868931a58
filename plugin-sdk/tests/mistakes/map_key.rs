#![allow(dead_code, unused_variables)]

use std::collections::BTreeMap;

use weir_plugin_sdk::tool;

#[tool]
fn deploy(counts: BTreeMap<u32, String>) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
