//! One published tool, with everything a call needs prepared.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use weir_contracts::{Contract, Tool, Version, output::RecordChecker, validate::ArgumentValidator};
use weir_plugin_host::CollectionRef;

use super::{Catalogue, ListShape};

pub struct CatalogueTool {
    pub name: Arc<str>,
    pub contract: Arc<str>,
    pub version: Version,
    /// `contract@version`, as logs and `_meta` show it.
    pub contract_version: Arc<str>,
    pub tool: Tool,
    /// Where calls go; missing for a tool compiled from a bare form, which the registry does not publish.
    pub collection: Option<CollectionRef>,
    arguments: OnceLock<ArgumentValidator>,
    records: Option<RecordChecker>,
    digest: [u8; 32],
}

impl CatalogueTool {
    pub(super) fn prepare(contract: &Contract, tool: &Tool, previous: Option<&Catalogue>) -> Arc<Self> {
        let digest = digest(contract, tool);
        if let Some(same) =
            previous.and_then(|old| old.tools.get(tool.name.as_str())).filter(|old| old.digest == digest)
        {
            return same.clone();
        }
        let bound =
            tool.binding.as_ref().and_then(|binding| Some((binding, contract.collection(&binding.collection)?)));
        let collection = bound.map(|(_, collection)| {
            let settings = collection.settings.to_string();
            let shape = serde_json::to_string(&collection.shape).expect("a shape is plain data");
            let meaning =
                hex(&Sha256::new().chain_update(&settings).chain_update([0]).chain_update(&shape).finalize()[..6]);
            CollectionRef {
                key: format!("{}@{}/{}#{meaning}", contract.name, contract.version, collection.name).into(),
                adapter: collection.adapter.as_str().into(),
                settings: settings.into(),
                shape: shape.into(),
            }
        });
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
            tool: tool.clone(),
            collection,
            arguments: OnceLock::new(),
            records,
            digest,
        })
    }

    /// Compiled on first use: ten thousand tools must not be paid for at start.
    pub fn arguments(&self) -> &ArgumentValidator {
        self.arguments.get_or_init(|| {
            ArgumentValidator::new(&self.tool.input_schema).expect("a compiled contract has a valid input schema")
        })
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

/// Everything that makes a tool what it is: published bytes, binding, source, limits.
fn digest(contract: &Contract, tool: &Tool) -> [u8; 32] {
    let collection = tool.binding.as_ref().and_then(|binding| contract.collection(&binding.collection));
    Sha256::new()
        .chain_update(format!("{} {} {tool:?} {collection:?}", contract.name, contract.version))
        .finalize()
        .into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
