//! A tool of another MCP server, prepared for its calls.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use weir_contracts::{
    CompiledContract, ContractTool, contract::OfferTarget, output::ResultChecker,
};
use weir_schema::RawSchema;

/// The tool of another server that a published tool calls.
pub struct UpstreamTool {
    /// The name of the server in the configuration.
    pub upstream: Arc<str>,
    /// The tool's name at the server.
    pub name: Arc<str>,
    /// Whether a call may change something at the server.
    pub writes: bool,
    /// Whether the server, of 2025-11-25, requires its calls to begin as tasks.
    pub as_task: bool,
    /// Whether its contract has resources, so that links in its answers are rewritten to the published names.
    pub publishes_uris: bool,
    /// Whether its output schema is published, so that clients check answers against it.
    pub publishes_output: bool,
    input_schema: RawSchema,
    input: OnceLock<Value>,
    output_schema: Option<RawSchema>,
    output: OnceLock<Option<ResultChecker>>,
}

impl UpstreamTool {
    pub(super) fn prepare(
        contract: &CompiledContract,
        tool: &ContractTool,
        published: &Arc<OfferTarget>,
        upstream: &str,
    ) -> Self {
        Self {
            upstream: upstream.into(),
            name: published.name.as_str().into(),
            writes: tool.writes(),
            as_task: published.task_support() == Some("required"),
            publishes_uris: contract.has_resources(),
            publishes_output: tool.output_schema.is_some(),
            input_schema: tool.checked_input().clone(),
            input: OnceLock::new(),
            output_schema: tool.checked_output().cloned(),
            output: OnceLock::new(),
        }
    }

    /// Returns the tree of the schema against which its arguments are checked. It is created on first use.
    pub fn checked_input(&self) -> &Value {
        self.input.get_or_init(|| self.input_schema.value())
    }

    /// Returns `true` if its answers are checked against a schema, published or not.
    pub fn promises_output(&self) -> bool {
        self.output_schema.is_some()
    }

    /// Returns the check of `structuredContent`. It is compiled on first use, like that of the arguments. `None` also means
    /// that the schema does not compile, which happens only if the state was changed by another program.
    pub fn output(&self) -> Option<&ResultChecker> {
        let schema = self.output_schema.as_ref()?;
        let compiled = self.output.get_or_init(|| {
            let compiled = ResultChecker::foreign(&schema.value());
            compiled
                .inspect_err(|error| {
                    tracing::error!(tool = &*self.name, "its output schema: {error}")
                })
                .ok()
        });
        compiled.as_ref()
    }
}
