//! A compiled contract as JSON: what state and lock files keep, so that a published version is served byte for byte
//! as it was, also after a restart or by a newer compiler.

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use weir_text::shorten;

use crate::{
    contract::{
        CallTarget, CompiledContract, ContractTool, FieldDestination, NO_VERB, ToolBinding,
    },
    json, name, validate,
};

impl CompiledContract {
    /// Returns the whole contract, bindings and recorded shapes included, with its keys in their order.
    pub fn to_artifact(&self) -> Value {
        serde_json::to_value(self).expect("a contract is plain data")
    }

    /// Reads what [`CompiledContract::to_artifact`] wrote. The error is the first fault: a key or type that is not ours with
    /// its place, or a part that refers to one that is not there.
    pub fn from_artifact(artifact: &Value) -> Result<Self, String> {
        let contract: Self =
            typed(artifact).map_err(|(place, message)| match place.is_empty() {
                true => message,
                false => format!("{message} at {place}"),
            })?;
        contract.check()?;
        Ok(contract)
    }

    /// Reads a text that only the state writes. Its schemas are not compiled here: they were compiled when the
    /// text was written, and are again at their first use. Compiling ten thousand of them would take up most of a
    /// start.
    pub fn from_own_artifact(text: &str) -> Result<Self, String> {
        let contract: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        contract.check_parts()?;
        Ok(contract)
    }

    /// Checks that a stored contract keeps what the compiler promises its readers.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_parts()?;
        for tool in &self.tools {
            check_schemas(tool)
                .map_err(|message| format!("tool {}: {message}", name::quoted(&tool.name)))?;
        }
        Ok(())
    }

    /// Checks that names are valid and that every part refers to one that exists.
    fn check_parts(&self) -> Result<(), String> {
        if !self.name.is_empty() {
            name::check_contract(&self.name)?;
        }
        let mut collections = HashSet::new();
        for collection in &self.collections {
            name::check_collection(&collection.name)?;
            let fault = |message: String| {
                format!("collection {}: {message}", name::quoted(&collection.name))
            };
            if !collections.insert(collection.name.as_str()) {
                return Err(fault("it is there twice".to_owned()));
            }
            collection.shape.check().map_err(fault)?;
            let missing = |column: &&String| collection.shape.field(column).is_none();
            if let Some(column) = collection.published.iter().find(missing) {
                return Err(fault(format!(
                    "it publishes the column {}, which is not there",
                    name::quoted(column)
                )));
            }
        }
        let mut tools = HashSet::new();
        for tool in &self.tools {
            name::check_tool(&tool.name)?;
            if !tools.insert(tool.name.as_str()) {
                return Err(format!(
                    "tool {}: it is there twice",
                    name::quoted(&tool.name)
                ));
            }
            self.check_tool(tool)
                .map_err(|message| format!("tool {}: {message}", name::quoted(&tool.name)))?;
        }
        let mut prompts = HashSet::new();
        for prompt in &self.prompts {
            name::check_tool(&prompt.name).map_err(|message| format!("a prompt: {message}"))?;
            if !prompts.insert(prompt.name.as_str()) {
                return Err(format!(
                    "prompt {}: it is there twice",
                    name::quoted(&prompt.name)
                ));
            }
        }
        let mut resources = HashSet::new();
        if let Some(twice) = self
            .resources
            .iter()
            .find(|resource| !resources.insert(resource.uri.as_str()))
        {
            return Err(format!(
                "resource {}: it is there twice",
                name::quoted(&twice.uri)
            ));
        }
        Ok(())
    }

    fn check_tool(&self, tool: &ContractTool) -> Result<(), String> {
        match &tool.target {
            CallTarget::Collection(target) => self.check_binding(tool, &target.binding),
            CallTarget::Form | CallTarget::Offer(_) => Ok(()),
        }
    }

    fn check_binding(&self, tool: &ContractTool, binding: &ToolBinding) -> Result<(), String> {
        let Some(collection) = self.collection(&binding.collection) else {
            return Err(format!(
                "it is bound to the collection {}, which is not there",
                name::quoted(&binding.collection)
            ));
        };
        if tool.output_schema.is_none() {
            return Err(NO_VERB.to_owned());
        }
        let guards = binding
            .bound
            .iter()
            .any(|field| matches!(field.to, FieldDestination::Guard { .. }));
        if guards && !collection.shape.capabilities.guarded_write {
            return Err("it holds a write to conditions, which the source cannot".to_owned());
        }
        let operations = &collection.shape.capabilities.operations;
        if let Some(wanted) = &binding.operation
            && !operations.iter().any(|operation| operation.name == *wanted)
        {
            return Err(format!(
                "it calls the operation {}, which is not there",
                name::quoted(wanted)
            ));
        }
        Ok(())
    }
}

fn check_schemas(tool: &ContractTool) -> Result<(), String> {
    let compile = if tool.is_foreign() {
        validate::foreign_validator
    } else {
        validate::validator
    };
    for schema in [&tool.input_schema, tool.checked_input()] {
        compile(&schema.value()).map_err(|message| format!("its input schema: {message}"))?;
    }
    for schema in tool.output_schema.iter().chain(tool.checked_output()) {
        compile(&schema.value()).map_err(|message| format!("its output schema: {message}"))?;
    }
    Ok(())
}

/// Reads a value as its type. The error is the JSON Pointer to what does not fit, and why.
pub(crate) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, (String, String)> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let mut place = String::new();
        for segment in error.path() {
            match segment {
                Segment::Seq { index } => json::push_pointer(&mut place, &index.to_string()),
                Segment::Map { key } | Segment::Enum { variant: key } => {
                    json::push_pointer(&mut place, key)
                }
                Segment::Unknown => {}
            }
        }
        let message = error.into_inner().to_string();
        (place, shorten(&message, 300).into_owned())
    })
}
