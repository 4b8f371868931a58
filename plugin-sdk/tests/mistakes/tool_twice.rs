use weir_plugin_sdk::tool;

#[tool]
fn deploy() {}

weir_plugin_sdk::export!(tools: deploy, deploy);

fn main() {}
