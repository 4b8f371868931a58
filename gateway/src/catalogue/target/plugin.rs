//! A function of a plugin, prepared for its calls.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use weir_contracts::{
    CompiledContract, ContractTool, compile::result_arm, contract::OfferTarget,
    output::ResultChecker,
};
use weir_plugin_host::ToolRef;
use weir_schema::RawSchema;

/// The function of a plugin that a published tool calls.
pub struct PluginTool {
    pub published: Arc<OfferTarget>,
    /// The tool of the plugin to which calls go.
    pub source: ToolRef,
    /// The values that replace absent arguments.
    pub defaults: Map<String, Value>,
    output_schema: Option<RawSchema>,
    output: OnceLock<Option<ResultChecker>>,
}

impl PluginTool {
    pub(super) fn prepare(
        contract: &CompiledContract,
        tool: &ContractTool,
        published: &Arc<OfferTarget>,
        plugin: &str,
    ) -> Option<Self> {
        let input = tool.input_schema.value();
        let properties = input.get("properties").and_then(Value::as_object);
        let stated = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name, schema.get("default")?)));
        // A null default means that an argument may be absent.
        let defaults = stated.filter(|(_, default)| !default.is_null());
        Some(Self {
            source: ToolRef {
                plugin: plugin.into(),
                tool: published.name.as_str().into(),
                definitions: contract.definitions.as_deref()?.into(),
                contract: format!("{}@{}", contract.name, contract.version).into(),
                read_only: !tool.writes(),
            },
            published: published.clone(),
            defaults: defaults
                .map(|(name, default)| (name.clone(), default.clone()))
                .collect(),
            output_schema: tool.output_schema.clone(),
            output: OnceLock::new(),
        })
    }

    /// Returns `true` if it publishes an output schema.
    pub fn promises_output(&self) -> bool {
        self.output_schema.is_some()
    }

    /// Returns the check that every success must pass. It is compiled on first use, like the schema of the arguments.
    pub fn output(&self) -> Option<&ResultChecker> {
        let schema = self.output_schema.as_ref()?;
        let compiled = self.output.get_or_init(|| {
            let compiled = ResultChecker::new(&result_arm(&schema.value()));
            compiled
                .inspect_err(|error| {
                    tracing::error!(tool = &*self.source.tool, "its output schema: {error}")
                })
                .ok()
        });
        compiled.as_ref()
    }
}
