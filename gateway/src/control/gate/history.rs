//! What a submission is compared with: the previous version and, for a returning tool, the last version that had it.

use std::sync::Arc;

use serde::Deserialize;
use weir_contracts::{
    CompiledContract,
    diff::{ContractDiff, diff_since, missing_tools},
};
use weir_state::StateError;

use super::{Gate, GateError, artifact, live::LiveContract};

/// The number of newest versions that are searched for a tool that is not live.
const EARLIER_MAX: usize = 200;

/// The tool names of a stored version, read without the rest of it.
#[derive(Deserialize)]
struct ArtifactTools {
    tools: Vec<ArtifactTool>,
}

#[derive(Deserialize)]
struct ArtifactTool {
    name: String,
}

impl Gate {
    /// Returns the version that the submission is compared with: the live one, or the last one if the contract was retired. A
    /// name's history outlives its deletion.
    pub(super) async fn before(
        &self,
        name: &str,
        current: Option<&Arc<LiveContract>>,
    ) -> Result<Option<Arc<CompiledContract>>, GateError> {
        if let Some(current) = current {
            return Ok(Some(current.contract.clone()));
        }
        let Some(head) = self.state.head(name).await? else {
            return Ok(None);
        };
        let last = match head.last {
            Some(last) => Some(last),
            // Old states do not record which version was retired.
            None => self
                .state
                .versions(name)
                .await?
                .pop()
                .map(|last| last.version),
        };
        let Some(last) = last else { return Ok(None) };
        let last = self
            .state
            .version(name, &last)
            .await?
            .ok_or(StateError::Unknown("version"))?;
        Ok(Some(Arc::new(artifact(name, &last.artifact)?)))
    }

    /// Compares a contract with the version before it, and each tool that is missing there with the last version that had it.
    pub async fn compare(
        &self,
        before: &CompiledContract,
        contract: &CompiledContract,
    ) -> Result<ContractDiff, GateError> {
        let earlier = self.earlier(before, contract).await?;
        Ok(diff_since(before, &earlier, contract))
    }

    /// Returns the last versions with those tools of the contract that the version before it lacks, newest first.
    async fn earlier(
        &self,
        before: &CompiledContract,
        contract: &CompiledContract,
    ) -> Result<Vec<CompiledContract>, GateError> {
        let mut missing = missing_tools(before, contract);
        let mut earlier = Vec::new();
        if missing.is_empty() {
            return Ok(earlier);
        }
        let name = &before.name;
        let versions = self.state.versions(name).await?;
        for head in versions.iter().rev().take(EARLIER_MAX) {
            if missing.is_empty() {
                break;
            }
            let Some(row) = self.state.version(name, &head.version).await? else {
                continue;
            };
            let Ok(stored) = serde_json::from_str::<ArtifactTools>(&row.artifact) else {
                continue;
            };
            let known = missing.len();
            for tool in &stored.tools {
                missing.remove(tool.name.as_str());
            }
            if missing.len() < known {
                earlier.push(artifact(name, &row.artifact)?);
            }
        }
        Ok(earlier)
    }
}
