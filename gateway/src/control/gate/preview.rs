//! Predicts what the gate would do with a submission, without doing it.

use serde_json::Value;
use weir_contracts::{CompiledContract, ContractVersion, FileProblem, diff::ChangeSeverity};

use super::{
    ChangeClass, Gate, GateError, Role, Submission, change_class, first_fingerprint, first_report,
    waits,
};

/// The verdict that the gate would give on a submission.
pub struct ForeseenVerdict {
    /// The reasons to refuse it, whatever the change.
    pub problems: Vec<FileProblem>,
    /// The version that it would become; the present version if nothing changes.
    pub version: ContractVersion,
    pub class: ChangeClass,
    /// The role that would have to publish it. `None`: it would be live immediately.
    pub needs: Option<Role>,
    /// The difference from the live version, or the last one: `{class, breaking, fingerprint, items}`.
    pub report: Value,
}

impl Gate {
    /// Compares a submission like [`submit`](Self::submit), but stores nothing.
    pub async fn foresee(&self, submission: &Submission<'_>) -> Result<ForeseenVerdict, GateError> {
        self.refresh().await?;
        let (contract, live) = (&submission.contract, self.live());
        if let Some(skipped) = self.unreadable().remove(&contract.name) {
            return Err(GateError::Artifact(skipped.why));
        }
        let problems = match self.check(submission, &live) {
            Ok(()) => Vec::new(),
            Err(GateError::Refused(problems)) => problems,
            Err(owned @ GateError::Owned { .. }) => {
                vec![FileProblem::new("", "/contract", owned.to_string())]
            }
            Err(other) => return Err(other),
        };
        let before = self
            .before(&contract.name, live.get(&contract.name))
            .await?;
        let Some(before) = before else {
            return Ok(foresee_first(contract, problems));
        };
        let change = self.compare(&before, contract).await?;
        let version = match change.class {
            ChangeSeverity::Identical => before.version,
            _ => self.next_version(&contract.name, &before, &change).await?,
        };
        let class = change_class(change.class);
        Ok(ForeseenVerdict {
            problems,
            version,
            class,
            needs: waits(change.class).then(|| Role::for_class(class)),
            report: serde_json::to_value(&change).expect("a diff is plain data"),
        })
    }
}

/// Previews the first version of a contract.
fn foresee_first(contract: &CompiledContract, problems: Vec<FileProblem>) -> ForeseenVerdict {
    ForeseenVerdict {
        problems,
        version: contract.version,
        class: ChangeClass::First,
        needs: None,
        report: first_report(contract, &first_fingerprint(contract)),
    }
}
