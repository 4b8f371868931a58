#![allow(dead_code, unused_variables)]

use weir_plugin_sdk::schema::{Fields, Mismatch, ToolSchema, Writer};
use weir_plugin_sdk::serde_json::Value;
use weir_plugin_sdk::{data, tool};

struct Service;

impl ToolSchema for Service {
    fn write(schema: &mut Writer) {
        schema.set("type", r#""object""#);
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        Fields::of(value).map(|_| Self)
    }

    fn print(&self, out: &mut String) {
        out.push_str("{}");
    }
}

#[data]
#[serde(tag = "kind")]
enum Target {
    Service(Service),
    Nobody,
}

#[tool]
fn deploy(target: Target) {}

weir_plugin_sdk::export!(tools: deploy);

fn main() {}
