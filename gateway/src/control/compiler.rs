//! Compiles forms with the shapes of their collections, which are recorded, or described again where the recorded ones do not
//! suffice.

use std::{collections::BTreeMap, sync::Arc};

use weir_contracts::{CollectionShape, CompiledContract, FileProblem, compile, form};
use weir_state::GatewayState;

use super::{
    describe::{UnavailableDependency, describe_all},
    format_trial::try_formats,
    gate::GateError,
    shapes::{self, CollectionSettings},
};
use crate::serving::ServingGateway;

/// Compiles forms, and records the shapes of their collections.
pub struct FormCompiler {
    gateway: Arc<ServingGateway>,
    state: Arc<GatewayState>,
}

/// Why a contract text could not be compiled.
pub enum CompileFailure {
    /// The source or the adapter is currently unavailable.
    Waiting(UnavailableDependency),
    Refused(Vec<FileProblem>),
}

impl CompileFailure {
    /// Adds the gate's reason about a contract to its file.
    pub(super) fn at_the_gate(file: &str, error: GateError) -> Self {
        match error {
            GateError::Refused(problems) => Self::Refused(
                problems
                    .into_iter()
                    .map(|problem| problem.in_file(file))
                    .collect(),
            ),
            owned @ GateError::Owned { .. } => Self::Waiting(owned.to_string().into()),
            error => Self::Refused(vec![FileProblem::new(file, "", error.to_string())]),
        }
    }
}

impl FormCompiler {
    pub(super) fn new(gateway: Arc<ServingGateway>, state: Arc<GatewayState>) -> Self {
        Self { gateway, state }
    }

    /// Compiles a form with the recorded shapes if they suffice, or with new ones if they are missing or no longer fit the file.
    pub async fn compile(
        &self,
        source: &form::ContractSource,
    ) -> Result<CompiledContract, CompileFailure> {
        let contract = source.contract.as_deref().unwrap_or_default();
        let (compiled, described) = self.compile_with_shapes(source).await?;
        for collection in &source.collections {
            if let Some(shape) = described.get(&collection.name) {
                self.record(contract, collection.into(), shape).await;
            }
        }
        Ok(compiled)
    }

    /// Like [`compile`](Self::compile), but records nothing.
    pub async fn compile_only(
        &self,
        source: &form::ContractSource,
    ) -> Result<CompiledContract, CompileFailure> {
        let (compiled, _) = self.compile_with_shapes(source).await?;
        Ok(compiled)
    }

    /// Tries the formats of a form that the live version does not have. No source is queried at start, since the formats of the
    /// files are live by then.
    async fn try_new_formats(
        &self,
        source: &form::ContractSource,
        shapes: &BTreeMap<String, CollectionShape>,
    ) -> Result<(), CompileFailure> {
        let has_formats = |collection: &form::FormCollection| {
            let mut overrides = collection.overrides.iter();
            overrides.any(|own| own.format.is_some())
        };
        if !source.collections.iter().any(has_formats) {
            return Ok(());
        }
        let contract = source.contract.as_deref().unwrap_or_default();
        let live = self.state.live_of(contract).await.ok().flatten();
        let live = live.and_then(|live| CompiledContract::from_own_artifact(&live.artifact).ok());
        let live_format = |collection: &str, column: &str| {
            let mut collections = live.as_ref()?.collections.iter();
            let collection = collections.find(|known| known.name == collection)?;
            collection.shape.field(column)?.format.as_deref()
        };
        let mut edited = source.clone();
        for collection in &mut edited.collections {
            let name = &collection.name;
            collection
                .overrides
                .retain(|own| own.format.as_ref() != live_format(name, &own.column));
        }
        self.try_formats(&edited, shapes).await
    }

    async fn try_formats(
        &self,
        source: &form::ContractSource,
        shapes: &BTreeMap<String, CollectionShape>,
    ) -> Result<(), CompileFailure> {
        let trial = try_formats(&self.gateway, source, shapes).await;
        for note in &trial.notes {
            tracing::warn!("{note}");
        }
        match trial.problems.is_empty() {
            true => Ok(()),
            false => Err(CompileFailure::Refused(trial.problems)),
        }
    }

    /// Compiles a form. Returns the contract and the shapes that were described for it: none where the recorded ones suffice.
    async fn compile_with_shapes(
        &self,
        source: &form::ContractSource,
    ) -> Result<(CompiledContract, BTreeMap<String, CollectionShape>), CompileFailure> {
        // If the state cannot be read, no shapes are recorded: the sources are asked.
        let shapes = shapes::recorded(&self.state, source)
            .await
            .unwrap_or_default();
        if shapes.len() == source.collections.len()
            && let Ok(compiled) = compile::compile(source, &shapes)
        {
            self.try_new_formats(source, &shapes).await?;
            return Ok((compiled, BTreeMap::new()));
        }
        // The file is new or asks for more than was recorded: describe everything.
        let (described, away, refused) = describe_all(
            &self.gateway,
            source,
            &source.collections.iter().collect::<Vec<_>>(),
        )
        .await;
        let mut problems: Vec<FileProblem> =
            refused.into_iter().map(|source| source.problem).collect();
        if !away.is_empty() || !problems.is_empty() {
            // Problems in the file are reported whatever the state of its sources.
            problems.extend(
                compile::compile_known(source, &described)
                    .err()
                    .unwrap_or_default(),
            );
            return Err(match problems.is_empty() {
                true => CompileFailure::Waiting(UnavailableDependency::all(away)),
                false => CompileFailure::Refused(problems),
            });
        }
        let compiled = compile::compile(source, &described).map_err(CompileFailure::Refused)?;
        self.try_formats(source, &described).await?;
        Ok((compiled, described))
    }

    /// Records the shape of a collection: from now on, its contract is compiled with it.
    pub(super) async fn record(
        &self,
        contract: &str,
        collection: CollectionSettings<'_>,
        shape: &CollectionShape,
    ) {
        shapes::record(&self.state, contract, collection, shape).await;
    }
}
