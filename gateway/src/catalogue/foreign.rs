//! A tool of another server, prepared for its calls.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use weir_contracts::{Contract, Schema, Tool, contract::OfferTarget, output::ResultChecker};

pub struct ForeignTool {
    /// The name of the server in the configuration.
    pub upstream: Arc<str>,
    /// The tool's name there.
    pub name: Arc<str>,
    /// A call may change something there.
    pub writes: bool,
    /// Its contract has resources, so that links of its answers are published under the names that are served.
    pub publishes_uris: bool,
    /// Its output schema is published, so that clients hold answers against it.
    pub publishes_output: bool,
    input_schema: Schema,
    input: OnceLock<Value>,
    output_schema: Option<Schema>,
    output: OnceLock<Option<ResultChecker>>,
}

impl ForeignTool {
    pub(super) fn prepare(contract: &Contract, tool: &Tool, published: &Arc<OfferTarget>, upstream: &str) -> Self {
        Self {
            upstream: upstream.into(),
            name: published.name.as_str().into(),
            writes: tool.writes(),
            publishes_uris: contract.has_resources(),
            publishes_output: tool.output_schema.is_some(),
            input_schema: tool.checked_input().clone(),
            input: OnceLock::new(),
            output_schema: tool.checked_output().cloned(),
            output: OnceLock::new(),
        }
    }

    /// The tree of what its arguments are held against. Made on first use.
    pub fn checked_input(&self) -> &Value {
        self.input.get_or_init(|| self.input_schema.value())
    }

    /// Whether its answers are held against a schema, published or not.
    pub fn promises_output(&self) -> bool {
        self.output_schema.is_some()
    }

    /// What `structuredContent` is held against. Compiled on first use, as the arguments' schema is. `None` as well where it
    /// does not compile, which nobody but another hand in the state can have done.
    pub fn output(&self) -> Option<&ResultChecker> {
        let schema = self.output_schema.as_ref()?;
        let compiled = self.output.get_or_init(|| {
            let compiled = ResultChecker::foreign(&schema.value());
            compiled.inspect_err(|error| tracing::error!(tool = &*self.name, "its output schema: {error}")).ok()
        });
        compiled.as_ref()
    }
}
