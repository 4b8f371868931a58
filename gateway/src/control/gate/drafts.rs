//! Drafts: changes that wait at the gate until an admin publishes or discards them.

use std::cmp::Reverse;

use serde_json::Value;
use weir_audit::AdminAct;
use weir_contracts::{CompiledContract, ContractVersion, diff::ContractDiff};
use weir_state::{DraftHead, NewDraft, StateError, VersionRow, VersionSource};

use super::{
    ChangeClass, ContractBasis, DraftStatus, Gate, GateError, KeepVersion, Role, Submission,
    artifact, change_class, digest, moved, still_on,
};
use crate::identity::now_ms;

/// The class and the rule of a draft that would retire its contract.
const RETIRE: &str = "contract-removed";

/// A submission that waits as a draft.
#[derive(Debug)]
pub struct HeldDraft {
    pub draft: String,
    pub contract: String,
    /// The live version; `None` when no version of the contract is served.
    pub base: Option<String>,
    pub class: ChangeClass,
    pub fingerprint: String,
    pub needs: Role,
    pub diff: Option<ContractDiff>,
}

/// A decision about a draft: who made it, and the difference that they reviewed.
pub struct DraftApproval<'a> {
    pub by: &'a str,
    pub role: Role,
    pub fingerprint: &'a str,
}

impl Gate {
    pub(super) async fn hold(
        &self,
        submission: &Submission<'_>,
        contract: &CompiledContract,
        base: Option<&str>,
        change: ContractDiff,
    ) -> Result<HeldDraft, GateError> {
        let report = serde_json::to_string(&change).expect("a diff is plain data");
        let (class, fingerprint) = (change_class(change.class), change.fingerprint.clone());
        let held = self
            .store_held(submission, contract, base, class, &fingerprint, &report)
            .await?;
        self.warn_of_lost_shims(&held.draft, base, contract);
        Ok(HeldDraft {
            diff: Some(change),
            ..held
        })
    }

    pub(super) async fn store_held(
        &self,
        submission: &Submission<'_>,
        contract: &CompiledContract,
        base: Option<&str>,
        class: ChangeClass,
        fingerprint: &str,
        report: &str,
    ) -> Result<HeldDraft, GateError> {
        let id = draft_id();
        let version = contract.version.to_string();
        let artifact = contract.to_artifact().to_string();
        let draft = NewDraft {
            on: submission.on.as_ref(),
            id: &id,
            contract: &contract.name,
            base,
            version: Some(&version),
            artifact: Some(&artifact),
            source: submission.source,
            origin: submission.origin,
            owner: submission.owner,
            class,
            fingerprint,
            report,
            at_ms: now_ms(),
            by: submission.by,
        };
        let draft = self.state.hold(&draft).await;
        let draft = draft.map_err(|error| moved(error, &contract.name))?;
        Ok(HeldDraft {
            draft,
            contract: contract.name.clone(),
            base: base.map(str::to_owned),
            class,
            fingerprint: fingerprint.to_owned(),
            needs: Role::for_class(class),
            diff: None,
        })
    }

    /// Asks for a contract to be retired: its tools are removed, its history is kept. The draft always waits. `on` is the basis
    /// of the decision, which is refused on any other; `None` accepts any.
    pub async fn ask_to_retire(
        &self,
        name: &str,
        by: &str,
        on: Option<&ContractBasis>,
    ) -> Result<HeldDraft, GateError> {
        let live = self.live();
        still_on(on, name, live.get(name))?;
        let current = live.get(name).ok_or(StateError::Unknown("live contract"))?;
        let base = current.contract.version.to_string();
        let tools: Vec<&str> = current
            .contract
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        let fingerprint = digest(&[RETIRE, name, &base]);
        let items: Vec<Value> = tools
            .iter()
            .map(|tool| {
                serde_json::json!({
                    "rule": RETIRE, "path": format!("/tools/{tool}"), "side": "contract", "tool": tool,
                    "class": ChangeClass::Breaking, "old": tool, "new": null,
                    "reason": "the contract would be retired, and the tool with it",
                })
            })
            .collect();
        let report = serde_json::json!({
            "class": ChangeClass::Breaking, "breaking": true, "fingerprint": fingerprint, "items": items,
        });
        let draft = NewDraft {
            on,
            id: &draft_id(),
            contract: name,
            base: Some(&base),
            version: None,
            artifact: None,
            source: &current.source,
            origin: current.origin,
            owner: current.owner.as_deref(),
            class: ChangeClass::Breaking,
            fingerprint: &fingerprint,
            report: &report.to_string(),
            at_ms: now_ms(),
            by,
        };
        let draft = self.state.hold(&draft).await;
        let draft = draft.map_err(|error| moved(error, name))?;
        Ok(HeldDraft {
            draft,
            contract: name.to_owned(),
            base: Some(base),
            class: ChangeClass::Breaking,
            fingerprint,
            needs: Role::Operator,
            diff: None,
        })
    }

    /// Makes a draft live exactly as it was reported, or changes nothing. Returns the version that is live now; `None` when the
    /// contract was retired.
    pub async fn approve(
        &self,
        id: &str,
        approval: &DraftApproval<'_>,
        keep: Option<&KeepVersion>,
    ) -> Result<(DraftHead, Option<ContractVersion>), GateError> {
        self.refresh().await?;
        let draft = self
            .state
            .draft(id)
            .await?
            .ok_or(StateError::Unknown("draft"))?;
        let head = draft.head;
        self.may_approve(&head, approval)?;
        let base = head.base.as_deref();
        match draft.artifact {
            Some(text) => {
                let contract = artifact(&head.contract, &text)?;
                let row = VersionRow {
                    contract: head.contract.clone(),
                    version: contract.version.to_string(),
                    artifact: text,
                    source: draft.source,
                    class: head.class,
                    fingerprint: head.fingerprint.clone(),
                    published_ms: now_ms(),
                    published_by: approval.by.to_owned(),
                };
                let source = VersionSource {
                    origin: head.origin,
                    owner: head.owner.as_deref(),
                };
                let kept = keep.map(|keep| self.row_to_keep(keep, base, &contract, approval.by));
                let kept = kept.transpose()?;
                self.make_live(
                    &contract,
                    None,
                    base,
                    source,
                    &row,
                    (Some(id), kept.as_ref()),
                )
                .await?;
                self.refresh().await?;
                Ok((head, Some(contract.version)))
            }
            None if keep.is_some() => Err(GateError::NotKept(
                "the contract would be retired".to_owned(),
            )),
            None => {
                let change = self.begin(None, None).await?;
                let change =
                    change.switch(&head.contract, base, None, Some(id), now_ms(), approval.by);
                self.recorded(
                    AdminAct::Retire,
                    &head.contract,
                    &head.fingerprint,
                    approval.by,
                    change,
                )
                .await?;
                self.refresh().await?;
                Ok((head, None))
            }
        }
    }

    fn may_approve(
        &self,
        draft: &DraftHead,
        approval: &DraftApproval<'_>,
    ) -> Result<(), GateError> {
        if draft.status != DraftStatus::Pending {
            return Err(GateError::Decided(draft.status));
        }
        let needs = Role::for_class(draft.class);
        if approval.role < needs {
            return Err(GateError::Role {
                class: draft.class,
                needs,
            });
        }
        if approval.fingerprint != draft.fingerprint {
            return Err(GateError::Fingerprint(draft.fingerprint.clone()));
        }
        let live = self
            .live()
            .get(&draft.contract)
            .map(|live| live.contract.version.to_string());
        if live != draft.base {
            let word = |version: Option<String>| version.unwrap_or_else(|| "nothing".to_owned());
            return Err(GateError::Outdated {
                base: word(draft.base.clone()),
                live: word(live),
            });
        }
        Ok(())
    }

    /// Discards a draft that waits.
    pub async fn discard(&self, id: &str, by: &str) -> Result<(), GateError> {
        self.recorded(
            AdminAct::Reject,
            id,
            "",
            by,
            self.state.discard(id, now_ms(), by),
        )
        .await
    }
}

impl HeldDraft {
    /// Returns a line for the log: the change, its reason and the next step.
    pub fn line(&self) -> String {
        // The worst item comes first.
        let mut items: Vec<_> = self.diff.iter().flat_map(|diff| &diff.items).collect();
        items.sort_by_key(|item| Reverse(item.class));
        let reasons: Vec<String> = items.into_iter().map(|item| item.reason.clone()).collect();
        let why = match reasons.split_first() {
            None if self.base.is_none() => "no version of it was published before".to_owned(),
            None => "it is to be retired".to_owned(),
            Some((first, [])) => first.clone(),
            Some((first, rest)) => format!("{first}, and {} more", rest.len()),
        };
        let meanwhile = match &self.base {
            Some(live) => format!("version {live} is still served"),
            None => "no version is served until then".to_owned(),
        };
        format!(
            "{} ({}): {why}; {meanwhile}. Publish it with `weir contracts publish {} --fingerprint {}`",
            self.contract, self.class, self.draft, self.fingerprint
        )
    }
}

fn draft_id() -> String {
    format!("d_{}", &crate::telemetry::call_id()[2..])
}
