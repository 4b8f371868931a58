//! Tools: each function with `#[tool]` above it is one. Its signature and its documentation are what agents read.

use std::collections::BTreeMap;

use weir_plugin_sdk::{Context, ToolError, tool};

/// Deploy a service to an environment, and return what was deployed.
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
    let members = [("environment", environment), ("service", service), ("version", version)];
    Ok(members.map(|(name, value)| (name.to_owned(), value)).into())
}

weir_plugin_sdk::export!(tools: deploy);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_says_what_it_deployed() {
        let ctx = Context::new("{}", None);
        let deployed = deploy("prod".into(), "web".into(), "latest".into(), &ctx).unwrap();
        assert_eq!(deployed["service"], "web");
    }
}
