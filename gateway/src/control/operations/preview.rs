//! Previews a contract text: the tools that an agent would see, the decision of the gate, and the cost of the tools.

use std::{collections::BTreeMap, slice, sync::Arc};

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use weir_contracts::{
    CompiledContract, FileProblem, compiled_document, form,
    lint::{LintFinding, lint_contract},
};

use super::{OperationError, OperationResult};
use crate::{
    catalogue::{CatalogueEndpoint, CatalogueViewer, ListShape, ToolCatalogue},
    control::{
        CompileFailure, ControlPlane,
        gate::{ChangeClass, ContractOrigin, ForeseenVerdict, Role, Submission},
        impact::{Impact, impact, inputs},
    },
    tokens::vocabulary,
};

/// The name of the text in problems.
const SOURCE: &str = "source";
const NAMELESS: &str = "names no contract: a bare form compiles, but there is nothing to serve";

/// The tools that a contract would publish, and the resulting changes.
#[derive(Default, Serialize, ToSchema)]
pub struct ContractPreview {
    /// The reasons to refuse it: `{file, place, line?, message, hint?}`. Empty: it would be accepted.
    #[schema(value_type = Vec<Object>)]
    pub problems: Vec<FileProblem>,
    /// The compiled document, as `weir compile` prints it; null if the text does not compile.
    #[schema(value_type = Option<Object>)]
    pub document: Option<Value>,
    /// The difference from the live version: `{class, breaking, fingerprint, items}`; null if nothing can be compared.
    #[schema(value_type = Option<Object>)]
    pub diff: Option<Value>,
    pub class: Option<ChangeClass>,
    /// The version that it would become.
    pub version: Option<String>,
    /// The role that would have to publish it. Null: it would be live immediately.
    pub needs: Option<Role>,
    /// The agents whose past calls it would refuse; null if no calls are kept.
    pub impact: Option<Impact>,
    /// All findings of lint.
    #[schema(value_type = Vec<Object>)]
    pub lint: Vec<LintFinding>,
    /// The size of a list of its tools. A form without a contract is not in any list.
    pub bytes: usize,
    /// An estimate of the tokens that a model reads for them, as in `weir tools cost`.
    pub tokens: usize,
}

/// Returns what a text would become if it were submitted. Nothing is stored.
pub async fn preview(
    control: &ControlPlane,
    text: &str,
    by: &str,
) -> OperationResult<ContractPreview> {
    let refused = |problems| ContractPreview {
        problems,
        ..ContractPreview::default()
    };
    let source = match form::read(SOURCE, text) {
        Ok(source) => source,
        Err(problems) => return Ok(refused(problems)),
    };
    let contract = match control.compiler().compile_only(&source).await {
        Ok(contract) => contract,
        Err(CompileFailure::Refused(problems)) => return Ok(refused(problems)),
        Err(CompileFailure::Waiting(away)) => {
            return Ok(refused(vec![FileProblem::new(SOURCE, "", away.why)]));
        }
    };
    if source.contract.is_none() {
        let problems = vec![FileProblem::new(SOURCE, "", NAMELESS)];
        return Ok(ContractPreview {
            problems,
            ..describe(contract).await?
        });
    }
    let submission = Submission {
        contract,
        source: text,
        origin: ContractOrigin::Api,
        owner: None,
        by,
        hold: false,
        on: None,
    };
    let foreseen = control.gate().foresee(&submission).await?;
    let Submission { contract, .. } = submission;
    let calls = inputs(Some(&contract));
    let impact = impact(control.gateway(), control.state(), &contract.name, &calls).await?;
    let ForeseenVerdict {
        problems,
        version,
        class,
        needs,
        report,
    } = foreseen;
    let contract = CompiledContract {
        version,
        ..contract
    };
    Ok(ContractPreview {
        problems: problems
            .into_iter()
            .map(|problem| problem.in_file(SOURCE))
            .collect(),
        diff: Some(report),
        class: Some(class),
        version: Some(version.to_string()),
        needs,
        impact,
        ..describe(contract).await?
    })
}

/// Returns the part of the preview that depends only on the contract. Large contracts take a while, without blocking other
/// requests.
pub(super) async fn describe(contract: CompiledContract) -> OperationResult<ContractPreview> {
    let described = tokio::task::spawn_blocking(move || {
        let contract = Arc::new(contract);
        let alone = ToolCatalogue::new(slice::from_ref(&contract), &BTreeMap::new(), None);
        let listing = alone.listing(&CatalogueEndpoint::All, CatalogueViewer::EVERYTHING);
        let written = |shape| {
            let page = listing.as_ref()?.tools.page(shape, None, usize::MAX).ok()?;
            Some(page.entries.into_owned())
        };
        let bytes = written(ListShape::Modern).map_or(0, |list| list.len() + "[]".len());
        let tokens = written(ListShape::Plain).map_or(0, |list| vocabulary().count(&list));
        ContractPreview {
            document: Some(compiled_document(&contract)),
            lint: lint_contract(&contract),
            bytes,
            tokens,
            ..ContractPreview::default()
        }
    });
    described
        .await
        .map_err(|_| OperationError::unavailable("the preview broke off"))
}
