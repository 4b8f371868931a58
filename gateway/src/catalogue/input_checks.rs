//! Keeps what is derived from the input schemas of called tools: the check of their arguments, and other parts that a call
//! needs. The least used are evicted, and made again on demand.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use ahash::RandomState;
use quick_cache::{UnitWeighter, sync::Cache};
use serde_json::Value;
use weir_contracts::{ContractTool, impact::ArgumentProfiler};
use weir_schema::validate::ArgumentValidator;

/// The tools whose checks are kept: a check takes tens of kilobytes.
const KEPT_MAX: usize = 4_096;

/// The checks of a tool's input schema that a call needs.
pub struct InputChecks {
    arguments: Option<ArgumentValidator>,
    schema: Value,
    profiler: OnceLock<ArgumentProfiler>,
}

/// The checks of tools, by the digest of the tool.
#[derive(Clone)]
pub(super) struct KeptChecks(Arc<Cache<[u8; 32], Arc<InputChecks>, UnitWeighter, RandomState>>);

impl InputChecks {
    fn new(tool: &ContractTool) -> Self {
        let compiled = tool.argument_validator();
        Self {
            arguments: compiled
                .inspect_err(|error| tracing::error!(tool = tool.name, "its input schema: {error}"))
                .ok(),
            schema: tool.input_schema.value(),
            profiler: OnceLock::new(),
        }
    }

    /// Returns the check of the arguments. `None` means that the stored schema does not compile, which happens only if the
    /// state was changed by another program.
    pub fn arguments(&self) -> Option<&ArgumentValidator> {
        self.arguments.as_ref()
    }

    /// Tells what arguments looked like.
    pub fn profiler(&self) -> &ArgumentProfiler {
        self.profiler
            .get_or_init(|| ArgumentProfiler::new(&self.schema))
    }

    /// Returns the tree of the published input schema, for callers that send no JSON.
    pub fn schema(&self) -> &Value {
        &self.schema
    }
}

impl KeptChecks {
    fn with_room_for(most: usize) -> Self {
        Self(Arc::new(Cache::with(
            most,
            most as u64,
            UnitWeighter,
            RandomState::new(),
            Default::default(),
        )))
    }

    pub(super) fn get_or_build(&self, tool: &ContractTool, digest: &[u8; 32]) -> Arc<InputChecks> {
        let Ok(checks) = self.0.get_or_insert_with(digest, || {
            Ok::<_, Infallible>(Arc::new(InputChecks::new(tool)))
        });
        checks
    }
}

impl Default for KeptChecks {
    fn default() -> Self {
        Self::with_room_for(KEPT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use weir_contracts::{compile, form};

    use super::*;

    #[test]
    fn checks_of_tools_that_are_called_least_make_room() {
        let text = r#"{"tool":"pick","description":"Picks one.","fields":[{"name":"of","type":"number","required":true}]}"#;
        let form = form::read("pick.json", text).expect("a form");
        let contract = compile::compile(&form, &Default::default()).expect("a contract");
        let tool = &contract.tools[0];
        let kept = KeptChecks::with_room_for(10);
        for round in 0..2 {
            for number in 0..100_u8 {
                let checks = kept.get_or_build(tool, &[number; 32]);
                let arguments = checks.arguments().expect("its schema compiles");
                assert!(arguments.validate(r#"{"of":1}"#).is_ok(), "round {round}");
                assert!(
                    arguments.validate(r#"{"of":"one"}"#).is_err(),
                    "round {round}"
                );
                assert!(kept.0.len() <= 10, "{} are kept", kept.0.len());
            }
        }
    }
}
