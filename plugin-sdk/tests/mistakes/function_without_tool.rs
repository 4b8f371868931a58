fn deploy(service: String) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
