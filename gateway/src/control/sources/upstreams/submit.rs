//! Submits the lists of servers, and decides which changes wait for consent.

use std::{sync::Arc, time::Duration};

use weir_contracts::{CompiledContract, diff::ForeignChanges};
use weir_state::VersionSource;
use weir_upstream::{ChangeMode, PublishMode, UpstreamConfig, UpstreamServer};

use super::{APART, CompiledOffer, REPLACED_MIN, RESTLESS_APART, RESTLESS_MS, UpstreamSource};
use crate::{
    control::{
        gate::{ContractOrigin, DraftStatus, GateError, LiveContract, Submission, Verdict},
        sources::{folder, locks},
    },
    identity::now_ms,
};

impl UpstreamSource {
    /// Submits an offer, and returns the waiting draft, if there is one.
    pub(super) async fn submit_offer(
        &self,
        upstream: &UpstreamServer,
        contract: CompiledContract,
        source: &str,
    ) -> Result<Option<String>, GateError> {
        let owner = folder::owner(&self.gateway.config().base);
        let name = contract.name.clone();
        let by = format!("upstream:{}", upstream.name);
        if let Some(owned) = self.gate().own(&name, &owner).await? {
            return Err(owned);
        }
        self.restore_offer(&name, &owner).await?;
        self.gate().refresh().await?;
        let live = self.gate().live().get(&name).cloned();
        let is_live = live.as_ref().is_some_and(|live| live.source == source);
        if self
            .is_discarded(live.as_deref(), &contract, source)
            .await?
            || (!is_live && self.gate().is_rolled_back(&name, source).await?)
        {
            // An offer in between is outdated.
            self.gate()
                .state()
                .drop_held(&name, ContractOrigin::Upstream, now_ms(), &by)
                .await?;
            return Ok(None);
        }
        let hold = self
            .holds(upstream.config(), live.as_deref(), &contract)
            .await?;
        let submission = Submission {
            contract,
            source,
            origin: ContractOrigin::Upstream,
            owner: Some(&owner),
            by: &by,
            hold,
            on: live.map(|live| live.revision.into()),
        };
        match self.publisher.submit(submission).await? {
            Verdict::Held(held) => {
                tracing::warn!("held: {}", held.line());
                Ok(Some(held.draft))
            }
            Verdict::Published { .. } | Verdict::Unchanged { .. } => Ok(None),
        }
    }

    async fn restore_offer(&self, name: &str, owner: &str) -> Result<(), GateError> {
        let source = VersionSource {
            origin: ContractOrigin::Upstream,
            owner: Some(owner),
        };
        let config = Arc::clone(&self.gateway.config());
        locks::restore_offer(self.gate(), &config, name, source).await
    }

    /// Publishes an offer that was reviewed and agreed to. If a contract of that name was published before, the gate judges the
    /// change like every other.
    pub async fn agree(
        &self,
        upstream: &str,
        offer: CompiledOffer,
        by: &str,
    ) -> Result<Verdict, GateError> {
        let owner = folder::owner(&self.gateway.config().base);
        self.restore_offer(&offer.compiled.contract.name, &owner)
            .await?;
        self.gate().refresh().await?;
        let is_first = !self
            .gate()
            .was_published(&offer.compiled.contract.name)
            .await?;
        tracing::debug!(upstream, is_first, "agreed to");
        let submission = Submission {
            contract: offer.compiled.contract,
            source: &offer.source,
            origin: ContractOrigin::Upstream,
            owner: Some(&owner),
            by,
            hold: !is_first,
            on: None,
        };
        self.publisher.submit(submission).await
    }

    /// Returns `true` if the offer waits even if the gate would accept it.
    async fn holds(
        &self,
        config: &UpstreamConfig,
        live: Option<&LiveContract>,
        contract: &CompiledContract,
    ) -> Result<bool, GateError> {
        let Some(live) = live else {
            // A contract that was retired and comes back is compared with its last version, and waits.
            let is_first = !self.gate().was_published(&contract.name).await?;
            return Ok(!(is_first && config.first == PublishMode::Publish));
        };
        let changes = match config.changes {
            ChangeMode::Hold => ForeignChanges::Hold,
            ChangeMode::Compatible => ForeignChanges::Compatible,
        };
        let change = self.gate().compare(&live.contract, contract).await?;
        Ok(!change.awaiting_consent(changes).is_empty())
    }

    /// Notes that drafts replace each other undecided: some servers list something different at each start, and people who are
    /// asked repeatedly agree without looking.
    pub(super) async fn restless(&self, contract: &str) -> Option<String> {
        let replaced = self.replaced(contract, 0).await;
        (replaced >= REPLACED_MIN).then(|| {
            format!(
                "at least {replaced} drafts were replaced by the one that waits: if the server lists something else at each \
                 start, keep it still (a server in Python by `env = {{ PYTHONHASHSEED = \"0\" }}`)"
            )
        })
    }

    /// Returns the least time between two looks at a server. A server whose lists keep changing, so that no one can agree in
    /// time, is looked at less often.
    pub(super) async fn apart(&self, contract: &str) -> Duration {
        let is_restless = self.replaced(contract, now_ms() - RESTLESS_MS).await >= REPLACED_MIN;
        if is_restless { RESTLESS_APART } else { APART }
    }

    /// Returns how many drafts since then were replaced undecided.
    async fn replaced(&self, contract: &str, since_ms: i64) -> u32 {
        let base = self
            .gate()
            .live()
            .get(contract)
            .map(|live| live.contract.version.to_string());
        let replaced = self
            .gate()
            .state()
            .superseded(
                contract,
                ContractOrigin::Upstream,
                base.as_deref(),
                since_ms,
            )
            .await;
        replaced.unwrap_or_else(|error| {
            tracing::error!(contract, %error, "its drafts cannot be counted");
            0
        })
    }

    /// Returns `true` if exactly this offer was discarded, so that it is not proposed again. If a version is live, the change is
    /// compared: the same lists under another overlay are a different change.
    async fn is_discarded(
        &self,
        live: Option<&LiveContract>,
        contract: &CompiledContract,
        source: &str,
    ) -> Result<bool, GateError> {
        let (state, name) = (self.gate().state(), &contract.name);
        let status = match live {
            Some(live) => {
                let base = live.contract.version.to_string();
                let change = self
                    .gate()
                    .compare(&live.contract, contract)
                    .await?
                    .fingerprint;
                let draft = state.draft_of_change(name, Some(&base), &change).await?;
                draft.map(|draft| draft.status)
            }
            None => state.status_of_source(name, None, source).await?,
        };
        Ok(status == Some(DraftStatus::Discarded))
    }
}
