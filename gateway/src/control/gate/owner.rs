//! Gives each contract one owner folder: several processes with several contracts folders may share a state, and only the
//! folder that published a contract changes it. The others serve the published version.

use std::path::Path;

use super::{ContractOrigin, Gate, GateError};

impl Gate {
    /// Claims a live contract for `folder`, if it has no owner or its owner's folder is gone. Returns the reason if another
    /// folder owns it.
    pub async fn own(&self, contract: &str, folder: &str) -> Result<Option<GateError>, GateError> {
        let live = self.live();
        let Some(current) = live.get(contract).filter(|current| {
            matches!(
                current.origin,
                ContractOrigin::File | ContractOrigin::Upstream
            )
        }) else {
            return Ok(None);
        };
        let owner = current.owner.as_deref();
        let owned = |owner: &str| GateError::Owned {
            contract: contract.to_owned(),
            owner: owner.to_owned(),
        };
        match owner {
            Some(owner) if owner == folder => return Ok(None),
            Some(owner) if Path::new(owner).exists() => return Ok(Some(owned(owner))),
            _ => {}
        }
        let claimed = self.state().claim(contract, owner, folder).await?;
        self.refresh().await?;
        if claimed {
            if let Some(before) = owner {
                tracing::warn!(
                    contract,
                    folder,
                    "the folder {before} is not there any more: {folder} owns the contract now"
                );
            }
            return Ok(None);
        }
        // Another process claimed it first.
        let now = self
            .live()
            .get(contract)
            .and_then(|live| live.owner.clone());
        Ok(now.filter(|now| now != folder).map(|now| owned(&now)))
    }
}
