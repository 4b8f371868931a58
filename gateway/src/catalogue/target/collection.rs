//! A collection as seen by one tool, prepared for its calls.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use sha2::{Digest, Sha256};
use weir_contracts::{
    CollectionShape, CompiledContract, ToolVerb,
    compile::count_field,
    contract::{CollectionTarget, RecordInclusion, ToolBinding},
    output::RecordChecker,
    shape::{MisfitPolicy, ShapeField},
};
use weir_plugin_host::CollectionRef;

/// A collection as seen by one tool.
pub struct CollectionTool {
    pub published: Arc<CollectionTarget>,
    /// The collection to which calls go.
    pub source: CollectionRef,
    /// The order and the columns of every query.
    pub order: Arc<[String]>,
    pub columns: Arc<[String]>,
    /// The check that every record of an answer must pass.
    pub records: Arc<RecordChecker>,
    /// Whether the adapter may report how many records a condition could not be applied to.
    pub counts_skipped: bool,
    /// The fields that a summary may answer.
    pub summary: Option<Box<[ShapeField]>>,
    /// The columns among which the arguments can choose, if any.
    pub choices: Option<ColumnChoices>,
    /// The related records that the arguments can request.
    pub related: Box<[RelatedCollection]>,
}

/// Another collection from which a lookup answers the record that its own record refers to.
pub struct RelatedCollection {
    /// The name by which the record is requested and answered.
    pub name: String,
    pub source: CollectionRef,
    /// The columns of the record that hold the key.
    pub by: Box<[String]>,
    /// The key of the other collection.
    pub key: Arc<[String]>,
    pub columns: Arc<[String]>,
    /// The check that the other record must pass.
    pub records: Arc<RecordChecker>,
    /// Whether the adapter may report how many records a condition could not be applied to.
    pub counts_skipped: bool,
}

impl RelatedCollection {
    fn prepare(
        contract: &CompiledContract,
        inclusion: &RecordInclusion,
        sources: &HostCollections,
    ) -> Option<Self> {
        let other = contract.collection(&inclusion.collection)?;
        let columns = &other.published;
        Some(Self {
            name: inclusion.name.clone(),
            source: sources.find(&inclusion.collection)?.clone(),
            by: inclusion.columns.as_slice().into(),
            key: other.shape.key.as_slice().into(),
            columns: columns.as_slice().into(),
            records: RecordChecker::for_fields(&other.shape.fields, columns).into(),
            counts_skipped: other.shape.misfits == MisfitPolicy::Empty,
        })
    }
}

/// The columns of a list among which the arguments choose.
pub struct ColumnChoices {
    /// In their order in a record.
    pub fields: Box<[ShapeField]>,
    key: Box<[String]>,
}

impl ColumnChoices {
    fn prepare(shape: &CollectionShape, binding: &ToolBinding) -> Option<Self> {
        let columns = &binding.list.as_ref()?.columns;
        let fields = columns.iter().filter_map(|column| shape.field(column));
        (!columns.is_empty()).then(|| Self {
            fields: fields.cloned().collect(),
            key: shape.key.as_slice().into(),
        })
    }

    /// Returns the columns of a record if these were requested: those, and the columns of the key.
    pub fn with_key(&self, wanted: &[&str]) -> Arc<[String]> {
        let columns = self.fields.iter().map(|field| &field.key);
        columns
            .filter(|column| self.key.contains(column) || wanted.contains(&column.as_str()))
            .cloned()
            .collect()
    }
}

impl CollectionTool {
    pub(super) fn prepare(
        contract: &CompiledContract,
        published: &Arc<CollectionTarget>,
        sources: &HostCollections,
    ) -> Option<Self> {
        let binding = &published.binding;
        let (columns, records) = match published.verb {
            ToolVerb::Count | ToolVerb::Summarize => sources.counted(contract, binding)?,
            _ => sources.projection(contract, binding)?,
        };
        let shape = &contract.collection(&binding.collection)?.shape;
        Some(Self {
            published: published.clone(),
            source: sources.find(&binding.collection)?.clone(),
            order: binding.order.as_slice().into(),
            columns,
            records,
            counts_skipped: shape.misfits == MisfitPolicy::Empty,
            summary: binding
                .summary
                .as_ref()
                .map(|choices| choices.fields(shape).into()),
            choices: ColumnChoices::prepare(shape, binding),
            related: binding
                .include
                .iter()
                .map(|inclusion| RelatedCollection::prepare(contract, inclusion, sources))
                .collect::<Option<_>>()?,
        })
    }
}

/// The collections of one contract in the form for the host: serialised once, not once per tool.
pub(in crate::catalogue) struct HostCollections {
    collections: HashMap<String, CollectionRef>,
    /// The columns that tools answer. Many tools have the same.
    projections: RefCell<HashMap<Projected, Projection>>,
}

/// A collection, an operation of it, and columns.
type Projected = (String, Option<String>, Vec<String>);

/// The columns that a tool answers, and the check of its records.
type Projection = (Arc<[String]>, Arc<RecordChecker>);

impl HostCollections {
    pub(in crate::catalogue) fn new(contract: &CompiledContract) -> Self {
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

    pub(in crate::catalogue) fn find(&self, collection: &str) -> Option<&CollectionRef> {
        self.collections.get(collection)
    }

    /// Returns the check of a count. The columns are those that its caller may see named.
    fn counted(&self, contract: &CompiledContract, binding: &ToolBinding) -> Option<Projection> {
        let collection = contract.collection(&binding.collection)?;
        let records = RecordChecker::for_fields(&[count_field()], &binding.columns);
        Some((collection.published.as_slice().into(), Arc::new(records)))
    }

    fn projection(&self, contract: &CompiledContract, binding: &ToolBinding) -> Option<Projection> {
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
