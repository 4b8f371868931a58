//! One published tool, with everything a call needs prepared.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use weir_contracts::{Contract, Tool, Version, impact::Profiler, output::RecordChecker, validate::ArgumentValidator};
use weir_plugin_host::CollectionRef;

use super::{Catalogue, ListShape};
use crate::telemetry::metrics::ToolSeries;

pub struct CatalogueTool {
    pub name: Arc<str>,
    pub contract: Arc<str>,
    pub version: Version,
    /// `contract@version`, as logs and `_meta` show it.
    pub contract_version: Arc<str>,
    pub tool: Arc<Tool>,
    /// Where calls go; missing for a tool compiled from a bare form, which the registry does not publish.
    pub collection: Option<CollectionRef>,
    /// What every query of it asks for.
    pub order: Arc<[String]>,
    pub columns: Arc<[String]>,
    arguments: OnceLock<Option<ArgumentValidator>>,
    profiler: OnceLock<Profiler>,
    records: Option<RecordChecker>,
    /// Where its calls are counted; the metrics fill it in.
    pub series: OnceLock<Arc<ToolSeries>>,
    digest: [u8; 32],
}

impl CatalogueTool {
    pub(super) fn prepare(
        contract: &Contract,
        tool: &Arc<Tool>,
        sources: &Sources,
        previous: Option<&Catalogue>,
    ) -> Arc<Self> {
        let source = tool.binding.as_ref().and_then(|binding| sources.0.get(binding.collection.as_str()));
        let digest = digest(contract, tool, source);
        if let Some(same) =
            previous.and_then(|old| old.tools.get(tool.name.as_str())).filter(|old| old.digest == digest)
        {
            return same.clone();
        }
        let bound =
            tool.binding.as_ref().and_then(|binding| Some((binding, contract.collection(&binding.collection)?)));
        let collection = source.cloned();
        let records = bound.map(|(binding, collection)| match &binding.operation {
            None => RecordChecker::new(&collection.shape, &binding.columns),
            Some(name) => {
                let returns = collection.shape.capabilities.operations.iter().find(|operation| operation.name == *name);
                let fields = returns.map(|operation| operation.returns.clone()).unwrap_or_default();
                let shape = weir_contracts::Shape { fields, ..collection.shape.clone() };
                RecordChecker::new(&shape, &binding.columns)
            }
        });
        Arc::new(Self {
            name: tool.name.as_str().into(),
            contract: contract.name.as_str().into(),
            version: contract.version,
            contract_version: format!("{}@{}", contract.name, contract.version).into(),
            tool: Arc::clone(tool),
            collection,
            order: bound.map(|(binding, _)| binding.order.as_slice().into()).unwrap_or_default(),
            columns: bound.map(|(binding, _)| binding.columns.as_slice().into()).unwrap_or_default(),
            arguments: OnceLock::new(),
            profiler: OnceLock::new(),
            records,
            series: OnceLock::new(),
            digest,
        })
    }

    /// Compiled on first use: ten thousand tools must not be paid for at start. `None`: the schema that was kept does not
    /// compile, which nobody but another hand in the state can have done.
    pub fn arguments(&self) -> Option<&ArgumentValidator> {
        let compiled = self.arguments.get_or_init(|| {
            let compiled = ArgumentValidator::new(&self.tool.input_schema);
            compiled.inspect_err(|error| tracing::error!(tool = &*self.name, "its input schema: {error}")).ok()
        });
        compiled.as_ref()
    }

    /// Tells what arguments looked like.
    pub fn profiler(&self) -> &Profiler {
        self.profiler.get_or_init(|| Profiler::new(&self.tool.input_schema))
    }

    pub fn records(&self) -> Option<&RecordChecker> {
        self.records.as_ref()
    }

    pub(super) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The tool as a client of that shape reads it.
    pub(super) fn write(&self, shape: ListShape, out: &mut String) {
        let tool = &self.tool;
        let mut object = Map::new();
        object.insert("name".into(), json!(tool.name));
        if let (Some(title), ListShape::Modern | ListShape::Structured) = (&tool.title, shape) {
            object.insert("title".into(), json!(title));
        }
        object.insert("description".into(), json!(tool.description));
        object.insert("inputSchema".into(), tool.input_schema.clone());
        if let (Some(schema), ListShape::Modern | ListShape::Structured) = (&tool.output_schema, shape) {
            object.insert("outputSchema".into(), schema.clone());
        }
        if shape != ListShape::Plain {
            object.insert("annotations".into(), serde_json::to_value(tool.annotations).expect("plain data"));
        }
        if matches!(shape, ListShape::Modern | ListShape::Structured) {
            object.insert("_meta".into(), json!({ "dev.weir/contract": self.contract_version }));
        }
        out.push_str(&Value::Object(object).to_string());
    }
}

/// The collections of one contract as the host takes them: written down once, not once per tool.
pub(super) struct Sources(HashMap<String, CollectionRef>);

impl Sources {
    pub(super) fn of(contract: &Contract) -> Self {
        let prepared = contract.collections.iter().map(|collection| {
            let settings = collection.settings.to_string();
            let shape = serde_json::to_string(&collection.shape).expect("a shape is plain data");
            let meaning = Sha256::new().chain_update(&settings).chain_update([0]).chain_update(&shape).finalize();
            let key =
                format!("{}@{}/{}#{}", contract.name, contract.version, collection.name, hex::encode(&meaning[..6]));
            let prepared = CollectionRef {
                key: key.into(),
                adapter: collection.adapter.as_str().into(),
                settings: settings.into(),
                shape: shape.into(),
            };
            (collection.name.clone(), prepared)
        });
        Self(prepared.collect())
    }
}

/// Everything that makes a tool what it is: published bytes, binding, source, limits. The source's key names its
/// settings and its shape by their digest.
fn digest(contract: &Contract, tool: &Tool, source: Option<&CollectionRef>) -> [u8; 32] {
    let Tool {
        name,
        title,
        description,
        verb,
        input_schema,
        output_schema,
        annotations,
        binding,
        limits,
        say,
        text,
        audit_clear,
    } = tool;
    Sha256::new()
        .chain_update(format!("{}@{} {name:?} {title:?} {description:?} {verb:?}", contract.name, contract.version))
        .chain_update(format!(
            "{annotations:?} {binding:?} {limits:?} {say:?} {text:?} {audit_clear:?} {:?}",
            source.map(|at| &at.key)
        ))
        .chain_update(input_schema.to_string())
        .chain_update(output_schema.as_ref().map(Value::to_string).unwrap_or_default())
        .finalize()
        .into()
}
