//! The first example.

use std::collections::BTreeMap;

use weir_plugin_sdk::{Context, ToolError, tool};

/// Deploy a service.
#[tool(idempotent)]
fn deploy(
    /// Target environment
    #[arg(min_len = 1)]
    environment: String,
    /// Service name.
    #[arg(min_len = 1)]
    service: String,
    /// Version or image tag.
    #[arg(default = "latest")]
    version: String,
    ctx: &Context,
) -> Result<BTreeMap<String, String>, ToolError> {
    ctx.log(&format!("Deploying {service}"));
    let members = [
        ("environment", environment),
        ("service", service),
        ("version", version),
    ];
    Ok(members.map(|(name, value)| (name.to_owned(), value)).into())
}

weir_plugin_sdk::export!(tools: deploy);
