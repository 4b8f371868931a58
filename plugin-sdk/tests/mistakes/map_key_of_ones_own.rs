#![allow(dead_code, unused_variables)]

use std::collections::BTreeMap;

use weir_plugin_sdk::tool;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

#[tool]
fn deploy(counts: BTreeMap<Name, String>) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
