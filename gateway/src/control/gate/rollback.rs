//! Rollback to an earlier version.

use weir_audit::AdminAct;
use weir_contracts::{CompiledContract, diff::ContractDiff};
use weir_state::StateError;

use super::{
    ContractBasis, DraftApproval, Gate, GateError, Role, artifact, change_class, still_on,
};
use crate::identity::now_ms;

/// An earlier version, and the version that it would replace.
pub(super) struct WayBack {
    target: CompiledContract,
    /// The difference from the live version, or from the last one if the contract was retired. A returning tool is compared with
    /// the last version that had it, as in a submission.
    pub(super) change: ContractDiff,
    /// The version that is live; `None` if the contract is retired.
    base: Option<String>,
}

impl Gate {
    /// Makes an earlier version live again, through the same gate: the approval is for the difference from the live version. `on`
    /// is the basis of the decision, which is refused on any other; `None` accepts any.
    pub async fn roll_back(
        &self,
        name: &str,
        to: &str,
        approval: &DraftApproval<'_>,
        on: Option<&ContractBasis>,
    ) -> Result<ContractDiff, GateError> {
        let back = self.way_back(name, to, on).await?;
        self.go_back(name, back, approval, on).await
    }

    /// Returns `true` if an admin rolled back the version that was compiled from exactly this text: the decision applies until
    /// the source of the contract has another text.
    pub(in crate::control) async fn is_rolled_back(
        &self,
        name: &str,
        text: &str,
    ) -> Result<bool, GateError> {
        let Some(from) = self
            .state
            .head(name)
            .await?
            .and_then(|head| head.rolled_back)
        else {
            return Ok(false);
        };
        if self
            .state
            .version(name, &from)
            .await?
            .is_some_and(|version| version.source == text)
        {
            return Ok(true);
        }
        self.state.forget_rollback(name).await?;
        Ok(false)
    }

    /// Finds an earlier version, and its difference from the live one.
    pub(super) async fn way_back(
        &self,
        name: &str,
        to: &str,
        on: Option<&ContractBasis>,
    ) -> Result<WayBack, GateError> {
        self.refresh().await?;
        let target = self
            .state
            .version(name, to)
            .await?
            .ok_or(StateError::Unknown("version"))?;
        let target = artifact(name, &target.artifact)?;
        let live = self.live();
        let current = live.get(name);
        still_on(on, name, current)?;
        let before = self
            .before(name, current)
            .await?
            .ok_or(StateError::Unknown("contract"))?;
        let change = self.compare(&before, &target).await?;
        Ok(WayBack {
            target,
            change,
            base: current.map(|current| current.contract.version.to_string()),
        })
    }

    /// Makes the target live, if the version that it was compared with is still live.
    pub(super) async fn go_back(
        &self,
        name: &str,
        back: WayBack,
        approval: &DraftApproval<'_>,
        on: Option<&ContractBasis>,
    ) -> Result<ContractDiff, GateError> {
        let WayBack {
            target,
            change,
            base,
        } = back;
        let class = change_class(change.class);
        let needs = Role::for_class(class);
        if approval.role < needs {
            return Err(GateError::Role { class, needs });
        }
        if approval.fingerprint != change.fingerprint {
            return Err(GateError::Fingerprint(change.fingerprint));
        }
        let to = target.version.to_string();
        let switch = self.begin(Some(&target), on).await?;
        let switch = switch.switch(
            name,
            base.as_deref(),
            Some(&to),
            None,
            now_ms(),
            approval.by,
        );
        let subject = format!("{name}@{to}");
        self.recorded(
            AdminAct::Rollback,
            &subject,
            &change.fingerprint,
            approval.by,
            switch,
        )
        .await?;
        self.refresh().await?;
        Ok(change)
    }
}
