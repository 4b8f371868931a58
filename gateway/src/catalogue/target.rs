//! Prepares what a call of a published tool reaches, with everything the call needs.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use sha2::{Digest, Sha256};
use weir_contracts::{
    Contract, Tool,
    contract::{self, Binding, CollectionTarget, Maker},
    output::RecordChecker,
    shape::Misfits,
};
use weir_plugin_host::CollectionRef;

use super::{CodeTool, ForeignTool};

pub enum Target {
    Collection(BoundCollection),
    /// A plugin's tool.
    Code(CodeTool),
    /// Another server's tool.
    Foreign(ForeignTool),
}

/// A collection as one tool asks it.
pub struct BoundCollection {
    pub published: Arc<CollectionTarget>,
    /// The collection that calls go to.
    pub source: CollectionRef,
    /// The order and the columns that every query asks for.
    pub order: Arc<[String]>,
    pub columns: Arc<[String]>,
    /// The check that every record of an answer must pass.
    pub records: Arc<RecordChecker>,
    /// Whether the adapter may say how many records a condition could not judge.
    pub counts_skipped: bool,
}

impl Target {
    /// Prepares a target; `None` for a bare form, which no contract publishes.
    pub(super) fn prepare(contract: &Contract, tool: &Tool, sources: &Sources) -> Option<Self> {
        match &tool.target {
            contract::Target::Form => None,
            contract::Target::Offer(offer) => match &offer.maker {
                Maker::Plugin(plugin) => {
                    CodeTool::prepare(contract, tool, offer, plugin).map(Self::Code)
                }
                Maker::Upstream(upstream) => Some(Self::Foreign(ForeignTool::prepare(
                    contract, tool, offer, upstream,
                ))),
            },
            contract::Target::Collection(published) => {
                BoundCollection::prepare(contract, published, sources).map(Self::Collection)
            }
        }
    }

    pub fn collection(&self) -> Option<&BoundCollection> {
        match self {
            Self::Collection(bound) => Some(bound),
            Self::Code(_) | Self::Foreign(_) => None,
        }
    }

    /// Returns the name of the other server, if one answers.
    pub fn upstream(&self) -> Option<&str> {
        match self {
            Self::Foreign(foreign) => Some(&foreign.upstream),
            Self::Collection(_) | Self::Code(_) => None,
        }
    }

    /// Returns `true` if another server's output schema is published.
    pub fn promises_foreign_output(&self) -> bool {
        matches!(self, Self::Foreign(foreign) if foreign.publishes_output)
    }
}

impl BoundCollection {
    fn prepare(
        contract: &Contract,
        published: &Arc<CollectionTarget>,
        sources: &Sources,
    ) -> Option<Self> {
        let binding = &published.binding;
        let (columns, records) = sources.projection(contract, binding)?;
        let shape = &contract.collection(&binding.collection)?.shape;
        Some(Self {
            published: published.clone(),
            source: sources.find(&binding.collection)?.clone(),
            order: binding.order.as_slice().into(),
            columns,
            records,
            counts_skipped: shape.misfits == Misfits::Empty,
        })
    }
}

/// The collections of one contract as the host takes them: written down once, not once per tool.
pub(super) struct Sources {
    collections: HashMap<String, CollectionRef>,
    /// The columns that tools answer. Many tools have the same.
    projections: RefCell<HashMap<Projected, Projection>>,
}

/// A collection, an operation of it, and columns.
type Projected = (String, Option<String>, Vec<String>);

/// The columns that a tool answers, and the check of its records.
type Projection = (Arc<[String]>, Arc<RecordChecker>);

impl Sources {
    pub(super) fn of(contract: &Contract) -> Self {
        let prepared = contract.collections.iter().map(|collection| {
            let settings = collection.settings.to_string();
            let shape = serde_json::to_string(&collection.shape).expect("a shape is plain data");
            let meaning = Sha256::new()
                .chain_update(&settings)
                .chain_update([0])
                .chain_update(&shape)
                .finalize();
            let key = format!(
                "{}@{}/{}#{}",
                contract.name,
                contract.version,
                collection.name,
                hex::encode(&meaning[..6])
            );
            let prepared = CollectionRef {
                key: key.into(),
                adapter: collection.adapter.as_str().into(),
                settings: settings.into(),
                shape: shape.into(),
            };
            (collection.name.clone(), prepared)
        });
        Self {
            collections: prepared.collect(),
            projections: RefCell::default(),
        }
    }

    pub(super) fn find(&self, collection: &str) -> Option<&CollectionRef> {
        self.collections.get(collection)
    }

    fn projection(&self, contract: &Contract, binding: &Binding) -> Option<Projection> {
        let shape = &contract.collection(&binding.collection)?.shape;
        let prepare = || {
            let operation = |name: &String| {
                shape
                    .capabilities
                    .operations
                    .iter()
                    .find(|operation| operation.name == *name)
            };
            let fields = match &binding.operation {
                None => &shape.fields[..],
                Some(name) => operation(name).map_or(&[][..], |operation| &operation.returns),
            };
            let records = RecordChecker::for_fields(fields, &binding.columns);
            (binding.columns.as_slice().into(), Arc::new(records))
        };
        let same = (
            binding.collection.clone(),
            binding.operation.clone(),
            binding.columns.clone(),
        );
        Some(
            self.projections
                .borrow_mut()
                .entry(same)
                .or_insert_with(prepare)
                .clone(),
        )
    }
}
