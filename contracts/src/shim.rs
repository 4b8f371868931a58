//! Shims: what converts a call of a kept version to one of the version that is served by default, and its result back.
//!
//! A shim is data. Its steps are applied to values when a tool is called, and to schemas when the shim is judged: the new
//! version, seen through the shim, is compared with the old one by the same [`diff`](crate::diff) that judges every change.

mod derive;
mod steps;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_schema::{RawSchema, compare::normal};

pub use self::steps::ShimConversion;
use self::steps::compose;
use crate::{
    compile::result_arm,
    contract::{CallTarget, CompiledContract, ContractTool, OfferTarget, ToolBinding},
    diff::{ChangeSeverity, ContractDiff, SchemaSide, diff},
    name,
};

/// Steps of one tool on one side.
const STEPS_MAX: usize = 500;

/// Converts calls of one version of a contract to those of another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionShim {
    /// By the tool's name in the kept version. A tool that is not here is called as it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolShim>,
    /// Set by an operator: what no rule decides is taken to fit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

/// Converts the calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolShim {
    /// The tool's name in the version that is served by default, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<ShimStep>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<ShimStep>,
}

/// One step. `at` is a JSON Pointer into the arguments or the result of the kept version; `*` is every item of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ShimStep {
    /// The member has another name in the new version.
    Rename { at: String, to: String },
    /// The text has another value in the new version.
    Value {
        at: String,
        from: String,
        to: String,
    },
    /// An argument that is put in if it is absent, or a member that every result of the kept version has with this value.
    Set { at: String, value: Value },
}

/// Returns the shim that the differences of two versions suggest: new names of tools, of members and of values, and defaults.
/// [`judge`] decides whether it is enough. Fails if there are too many differences that suggest nothing.
pub fn derive(old: &CompiledContract, new: &CompiledContract) -> Result<VersionShim, String> {
    derive::derive(old, new)
}

/// Compares the old version with the new one as callers of the old version would see it through the shim. The error names a
/// step that cannot be made.
pub fn judge(
    old: &CompiledContract,
    new: &CompiledContract,
    shim: &VersionShim,
) -> Result<ContractDiff, String> {
    let (was, is) = through(old, new, shim)?;
    Ok(diff(&was, &is))
}

impl VersionShim {
    /// Reads a shim that an operator wrote, or the state stores. The error states the fault and its place.
    pub fn read(value: &Value) -> Result<Self, String> {
        let shim: Self = crate::artifact::typed(value).map_err(|(place, message)| {
            let place = if place.is_empty() { "/" } else { &place };
            format!("the shim at {place}: {message}")
        })?;
        for (tool, one) in &shim.tools {
            one.conversions()
                .map_err(|message| format!("the shim of {}: {message}", name::quoted(tool)))?;
        }
        Ok(shim)
    }

    /// Checks that callers of the old version can continue as before through the shim. The error explains why they cannot.
    pub fn fits(&self, old: &CompiledContract, new: &CompiledContract) -> Result<(), String> {
        let found = judge(old, new, self)?;
        let passes = match found.class {
            ChangeSeverity::Breaking => false,
            ChangeSeverity::Undecided => self.undecided,
            ChangeSeverity::Identical
            | ChangeSeverity::Cosmetic
            | ChangeSeverity::Compatible
            | ChangeSeverity::Review => true,
        };
        if passes {
            return Ok(());
        }
        let worst = found.items.iter().max_by_key(|item| item.class);
        let worst = worst.map_or_else(String::new, |item| {
            let tool = item.tool.as_deref().map(name::quoted).unwrap_or_default();
            format!("{tool} {}: {} ({})", item.path, item.reason, item.rule)
        });
        Err(worst.trim_start().to_owned())
    }

    /// Returns the shim that converts calls of `old` as this one does and then as `next`, which converts those of the version
    /// that this one leads to. [`fits`](Self::fits) decides whether it converts every call. The error names a step that cannot
    /// be made.
    pub fn compose(&self, old: &CompiledContract, next: &Self) -> Result<Self, String> {
        let none = ToolShim::default();
        let mut tools = BTreeMap::new();
        for tool in &old.tools {
            let between = self.new_name(&tool.name);
            let steps = (self.tools.get(&tool.name), next.tools.get(between));
            if steps == (None, None) {
                continue;
            }
            let (first, second) = (steps.0.unwrap_or(&none), steps.1.unwrap_or(&none));
            let name = next.new_name(between);
            let composed = ToolShim {
                name: (name != tool.name).then(|| name.to_owned()),
                input: compose(&first.input, &second.input, SchemaSide::Input)?,
                output: compose(&first.output, &second.output, SchemaSide::Output)?,
            };
            tools.insert(tool.name.clone(), composed);
        }
        Ok(Self {
            tools,
            undecided: self.undecided || next.undecided,
        })
    }

    /// Returns the name of a tool of the old version in the new one.
    pub fn new_name<'n>(&'n self, tool: &'n str) -> &'n str {
        let renamed = self.tools.get(tool).and_then(|shim| shim.name.as_deref());
        renamed.unwrap_or(tool)
    }
}

impl ToolShim {
    /// Returns what converts arguments, and what converts results.
    pub fn conversions(&self) -> Result<(ShimConversion, ShimConversion), String> {
        let read = |steps: &[ShimStep], side: SchemaSide| {
            if steps.len() > STEPS_MAX {
                return Err(format!("it has more than {STEPS_MAX} steps"));
            }
            ShimConversion::new(steps, side)
        };
        Ok((
            read(&self.input, SchemaSide::Input)?,
            read(&self.output, SchemaSide::Output)?,
        ))
    }
}

/// Returns both versions as they are compared: results without their errors, and the new version with the names and values
/// of the old one. Tools that only the new version has are unchanged.
fn through(
    old: &CompiledContract,
    new: &CompiledContract,
    shim: &VersionShim,
) -> Result<(CompiledContract, CompiledContract), String> {
    let known: BTreeSet<&str> = old.tools.iter().map(|tool| tool.name.as_str()).collect();
    let known = |tool: &str| known.contains(tool);
    if let Some(tool) = shim.tools.keys().find(|tool| !known(tool)) {
        let tool = name::quoted(tool);
        return Err(format!(
            "the shim names the tool {tool}, which is not there"
        ));
    }
    let by_name: BTreeMap<&str, &Arc<ContractTool>> = new
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool))
        .collect();
    let mut used = BTreeMap::new();
    let (mut was, mut is) = (Vec::new(), Vec::new());
    for tool in &old.tools {
        let Some(now) = by_name.get(shim.new_name(&tool.name)) else {
            was.push(tool.clone());
            continue;
        };
        if let Some(other) = used.insert(now.name.as_str(), &tool.name) {
            let (one, other) = (name::quoted(&tool.name), name::quoted(other));
            return Err(format!(
                "the tools {other} and {one} would be the same tool"
            ));
        }
        match shim.tools.get(&tool.name) {
            None => {
                was.push(tool.clone());
                is.push(Arc::clone(now));
            }
            Some(steps) => {
                let fault = |message| format!("tool {}: {message}", name::quoted(&tool.name));
                was.push(Arc::new(bare(tool, None)));
                is.push(Arc::new(seen(now, &tool.name, steps).map_err(fault)?));
            }
        }
    }
    let others = new
        .tools
        .iter()
        .filter(|tool| !used.contains_key(tool.name.as_str()) && !known(&tool.name));
    is.extend(others.cloned());
    let with = |contract: &CompiledContract, tools| CompiledContract {
        tools,
        ..contract.clone()
    };
    Ok((with(old, was), with(new, is)))
}

/// Returns a tool with the schemas that its calls meet, and no others.
fn bare(tool: &ContractTool, schemas: Option<(Value, Option<Value>)>) -> ContractTool {
    let (input, output) = schemas.unwrap_or_else(|| met(tool));
    let target = match &tool.target {
        CallTarget::Offer(offer) => CallTarget::Offer(Arc::new(OfferTarget {
            input: None,
            output: None,
            ..(**offer).clone()
        })),
        other => other.clone(),
    };
    ContractTool {
        input_schema: RawSchema::from(input),
        output_schema: output.map(RawSchema::from),
        target,
        ..tool.clone()
    }
}

/// Returns the schemas that arguments and results of a tool meet.
fn met(tool: &ContractTool) -> (Value, Option<Value>) {
    let output = tool.checked_output().map(|schema| {
        let schema = schema.value();
        match tool.offer().is_some() {
            true => schema,
            false => result_arm(&schema),
        }
    });
    (tool.checked_input().value(), output)
}

/// Returns the new tool as callers of the old one see it.
fn seen(now: &ContractTool, old_name: &str, shim: &ToolShim) -> Result<ContractTool, String> {
    let (up, down) = shim.conversions()?;
    let (input, output) = met(now);
    let convert = |schema: Value, conversion: &ShimConversion| {
        if conversion.is_empty() {
            return Ok(schema);
        }
        let mut schema = normal::normal(&schema)?;
        if normal::has_reference(&schema) {
            return Err("a reference cannot be followed".to_owned());
        }
        conversion.old_schema(&mut schema)?;
        Ok(schema)
    };
    let input = convert(input, &up).map_err(|message| format!("arguments: {message}"))?;
    let output = output.map(|schema| convert(schema, &down)).transpose();
    let output = output.map_err(|message| format!("results: {message}"))?;
    if output.is_none() && !down.is_empty() {
        return Err("results: the tool does not say what it answers".to_owned());
    }
    let mut tool = bare(now, Some((input, output)));
    tool.name = old_name.to_owned();
    if let CallTarget::Collection(target) = &mut tool.target {
        old_names(&mut Arc::make_mut(target).binding, &up);
    }
    Ok(tool)
}

/// Calls the arguments of a binding as the old version does, so that each is compared with itself.
fn old_names(binding: &mut ToolBinding, up: &ShimConversion) {
    for input in &mut binding.inputs {
        if let Some(old) = up.old_name(&input.field) {
            input.field = old.to_owned();
        }
    }
}

/// Converts checked arguments of the old version.
pub fn convert_arguments(up: &ShimConversion, arguments: Map<String, Value>) -> Map<String, Value> {
    let mut value = Value::Object(arguments);
    up.up(&mut value);
    match value {
        Value::Object(arguments) => arguments,
        _ => Map::new(), // an object remains one
    }
}
